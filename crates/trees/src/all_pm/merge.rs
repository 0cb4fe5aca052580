//! Merges: a remove that leaves its leaf sparse merges, refills and unlinks nodes on the path to
//! its key, each in one transaction with the parent. No step needs a new block, so removes work in
//! a full pool.
//!
//! | node on the path | remedy |
//! | --- | --- |
//! | the root, an inner node without separators | its only child becomes the root |
//! | a leaf without entries | it takes its right sibling's entries, or its left one absorbs it |
//! | a sparse node and a sibling that fit in one | the right node's entries move to the left one |
//! | an inner node with at most one separator, sibling too full | it borrows a child from there |
//!
//! So a parent that loses a child keeps at least one separator, or is the root.

use super::descend::{DescentTarget, Interrupted, NodeRef, Path, Siblings, retry};
use super::leaf_update::SPARSE;
use super::structure::Structure;
use super::{root_cell, root_word};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::Changes;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Defect, Medium, PmPtr};

/// The most remedies that one remove applies.
const REMEDIES_MAX: usize = 128;

/// The remedy for a sparse node.
enum Remedy<'a, M> {
    /// Make the root's only child the root.
    Collapse,
    /// Move all entries of the right node to the left one.
    Merge(Siblings<'a, M>),
    /// Move the last child of the left node to the right one.
    BorrowFromLeft(Siblings<'a, M>),
    /// Move the first child of the right node to the left one.
    BorrowFromRight(Siblings<'a, M>),
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    /// Applies the remedies that nodes on the path to `key` need, from the root down.
    #[cold]
    pub(super) fn shrink(&self, key: K::Ref<'_>) -> Result<(), TreeError> {
        // A remedy may leave the parent sparse, or the next node as it should be. A sound tree
        // needs a few remedies for each level.
        for _ in 0..REMEDIES_MAX {
            if !retry(self.pool_ref(), |guard| self.try_shrink(key, guard))? {
                break;
            }
        }
        Ok(())
    }

    /// Applies the first remedy on the path to `key`. Returns `false` if no node needs one.
    fn try_shrink(&self, key: K::Ref<'_>, guard: &Guard) -> Result<bool, Interrupted> {
        let mut remedy = None;
        let (path, _) = self.descend(DescentTarget::At(key), &mut |path| {
            remedy = self.remedy(path)?;
            Ok(remedy.is_some())
        })?;
        match remedy {
            None => return Ok(false),
            Some(Remedy::Collapse) => self.collapse(&path, guard)?,
            Some(Remedy::Merge(pair)) => self.merge_siblings(&path, &pair, guard)?,
            Some(Remedy::BorrowFromLeft(pair)) => self.rotate(&path, &pair, true)?,
            Some(Remedy::BorrowFromRight(pair)) => self.rotate(&path, &pair, false)?,
        }
        Ok(true)
    }

    /// Returns the remedy that the node of `path` needs, if any.
    fn remedy<'a>(&'a self, path: &Path<'a, M>) -> Result<Option<Remedy<'a, M>>, Interrupted> {
        let level = path.node.level;
        let count = self.count(path.node.view, level);
        if path.is_root {
            return Ok((level > 0 && count == 0).then_some(Remedy::Collapse));
        }
        if level == 0 && self.merges_halves() {
            return self.remedy_of_halves(path);
        }
        let (underfull, capacity) = (count <= level.min(1) as usize, self.shape(level).capacity);
        if !underfull && count * SPARSE > capacity {
            return Ok(None);
        }
        let from_left = path.rank > 0;
        let other = if from_left { path.rank - 1 } else { 1 };
        let Some(pair) = self.sibling(path, other)? else { return Ok(None) };
        let sibling = if from_left { &pair.left } else { &pair.right };
        let sibling_count = self.count(sibling.view, level);
        // Merged inner nodes also hold the separator that was between them.
        let merged_count = count + sibling_count + level.min(1) as usize;
        let leaves_space = merged_count * SPARSE <= capacity * (SPARSE - 1);
        Ok(if leaves_space || (underfull && merged_count <= capacity) {
            Some(Remedy::Merge(pair))
        } else if underfull && from_left {
            Some(Remedy::BorrowFromLeft(pair))
        } else if underfull {
            Some(Remedy::BorrowFromRight(pair))
        } else {
            None
        })
    }

    /// Returns the merge of the leaf of `path` with a sibling, if both are below half.
    fn remedy_of_halves<'a>(
        &'a self,
        path: &Path<'a, M>,
    ) -> Result<Option<Remedy<'a, M>>, Interrupted> {
        let is_below_half =
            |leaf: &NodeRef<'_, M>| 2 * self.count(leaf.view, 0) < self.shape(0).capacity;
        if !is_below_half(&path.node) {
            return Ok(None);
        }
        for other in path.rank.checked_sub(1).into_iter().chain([path.rank + 1]) {
            if let Some(pair) = self.sibling(path, other)?
                && is_below_half(&pair.left)
                && is_below_half(&pair.right)
            {
                return Ok(Some(Remedy::Merge(pair)));
            }
        }
        Ok(None)
    }

    /// Returns the node of `path` with its sibling of rank `other` under the same parent, if there
    /// is one.
    fn sibling<'a>(
        &'a self,
        path: &Path<'a, M>,
        other: usize,
    ) -> Result<Option<Siblings<'a, M>>, Interrupted> {
        let Path { parent, node, rank, .. } = *path;
        let children = parent.certify(Ok(self.count(parent.view, 1) + 1))?;
        if other >= children {
            return Ok(None);
        }
        let (at, _) = parent.certify(self.child(parent.view, other))?;
        if at == node.at {
            let what = "two pointers of a node to one child";
            return Err(parent.view.corrupt(0, what, 1, at.offset()).into());
        }
        let sibling = self.enter(at, node.level, &parent)?;
        Ok(Some(if other < rank {
            Siblings { left: sibling, right: node, between: other }
        } else {
            Siblings { left: node, right: sibling, between: rank }
        }))
    }

    /// Makes the root's only child the root.
    ///
    /// ```text
    /// C root word    8 B
    /// F root word |  -> durable    budget: 1 line, 1 fence
    /// ```
    fn collapse(&self, path: &Path<'_, M>, guard: &Guard) -> Result<(), Interrupted> {
        let movers = self.movers(&path.node, |_| 0..1)?;
        let anchor = path.parent.upgrade()?;
        let is_blind = M::INJECTS_DEFECTS && self.medium().injects(Defect::CountStale);
        let root = if is_blind { path.node.lock()? } else { path.node.upgrade()? };
        let _movers = NodeRef::upgrade_all(&movers, &[])?;
        let level = path.node.level;
        let log = self.log_of(&path.node)?;
        let child = PmPtr::new(self.image(path.node.view, level)?.link);
        let word = root_word(child, level - 1);
        self.set_word(root_cell(path.parent.view), word);
        self.count_turns(&path.node, &movers);
        root.obsolete();
        drop(anchor);
        self.retire_node(path.node.at, log, guard);
        Ok(())
    }

    /// Moves the entries of the right node to the left one and unlinks the right node.
    ///
    /// ```text
    /// W entries in free places of the left node    crash before C: no commit word shows them
    /// F them |
    /// C log: commit words of left node and parent, link of a left leaf
    /// W these, and slot arrays; F |
    /// W log ended; F |              -> durable    4 fences
    /// ```
    pub(super) fn merge(
        &self,
        path: &Path<'_, M>,
        pair: &Siblings<'_, M>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        let (level, above) = (path.node.level, path.parent.view);
        let movers = self.movers(&pair.right, |count| 0..count + 1)?;
        let _parent = path.parent.upgrade()?;
        let _left = pair.left.upgrade()?;
        let removed = pair.right.upgrade_beside(&[pair.left])?;
        let _movers = NodeRef::upgrade_all(&movers, &[])?;
        let (log, freed_log) = (self.log_of(&path.parent)?, self.log_of(&pair.right)?);
        let mut parent = self.image(above, level + 1)?;
        let mut left = self.image(pair.left.view, level)?;
        let right = self.image(pair.right.view, level)?;
        let separator = parent.slots.remove(pair.between).entry.key;
        let down = Entry::plain(separator, right.link);
        let moved = right.slots.iter().map(|slot| slot.entry);
        let moved = (level > 0).then_some(down).into_iter().chain(moved);
        let new: Vec<_> = moved.map(|entry| left.insert(left.slots.len(), entry)).collect();
        let record = if level == 0 {
            left.link = right.link;
            K::block(self.pool_ref(), separator)?
        } else {
            None
        };
        self.write_free_slots(pair.left.view, level, &new);
        let mut changes = Changes::new();
        self.plan(pair.left.view, &left, &mut changes);
        self.plan(above, &parent, &mut changes);
        self.transact(log, &Changes::new(), &changes, &mut || {
            self.apply(pair.left.view, &left);
            self.apply(above, &parent);
        });
        self.count_turns(&pair.right, &movers);
        if let Some(removed) = removed {
            removed.obsolete();
        }
        if !(M::INJECTS_DEFECTS && self.pool_ref().medium().injects(Defect::NodeLeaks)) {
            self.retire_node(pair.right.at, freed_log, guard);
        }
        if let Some((block, bytes)) = record {
            let _ = self.pool_ref().try_retire(block, bytes, guard);
        }
        Ok(())
    }

    /// Moves one child between two inner nodes. The separator between them moves down, and another
    /// one moves up.
    ///
    /// ```text
    /// W entry in a free place of the taker    crash before C: no commit word shows it
    /// F it |
    /// C log: commit words and a link of both nodes, the separator between them
    /// W these, and slot arrays; F |
    /// W log ended; F |              -> durable    4 fences
    /// ```
    fn rotate(
        &self,
        path: &Path<'_, M>,
        pair: &Siblings<'_, M>,
        from_left: bool,
    ) -> Result<(), Interrupted> {
        let (level, above) = (path.node.level, path.parent.view);
        debug_assert!(level > 0, "an underfull leaf is merged and does not borrow");
        let giver = if from_left { &pair.left } else { &pair.right };
        let movers = self.movers(giver, |count| if from_left { count..count + 1 } else { 0..1 })?;
        let _parent = path.parent.upgrade()?;
        let _left = pair.left.upgrade()?;
        let _right = pair.right.upgrade_beside(&[pair.left])?;
        let _movers = NodeRef::upgrade_all(&movers, &[])?;
        let log = self.log_of(&path.parent)?;
        let mut left = self.image(pair.left.view, level)?;
        let mut right = self.image(pair.right.view, level)?;
        let between = self.nth_separator(above, pair.between)?;
        let separator = between.entry.key;
        let (taker, new, up) = if from_left {
            let last = left.slots.pop().ok_or(Interrupted::Restart)?.entry;
            let new = right.insert(0, Entry::plain(separator, right.link));
            right.link = last.value;
            (pair.right.view, new, last.key)
        } else {
            let first = right.slots.remove(0).entry;
            let new = left.insert(left.slots.len(), Entry::plain(separator, right.link));
            right.link = first.value;
            (pair.left.view, new, first.key)
        };
        let word = self.shape(level).entries.word(between.index);
        self.write_free_slots(taker, level, &[new]);
        let mut changes = vec![(above.word(word), up)];
        self.plan(pair.left.view, &left, &mut changes);
        self.plan(pair.right.view, &right, &mut changes);
        self.transact(log, &Changes::new(), &changes, &mut || {
            self.apply_separator(above, between.index, up);
            self.apply(pair.left.view, &left);
            self.apply(pair.right.view, &right);
        });
        self.count_turns(giver, &movers);
        Ok(())
    }
}
