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
mod plan;

use super::{Hybrid, HybridSpec, Latched};
use crate::index::TreeError;
use crate::key::{Bytes, Record, Value};
use crate::leaf::pairs::PairLeaf;
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::log::{PAIRS_MAX, RedoList};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord};
use core::ops::Range;
use plan::Plan;

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
    /// The first change of the batch that the leaf covers.
    change: usize,
    /// The number of its free slots before the batch.
    free_slots: usize,
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
    /// The values that were replaced, if they name records.
    pub formers: Vec<Value>,
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
    /// W new entries             1 line an entry at most     crash: they are not valid
    /// N new leaves, the list of the redo log                crash: nothing reaches them
    /// F all |
    /// C redo log |              1 line, up to 8 without a list
    /// R tags, states, links of the leaves      1 line a leaf, 2 if there are leaves behind it
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
        let Some(plan) = self.plan_all(changes)? else { return Ok(Attempt::Unmet) };
        let Plan { mut leaves, added, formers, lacks_space } = plan;
        let is_full = |leaf: &&BatchLeaf<'_, M>| leaf.free_slots == 0 && !leaf.added.is_empty();
        let full: Vec<_> = if lacks_space {
            leaves.iter().filter(is_full).map(|leaf| leaf.change).collect()
        } else {
            Vec::new()
        };
        if !full.is_empty() {
            drop(leaves);
            for key in full.into_iter().map(|change| changes[change].key) {
                let latched = self.latch_leaf(key)?;
                if PairLeaf::free_slots(self.pool.medium(), latched.0.words) == 0 {
                    self.ensure_space(key, latched, None, &guard)?;
                }
            }
            return Ok(Attempt::Split);
        }
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::BatchFractured) {
            for leaf in &mut leaves {
                self.apply_all(core::slice::from_mut(leaf), &added, lacks_space)?;
            }
        } else {
            self.apply_all(&mut leaves, &added, lacks_space)?;
        }
        let posted = if lacks_space { self.post_behind(&leaves) } else { Ok(()) };
        let is_sparse = |leaf: &&BatchLeaf<'_, M>| {
            leaf.dropped.count_ones() as usize > leaf.added.len()
                && PairLeaf::count(self.pool.medium(), leaf.latched.0.words) <= Self::SPARSE_MAX
        };
        let sparse: Vec<_> = leaves.iter().filter(is_sparse).map(|leaf| leaf.change).collect();
        drop(leaves);
        for change in sparse {
            let _ = self.merge_around(changes[change].key, &guard); // as after a remove
        }
        Ok(Attempt::Committed(CommittedPairs { formers, posted }))
    }

    /// Changes all leaves together; some may lack space. Durable on return.
    fn apply_all(
        &self,
        leaves: &mut [BatchLeaf<'_, M>],
        added: &[AddedEntry<'_>],
        lacks_space: bool,
    ) -> Result<(), TreeError> {
        let written = if lacks_space { self.write_behind_all(leaves, added) } else { Ok(()) };
        let count: usize = leaves.iter().map(BatchLeaf::log_words_max).sum();
        let list_bytes = RedoList::bytes(count);
        let has_list = count > if M::has_small_scale() { SMALL_PAIRS_MAX } else { PAIRS_MAX };
        let reserved = written.and_then(|()| {
            if has_list { Ok(Some((self.pool.reserve(list_bytes)?, list_bytes))) } else { Ok(None) }
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
                PairLeaf::stage(medium, leaf.words, *dropped, added, &mut log);
            }
        }
        Ok(self.commit_log(if lacks_space { leaves } else { &[] }, &log, list)?)
    }

    /// Stores `log`, words of leaves and their new values, all or none. What they publish is
    /// durable after the next fence. `split` has the leaves with new ones behind them; `list` is a
    /// block for the list of the log, with its bytes. Durable on return.
    fn commit_log(
        &self,
        split: &[BatchLeaf<'_, M>],
        log: &[(&PmWord, u64)],
        list: Option<(PmPtr, u64)>,
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        match (log, list) {
            (_, Some((block, bytes))) => {
                let list = RedoList::write(medium, block, log)?;
                let published = self.fence_published();
                let committed = self.pool.redo_log().commit_list(list, published);
                self.flush_behind(split);
                committed.finish();
                self.pool.release(block, bytes);
            }
            ([], None) => {}
            (&[ref tags @ .., (last, value)], None) if self.is_one_line(log) => {
                let published = medium.fence();
                for &(word, value) in tags {
                    medium.store(word, value);
                }
                medium.commit(last, value, published);
                // Before the lines for readers: a fence of many lines may be synced in parts.
                medium.flush(core::slice::from_ref(last));
                self.flush_behind(split);
                let _ = medium.fence();
            }
            (_, None) => {
                let published = self.fence_published();
                let committed = self.pool.redo_log().commit(log, published);
                self.flush_behind(split);
                committed.finish();
            }
        }
        Ok(())
    }

    /// Returns `true` if the words of `log` lie in one line, which needs no log: its stores persist
    /// in their order. The words of a leaf lie together.
    fn is_one_line(&self, log: &[(&PmWord, u64)]) -> bool {
        let line = |&(word, _): &_| self.pool.offset_of(word).offset() / LINE_BYTES as u64;
        log.first().map(line) == log.last().map(line)
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
    /// A leaf that covers the change at index `change`; the next new entry is number `added`.
    const fn new(latched: Latched<'a, M>, change: usize, free_slots: usize, added: usize) -> Self {
        let added = added..added;
        Self { latched, change, free_slots, dropped: 0, added, behind: Vec::new() }
    }

    /// Returns the largest number of words that the redo log changes in this leaf.
    fn log_words_max(&self) -> usize {
        let is_changed = self.dropped != 0 || !self.added.is_empty();
        let tags = PairLeaf::tag_words(self.added.len());
        usize::from(is_changed) + tags + usize::from(!self.behind.is_empty())
    }
}
