//! Removes, and deletes of empty leaves under a micro-log.

use crate::hybrid::replace::LeftNeighbour;
use crate::hybrid::{Hybrid, HybridSpec, Latched, LeafRef, Restarts};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Entry, Key};
use crate::leaf::Leaf;
use crate::node_latch::HeldLatch;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// The latches for the delete of a leaf, and its only entry.
struct Doomed<'a, M: Medium> {
    /// The left neighbour, unless the leaf is the first one.
    left: Option<LeftNeighbour<'a, M>>,
    latch_guard: HeldLatch<'a, M>,
    /// The right neighbour of the first leaf.
    right: Option<Latched<'a, M>>,
    entry: Entry,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Removes `key` and returns its entry, as [`remove_entry`](Self::remove_entry) does. Deletes
    /// the leaf if this is its last entry, unless it is the only leaf.
    pub(in crate::hybrid) fn remove_logged(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<Option<Entry>, TreeError> {
        let mut restarts = Restarts::default();
        loop {
            let (leaf, latch_guard) = self.latch_leaf(key)?;
            let Some((slot, _)) = S::Leaf::find::<K, M>(&self.pool, leaf.words, key)? else {
                return Ok(None);
            };
            let is_last = S::Leaf::count(self.pool.medium(), leaf.words) == 1;
            let is_only = self.low(&leaf) == 0 && self.next(&leaf).is_null();
            let removed = if is_last && !is_only {
                drop(latch_guard);
                self.delete_leaf(key, &leaf, guard)?
            } else {
                let entry = S::Leaf::remove(&self.pool, leaf.words, slot);
                drop(latch_guard);
                Some(entry)
            };
            if let Some(entry) = removed {
                let _ = key::retire_entry::<K, M>(&self.pool, entry, guard);
                return Ok(Some(entry));
            }
            restarts.count_unlinked(leaf.at)?;
        }
    }

    /// Deletes `leaf` with its only entry, that of `key`, and returns the entry. Returns `None` and
    /// changes nothing if a concurrent change keeps it from doing so. The caller holds no latch.
    /// Durable on return.
    ///
    /// # Persist order
    ///
    /// ```text
    /// W log: current leaf       8 B          crash before C: the leaf stays if the log does not
    /// F log |                                name its neighbour, else replay deletes it
    /// W log: previous leaf      8 B
    /// F log |
    /// C previous leaf: next     8 B          the right neighbour
    /// F its line |
    /// A reset of the log                     -> durable   budget: 4 lines, 4 fences
    ///
    /// the first leaf
    /// W log: current leaf       8 B          crash before C: replay deletes the leaf
    /// F log |
    /// W right neighbour: low    8 B          the least low key
    /// C root block: first leaf  8 B          the right neighbour
    /// F both lines |                         replay makes either store again
    /// A reset of the log                     -> durable   budget: 4 lines, 3 fences
    /// ```
    #[cold]
    fn delete_leaf(
        &self,
        key: K::Ref<'_>,
        leaf: &LeafRef<'_>,
        guard: &Guard,
    ) -> Result<Option<Entry>, TreeError> {
        let Some(doomed) = self.latch_doomed(key, leaf)? else { return Ok(None) };
        let Doomed { mut left, latch_guard, right, entry } = doomed;
        let separator = right.as_ref().map_or(self.low(leaf), |(right, _)| self.low(right));
        let separator = K::block(&self.pool, separator)?;
        let next = self.next(leaf);
        let medium = self.pool.medium();
        let claim = self.micro_logs.claim::<M>();
        let ([_, log], _) = self.micro_log(claim.number)?;
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        log.set_current(medium, leaf.at);
        match (&left, &right) {
            (Some((left, _)), _) => {
                log.set_other(medium, left.at);
                self.persist_link(left, next);
            }
            (None, Some((right, _))) => self.persist_first(right)?,
            (None, None) => unreachable!("`latch_doomed` latches one of the neighbours"),
        }
        if injects(Defect::NeighbourEarly) {
            left = None;
        }
        let is_freed_early = injects(Defect::BlockEarly);
        if !is_freed_early {
            log.reset(medium);
        }
        let unlinked = self.inner.unlink::<K>(&self.pool, key, leaf.at);
        // If damage made this fail, the inner nodes still lead to the leaf. It becomes obsolete all
        // the same, so that no thread writes to it, but it is not freed.
        latch_guard.obsolete();
        unlinked?;
        if is_freed_early {
            self.pool.release(leaf.at, Self::LEAF_BYTES);
            log.reset(medium);
        } else {
            self.pool.retire(leaf.at, Self::LEAF_BYTES, guard);
        }
        drop(claim);
        if let Some((block, bytes)) = separator {
            // Fails only if the record's length is damaged. The block then stays in use until
            // recovery.
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        drop((left, right));
        Ok(Some(entry))
    }

    /// Latches `leaf`, whose only entry is that of `key`, and the neighbour that takes over its
    /// range. Returns `None` if it is not so any more. Latches from left to right.
    fn latch_doomed<'a>(
        &'a self,
        key: K::Ref<'_>,
        leaf: &LeafRef<'a>,
    ) -> Result<Option<Doomed<'a, M>>, Corrupt> {
        let low = self.low(leaf);
        let left = if low == 0 { None } else { Some(self.latch_left(low)?) };
        if left.as_ref().is_some_and(|(left, _)| left.at == leaf.at) {
            return Ok(None); // it has become the first leaf
        }
        let Some(latch_guard) = self.latch(leaf).lock() else { return Ok(None) };
        let linked = match &left {
            Some((left, _)) => self.next(left),
            None => PmPtr::new(self.load(&self.root_words()?[0])),
        };
        let is_unchanged = linked == leaf.at && self.low(leaf) == low;
        if !is_unchanged || S::Leaf::find::<K, M>(&self.pool, leaf.words, key)?.is_none() {
            return Ok(None);
        }
        let mut entries = Vec::with_capacity(S::Leaf::CAPACITY);
        S::Leaf::collect(self.pool.medium(), leaf.words, &mut entries);
        let [tagged] = entries[..] else { return Ok(None) };
        let next = self.next(leaf);
        // The leaf to the right cannot be unlinked meanwhile: that takes the latch of this one.
        let right = match &left {
            Some(_) => None,
            None if next.is_null() => return Ok(None),
            None => {
                let right = self.leaf(next)?;
                let Some(right_guard) = self.latch(&right).lock() else { return Ok(None) };
                Some((right, right_guard))
            }
        };
        Ok(Some(Doomed { left, latch_guard, right, entry: tagged.entry }))
    }
}
