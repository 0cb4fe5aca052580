//! Splits of leaves, and the removal of empty ones.

use super::CclBTreeIndex;
use super::buffer::BufferNode;
use super::layout::{self, LeafView};
use super::settle::{SettleOptions, settle};
use super::techniques::Techniques;
use super::write::{BufferedChange, LatchedLeaf};
use crate::fingerprint;
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes};
use crate::key::{self, Entry, Key};
use crate::leaf::TaggedEntry;
use crate::leaf_table::{EntryChange, KeyedEntries};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> CclBTreeIndex<M, K, BATCH, T> {
    /// Inserts a new key into a leaf that has no space for it. Durable on return.
    ///
    /// A remove in the buffer makes space: then the buffer settles, and the key after it. Else the
    /// buffered writes and the key are divided with the leaf's entries, as [`divide`](Self::divide)
    /// says.
    #[cold]
    pub(super) fn split(
        &self,
        latched: &LatchedLeaf<'_, M>,
        key: K::Ref<'_>,
        incoming: &BufferedChange,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        if latched.node.meta::<M>().has_removed() {
            self.settle_buffer(&latched.node, &latched.leaf, None, guard)?;
            self.settle_buffer(&latched.node, &latched.leaf, Some(incoming), guard)?;
            return Ok(());
        }
        self.divide(latched, key, incoming)
    }

    /// Splits a leaf in the middle of its entries and merges the buffered writes, none of which is
    /// a remove, and the new key into both halves.
    ///
    /// ```text
    /// N right leaf: upper half, its writes   4 lines
    /// W values in the lower half; F their lines but the first |
    ///                                        crash before C: the right leaf is unreachable, free;
    ///                                        the log restores each value
    /// C state: lower half, right leaf  8 B
    /// W stamp                                only if no new key stays left
    /// F first line |
    /// new keys that stay left, stamp         as `settle`, in freed slots; crash before it: the log
    ///                                        repeats those that were acknowledged
    ///                                        -> durable
    ///                                        budget: 4 lines, those of the values but the first,
    ///                                        + 1; 2 fences; with new keys on the left side their
    ///                                        lines but the first, + 1, and 2 fences more (1 if
    ///                                        only the first line changes)
    /// ```
    fn divide(
        &self,
        latched: &LatchedLeaf<'_, M>,
        key: K::Ref<'_>,
        incoming: &BufferedChange,
    ) -> Result<(), TreeError> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let (node, leaf) = (&latched.node, &latched.leaf);
        let meta = node.meta::<M>();
        let mut entries = leaf.sorted::<K, M>(pool)?;
        let middle = entries.len() / 2;
        let separator = K::between(pool, entries[middle - 1].1, K::borrow(&entries[middle].0))?;
        let mut upper = entries.split_off(middle);
        let mut moved = 0;
        for (key, _) in &upper {
            if let Some((slot, _)) = leaf.find::<K, M>(pool, K::borrow(key))? {
                moved |= 1 << slot;
            }
        }
        let mut group = KeyedEntries::<K>::with_capacity(BATCH + 1);
        for slot in 0..meta.count() {
            let entry = node.entry::<M>(slot);
            group.push((K::read_entry(pool, entry)?, entry));
        }
        group.push((K::to_owned(key), incoming.change.entry));
        let (left, right): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|(key, _)| *key < separator);
        for (key, entry) in &right {
            match upper.binary_search_by(|(other, _)| other.cmp(key)) {
                Ok(at) => upper[at].1 = *entry,
                Err(at) => upper.insert(at, (key.clone(), *entry)),
            }
        }
        let is_old = |key: &K::Owned| entries.binary_search_by(|(old, _)| old.cmp(key)).is_ok();
        let (values, added): (Vec<_>, Vec<_>) = left.iter().partition(|(key, _)| is_old(key));
        let changes = |pairs: Vec<&(K::Owned, Entry)>| -> Vec<_> {
            pairs.into_iter().map(|&(_, entry)| EntryChange { entry, is_removed: false }).collect()
        };
        let (values, added) = (changes(values), changes(added));

        let stamp = (meta.count() > 0).then(|| layout::after(node.stamp::<M>()));
        let is_lost = M::INJECTS_DEFECTS && medium.injects(Defect::RightUnstamped);
        let right_stamp = if is_lost { 0 } else { stamp.unwrap_or_else(|| leaf.stamp(medium)) };
        let (at, low) = self
            .right_leaf(K::borrow(&separator), leaf.next(medium), right_stamp, &upper)
            .inspect_err(|_| key::free_entry_key::<K, M>(pool, incoming.change.entry))?;
        let is_early = M::INJECTS_DEFECTS && medium.injects(Defect::StampAtSplit);
        let options = SettleOptions {
            next: Some(at.offset()),
            moved,
            stamp: stamp.filter(|_| added.is_empty() || is_early),
            has_written: !(M::INJECTS_DEFECTS && medium.injects(Defect::RightUnfenced)),
            ..SettleOptions::default()
        };
        settle::<K, M>(pool, leaf, &values, options)?;
        let index = self.buffers.take::<M>(at);
        Self::cache(&self.node(index), right.iter().map(|&(_, entry)| entry));
        self.inner.post::<K>(pool, K::borrow(&separator), low, PmPtr::new(index as u64))?;
        if !added.is_empty() {
            settle::<K, M>(
                pool,
                leaf,
                &added,
                SettleOptions { stamp, ..SettleOptions::default() },
            )?;
        }
        Self::cache(node, left.iter().map(|&(_, entry)| entry));
        self.log.count_settled(meta.count());
        Ok(())
    }

    /// Writes a leaf for `entries` and returns its offset and its low key word. Durable after the
    /// next fence. After an error nothing stays reserved.
    fn right_leaf(
        &self,
        separator: K::Ref<'_>,
        next: PmPtr,
        stamp: u64,
        entries: &KeyedEntries<K>,
    ) -> Result<(PmPtr, u64), TreeError> {
        let low = K::store_separator(&self.pool, separator)?;
        let right = self.pool.reserve(layout::BYTES);
        let right = right.inspect_err(|_| key::free_separator::<K, M>(&self.pool, low))?;
        let tagged = |(key, entry): &(K::Owned, Entry)| TaggedEntry {
            entry: *entry,
            fingerprint: fingerprint::of(K::hash(K::borrow(key))),
        };
        let entries: Vec<_> = entries.iter().map(tagged).collect();
        let image = layout::image(low, next.offset(), stamp, &entries);
        self.pool.medium().fill(self.leaf(right)?.words, &image);
        Ok((right, low))
    }

    /// Returns the pairs of a leaf and its buffer; buffered writes take precedence. A writer may
    /// run at the same time.
    pub(super) fn contents(
        &self,
        node: &BufferNode<'_>,
        leaf: &LeafView<'_>,
    ) -> Result<KeyedEntries<K>, Corrupt> {
        let mut pairs = leaf.sorted::<K, M>(&self.pool)?;
        let meta = node.meta::<M>();
        for slot in 0..meta.count() {
            let EntryChange { entry, is_removed } = node.change::<M>(meta, slot);
            let key = K::read_entry(&self.pool, entry)?;
            match (pairs.binary_search_by(|(other, _)| other.cmp(&key)), is_removed) {
                (Ok(at), false) => pairs[at].1 = entry,
                (Err(at), false) => pairs.insert(at, (key, entry)),
                (Ok(at), true) => {
                    pairs.remove(at);
                }
                (Err(_), true) => {}
            }
        }
        Ok(pairs)
    }

    /// Unlinks a leaf of which the buffered removes leave no key, and frees it, wherever in the
    /// inner nodes it is. The buffer of its left neighbour settles; its own need not. Durable on
    /// return. The first leaf stays, and a leaf whose neighbour another thread holds. `key` is one
    /// that the leaf covers.
    ///
    /// ```text
    /// settle the left buffer             C state, then
    /// W stamp                            same line; above all log entries of both leaves, so none
    ///                                    counts in the left leaf, which then covers both ranges
    /// C state: right neighbour   8 B     same line, last
    /// F first line |           -> durable
    ///                                    budget: as `settle`; with an empty buffer 1 line, 1 fence
    /// ```
    pub(super) fn unlink_empty(
        &self,
        latched: LatchedLeaf<'_, M>,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let (node, leaf, meta) = (latched.node, latched.leaf, latched.node.meta::<M>());
        let word = leaf.low(medium);
        if word == 0 {
            return Ok(());
        }
        let low = K::read(pool, word)?;
        let route = self.inner.seek::<K>(pool, K::borrow(&low), Direction::Below)?;
        let left = self.node(route.leaf.offset() as usize);
        let Some(_left_held) = left.latch::<M>().try_lock() else { return Ok(()) };
        if !self.inner.is_current(&route) {
            return Ok(());
        }
        let target = self.leaf(left.leaf::<M>())?;
        if target.next(medium) != leaf.at {
            let (at, what) = (target.at.offset(), "link of the left neighbour of a leaf");
            let (expected, found) = (leaf.at.offset(), target.next(medium).offset());
            return Err(Corrupt { at, what, expected, found }.into());
        }
        let low_block = K::block(pool, word)?;
        let removed: Vec<_> = (0..meta.count()).map(|slot| node.change::<M>(meta, slot)).collect();
        let last = self.last_stamp(&left, &target, left.meta::<M>());
        let is_forgotten = M::INJECTS_DEFECTS && medium.injects(Defect::UnlinkedStamp);
        let other = if is_forgotten { 0 } else { self.last_stamp(&node, &leaf, meta) };
        let options = SettleOptions {
            stamp: Some(layout::after(last.max(other))),
            unlink: Some(leaf.next(medium).offset()),
            ..SettleOptions::default()
        };
        self.settle_with(&left, &target, None, options, guard)?;
        let index = loop {
            let route = self.inner.seek::<K>(pool, key, Direction::Key)?;
            if self.inner.is_current(&route) {
                break route.leaf;
            }
        };
        self.inner.unlink::<K>(pool, key, index)?;
        node.keep::<M>(core::iter::empty());
        self.log.count_settled(meta.count());
        self.retire_removed(&removed, guard)?;
        pool.retire(leaf.at, layout::BYTES, guard);
        if let Some((block, bytes)) = low_block {
            // A damaged record is skipped and stays reserved until the next recovery.
            let _ = pool.try_retire(block, bytes, guard);
        }
        drop(latched);
        self.buffers.put_back(index.offset() as usize);
        Ok(())
    }
}
