//! Copy-on-write of leaves (shadowing): a change writes a new leaf, then swings the pointers to it.
//!
//! Two words point to a leaf: the pointer in its parent and the link of its left neighbour. A redo
//! transaction swings both. The first leaf has no left neighbour; its only pointer is swung by
//! itself. The parent's word is changed in place, so no node above is copied ("short-circuit
//! shadowing").
//!
//! 1. A thread reads everything that it needs to find the two words before it takes a latch,
//!    because reading may wait.
//! 2. The old leaf becomes obsolete before the latch of its parent is released.
//! 3. No entry of a leaf is below the separator that leads to the leaf. So its left neighbour is
//!    the last leaf below that separator. No other thread can change that while the leaf does not
//!    change.

use super::descend::{DescentTarget, Interrupted, NodeGuard, NodeRef, Path};
use super::leaf_update::{LeafUpdate, LoggedInPlace};
use super::{AllPm, AllPmSpec, Undo, root_cell, root_word};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Changes, Layout, Linked, Ordered, SlotPos, View, Wordwise};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::time::Duration;

/// Copy-on-write: a new leaf takes the old one's place.
#[derive(Debug)]
pub struct CopyOnWrite;

impl<S> LeafUpdate<S> for CopyOnWrite
where
    S: AllPmSpec<Leaf: Linked + Wordwise, Inner: Linked, Protocol = Undo>,
{
    fn leaf<'a, M: Medium, K: Key>(
        tree: &'a AllPm<M, K, S>,
        key: K::Ref<'_>,
    ) -> Result<(Path<'a, M>, Option<Path<'a, M>>), Interrupted> {
        let mut fork = None;
        let (path, _) = tree.descend(DescentTarget::At(key), |path| {
            if path.rank > 0 {
                fork = Some(*path);
            }
            Ok(None::<()>)
        })?;
        Ok((path, fork))
    }

    /// ```text
    /// W record of the copy's block, F
    /// N copy with the entry |    crash before C: nothing points to it
    /// C log: the parent's pointer, the left leaf's link |
    /// W both, F |                crash from here on: the log is replayed
    /// W log ended, F |           -> durable   budget: lines of the copy + 5, 4 fences
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
        let copy = tree.structure().reserve_node()?;
        tree.replace_leaf(path, left, held, copy, &entries, guard)
    }

    /// As [`insert`](LeafUpdate::insert), with one entry less. In a full pool the leaf changes in
    /// place, as with [`LoggedInPlace`]: else nothing could be removed from it.
    fn remove<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        path: &Path<'_, M>,
        left: Option<NodeRef<'_, M>>,
        held: NodeGuard<'_, M>,
        at: SlotPos,
        guard: &Guard,
    ) -> Result<usize, Interrupted> {
        let gone =
            S::Leaf::slot_indices(path.node.view)?.iter().position(|&index| index == at.index);
        let mut entries = entries_of::<S::Leaf, M>(path.node.view)?;
        entries.remove(gone.expect("the search found the entry in this leaf"));
        let copy = match tree.structure().reserve_node() {
            Ok(copy) => copy,
            Err(PoolError::Full { .. }) => {
                return <LoggedInPlace as LeafUpdate<S>>::remove(tree, path, left, held, at, guard);
            }
            Err(error) => return Err(error.into()),
        };
        tree.replace_leaf(path, left, held, copy, &entries, guard)?;
        Ok(entries.len())
    }

    fn insert_and_split<M: Medium, K: Key>(
        tree: &AllPm<M, K, S>,
        key: K::Ref<'_>,
        value: u64,
    ) -> Result<bool, TreeError> {
        tree.insert_and_split_by_copy(key, value)
    }

    /// Checks the blocks that interrupted changes have recorded. What no pointer reaches is free.
    fn mend<M: Medium, K: Key>(tree: &AllPm<M, K, S>) -> Result<(), Corrupt> {
        for block in tree.protocol.allocated(&tree.pool)? {
            let _ = tree.node(block)?;
        }
        Ok(())
    }

    /// Each change retires a leaf, whose block is free only after all readers have unpinned. So a
    /// full pool may have space again after a short wait.
    fn may_retry<M: Medium>(pool: &Pool<M>, refused: &TreeError, refusals: usize) -> bool {
        let is_full = matches!(refused, TreeError::Pool(PoolError::Full { .. }));
        let waits = refusals == 1 || pool.waiting_blocks() > 0;
        if !is_full || !waits || refusals > REFUSALS_MAX {
            return false;
        }
        pool.collect();
        if M::spin_hint() {
            return true; // The medium has let another thread run.
        }
        if M::CONTROLS_SCHEDULE {
            return refusals == 1; // No other thread runs, so none unpins.
        }
        if refusals > YIELDS {
            std::thread::sleep(PAUSE);
        } else {
            std::thread::yield_now();
        }
        true
    }
}

/// Bounds of one insert's wait for retired blocks: the most retries, how many of these only yield,
/// and the pause before each later one. So an insert into a full pool pauses at most 120 times.
const REFUSALS_MAX: usize = 128;
const YIELDS: usize = 8;
const PAUSE: Duration = Duration::from_millis(1);

/// Returns the entries of a leaf in block order.
fn entries_of<L: Layout, M: Medium>(leaf: View<'_, M>) -> Result<Vec<Entry>, Corrupt> {
    Ok(L::slot_indices(leaf)?.into_iter().map(|index| leaf.entry(L::ENTRIES, index)).collect())
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Returns the left neighbour of the leaf of `path`: the last leaf below the left sibling of
    /// the node of `fork`, the lowest node on the way to the leaf that has one.
    pub(super) fn last_leaf_before<'a>(
        &'a self,
        fork: &Path<'a, M>,
        path: &Path<'a, M>,
    ) -> Result<NodeRef<'a, M>, Interrupted> {
        let (mut parent, mut rank) = (fork.parent, fork.rank - 1);
        loop {
            let (at, _) = parent.certify(Self::child(parent.view, rank))?;
            let node = self.structure().enter(at, parent.level - 1, &parent)?;
            if node.level == 0 {
                return Self::check_differ(node, path.node);
            }
            rank = node.certify(self.rank(node.view, DescentTarget::Last))?;
            parent = node;
        }
    }

    fn check_differ<'a>(
        left: NodeRef<'a, M>,
        leaf: NodeRef<'_, M>,
    ) -> Result<NodeRef<'a, M>, Interrupted> {
        if left.at == leaf.at {
            let what = "leaf that is its own left neighbour";
            return Err(left.view.corrupt(0, what, 0, left.at.offset()).into());
        }
        Ok(left)
    }
}

impl<M: Medium, K: Key, S> AllPm<M, K, S>
where
    S: AllPmSpec<Leaf: Linked, Inner: Linked>,
{
    /// Returns the left neighbour of the leaf of `path`; `None` if it is the first leaf.
    pub(super) fn left_of<'a>(
        &'a self,
        path: &Path<'a, M>,
    ) -> Result<Option<NodeRef<'a, M>>, Interrupted> {
        let Some(low) = path.low else { return Ok(None) };
        if path.rank > 0 {
            return Ok(Some(self.last_leaf_before(path, path)?));
        }
        let low = path.parent.certify(K::read(&self.pool, low))?;
        let left = self.leaf_called(DescentTarget::Below(K::borrow(&low)))?.node;
        Ok(Some(Self::check_differ(left, path.node)?))
    }

    /// Returns the word that points to the node of `path`, and its new value if `at` takes the
    /// node's place.
    pub(super) fn pointer<'a>(path: &Path<'a, M>, at: PmPtr) -> Result<(&'a PmWord, u64), Corrupt> {
        let above = path.parent.view;
        if path.is_root {
            return Ok((root_cell(above), root_word(at, path.node.level)));
        }
        let Some(last) = path.rank.checked_sub(1) else {
            return Ok((above.word(S::Inner::LINK), S::Inner::link_word(above, at.offset())));
        };
        let word = S::Inner::ENTRIES.word(S::Inner::nth(above, last)?.index) + 1;
        Ok((above.word(word), at.offset()))
    }

    /// Returns the link that points to the leaf of `path`, and its new value if `at` takes the
    /// leaf's place.
    pub(super) fn link_to<'a>(
        path: &Path<'_, M>,
        left: NodeRef<'a, M>,
        at: PmPtr,
    ) -> Result<(&'a PmWord, u64), Corrupt> {
        let (found, expected) = (S::Leaf::link(left.view), path.node.at.offset());
        if found != expected {
            return Err(left.view.corrupt(S::Leaf::LINK, "link of a leaf", expected, found));
        }
        Ok((left.view.word(S::Leaf::LINK), S::Leaf::link_word(left.view, at.offset())))
    }
}

impl<M: Medium, K: Key, S> AllPm<M, K, S>
where
    S: AllPmSpec<Leaf: Linked + Wordwise, Inner: Linked, Protocol = Undo>,
{
    /// Writes `entries` to the fresh block `copy`, then makes `copy` replace the leaf of `path`.
    fn replace_leaf(
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
            let left_neighbor = left.map(|left| left.upgrade()).transpose()?;
            let mut changes = vec![Self::pointer(path, copy)?];
            if let Some(left) = left {
                changes.push(Self::link_to(path, left, copy)?);
            }
            let mut log = self.protocol.log(&self.pool);
            log.alloc_node(0, &[copy]);
            self.structure().write_new(copy, 0, S::Leaf::link(path.node.view), entries)?;
            Ok((changes, log, parent, left_neighbor))
        };
        let (changes, _log, parent, left_neighbor) = prepared().inspect_err(|_| {
            self.pool.release(copy, Self::NODE_BYTES);
        })?;
        self.swap(&changes);
        held.obsolete();
        drop((left_neighbor, parent));
        let _ = self.pool.try_retire(path.node.at, Self::NODE_BYTES, guard);
        Ok(())
    }

    /// Swings one or two pointers to new nodes, which the caller has flushed.
    ///
    /// ```text
    /// one word                        two words
    ///   |                               |               new nodes, flushed before
    ///   C word                          C log |
    ///   F word |  -> durable            W words, F |
    ///                                   W log ended, F |   -> durable
    /// budget: 1 line, 2 fences        budget: 4 lines, 4 fences
    /// ```
    pub(super) fn swap(&self, changes: &Changes<'_>) {
        let medium = self.medium();
        let published = medium.fence();
        if let [(word, value)] = changes[..] {
            medium.commit(word, value, published);
            let _ = medium.persist(core::slice::from_ref(word));
        } else {
            self.pool.redo_log().commit(changes, published).finish();
        }
    }
}
