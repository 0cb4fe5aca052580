//! Changing FAST nodes: splits from the lowest level upwards, merges from the root downwards.

use super::FastNodes;
use crate::inner::levels::{Covering, Levels};
use crate::inner::node::NodeView;
use crate::inner::nodes::{InnerNodes, SeparatedChild, SeparatedLeaf};
use crate::inner::{Direction, Restart};
use crate::key::Key;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Defect, Medium, Pool};
use core::sync::atomic::AtomicU64;

impl<M: Medium, const WORDS: usize, const PAIR: usize> FastNodes<M, WORDS, PAIR> {
    /// Inserts `slot` at position `at` of a latched node, and splits the node if it is full.
    /// Returns the new sibling, whose separator the caller posts after releasing the latch.
    pub(super) fn insert_or_split(
        &self,
        index: usize,
        at: usize,
        slot: SeparatedChild,
    ) -> Option<SeparatedChild> {
        let node = self.node(index);
        if node.count() < Self::FANOUT {
            self.insert(index, at, slot);
            return None;
        }
        let (level, middle) = (node.level(), Self::FANOUT / 2);
        let first = self.slot(index, middle);
        let low = SeparatedLeaf { prefix: first.prefix, word: first.word, leaf: first.child };
        let right = self.start(level, low);
        for from in middle + 1..Self::FANOUT {
            self.insert(right, from - middle - 1, self.slot(index, from));
        }
        self.node(right).set_sibling(node.sibling());
        node.set_sibling(Some(right));
        node.set_level_and_count(level, middle);
        if at <= middle {
            self.insert(index, at, slot);
        } else {
            self.insert(right, at - middle - 1, slot);
        }
        let sibling = SeparatedChild { child: right as u64, ..first };
        if self.root() != index {
            return Some(sibling);
        }
        let left = SeparatedLeaf { leaf: index as u64, ..SeparatedLeaf::default() };
        let root = self.start(level + 1, left);
        self.insert(root, 0, sibling);
        self.set_root(root as u64);
        None
    }

    /// Posts the separator of `sibling`, a new lowest node, and of each node that this splits in
    /// turn.
    #[cold]
    pub(super) fn post_above<K: Key>(
        &self,
        pool: &Pool<M>,
        mut sibling: SeparatedChild,
    ) -> Result<(), Corrupt> {
        let mut level = 2;
        loop {
            let low = K::read(pool, sibling.word)?;
            let covering = self.descend::<K>(pool, K::borrow(&low), Direction::Key, level)?;
            let Some((index, version, at)) = covering else { continue };
            let Some(_guard) = self.node(index).latch().upgrade(version) else { continue };
            let Some(next) = self.insert_or_split(index, at, sibling) else { return Ok(()) };
            (sibling, level) = (next, level + 1);
        }
    }
}

impl<M: Medium, const WORDS: usize, const PAIR: usize> Levels<M> for FastNodes<M, WORDS, PAIR> {
    fn root_word(&self) -> &AtomicU64 {
        &self.root
    }

    fn put_back(&self, index: usize) {
        self.nodes.put_back(index);
    }

    #[inline(always)]
    fn beyond<K: Key>(
        &self,
        pool: &Pool<M>,
        (index, version, at): Covering,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<Result<Option<(usize, Version)>, Restart>, Corrupt> {
        let node = self.node(index);
        let is_blind = M::INJECTS_DEFECTS && pool.medium().injects(Defect::LinkIgnored);
        if at < node.count() || is_blind {
            return Ok(Ok(None));
        }
        let Some(sibling) = node.sibling() else { return Ok(Ok(None)) };
        let latch = self.node(sibling).latch();
        let Some(sibling_version) = latch.read() else { return Ok(Err(Restart)) };
        let is_beyond = self.begins_before::<K>(pool, sibling, key, direction);
        if !latch.validate(sibling_version) || !node.latch().validate(version) {
            return Ok(Err(Restart));
        }
        Ok(Ok(is_beyond?.then_some((sibling, sibling_version))))
    }

    fn build_level(&self, level: u64, children: &[SeparatedLeaf]) -> Vec<SeparatedLeaf> {
        let mut left = None;
        let build = |children: &[SeparatedLeaf]| {
            let index = self.start(level, children[0]);
            for (at, &SeparatedLeaf { prefix, word, leaf }) in children[1..].iter().enumerate() {
                self.insert(index, at, SeparatedChild { prefix, word, child: leaf });
            }
            if let Some(left) = left.replace(index) {
                self.node(left).set_sibling(Some(index));
            }
            SeparatedLeaf { leaf: index as u64, ..children[0] }
        };
        children.chunks(Self::children_per_node(children)).map(build).collect()
    }

    /// Merges only neighbours: a node that another thread has yet to post may lie between the two.
    fn merge_nodes(&self, index: usize, version: Version, separator: usize) -> Option<bool> {
        let (left, left_version) = self.step(index, version, separator)?;
        let (right, right_version) = self.step(index, version, separator + 1)?;
        let (target, source) = (self.node(left), self.node(right));
        let (kept, added) = (target.count(), source.count());
        if kept + added + 1 > Self::FANOUT || target.sibling() != Some(right) {
            return Some(false);
        }
        let _guard = self.node(index).latch().upgrade(version)?;
        let _left_guard = target.latch().upgrade(left_version)?;
        let _right_guard = source.latch().upgrade(right_version)?;
        let first = SeparatedChild { child: source.child(0), ..self.slot(index, separator) };
        let rest = (0..added).map(|at| self.slot(right, at));
        for (at, slot) in core::iter::once(first).chain(rest).enumerate() {
            self.insert(left, kept + at, slot);
        }
        target.set_sibling(source.sibling());
        self.remove(index, separator);
        self.put_back(right);
        Some(true)
    }

    fn collapse_root(&self, root: usize) -> bool {
        let node = self.node(root);
        let Some(_guard) = node.latch().try_lock() else { return true };
        if self.root() != root || node.level() <= 1 || node.count() > 0 {
            return true;
        }
        let child = node.child(0);
        let Some(_child_guard) = self.node(child as usize).latch().try_lock() else { return false };
        if self.node(child as usize).sibling().is_some() {
            return false; // another thread is about to post it here
        }
        self.set_root(child);
        self.put_back(root);
        true
    }
}
