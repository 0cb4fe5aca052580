//! Log garbage collection, from the head of a log: a collector consolidates each live chain at the
//! tail, then moves the head.
//!
//! 1. The first record of a chain is its base. So a base at the head is live if its leaf's chain
//!    ends in it, and a delta at the head is garbage: its base lies before it and was consolidated.
//! 2. GC of a log is due when its garbage exceeds [`LsOptions::GARBAGE_KIB`]. [Maintenance
//!    workers](crate::maintenance) are the report's GC threads: while there are any, they collect,
//!    one in each log, the log with the most garbage first. A write then collects only if its log
//!    has twice as much garbage or no space. Without workers a write to the log does a step.
//! 3. A chain is visible at its new place once it is durable there. The head moves behind its old
//!    place only later.

use super::BTreeLsIndex;
use super::chain::FoldedChain;
use super::record::{self, RecordKind, base_lines};
use super::segment::{self, Segment, SegmentRecord};
use super::space::FREED_MAX;
use super::tuning::LsOptions;
use super::write::NotWritten;
use crate::index::{MaintenanceCost, TreeError};
use crate::key::Key;
use crate::spec::Cost;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PoolError};
use core::cmp::Reverse;

/// The number of written lines after which a step of a collector ends.
const STEP_LINES: usize = 64;

/// The attempts after which a change that finds no space fails.
const ATTEMPTS_MAX: usize = 16;

/// Returns the cost of log GC within a write, and its frequency, for leaves of `capacity` pairs.
pub(super) const fn maintenance_cost(capacity: usize) -> MaintenanceCost {
    // A base instead of a delta; then one step's lines with its last base, and the head; then one
    // line and one fence for each segment freed. Each consolidated chain has its own fence.
    let max_record_lines = base_lines(capacity);
    let lines = 2 * max_record_lines + STEP_LINES + 1 + FREED_MAX;
    let fences = STEP_LINES + 3 + FREED_MAX;
    MaintenanceCost { most: Cost::new(lines as u32, fences as u32), every: 3 }
}

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> BTreeLsIndex<M, K, NODE, T> {
    /// Runs a log-GC step if the log needs one, unless another thread is collecting it or
    /// maintenance workers keep up with it.
    #[inline(always)]
    pub(super) fn maintain_log(&self, log: usize, guard: &Guard) -> Result<(), Corrupt> {
        let is_due = self.log.is_due(log) || self.log.is_dead(log);
        if is_due { self.collect_unless_maintained(log, guard) } else { Ok(()) }
    }

    #[cold]
    fn collect_unless_maintained(&self, log: usize, guard: &Guard) -> Result<(), Corrupt> {
        if self.maintainers.are_registered::<M>() && !self.log.is_overdue(log) {
            return Ok(());
        }
        self.try_collect_step(log, guard).map(|_| ())
    }

    /// Runs a log-GC step in a log. Returns `false` if none is due, another thread collects, or
    /// there is no space for copies.
    fn try_collect_step(&self, log: usize, guard: &Guard) -> Result<bool, Corrupt> {
        let Some(_held) = self.log.try_lock_collector(log) else { return Ok(false) };
        if self.log.is_dead(log) {
            self.log.clear(&self.pool, self.root_words()?, log, guard);
            return Ok(true);
        }
        Ok(self.log.is_due(log) && self.collect_step(log, guard)?)
    }

    /// Runs a log-GC step in the log with the most garbage of those that no other thread collects.
    pub(super) fn collect_worst_log(&self) -> Result<bool, TreeError> {
        let guard = self.pool.pin();
        let has_work = |&log: &usize| self.log.is_due(log) || self.log.is_dead(log);
        let mut logs: Vec<_> = (0..T::LOGS).filter(has_work).collect();
        logs.sort_unstable_by_key(|&log| (Reverse(self.log.garbage(log)), log));
        for log in logs {
            if self.try_collect_step(log, &guard)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Collects a round of a log, or until it has space, so that a change that failed for lack of
    /// space can be tried again.
    ///
    /// # Errors
    /// Collecting makes no space: the pool's error. Or the pool is damaged.
    #[cold]
    pub(super) fn ensure_space(
        &self,
        failed: NotWritten,
        attempts: usize,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let (log, full) = match failed {
            NotWritten::NeedsCollection { log, full } => (log, full),
            NotWritten::Error(error) => return Err(error),
        };
        let _held = self.log.lock_collector(log);
        let last = self.log.last_lap(log);
        while !self.log.has_space(log)
            && self.log.front(log).is_some_and(|front| front.lap <= last)
            && self.collect_step(log, guard)?
        {}
        if attempts <= ATTEMPTS_MAX {
            return Ok(());
        }
        let wanted = segment::bytes(self.log.lines);
        let reason = MediumError::Limit { wanted, limit: self.pool.medium().len() };
        Err(full.unwrap_or_else(|| PoolError::Full { wanted, reason }.into()))
    }

    /// Consolidates live chains at the head of a log, at most to the end of a segment, and moves
    /// the head. The caller holds the collector latch. Returns `false` if there is nothing to
    /// collect or no space for copies.
    ///
    /// ```text
    /// for each live chain: W C F base |      crash: the old chain, then the base
    /// W C F copies of live end records |
    /// C F | head of the log      as `CircularLogs::advance`
    /// ```
    fn collect_step(&self, log: usize, guard: &Guard) -> Result<bool, Corrupt> {
        let (pool, root) = (&*self.pool, self.root_words()?);
        let Some(front) = self.log.front(log) else { return Ok(false) };
        let segment = Segment::open(pool, front.segment, self.log.lines)?;
        let (mut line, mut written, mut has_room) = (front.line, 0, true);
        let mut touched = Vec::new();
        while line < front.end && written < STEP_LINES {
            let Some(found) = segment.record(pool, front.lap, line)? else {
                line += 1;
                continue;
            };
            let collected = self.collect_record(&found, guard, &mut touched).inspect_err(|_| {
                let _ = pool.medium().fence(); // The next step fences only its own copies.
            });
            let Some(lines) = collected? else {
                has_room = false;
                break;
            };
            written += lines;
            line += found.head.lines();
        }
        if written > 0 {
            let _ = pool.medium().fence();
        }
        let has_moved = line > front.line;
        if has_moved {
            self.log.advance(pool, root, log, front, line);
            self.log.shrink(pool, root, log, guard)?;
        }
        touched.retain(|&other| other != log);
        touched.iter().try_for_each(|&other| self.clear_if_dead(other, guard))?;
        Ok(has_room && has_moved)
    }

    /// Frees the segments of a log in which nothing is live any more, unless another thread
    /// collects it.
    pub(super) fn clear_if_dead(&self, log: usize, guard: &Guard) -> Result<(), Corrupt> {
        if self.log.is_dead(log)
            && let Some(_held) = self.log.try_lock_collector(log)
        {
            self.log.clear(&self.pool, self.root_words()?, log, guard);
        }
        Ok(())
    }

    /// Consolidates the chain of a base at the head of the log, or copies an end record there, if
    /// it is live. Returns the number of lines written, or `None` if there is no space.
    fn collect_record(
        &self,
        found: &SegmentRecord<'_>,
        guard: &Guard,
        touched: &mut Vec<usize>,
    ) -> Result<Option<usize>, Corrupt> {
        match found.head.kind {
            RecordKind::Put | RecordKind::Removed => Ok(Some(0)),
            RecordKind::Base(_) => self.collect_chain(found, guard, touched),
            RecordKind::End => self.collect_end(found),
        }
    }

    fn collect_chain(
        &self,
        found: &SegmentRecord<'_>,
        guard: &Guard,
        touched: &mut Vec<usize>,
    ) -> Result<Option<usize>, Corrupt> {
        let leaf = found.head.leaf;
        let Some(index) = self.log.leaf(leaf) else { return Ok(Some(0)) };
        let row = self.table.row(index);
        let Some(_held) = row.latch::<M>().lock() else { return Ok(Some(0)) };
        if row.leaf::<M>() != leaf {
            return Ok(Some(0));
        }
        let chain = FoldedChain::<K>::read(&self.pool, row.head::<M>())?;
        if chain.base.at != found.at {
            return Ok(Some(0));
        }
        let range = chain.base.range(self.pool.medium());
        match self.rewrite(row, range, &chain.contents, true, guard, touched) {
            Ok(()) => Ok(Some(row.size::<M>().lines)),
            Err(error) => error.lacks_space().map(|()| None),
        }
    }

    fn collect_end(&self, found: &SegmentRecord<'_>) -> Result<Option<usize>, Corrupt> {
        let (medium, leaf) = (self.pool.medium(), found.head.leaf);
        let is_dropped = M::INJECTS_DEFECTS && medium.injects(Defect::LsEndDropped);
        if is_dropped || !self.log.is_end_live(leaf) {
            return Ok(Some(0));
        }
        let image = record::end_image(leaf, record::successors(medium, found.words));
        let Ok(_) = self.append(leaf, &image, 1, true)? else { return Ok(None) };
        self.log.drop_lines(T::log_of(leaf), 1);
        Ok(Some(1))
    }
}
