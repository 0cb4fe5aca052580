//! Log garbage collection: a collector appends the live records of a log's oldest chunk again, then
//! reuses the chunk.
//!
//! 1. A collector consolidates the chains that it meets: one base replaces each. A record of a
//!    chain without deltas, or without space for a base, is copied unchanged. So the copies from
//!    one chunk fit in one chunk.
//! 2. GC of a log is due when at most [`Tuning::LIVE_PERCENT`] percent of the lines in its full
//!    chunks are live. A write to the log then copies up to `STEP_LINES` lines from its oldest
//!    chunk. If a log has no space, the writer waits for the collector latch and collects. While
//!    the index has [maintenance workers](crate::maintenance), they collect instead, one in each
//!    log, the log with the most garbage first. A write then collects only if its log is twice as
//!    long or has no space.
//! 3. A copy means the same as its original, so it may be visible before it is durable. The
//!    original is freed only after the copy is durable.

use super::BTreeLsRIndex;
use super::chunk::{ChunkRecord, LINES_USUAL, LogChunk};
use super::record::{self, base_lines};
use super::space::FREED_MAX;
use super::table::Row;
use super::tuning::Tuning;
use super::write::WriteError;
use crate::index::{MaintenanceCost, TreeError};
use crate::key::Key;
use crate::spec::Cost;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Reverse;

/// The number of lines after which a collector stops within a chunk.
const STEP_LINES: usize = LINES_USUAL;

/// Returns the cost of log GC within a write, and its frequency, for leaves of `capacity` pairs.
pub(super) const fn maintenance_cost(capacity: usize) -> MaintenanceCost {
    // A base instead of a delta; then one step's lines with its last record, and the step's fence;
    // then one line and one fence for each chunk reused or freed. Each consolidated chain has its
    // own fence. A new chunk is a change of the pool's allocation and not part of this.
    let max_record_lines = base_lines(capacity);
    let lines = 2 * max_record_lines + STEP_LINES + FREED_MAX;
    let fences = STEP_LINES + 1 + FREED_MAX;
    MaintenanceCost { most: Cost::new(lines as u32, fences as u32), every: 3 }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsRIndex<M, K, NODE, T> {
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
        Ok(self.log.is_due(log) && self.collect_step(log, false, guard)?)
    }

    /// Runs a log-GC step in the log with the most garbage of those that no other thread collects.
    pub(super) fn collect_worst_log(&self) -> Result<bool, TreeError> {
        let guard = self.pool.pin();
        let garbage = |log| self.log.garbage_lines(log).map(|lines| (Reverse(lines), log));
        let mut logs: Vec<_> = (0..T::LOGS).filter_map(garbage).collect();
        logs.sort_unstable();
        for (_, log) in logs {
            if self.try_collect_step(log, &guard)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Collects, so that a change that failed for lack of space can be tried again.
    ///
    /// # Errors
    /// Collecting makes no space: the pool's error. Or the pool is damaged.
    #[cold]
    pub(super) fn ensure_space(
        &self,
        failed: WriteError,
        attempts: usize,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let (log, full) = match failed {
            WriteError::NeedsCollection { log, full } => (log, full),
            WriteError::Error(error) => return Err(error),
        };
        let _held = self.log.lock_collector(log);
        let has_copied = self.collect_step(log, true, guard)?;
        // After two rounds over all chunks, everything live is packed.
        let is_futile = !has_copied || attempts > 2 * self.log.filled(log) + 2;
        full.filter(|_| is_futile).map_or(Ok(()), Err)
    }

    /// Copies live records of a log's oldest chunk and, at its end, reuses the chunk. The caller
    /// holds the collector latch. Returns `false` if there is no space for copies. If `urgent`,
    /// also collects an only chunk, and does not stop before the end.
    ///
    /// ```text
    /// for each live record: W C F copy, or base of its chain |  crash: original or copy
    /// |
    /// C F | use of the chunk      as `LeafLogs::recycle_oldest`
    /// ```
    fn collect_step(&self, log: usize, urgent: bool, guard: &Guard) -> Result<bool, Corrupt> {
        let (pool, root) = (&*self.pool, self.root_words()?);
        let Some(oldest) = self.log.oldest(pool, root, log, urgent)? else { return Ok(false) };
        let chunk = LogChunk::open(pool, oldest, self.log.lines())?;
        let (mut line, mut copied_lines) = (self.log.cursor(log), 0);
        let mut has_room = true;
        while line < chunk.lines() {
            let Some(found) = chunk.record(pool, line)? else {
                line += 1;
                continue;
            };
            if copied_lines >= STEP_LINES && !urgent && !self.log.is_reserve_open(log) {
                break;
            }
            let collected = self.collect_record(&found, urgent, guard).inspect_err(|_| {
                let _ = pool.medium().fence(); // The next collect_step fences only its own copies.
            });
            let Some(lines) = collected? else {
                has_room = false;
                break;
            };
            copied_lines += lines;
            line += found.head.lines();
        }
        self.log.set_cursor(log, line);
        if copied_lines > 0 {
            let _ = pool.medium().fence();
        }
        if line >= chunk.lines() {
            self.log.recycle_oldest(pool, root, log, guard)?;
        }
        Ok(has_room)
    }

    /// Copies a record if it is live. Returns the number of lines written, or `None` if there is no
    /// space.
    pub(super) fn collect_record(
        &self,
        found: &ChunkRecord<'_>,
        urgent: bool,
        guard: &Guard,
    ) -> Result<Option<usize>, Corrupt> {
        let leaf = found.head.leaf;
        let Some(index) = self.log.leaf(leaf) else { return Ok(Some(0)) };
        let row = self.table.row(index);
        let Some(_held) = row.latch::<M>().lock() else { return Ok(Some(0)) };
        if row.leaf::<M>() != leaf {
            return Ok(Some(0));
        }
        let Some(part) = row.part_at::<M>(found.at) else { return Ok(Some(0)) };
        if !urgent && row.size::<M>().deltas() > 0 && self.consolidate(row, guard)? {
            return Ok(Some(row.size::<M>().lines()));
        }
        let image = record::image_of(self.pool.medium(), found.words, found.head.kind);
        let lines = found.head.lines();
        let Ok(at) = self.append(leaf, &image, lines, true)? else { return Ok(None) };
        self.log.drop_lines(T::log_of(leaf), lines);
        row.relocate::<M>(part, at);
        Ok(Some(lines))
    }

    /// Consolidates a chain. Returns `false` if there is no space. Durable on return.
    fn consolidate(&self, row: Row<'_>, guard: &Guard) -> Result<bool, Corrupt> {
        let contents = row.contents::<K, M>(&self.pool)?;
        let range = row.base_in(&self.pool)?.range(self.pool.medium());
        match self.rewrite(row, row.sequence::<M>(), range, &contents, guard) {
            Ok(()) => Ok(true),
            Err(WriteError::Error(TreeError::Pool(bristlecone_pmem::PoolError::Corrupt(
                corrupt,
            )))) => Err(corrupt),
            Err(_) => Ok(false),
        }
    }

    /// Collects all logs now: reuses or frees every chunk with garbage. Writes may run at the same
    /// time.
    ///
    /// # Errors
    /// The pool is damaged.
    pub fn collect(&self) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        for log in 0..T::LOGS {
            let _held = self.log.lock_collector(log);
            // Limited to the present number of chunks: records appended meanwhile are not
            // collected.
            for _ in 1..self.log.filled(log) {
                let oldest = || self.log.chunks(log).first().copied();
                let first = oldest();
                while oldest() == first && self.collect_step(log, false, &guard)? {}
            }
            if self.log.is_dead(log) {
                self.log.clear(&self.pool, self.root_words()?, log, &guard);
            }
        }
        Ok(())
    }
}
