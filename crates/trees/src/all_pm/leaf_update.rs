//! The ways in which a leaf changes: insert, remove, update and split.

use super::descend::{DescentTarget, Interrupted, NodeGuard, NodeRef, Path, Siblings};
use super::{AllPm, AllPmSpec, Words};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Atomic, Layout, SlotPos, View, Wordwise};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, Pool};

/// A node with at most 1/`SPARSE` of its capacity in use looks for a sibling to merge with.
pub(super) const SPARSE: usize = 4;

/// The way in which the leaves of a design change. In each method the leaf is the node of `path`,
/// and `held` is its latch.
pub trait LeafUpdate<S: AllPmSpec>: Send + Sync + 'static {
    /// Descends to the leaf of `key`. If inserts and removes also write the link of the left
    /// neighbour, also returns the lowest node on the way that has a left sibling.
    ///
    /// # Errors
    /// Another thread interfered, or the tree is damaged.
    #[inline(always)]
    fn leaf<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        key: K::Ref<'_>,
    ) -> Result<(Path<'a, M>, Option<Path<'a, M>>), Interrupted> {
        Ok((tree.leaf(DescentTarget::At(key))?, None))
    }

    /// Adds an entry to a leaf that has space. Durable on return; after an error nothing has
    /// changed.
    ///
    /// # Errors
    /// Another thread interfered, or the pool is full.
    fn insert<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        rank: usize,
        entry: Entry,
        guard: &Guard,
    ) -> Result<(), Interrupted>;

    /// Removes the entry at `at` and returns the number of remaining entries. Durable on return;
    /// after an error nothing has changed.
    ///
    /// # Errors
    /// Another thread interfered.
    fn remove<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        at: SlotPos,
        guard: &Guard,
    ) -> Result<usize, Interrupted>;

    /// Inserts a pair into a full leaf, and splits the leaf and every full node above, if
    /// [`AllPmSpec::INSERTS_WITH_SPLITS`]. Returns `false` if the caller must try its insert again.
    ///
    /// # Errors
    /// The pool is full, or the tree is damaged.
    fn insert_and_split<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        key: K::Ref<'_>,
        value: u64,
    ) -> Result<bool, TreeError> {
        tree.structure().insert_and_split(key, value)
    }

    /// Splits the node of `path`, which is full and whose parent has space. `key` leads to that
    /// node.
    ///
    /// # Errors
    /// Another thread interfered, or the pool is full.
    fn split<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        path: &Path<'a, M>,
        _key: K::Ref<'_>,
        _guard: &Guard,
    ) -> Result<(), Interrupted> {
        tree.structure().split(path)
    }

    /// `true` if two leaves merge if both are below half. Else a leaf merges that is at most a
    /// quarter full, if the merged one has space.
    const MERGES_HALVES: bool = false;
    /// The index of the word in a leaf that holds the separator of its low key, if there is one.
    const LOW: Option<usize> = None;

    /// Moves the entries of the right one of two siblings to the left one, or those of both to a
    /// new one. `path` leads to one of the two.
    ///
    /// # Errors
    /// Another thread interfered, or the pool is full.
    fn merge<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        path: &Path<'a, M>,
        pair: &Siblings<'a, M>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        tree.structure().merge(path, pair, guard)
    }

    /// Makes inner nodes agree with the leaves after a crash, if no log has done so.
    ///
    /// # Errors
    /// The tree is damaged.
    fn mend<M: Medium, K: Key>(_tree: &AllPm<M, K, S>) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Returns `true` if a leaf with `count` entries may have to merge.
    fn is_sparse(count: usize) -> bool {
        if Self::MERGES_HALVES {
            2 * count < S::Leaf::CAPACITY
        } else {
            count * SPARSE <= S::Leaf::CAPACITY
        }
    }

    /// Returns `true` if a failed insert should try again, after helping to free space. The caller
    /// holds no latch and is not pinned. `refusals` counts the failures for one key.
    fn may_retry<M: Medium>(_: &Pool<M>, _refused: &TreeError, _refusals: usize) -> bool {
        false
    }

    /// Changes the value of the entry at `at`. Durable on return.
    #[inline(always)]
    fn update<M: Medium>(path: &Path<'_, M>, at: SlotPos, value: u64) {
        let _ = S::Leaf::update(path.node.view, at, value);
    }
}

/// Failure-atomic changes: one store to the leaf's commit word makes each visible.
#[derive(Debug)]
pub struct FailureAtomic;

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Repairs a leaf that a crash left in need of it, as [`Layout::repair`]. The caller holds its
    /// latch.
    #[inline(always)]
    fn repair_if_needed(&self, leaf: View<'_, M>) -> Result<(), Corrupt> {
        if S::Leaf::REPAIRS_ON_USE && S::Leaf::needs_repair(leaf) {
            return self.structure().repair_leaf(leaf);
        }
        Ok(())
    }
}

impl<S: AllPmSpec<Leaf: Atomic>> LeafUpdate<S> for FailureAtomic {
    /// As [`Atomic::insert`], after a repair if a crash has left the leaf in need of one. If the
    /// layout makes the entry visible before its first fence, a fence first makes the key's record
    /// durable.
    #[inline(always)]
    fn insert<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<NodeRef<'_, M>>,
        _held: NodeGuard<'_, M>,
        rank: usize,
        entry: Entry,
        _: &Guard,
    ) -> Result<(), Interrupted> {
        if S::Leaf::PUBLISHES_UNFENCED && !K::EXACT {
            let _ = tree.medium().fence();
        }
        tree.repair_if_needed(path.node.view)?;
        let _ = S::Leaf::insert(path.node.view, rank, entry);
        Ok(())
    }

    /// As [`Atomic::remove`]: one store to the commit word, after a repair if the leaf needs one.
    #[inline(always)]
    fn remove<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<NodeRef<'_, M>>,
        _held: NodeGuard<'_, M>,
        at: SlotPos,
        _: &Guard,
    ) -> Result<usize, Interrupted> {
        tree.repair_if_needed(path.node.view)?;
        let _ = S::Leaf::remove(path.node.view, at);
        Ok(S::Leaf::count(path.node.view))
    }
}

/// Changes in place, word by word, which the protocol logs.
#[derive(Debug)]
pub struct LoggedInPlace;

impl<S: AllPmSpec<Leaf: Wordwise, Protocol: Words>> LeafUpdate<S> for LoggedInPlace {
    /// As [`Words::begin`] and [`Words::end`], with the words of [`Wordwise::insert`] between them.
    /// An unsorted leaf logs the entry as fresh words.
    #[inline(always)]
    fn insert<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<NodeRef<'_, M>>,
        _held: NodeGuard<'_, M>,
        rank: usize,
        entry: Entry,
        _: &Guard,
    ) -> Result<(), Interrupted> {
        let mut change = tree.protocol.begin(&tree.pool);
        let last = S::Leaf::insert(path.node.view, rank, entry, &mut change);
        S::Protocol::end(change, last);
        Ok(())
    }

    /// As [`Words::begin`] and [`Words::end`], with the words of [`Wordwise::remove`] between them.
    #[inline(always)]
    fn remove<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<NodeRef<'_, M>>,
        _held: NodeGuard<'_, M>,
        at: SlotPos,
        _: &Guard,
    ) -> Result<usize, Interrupted> {
        let mut change = tree.protocol.begin(&tree.pool);
        let last = S::Leaf::remove(path.node.view, at, &mut change);
        S::Protocol::end(change, last);
        Ok(S::Leaf::count(path.node.view))
    }

    #[inline(always)]
    fn update<M: Medium>(path: &Path<'_, M>, at: SlotPos, value: u64) {
        S::Protocol::set_value::<M, S::Leaf>(path.node.view, at, value);
    }
}
