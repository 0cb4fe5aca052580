//! Removing a leaf from FAST nodes, wherever it is.

use super::FastNodes;
use crate::inner::levels::{Covering, Levels};
use crate::inner::node::NodeView;
use crate::inner::nodes::{InnerNodes, SeparatedChild};
use crate::inner::{Direction, Restart};
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

impl<M: Medium, const WORDS: usize, const PAIR: usize> FastNodes<M, WORDS, PAIR> {
    /// Tries once to remove `leaf`. Returns `true` if a node on the path has become sparse.
    ///
    /// Nodes on the path that have no other child vanish from their levels: their left neighbours
    /// take their links. The lowest node with another child drops the path's child. If this was the
    /// leftmost one, the next separator becomes the low key of the node, and of the nodes above up
    /// to the one where that key is a separator.
    pub(super) fn try_unlink<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        leaf: PmPtr,
    ) -> Result<Result<bool, Restart>, Corrupt> {
        let Ok(path) = self.path_to::<K>(pool, key)? else { return Ok(Err(Restart)) };
        let has_other = |&(index, ..): &Covering| self.node(index).count() > 0;
        let kept = path.iter().position(has_other).unwrap_or(path.len() - 1);
        let Ok(lefts) = self.left_of::<K>(pool, &path[..kept])? else { return Ok(Err(Restart)) };
        let mut guards = Vec::with_capacity(lefts.len() + path.len());
        for &(index, version, _) in lefts.iter().chain(&path) {
            let guard = self.node(index).latch().upgrade(version);
            let Some(guard) = guard else { return Ok(Err(Restart)) };
            guards.push(guard);
        }
        let (lowest, _, lowest_at) = path[0];
        let (top, _, top_at) = path[path.len() - 1];
        let (expected, found) = (leaf.offset(), self.node(lowest).child(lowest_at));
        if found != expected || top_at == 0 {
            let what = "child of the inner node above a leaf, which is not the first";
            return Err(Corrupt { at: expected, what, expected, found });
        }
        for (&(left, ..), &(index, ..)) in lefts.iter().zip(&path) {
            self.node(left).set_sibling(self.node(index).sibling());
            self.put_back(index);
        }
        let (index, _, at) = path[kept];
        if at > 0 {
            self.remove(index, at - 1);
        } else {
            let first = self.slot(index, 0);
            self.node(index).set_child(0, first.child);
            self.remove(index, 0);
            for &(index, ..) in &path[kept..path.len() - 1] {
                self.set_low(index, first.prefix, first.word);
            }
            let child = self.node(top).child(top_at);
            self.set_slot(top, top_at - 1, SeparatedChild { child, ..first });
        }
        Ok(Ok(self.node(index).count() <= Self::SPARSE))
    }

    /// Returns the nodes from the lowest one that covers `key` up to the first in which the path
    /// does not lead to the leftmost child, else up to the root. Restarts at a node without a
    /// separator, which another thread is about to post.
    fn path_to<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Result<Vec<Covering>, Restart>, Corrupt> {
        let (mut index, mut version) = self.read_root();
        let mut path = Vec::new();
        loop {
            let position = self.checked_position::<K>(pool, index, version, key, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            let covering = (index, version, at);
            let beyond = self.beyond::<K>(pool, covering, key, Direction::Key)?;
            let Ok(None) = beyond else { return Ok(Err(Restart)) };
            if at > 0 {
                path.clear();
            }
            path.push(covering);
            if self.node(index).level() <= 1 {
                path.reverse();
                return Ok(Ok(path));
            }
            let Some(next) = self.step(index, version, at) else { return Ok(Err(Restart)) };
            (index, version) = next;
        }
    }

    /// Returns the left neighbours of `nodes`, which are on successive levels from the lowest and
    /// have one low key.
    fn left_of<K: Key>(
        &self,
        pool: &Pool<M>,
        nodes: &[Covering],
    ) -> Result<Result<Vec<Covering>, Restart>, Corrupt> {
        let mut lefts = Vec::with_capacity(nodes.len());
        for (&(index, version, _), level) in nodes.iter().zip(1..) {
            let low = match K::read(pool, self.low(index).word) {
                Err(damage) if self.node(index).latch().validate(version) => return Err(damage),
                Err(_) => return Ok(Err(Restart)),
                Ok(low) => low,
            };
            let left = self.descend::<K>(pool, K::borrow(&low), Direction::Below, level)?;
            let Some(left) = left.filter(|left| self.node(left.0).sibling() == Some(index)) else {
                return Ok(Err(Restart));
            };
            lefts.push(left);
        }
        Ok(Ok(lefts))
    }
}
