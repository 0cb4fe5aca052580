//! The plan of a batch: its leaves, which it latches, and what changes in each.

use super::{Added, BatchLeaf, PairChange};
use crate::designs::cell_tree::CellTreeIndex;
use crate::designs::cell_tree::rows::bit_of;
use crate::designs::cell_tree::word::PairCells;
use crate::designs::cell_tree::write::Latched;
use crate::index::TreeError;
use crate::inner::{BATCH, Direction, InnerNodes, LeafRoute};
use crate::key::{Entry, Key, Record, Value};
use crate::leaf_table::LeafTable;
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The changes of a batch, with its leaves latched.
pub(super) struct Plan<'a, M: Medium> {
    /// The leaves, from left to right.
    pub(super) leaves: Vec<BatchLeaf<'a, M>>,
    /// All entries that are new, in the order of their keys.
    pub(super) added: Vec<Added>,
    /// The values that are replaced and name records.
    pub(super) formers: Vec<Value>,
}

/// The routes of some changes, and the hashes of their keys.
#[derive(Clone, Copy)]
struct Group {
    routes: [Option<LeafRoute>; BATCH],
    hashes: [u64; BATCH],
}

impl Group {
    const EMPTY: Self = Self { routes: [None; BATCH], hashes: [0; BATCH] };
}

impl<M: Medium, const BYTES: usize> CellTreeIndex<M, Record, BYTES> {
    /// Latches the leaves that cover the keys of `changes`, from left to right, and decides what
    /// changes in each. Returns `None` if a condition does not hold. Writes nothing.
    pub(super) fn plan_all(
        &self,
        changes: &[PairChange<'_>],
    ) -> Result<Option<Plan<'_, M>>, TreeError> {
        let count = changes.len();
        let mut leaves: Vec<BatchLeaf<'_, M>> = Vec::with_capacity(count);
        let (mut added, mut formers) = (Vec::with_capacity(count), Vec::new());
        let mut groups = changes.chunks(BATCH);
        let mut pair = [Group::EMPTY; 2];
        let [seeked, next] = &mut pair;
        let (mut seeked, mut next) = (seeked, next);
        self.seek_group(groups.next().unwrap_or_default(), next)?;
        for (number, changes) in changes.chunks(BATCH).enumerate() {
            core::mem::swap(&mut seeked, &mut next);
            // Meanwhile what this group uses arrives.
            self.seek_group(groups.next().unwrap_or_default(), next)?;
            let routes = seeked.routes.iter().zip(&seeked.hashes);
            for (index, (change, (&route, &hash))) in changes.iter().zip(routes).enumerate() {
                if let Some(latched) = self.latch_next(change.key, route, &leaves)? {
                    let leaf = self.leaf(latched.0)?;
                    // So the push has no branch that grows, and writes the leaf in place.
                    assert!(leaves.len() < leaves.capacity(), "each leaf has a change");
                    let at = number * BATCH + index;
                    leaves.push(BatchLeaf::new(latched, leaf, at, added.len()));
                }
                let leaf = leaves.last_mut().expect("the last leaf covers the key");
                if !self.plan(leaf, change, hash, &mut added, &mut formers)? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(Plan { leaves, added, formers }))
    }

    /// Sets `group` to the way to the leaf of each change, if no other thread changed it meanwhile,
    /// and the hash of its key. Descents run interleaved. Prefetches the words of each leaf and the
    /// near cells of each key.
    fn seek_group(&self, changes: &[PairChange<'_>], group: &mut Group) -> Result<(), Corrupt> {
        let Group { routes, hashes } = group;
        let mut keys = [&[][..]; BATCH];
        for ((key, hash), change) in keys.iter_mut().zip(hashes).zip(changes) {
            (*key, *hash) = (change.key, Record::hash(change.key));
        }
        let keys = &keys[..changes.len()];
        self.inner.seek_batch::<Record>(&self.pool, keys, routes, |leaf, key| {
            self.prefetch_row(leaf.offset() as usize, key);
        })
    }

    /// Latches the leaf that covers `key`, or returns `None` if it is the last of `leaves`, which
    /// this thread has latched. `route` may be out of date.
    fn latch_next(
        &self,
        key: &[u8],
        mut route: Option<LeafRoute>,
        leaves: &[BatchLeaf<'_, M>],
    ) -> Result<Option<Latched<'_, M>>, Corrupt> {
        loop {
            let route = match route.take() {
                Some(route) => route,
                None => self.inner.seek::<Record>(&self.pool, key, Direction::Key)?,
            };
            // A route that is out of date may lead to a leaf that this thread has latched, on which
            // it must not wait. A current one leads to none but the last: nothing changes what a
            // latched leaf covers.
            if !self.inner.is_current(&route) {
                continue;
            }
            let is_route_of = |leaf: &BatchLeaf<'_, M>| leaf.row().at == route.leaf;
            if leaves.last().is_some_and(is_route_of) {
                return Ok(None);
            }
            let (row, latch) = self.row(route.leaf.offset() as usize);
            if latch.is_held() == Some(true) && leaves.iter().any(is_route_of) {
                let (at, what) = (route.leaf.offset(), "leaf of two ranges of keys");
                return Err(Corrupt { at, what, expected: 1, found: 2 });
            }
            self.visit(row)?;
            let Some(version) = latch.read() else { continue };
            if !self.inner.is_current(&route) {
                continue;
            }
            if let Some(held) = latch.upgrade(version) {
                return Ok(Some((row, held)));
            }
        }
    }

    /// Decides what a change of a key with this hash changes in `leaf`. Appends a new entry to
    /// `added`, and a value that is replaced and names a record to `formers`. Returns `false` if
    /// the condition does not hold. Writes nothing.
    #[inline(always)]
    fn plan(
        &self,
        leaf: &mut BatchLeaf<'_, M>,
        &PairChange { key, expected, new }: &PairChange<'_>,
        hash: u64,
        added: &mut Vec<Added>,
        formers: &mut Vec<Value>,
    ) -> Result<bool, TreeError> {
        let words = (leaf.row(), leaf.row().notes::<M>());
        let place = (Self::candidates(hash), hash);
        let found = leaf.leaf.find::<PairCells, Record, M>(&self.pool, words, place, key)?;
        let value = found.map(|found| found.entry.held_value());
        let is_met = expected.is_none_or(|expected| expected.value() == value);
        if !(is_met || self.injects(Defect::BatchStale)) {
            return Ok(false);
        }
        let Some(new) = new else { return Ok(true) };
        if let Some(found) = found {
            leaf.dropped |= bit_of((found.cell, found.slot));
            let value = found.entry.held_value();
            if !Record::is_inline(value.encoding) {
                formers.push(value);
            }
        }
        if let Some(value) = new.value() {
            let word = Record::store_entry_key(&self.pool, key, value.word)?;
            let entry = Entry { key: word, value: value.word, encoding: value.encoding };
            let former = found.map(|found| found.cell);
            added.push(Added { hash, entry, former, place: (0, 0) });
            leaf.added.end = added.len();
        }
        Ok(true)
    }
}
