//! Giving room back: on the way to a key whose leaf has become sparse, nodes are merged, refilled
//! and unlinked, each in one transaction with its parent. Nothing here needs a new block.
//!
//! | met on the way down | remedy |
//! | --- | --- |
//! | the root, an inner node without separators | its only child becomes the root |
//! | a leaf without entries | it takes its right sibling's, or goes with its left one |
//! | a sparse node whose sibling leaves room | merge: the right one's entries move to the left one |
//! | an inner node with at most one separator, and a sibling too full to merge with | it takes a child from it |
//!
//! So a parent that loses a child always has another separator left, or is the root.

use super::descend::{Interrupted, NodeRef, Path, Target};
use super::remove::SPARSE;
use super::{AllPm, AllPmSpec, Protocol, root_cell, root_word};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Changes, Layout, Ordered};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Defect, Medium, PmPtr};

/// The most remedies that one remove sees to.
const REMEDIES_MAX: usize = 128;

/// Two neighbours under one parent; the parent's separator of that index lies between them.
struct Pair<'a, M> {
    left: NodeRef<'a, M>,
    right: NodeRef<'a, M>,
    between: usize,
}

/// What is to be done about a node.
enum Remedy<'a, M> {
    /// The root has one child: make that the root.
    Collapse,
    /// Move everything of the right one to the left one.
    Merge(Pair<'a, M>),
    /// Move the last child of the left one to the right one.
    FromLeft(Pair<'a, M>),
    /// Move the first child of the right one to the left one.
    FromRight(Pair<'a, M>),
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Does what is to be done on the way to `key`, its leaf last.
    #[cold]
    pub(super) fn shrink(&self, key: K::Ref<'_>) -> Result<(), TreeError> {
        // Each remedy may leave the parent sparse, or the next node as it should be. In a sound
        // tree there are a few for each level.
        for _ in 0..REMEDIES_MAX {
            if !self.retry(|tree, guard| tree.try_shrink(key, guard))? {
                break;
            }
        }
        Ok(())
    }

    /// Does the first thing that is to be done on the way to `key`; false if there is none.
    fn try_shrink(&self, key: K::Ref<'_>, guard: &Guard) -> Result<bool, Interrupted> {
        let (path, remedy) = self.descend(Target::At(key), |path| self.remedy(path))?;
        match remedy {
            None => return Ok(false),
            Some(Remedy::Collapse) => self.collapse(&path, guard)?,
            Some(Remedy::Merge(pair)) => self.merge(&path, &pair, guard)?,
            Some(Remedy::FromLeft(pair)) => self.rotate(&path, &pair, true)?,
            Some(Remedy::FromRight(pair)) => self.rotate(&path, &pair, false)?,
        }
        Ok(true)
    }

    /// What is to be done about the node of `path`, if anything.
    fn remedy<'a>(&'a self, path: &Path<'a, M>) -> Result<Option<Remedy<'a, M>>, Interrupted> {
        let level = path.node.level;
        let count = Self::count(path.node.view, level);
        if path.is_root {
            return Ok((level > 0 && count == 0).then_some(Remedy::Collapse));
        }
        let (starving, capacity) = (count <= level.min(1) as usize, Self::capacity(level));
        if !starving && count * SPARSE > capacity {
            return Ok(None);
        }
        let Some((pair, from_left)) = self.sibling(path)? else { return Ok(None) };
        let sibling = if from_left { &pair.left } else { &pair.right };
        let theirs = Self::count(sibling.view, level);
        // An inner node also takes the separator that stood between the two.
        let together = count + theirs + level.min(1) as usize;
        let roomy = together * SPARSE <= capacity * (SPARSE - 1);
        Ok(if roomy || (starving && together <= capacity) {
            Some(Remedy::Merge(pair))
        } else if starving && from_left {
            Some(Remedy::FromLeft(pair))
        } else if starving {
            Some(Remedy::FromRight(pair))
        } else {
            None
        })
    }

    /// The node of `path` and a neighbour under the same parent: the left one (true) if there is
    /// one.
    fn sibling<'a>(
        &'a self,
        path: &Path<'a, M>,
    ) -> Result<Option<(Pair<'a, M>, bool)>, Interrupted> {
        let Path { parent, node, rank, .. } = *path;
        let children = parent.certify(Ok(S::Inner::count(parent.view) + 1))?;
        let other = match rank.checked_sub(1) {
            Some(left) => left,
            None if children > 1 => 1,
            None => return Ok(None),
        };
        let (at, _) = parent.certify(Self::child(parent.view, other))?;
        if at == node.at {
            let what = "child of a node twice";
            return Err(parent.view.corrupt(0, what, 1, at.offset()).into());
        }
        let sibling = self.enter(at, node.level, &parent)?;
        Ok(Some(if rank > 0 {
            (Pair { left: sibling, right: node, between: rank - 1 }, true)
        } else {
            (Pair { left: node, right: sibling, between: 0 }, false)
        }))
    }

    /// Makes the only child of the root the root.
    ///
    /// ```text
    /// C root word    8 B
    /// F root word |  -> durable    budget: 1 line, 1 fence
    /// ```
    fn collapse(&self, path: &Path<'_, M>, guard: &Guard) -> Result<(), Interrupted> {
        let anchor = path.parent.upgrade()?;
        let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::CountStale);
        let root = if is_blind { path.node.lock()? } else { path.node.upgrade()? };
        let level = path.node.level;
        let child = PmPtr::new(self.image(path.node.view, level)?.link);
        let word = root_word(child, level - 1);
        S::Protocol::set(&self.pool, root_cell(path.parent.view), word);
        root.obsolete();
        drop(anchor);
        let _ = self.pool.try_retire(path.node.at, Self::NODE_BYTES, guard);
        Ok(())
    }

    /// Moves the entries of the right node to the left one, and unlinks the right one.
    ///
    /// ```text
    /// W entries in free places of the left node    crash before C: nothing shows them
    /// F them |
    /// C log: commit words of left node and parent, link of a left leaf
    /// W these, and slot arrays; F |
    /// W log ended; F |              -> durable    4 fences
    /// ```
    fn merge(
        &self,
        path: &Path<'_, M>,
        pair: &Pair<'_, M>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        let (level, above) = (path.node.level, path.parent.view);
        let _parent = path.parent.upgrade()?;
        let _left = pair.left.upgrade()?;
        let removed = pair.right.upgrade()?;
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
            K::block(&self.pool, separator)?
        } else {
            None
        };
        Self::write_free_slots(pair.left.view, level, &new);
        let mut changes = Changes::new();
        Self::plan(pair.left.view, &left, &mut changes);
        S::Inner::plan(above, &parent, &mut changes);
        self.protocol.transact(&self.pool, &changes, || {
            Self::apply(pair.left.view, &left);
            S::Inner::apply(above, &parent);
        });
        removed.obsolete();
        // What is no such block is damage to what is gone; nothing is to be done about it.
        let _ = self.pool.try_retire(pair.right.at, Self::NODE_BYTES, guard);
        if let Some((block, bytes)) = record {
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        Ok(())
    }

    /// Moves a child between two inner nodes, through the separator above them.
    ///
    /// ```text
    /// W entry in a free place of the taker    crash before C: nothing shows it
    /// F it |
    /// C log: commit words and a link of both nodes, the separator between them
    /// W these, and slot arrays; F |
    /// W log ended; F |              -> durable    4 fences
    /// ```
    fn rotate(
        &self,
        path: &Path<'_, M>,
        pair: &Pair<'_, M>,
        from_left: bool,
    ) -> Result<(), Interrupted> {
        let (level, above) = (path.node.level, path.parent.view);
        debug_assert!(level > 0, "leaves are merged, never refilled");
        let _parent = path.parent.upgrade()?;
        let _left = pair.left.upgrade()?;
        let _right = pair.right.upgrade()?;
        let mut left = self.image(pair.left.view, level)?;
        let mut right = self.image(pair.right.view, level)?;
        let between = S::Inner::nth(above, pair.between)?;
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
        let word = S::Inner::ENTRIES + 2 * between.index;
        Self::write_free_slots(taker, level, &[new]);
        let mut changes = vec![(above.word(word), up)];
        S::Inner::plan(pair.left.view, &left, &mut changes);
        S::Inner::plan(pair.right.view, &right, &mut changes);
        self.protocol.transact(&self.pool, &changes, || {
            S::Inner::apply_key(above, between.index, up);
            S::Inner::apply(pair.left.view, &left);
            S::Inner::apply(pair.right.view, &right);
        });
        Ok(())
    }
}
