//! Changing the inner nodes: adding a separator after a leaf's split, removing one after a merge.
//!
//! A descent splits full nodes, and merges sparse ones, on its way down. So no change goes back up
//! the tree, and a thread holds at most three latches of inner nodes.

mod unlink;

use super::locks::child_word;
use super::nodes::{SeparatedChild, SeparatedLeaf};
use super::{Direction, Inner, InnerNodes, Levels, NodeView, Restart, SearchChoice};
use crate::key::Key;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool};
use core::sync::atomic::AtomicU64;

impl<M: Medium, F: SearchChoice, const WORDS: usize> Inner<M, F, WORDS> {
    /// Tries once to insert `slot`: see [`InnerNodes::try_post`]. Splits a full node on the path
    /// instead.
    pub(super) fn try_insert<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        slot: SeparatedChild,
        replaced: Option<(PmPtr, PmPtr)>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        let with_room = self.seek_with_room::<K>(pool, separator)?;
        let Ok((index, version, at)) = with_room else { return Ok(Err(Restart)) };
        let node = self.node(index);
        let Some(_guard) = node.latch().upgrade(version) else { return Ok(Err(Restart)) };
        if let Some((full, lower)) = replaced {
            node.set_child(at, self.swung(index, at, full, lower)?);
        }
        self.insert(index, at, self.renumbered(index, slot));
        Ok(Ok(()))
    }

    /// Returns the lowest node that covers `key`, its version, and the position of the child that
    /// `key` leads to. Splits a full node on the path instead.
    #[inline(always)]
    pub(super) fn seek_with_room<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Result<(usize, Version, usize), Restart>, Corrupt> {
        let (mut index, mut version) = self.read_root();
        let mut parent = None;
        loop {
            let node = self.node(index);
            if node.count() == Self::FANOUT {
                self.split(pool, parent, index, version);
                return Ok(Err(Restart));
            }
            let position = self.checked_position::<K>(pool, index, version, key, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            if node.level() == 1 {
                return Ok(Ok((index, version, at)));
            }
            let Some(next) = self.step(index, version, at) else { return Ok(Err(Restart)) };
            parent = Some((index, version, at));
            (index, version) = next;
        }
    }

    /// Splits a full node into two. Its parent, given with the node's position there, is not full;
    /// a node without parent is the root. Does nothing if one of them has changed since its version
    /// was read.
    fn split(
        &self,
        pool: &Pool<M>,
        parent: Option<(usize, Version, usize)>,
        index: usize,
        version: Version,
    ) {
        let node = self.node(index);
        let middle = Self::FANOUT / 2;
        let leaves_behind = M::INJECTS_DEFECTS && pool.medium().injects(Defect::LockLeftBehind);
        let first_moved = if leaves_behind { Self::FANOUT + 1 } else { middle + 1 };
        let Some(_moved) = self.lock_children(index, version, first_moved) else { return };
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
        let right = self.take();
        let level = node.level();
        let target = self.node(right);
        target.set_child(0, node.child(middle + 1));
        target.set_level_and_count(level, 0);
        for at in middle + 1..Self::FANOUT {
            self.insert(right, at - middle - 1, self.slot(index, at));
        }
        let up = SeparatedChild { child: right as u64, ..self.slot(index, middle) };
        node.set_level_and_count(level, middle);
        self.note_loss(index);
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
}

impl<M: Medium, F: SearchChoice, const WORDS: usize> Levels<M> for Inner<M, F, WORDS> {
    fn root_word(&self) -> &AtomicU64 {
        &self.root
    }

    fn put_back(&self, index: usize) {
        self.note_loss(index);
        self.nodes.put_back(index);
    }

    fn build_level(&self, level: u64, children: &[SeparatedLeaf]) -> Vec<SeparatedLeaf> {
        let build = |children: &[SeparatedLeaf]| {
            let index = self.take();
            let node = self.node(index);
            let has_locks = F::HAS_LOCKS && level == 1;
            let number =
                |leaf, lock| if has_locks { child_word(PmPtr::new(leaf), lock) } else { leaf };
            node.set_child(0, number(children[0].leaf, 0));
            node.set_level_and_count(level, 0);
            for (at, child) in children[1..].iter().enumerate() {
                let SeparatedLeaf { prefix, word, leaf } = *child;
                self.insert(
                    index,
                    at,
                    SeparatedChild { prefix, word, child: number(leaf, at + 1) },
                );
            }
            SeparatedLeaf { leaf: index as u64, ..children[0] }
        };
        children.chunks(Self::children_per_node(children)).map(build).collect()
    }

    fn merge_nodes(&self, index: usize, version: Version, separator: usize) -> Option<bool> {
        let (left, left_version) = self.step(index, version, separator)?;
        let (right, right_version) = self.step(index, version, separator + 1)?;
        let (target, source) = (self.node(left), self.node(right));
        let (kept, added) = (target.count(), source.count());
        if kept + added + 1 > Self::FANOUT {
            return Some(false);
        }
        let _moved = self.lock_children(right, right_version, 0)?;
        let _guard = self.node(index).latch().upgrade(version)?;
        let _left_guard = target.latch().upgrade(left_version)?;
        let _right_guard = source.latch().upgrade(right_version)?;
        let first = SeparatedChild { child: source.child(0), ..self.slot(index, separator) };
        let rest = (0..added).map(|at| self.slot(right, at));
        for (at, slot) in core::iter::once(first).chain(rest).enumerate() {
            self.insert(left, kept + at, self.renumbered(left, slot));
        }
        self.remove(index, separator);
        self.put_back(right);
        Some(true)
    }

    fn collapse_root(&self, root: usize) -> bool {
        let node = self.node(root);
        if let Some(_guard) = node.latch().try_lock()
            && self.root() == root
            && node.level() > 1
            && node.count() == 0
        {
            self.set_root(node.child(0));
            self.put_back(root);
        }
        true
    }
}
