//! The plan of a batch: its leaves, which it latches, and what changes in each.

use super::{AddedEntry, BatchLeaf, PairChange};
use crate::fingerprint;
use crate::hybrid::{Hybrid, HybridSpec, Latched, Restarts};
use crate::index::TreeError;
use crate::inner::{BATCH, Direction, InnerNodes, LeafRoute};
use crate::key::{Entry, Key, Record, Value};
use crate::leaf::pairs::PairLeaf;
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The changes of a batch, with its leaves latched.
pub(super) struct Plan<'a, M: Medium> {
    /// The leaves, from left to right.
    pub(super) leaves: Vec<BatchLeaf<'a, M>>,
    /// All entries that are new, in the order of their keys.
    pub(super) added: Vec<AddedEntry<'a>>,
    /// The values that are replaced and name records.
    pub(super) formers: Vec<Value>,
    /// `true` if a leaf has fewer free slots than new entries.
    pub(super) lacks_space: bool,
}

/// The routes and fingerprints of some changes.
#[derive(Clone, Copy)]
struct Group {
    routes: [Option<LeafRoute>; BATCH],
    fingerprints: [u8; BATCH],
}

impl Group {
    const EMPTY: Self = Self { routes: [None; BATCH], fingerprints: [0; BATCH] };
}

impl<S: HybridSpec<Leaf = PairLeaf>, M: Medium> Hybrid<S, M, Record> {
    /// Latches the leaves that cover the keys of `changes`, from left to right, and decides what
    /// changes in each. Returns `None` if a condition does not hold. Writes nothing.
    pub(super) fn plan_all<'a>(
        &'a self,
        changes: &[PairChange<'a>],
    ) -> Result<Option<Plan<'a, M>>, TreeError> {
        let count = changes.len();
        let mut leaves: Vec<BatchLeaf<'a, M>> = Vec::with_capacity(count);
        let (mut added, mut formers) = (Vec::with_capacity(count), Vec::new());
        let (mut restarts, mut lacks_space) = (Restarts::default(), false);
        let mut groups = changes.chunks(BATCH);
        let mut pair = [Group::EMPTY; 2];
        let [seeked, next] = &mut pair;
        let (mut seeked, mut next) = (seeked, next);
        self.seek_group(groups.next().unwrap_or_default(), next)?;
        for (number, changes) in changes.chunks(BATCH).enumerate() {
            core::mem::swap(&mut seeked, &mut next);
            self.prefetch_group(seeked, changes.len());
            // Meanwhile what this group uses arrives, and then what the next one uses.
            self.seek_group(groups.next().unwrap_or_default(), next)?;
            let routes = seeked.routes.iter().zip(&seeked.fingerprints);
            for (index, (change, (&route, &fingerprint))) in changes.iter().zip(routes).enumerate()
            {
                if let Some(latched) = self.latch_next(change.key, route, &leaves, &mut restarts)? {
                    let free_slots = PairLeaf::free_slots(self.pool.medium(), latched.0.words);
                    let (at, added) = (number * BATCH + index, added.len());
                    // So the push has no branch that grows, and writes the leaf in place.
                    assert!(leaves.len() < leaves.capacity(), "each leaf has a change");
                    leaves.push(BatchLeaf::new(latched, at, free_slots, added));
                }
                let leaf = leaves.last_mut().expect("the last leaf covers the key");
                if !self.plan(leaf, change, fingerprint, &mut added, &mut formers)? {
                    return Ok(None);
                }
                lacks_space |= leaf.added.len() > leaf.free_slots;
            }
        }
        Ok(Some(Plan { leaves, added, formers, lacks_space }))
    }

    /// Sets `group` to the way to the leaf of each change, if no other thread changed it meanwhile,
    /// and the fingerprint of its key. Descents run interleaved. Prefetches the first line of each
    /// leaf.
    fn seek_group(&self, changes: &[PairChange<'_>], group: &mut Group) -> Result<(), Corrupt> {
        let Group { routes, fingerprints } = group;
        let mut keys = [&[][..]; BATCH];
        for ((key, fingerprint), change) in keys.iter_mut().zip(fingerprints).zip(changes) {
            (*key, *fingerprint) = (change.key, fingerprint::of(Record::hash(change.key)));
        }
        let keys = &keys[..changes.len()];
        self.inner.seek_batch::<Record>(&self.pool, keys, routes, |leaf, _| {
            if let Ok(words) = self.pool.words(leaf, 1) {
                self.pool.medium().prefetch(words);
            }
        })
    }

    /// Prefetches the entries and records that the first `count` changes of a group use.
    fn prefetch_group(&self, Group { routes, fingerprints }: &Group, count: usize) {
        let leaves = routes[..count].iter().zip(fingerprints).filter_map(|(route, fingerprint)| {
            let leaf = self.leaf(route.as_ref()?.leaf).ok()?;
            Some((leaf.words, *fingerprint))
        });
        let mut names_record = false;
        for (words, fingerprint) in leaves.clone() {
            names_record |= PairLeaf::prefetch_change(self.pool.medium(), words, fingerprint);
        }
        if names_record {
            for (words, fingerprint) in leaves {
                PairLeaf::prefetch_tagged::<Record, M>(&self.pool, words, fingerprint);
            }
        }
    }

    /// Latches the leaf that covers `key`, or returns `None` if it is the last of `leaves`, which
    /// this thread has latched. `route` may be out of date.
    fn latch_next(
        &self,
        key: &[u8],
        mut route: Option<LeafRoute>,
        leaves: &[BatchLeaf<'_, M>],
        restarts: &mut Restarts,
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
            let is_route_of = |leaf: &BatchLeaf<'_, M>| leaf.latched.0.at == route.leaf;
            if leaves.last().is_some_and(is_route_of) {
                return Ok(None);
            }
            let leaf = self.leaf(route.leaf)?;
            let is_held = self.latch(&leaf).is_held();
            if is_held == Some(true) && leaves.iter().any(is_route_of) {
                let (at, what) = (route.leaf.offset(), "leaf of two ranges of keys");
                return Err(Corrupt { at, what, expected: 1, found: 2 });
            }
            if let Ok(latched) = self.latch_at(leaf, &route, restarts)? {
                return Ok(Some(latched));
            }
        }
    }

    /// Decides what a change of a key with this fingerprint changes in `leaf`. Appends a new entry
    /// to `added`, and a value that is replaced and names a record to `formers`. Returns `false` if
    /// the condition does not hold. Writes nothing.
    #[inline(always)]
    fn plan<'a>(
        &self,
        leaf: &mut BatchLeaf<'a, M>,
        &PairChange { key, expected, new }: &PairChange<'a>,
        fingerprint: u8,
        added: &mut Vec<AddedEntry<'a>>,
        formers: &mut Vec<Value>,
    ) -> Result<bool, TreeError> {
        let words = leaf.latched.0.words;
        let found = PairLeaf::find_tagged::<Record, M>(&self.pool, words, key, fingerprint)?;
        let value = found.map(|(_, value)| value);
        let is_met = expected.is_none_or(|expected| expected.value() == value);
        if !(is_met || M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::BatchStale)) {
            return Ok(false);
        }
        let Some(new) = new else { return Ok(true) };
        if let Some((slot, value)) = found {
            leaf.dropped |= 1 << slot;
            if !Record::is_inline(value.encoding) {
                formers.push(value);
            }
        }
        if let Some(value) = new.value() {
            let word = Record::store_entry_key(&self.pool, key, value.word)?;
            let entry = Entry { key: word, value: value.word, encoding: value.encoding };
            added.push((key, TaggedEntry { entry, fingerprint }));
            leaf.added.end = added.len();
        }
        Ok(true)
    }
}
