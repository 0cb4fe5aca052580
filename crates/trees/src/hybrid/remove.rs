//! Remove, and merging leaves.

use super::{Hybrid, HybridSpec, LeafRef, Restructuring};
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes};
use crate::key::{self, Entry, Key, Value};
use crate::leaf::Leaf;
use crate::node_latch::HeldLatch;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PoolError};

/// The result of an attempt to merge two leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergeResult {
    Merged,
    NotMerged,
    /// The entries fit into one leaf, but the left leaf has no space for `added` more: an
    /// append-only leaf keeps the space of removed entries.
    NeedsSpace {
        added: usize,
    },
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// The largest number of entries with which a leaf is merged with a neighbour.
    pub(super) const SPARSE_MAX: usize = match S::RESTRUCTURING {
        Restructuring::InPlace => S::Leaf::CAPACITY / 4,
        Restructuring::Replacement => (S::Leaf::CAPACITY - 1) / 2,
        // A remove unlinks an empty leaf; it never merges two.
        Restructuring::Unlinking | Restructuring::MicroLogged => 0,
    };
    /// The largest number of entries after a merge. It leaves space, so that the next insert does
    /// not split the leaf again.
    pub(super) const MERGED_MAX: usize = S::Leaf::CAPACITY * 3 / 4;

    /// Removes `key` and returns its entry. Damage that is met after the entry is removed, durably,
    /// does not make this fail. It stays where it is, so the next operation that reads it reports
    /// it, and a block that could not be retired stays in use until recovery.
    #[inline]
    pub(super) fn remove_entry(&self, key: K::Ref<'_>) -> Result<Option<Entry>, TreeError> {
        if S::RESTRUCTURING == Restructuring::MicroLogged {
            return self.remove_logged(key, &self.pool.pin());
        }
        self.remove_entry_if(key, |_| true)
    }

    /// Removes `key` if `is_wanted` returns `true` for its value, and returns its entry. The design
    /// has no micro-logs. Damage is as in [`remove_entry`](Self::remove_entry).
    #[inline(always)]
    pub(super) fn remove_entry_if(
        &self,
        key: K::Ref<'_>,
        is_wanted: impl FnOnce(Value) -> bool,
    ) -> Result<Option<Entry>, TreeError> {
        let guard = self.pool.pin();
        let merge = match S::RESTRUCTURING {
            Restructuring::Replacement => Self::merge_by_replacement,
            Restructuring::Unlinking => Self::unlink_empty,
            Restructuring::InPlace | Restructuring::MicroLogged => Self::merge_around,
        };
        let (leaf, latch_guard) = self.latch_leaf(key)?;
        let found = S::Leaf::find::<K, M>(&self.pool, leaf.words, key)?;
        let Some((slot, _)) = found.filter(|&(_, value)| is_wanted(value)) else {
            return Ok(None);
        };
        let entry = S::Leaf::remove(&self.pool, leaf.words, slot);
        let is_sparse = S::Leaf::count(self.pool.medium(), leaf.words) <= Self::SPARSE_MAX;
        drop(latch_guard);
        let _ = key::retire_entry::<K, M>(&self.pool, entry, &guard);
        if is_sparse {
            let _ = merge(self, key, &guard);
        }
        Ok(Some(entry))
    }

    /// Merges the leaf that covers `key` with a neighbour, if the entries fit into one leaf. A left
    /// leaf that lacks space only because of removed entries is replaced first.
    #[cold]
    pub(super) fn merge_around(&self, key: K::Ref<'_>, guard: &Guard) -> Result<(), TreeError> {
        let mut lacks_space = None;
        self.merge_once(key, guard, &mut lacks_space)?;
        let Some((left, added)) = lacks_space else { return Ok(()) };
        let low = K::read(&self.pool, self.low(&self.leaf(left)?))?;
        match self.replace_leaf(K::borrow(&low), Self::room_for(added), guard) {
            // A remove must not need space; the leaves stay sparse.
            Err(TreeError::Pool(PoolError::Full { .. })) => Ok(()),
            result => {
                result?;
                self.merge_once(key, guard, &mut None)
            }
        }
    }

    /// Tries once to merge the leaf that covers `key` with a neighbour. If a left leaf would have
    /// to be replaced first, sets `lacks_space` to that leaf and the number of entries to add.
    fn merge_once(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
        lacks_space: &mut Option<(PmPtr, usize)>,
    ) -> Result<(), TreeError> {
        self.inner.merge_leaves::<K, TreeError>(&self.pool, key, |left, right| {
            let merged = self.merge(left, right, guard)?;
            match merged {
                MergeResult::Merged => *lacks_space = None,
                MergeResult::NeedsSpace { added } => *lacks_space = Some((left, added)),
                MergeResult::NotMerged => {}
            }
            Ok(merged == MergeResult::Merged)
        })
    }

    /// Takes the latch of a leaf if it is free. The first writer after an open mends the leaf.
    fn try_latch<'a>(&'a self, leaf: &LeafRef<'a>) -> Option<HeldLatch<'a, M>> {
        let latch = self.latch(leaf);
        let is_untouched = S::Leaf::IS_MENDED_BY_WRITERS && latch.is_untouched();
        let held = latch.try_lock()?;
        if is_untouched {
            S::Leaf::mend(&self.pool, leaf.words);
        }
        Some(held)
    }

    /// Moves the right leaf's entries into the left one and unlinks the right leaf, if the entries
    /// fit and both latches are free. Durable on return.
    ///
    /// ```text
    /// A left absorbs the right's entries    crash before C: the right's low key hides them in the
    ///                                       left leaf, and recovery drops them there
    /// C next                   8 B          unlinks the right leaf; the left one now covers them
    /// F next |                 -> durable   budget: lines of the entries + 2, 3 fences; 1 line
    ///                                       and 1 fence if the right leaf is empty
    /// ```
    fn merge(&self, left: PmPtr, right: PmPtr, guard: &Guard) -> Result<MergeResult, Corrupt> {
        let (left, right) = (self.leaf(left)?, self.leaf(right)?);
        let Some(_left_guard) = self.try_latch(&left) else { return Ok(MergeResult::NotMerged) };
        let Some(right_guard) = self.try_latch(&right) else { return Ok(MergeResult::NotMerged) };
        let medium = self.pool.medium();
        let added = S::Leaf::count(medium, right.words);
        let total = S::Leaf::count(medium, left.words) + added;
        if total > Self::MERGED_MAX || self.next(&left) != right.at {
            return Ok(MergeResult::NotMerged);
        }
        if added > S::Leaf::free_slots(medium, left.words) {
            return Ok(MergeResult::NeedsSpace { added });
        }
        // Every step that can fail comes before the right leaf is unlinked. A leaf that no
        // operation has read since the open may be damaged, and a change would give it a correct
        // checksum.
        S::Leaf::verify(medium, left.at.offset(), left.words)?;
        S::Leaf::verify(medium, right.at.offset(), right.words)?;
        let low = K::block(&self.pool, self.low(&right))?;
        let mut moved = Vec::with_capacity(S::Leaf::CAPACITY);
        S::Leaf::collect(medium, right.words, &mut moved);
        if moved.is_empty() {
            self.link_past(&left, &right); // publishes no entries
        } else {
            let next = &left.words[S::Leaf::NEXT..=S::Leaf::NEXT];
            let new_link = S::Leaf::encode_next(self.next(&right).offset());
            let absorbed = S::Leaf::absorb::<K, M>(&self.pool, left.words, &moved)?;
            medium.commit(&next[0], new_link, absorbed);
            S::Leaf::flush_link(medium, next);
            let _ = medium.fence();
        }
        right_guard.obsolete();
        self.free_unlinked(right.at, low, guard);
        Ok(MergeResult::Merged)
    }

    /// Unlinks the leaf that covers `key` if it is empty and the latch of its left neighbour, which
    /// takes over its range, is free. The first leaf stays. The caller holds no latch. Durable on
    /// return.
    ///
    /// ```text
    /// C left neighbour: next   8 B          crash before C: the empty leaf stays
    /// F its line |             -> durable   budget: 1 line, 1 fence; 2 with one before the flush
    /// ```
    #[cold]
    fn unlink_empty(&self, key: K::Ref<'_>, guard: &Guard) -> Result<(), TreeError> {
        let (leaf, latch_guard) = self.latch_leaf(key)?;
        let medium = self.pool.medium();
        let low = self.low(&leaf);
        if S::Leaf::count(medium, leaf.words) > 0 || low == 0 {
            return Ok(());
        }
        let below = K::read(&self.pool, low)?;
        let route = self.inner.seek::<K>(&self.pool, K::borrow(&below), Direction::Below)?;
        let left = self.leaf(route.leaf)?;
        let Some(_left_guard) = self.try_latch(&left) else { return Ok(()) };
        if self.next(&left) != leaf.at {
            return Ok(()); // the left neighbour splits, and the new leaf is not yet under a node
        }
        let low = K::block(&self.pool, low)?;
        self.link_past(&left, &leaf);
        let unlinked = self.inner.unlink::<K>(&self.pool, key, leaf.at);
        // If damage made this fail, the inner nodes still lead to the leaf. No thread writes to it
        // any more, and it is not freed.
        latch_guard.obsolete();
        unlinked?;
        self.free_unlinked(leaf.at, low, guard);
        Ok(())
    }

    /// Links `left` to the right neighbour of `right`, which has no entries. Durable on return.
    fn link_past(&self, left: &LeafRef<'_>, right: &LeafRef<'_>) {
        let medium = self.pool.medium();
        let next = &left.words[S::Leaf::NEXT..=S::Leaf::NEXT];
        medium.store(&next[0], S::Leaf::encode_next(self.next(right).offset()));
        S::Leaf::flush_link(medium, next);
        let _ = medium.fence();
    }

    /// Retires a leaf that is unlinked, and the record of its low key.
    fn free_unlinked(&self, leaf: PmPtr, low: Option<(PmPtr, u64)>, guard: &Guard) {
        let medium = self.pool.medium();
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::MergeLeaks)) {
            self.pool.retire(leaf, Self::LEAF_BYTES, guard);
        }
        if let Some((block, bytes)) = low {
            // Fails only if the record's length is damaged. The block then stays in use until
            // recovery.
            let _ = self.pool.try_retire(block, bytes, guard);
        }
    }
}
