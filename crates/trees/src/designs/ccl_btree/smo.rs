//! Splits and merges of leaves.

use super::CclBTreeIndex;
use super::buffer::BufferNode;
use super::layout::{self, CAPACITY, LeafView};
use super::settle::{SettleOptions, settle};
use super::write::{BufferedChange, LatchedLeaf};
use crate::index::TreeError;
use crate::key::{self, Key};
use crate::leaf_table::{EntryChange, KeyedEntries};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::cmp::Ordering;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
    /// The most keys of a merged leaf, so that the next insert does not split it again.
    const MERGED_MAX: usize = CAPACITY * 3 / 4;

    /// Inserts a new key into a leaf that has no space for it. The buffer settles first, so every
    /// logged write is in the leaf before it splits. Durable on return.
    ///
    /// ```text
    /// settle the buffer                       only if it is not empty
    /// N right leaf, low key |   4 lines      crash before C: unreachable, free
    /// C state: lower half, right leaf  8 B
    /// F first line |            -> durable   budget: 5 lines, 2 fences
    /// ```
    ///
    /// The right leaf contains the new key from the start if it belongs there; else the key settles
    /// into the left leaf after C. A key beyond the last one of the rightmost leaf gets a leaf of
    /// its own, so ascending inserts leave full leaves behind.
    #[cold]
    pub(super) fn split(
        &self,
        latched: &LatchedLeaf<'_, M>,
        key: K::Ref<'_>,
        incoming: &BufferedChange,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let leaf = &latched.leaf;
        if latched.node.meta::<M>().count() > 0 {
            let medium = self.pool.medium();
            if M::INJECTS_DEFECTS && medium.injects(Defect::StampAtSplit) {
                let stamp = layout::after(latched.node.stamp::<M>());
                medium.store(&leaf.words[layout::STAMP], stamp);
                let _ = medium.persist(leaf.line(0));
            }
            self.settle_buffer(&latched.node, leaf, None, guard)?;
        }
        let options = SettleOptions { is_stored: incoming.is_stored, ..SettleOptions::default() };
        if (leaf.valid(self.pool.medium()).count_ones() as usize) < CAPACITY {
            // Removes in the buffer have made space, so no split is needed.
            return Ok(settle::<K, M>(&self.pool, leaf, &[incoming.change], options)?);
        }
        let split = self.split_full(leaf, key, incoming);
        let is_left = split
            .inspect_err(|_| key::free_entry_key::<K, M>(&self.pool, incoming.change.entry))?;
        if is_left {
            settle::<K, M>(&self.pool, leaf, &[incoming.change], SettleOptions::default())?;
        }
        Ok(())
    }

    /// Splits a full leaf whose buffer is empty. Returns `true` if the new key still has to be
    /// inserted into the left leaf.
    fn split_full(
        &self,
        leaf: &LeafView<'_>,
        key: K::Ref<'_>,
        incoming: &BufferedChange,
    ) -> Result<bool, TreeError> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let mut entries = leaf.sorted::<K, M>(pool)?;
        let last = entries.last().map(|(last, _)| K::compare(K::borrow(last), key));
        let appends = leaf.next(medium).is_null() && last.is_some_and(Ordering::is_lt);
        let middle = if appends { entries.len() } else { entries.len() / 2 };
        let above =
            entries.get(middle).map_or_else(|| K::to_owned(key), |(above, _)| above.clone());
        let separator = K::between(pool, entries[middle - 1].1, K::borrow(&above))?;
        let separator = K::borrow(&separator);
        let mut upper = entries.split_off(middle);
        let is_left = K::compare(key, separator).is_lt();
        if !is_left {
            upper.push((K::to_owned(key), incoming.change.entry));
        }
        let (right, low) = self.right_leaf(separator, leaf.next(medium), &upper)?;
        let mut remaining = leaf.valid(medium);
        for (key, _) in upper.iter().filter(|_| !appends) {
            if let Some((slot, _)) = leaf.find::<K, M>(pool, K::borrow(key))? {
                remaining &= !(1 << slot);
            }
        }
        let state = layout::state(remaining, right.offset());
        medium.commit(&leaf.words[layout::STATE], state, medium.fence());
        let _ = medium.persist(leaf.line(0));
        let index = self.buffers.take::<M>(right);
        self.inner.post::<K>(pool, separator, low, PmPtr::new(index as u64))?;
        Ok(is_left)
    }

    /// Writes a leaf for `entries` and returns its offset and its low key word. Durable after the
    /// next fence. After an error nothing stays reserved.
    fn right_leaf(
        &self,
        separator: K::Ref<'_>,
        next: PmPtr,
        entries: &KeyedEntries<K>,
    ) -> Result<(PmPtr, u64), TreeError> {
        let low = K::store_separator(&self.pool, separator)?;
        let right = self.pool.reserve(layout::BYTES);
        let right = right.inspect_err(|_| key::free_separator::<K, M>(&self.pool, low))?;
        // The block may have held another leaf, and the logs may still contain entries of that
        // leaf.
        let stamp = self.stamp_floor.load(Acquire);
        let image = layout::image::<K>(low, next.offset(), stamp, entries);
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

    /// Merges the right leaf and its buffer into the left leaf, together with the left buffer, and
    /// unlinks the right leaf. Returns `false` if not all fits or a thread holds a latch. Durable
    /// on return. `left` and `right` are indices of buffer nodes.
    ///
    /// ```text
    /// W entries, F their lines |              crash before C: they are in the right leaf or a log
    /// C state: entries, right's right         8 B
    /// W stamp                   same line, after C
    /// F first line |            -> durable    budget: lines of the entries + 1, 2 fences
    /// ```
    pub(super) fn merge(&self, left: PmPtr, right: PmPtr, guard: &Guard) -> Result<bool, Corrupt> {
        let right_index = right.offset() as usize;
        let (left, right) = (self.node(left.offset() as usize), self.node(right_index));
        let Some(_left_held) = left.latch::<M>().try_lock() else { return Ok(false) };
        let Some(right_held) = right.latch::<M>().try_lock() else { return Ok(false) };
        let medium = self.pool.medium();
        let (target, source) = (self.leaf(left.leaf::<M>())?, self.leaf(right.leaf::<M>())?);
        let (meta, source_meta) = (left.meta::<M>(), right.meta::<M>());
        let moved = self.contents(&right, &source)?;
        let valid = target.valid(medium);
        let room = CAPACITY - valid.count_ones() as usize;
        let total = meta.live(valid) + moved.len();
        if total > Self::MERGED_MAX
            || meta.reserved() + moved.len() > room
            || target.next(medium) != source.at
        {
            return Ok(false);
        }
        let low = K::block(&self.pool, source.low(medium))?;
        let held = (0..meta.count()).map(|slot| left.change::<M>(meta, slot));
        let moved = moved.iter().map(|&(_, entry)| EntryChange { entry, is_removed: false });
        let changes: Vec<_> = held.chain(moved).collect();
        let next = Some(source.next(medium).offset());
        let stamp = (meta.count() > 0).then(|| layout::after(left.stamp::<M>()));
        settle::<K, M>(
            &self.pool,
            &target,
            &changes,
            SettleOptions { next, stamp, is_stored: false },
        )?;

        // Log entries still name the right leaf, and its block may become another leaf.
        let last = self.last_stamp(&right, &source, source_meta);
        self.stamp_floor.fetch_max(last, AcqRel);
        let dropped = (0..source_meta.count()).map(|slot| right.change::<M>(source_meta, slot));
        let dropped: Vec<_> = dropped.collect();
        self.clear_buffer(&left, meta);
        self.clear_buffer(&right, source_meta);
        self.pool.retire(source.at, layout::BYTES, guard);
        if let Some((block, bytes)) = low {
            // A damaged record is skipped and stays reserved until the next recovery.
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        drop(right_held);
        self.buffers.put_back(right_index);
        self.retire_removed(&changes, guard)?;
        self.retire_removed(&dropped, guard)?;
        Ok(true)
    }
}
