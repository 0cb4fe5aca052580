//! Lookups: of one key, or of a batch whose cache misses overlap. None takes a latch or waits.
//!
//! 1. A leaf answers by [`ShiftNode::find_unlatched`], if its shift counter stays the same.
//! 2. A leaf answers that a key is absent only after its sibling, loaded after the scan, was found
//!    to begin above the key: a split may have moved the key there during the scan.
//! 3. The latch is looked at after the answer. If it is free, the thread that stored what the
//!    answer rests on has released it, after the last fence of the change. If it is held, the
//!    reader makes durable what its answer rests on. So no crash undoes an answer.
//! 4. An obsolete leaf gives no answer: the lookup restarts.

use super::descend::{DescentState, Route};
use super::{FastFairSpec, FastFairTree, check_level};
use crate::key::Key;
use crate::leaf::sorted_shift::{ShiftNode, Unlatched};
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// The number of keys in one batch: about as many cache misses as a core keeps in flight.
const BATCH: usize = 16;

/// The answer of one leaf: the value, or the sibling to search instead.
enum LeafAnswer {
    Value(Option<u64>),
    Right(PmPtr),
}

/// The progress of one key in a batch.
enum Lookup<'t, M, F, const NODE: usize> {
    /// A node, prefetched but not yet checked, that should be on this level.
    At(ShiftNode<'t, M, F, NODE>, u32),
    Done(Option<u64>),
}

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Returns the answer of `leaf`; `None` if it is obsolete.
    ///
    /// ```text
    /// F header |                 only if the answer is the sibling and a writer is in the leaf
    /// persist_found              only if it is not and a writer is   -> durable
    /// ```
    #[inline(always)]
    fn answer(
        &self,
        leaf: &ShiftNode<'_, M, S::Form, NODE>,
        key: K::Ref<'_>,
    ) -> Result<Option<LeafAnswer>, Corrupt> {
        let counter = self.shifts(leaf);
        loop {
            let shifts = counter.read();
            let found = leaf.find_unlatched::<K>(&self.pool, key, shifts.are_leftward())?;
            if let Unlatched::Absent { .. } = found
                && !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::HopMissed))
                && let Some(right) = self.move_right(leaf, SearchTarget::At(key))?
            {
                self.settle_link(leaf);
                return Ok(Some(LeafAnswer::Right(right)));
            }
            if !counter.validate(shifts) {
                continue;
            }
            let Some(is_held) = self.latch(leaf).is_held() else { return Ok(None) };
            if is_held && !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ReadUnflushed))
            {
                let _ = leaf.persist_found(found);
            }
            return Ok(Some(LeafAnswer::Value(match found {
                Unlatched::Found(_, value) => Some(value),
                Unlatched::Absent { .. } => None,
            })));
        }
    }

    /// Makes the sibling link of `leaf`, which the caller follows, durable if a writer is there.
    #[inline(always)]
    pub(super) fn settle_link(&self, leaf: &ShiftNode<'_, M, S::Form, NODE>) {
        let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LinkUnflushed);
        if self.latch(leaf).is_held() == Some(true) && !is_blind {
            let _ = leaf.persist_link();
        }
    }

    /// Returns the value of `key`.
    pub(super) fn lookup(&self, key: K::Ref<'_>, _pinned: &Guard) -> Result<Option<u64>, Corrupt> {
        let mut state = DescentState::default();
        let pool_bytes = self.pool.medium().len();
        loop {
            let Some(mut leaf) = self.descend(SearchTarget::At(key), 0, &mut state)? else {
                return Ok(None); // Cannot happen: level 0 always exists.
            };
            while let Some(answer) = self.answer(&leaf, key)? {
                match answer {
                    LeafAnswer::Value(value) => return Ok(value),
                    LeafAnswer::Right(at) => {
                        state.step(&leaf, pool_bytes)?;
                        leaf = self.node(at, 0)?;
                    }
                }
            }
            state.restart(&leaf)?;
        }
    }

    /// Looks up `keys` in batches. The keys of a batch take steps in turn. Each step prefetches the
    /// next node without reading it, so the cache misses of a batch overlap.
    pub(super) fn lookup_many(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
        pinned: &Guard,
    ) -> Result<(), Corrupt> {
        assert_eq!(keys.len(), values.len(), "multi_get needs one value slot for each key");
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
            let root = self.root_node()?;
            let mut batch: [Lookup<'_, M, S::Form, NODE>; BATCH] =
                core::array::from_fn(|_| Lookup::At(root, root.level()));
            let mut state = DescentState::default();
            let pool_bytes = self.pool.medium().len().saturating_mul(BATCH as u64);
            let mut waiting = keys.len();
            while waiting > 0 {
                for (lookup, &key) in batch.iter_mut().zip(keys) {
                    let Lookup::At(node, level) = lookup else { continue };
                    state.step(node, pool_bytes)?;
                    *lookup = self.advance(node, *level, key, pinned)?;
                    waiting -= usize::from(matches!(lookup, Lookup::Done(_)));
                }
            }
            for (value, lookup) in values.iter_mut().zip(batch) {
                *value = if let Lookup::Done(value) = lookup { value } else { None };
            }
        }
        Ok(())
    }

    /// Takes one step for `key` from `node`, which should be on `level`. If the node is obsolete or
    /// right of the key, the key is looked up by itself.
    #[inline(always)]
    fn advance<'t>(
        &'t self,
        node: &ShiftNode<'t, M, S::Form, NODE>,
        level: u32,
        key: K::Ref<'_>,
        pinned: &Guard,
    ) -> Result<Lookup<'t, M, S::Form, NODE>, Corrupt> {
        check_level(node, level)?;
        let next = if !self.leads_on(node, SearchTarget::At(key))? {
            None
        } else if level == 0 {
            match self.answer(node, key)? {
                Some(LeafAnswer::Value(value)) => return Ok(Lookup::Done(value)),
                Some(LeafAnswer::Right(at)) => Some((at, 0)),
                None => None,
            }
        } else {
            match self.route(node, SearchTarget::At(key))? {
                Route::Down(at) => Some((at, level - 1)),
                Route::Right(at) => Some((at, level)),
            }
        };
        match next {
            Some((at, level)) => Ok(Lookup::At(self.prefetch_node(at)?, level)),
            None => Ok(Lookup::Done(self.lookup(key, pinned)?)),
        }
    }
}
