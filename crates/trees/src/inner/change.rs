//! Changes of the inner nodes: a separator more after a leaf's split, one less after a merge.
//!
//! Full nodes are split, and sparse ones merged, on the way down: so a change never has to go back
//! up, and holds at most three latches.

use super::node::FANOUT;
use super::{Direction, Inner, Restart};
use crate::key::Key;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// Below this many separators a node is merged with a neighbour if both fit into one.
const SPARSE: usize = FANOUT / 4;

/// A separator as nodes store it, and the child to its right.
#[derive(Clone, Copy, Debug)]
struct Slot {
    prefix: u64,
    word: u64,
    child: u64,
}

/// A leaf that was full, and what is in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replaced<R> {
    pub(crate) full: PmPtr,
    /// Has its low key.
    pub(crate) lower: PmPtr,
    /// If it took two: the separator between them, its word, and the leaf to its right.
    pub(crate) upper: Option<(R, u64, PmPtr)>,
}

impl<M: Medium> Inner<M> {
    /// Adds a separator and the leaf to its right. The caller holds the latch of the leaf to its
    /// left, so nobody else changes what lies around the separator.
    ///
    /// # Errors
    /// A separator's record is damaged.
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

    /// Leads to fresh leaves where it led to a full one. The caller holds that one's latch, so nobody
    /// else changes what leads to it. A reader comes to the fresh leaves or to the full one, never to
    /// a part of them.
    ///
    /// # Errors
    /// A separator's record is damaged, or the separator lies outside the full leaf's range.
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
            let found = self.seek::<K>(pool, key, Direction::Key)?;
            let position =
                self.checked::<K>(pool, found.parent, found.seen, key, Direction::Key)?;
            let Ok(at) = position else { continue };
            let node = self.node(found.parent);
            let Some(_held) = node.latch().upgrade(found.seen) else { continue };
            return self.lead_to(found.parent, at, full, lower);
        }
    }

    /// Leads to `lower` where a latched node leads to `full`.
    fn lead_to(&self, index: usize, at: usize, full: PmPtr, lower: PmPtr) -> Result<(), Corrupt> {
        let (node, expected) = (self.node(index), full.offset());
        let found = node.child(at);
        if found != expected {
            let what = "a leaf holds keys outside its range";
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
        left: Option<(PmPtr, PmPtr)>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        let (mut index, mut seen) = self.enter();
        let mut parent = None;
        loop {
            let node = self.node(index);
            if node.count() == FANOUT {
                self.split(parent, index, seen);
                return Ok(Err(Restart));
            }
            let position = self.checked::<K>(pool, index, seen, separator, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            if node.level() == 1 {
                let Some(_held) = node.latch().upgrade(seen) else { return Ok(Err(Restart)) };
                if let Some((full, lower)) = left {
                    self.lead_to(index, at, full, lower)?;
                }
                self.insert(index, at, slot);
                return Ok(Ok(()));
            }
            let Some(next) = self.step(index, seen, at) else { return Ok(Err(Restart)) };
            parent = Some((index, seen, at));
            (index, seen) = next;
        }
    }

    /// The child at `at` and its version, if the node is as it was seen.
    #[track_caller]
    pub(super) fn step(&self, index: usize, seen: Version, at: usize) -> Option<(usize, Version)> {
        let node = self.node(index);
        let child = node.child(at) as usize;
        if !node.latch().validate(seen) {
            return None;
        }
        let child_seen = self.node(child).latch().read()?;
        node.latch().validate(seen).then_some((child, child_seen))
    }

    /// Splits a full node in two; its parent, given with the position of the node, is not full. A
    /// change that came between leaves everything as it was.
    fn split(&self, parent: Option<(usize, Version, usize)>, index: usize, seen: Version) {
        let node = self.node(index);
        let held_parent = match parent {
            Some((parent, seen, _)) => match self.node(parent).latch().upgrade(seen) {
                Some(held) => Some(held),
                None => return,
            },
            None => None,
        };
        let Some(_held) = node.latch().upgrade(seen) else { return };
        if parent.is_none() && self.root() != index {
            return;
        }
        let middle = FANOUT / 2;
        let right = self.take();
        let level = node.level();
        let target = self.node(right);
        target.set_child(0, node.child(middle + 1));
        target.set_shape(level, 0);
        for at in middle + 1..FANOUT {
            self.insert(right, at - middle - 1, self.slot(index, at));
        }
        let up = Slot { child: right as u64, ..self.slot(index, middle) };
        node.set_shape(level, middle);
        if let Some((parent, _, at)) = parent {
            self.insert(parent, at, up);
        } else {
            let root = self.take();
            self.node(root).set_shape(level + 1, 0);
            self.node(root).set_child(0, index as u64);
            self.insert(root, 0, up);
            self.set_root(root as u64);
        }
        drop(held_parent);
    }

    /// Lets `merge` join the leaf that covers `key` with a neighbour under the same node: it gets
    /// the left and the right leaf, and says whether the left one has taken the right one in. It is
    /// called with that node latched, so it must not wait for any latch. If it has, the separator
    /// between them is taken out, and sparse nodes on the way are merged.
    ///
    /// # Errors
    /// What `merge` says, or a separator's record is damaged.
    pub(crate) fn merge_leaves<K: Key, E: From<Corrupt>>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        mut merge: impl FnMut(PmPtr, PmPtr) -> Result<bool, E>,
    ) -> Result<(), E> {
        let found = self.seek::<K>(pool, key, Direction::Key)?;
        let node = self.node(found.parent);
        let position = self.checked::<K>(pool, found.parent, found.seen, key, Direction::Key)?;
        let Ok(at) = position else { return Ok(()) };
        let Some(held) = node.latch().upgrade(found.seen) else { return Ok(()) };
        let leaf = |at| PmPtr::new(node.child(at));
        let mut merged = false;
        // The separator between two children has the position of the left one.
        for separator in
            [at.checked_sub(1), (at < node.count()).then_some(at)].into_iter().flatten()
        {
            if merge(leaf(separator), leaf(separator + 1))? {
                self.remove(found.parent, separator);
                merged = true;
                break;
            }
        }
        let sparse = node.count() <= SPARSE;
        drop(held);
        if merged && sparse {
            while self.try_shrink::<K>(pool, key)?.is_err() {}
        }
        Ok(())
    }

    /// Merges one sparse node on the path to `key`, or takes off a root with one child; `Err` if it
    /// did or met a change, so that the caller looks again.
    fn try_shrink<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        let (mut index, mut seen) = self.enter();
        if self.node(index).level() > 1 && self.node(index).count() == 0 {
            self.take_off_root(index);
            return Ok(Err(Restart));
        }
        loop {
            let node = self.node(index);
            if node.level() == 1 {
                return Ok(Ok(()));
            }
            let position = self.checked::<K>(pool, index, seen, key, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            let Some(next) = self.step(index, seen, at) else { return Ok(Err(Restart)) };
            if self.node(next.0).count() <= SPARSE && node.count() > 0 {
                let separator = at.saturating_sub(1);
                match self.merge_nodes(index, seen, separator) {
                    Some(true) | None => return Ok(Err(Restart)),
                    Some(false) => {}
                }
            }
            (index, seen) = next;
        }
    }

    /// Merges the children on both sides of a separator, if they fit into one: `None` if a change
    /// came between.
    fn merge_nodes(&self, index: usize, seen: Version, separator: usize) -> Option<bool> {
        let (left, left_seen) = self.step(index, seen, separator)?;
        let (right, right_seen) = self.step(index, seen, separator + 1)?;
        let (target, source) = (self.node(left), self.node(right));
        let (kept, added) = (target.count(), source.count());
        if kept + added + 1 > FANOUT {
            return Some(false);
        }
        let _held = self.node(index).latch().upgrade(seen)?;
        let _left_held = target.latch().upgrade(left_seen)?;
        let _right_held = source.latch().upgrade(right_seen)?;
        self.insert(left, kept, Slot { child: source.child(0), ..self.slot(index, separator) });
        for at in 0..added {
            self.insert(left, kept + 1 + at, self.slot(right, at));
        }
        self.remove(index, separator);
        self.nodes.put_back(right);
        Some(true)
    }

    /// Whatever the node has become meanwhile, what is seen under its latch decides.
    fn take_off_root(&self, root: usize) {
        let node = self.node(root);
        let Some(_held) = node.latch().try_lock() else { return };
        if self.root() == root && node.level() > 1 && node.count() == 0 {
            self.set_root(node.child(0));
            self.nodes.put_back(root);
        }
    }

    /// The separator at `at` and the child to its right.
    fn slot(&self, index: usize, at: usize) -> Slot {
        let node = self.node(index);
        let word = self.ties(index).map_or(0, |ties| ties.word(at));
        Slot { prefix: node.prefix(at), word, child: node.child(at + 1) }
    }

    fn set_slot(&self, index: usize, at: usize, slot: Slot) {
        let node = self.node(index);
        node.set_prefix(at, slot.prefix);
        node.set_child(at + 1, slot.child);
        if let Some(ties) = self.ties(index) {
            ties.set_word(at, slot.word);
        }
    }

    /// Puts a slot at `at` of a node that has room and is latched, or is not reachable yet.
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
        node.set_shape(node.level(), count + 1);
    }

    fn remove(&self, index: usize, at: usize) {
        let node = self.node(index);
        let count = node.count();
        debug_assert!(at < count);
        for from in at + 1..count {
            self.set_slot(index, from - 1, self.slot(index, from));
        }
        node.set_shape(node.level(), count - 1);
    }
}
