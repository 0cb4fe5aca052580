//! Removing a leaf from the inner nodes, wherever its neighbours are.

use crate::inner::nodes::SeparatedChild;
use crate::inner::{Direction, Inner, InnerNodes, Levels, NodeView, Restart, SearchChoice};
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

impl<M: Medium, F: SearchChoice, const WORDS: usize> Inner<M, F, WORDS> {
    /// Tries once to remove `leaf`. Returns `true` if a node on the path has become sparse.
    ///
    /// The path begins at the last node that has a child to its left, else at the root. Below that
    /// node it takes first children. The lowest node with another child drops the path's child,
    /// and the nodes below it, which have no other, are freed. If the dropped child was a first
    /// one, the separator to the left of the path becomes the low key of the leaf on the right.
    pub(in crate::inner) fn try_unlink<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        leaf: PmPtr,
    ) -> Result<Result<bool, Restart>, Corrupt> {
        let (mut index, mut version) = self.read_root();
        let mut path = Vec::new();
        loop {
            let position = self.checked_position::<K>(pool, index, version, key, Direction::Key)?;
            let Ok(at) = position else { return Ok(Err(Restart)) };
            if at > 0 {
                path.clear();
            }
            path.push((index, version, at));
            if self.node(index).level() <= 1 {
                break;
            }
            let Some(next) = self.step(index, version, at) else { return Ok(Err(Restart)) };
            (index, version) = next;
        }
        let mut guards = Vec::with_capacity(path.len());
        for &(index, version, _) in &path {
            let guard = self.node(index).latch().upgrade(version);
            let Some(guard) = guard else { return Ok(Err(Restart)) };
            guards.push(guard);
        }
        let (top, _, top_at) = path[0];
        let bottom = path[path.len() - 1];
        let (expected, found) = (leaf.offset(), self.node(bottom.0).child(bottom.2));
        if found != expected {
            let what = "child of the inner node above a leaf";
            return Err(Corrupt { at: expected, what, expected, found });
        }
        let has_other = |&(index, ..): &(usize, _, _)| self.node(index).count() > 0;
        let Some(lowest) = path.iter().rposition(has_other) else {
            let what = "number of leaves below the root, of which one is removed";
            return Err(Corrupt { at: expected, what, expected: 2, found: 1 });
        };
        let (index, _, at) = path[lowest];
        if at > 0 {
            self.remove(index, at - 1);
        } else {
            let first = self.slot(index, 0);
            self.node(index).set_child(0, first.child);
            self.remove(index, 0);
            if top_at > 0 {
                let child = self.node(top).child(top_at);
                self.set_slot(top, top_at - 1, SeparatedChild { child, ..first });
            }
        }
        for &(index, ..) in &path[lowest + 1..] {
            self.put_back(index);
        }
        Ok(Ok(self.node(index).count() <= Self::SPARSE))
    }
}
