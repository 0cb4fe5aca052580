//! Descents with coupled latches: a thread takes the latch of a child, then releases that of the
//! parent.
//!
//! 1. A node is unlinked, and its range changes, only under the latch of its parent, held for
//!    writing. So a node that a thread waits for while it has the parent's latch stays linked, and
//!    covers the keys that led there.
//! 2. A thread waits only for latches below one that it has, and for a sibling of a node whose
//!    parent it has for writing. So no deadlock is possible.
//! 3. Each step goes down one level, so damage cannot make a descent endless.

use super::BTreeNativeIndex;
use super::node::SortedNode;
use crate::key::Key;
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::sync::{OnMedium, Shared, Unshared};
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The guard of a latch held for writing.
pub(super) type WriteGuard<'t, M> = Unshared<OnMedium<'t, M>>;

/// The guard of a latch, held for reading or for writing.
#[expect(dead_code, reason = "a guard is kept for its drop")]
enum EitherGuard<'t, M: Medium> {
    Shared(Shared<OnMedium<'t, M>>),
    Unshared(WriteGuard<'t, M>),
}

/// A leaf with the guard of its latch, and the separators next to it.
pub(super) struct BoundedLeaf<'t, M: Medium, const NODE: usize> {
    pub(super) node: SortedNode<'t, M, NODE>,
    /// The separator word of the least key that belongs here; 0 in the first leaf.
    pub(super) low: u64,
    /// The separator word of the least key that does not; `None` in the last leaf.
    pub(super) high: Option<u64>,
    #[expect(dead_code, reason = "the guard is kept for its drop")]
    held: EitherGuard<'t, M>,
}

/// A node of a path, held for writing.
pub(super) struct PathNode<'t, M: Medium, const NODE: usize> {
    pub(super) node: SortedNode<'t, M, NODE>,
    pub(super) held: WriteGuard<'t, M>,
    /// The rank of the child that the path goes to; 0 in a leaf.
    pub(super) rank: usize,
}

/// The nodes on the way to a leaf that a change of structure may reach, from the highest to the
/// leaf, all held for writing.
pub(super) struct WritePath<'t, M: Medium, const NODE: usize> {
    /// The latch of the root block, if the change may reach the root.
    pub(super) root: Option<WriteGuard<'t, M>>,
    pub(super) nodes: Vec<PathNode<'t, M, NODE>>,
}

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    fn share<'t>(
        &self,
        node: &SortedNode<'t, M, NODE>,
        for_writing: bool,
    ) -> Result<EitherGuard<'t, M>, Corrupt> {
        if for_writing && node.level == 0 {
            return self.hold(node).map(EitherGuard::Unshared);
        }
        let held = node.latch(self.pool.nonce()).share();
        held.map(EitherGuard::Shared).ok_or_else(|| node.damage("latch of a node", 0, 1))
    }

    /// Takes the latch of `node` for writing.
    ///
    /// # Errors
    /// It says that the node is unlinked, which no node of this design does.
    pub(super) fn hold<'t>(
        &self,
        node: &SortedNode<'t, M, NODE>,
    ) -> Result<WriteGuard<'t, M>, Corrupt> {
        let held = node.latch(self.pool.nonce()).lock();
        held.ok_or_else(|| node.damage("latch of a node", 0, 1))
    }

    /// Latches the leaf of the target, for reading or for writing. The latches of inner nodes are
    /// shared.
    #[inline]
    pub(super) fn latch_leaf<'t>(
        &'t self,
        target: SearchTarget<'_, K>,
        for_writing: bool,
    ) -> Result<BoundedLeaf<'t, M, NODE>, Corrupt> {
        let root_held = self.root_latch()?.share().ok_or_else(|| self.root.damaged_latch())?;
        let mut node = self.root_node()?;
        let mut held = self.share(&node, for_writing)?;
        drop(root_held);
        let (mut low, mut high) = (0, None);
        while node.level > 0 {
            let count = node.state()?.count;
            let rank = self.route(&node, count, target)?;
            if rank > 0 {
                low = node.entry(rank - 1).key;
            }
            if rank < count {
                high = Some(node.entry(rank).key);
            }
            let child = self.node(node.child(rank), node.level - 1)?;
            if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::Uncoupled) {
                drop(held);
            }
            // The new guard is there before the old one is dropped.
            held = self.share(&child, for_writing)?;
            node = child;
        }
        Ok(BoundedLeaf { node, low, high, held })
    }

    /// Latches the path to the leaf of `key` for writing, and releases it above each node that
    /// `is_safe` says a change of its child leaves a valid one.
    pub(super) fn latch_path<'t>(
        &'t self,
        key: K::Ref<'_>,
        is_safe: impl Fn(usize) -> bool,
    ) -> Result<WritePath<'t, M, NODE>, Corrupt> {
        let root = self.root_latch()?.lock().ok_or_else(|| self.root.damaged_latch())?;
        let mut path = WritePath { root: Some(root), nodes: Vec::new() };
        let mut node = self.root_node()?;
        loop {
            let held = self.hold(&node)?;
            let count = node.state()?.count;
            if is_safe(count) {
                (path.root, path.nodes) = (None, Vec::new());
            }
            let is_leaf = node.level == 0;
            let rank = if is_leaf { 0 } else { self.route(&node, count, SearchTarget::At(key))? };
            path.nodes.push(PathNode { node, held, rank });
            if is_leaf {
                return Ok(path);
            }
            node = self.node(node.child(rank), node.level - 1)?;
        }
    }
}
