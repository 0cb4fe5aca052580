//! How a leaf gets an entry, loses one, and splits.

use super::descend::{Interrupted, NodeGuard, NodeRef, Path};
use super::{AllPm, AllPmSpec, Words};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Atomic, Layout, SlotPos, Wordwise};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Medium, Pool};

/// How the leaves of a design change. The leaf is the node of `path`, `held` its latch.
pub trait LeafUpdate<S: AllPmSpec>: Send + Sync + 'static {
    /// The leaf to the left, if its link is to change too. Looked for before a latch is taken.
    ///
    /// # Errors
    /// Another thread is in the way, or there is damage.
    #[inline(always)]
    fn beside<'a, M: Medium, K: Key>(
        _tree: &'a AllPm<M, K, S>,
        _path: &Path<'a, M>,
    ) -> Result<Option<NodeRef<'a, M>>, Interrupted> {
        Ok(None)
    }

    /// Adds an entry to a leaf that has room. Durable at return; a refusal has changed nothing.
    ///
    /// # Errors
    /// Another thread is in the way, or the pool is full.
    fn insert<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        rank: usize,
        entry: Entry,
        guard: &Guard,
    ) -> Result<(), Interrupted>;

    /// Takes an entry out, and gives the number of those left. Durable at return; a refusal has
    /// changed nothing.
    ///
    /// # Errors
    /// Another thread is in the way.
    fn remove<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        at: SlotPos,
        guard: &Guard,
    ) -> Result<usize, Interrupted>;

    /// Splits a full node, the one of `path`, whose parent has room. `key` leads there.
    ///
    /// # Errors
    /// Another thread is in the way, or the pool is full.
    fn split<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        path: &Path<'a, M>,
        _key: K::Ref<'_>,
        _guard: &Guard,
    ) -> Result<(), Interrupted> {
        tree.split(path)
    }

    /// Whether an insert that was refused may try again: what had to go first has been seen to. Called
    /// without a latch or a pin. `refusals` counts the calls for one key.
    fn may_try_again<M: Medium>(_: &Pool<M>, _refused: &TreeError, _refusals: usize) -> bool {
        false
    }

    /// Changes a value. Durable at return.
    #[inline(always)]
    fn update<M: Medium>(path: &Path<'_, M>, at: SlotPos, value: u64) {
        let _ = S::Leaf::update(path.node.view, at, value);
    }
}

/// By the leaf's own commit word.
#[derive(Debug)]
pub struct FailureAtomic;

impl<S: AllPmSpec<Leaf: Atomic>> LeafUpdate<S> for FailureAtomic {
    /// As [`Atomic::insert`], after a fence for the key's record where the layout has none for it.
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
        let _ = S::Leaf::insert(path.node.view, rank, entry);
        Ok(())
    }

    /// As [`Atomic::remove`].
    #[inline(always)]
    fn remove<M: Medium, K: Key>(
        _: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<NodeRef<'_, M>>,
        _held: NodeGuard<'_, M>,
        at: SlotPos,
        _: &Guard,
    ) -> Result<usize, Interrupted> {
        let _ = S::Leaf::remove(path.node.view, at);
        Ok(S::Leaf::count(path.node.view))
    }
}

/// Word by word, through the protocol.
#[derive(Debug)]
pub struct LoggedInPlace;

impl<S: AllPmSpec<Leaf: Wordwise, Protocol: Words>> LeafUpdate<S> for LoggedInPlace {
    /// As [`Words::begin`] and [`Words::end`], with the words of [`Wordwise::insert`] between them.
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
        S::Leaf::insert(path.node.view, rank, entry, &mut change);
        S::Protocol::end(change);
        Ok(())
    }

    /// As an insert.
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
        S::Leaf::remove(path.node.view, at, &mut change);
        S::Protocol::end(change);
        Ok(S::Leaf::count(path.node.view))
    }

    #[inline(always)]
    fn update<M: Medium>(path: &Path<'_, M>, at: SlotPos, value: u64) {
        S::Protocol::set_value::<M, S::Leaf>(path.node.view, at, value);
    }
}
