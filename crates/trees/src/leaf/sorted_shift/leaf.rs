//! The shifting node as the leaf of a hybrid index.

use super::{LATCH, LOW, NodeHeader, SIBLING, ShiftForm, ShiftNode, TAG};
use crate::key::{Entry, Key, Value};
use crate::leaf::{InsertResult, Leaf, TaggedEntry};
use crate::sorting::sort_pairs;
use bristlecone_pmem::{Corrupt, Fenced, Mapped, Medium, PmPtr, PmWord, Pool, PoolError};
use core::marker::PhantomData;

/// The shifting leaf of `NODE` bytes. Key words of different keys must differ: it serves layers
/// whose [`store_entry_key`](Key::store_entry_key) is [`store_separator`](Key::store_separator).
#[derive(Debug)]
pub struct SortedShift<const NODE: usize, F>(PhantomData<F>);

impl<const NODE: usize, F: ShiftForm> SortedShift<NODE, F> {
    #[inline(always)]
    fn node<'p, M: Medium>(medium: &'p M, words: &'p [PmWord]) -> ShiftNode<'p, M, F, NODE> {
        ShiftNode { medium, words, fences: PhantomData }
    }
}

impl<const NODE: usize, F: ShiftForm> Leaf for SortedShift<NODE, F> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = ShiftNode::<Mapped, F, NODE>::CAPACITY;
    const NEXT: usize = SIBLING;
    const LOW: usize = LOW;
    const LATCH: usize = LATCH;
    const IS_MENDED_BY_WRITERS: bool = true;

    #[inline(always)]
    fn flush_link<M: Medium>(medium: &M, link: &[PmWord]) {
        F::before_flush(medium);
        medium.flush(link);
    }

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let mut sorted = Vec::with_capacity(entries.len());
        for &TaggedEntry { entry, .. } in entries {
            sorted.push((K::read(pool, entry.key)?, entry));
        }
        sort_pairs(&mut sorted);
        let entries: Vec<_> = sorted.into_iter().map(|(_, entry)| entry).collect();
        let header = NodeHeader { sibling: PmPtr::new(next), low, level: 0 };
        ShiftNode::<M, F, NODE>::fill(pool.medium(), words, header, &entries);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let node = Self::node(pool.medium(), words);
        let position = node.search::<K>(pool, key)?;
        if !position.equal {
            return Ok(None);
        }
        let index = node.last_of_equal(position.index);
        Ok(Some((index, Value::plain(node.value(index)))))
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        let node = Self::node(medium, words);
        let count = node.count();
        let valid = (0..count)
            .filter(|&index| index + 1 == count || node.key(index) != node.key(index + 1));
        entries.extend(valid.map(|index| TaggedEntry { entry: node.entry(index), fingerprint: 0 }));
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::node(medium, words).count()
    }

    /// ```text
    /// N key's record |          only if the layer has records; crash: free again
    /// node: insert              [`ShiftNode::insert`]   -> durable   budget: its
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let node = Self::node(pool.medium(), words);
        let position = node.search::<K>(pool, key)?;
        let count = node.count_from(position.index);
        if count == Self::CAPACITY {
            return Ok(InsertResult::Full);
        }
        let entry = Entry::plain(K::store_separator(pool, key)?, value.word);
        if !K::EXACT {
            // The shift may commit the key word before its own first fence, so the record that the
            // word names must be durable first.
            let _ = pool.medium().fence();
        }
        Ok(InsertResult::Done(node.insert(position.index, count, entry)))
    }

    #[inline]
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let medium = pool.medium();
        Some(Self::node(medium, words).update(slot, value.word))
    }

    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let node = Self::node(pool.medium(), words);
        let entry = node.entry(slot);
        let _ = node.remove(slot, node.count_from(slot));
        entry
    }

    /// Hidden entries lie above all others, so the entries to drop are the end of the array: one
    /// store of a terminator drops them all.
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        Self::node(medium, words).truncate_rejected(0, keep)
    }

    fn mend<M: Medium>(pool: &Pool<M>, words: &[PmWord]) {
        Self::node(pool.medium(), words).drop_duplicates(pool.nonce());
    }

    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let node = Self::node(pool.medium(), words);
        let entries: Vec<_> = entries.iter().map(|tagged| tagged.entry).collect();
        Ok(node.append(node.count(), &entries))
    }

    /// Checks the leaf. The equal entries of an interrupted shift stay for the first writer.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let node = Self::node(pool.medium(), words);
        let (expected, found) =
            (ShiftNode::<M, F, NODE>::MAGIC << 32, pool.medium().load(&words[TAG]));
        if found != expected {
            let what = "tag of a shifting leaf";
            return Err(Corrupt { at: at + 8 * TAG as u64, what, expected, found });
        }
        let mut keys: Vec<_> = (0..node.count()).map(|index| node.key(index)).collect();
        keys.dedup();
        for pair in keys.windows(2) {
            let key = K::read(pool, pair[0])?;
            if !K::order(pool, pair[1], K::borrow(&key))?.is_gt() {
                let (what, expected, found) = ("keys of a leaf out of order", pair[0], pair[1]);
                return Err(Corrupt { at, what, expected, found });
            }
        }
        Ok(())
    }
}
