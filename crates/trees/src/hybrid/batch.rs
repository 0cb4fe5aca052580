//! Batches: changes of several pairs, of which a crash or another thread finds all or none.
//!
//! 1. A thread latches all leaves of a batch, from left to right, before it changes one, and
//!    releases them after the last fence. So each lookup finds the pairs of before, or waits for
//!    those of after; once one has found a pair of after, all do.
//! 2. New entries lie in free slots, and new leaves are reached by nothing, until the state words
//!    and links of all leaves change together, by one redo log. A leaf is full in no other sense
//!    than for a single write: its upper entries go to new leaves behind it.
//! 3. Nothing that can fail comes after the log is committed, but for damage of the inner nodes.
//! 4. The log is truncated before a latch is released. So a replay undoes no later change.

mod behind;

use super::{Hybrid, HybridSpec, Latched, LeafRef, Restarts};
use crate::fingerprint;
use crate::index::TreeError;
use crate::inner::{self, Direction, InnerNodes, LeafRoute};
use crate::key::{Bytes, Entry, Key, Record, Value};
use crate::leaf::pairs::PairLeaf;
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::log::{PAIRS_MAX, RedoList};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord};
use core::ops::Range;

/// The number of changes above which they are in a list, at a
/// [small scale](Medium::has_small_scale).
const SMALL_PAIRS_MAX: usize = 2;

/// A change of one pair in a batch, or a condition on it, or both.
#[derive(Clone, Copy, Debug)]
pub struct PairChange<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The state that the key must have, as the index returned it; `None` for any.
    pub expected: Option<PairState>,
    /// The new state; `None` for no change.
    pub new: Option<PairState>,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairState {
    /// There is no pair with the key.
    Absent,
    /// There is one with this value.
    Present(Value),
}

impl PairState {
    /// Returns the value, if there is one.
    pub const fn value(self) -> Option<Value> {
        match self {
            Self::Absent => None,
            Self::Present(value) => Some(value),
        }
    }
}

impl From<Option<Value>> for PairState {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Absent, Self::Present)
    }
}

/// An entry that a batch adds, with its key.
type AddedEntry<'a> = (&'a [u8], TaggedEntry);

/// A leaf of a batch.
struct BatchLeaf<'a, M: Medium> {
    latched: Latched<'a, M>,
    /// The changes of the batch that the leaf covers.
    changes: Range<usize>,
    /// The slots that become invalid, as bits.
    dropped: u64,
    /// The entries that are new, as a range of all that the batch adds.
    added: Range<usize>,
    /// The new leaves behind this one, from left to right.
    behind: Vec<NewLeaf>,
}

/// A leaf that nothing reaches yet, with its separator.
struct NewLeaf {
    leaf: PmPtr,
    separator: Bytes,
    word: u64,
}

/// A batch that is committed.
#[derive(Debug)]
pub struct CommittedPairs {
    /// The value that each change replaced.
    pub formers: Vec<Option<Value>>,
    /// The result of adding new leaves to the inner nodes, which may be damaged.
    pub posted: Result<(), TreeError>,
}

/// The result of an attempt to commit a batch.
enum Attempt {
    Committed(CommittedPairs),
    /// A condition does not hold.
    Unmet,
    /// Leaves had no free slot for a new entry, and were split.
    Split,
}

impl<S: HybridSpec<Leaf = PairLeaf>, M: Medium> Hybrid<S, M, Record> {
    /// Makes all of `changes`, whose keys ascend strictly, if all of their conditions hold. Returns
    /// `None` if a condition does not hold; nothing has changed then. Durable on return, with the
    /// records that the new values name.
    ///
    /// ```text
    /// W new entries, tags       2 lines an entry at most    crash: they are not valid
    /// N new leaves, the list of the redo log                crash: nothing reaches them
    /// F all |
    /// C redo log |              1 line, up to 8 without a list
    /// R states, links of the leaves     1 line a leaf, 2 if there are leaves behind it
    /// F a line of each new leaf |       for the lookups of a journal
    /// W end of the log |        -> durable   budget: 4 fences; 2 if one leaf takes all changes
    /// ```
    ///
    /// # Errors
    /// The pool is full, or damaged on the path to a key: nothing has changed.
    pub fn commit_pairs(
        &self,
        changes: &[PairChange<'_>],
    ) -> Result<Option<CommittedPairs>, TreeError> {
        debug_assert!(changes.windows(2).all(|pair| pair[0].key < pair[1].key), "sorted keys");
        if M::INJECTS_DEFECTS
            && self.pool.medium().injects(Defect::BatchUnlatched)
            && changes.len() > 1
        {
            let mut formers = Vec::new();
            for change in changes.chunks(1) {
                let Some(committed) = self.commit_pairs(change)? else { return Ok(None) };
                formers.extend(committed.formers);
            }
            return Ok(Some(CommittedPairs { formers, posted: Ok(()) }));
        }
        loop {
            match self.try_commit(changes)? {
                Attempt::Committed(committed) => return Ok(Some(committed)),
                Attempt::Unmet => return Ok(None),
                Attempt::Split => {}
            }
        }
    }

    fn try_commit(&self, changes: &[PairChange<'_>]) -> Result<Attempt, TreeError> {
        let guard = self.pool.pin();
        let mut leaves = self.latch_all(changes)?;
        let mut formers = Vec::with_capacity(changes.len());
        // All that the batch adds, in the order of the keys.
        let mut added = Vec::with_capacity(changes.len());
        for leaf in &mut leaves {
            if !self.plan(leaf, changes, &mut formers, &mut added)? {
                return Ok(Attempt::Unmet);
            }
        }
        let is_full = |leaf: &&BatchLeaf<'_, M>| {
            !leaf.added.is_empty() && self.free_slots(&leaf.latched.0) == 0
        };
        let full = leaves.iter().filter(is_full).map(|leaf| changes[leaf.changes.start].key);
        let full: Vec<_> = full.collect();
        if !full.is_empty() {
            drop(leaves);
            for key in full {
                let latched = self.latch_leaf(key)?;
                if self.free_slots(&latched.0) == 0 {
                    self.ensure_space(key, latched, None, &guard)?;
                }
            }
            return Ok(Attempt::Split);
        }
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::BatchFractured) {
            for leaf in &mut leaves {
                self.apply_all(core::slice::from_mut(leaf), &added)?;
            }
        } else {
            self.apply_all(&mut leaves, &added)?;
        }
        let posted = self.post_behind(&leaves);
        let mut sparse = Vec::new();
        for leaf in leaves {
            let count = PairLeaf::count(self.pool.medium(), leaf.latched.0.words);
            if leaf.dropped.count_ones() as usize > leaf.added.len() && count <= Self::SPARSE_MAX {
                sparse.push(changes[leaf.changes.start].key);
            }
        }
        for key in sparse {
            let _ = self.merge_around(key, &guard); // as after a remove
        }
        Ok(Attempt::Committed(CommittedPairs { formers, posted }))
    }

    fn free_slots(&self, leaf: &LeafRef<'_>) -> usize {
        PairLeaf::free_slots(self.pool.medium(), leaf.words)
    }

    /// Latches the leaves that cover the keys of `changes`, from left to right. Descents run
    /// interleaved.
    fn latch_all<'a>(
        &'a self,
        changes: &[PairChange<'a>],
    ) -> Result<Vec<BatchLeaf<'a, M>>, Corrupt> {
        let medium = self.pool.medium();
        let mut leaves: Vec<BatchLeaf<'a, M>> = Vec::with_capacity(changes.len());
        let mut restarts = Restarts::default();
        for (group, changes) in changes.chunks(inner::BATCH).enumerate() {
            let keys: Vec<_> = changes.iter().map(|change| change.key).collect();
            let routes = self.inner.seek_batch::<Record>(&self.pool, &keys, |leaf, _| {
                if let Ok(words) = self.pool.words(leaf, PairLeaf::HEADER_WORDS) {
                    medium.prefetch(words);
                }
            })?;
            for (&key, route) in keys.iter().zip(&routes) {
                if let Some(leaf) = route.and_then(|route| self.leaf(route.leaf).ok()) {
                    PairLeaf::prefetch_candidates::<Record, M>(&self.pool, leaf.words, key);
                    PairLeaf::prefetch_free(medium, leaf.words);
                }
            }
            for (index, (key, route)) in keys.into_iter().zip(routes).enumerate() {
                let at = group * inner::BATCH + index;
                match self.latch_next(key, route, &leaves, &mut restarts)? {
                    Some(latched) => leaves.push(BatchLeaf::new(latched, at)),
                    None => leaves.last_mut().expect("it covers the key").changes.end = at + 1,
                }
            }
        }
        Ok(leaves)
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

    /// Decides what changes in a leaf. Appends former values to `formers` and new entries to
    /// `added`. Returns `false` if a condition does not hold. Writes nothing.
    fn plan<'a>(
        &self,
        leaf: &mut BatchLeaf<'a, M>,
        changes: &[PairChange<'a>],
        formers: &mut Vec<Option<Value>>,
        added: &mut Vec<AddedEntry<'a>>,
    ) -> Result<bool, TreeError> {
        let first = added.len();
        for &PairChange { key, expected, new } in &changes[leaf.changes.clone()] {
            let found = PairLeaf::find::<Record, M>(&self.pool, leaf.latched.0.words, key)?;
            let value = found.map(|(_, value)| value);
            let is_met = expected.is_none_or(|expected| expected.value() == value);
            if !(is_met || M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::BatchStale)) {
                return Ok(false);
            }
            formers.push(value.filter(|_| new.is_some()));
            let Some(new) = new else { continue };
            leaf.dropped |= found.map_or(0, |(slot, _)| 1 << slot);
            if let Some(value) = new.value() {
                let word = Record::store_entry_key(&self.pool, key, value.word)?;
                let entry = Entry { key: word, value: value.word, encoding: value.encoding };
                let fingerprint = fingerprint::of(Record::hash(key));
                added.push((key, TaggedEntry { entry, fingerprint }));
            }
        }
        leaf.added = first..added.len();
        Ok(true)
    }

    /// Changes all leaves together. Durable on return.
    fn apply_all(
        &self,
        leaves: &mut [BatchLeaf<'_, M>],
        added: &[AddedEntry<'_>],
    ) -> Result<(), TreeError> {
        let written = self.write_behind_all(leaves, added);
        let count: usize = leaves.iter().map(BatchLeaf::log_words).sum();
        let has_list = count > if M::has_small_scale() { SMALL_PAIRS_MAX } else { PAIRS_MAX };
        let reserved = written.and_then(|()| {
            if has_list { Ok(Some(self.pool.reserve(RedoList::bytes(count))?)) } else { Ok(None) }
        });
        let list = reserved.inspect_err(|_| self.release_behind(leaves))?;
        let medium = self.pool.medium();
        let mut log: Vec<(&PmWord, u64)> = Vec::with_capacity(count);
        for BatchLeaf { latched: (leaf, _), dropped, added: range, behind, .. } in &*leaves {
            if let Some(first) = behind.first() {
                let next = PairLeaf::encode_next(first.leaf.offset());
                log.push((&leaf.words[PairLeaf::NEXT], next));
            }
            if *dropped != 0 || !range.is_empty() {
                let added = added[range.clone()].iter().map(|&(_, tagged)| tagged);
                let state = PairLeaf::stage(medium, leaf.words, *dropped, added);
                log.push((PairLeaf::state_word(leaf.words), state));
            }
        }
        Ok(self.commit_log(leaves, &log, list)?)
    }

    /// Stores `log`, words of `leaves` and their new values, all or none. What they publish is
    /// durable after the next fence. `list` is a block for the list of the log. Durable on return.
    fn commit_log(
        &self,
        leaves: &[BatchLeaf<'_, M>],
        log: &[(&PmWord, u64)],
        list: Option<PmPtr>,
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        match (log, list) {
            (&[], _) => {}
            (&[(word, value)], _) => {
                medium.commit(word, value, medium.fence());
                // Before the lines for readers: a fence of many lines may be synced in parts.
                medium.flush(core::slice::from_ref(word));
                self.flush_behind(leaves);
                let _ = medium.fence();
            }
            (_, None) => {
                let published = self.fence_published();
                let committed = self.pool.redo_log().commit(log, published);
                self.flush_behind(leaves);
                committed.finish();
            }
            (_, Some(block)) => {
                let list = RedoList::write(medium, block, log)?;
                let published = self.fence_published();
                let committed = self.pool.redo_log().commit_list(list, published);
                self.flush_behind(leaves);
                committed.finish();
                self.pool.release(block, RedoList::bytes(log.len()));
            }
        }
        Ok(())
    }

    /// Fences what the changes of a log publish.
    fn fence_published(&self) -> Fenced {
        let medium = self.pool.medium();
        if M::INJECTS_DEFECTS && medium.injects(Defect::BatchEarly) {
            return Fenced::after_fence(); // Wrong: the log may become durable before the entries.
        }
        medium.fence()
    }
}

impl<'a, M: Medium> BatchLeaf<'a, M> {
    /// A leaf that covers the change at `index`.
    const fn new(latched: Latched<'a, M>, index: usize) -> Self {
        let (changes, added) = (index..index + 1, 0..0);
        Self { latched, changes, dropped: 0, added, behind: Vec::new() }
    }

    /// Returns the number of words that the redo log changes in this leaf.
    fn log_words(&self) -> usize {
        let is_changed = self.dropped != 0 || !self.added.is_empty();
        usize::from(is_changed) + usize::from(!self.behind.is_empty())
    }
}
