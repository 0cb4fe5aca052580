//! Copies of leaves for scans: each is validated against the leaf's version.

use super::FastFairTree;
use super::descend::DescentState;
use crate::key::Key;
use crate::leaf::sorted_shift::ShiftNode;
use crate::linked_leaves::{CopiedLeaf, LinkedLeaves, SearchTarget};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// The result of an attempt to copy a leaf.
enum CopyResult {
    Copied,
    Right(PmPtr),
}

impl<M: Medium, K: Key, const NODE: usize> LinkedLeaves<M, K> for FastFairTree<M, K, NODE> {
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
            while let Some(result) =
                self.validated(&leaf, || self.copy_or_move_right(&leaf, target, copy))?
            {
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

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    fn copy_or_move_right(
        &self,
        leaf: &ShiftNode<'_, M, NODE>,
        target: SearchTarget<'_, K>,
        copy: &mut CopiedLeaf,
    ) -> Result<CopyResult, Corrupt> {
        if let Some(right) = self.move_right(leaf, target)? {
            return Ok(CopyResult::Right(right));
        }
        copy.entries.clear();
        copy.entries.extend((0..leaf.count()).map(|index| leaf.entry(index)));
        copy.low = leaf.low();
        let next = leaf.sibling();
        copy.next = if next.is_null() {
            None
        } else {
            Some((next, ShiftNode::<M, NODE>::view(&self.pool, next)?.low()))
        };
        Ok(CopyResult::Copied)
    }
}
