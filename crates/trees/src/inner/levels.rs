//! Levels of inner nodes: each node leads to its children, from the root to the lowest nodes. Two
//! kinds of inner nodes share this.

use super::node::{NodeView, load, store};
use super::nodes::{InnerNodes, SeparatedLeaf};
use super::{BATCH, Direction, LeafRoute, Restart};
use crate::key::Key;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};
use core::sync::atomic::AtomicU64;

/// A node, its version, and the position of the child that a key leads to.
pub(super) type Covering = (usize, Version, usize);

/// A descent of a batch: its current node and the version of that, which is `None` once the descent
/// has met a change, and the position of the child that it follows next, then that child.
#[derive(Clone, Copy)]
struct Lane<N> {
    index: usize,
    node: N,
    version: Option<Version>,
    next: usize,
}

/// Inner nodes in an arena, below a root.
pub(super) trait Levels<M: Medium>: InnerNodes<M> {
    /// The largest number of children of a new node. It leaves space, so that the first inserts
    /// split nothing.
    const BUILT_CHILDREN_MAX: usize = Self::FANOUT * 9 / 10;

    /// Returns the word that holds the index of the root.
    fn root_word(&self) -> &AtomicU64;
    /// Frees a node that is latched.
    fn put_back(&self, index: usize);
    /// Builds the nodes of one level over `children`. In the result, `leaf` is the index of a node.
    fn build_level(&self, level: u64, children: &[SeparatedLeaf]) -> Vec<SeparatedLeaf>;
    /// Merges the two children beside a separator, if they fit into one node. Returns `None` if
    /// another thread has changed one of the nodes.
    fn merge_nodes(&self, index: usize, version: Version, separator: usize) -> Option<bool>;
    /// Makes the single child of `root` the root. Checks all conditions under the latch, since the
    /// node may have been reused meanwhile. Returns `false` if the root has to stay.
    fn collapse_root(&self, root: usize) -> bool;

    /// Returns the right neighbour of a node, and its version, if `key`, which leads to the child
    /// at the given position of the node, lies beyond it. Without links none does.
    ///
    /// # Errors
    /// The record of a low key is damaged.
    #[inline(always)]
    fn beyond<K: Key>(
        &self,
        _pool: &Pool<M>,
        _node: Covering,
        _key: K::Ref<'_>,
        _direction: Direction,
    ) -> Result<Result<Option<(usize, Version)>, Restart>, Corrupt> {
        Ok(Ok(None))
    }

    /// Returns the root of this moment; it may change at once.
    #[inline(always)]
    fn root(&self) -> usize {
        load::<M>(self.root_word()) as usize
    }

    /// Stores the index of the root.
    fn set_root(&self, root: u64) {
        store::<M>(self.root_word(), root);
    }

    /// Returns the root and its version.
    #[inline]
    fn read_root(&self) -> (usize, Version) {
        loop {
            let root = self.root();
            if let Some(version) = self.node(root).latch().read()
                && self.root() == root
            {
                return (root, version);
            }
        }
    }

    /// Returns the child at position `at` and its version, or `None` if the node has changed since
    /// `version`.
    #[track_caller]
    fn step(&self, index: usize, version: Version, at: usize) -> Option<(usize, Version)> {
        self.follow(index, version, self.node(index).child(at) as usize)
    }

    /// Returns the node `next`, whose index the node at `index` held, and its version, or `None` if
    /// the node at `index` has changed since `version`.
    #[inline(always)]
    #[track_caller]
    fn follow(&self, index: usize, version: Version, next: usize) -> Option<(usize, Version)> {
        let node = self.node(index);
        if !node.latch().validate(version) {
            return None;
        }
        let next_version = self.node(next).latch().read()?;
        node.latch().validate(version).then_some((next, next_version))
    }

    /// Looks up a batch, level by level: see [`InnerNodes::seek_batch`].
    #[inline(always)]
    fn seek_interleaved<K: Key>(
        &self,
        pool: &Pool<M>,
        keys: &[K::Ref<'_>],
        routes: &mut [Option<LeafRoute>; BATCH],
        prefetch: impl Fn(PmPtr, K::Ref<'_>),
    ) -> Result<(), Corrupt> {
        debug_assert!(keys.len() <= BATCH);
        let (root, version) = self.read_root();
        let node = self.node(root);
        let height = node.level();
        let mut lanes = [Lane { index: root, node, version: Some(version), next: root }; BATCH];
        let mut prefixes = [0; BATCH];
        for (prefix, &key) in prefixes.iter_mut().zip(keys) {
            *prefix = K::prefix(key);
        }
        for level in (1..=height).rev() {
            for ((lane, &key), &prefix) in lanes.iter_mut().zip(keys).zip(&prefixes) {
                let Some(mut version) = lane.version else { continue };
                if level != height {
                    let parent = core::mem::replace(&mut lane.node, self.node(lane.next));
                    lane.index = lane.next;
                    let read = lane.node.latch().read();
                    let Some(read) = read.filter(|_| parent.latch().validate(version)) else {
                        lane.version = None;
                        continue;
                    };
                    version = read;
                    lane.version = Some(read);
                }
                let (index, node) = (lane.index, lane.node);
                let at = self.position_in::<K>(pool, (index, node), (key, prefix), Direction::Key);
                let at = match at {
                    Ok(at) => at,
                    Err(damage) if node.latch().validate(version) => return Err(damage),
                    Err(_) => {
                        lane.version = None;
                        continue;
                    }
                };
                let beyond = self.beyond::<K>(pool, (index, version, at), key, Direction::Key)?;
                if !matches!(beyond, Ok(None)) {
                    lane.version = None;
                    continue;
                }
                node.prefetch_child(at);
                lane.next = at;
            }
            for (lane, &key) in lanes.iter_mut().zip(keys) {
                let Some(version) = lane.version else { continue };
                let child = lane.node.child(lane.next);
                lane.next = child as usize;
                if !lane.node.latch().validate(version) {
                    // The node may have been reused at another level; then the child is of another
                    // kind.
                    lane.version = None;
                } else if level > 1 {
                    self.node(lane.next).prefetch_separators();
                } else {
                    prefetch(Self::leaf_of(child), key);
                }
            }
        }
        for ((route, lane), _) in routes.iter_mut().zip(&lanes).zip(keys) {
            let (leaf, parent) = (PmPtr::new(lane.next as u64), lane.index);
            *route = lane.version.map(|version| LeafRoute { leaf, parent, version });
        }
        Ok(())
    }

    /// Returns the number of children of each node that is built over `children`, but the last.
    fn children_per_node(children: &[SeparatedLeaf]) -> usize {
        children.len().div_ceil(children.len().div_ceil(Self::BUILT_CHILDREN_MAX))
    }

    /// Builds all nodes over `leaves` and returns the index of their root.
    fn build_levels(&self, leaves: &[SeparatedLeaf]) -> u64 {
        let mut level = 1;
        let mut below = self.build_level(level, leaves);
        while below.len() > 1 {
            level += 1;
            below = self.build_level(level, &below);
        }
        below[0].leaf
    }

    /// Replaces the only leaf: see [`InnerNodes::load`].
    fn load_leaves<K: Key>(
        &self,
        pool: &Pool<M>,
        only: PmPtr,
        leaves: &[SeparatedLeaf],
        publish: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Corrupt> {
        // Another thread may be about to remove the nodes above its last merge.
        self.merge_path::<K>(pool, K::borrow(&K::least()))?;
        loop {
            let (root, version) = self.read_root();
            let Some(_guard) = self.node(root).latch().upgrade(version) else { continue };
            if self.root() != root {
                continue;
            }
            let is_only = self.has_only(root, only) && publish();
            if is_only {
                self.set_root(self.build_levels(leaves));
                self.put_back(root);
            }
            return Ok(is_only);
        }
    }

    /// Merges one sparse node on the path to `key`, or removes a root with a single child. Returns
    /// `Err` if it did either or met a change: call it again.
    fn try_merge_path<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        let (mut index, mut version) = self.read_root();
        if self.node(index).level() > 1 && self.node(index).count() == 0 {
            return Ok(if self.collapse_root(index) { Err(Restart) } else { Ok(()) });
        }
        loop {
            let node = self.node(index);
            if node.level() == 1 {
                return Ok(Ok(()));
            }
            let position = self.checked_position::<K>(pool, index, version, key, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            let Some(next) = self.step(index, version, at) else { return Ok(Err(Restart)) };
            if self.node(next.0).count() <= Self::SPARSE && node.count() > 0 {
                let separator = at.saturating_sub(1);
                match self.merge_nodes(index, version, separator) {
                    Some(true) | None => return Ok(Err(Restart)),
                    Some(false) => {}
                }
            }
            (index, version) = next;
        }
    }
}
