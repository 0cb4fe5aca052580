//! Descents, downwards and to the right, used by every operation.
//!
//! 1. A descent takes no latch of an inner node and checks no version. What it reads there is a
//!    hint. At each node it checks the range: a key below the node's low key restarts the descent,
//!    because the entry that led there was of a shift under way; a key from the next node's low key
//!    on moves it right.
//! 2. Low keys never change, and a thread stays pinned. So a node that a pointer led to is still a
//!    node of that level, perhaps an unlinked one; its latch says so.
//! 3. Steps and restarts are bounded by what a sound tree needs, so damage ends in an error and not
//!    in an endless loop.

use super::WoTreeIndex;
use super::node::Node;
use super::node::Separated;
use crate::key::Key;
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::sync::{Exclusive, OnMedium, Shared, Unshared};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// An inner node and the guard of its latch.
pub(super) type LatchedInner<'t, M, const NODE: usize> =
    (Node<'t, M, NODE>, Exclusive<OnMedium<'t, M>>);

/// A leaf and the guard of its latch, held for writing.
pub(super) type HeldLeaf<'t, M, const NODE: usize> = (Node<'t, M, NODE>, Unshared<OnMedium<'t, M>>);

/// A leaf and the guard of its latch, held for reading.
pub(super) type SharedLeaf<'t, M, const NODE: usize> = (Node<'t, M, NODE>, Shared<OnMedium<'t, M>>);

/// The most restarts of one descent. Each means that another thread changed a node meanwhile, so
/// more of them indicate damage.
const RESTARTS_MAX: u32 = 1 << 12;

/// The steps that a descent has taken.
#[derive(Debug, Default)]
pub(super) struct Progress {
    steps: u64,
    restarts: u32,
}

impl Progress {
    /// Counts a visited node. All levels together have at most as many nodes as fit in the pool.
    #[inline(always)]
    fn step<M: Medium, const NODE: usize>(
        &mut self,
        node: &Node<'_, M, NODE>,
    ) -> Result<(), Corrupt> {
        self.steps += 1;
        let most = node.medium.len() / Node::<M, NODE>::BYTES;
        if self.steps <= most {
            return Ok(());
        }
        Err(node.damage("endless path to a key", most, self.steps))
    }

    /// Counts a restart at `node`.
    #[cold]
    fn restart<M: Medium, const NODE: usize>(
        &mut self,
        node: &Node<'_, M, NODE>,
    ) -> Result<(), Corrupt> {
        self.steps = 0;
        self.restarts += 1;
        if self.restarts <= RESTARTS_MAX {
            return Ok(());
        }
        let (expected, found) = (RESTARTS_MAX.into(), self.restarts.into());
        Err(node.damage(
            "node that is reached but covers other keys or is unlinked",
            expected,
            found,
        ))
    }
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Returns `true` if a node with the low key `low` is at or left of the target.
    #[inline(always)]
    pub(super) fn is_at_or_left_of(
        &self,
        low: u64,
        target: SearchTarget<'_, K>,
    ) -> Result<bool, Corrupt> {
        Ok(match target {
            SearchTarget::At(key) => K::order(&self.pool, low, key)?.is_le(),
            SearchTarget::Below(key) => K::order(&self.pool, low, key)?.is_lt(),
            SearchTarget::Last => true,
        })
    }

    /// Returns the next node if the target is there or further right.
    #[inline(always)]
    pub(super) fn move_right<'t>(
        &'t self,
        node: &Node<'t, M, NODE>,
        target: SearchTarget<'_, K>,
    ) -> Result<Option<Node<'t, M, NODE>>, Corrupt> {
        let next = node.next();
        if next.is_null() {
            return Ok(None);
        }
        let next = self.node(next, node.level)?;
        Ok(self.is_at_or_left_of(next.low(), target)?.then_some(next))
    }

    /// Descends to the node of `level` whose range contains the target. Returns `None` if the tree
    /// has no such level. The node may be unlinked or split when this returns.
    #[inline]
    pub(super) fn descend<'t>(
        &'t self,
        target: SearchTarget<'_, K>,
        level: u32,
        progress: &mut Progress,
    ) -> Result<Option<Node<'t, M, NODE>>, Corrupt> {
        loop {
            let mut node = self.root_node()?;
            if node.level < level {
                return Ok(None);
            }
            loop {
                progress.step(&node)?;
                let is_checked =
                    !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LowUnchecked));
                let low = node.low();
                // The leftmost node is also that of the keys below the least one, which a scan may
                // ask for.
                if is_checked && low != 0 && !self.is_at_or_left_of(low, target)? {
                    break;
                }
                if let Some(next) = self.move_right(&node, target)? {
                    node = next;
                    continue;
                }
                if node.level == level {
                    return Ok(Some(node));
                }
                let Some(child) = self.child_for(&node, target)? else { break };
                node = self.node(PmPtr::new(child), node.level - 1)?;
            }
            progress.restart(&node)?;
        }
    }

    /// Latches the inner node of `level` whose range contains the target. Returns `None` if the
    /// tree has no such level.
    pub(super) fn latch_inner(
        &self,
        target: SearchTarget<'_, K>,
        level: u32,
    ) -> Result<Option<LatchedInner<'_, M, NODE>>, Corrupt> {
        let mut progress = Progress::default();
        loop {
            let Some(mut node) = self.descend(target, level, &mut progress)? else {
                return Ok(None);
            };
            while let Some(held) = node.inner_latch(self.pool.nonce()).lock() {
                let Some(next) = self.move_right(&node, target)? else {
                    return Ok(Some((node, held)));
                };
                drop(held);
                progress.step(&next)?;
                node = next;
            }
            progress.restart(&node)?;
        }
    }

    /// Latches, with `enter`, the leaf whose range contains the target.
    #[inline(always)]
    fn enter_leaf<'t, G>(
        &'t self,
        target: SearchTarget<'_, K>,
        enter: impl Fn(&Node<'t, M, NODE>) -> Option<G>,
    ) -> Result<(Node<'t, M, NODE>, G), Corrupt> {
        let mut progress = Progress::default();
        loop {
            let Some(mut leaf) = self.descend(target, 0, &mut progress)? else {
                continue; // Cannot happen: every tree has leaves.
            };
            self.pool.medium().prefetch(leaf.words);
            while let Some(held) = enter(&leaf) {
                let Some(next) = self.move_right(&leaf, target)? else {
                    return Ok((leaf, held));
                };
                drop(held);
                progress.step(&next)?;
                leaf = next;
            }
            progress.restart(&leaf)?;
        }
    }

    /// Latches the leaf whose range contains the target, for writing.
    pub(super) fn latch_leaf(
        &self,
        target: SearchTarget<'_, K>,
    ) -> Result<HeldLeaf<'_, M, NODE>, Corrupt> {
        self.enter_leaf(target, |leaf| leaf.leaf_latch(self.pool.nonce()).lock())
    }

    /// Latches the leaf whose range contains the target, for reading.
    #[inline]
    pub(super) fn share_leaf(
        &self,
        target: SearchTarget<'_, K>,
    ) -> Result<SharedLeaf<'_, M, NODE>, Corrupt> {
        self.enter_leaf(target, |leaf| leaf.leaf_latch(self.pool.nonce()).share())
    }

    /// Returns the index of the entry of `parent`, which is latched, whose child is `child`.
    pub(super) fn index_of(parent: &Node<'_, M, NODE>, child: PmPtr) -> Option<usize> {
        let is_child = |entry: &Separated| entry.child == child.offset();
        parent.separated().iter().position(is_child)
    }
}
