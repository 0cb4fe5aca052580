//! Removing a leaf from the inner nodes, wherever its neighbours are.

use super::{Direction, Inner, Restart, SPARSE, SearchChoice, Slot};
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

impl<M: Medium, F: SearchChoice> Inner<M, F> {
    /// Removes `leaf`, which covers `key`. Its range goes to the leaf on its left, and that of the
    /// first leaf to the one on its right. The caller holds the latches of both leaves, so no other
    /// thread changes the separators around `leaf`. Merges sparse nodes on the path.
    ///
    /// # Errors
    /// The record of a separator is damaged, or the nodes lead to another leaf or to no other one.
    pub(crate) fn unlink<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        leaf: PmPtr,
    ) -> Result<(), Corrupt> {
        loop {
            match self.try_unlink::<K>(pool, key, leaf)? {
                Ok(false) => return Ok(()),
                Ok(true) => break,
                Err(Restart) => {}
            }
        }
        while self.try_merge_path::<K>(pool, key)?.is_err() {}
        Ok(())
    }

    /// Tries once to remove `leaf`. Returns `true` if a node on the path has become sparse.
    ///
    /// The path begins at the last node that has a child to its left, else at the root. Below that
    /// node it takes first children. The lowest node with another child drops the path's child,
    /// and the nodes below it, which have no other, are freed. If the dropped child was a first
    /// one, the separator to the left of the path becomes the low key of the leaf on the right.
    fn try_unlink<K: Key>(
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
                self.set_slot(top, top_at - 1, Slot { child, ..first });
            }
        }
        for &(index, ..) in &path[lowest + 1..] {
            self.nodes.put_back(index);
        }
        Ok(Ok(self.node(index).count() <= SPARSE))
    }
}
