//! Inner nodes in DRAM: a B+-tree from separators to leaves that a crash takes and recovery
//! rebuilds.
//!
//! 1. The child at position `i` covers the keys from separator `i - 1` on, up to separator `i`.
//! 2. Nodes come from an arena and return to it, never to the system, and their versions only ever
//!    grow. So a reader may follow a stale index: it reads a node of some kind, and validation
//!    tells it to start again. No reader writes anything.
//! 3. Latches are taken parent first, then children from left to right, and only by upgrading a
//!    version that was read: no thread ever waits for a latch while it holds another.
//! 4. Where a prefix does not decide (`K::EXACT` is false), a separator is compared through its
//!    word, which a leaf owns as its low key; callers hold an epoch guard.

mod arena;
mod build;
mod change;
mod node;

use crate::key::Key;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;
use node::{InnerNode, NODE_WORDS, TIE_WORDS, Ties};

pub(crate) use arena::Arena;
pub(crate) use build::Separated;
pub(crate) use change::Replaced;
pub(crate) use node::{load, store};

/// The volatile part of a hybrid index whose leaves are on a medium of type `M`.
#[derive(Debug)]
pub(crate) struct Inner<M> {
    nodes: Arena<NODE_WORDS>,
    /// Separator words beside the prefixes, for keys whose prefix does not decide.
    ties: Option<Arena<TIE_WORDS>>,
    root: AtomicU64,
    medium: PhantomData<fn() -> M>,
}

/// Where a descent ended: a leaf, and the node and version that led to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafRoute {
    pub(crate) leaf: PmPtr,
    parent: usize,
    seen: Version,
}

/// A descent met a change and has to start again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart;

/// Which child a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The child that covers the key.
    Key,
    /// The child that covers the keys just below it.
    Below,
}

/// Keys in one batch of interleaved descents: as many cache misses as a core keeps in flight.
pub(crate) const BATCH: usize = 16;

impl<M: Medium> Inner<M> {
    /// The leaf that covers `key`, or the keys just below it.
    ///
    /// # Errors
    /// A separator's record is damaged.
    #[inline]
    pub(crate) fn seek<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        toward: Direction,
    ) -> Result<LeafRoute, Corrupt> {
        loop {
            let (mut index, mut seen) = self.enter();
            loop {
                let node = self.node(index);
                let level = node.level();
                let Ok(at) = self.checked::<K>(pool, index, seen, key, toward)? else { break };
                let child = node.child(at);
                if level <= 1 {
                    if node.latch().validate(seen) {
                        let leaf = PmPtr::new(child);
                        return Ok(LeafRoute { leaf, parent: index, seen });
                    }
                    break;
                }
                // Before it is followed: if the node has become one above leaves since its level was
                // read, this is no index.
                if !node.latch().validate(seen) {
                    break;
                }
                let next = self.node(child as usize);
                next.prefetch();
                let Some(next_seen) = next.latch().read() else { break };
                if !node.latch().validate(seen) {
                    break;
                }
                (index, seen) = (child as usize, next_seen);
            }
        }
    }

    /// The last leaf.
    pub(crate) fn seek_last(&self) -> LeafRoute {
        loop {
            let (mut index, mut seen) = self.enter();
            while let node = self.node(index)
                && node.level() > 1
                && let Some(next) = self.step(index, seen, node.count())
            {
                (index, seen) = next;
            }
            let node = self.node(index);
            let leaf = PmPtr::new(node.child(node.count()));
            if node.level() == 1 && node.latch().validate(seen) {
                return LeafRoute { leaf, parent: index, seen };
            }
        }
    }

    /// Whether the leaf of `found` still covers what it was found for. Asked after the leaf's
    /// version was read, it makes that version good for as long as it holds.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn is_current(&self, found: &LeafRoute) -> bool {
        self.node(found.parent).latch().validate(found.seen)
    }

    /// The leaves that cover `keys`, at most [`BATCH`] of them; all descents advance together, so
    /// their cache misses overlap. `None` where a change came between: seek that key alone.
    pub(crate) fn seek_batch<K: Key>(
        &self,
        pool: &Pool<M>,
        keys: &[K::Ref<'_>],
    ) -> Result<[Option<LeafRoute>; BATCH], Corrupt> {
        debug_assert!(keys.len() <= BATCH);
        let (root, seen) = self.enter();
        let height = self.node(root).level();
        let mut found = [None; BATCH];
        // Each lane: the node it stands in, its version, and the child to go to next.
        let mut lanes = [(root, Some(seen), root); BATCH];
        for level in (1..=height).rev() {
            for ((index, seen, next), &key) in lanes.iter_mut().zip(keys) {
                let Some(parent_seen) = *seen else { continue };
                if level != height {
                    let version = self.node(*next).latch().read();
                    let valid = self.node(*index).latch().validate(parent_seen);
                    *seen = version.filter(|_| valid);
                    *index = *next;
                }
                let Some(current) = *seen else { continue };
                let Ok(at) = self.checked::<K>(pool, *index, current, key, Direction::Key)? else {
                    *seen = None;
                    continue;
                };
                *next = self.node(*index).child(at) as usize;
                if level > 1 && !self.node(*index).latch().validate(current) {
                    // It may have become a node above leaves: then this is no index.
                    *seen = None;
                } else if level > 1 {
                    self.node(*next).prefetch();
                } else if let Ok(words) = pool.words(PmPtr::new(*next as u64), LEAF_AHEAD_WORDS) {
                    pool.medium().prefetch(words);
                }
            }
        }
        for ((found, (index, seen, next)), _) in found.iter_mut().zip(lanes).zip(keys) {
            *found =
                seen.map(|seen| LeafRoute { leaf: PmPtr::new(next as u64), parent: index, seen });
        }
        Ok(found)
    }

    /// The node at `index`.
    #[inline(always)]
    fn node(&self, index: usize) -> InnerNode<'_, M> {
        InnerNode::new(self.nodes.get(index))
    }

    /// The separator words of the node at `index`, where there are any.
    #[inline(always)]
    fn ties(&self, index: usize) -> Option<Ties<'_, M>> {
        self.ties.as_ref().map(|ties| Ties::new(ties.get(index)))
    }

    /// A node that nobody uses.
    fn take(&self) -> usize {
        let index = self.nodes.take();
        if let Some(ties) = &self.ties {
            ties.extend(index);
        }
        index
    }

    /// The root, as it is at this moment.
    #[inline(always)]
    fn root(&self) -> usize {
        load::<M>(&self.root) as usize
    }

    fn set_root(&self, root: u64) {
        store::<M>(&self.root, root);
    }

    /// The root and its version.
    #[inline]
    fn enter(&self) -> (usize, Version) {
        loop {
            let root = self.root();
            if let Some(seen) = self.node(root).latch().read()
                && self.root() == root
            {
                return (root, seen);
            }
        }
    }

    /// [`Self::position`], trusted: damage is reported only if the node did not change meanwhile.
    #[inline(always)]
    #[track_caller]
    fn checked<K: Key>(
        &self,
        pool: &Pool<M>,
        index: usize,
        seen: Version,
        key: K::Ref<'_>,
        toward: Direction,
    ) -> Result<Result<usize, Restart>, Corrupt> {
        match self.position::<K>(pool, index, key, toward) {
            Ok(at) => Ok(Ok(at)),
            Err(corrupt) if self.node(index).latch().validate(seen) => Err(corrupt),
            Err(_) => Ok(Err(Restart)),
        }
    }

    /// The position of the child that `key` leads to.
    #[inline(always)]
    fn position<K: Key>(
        &self,
        pool: &Pool<M>,
        index: usize,
        key: K::Ref<'_>,
        toward: Direction,
    ) -> Result<usize, Corrupt> {
        let node = self.node(index);
        let prefix = K::prefix(key);
        let count = node.count();
        if K::EXACT {
            return Ok(match toward {
                Direction::Key => node.count_up_to(count, prefix),
                Direction::Below => node.count_below(count, prefix),
            });
        }
        let mut high = node.count_up_to(count, prefix);
        if high == 0 || node.prefix(high - 1) != prefix {
            return Ok(high);
        }
        let mut low = node.count_below(high, prefix);
        let ties = self.ties(index);
        while low < high {
            let middle = usize::midpoint(low, high);
            let word = ties.map_or(0, |ties| ties.word(middle));
            let goes_right = match K::order(pool, word, key)? {
                Ordering::Less => true,
                Ordering::Equal => toward == Direction::Key,
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

    /// Levels above the leaves.
    pub(crate) fn height(&self) -> u32 {
        self.node(self.enter().0).level() as u32
    }

    /// Bytes of DRAM held.
    pub(crate) fn dram_bytes(&self) -> u64 {
        let ties = self.ties.as_ref().map_or(0, Arena::<TIE_WORDS>::bytes);
        self.nodes.bytes() + ties
    }

    /// Nodes in use.
    pub(crate) fn node_count(&self) -> u64 {
        self.nodes.in_use()
    }
}

/// Words of a leaf that a batch asks for ahead: four lines, a whole leaf of the usual size.
const LEAF_AHEAD_WORDS: usize = 32;

#[cfg(test)]
mod tests;
