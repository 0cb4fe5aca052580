//! Shadowing: a leaf that changes is written anew, and the copy takes its place.
//!
//! What leads to a leaf are two words, the pointer in its parent and the link of the leaf to its left:
//! a redo transaction swaps both. Where only one word leads there, it is swapped by itself. The
//! parent's word is changed in place, so nothing above it is copied: the short circuit.
//!
//! 1. Whatever is read to find the two words is read before a latch is taken, for reading may wait.
//! 2. The node that was copied is obsolete before the latch of its parent is released.
//! 3. A leaf's first entry cannot lie below the separator that leads to it. So the leaf to its left is
//!    the last one below that separator, whatever other threads do above, for as long as the leaf
//!    itself does not change.

use super::descend::{Interrupted, NodeGuard, NodeRef, Path, Target};
use super::leaf_update::{LeafUpdate, LoggedInPlace};
use super::split::Half;
use super::{AllPm, AllPmSpec, Undo, root_cell, root_word};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Changes, Image, Layout, Linked, Ordered, SlotPos, View, Wordwise};
use bristlecone_pmem::sync::{Guard, collect};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::time::Duration;

/// By a copy that takes the leaf's place.
#[derive(Debug)]
pub struct CopyOnWrite;

impl<S> LeafUpdate<S> for CopyOnWrite
where
    S: AllPmSpec<Leaf: Linked + Wordwise, Inner: Linked, Protocol = Undo>,
{
    fn beside<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        path: &Path<'a, M>,
    ) -> Result<Option<NodeRef<'a, M>>, Interrupted> {
        tree.left_of(path)
    }

    /// ```text
    /// N copy with the entry |    crash before C: nothing reaches it
    /// C log: the parent's pointer, the left leaf's link |
    /// W both, F |                crash from here on: the log is replayed
    /// W log ended, F |           -> durable   budget: lines of the copy + 4, 4 fences
    /// ```
    fn insert<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        rank: usize,
        entry: Entry,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        let mut entries = entries_of::<S::Leaf, M>(path.node.view)?;
        let last = entries.len();
        let place = if S::Leaf::is_sorted(path.node.view) { rank.min(last) } else { last };
        entries.insert(place, entry);
        match tree.spare()? {
            Some(copy) => tree.put_in_place(path, left, held, copy, &entries, guard),
            None => {
                <LoggedInPlace as LeafUpdate<S>>::insert(tree, path, left, held, rank, entry, guard)
            }
        }
    }

    /// As an insert, with one entry less.
    fn remove<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        at: SlotPos,
        guard: &Guard,
    ) -> Result<usize, Interrupted> {
        let gone = S::Leaf::places(path.node.view)?.iter().position(|&index| index == at.index);
        let mut entries = entries_of::<S::Leaf, M>(path.node.view)?;
        entries.remove(gone.expect("what is removed is there"));
        let Some(copy) = tree.spare()? else {
            return <LoggedInPlace as LeafUpdate<S>>::remove(tree, path, left, held, at, guard);
        };
        tree.put_in_place(path, left, held, copy, &entries, guard)?;
        Ok(entries.len())
    }

    fn split<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        path: &Path<'a, M>,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        tree.split_by_copy(path, key, guard)
    }

    /// Every change leaves a block behind, which waits until no reader can hold it. So a pool that is
    /// full may have room in a moment.
    fn may_try_again<M: Medium>(pool: &Pool<M>, refused: &TreeError, refusals: usize) -> bool {
        let is_full = matches!(refused, TreeError::Pool(PoolError::Full { .. }));
        let waits = refusals == 1 || pool.waiting_blocks() > 0;
        if !is_full || !waits || refusals > REFUSALS_MAX {
            return false;
        }
        collect();
        if refusals > YIELDS {
            std::thread::sleep(PAUSE);
        } else {
            std::thread::yield_now();
        }
        true
    }
}

/// Blocks that may wait for readers before leaves change in place.
const WAITING_MAX: usize = 64;

/// How often an insert waits for blocks that readers may hold; how often it only lets others go first;
/// and how long it waits where that is not enough.
const REFUSALS_MAX: usize = 128;
const YIELDS: usize = 8;
const PAUSE: Duration = Duration::from_millis(1);

/// The entries of a leaf in its own order.
fn entries_of<L: Layout, M: Medium>(leaf: View<'_, M>) -> Result<Vec<Entry>, Corrupt> {
    Ok(L::places(leaf)?.into_iter().map(|index| leaf.entry(L::ENTRIES, index)).collect())
}

impl<M: Medium, K: Key, S> AllPm<M, K, S>
where
    S: AllPmSpec<Leaf: Linked + Wordwise, Inner: Linked, Protocol = Undo>,
{
    /// A block for a copy; nothing if there is no room for one, or if so many wait for readers already
    /// that they would crowd out the rest of the pool. The leaf then changes in place, as [`LoggedInPlace`]
    /// does it.
    fn spare(&self) -> Result<Option<PmPtr>, PoolError> {
        if self.pool.waiting_blocks() >= WAITING_MAX {
            collect();
            if self.pool.waiting_blocks() >= WAITING_MAX {
                return Ok(None);
            }
        }
        match self.pool.reserve(Self::NODE_BYTES) {
            Ok(copy) => Ok(Some(copy)),
            Err(PoolError::Full { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The leaf to the left of that of `path`, if it is not the first.
    fn left_of<'a>(&'a self, path: &Path<'a, M>) -> Result<Option<NodeRef<'a, M>>, Interrupted> {
        let Some(low) = path.low else { return Ok(None) };
        let left = if let Some(rank) = path.rank.checked_sub(1) {
            let (at, _) = path.parent.certify(Self::child(path.parent.view, rank))?;
            self.enter(at, 0, &path.parent)?
        } else {
            let low = path.parent.certify(K::read(&self.pool, low))?;
            self.leaf(Target::Below(K::borrow(&low)))?.node
        };
        if left.at == path.node.at {
            let what = "leaf to the left of itself";
            return Err(left.view.corrupt(0, what, 0, left.at.offset()).into());
        }
        Ok(Some(left))
    }

    /// The word that leads to the node of `path`, and what it is to be if `at` takes its place.
    fn pointer<'a>(path: &Path<'a, M>, at: PmPtr) -> Result<(&'a PmWord, u64), Corrupt> {
        let above = path.parent.view;
        if path.is_root {
            return Ok((root_cell(above), root_word(at, path.node.level)));
        }
        let word = match path.rank.checked_sub(1) {
            None => S::Inner::LINK,
            Some(last) => S::Inner::ENTRIES + 2 * S::Inner::nth(above, last)?.index + 1,
        };
        Ok((above.word(word), at.offset()))
    }

    /// The link that leads to the leaf of `path`, and what it is to be if `at` takes its place.
    fn link_to<'a>(
        path: &Path<'_, M>,
        left: NodeRef<'a, M>,
        at: PmPtr,
    ) -> Result<(&'a PmWord, u64), Corrupt> {
        let (found, expected) = (S::Leaf::link(left.view), path.node.at.offset());
        if found != expected {
            return Err(left.view.corrupt(S::Leaf::LINK, "link of a leaf", expected, found));
        }
        Ok((left.view.word(S::Leaf::LINK), at.offset()))
    }

    /// Writes `entries` to the fresh block `copy`, which then takes the place of the leaf of `path`.
    fn put_in_place(
        &self,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        copy: PmPtr,
        entries: &[Entry],
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        let prepared = || -> Result<_, Interrupted> {
            let parent = path.parent.upgrade()?;
            let beside = left.map(|left| left.upgrade()).transpose()?;
            let mut changes = vec![Self::pointer(path, copy)?];
            if let Some(left) = left {
                changes.push(Self::link_to(path, left, copy)?);
            }
            self.write_new(copy, 0, S::Leaf::link(path.node.view), entries)?;
            Ok((changes, parent, beside))
        };
        let (changes, parent, beside) = prepared().inspect_err(|_| {
            self.pool.release(copy, Self::NODE_BYTES);
        })?;
        self.swap(&changes);
        held.obsolete();
        drop((beside, parent));
        let _ = self.pool.try_retire(path.node.at, Self::NODE_BYTES, guard);
        Ok(())
    }

    /// Makes one or two words lead to nodes that were written.
    ///
    /// ```text
    /// one word                        two words
    ///   |                               |               what was written
    ///   C word                          C log |
    ///   F word |  -> durable            W words, F |
    ///                                   W log ended, F |   -> durable
    /// budget: 1 line, 2 fences        budget: 4 lines, 4 fences
    /// ```
    fn swap(&self, changes: &Changes<'_>) {
        let medium = self.medium();
        let published = medium.fence();
        if let [(word, value)] = changes[..] {
            medium.commit(word, value, published);
            let _ = medium.persist(core::slice::from_ref(word));
        } else {
            self.pool.redo_log().commit(changes, published).finish();
        }
    }

    /// Splits a full node whose parent has room: both halves are new, and so is the parent, unless it is
    /// the root block. What leads to the parent is a single word, which is swapped with the link to a
    /// left half that is a leaf.
    ///
    /// ```text
    /// N both halves, separator, parent or new root |    crash before C: nothing reaches them
    /// C log: the pointer to the parent, the link to the left half |    or the one word alone
    /// W both, F |
    /// W log ended, F |              -> durable    4 fences, or 2
    /// ```
    fn split_by_copy<'a>(
        &'a self,
        path: &Path<'a, M>,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        let level = path.node.level;
        let above = self.above(path, key)?;
        let left = if level == 0 { self.left_of(path)? } else { None };
        let _above = above.as_ref().map(|above| above.parent.upgrade()).transpose()?;
        let parent = path.parent.upgrade()?;
        let node = path.node.upgrade()?;
        let _left = left.map(|left| left.upgrade()).transpose()?;
        let mut image = self.image(path.node.view, level)?;
        let mut made = Made { blocks: Vec::new() };
        let half = self.halve(&mut image)?;
        let prepared = self.copies(path, above.as_ref(), left, &image, &half, &mut made);
        let changes = prepared.inspect_err(|_| {
            self.abandon(&half);
            made.blocks.iter().for_each(|&at| self.pool.release(at, Self::NODE_BYTES));
        })?;
        self.swap(&changes);
        node.obsolete();
        let _ = self.pool.try_retire(path.node.at, Self::NODE_BYTES, guard);
        if above.is_some() {
            parent.obsolete();
            let _ = self.pool.try_retire(path.parent.at, Self::NODE_BYTES, guard);
        }
        Ok(())
    }

    /// The parent of `path` as a node of its own parent; nothing if it is the root block.
    fn above<'a>(
        &'a self,
        path: &Path<'a, M>,
        key: K::Ref<'_>,
    ) -> Result<Option<Path<'a, M>>, Interrupted> {
        if path.is_root {
            return Ok(None);
        }
        let level = path.node.level + 1;
        let reached = |path: &Path<'a, M>| Ok((path.node.level == level).then_some(()));
        let (above, _) = self.descend(Target::At(key), reached)?;
        if above.node.at == path.parent.at { Ok(Some(above)) } else { Err(Interrupted::Restart) }
    }

    /// Writes the left half and what is to lead to both, and gives the words to swap.
    fn copies<'a>(
        &self,
        path: &Path<'a, M>,
        above: Option<&Path<'a, M>>,
        left: Option<NodeRef<'a, M>>,
        image: &Image,
        half: &Half,
        made: &mut Made,
    ) -> Result<Changes<'a>, Interrupted> {
        let level = path.node.level;
        let lower = made.reserve(self)?;
        let entries: Vec<_> = image.slots.iter().map(|slot| slot.entry).collect();
        self.write_new(lower, level, image.link, &entries)?;
        let entry = Entry::plain(half.separator, half.at.offset());
        let Some(above) = above else {
            let root = self.new_root(lower, level + 1, entry)?;
            made.blocks.push(root);
            return Ok(vec![(root_cell(path.parent.view), root_word(root, level + 1))]);
        };
        let mut parent = self.image(path.parent.view, level + 1)?;
        self.check_between(path.parent.view, &parent, path.rank, entry.key)?;
        match path.rank.checked_sub(1) {
            None => parent.link = lower.offset(),
            Some(last) => parent.slots[last].entry.value = lower.offset(),
        }
        parent.insert(path.rank, entry);
        let copy = made.reserve(self)?;
        let entries: Vec<_> = parent.slots.iter().map(|slot| slot.entry).collect();
        self.write_new(copy, level + 1, parent.link, &entries)?;
        let mut changes = vec![Self::pointer(above, copy)?];
        if let Some(left) = left {
            changes.push(Self::link_to(path, left, lower)?);
        }
        Ok(changes)
    }
}

/// Blocks that were reserved for nodes that nothing reaches yet.
struct Made {
    blocks: Vec<PmPtr>,
}

impl Made {
    fn reserve<M: Medium, K: Key, S: AllPmSpec>(
        &mut self,
        tree: &AllPm<M, K, S>,
    ) -> Result<PmPtr, PoolError> {
        let at = tree.pool.reserve(AllPm::<M, K, S>::NODE_BYTES)?;
        self.blocks.push(at);
        Ok(at)
    }
}
