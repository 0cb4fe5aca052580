//! Copies of leaves for scans, taken without a latch, as lookups read. Each entry of a copy is as
//! it was at some time while the copy was taken.

use super::descend::DescentState;
use super::{FastFairSpec, FastFairTree};
use crate::key::Key;
use crate::leaf::sorted_shift::ShiftNode;
use crate::linked_leaves::{CopiedLeaf, LinkedLeaves, SearchTarget};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// The result of an attempt to copy a leaf.
enum CopyResult {
    Copied,
    Right(PmPtr),
}

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> LinkedLeaves<M, K>
    for FastFairTree<M, K, S, NODE>
{
    fn pool_ref(&self) -> &Pool<M> {
        &self.pool
    }

    fn copy_leaf(
        &self,
        near: Option<PmPtr>,
        target: SearchTarget<'_, K>,
        copy: &mut CopiedLeaf,
    ) -> Result<(), Corrupt> {
        let mut state = DescentState::default();
        let pool_bytes = self.pool.medium().len();
        let mut near = near.map(|at| self.node(at, 0)).transpose()?;
        loop {
            let start = match near.take() {
                Some(leaf) => Some(leaf),
                None => self.descend(target, 0, &mut state)?,
            };
            let Some(mut leaf) = start else { continue };
            while let Some(result) = self.copy_or_move_right(&leaf, target, copy)? {
                match result {
                    CopyResult::Copied => return Ok(()),
                    CopyResult::Right(at) => {
                        state.step(&leaf, pool_bytes)?;
                        leaf = self.node(at, 0)?;
                    }
                }
            }
            state.restart(&leaf)?;
        }
    }
}

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Copies `leaf`, or returns the sibling if the target is there; `None` if it is obsolete.
    ///
    /// ```text
    /// F the node |               only if a writer is in the leaf
    ///                            -> durable   budget: NODE / 64 lines, 1 fence
    /// ```
    fn copy_or_move_right(
        &self,
        leaf: &ShiftNode<'_, M, S::Form, NODE>,
        target: SearchTarget<'_, K>,
        copy: &mut CopiedLeaf,
    ) -> Result<Option<CopyResult>, Corrupt> {
        let counter = self.shifts(leaf);
        loop {
            let shifts = counter.read();
            leaf.copy_unlatched::<K>(&self.pool, shifts.are_leftward(), &mut copy.entries)?;
            copy.low = leaf.low();
            let next = leaf.sibling();
            copy.next = if next.is_null() {
                None
            } else {
                Some((next, ShiftNode::<M, S::Form, NODE>::view(&self.pool, next)?.low()))
            };
            if !counter.validate(shifts) {
                continue;
            }
            // After the copy: a split may have moved the target to the sibling meanwhile.
            if let Some(right) = self.move_right(leaf, target)? {
                self.settle_link(leaf);
                return Ok(Some(CopyResult::Right(right)));
            }
            self.drop_hidden(copy)?;
            let Some(is_held) = self.latch(leaf).is_held() else { return Ok(None) };
            if is_held {
                let _ = self.pool.medium().persist(leaf.words());
            }
            return Ok(Some(CopyResult::Copied));
        }
    }

    /// Drops the entries that a split has not cut off yet, or a merge not yet added: those from the
    /// next leaf's low key on.
    fn drop_hidden(&self, copy: &mut CopiedLeaf) -> Result<(), Corrupt> {
        let Some((_, low)) = copy.next else { return Ok(()) };
        let low = K::read(&self.pool, low)?;
        while let Some(last) = copy.entries.last()
            && K::order(&self.pool, last.key, K::borrow(&low))?.is_ge()
        {
            copy.entries.pop();
        }
        Ok(())
    }
}
