//! Inner nodes in DRAM: a B+-tree from separators to leaves. A crash loses it, and recovery
//! rebuilds it from the leaves.
//!
//! 1. The child at position i covers the keys from separator i - 1 on, up to separator i.
//! 2. Nodes come from an arena and return to it, never to the system, and versions only grow. So a
//!    reader may follow a stale index: it reads some node, and validation makes it restart. Readers
//!    write nothing.
//! 3. A thread latches a parent before its children, and children from left to right. It takes a
//!    latch only by upgrading a version that it has read, or by trying. So no thread waits for an
//!    inner-node latch while it holds another.
//! 4. If prefixes do not decide (`K::EXACT` is false), a key is compared with the separator's word.
//!    A leaf owns the word's record, as its low key, so callers pin an epoch.

mod arena;
mod array;
mod build;
mod change;
mod fast;
mod levels;
mod locked;
mod locks;
mod node;
mod nodes;

use crate::key::Key;
use crate::node_latch::HeldLatch;
use crate::spec::NodeSearch;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;
use levels::Levels;
use locks::{LOCKS, LockArray, child_word, free_lock, wait_for};
use node::{DramView, NODE_WORDS, NodeView, SEPARATOR_WORDS, SeparatorWords};
use nodes::SeparatedChild;

pub(crate) use arena::Arena;
pub(crate) use array::InnerArray;
pub(crate) use fast::FastNodes;
pub(crate) use locked::{lock_leaf, replace_leaf};
pub(crate) use node::{load, store};
pub(crate) use nodes::{InnerNodes, Replaced, SeparatedLeaf};

/// The inner nodes of an index whose leaves are on a medium of type `M`: nodes of `WORDS` words.
#[derive(Debug)]
pub struct Inner<M, F = VectorSearch, const WORDS: usize = NODE_WORDS> {
    nodes: Arena<WORDS>,
    /// The separator words, in blocks beside the nodes; `None` if prefixes decide.
    separator_words: Option<Arena<SEPARATOR_WORDS>>,
    /// The lock arrays, in blocks beside the nodes; `None` if leaves have latches.
    locks: Option<Arena<LOCKS>>,
    root: AtomicU64,
    medium: PhantomData<fn() -> (M, F)>,
}

/// The choices of a design for its inner nodes.
pub trait SearchChoice: 'static {
    /// The search of a node.
    const SEARCH: NodeSearch;
    /// `true` if the lowest nodes have lock arrays.
    const HAS_LOCKS: bool = false;
}

/// The choice of [`NodeSearch::Vector`].
#[derive(Debug)]
pub struct VectorSearch;

impl SearchChoice for VectorSearch {
    const SEARCH: NodeSearch = NodeSearch::Vector;
}

/// The choice of [`NodeSearch::Linear`].
#[derive(Debug)]
pub(crate) struct LinearSearch;

impl SearchChoice for LinearSearch {
    const SEARCH: NodeSearch = NodeSearch::Linear;
}

/// The choice of [`NodeSearch::Linear`] and of lock arrays.
#[derive(Debug)]
pub struct LinearWithLocks;

impl SearchChoice for LinearWithLocks {
    const SEARCH: NodeSearch = NodeSearch::Linear;
    const HAS_LOCKS: bool = true;
}

/// The end of a descent: a leaf, and the node that led to it with the version at which it did.
#[derive(Clone, Copy, Debug)]
pub struct LeafRoute {
    /// The pointer to the leaf, with the number of its lock if the node has a lock array.
    pub(crate) leaf: PmPtr,
    pub(crate) parent: usize,
    version: Version,
}

/// The result of an operation that met a change by another thread: descend again.
#[derive(Clone, Copy, Debug)]
pub struct Restart;

/// The child that a descent chooses for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The child that covers the key.
    Key,
    /// The child that covers the keys just below the key.
    Below,
}

/// The number of descents that run interleaved: about as many cache misses as a core keeps in
/// flight.
pub(crate) const BATCH: usize = 16;

impl<M: Medium, F: SearchChoice, const WORDS: usize> InnerNodes<M> for Inner<M, F, WORDS> {
    type Node<'a> = DramView<'a, M, WORDS>;
    const SEARCH: NodeSearch = F::SEARCH;
    const FANOUT: usize = DramView::<M, WORDS>::FANOUT;
    const HAS_LOCKS: bool = F::HAS_LOCKS;

    fn build(leaves: &[SeparatedLeaf], exact: bool) -> Result<Self, PoolError> {
        Self::over(leaves, exact)
    }

    fn for_each_leaf(&self, visit: &mut impl FnMut(SeparatedLeaf)) {
        self.walk(self.read_root().0, SeparatedLeaf::default(), visit);
    }

    fn height(&self) -> u32 {
        self.node(self.read_root().0).level() as u32
    }

    fn dram_bytes(&self) -> u64 {
        let separator_words =
            self.separator_words.as_ref().map_or(0, Arena::<SEPARATOR_WORDS>::bytes);
        let locks = self.locks.as_ref().map_or(0, Arena::<LOCKS>::bytes);
        self.nodes.bytes() + separator_words + locks
    }

    fn node_count(&self) -> u64 {
        self.nodes.in_use()
    }

    #[inline(always)]
    fn node(&self, index: usize) -> DramView<'_, M, WORDS> {
        DramView::new(self.nodes.get(index))
    }

    #[inline(always)]
    fn separator_words(&self, index: usize) -> Option<SeparatorWords<'_, M>> {
        self.separator_words.as_ref().map(|words| SeparatorWords::new(words.get(index)))
    }

    #[inline(always)]
    fn locks(&self, index: usize) -> Option<&LockArray> {
        if !F::HAS_LOCKS {
            return None;
        }
        self.locks.as_ref().map(|locks| locks.get(index))
    }

    fn make_room<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<(), Corrupt> {
        while self.seek_with_room::<K>(pool, key)?.is_err() {}
        Ok(())
    }

    #[inline]
    fn seek<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<LeafRoute, Corrupt> {
        loop {
            let (mut index, mut version) = self.read_root();
            loop {
                let node = self.node(index);
                let level = node.level();
                let Ok(at) = self.checked_position::<K>(pool, index, version, key, direction)?
                else {
                    break;
                };
                let child = node.child(at);
                if level <= 1 {
                    if node.latch().validate(version) {
                        let leaf = PmPtr::new(child);
                        return Ok(LeafRoute { leaf, parent: index, version });
                    }
                    break;
                }
                // Check before following `child`: if the node was reused above leaves after its
                // level was read, `child` is the offset of a leaf and not the index of a node.
                if !node.latch().validate(version) {
                    break;
                }
                let next = self.node(child as usize);
                next.prefetch();
                let Some(next_version) = next.latch().read() else { break };
                if !node.latch().validate(version) {
                    break;
                }
                (index, version) = (child as usize, next_version);
            }
        }
    }

    fn seek_last(&self) -> LeafRoute {
        loop {
            let (mut index, mut version) = self.read_root();
            while let node = self.node(index)
                && node.level() > 1
                && let Some(next) = self.step(index, version, node.count())
            {
                (index, version) = next;
            }
            let node = self.node(index);
            let leaf = PmPtr::new(node.child(node.count()));
            if node.level() == 1 && node.latch().validate(version) {
                return LeafRoute { leaf, parent: index, version };
            }
        }
    }

    fn seek_batch<K: Key>(
        &self,
        pool: &Pool<M>,
        keys: &[K::Ref<'_>],
        routes: &mut [Option<LeafRoute>; BATCH],
        prefetch: impl Fn(PmPtr, K::Ref<'_>),
    ) -> Result<(), Corrupt> {
        self.seek_interleaved::<K>(pool, keys, routes, prefetch)
    }

    fn try_post<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        slot: SeparatedChild,
        replaced: Option<(PmPtr, PmPtr)>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        self.try_insert::<K>(pool, separator, slot, replaced)
    }

    fn load<K: Key>(
        &self,
        pool: &Pool<M>,
        only: PmPtr,
        leaves: &[SeparatedLeaf],
        publish: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Corrupt> {
        self.load_leaves::<K>(pool, only, leaves, publish)
    }

    fn merge_path<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<(), Corrupt> {
        while self.try_merge_path::<K>(pool, key)?.is_err() {}
        Ok(())
    }

    fn unlink<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>, leaf: PmPtr) -> Result<(), Corrupt> {
        loop {
            match self.try_unlink::<K>(pool, key, leaf)? {
                Ok(false) => return Ok(()),
                Ok(true) => return self.merge_path::<K>(pool, key),
                Err(Restart) => {}
            }
        }
    }
}

impl<M: Medium, F: SearchChoice, const WORDS: usize> Inner<M, F, WORDS> {
    /// Returns the index of a node that no thread uses.
    fn take(&self) -> usize {
        let index = self.nodes.take();
        if let Some(words) = &self.separator_words {
            words.extend(index);
        }
        if let Some(locks) = &self.locks {
            locks.extend(index);
        }
        index
    }

    /// Notes that a latched node loses keys, if the nodes have lock arrays.
    fn note_loss(&self, index: usize) {
        if F::HAS_LOCKS {
            self.node(index).lose_keys();
        }
    }

    /// Takes the locks of the leaves below a node, from position `first` on: they will be under
    /// another node. Takes none if the node has no lock array or is not a lowest one. Returns
    /// `None` if the node has changed since `version`. The caller holds no lock of these or to
    /// their right, and no node's latch.
    fn lock_children(
        &self,
        index: usize,
        version: Version,
        first: usize,
    ) -> Option<Vec<HeldLatch<'_, M>>> {
        let node = self.node(index);
        let is_lowest = node.level() == 1;
        let Some(locks) = self.locks(index).filter(|_| is_lowest) else { return Some(Vec::new()) };
        let children: Vec<_> = (first..=node.count()).map(|at| node.child(at)).collect();
        let is_unchanged = || node.latch().validate(version);
        children.into_iter().map(|child| wait_for(locks, child, is_unchanged)).collect()
    }

    /// Returns `slot` with the number of a lock that is free in the node at `index`, if that is a
    /// lowest node with a lock array.
    fn renumbered(&self, index: usize, slot: SeparatedChild) -> SeparatedChild {
        let node = self.node(index);
        if !F::HAS_LOCKS || node.level() != 1 {
            return slot;
        }
        SeparatedChild { child: child_word(Self::leaf_of(slot.child), free_lock(node)), ..slot }
    }
}

#[cfg(test)]
mod tests;
