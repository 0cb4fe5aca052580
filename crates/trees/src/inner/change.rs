//! Changing the inner nodes: adding a separator after a leaf's split, removing one after a merge.
//!
//! A descent splits full nodes, and merges sparse ones, on its way down. So no change goes back up
//! the tree, and a thread holds at most three latches of inner nodes.

mod unlink;

use super::node::FANOUT;
use super::{Direction, Inner, Restart, SearchChoice};
use crate::key::Key;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// The largest number of separators with which a node is merged with a neighbour, if both fit into
/// one node.
const SPARSE: usize = FANOUT / 4;

/// A separator as nodes store it, and the child to its right.
#[derive(Clone, Copy, Debug)]
struct Slot {
    prefix: u64,
    word: u64,
    child: u64,
}

/// A full leaf and the leaves that take its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replaced<R> {
    pub(crate) full: PmPtr,
    /// The new leaf that has the low key of the full one.
    pub(crate) lower: PmPtr,
    /// If there are two new leaves: the separator between them, its word, and the upper leaf.
    pub(crate) upper: Option<(R, u64, PmPtr)>,
}

impl<M: Medium, F: SearchChoice> Inner<M, F> {
    /// Adds a separator and the leaf to its right. The caller holds the latch of the leaf to its
    /// left, so no other thread changes the range around the separator.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    pub(crate) fn post<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        word: u64,
        leaf: PmPtr,
    ) -> Result<(), Corrupt> {
        let slot = Slot { prefix: K::prefix(separator), word, child: leaf.offset() };
        while self.try_post::<K>(pool, separator, slot, None)?.is_err() {}
        Ok(())
    }

    /// Replaces the child `full` by the new leaves. The caller holds the latch of the full leaf, so
    /// no other thread replaces that child. A reader reaches the full leaf or the new ones, never
    /// only one of two new leaves.
    ///
    /// # Errors
    /// The record of a separator is damaged, or the separator lies outside the full leaf's range.
    pub(crate) fn replace<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        replaced: Replaced<K::Ref<'_>>,
    ) -> Result<(), Corrupt> {
        let Replaced { full, lower, upper } = replaced;
        if let Some((separator, word, leaf)) = upper {
            let slot = Slot { prefix: K::prefix(separator), word, child: leaf.offset() };
            while self.try_post::<K>(pool, separator, slot, Some((full, lower)))?.is_err() {}
            return Ok(());
        }
        loop {
            let route = self.seek::<K>(pool, key, Direction::Key)?;
            let position =
                self.checked_position::<K>(pool, route.parent, route.version, key, Direction::Key)?;
            let Ok(at) = position else { continue };
            let node = self.node(route.parent);
            let Some(_guard) = node.latch().upgrade(route.version) else { continue };
            return self.swing_child(route.parent, at, full, lower);
        }
    }

    /// Replaces the child `full` at position `at` of a latched node by `lower`.
    fn swing_child(
        &self,
        index: usize,
        at: usize,
        full: PmPtr,
        lower: PmPtr,
    ) -> Result<(), Corrupt> {
        let (node, expected) = (self.node(index), full.offset());
        let found = node.child(at);
        if found != expected {
            let what = "child of the inner node above a leaf";
            return Err(Corrupt { at: expected, what, expected, found });
        }
        node.set_child(at, lower.offset());
        Ok(())
    }

    fn try_post<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        slot: Slot,
        replaced: Option<(PmPtr, PmPtr)>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        let (mut index, mut version) = self.read_root();
        let mut parent = None;
        loop {
            let node = self.node(index);
            if node.count() == FANOUT {
                self.split(parent, index, version);
                return Ok(Err(Restart));
            }
            let position =
                self.checked_position::<K>(pool, index, version, separator, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            if node.level() == 1 {
                let Some(_guard) = node.latch().upgrade(version) else { return Ok(Err(Restart)) };
                if let Some((full, lower)) = replaced {
                    self.swing_child(index, at, full, lower)?;
                }
                self.insert(index, at, slot);
                return Ok(Ok(()));
            }
            let Some(next) = self.step(index, version, at) else { return Ok(Err(Restart)) };
            parent = Some((index, version, at));
            (index, version) = next;
        }
    }

    /// Returns the child at position `at` and its version, or `None` if the node has changed since
    /// `version`.
    #[track_caller]
    pub(super) fn step(
        &self,
        index: usize,
        version: Version,
        at: usize,
    ) -> Option<(usize, Version)> {
        let node = self.node(index);
        let child = node.child(at) as usize;
        if !node.latch().validate(version) {
            return None;
        }
        let child_version = self.node(child).latch().read()?;
        node.latch().validate(version).then_some((child, child_version))
    }

    /// Splits a full node into two. Its parent, given with the node's position there, is not full;
    /// a node without parent is the root. Does nothing if one of them has changed since its version
    /// was read.
    fn split(&self, parent: Option<(usize, Version, usize)>, index: usize, version: Version) {
        let node = self.node(index);
        let parent_guard = match parent {
            Some((parent, version, _)) => match self.node(parent).latch().upgrade(version) {
                Some(guard) => Some(guard),
                None => return,
            },
            None => None,
        };
        let Some(_guard) = node.latch().upgrade(version) else { return };
        if parent.is_none() && self.root() != index {
            return;
        }
        let middle = FANOUT / 2;
        let right = self.take();
        let level = node.level();
        let target = self.node(right);
        target.set_child(0, node.child(middle + 1));
        target.set_level_and_count(level, 0);
        for at in middle + 1..FANOUT {
            self.insert(right, at - middle - 1, self.slot(index, at));
        }
        let up = Slot { child: right as u64, ..self.slot(index, middle) };
        node.set_level_and_count(level, middle);
        if let Some((parent, _, at)) = parent {
            self.insert(parent, at, up);
        } else {
            let root = self.take();
            self.node(root).set_level_and_count(level + 1, 0);
            self.node(root).set_child(0, index as u64);
            self.insert(root, 0, up);
            self.set_root(root as u64);
        }
        drop(parent_guard);
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
    pub(crate) fn merge_leaves<K: Key, E: From<Corrupt>>(
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
        let leaf = |at| PmPtr::new(node.child(at));
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
        let is_sparse = node.count() <= SPARSE;
        drop(latch_guard);
        if merged && is_sparse {
            self.merge_path::<K>(pool, key)?;
        }
        Ok(())
    }

    /// Returns the leaf that covers `key`, and its left and right neighbour, so far as these are
    /// under the same node.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    pub(crate) fn siblings<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<[Option<PmPtr>; 3], Corrupt> {
        loop {
            let route = self.seek::<K>(pool, key, Direction::Key)?;
            let position =
                self.checked_position::<K>(pool, route.parent, route.version, key, Direction::Key)?;
            let Ok(at) = position else { continue };
            let node = self.node(route.parent);
            let child = |at: Option<usize>| {
                at.filter(|&at| at <= node.count()).map(|at| PmPtr::new(node.child(at)))
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
    pub(crate) fn replace_two<K: Key, E: From<Corrupt>>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        (left, right): (PmPtr, PmPtr),
        merge: impl FnOnce() -> Result<PmPtr, E>,
    ) -> Result<bool, E> {
        let (index, at, latch_guard) = loop {
            let route = self.seek::<K>(pool, key, Direction::Key)?;
            let position =
                self.checked_position::<K>(pool, route.parent, route.version, key, Direction::Key)?;
            let Ok(at) = position else { continue };
            if let Some(guard) = self.node(route.parent).latch().upgrade(route.version) {
                break (route.parent, at, guard);
            }
        };
        let node = self.node(index);
        let are_siblings = at < node.count()
            && node.child(at) == left.offset()
            && node.child(at + 1) == right.offset();
        if !are_siblings {
            return Ok(false);
        }
        node.set_child(at, merge()?.offset());
        self.remove(index, at);
        drop(latch_guard);
        Ok(true)
    }

    /// Merges the sparse nodes on the path to `key`.
    ///
    /// # Errors
    /// The record of a separator is damaged.
    pub(crate) fn merge_path<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<(), Corrupt> {
        while self.try_merge_path::<K>(pool, key)?.is_err() {}
        Ok(())
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
            self.collapse_root(index);
            return Ok(Err(Restart));
        }
        loop {
            let node = self.node(index);
            if node.level() == 1 {
                return Ok(Ok(()));
            }
            let position = self.checked_position::<K>(pool, index, version, key, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            let Some(next) = self.step(index, version, at) else { return Ok(Err(Restart)) };
            if self.node(next.0).count() <= SPARSE && node.count() > 0 {
                let separator = at.saturating_sub(1);
                match self.merge_nodes(index, version, separator) {
                    Some(true) | None => return Ok(Err(Restart)),
                    Some(false) => {}
                }
            }
            (index, version) = next;
        }
    }

    /// Merges the two children beside a separator, if they fit into one node. Returns `None` if
    /// another thread has changed one of the nodes.
    fn merge_nodes(&self, index: usize, version: Version, separator: usize) -> Option<bool> {
        let (left, left_version) = self.step(index, version, separator)?;
        let (right, right_version) = self.step(index, version, separator + 1)?;
        let (target, source) = (self.node(left), self.node(right));
        let (kept, added) = (target.count(), source.count());
        if kept + added + 1 > FANOUT {
            return Some(false);
        }
        let _guard = self.node(index).latch().upgrade(version)?;
        let _left_guard = target.latch().upgrade(left_version)?;
        let _right_guard = source.latch().upgrade(right_version)?;
        self.insert(left, kept, Slot { child: source.child(0), ..self.slot(index, separator) });
        for at in 0..added {
            self.insert(left, kept + 1 + at, self.slot(right, at));
        }
        self.remove(index, separator);
        self.nodes.put_back(right);
        Some(true)
    }

    /// Makes the single child of `root` the root. Checks all conditions under the latch, since the
    /// node may have been reused meanwhile.
    fn collapse_root(&self, root: usize) {
        let node = self.node(root);
        let Some(_guard) = node.latch().try_lock() else { return };
        if self.root() == root && node.level() > 1 && node.count() == 0 {
            self.set_root(node.child(0));
            self.nodes.put_back(root);
        }
    }

    /// Returns the separator at `at` and the child to its right.
    fn slot(&self, index: usize, at: usize) -> Slot {
        let node = self.node(index);
        let word = self.separator_words(index).map_or(0, |words| words.word(at));
        Slot { prefix: node.prefix(at), word, child: node.child(at + 1) }
    }

    fn set_slot(&self, index: usize, at: usize, slot: Slot) {
        let node = self.node(index);
        node.set_prefix(at, slot.prefix);
        node.set_child(at + 1, slot.child);
        if let Some(words) = self.separator_words(index) {
            words.set_word(at, slot.word);
        }
    }

    /// Inserts a slot at `at` into a node that is not full and that is latched or not reachable
    /// yet.
    pub(super) fn insert_slot(&self, index: usize, at: usize, prefix: u64, word: u64, child: u64) {
        self.insert(index, at, Slot { prefix, word, child });
    }

    fn insert(&self, index: usize, at: usize, slot: Slot) {
        let node = self.node(index);
        let count = node.count();
        debug_assert!(count < FANOUT && at <= count);
        for from in (at..count).rev() {
            self.set_slot(index, from + 1, self.slot(index, from));
        }
        self.set_slot(index, at, slot);
        node.set_level_and_count(node.level(), count + 1);
    }

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
