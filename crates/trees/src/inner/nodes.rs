//! The lowest inner nodes, which lead to leaves. All kinds of inner nodes share them.
//!
//! 1. The lowest nodes have separators, pointers to leaves, and a latch, whatever is above them.
//!    This module has the work under that latch; each implementation has descents, and changes of
//!    the nodes above.
//! 2. A thread that holds the latch of a lowest node waits for no other latch.

use super::locks::{self, LockArray};
use super::node::{NodeView, SeparatorWords};
use super::{BATCH, Direction, LeafRoute, Restart};
use crate::key::Key;
use crate::spec::NodeSearch;
use bristlecone_pmem::sync::{Exclusive, OnDram, Version};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;
use core::sync::atomic::AtomicU64;

/// A leaf and its low key, which is the separator to its left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeparatedLeaf {
    /// The prefix of the low key.
    pub(crate) prefix: u64,
    /// The separator word of the low key.
    pub(crate) word: u64,
    /// The offset of the leaf in the pool.
    pub(crate) leaf: u64,
}

/// A separator as nodes store it, and the child to its right.
#[derive(Clone, Copy, Debug)]
pub struct SeparatedChild {
    pub(super) prefix: u64,
    pub(super) word: u64,
    pub(super) child: u64,
}

/// A full leaf and the leaves that take its place.
#[derive(Clone, Copy, Debug)]
pub struct Replaced<R> {
    pub(crate) full: PmPtr,
    /// The new leaf that has the low key of the full one.
    pub(crate) lower: PmPtr,
    /// If there are two new leaves: the separator between them, its word, and the upper leaf.
    pub(crate) upper: Option<(R, u64, PmPtr)>,
}

/// The inner nodes of an index whose leaves are on a medium of type `M`.
pub trait InnerNodes<M: Medium>: Send + Sync + Sized + 'static {
    /// A view of a node.
    type Node<'a>: NodeView<'a, M>
    where
        Self: 'a;
    /// The search of a node.
    const SEARCH: NodeSearch;
    /// The largest number of separators of a lowest node. It has one child more.
    const FANOUT: usize;
    /// The largest number of separators with which a node is merged with a neighbour, if both fit
    /// into one node.
    const SPARSE: usize = Self::FANOUT / 4;
    /// `true` if the latches of leaves lie in lock arrays of the lowest nodes.
    const HAS_LOCKS: bool = false;

    /// Builds the inner nodes over `leaves`, which are in key order and not empty. `exact` tells
    /// whether a prefix is a whole key. Takes O(n) for n leaves.
    ///
    /// # Errors
    /// The system cannot reserve the addresses.
    fn build(leaves: &[SeparatedLeaf], exact: bool) -> Result<Self, PoolError>;
    /// Calls `visit` with every leaf, in key order. The first leaf gets the least separator. No
    /// thread may change the inner nodes meanwhile.
    fn for_each_leaf(&self, visit: &mut impl FnMut(SeparatedLeaf));
    /// Returns the number of levels above the leaves.
    fn height(&self) -> u32;
    /// Returns the bytes of DRAM that the nodes take, free ones included.
    fn dram_bytes(&self) -> u64;
    /// Returns the number of nodes in use.
    fn node_count(&self) -> u64;

    /// Returns the lowest node at `index`.
    fn node(&self, index: usize) -> Self::Node<'_>;
    /// Returns the separator words of the node at `index`, or `None` if prefixes decide.
    fn separator_words(&self, index: usize) -> Option<SeparatorWords<'_, M>>;
    /// Returns the lock array of the lowest node at `index`, or `None` if there are none.
    #[inline(always)]
    fn locks(&self, _index: usize) -> Option<&LockArray> {
        None
    }
    /// Splits the lowest node that covers `key`, and those above it, if they are full and have lock
    /// arrays. The caller holds no lock.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn make_room<K: Key>(&self, _pool: &Pool<M>, _key: K::Ref<'_>) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Returns the leaf that covers `key` or, for [`Direction::Below`], the keys just below it.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn seek<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<LeafRoute, Corrupt>;
    /// Returns the last leaf of the index.
    fn seek_last(&self) -> LeafRoute;
    /// Sets `routes` to the leaves that cover `keys`, at most [`BATCH`] of them. Calls `prefetch`
    /// with each as soon as it is found. A route is `None` if its descent met a change: seek that
    /// key by itself.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn seek_batch<K: Key>(
        &self,
        pool: &Pool<M>,
        keys: &[K::Ref<'_>],
        routes: &mut [Option<LeafRoute>; BATCH],
        prefetch: impl Fn(PmPtr, K::Ref<'_>),
    ) -> Result<(), Corrupt>;

    /// Tries once to insert `slot` into the lowest node that covers `separator` and, if `replaced`
    /// has a leaf and its successor, to put the second in the place of the first. Makes space in a
    /// full node instead.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn try_post<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        slot: SeparatedChild,
        replaced: Option<(PmPtr, PmPtr)>,
    ) -> Result<Result<(), Restart>, Corrupt>;
    /// Merges the sparse nodes on the path to `key`.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn merge_path<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<(), Corrupt>;
    /// Removes `leaf`, which covers `key`. Its range goes to the leaf on its left, and that of the
    /// first leaf to the one on its right. The caller holds the latches of both leaves, so no other
    /// thread changes the separators around `leaf`. Merges sparse nodes on the path.
    ///
    /// # Errors
    /// The record of a separator is damaged, or the nodes lead to another leaf or to no other one.
    fn unlink<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>, leaf: PmPtr) -> Result<(), Corrupt>;

    /// Replaces `only`, whose latch the caller holds, by `leaves`, which are in key order and not
    /// empty. Calls `publish` before other threads reach them. Returns `false` and changes nothing
    /// if there are other leaves or `publish` returns `false`. Takes O(n) for n leaves.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn load<K: Key>(
        &self,
        pool: &Pool<M>,
        only: PmPtr,
        leaves: &[SeparatedLeaf],
        publish: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Corrupt>;

    /// Returns `true` if the node at `index` is a lowest one and has the child `only` and no other.
    fn has_only(&self, index: usize, only: PmPtr) -> bool {
        let node = self.node(index);
        node.level() == 1 && node.count() == 0 && Self::leaf_of(node.child(0)) == only
    }

    /// Returns the leaf that a child word of a lowest node points to.
    #[inline(always)]
    fn leaf_of(child: u64) -> PmPtr {
        if Self::HAS_LOCKS { locks::leaf_of(child) } else { PmPtr::new(child) }
    }

    /// Returns the leaf at the end of `route`, and its lock if it lies in the node above.
    #[inline(always)]
    fn leaf_and_lock(&self, route: &LeafRoute) -> (PmPtr, Option<&AtomicU64>) {
        let child = route.leaf.offset();
        let lock = self.locks(route.parent).map(|array| &array[locks::lock_of(child)]);
        (Self::leaf_of(child), lock)
    }

    /// Returns `true` if the leaf of `route` still covers the key that it was found for. If a
    /// caller has read the leaf's version before, the leaf covers the key at that version.
    #[inline(always)]
    #[track_caller]
    fn is_current(&self, route: &LeafRoute) -> bool {
        self.node(route.parent).latch().validate(route.version)
    }

    /// Returns the [`position`](Self::position) of the child that `key` leads to. Reports damage
    /// only if the node has not changed since `version`; else a torn read is the likely cause.
    #[inline(always)]
    #[track_caller]
    fn checked_position<K: Key>(
        &self,
        pool: &Pool<M>,
        index: usize,
        version: Version,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<Result<usize, Restart>, Corrupt> {
        match self.position::<K>(pool, index, key, direction) {
            Ok(at) => Ok(Ok(at)),
            Err(corrupt) if self.node(index).latch().validate(version) => Err(corrupt),
            Err(_) => Ok(Err(Restart)),
        }
    }

    /// Returns the position of the child that `key` leads to. The caller validates the node's
    /// version.
    #[inline(always)]
    fn position<K: Key>(
        &self,
        pool: &Pool<M>,
        index: usize,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<usize, Corrupt> {
        let node = self.node(index);
        self.position_in::<K>(pool, (index, node), (key, K::prefix(key)), direction)
    }

    /// Returns the [`position`](Self::position) of the child of a node, which is given with its
    /// index, that a key leads to, which is given with its prefix.
    #[inline(always)]
    fn position_in<K: Key>(
        &self,
        pool: &Pool<M>,
        (index, node): (usize, Self::Node<'_>),
        (key, prefix): (K::Ref<'_>, u64),
        direction: Direction,
    ) -> Result<usize, Corrupt> {
        let count = node.count();
        if K::EXACT {
            return Ok(match direction {
                Direction::Key => node.count_up_to(Self::SEARCH, count, prefix),
                Direction::Below => node.count_below(Self::SEARCH, count, prefix),
            });
        }
        let mut high = node.count_up_to(Self::SEARCH, count, prefix);
        if high == 0 || node.prefix(high - 1) != prefix {
            return Ok(high);
        }
        let mut low = node.count_below(Self::SEARCH, high, prefix);
        let separator_words = self.separator_words(index);
        while low < high {
            let middle = match Self::SEARCH {
                NodeSearch::Vector => usize::midpoint(low, high),
                NodeSearch::Linear => low,
            };
            let word = separator_words.as_ref().map_or(0, |words| words.word(middle));
            let goes_right = match K::order(pool, word, key)? {
                Ordering::Less => true,
                Ordering::Equal => direction == Direction::Key,
                Ordering::Greater => false,
            };
            if goes_right {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Adds a separator and the leaf to its right. The caller holds the latch of the leaf to its
    /// left, so no other thread changes the range around the separator.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn post<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        word: u64,
        leaf: PmPtr,
    ) -> Result<(), Corrupt> {
        let slot = SeparatedChild { prefix: K::prefix(separator), word, child: leaf.offset() };
        while self.try_post::<K>(pool, separator, slot, None)?.is_err() {}
        Ok(())
    }

    /// Replaces the child `full` by the new leaves. The caller holds the latch of the full leaf, so
    /// no other thread replaces that child. A reader reaches the full leaf or the new ones, never
    /// only one of two new leaves.
    ///
    /// # Errors
    /// The record of a separator is damaged, or the separator lies outside the full leaf's range.
    fn replace<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        replaced: Replaced<K::Ref<'_>>,
    ) -> Result<(), Corrupt> {
        let Replaced { full, lower, upper } = replaced;
        if let Some((separator, word, leaf)) = upper {
            let slot = SeparatedChild { prefix: K::prefix(separator), word, child: leaf.offset() };
            while self.try_post::<K>(pool, separator, slot, Some((full, lower)))?.is_err() {}
            return Ok(());
        }
        let (index, at, _guard) = self.latch_above::<K>(pool, key)?;
        self.node(index).set_child(at, self.swung(index, at, full, lower)?);
        Ok(())
    }

    /// Latches the lowest node that covers `key`. Returns its index, the position of the child that
    /// `key` leads to, and the guard.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn latch_above<'a, K: Key>(
        &'a self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<(usize, usize, Exclusive<OnDram<'a, M>>), Corrupt> {
        loop {
            let route = self.seek::<K>(pool, key, Direction::Key)?;
            let position =
                self.checked_position::<K>(pool, route.parent, route.version, key, Direction::Key)?;
            let Ok(at) = position else { continue };
            if let Some(guard) = self.node(route.parent).latch().upgrade(route.version) {
                return Ok((route.parent, at, guard));
            }
        }
    }

    /// Returns the child word for `lower` in the place of `full`, which is the child at position
    /// `at` of a latched node. A lock stays.
    fn swung(&self, index: usize, at: usize, full: PmPtr, lower: PmPtr) -> Result<u64, Corrupt> {
        let (child, expected) = (self.node(index).child(at), full.offset());
        let found = Self::leaf_of(child).offset();
        if found != expected {
            let what = "child of the inner node above a leaf";
            return Err(Corrupt { at: expected, what, expected, found });
        }
        Ok(lower.offset() | child ^ found)
    }

    /// Calls `merge` for the leaf that covers `key` and one of its neighbours under the same node,
    /// the left leaf first. `merge` returns `true` if the left leaf has absorbed the right one.
    /// Then this removes the separator between them, and merges sparse nodes on the path.
    ///
    /// `merge` runs while that node is latched, so it must not wait for a latch. If another thread
    /// has changed the node, this does nothing.
    ///
    /// # Errors
    /// An error of `merge`, or the record of a separator is damaged.
    fn merge_leaves<K: Key, E: From<Corrupt>>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        mut merge: impl FnMut(PmPtr, PmPtr) -> Result<bool, E>,
    ) -> Result<(), E> {
        let route = self.seek::<K>(pool, key, Direction::Key)?;
        let node = self.node(route.parent);
        let position =
            self.checked_position::<K>(pool, route.parent, route.version, key, Direction::Key)?;
        let Ok(at) = position else { return Ok(()) };
        let Some(latch_guard) = node.latch().upgrade(route.version) else { return Ok(()) };
        let leaf = |at| Self::leaf_of(node.child(at));
        let mut merged = false;
        // The separator between two children has the position of the left one.
        for separator in
            [at.checked_sub(1), (at < node.count()).then_some(at)].into_iter().flatten()
        {
            if merge(leaf(separator), leaf(separator + 1))? {
                self.remove(route.parent, separator);
                merged = true;
                break;
            }
        }
        let is_sparse = node.count() <= Self::SPARSE;
        drop(latch_guard);
        if merged && is_sparse {
            self.merge_path::<K>(pool, key)?;
        }
        Ok(())
    }

    /// Returns the routes to the leaf that covers `key` and to its left and right neighbour, so far
    /// as these are under the same node.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    fn siblings<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<[Option<LeafRoute>; 3], Corrupt> {
        loop {
            let route = self.seek::<K>(pool, key, Direction::Key)?;
            let position =
                self.checked_position::<K>(pool, route.parent, route.version, key, Direction::Key)?;
            let Ok(at) = position else { continue };
            let node = self.node(route.parent);
            let child = |at: Option<usize>| {
                at.filter(|&at| at <= node.count())
                    .map(|at| LeafRoute { leaf: PmPtr::new(node.child(at)), ..route })
            };
            let siblings = [child(at.checked_sub(1)), child(Some(at)), child(Some(at + 1))];
            if self.is_current(&route) {
                return Ok(siblings);
            }
        }
    }

    /// Replaces the leaves `left` and `right`, which are children of one node one beside the other,
    /// by the leaf that `merge` returns. `key` is one that `left` covers, and the caller holds the
    /// latches of both, so they stay children. Returns `false`, and does not call `merge`, if they
    /// are under different nodes.
    ///
    /// `merge` runs while the node is latched, so it must not wait for a latch.
    ///
    /// # Errors
    /// An error of `merge`, which then has changed nothing, or a damaged record of a separator.
    fn replace_two<K: Key, E: From<Corrupt>>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        (left, right): (PmPtr, PmPtr),
        merge: impl FnOnce() -> Result<PmPtr, E>,
    ) -> Result<bool, E> {
        let (index, at, latch_guard) = self.latch_above::<K>(pool, key)?;
        let node = self.node(index);
        let are_siblings = at < node.count()
            && Self::leaf_of(node.child(at)) == left
            && Self::leaf_of(node.child(at + 1)) == right;
        if !are_siblings {
            return Ok(false);
        }
        let lower = merge()?;
        node.set_child(at, self.swung(index, at, left, lower)?);
        self.remove(index, at);
        drop(latch_guard);
        Ok(true)
    }

    /// Returns the separator at `at` and the child to its right.
    fn slot(&self, index: usize, at: usize) -> SeparatedChild {
        let node = self.node(index);
        let prefix = node.prefix(at);
        let word = self.separator_words(index).map_or(prefix, |words| words.word(at));
        SeparatedChild { prefix, word, child: node.child(at + 1) }
    }

    /// Stores the separator at `at` and the child to its right.
    fn set_slot(&self, index: usize, at: usize, slot: SeparatedChild) {
        let node = self.node(index);
        node.set_prefix(at, slot.prefix);
        node.set_child(at + 1, slot.child);
        if let Some(words) = self.separator_words(index) {
            words.set_word(at, slot.word);
        }
    }

    /// Inserts a slot at `at` into a node that is not full and that is latched or not reachable
    /// yet.
    fn insert(&self, index: usize, at: usize, slot: SeparatedChild) {
        let node = self.node(index);
        let count = node.count();
        debug_assert!(count < Self::FANOUT && at <= count);
        for from in (at..count).rev() {
            self.set_slot(index, from + 1, self.slot(index, from));
        }
        self.set_slot(index, at, slot);
        node.set_level_and_count(node.level(), count + 1);
    }

    /// Removes the separator at `at` and the child to its right.
    fn remove(&self, index: usize, at: usize) {
        let node = self.node(index);
        let count = node.count();
        debug_assert!(at < count);
        for from in at + 1..count {
            self.set_slot(index, from - 1, self.slot(index, from));
        }
        node.set_level_and_count(node.level(), count - 1);
    }
}
