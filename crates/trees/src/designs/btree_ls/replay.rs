//! Reading the logs: all logs in parallel, then the leaves that count.
//!
//! 1. The newest record of a leaf is the head of its chain, unless an end record of the leaf
//!    exists: then the leaf is no more. If the newest record is a base that waits for the end of
//!    another leaf, and no end record names this leaf as a successor, the head is the record before
//!    it. Without one the leaf does not count.
//! 2. The leaves that count cover all keys, each once. Their low keys give their order.
//! 3. A line that is not sealed is skipped: the lines after it may belong to acknowledged changes
//!    of other threads.
//! 4. Records outside a chain that counts are not read further, because their key records may be
//!    freed.
//! 5. Memory is allocated only for records that were read: no count or size in the file is trusted.

use super::chain::walk;
use super::log::{SegmentPlace, SegmentRing, head_word, open_segments, segments_word};
use super::record::{
    self, BaseOrigin, BaseRecord, LeafRange, POSITION_MAX, RecordHeader, RecordKind,
};
use super::segment::Segment;
use super::tuning::LsOptions;
use crate::key::Key;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};
use core::ops::ControlFlow;
use std::collections::HashMap;

/// The number of the first leaf.
pub(super) const FIRST_LEAF: u64 = 0;

/// The contents of one log.
#[derive(Debug, Default)]
pub(super) struct ReplayedLog {
    pub(super) ring: SegmentRing,
    /// The greatest leaf number.
    pub(super) last_leaf: u64,
    /// The newest record of each leaf.
    newest: HashMap<u64, PmPtr>,
    /// The leaf and the position of each record.
    records: HashMap<u64, (u64, u64)>,
    /// The successors of each leaf that is no more.
    ended: HashMap<u64, [Option<u64>; 2]>,
}

/// A leaf that counts: its chain and its range.
#[derive(Debug)]
pub(super) struct ReplayedLeaf<K: Key> {
    pub(super) leaf: u64,
    pub(super) base: PmPtr,
    pub(super) items: usize,
    /// The leaf whose end the base waits for, if the chain is the base alone.
    pub(super) after: Option<u64>,
    /// The deltas, the oldest first.
    pub(super) deltas: Vec<PmPtr>,
    pub(super) range: LeafRange,
    pub(super) low: K::Owned,
    pub(super) high: Option<K::Owned>,
}

impl<K: Key> ReplayedLeaf<K> {
    /// Returns the newest record.
    pub(super) fn head(&self) -> PmPtr {
        self.deltas.last().copied().unwrap_or(self.base)
    }
}

/// Reads one log, segment by segment in the order of their laps.
fn replay<M: Medium, T: LsOptions>(
    pool: &Pool<M>,
    root: &[PmWord],
    log: usize,
    lines: usize,
) -> Result<ReplayedLog, Corrupt> {
    let medium = pool.medium();
    let [first, head] = [segments_word(root, log), head_word(root, log)].map(|at| medium.load(at));
    if head > POSITION_MAX {
        let (at, what) = (pool.offset_of(head_word(root, log)).offset(), "head of a log");
        return Err(Corrupt { at, what, expected: POSITION_MAX, found: head });
    }
    let segments = open_segments(pool, PmPtr::new(first), lines)?;
    let linked = segments.iter().rev().map(|segment| segment.at).collect();
    let (mut filled, mut empty) = (Vec::new(), Vec::new());
    for segment in segments {
        let counts = |line: &usize| {
            let lap = segment.lap_of(medium, *line)?;
            (lap * lines as u64 + *line as u64 >= head).then_some((lap, *line))
        };
        match (1..lines).rev().filter_map(|line| counts(&line)).max() {
            Some((lap, line)) => filled.push((lap, line, segment)),
            None => empty.push(SegmentPlace { at: segment.at, lap: 0 }),
        }
    }
    filled.sort_unstable_by_key(|&(lap, ..)| lap);
    let twice = filled.windows(2).find(|two| two[0].0 == two[1].0).map(|two| (two[1].0, two[1].2));
    let wrong = filled.last().filter(|last| last.0 > POSITION_MAX / lines as u64);
    if let Some((lap, segment)) = twice.or(wrong.map(|&(lap, _, segment)| (lap, segment))) {
        let what = "lap of a log segment twice or out of range";
        return Err(Corrupt { at: segment.at.offset(), what, expected: 0, found: lap });
    }
    let mut replayed = ReplayedLog::default();
    for &(lap, _, segment) in &filled {
        replayed.read::<M, T>(pool, log, head, lap, &segment)?;
    }
    let (lap, line) = filled.last().map_or((0, 0), |&(lap, line, _)| (lap, line + 1));
    let places = filled.iter().map(|&(lap, _, segment)| SegmentPlace { at: segment.at, lap });
    replayed.ring = SegmentRing {
        filled: filled.len(),
        places: places.chain(empty).collect(),
        linked,
        head,
        lap: lap.max(head / lines as u64),
        line,
    };
    Ok(replayed)
}

impl ReplayedLog {
    fn read<M: Medium, T: LsOptions>(
        &mut self,
        pool: &Pool<M>,
        log: usize,
        head: u64,
        lap: u64,
        segment: &Segment<'_>,
    ) -> Result<(), Corrupt> {
        let begin = lap * segment.lines() as u64;
        let mut line = (head.saturating_sub(begin) as usize).max(1);
        while line < segment.lines() {
            let Some(found) = segment.record(pool, lap, line)? else {
                line += 1;
                continue;
            };
            let RecordHeader { kind, leaf } = found.head;
            if T::log_of(leaf) != log {
                let (at, what) = (found.at.offset(), "record in the wrong log");
                return Err(Corrupt { at, what, expected: log as u64, found: leaf });
            }
            self.last_leaf = self.last_leaf.max(leaf);
            if kind == RecordKind::End {
                let successors = record::successors(pool.medium(), found.words);
                let last = successors.iter().flatten().max().copied();
                self.last_leaf = self.last_leaf.max(last.unwrap_or(0));
                self.ended.insert(leaf, successors);
            } else {
                self.newest.insert(leaf, found.at);
                self.records.insert(found.at.offset(), (leaf, begin + line as u64));
            }
            line += found.head.lines();
        }
        Ok(())
    }
}

/// Reads all logs in parallel.
pub(super) fn replay_all<M: Medium, T: LsOptions>(
    pool: &Pool<M>,
    root: &[PmWord],
    lines: usize,
) -> Result<Vec<ReplayedLog>, Corrupt> {
    let most = if T::REPLAYERS == 0 { usize::MAX } else { T::REPLAYERS };
    let threads = thread_count::<M>(pool.medium().len()).min(most);
    let logs: Vec<_> = (0..T::LOGS).collect();
    in_parallel(threads, &logs, |&log| replay::<M, T>(pool, root, log, lines)).into_iter().collect()
}

/// Returns the leaves that count, in the order of their keys. `root` is named in an error.
pub(super) fn leaves<M: Medium, K: Key, T: LsOptions>(
    pool: &Pool<M>,
    replayed: &[ReplayedLog],
    root: PmPtr,
) -> Result<Vec<ReplayedLeaf<K>>, Corrupt> {
    let mut leaves = Vec::<ReplayedLeaf<K>>::new();
    for log in replayed {
        for (&leaf, &newest) in log.newest.iter().filter(|(leaf, _)| !log.ended.contains_key(leaf))
        {
            if let Some(head) = head_of::<M, T>(pool, replayed, leaf, newest)? {
                leaves.push(chain_of(pool, log, leaf, head)?);
            }
        }
    }
    leaves.sort_unstable_by(|a, b| a.low.cmp(&b.low));
    let mut expected = (Some(0), root);
    for place in 0..leaves.len() {
        let (range, at) = (leaves[place].range, leaves[place].base);
        if expected.0 != Some(range.low) {
            let (what, low) = ("low key of a leaf", expected.0.unwrap_or(0));
            return Err(Corrupt { at: at.offset(), what, expected: low, found: range.low });
        }
        expected = (range.high, at);
        let high = leaves.get(place + 1).map(|right| right.low.clone());
        if high.as_ref().is_some_and(|high| *high <= leaves[place].low) {
            let what = "low keys of neighbouring leaves do not increase";
            return Err(Corrupt { at: at.offset(), what, expected: 1, found: 0 });
        }
        leaves[place].high = high;
    }
    if let (Some(low), at) = expected {
        let what = "no leaf with this low key";
        return Err(Corrupt { at: at.offset(), what, expected: low, found: 0 });
    }
    Ok(leaves)
}

/// Returns the head of the chain of a leaf whose newest record is `newest`, if the leaf counts.
fn head_of<M: Medium, T: LsOptions>(
    pool: &Pool<M>,
    replayed: &[ReplayedLog],
    leaf: u64,
    newest: PmPtr,
) -> Result<Option<PmPtr>, Corrupt> {
    let records = &replayed[T::log_of(leaf)].records;
    let mut head = newest;
    loop {
        let RecordKind::Base(items) = RecordHeader::read(pool, head)?.kind else {
            return Ok(Some(head));
        };
        let origin = BaseRecord::new(pool, head, items)?.origin(pool.medium());
        let BaseOrigin { previous, after: Some(after) } = origin else { return Ok(Some(head)) };
        let end = replayed[T::log_of(after)].ended.get(&after);
        let counts = M::INJECTS_DEFECTS && pool.medium().injects(Defect::LsSplitUncommitted);
        if counts || end.is_some_and(|successors| successors.contains(&Some(leaf))) {
            return Ok(Some(head));
        }
        if previous.is_null() {
            return Ok(None);
        }
        follow(records, leaf, head, previous)?;
        head = previous;
    }
}

/// Checks that `previous` is a record of `leaf` before the record at `at`. So no walk along the
/// pointers is endless.
fn follow(
    records: &HashMap<u64, (u64, u64)>,
    leaf: u64,
    at: PmPtr,
    previous: PmPtr,
) -> Result<(), Corrupt> {
    let position = |at: PmPtr| records.get(&at.offset()).filter(|found| found.0 == leaf);
    let follows = position(previous).zip(position(at)).is_some_and(|(old, new)| old.1 < new.1);
    if follows {
        return Ok(());
    }
    let what = "pointer to the previous record of a leaf";
    Err(Corrupt { at: at.offset(), what, expected: leaf, found: previous.offset() })
}

/// Returns the chain that begins at `head`.
fn chain_of<M: Medium, K: Key>(
    pool: &Pool<M>,
    log: &ReplayedLog,
    leaf: u64,
    head: PmPtr,
) -> Result<ReplayedLeaf<K>, Corrupt> {
    let mut deltas = Vec::new();
    let base = walk(pool, head, |at, delta| {
        follow(&log.records, leaf, at, delta.previous)?;
        deltas.push(at);
        Ok(ControlFlow::Continue(()))
    })?;
    let Some(base) = base else { unreachable!("the visitor never ends the walk") };
    deltas.reverse();
    let range = base.range(pool.medium());
    let after = base.origin(pool.medium()).after.filter(|_| deltas.is_empty());
    let low = K::read(pool, range.low)?;
    let (base, items) = (base.at, base.items);
    Ok(ReplayedLeaf { leaf, base, items, after, deltas, range, low, high: None })
}
