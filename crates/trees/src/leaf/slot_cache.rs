//! The leaf of WO-R: the bitmap alone commits changes, and the slot array is a cache that is never
//! flushed.
//!
//! The layout is that of `slotted`. Three bytes before the slots hold the low bytes of the
//! nonce of the open that wrote the array. Entries: 13, 28, 58, 117 in leaves of 256, 512, 1024,
//! 2048 B.
//!
//! 1. An entry is durable before its bit is set.
//! 2. The array is valid if it carries the nonce of this open. Then it is the sorted
//!    permutation of the entries whenever the latch is free. It is never flushed, and no durable
//!    state relies on it. A leaf with an array of another nonce is searched linearly, until
//!    the first insert rebuilds the array.
//! 3. An entry lies in one line, because it is aligned to 16 B. A slot is used again only after the
//!    store that cleared its bit is durable.

use super::slotted::{self, Array, Geometry, SlottedLeaf, insert_slot, ordered, retain_slots};
use super::{InsertResult, Leaf, TaggedEntry};
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;

/// The WO-R leaf of `NODE` bytes.
#[derive(Debug)]
pub struct SlotCache<const NODE: usize>;

/// The number of bytes that hold the nonce.
const TAG: usize = 3;

type View<'p, M, const NODE: usize> = SlottedLeaf<'p, M, NODE, TAG>;

/// Returns the nonce of this open, as slot arrays carry it: never zeros.
#[inline(always)]
fn nonce_tag<M: Medium>(pool: &Pool<M>) -> [u8; TAG] {
    let [a, b, c, ..] = pool.nonce().to_le_bytes();
    [a, b, c]
}

/// A tag that marks an array as invalid: no nonce ends in it.
const NO_NONCE: [u8; TAG] = [0; TAG];

impl<const NODE: usize> SlotCache<NODE> {
    #[inline(always)]
    fn view<'p, M: Medium>(pool: &'p Pool<M>, words: &'p [PmWord]) -> View<'p, M, NODE> {
        View::new(pool.medium(), words)
    }

    /// Returns `true` if the slot array belongs to this open.
    #[inline(always)]
    pub(super) fn is_cached<M: Medium>(pool: &Pool<M>, leaf: View<'_, M, NODE>) -> bool {
        let tag: [u8; TAG] = core::array::from_fn(|at| leaf.byte(at));
        tag == nonce_tag(pool)
    }

    /// Stores a changed array without a flush: no durable state relies on it (2).
    #[inline]
    fn store<M: Medium>(leaf: View<'_, M, NODE>, old: &Array, array: &Array) {
        leaf.store_array(old, array, M::store_transient);
    }

    /// Rebuilds the array from the entries.
    #[cold]
    fn rebuild_cache<K: Key, M: Medium>(
        pool: &Pool<M>,
        leaf: View<'_, M, NODE>,
    ) -> Result<(), Corrupt> {
        let (old, mut array) = leaf.with_slots::<K>(pool, 0, leaf.entries(leaf.bitmap()))?;
        array[..TAG].copy_from_slice(&nonce_tag(pool));
        Self::store(leaf, &old, &array);
        Ok(())
    }

    /// Removes from the array the indices that are not in `kept`, whichever open wrote it. If
    /// the number of slots left is not the number of entries, the array does not describe this
    /// leaf, so its tag is cleared.
    #[inline]
    fn drop_slots<M: Medium>(leaf: View<'_, M, NODE>, bitmap: u128, kept: u128) {
        let old = leaf.array();
        let mut array = old;
        let left = retain_slots(&mut array[TAG..], bitmap.count_ones() as usize, kept);
        if left != kept.count_ones() as usize {
            array[..TAG].copy_from_slice(&NO_NONCE);
        }
        Self::store(leaf, &old, &array);
    }
}

impl<const NODE: usize> Leaf for SlotCache<NODE> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = Geometry::<NODE, TAG>::CAPACITY;
    const NEXT: usize = slotted::NEXT;
    const LOW: usize = slotted::LOW;
    const LATCH: usize = slotted::LATCH;

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let entries = ordered::<K, M>(pool, entries.iter().map(|tagged| (0, tagged.entry)))?;
        let entries: Vec<_> = entries.into_iter().map(|(_, entry)| entry).collect();
        Self::view(pool, words).fill(low, next, nonce_tag(pool), &entries);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let leaf = Self::view(pool, words);
        if Self::is_cached(pool, leaf) {
            let count = leaf.bitmap().count_ones() as usize;
            return Ok(leaf.search::<K>(pool, count, key)?.found);
        }
        for (index, entry) in leaf.entries(leaf.bitmap()) {
            if K::order_entry(pool, entry, key)? == Ordering::Equal {
                return Ok(Some((index, entry.held_value())));
            }
        }
        Ok(None)
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        entries.extend(View::<M, NODE>::new(medium, words).tagged_entries());
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        View::<M, NODE>::new(medium, words).bitmap().count_ones() as usize
    }

    /// ```text
    /// W entry[i]         1 line     crash before C: the entry is invisible
    /// F entry[i] |
    /// R slots
    /// C bitmap           8 B
    /// F bitmap |         -> durable  budget: 2 lines, 2 fences
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let leaf = Self::view(pool, words);
        let bitmap = leaf.bitmap();
        let Some(index) = View::<M, NODE>::first_free(bitmap) else {
            return Ok(InsertResult::Full);
        };
        if !Self::is_cached(pool, leaf) {
            Self::rebuild_cache::<K, M>(pool, leaf)?;
        }
        let count = bitmap.count_ones() as usize;
        let rank = leaf.search::<K>(pool, count, key)?.rank;
        let word = K::store_entry_key(pool, key, value.word)?;
        leaf.store_entry(index, Entry::plain(word, value.word));
        let fenced = leaf.medium.persist(leaf.entry_words(index));
        let old = leaf.array();
        let mut array = old;
        insert_slot(&mut array[TAG..], count, rank, index);
        Self::store(leaf, &old, &array);
        Ok(InsertResult::Done(leaf.commit(bitmap | 1 << index, index, fenced)))
    }

    /// ```text
    /// C value[i]         8 B
    /// F entry[i] |       -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let medium = pool.medium();
        Some(View::<M, NODE>::new(medium, words).update(slot, value))
    }

    /// ```text
    /// R slots
    /// C bitmap           8 B
    /// F bitmap |         -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let leaf = Self::view(pool, words);
        let entry = leaf.entry(slot);
        let bitmap = leaf.bitmap();
        debug_assert!(bitmap >> slot & 1 == 1);
        let kept = bitmap & !(1 << slot);
        Self::drop_slots(leaf, bitmap, kept);
        let (word, value) = leaf.bitmap_word(kept, slot);
        leaf.medium.store(word, value);
        let _ = leaf.medium.persist(core::slice::from_ref(word));
        entry
    }

    /// ```text
    /// R slots
    /// C bitmap           8 B, or 16    the dropped entries were hidden already
    /// F bitmap |         -> durable    budget: 1 line, 1 fence
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let leaf = View::<M, NODE>::new(medium, words);
        let bitmap = leaf.bitmap();
        let kept = leaf.kept(bitmap, keep)?;
        if kept != bitmap {
            Self::drop_slots(leaf, bitmap, kept);
            let _ = leaf.drop_all(kept, slotted::BITMAP);
        }
        Ok(())
    }

    /// ```text
    /// W entries          their lines   crash before C: invisible
    /// F entries |
    /// R slots
    /// C bitmap           8 B, or 16    crash after C: hidden by the neighbour's low key
    /// F bitmap |         -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let leaf = Self::view(pool, words);
        let bitmap = leaf.bitmap();
        let written = leaf.write_free_slots(bitmap, entries);
        let fenced = leaf.medium.fence();
        let grown = written.iter().fold(bitmap, |bits, &(index, _)| bits | 1 << index);
        // The new entries are above all others, so their slots follow the used ones. An array of
        // another nonce stays invalid, because its tag does not change.
        let (old, array) = leaf.with_slots::<K>(pool, bitmap.count_ones() as usize, written)?;
        Self::store(leaf, &old, &array);
        Ok(leaf.commit_all(grown, slotted::BITMAP, fenced))
    }

    /// Checks the bitmap and writes nothing: the durable fields are whole, and the array carries
    /// the nonce of an earlier open.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        Self::view(pool, words).check_bitmap(at)
    }
}
