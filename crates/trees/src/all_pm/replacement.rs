//! Replacement of leaves: a full leaf gives way to two new ones, and two sparse leaves to one.
//! Inner nodes change in place, after the leaves.
//!
//! 1. A thread finds the left neighbour before it takes a latch. It then latches the parent, the
//!    left neighbour and the leaves, each at the version that it read, and holds all of them until
//!    the parent has changed. So no two replacements change one link.
//! 2. The store that links new leaves commits: the left neighbour's link. The first leaf has no
//!    left neighbour, so its parent's pointer or the root word commits.
//! 3. A crash may leave a parent that lacks a new leaf, has an old one, or names a child twice.
//!    Recovery mends parents from the chain of leaves (`mend.rs`).
//! 4. A full parent is split first. So the parent of a replaced leaf has room for one more, also
//!    in recovery.

use super::descend::{Interrupted, NodeGuard, NodeRef, Path, Siblings};
use super::leaf_update::{FailureAtomic, LeafUpdate};
use super::{AllPm, AllPmSpec, root_cell, root_word};
use crate::key::{Entry, Key};
use crate::node::{Atomic, Changes, Image, InPlace, Layout, LowKeyed, Slot, SlotPos};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord, PoolError};

/// New leaves take the place of old ones; inner nodes change in place.
#[derive(Debug)]
pub struct Replacement;

impl<S: AllPmSpec<Leaf: Atomic + LowKeyed, Inner: InPlace>> LeafUpdate<S> for Replacement {
    const MERGES_HALVES: bool = true;
    const LOW: Option<usize> = Some(S::Leaf::LOW);

    /// As [`FailureAtomic`].
    #[inline(always)]
    fn insert<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        rank: usize,
        entry: Entry,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        <FailureAtomic as LeafUpdate<S>>::insert(tree, path, left, held, rank, entry, guard)
    }

    /// As [`FailureAtomic`].
    #[inline(always)]
    fn remove<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        at: SlotPos,
        guard: &Guard,
    ) -> Result<usize, Interrupted> {
        <FailureAtomic as LeafUpdate<S>>::remove(tree, path, left, held, at, guard)
    }

    fn split<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        path: &Path<'a, M>,
        _key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        if path.node.level == 0 { tree.split_leaf(path, guard) } else { tree.split_in_place(path) }
    }

    /// Leaves merge by replacement, inner nodes through the log.
    fn merge<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        path: &Path<'a, M>,
        pair: &Siblings<'a, M>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        if path.node.level == 0 {
            tree.merge_leaves(path, pair, guard)
        } else {
            tree.structure().merge(path, pair, guard)
        }
    }

    fn mend<M: Medium, K: Key>(tree: &AllPm<M, K, S>) -> Result<(), Corrupt> {
        tree.mend_parents()
    }
}

/// Blocks reserved for new nodes that nothing points to yet.
struct NewBlocks {
    blocks: Vec<PmPtr>,
}

impl NewBlocks {
    fn reserve<M: Medium, K: Key, S: AllPmSpec>(
        &mut self,
        tree: &AllPm<M, K, S>,
    ) -> Result<PmPtr, PoolError> {
        let at = tree.pool.reserve(AllPm::<M, K, S>::NODE_BYTES)?;
        self.blocks.push(at);
        Ok(at)
    }
}

/// Returns the entries of slots.
pub(super) fn entries_of(slots: &[Slot]) -> Vec<Entry> {
    slots.iter().map(|slot| slot.entry).collect()
}

impl<M: Medium, K: Key, S> AllPm<M, K, S>
where
    S: AllPmSpec<Leaf: Atomic + LowKeyed, Inner: InPlace>,
{
    /// Fills a new leaf. Durable after the next fence.
    fn fill_leaf(&self, at: PmPtr, low: u64, link: u64, entries: &[Entry]) -> Result<(), Corrupt> {
        self.structure().fill_leaf(self.node(at)?, low, link, entries);
        Ok(())
    }

    /// Stores a pointer to new leaves, which are durable. Durable on return.
    fn publish(&self, (word, value): (&PmWord, u64), fenced: Fenced) -> Fenced {
        self.medium().commit(word, value, fenced);
        self.medium().persist(core::slice::from_ref(word))
    }

    /// Replaces a full leaf N, whose parent has space, by two new ones.
    ///
    /// ```text
    /// |                             the batch of flushes begins
    /// N leaf A, leaf B, separator | crash before C: unreachable, free again
    /// C link of the left neighbour, F |   crash from here on: recovery mends the parent
    /// W parent: N becomes A, F |    this is C if N is the first leaf
    /// W parent: shift in (separator, B)
    ///                               -> durable   budget: lines of two leaves + 2 and the shift;
    ///                                  the first leaf has one line, one fence less
    /// ```
    /// If N is the root, the batch has a new root as well, and C is the root word.
    fn split_leaf<'a>(&'a self, path: &Path<'a, M>, guard: &Guard) -> Result<(), Interrupted> {
        let view = path.node.view;
        let left = self.left_of(path)?;
        let _parent = path.parent.upgrade()?;
        let is_open = M::INJECTS_DEFECTS && self.medium().injects(Defect::NeighborOpen);
        let held = if is_open { None } else { left };
        let _left = held.map(|left| left.upgrade()).transpose()?;
        let node = path.node.upgrade_beside(held.as_slice())?;
        self.structure().check_in_use(core::slice::from_ref(path))?;
        let image = self.structure().image(view, 0)?;
        let middle = image.slots.len() / 2;
        if middle == 0 {
            let (expected, found) = (S::Leaf::CAPACITY as u64, image.slots.len() as u64);
            return Err(view
                .corrupt(0, "number of entries of a full leaf", expected, found)
                .into());
        }
        let mut new = NewBlocks { blocks: Vec::new() };
        let _ = self.medium().fence();
        let separator = self.structure().copy_separator(image.slots[middle].entry)?;
        let prepared = self.write_halves(path, left, &image, separator, &mut new);
        let (words, upper) = prepared.inspect_err(|_| {
            new.blocks.iter().for_each(|&at| self.pool.release(at, Self::NODE_BYTES));
            if let Ok(Some((block, bytes))) = K::block(&self.pool, separator) {
                self.pool.release(block, bytes);
            }
        })?;
        let mut fenced = self.medium().fence();
        for word in words {
            fenced = self.publish(word, fenced);
        }
        if !path.is_root {
            let parent = S::Inner::entries(path.parent.view);
            let entry = Entry::plain(separator, upper.offset());
            let _ = parent.shift_in(parent.count(), path.rank, entry);
        }
        drop(node);
        let _ = self.pool.try_retire(path.node.at, Self::NODE_BYTES, guard);
        Ok(())
    }

    /// Writes the halves of the leaf of `path`, and a new root if it is the root. Returns the words
    /// that lead to them, in the order in which they change, and the right half.
    fn write_halves<'a>(
        &self,
        path: &Path<'a, M>,
        left: Option<NodeRef<'a, M>>,
        image: &Image,
        separator: u64,
        new: &mut NewBlocks,
    ) -> Result<(Changes<'a>, PmPtr), Interrupted> {
        let (view, above) = (path.node.view, path.parent.view);
        if !path.is_root {
            let parent = self.structure().image(above, 1)?;
            self.structure().check_between(above, &parent, path.rank, separator)?;
        }
        let (lower, upper) = (new.reserve(self)?, new.reserve(self)?);
        let (below, from) = image.slots.split_at(image.slots.len() / 2);
        self.fill_leaf(lower, view.load(S::Leaf::LOW), upper.offset(), &entries_of(below))?;
        self.fill_leaf(upper, separator, image.link, &entries_of(from))?;
        if path.is_root {
            let entry = Entry::plain(separator, upper.offset());
            let root = self.structure().new_root(lower, 1, entry)?;
            new.blocks.push(root);
            return Ok((vec![(root_cell(above), root_word(root, 1))], upper));
        }
        Ok((Self::words_to(path, left, lower)?, upper))
    }

    /// Returns the words that lead to the leaf of `path`, with their values if `at` takes its
    /// place: the link of the left neighbour, then the pointer in the parent.
    fn words_to<'a>(
        path: &Path<'a, M>,
        left: Option<NodeRef<'a, M>>,
        at: PmPtr,
    ) -> Result<Changes<'a>, Corrupt> {
        let mut words = vec![Self::pointer(path, at)?];
        if let Some(left) = left {
            words.insert(0, Self::link_to(path, left, at)?);
        }
        Ok(words)
    }

    /// Replaces the leaves of `pair` by one new leaf. `path` leads to one of them.
    ///
    /// ```text
    /// |
    /// N leaf C |                    the pairs of both; crash before C: unreachable, free again
    /// C link of the left neighbour, F |   crash from here on: recovery mends the parent
    /// W parent: the left one becomes C, F |   this is C if it is the first leaf
    /// W parent: shift out the right one
    ///                               -> durable   budget: lines of a leaf + 2 and the shift; at the
    ///                                  first leaf one line, one fence less
    /// ```
    fn merge_leaves<'a>(
        &'a self,
        path: &Path<'a, M>,
        pair: &Siblings<'a, M>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        let low = pair.left.certify(Ok(pair.left.view.load(S::Leaf::LOW)))?;
        let path =
            Path { node: pair.left, rank: pair.between, low: (low != 0).then_some(low), ..*path };
        let before = self.left_of(&path)?;
        let _parent = path.parent.upgrade()?;
        let _before = before.map(|before| before.upgrade()).transpose()?;
        let mut held: Vec<_> = before.into_iter().collect();
        let left = pair.left.upgrade_beside(&held)?;
        held.push(pair.left);
        let right = pair.right.upgrade_beside(&held)?;
        let kept = self.structure().image(pair.left.view, 0)?;
        let moved = self.structure().image(pair.right.view, 0)?;
        let entries: Vec<_> = [&kept, &moved].iter().flat_map(|i| entries_of(&i.slots)).collect();
        if entries.len() > S::Leaf::CAPACITY || kept.link != pair.right.at.offset() {
            let (expected, found) = (pair.right.at.offset(), kept.link);
            let what = "entries or link of a sparse leaf";
            return Err(pair.left.view.corrupt(0, what, expected, found).into());
        }
        let separator = self.structure().nth_separator(path.parent.view, pair.between)?.entry.key;
        let record = K::block(&self.pool, separator)?;
        let fresh = self.pool.reserve(Self::NODE_BYTES)?;
        let _ = self.medium().fence();
        let filled = self.fill_leaf(fresh, low, moved.link, &entries);
        let words = filled
            .and_then(|()| Self::words_to(&path, before, fresh))
            .inspect_err(|_| self.pool.release(fresh, Self::NODE_BYTES))?;
        let mut fenced = self.medium().fence();
        for word in words {
            fenced = self.publish(word, fenced);
        }
        let parent = S::Inner::entries(path.parent.view);
        let _ = parent.shift_out(parent.count(), pair.between);
        drop((left, right));
        for leaf in [&pair.left, &pair.right] {
            let _ = self.pool.try_retire(leaf.at, Self::NODE_BYTES, guard);
        }
        if let Some((block, bytes)) = record {
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        Ok(())
    }

    /// Splits a full inner node whose parent has space: the upper half moves to a new node.
    ///
    /// ```text
    /// N right node |                crash before C: unreachable, free again
    /// C parent: shift in (middle separator, right node)
    /// W null child, F |             crash before: recovery cuts the node at the separator
    ///                               -> durable   budget: lines of a node + 1 and the shift
    /// ```
    /// Of the root: the new root is in the batch, and C is the root word: lines of two nodes + 2,
    /// 3 fences.
    fn split_in_place(&self, path: &Path<'_, M>) -> Result<(), Interrupted> {
        let (level, view) = (path.node.level, path.node.view);
        let above = path.parent.view;
        let is_open = M::INJECTS_DEFECTS && self.medium().injects(Defect::ChildrenUnheld);
        let upper = |count| if is_open { 0..0 } else { count / 2 + 1..count + 1 };
        let movers = self.structure().movers(&path.node, upper)?;
        let _parent = path.parent.upgrade()?;
        let _node = path.node.upgrade()?;
        self.structure().check_in_use(core::slice::from_ref(path))?;
        let _movers = NodeRef::upgrade_all(&movers, &[])?;
        let image = self.structure().image(view, level)?;
        let middle = image.slots.len() / 2;
        let up = image.slots[middle].entry;
        let mut new = NewBlocks { blocks: Vec::new() };
        let prepared = (|| -> Result<_, Interrupted> {
            if !path.is_root {
                let parent = self.structure().image(above, level + 1)?;
                self.structure().check_between(above, &parent, path.rank, up.key)?;
            }
            let right = new.reserve(self)?;
            let moved = entries_of(&image.slots[middle + 1..]);
            self.structure().write_new(right, level, up.value, &moved)?;
            let entry = Entry::plain(up.key, right.offset());
            let root = if path.is_root {
                Some(self.structure().new_root(path.node.at, level + 1, entry)?)
            } else {
                None
            };
            Ok((entry, root))
        })();
        let (entry, root) = prepared.inspect_err(|_| {
            new.blocks.iter().for_each(|&at| self.pool.release(at, Self::NODE_BYTES));
        })?;
        let fenced = self.medium().fence();
        if let Some(root) = root {
            let _ = self.publish((root_cell(above), root_word(root, level + 1)), fenced);
        } else {
            let parent = S::Inner::entries(above);
            let _ = parent.shift_in(parent.count(), path.rank, entry);
        }
        let _ = S::Inner::entries(view).cut(middle);
        self.structure().count_turns(&path.node, &movers);
        Ok(())
    }
}
