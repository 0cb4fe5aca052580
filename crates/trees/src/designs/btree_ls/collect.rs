//! What keeps the logs short: what is live in the oldest chunk of a log is appended again, and the chunk
//! is used anew.
//!
//! 1. A chain that a collector meets it puts together: one base takes its place. A record of a chain that
//!    has no deltas, or for which there is not that much room, is copied as it is. So what a collector
//!    copies from a chunk fits in a chunk.
//! 2. A collector works where at most half of the lines are live, or whatever [`Tuning`] says: after a write, on the oldest chunk of
//!    that write's log, of which it copies `STEP_LINES` at a time. Where a log has no room left, whoever
//!    wants some waits for the collector's latch and collects.
//!    While the index has [keepers](crate::maintenance), these do it, one in a log, the log with most garbage first;
//!    a write does it only where a log is twice as long as where collecting begins, or has no room left.
//! 3. A copy says what its original says, so it may be found before it is durable; the original goes when
//!    it is.

use super::BTreeLsIndex;
use super::chunk::{ChunkRecord, LINES_USUAL, LogChunk};
use super::record::{self, base_lines};
use super::space::GIVEN_BACK;
use super::table::Row;
use super::tuning::Tuning;
use super::write::WriteError;
use crate::index::{MaintenanceCost, TreeError};
use crate::key::Key;
use crate::spec::Cost;
use bristlecone_pmem::sync::{Guard, pin};
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Reverse;

/// Lines after which a collector leaves the rest of a chunk to the next one.
const STEP_LINES: usize = LINES_USUAL;

/// What a write may cost beyond its budget, and how seldom, in leaves of so many items.
pub(super) const fn maintenance_cost(capacity: usize) -> MaintenanceCost {
    // A base instead of a delta; the lines of a step and of the last record in it, and the fence of the step;
    // a line and a fence to begin a chunk anew or to give it back. A chain that is put together has a fence
    // of its own. A chunk more changes what the pool has given, so it is not part of this.
    let widest = base_lines(capacity);
    let lines = 2 * widest + STEP_LINES + GIVEN_BACK;
    let fences = STEP_LINES + 1 + GIVEN_BACK;
    MaintenanceCost { most: Cost::new(lines as u32, fences as u32), every: 3 }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsIndex<M, K, NODE, T> {
    /// Collects a little in a log, if it is worth its while, and nobody else is at it, or is there to do it.
    #[inline(always)]
    pub(super) fn maintain_log(&self, log: usize, guard: &Guard) -> Result<(), Corrupt> {
        let is_due = self.log.is_due(log) || self.log.is_dead(log);
        if is_due { self.collect_unless_kept(log, guard) } else { Ok(()) }
    }

    #[cold]
    fn collect_unless_kept(&self, log: usize, guard: &Guard) -> Result<(), Corrupt> {
        if self.maintainers.are_registered::<M>() && !self.log.is_behind(log) {
            return Ok(());
        }
        self.collect_some(log, guard).map(|_| ())
    }

    /// Collects a little in a log. False if nothing is to be done there, or somebody else is at it, or there is
    /// no room for copies.
    fn collect_some(&self, log: usize, guard: &Guard) -> Result<bool, Corrupt> {
        let Some(_held) = self.log.try_collector(log) else { return Ok(false) };
        if self.log.is_dead(log) {
            self.log.clear(&self.pool, self.root_words()?, log, guard);
            return Ok(true);
        }
        Ok(self.log.is_due(log) && self.step(log, false, guard)?)
    }

    /// Collects a little in the log that has most garbage of those that nobody else is at.
    pub(super) fn tend_worst(&self) -> Result<bool, TreeError> {
        let guard = pin();
        let garbage = |log| self.log.tended(log).map(|lines| (Reverse(lines), log));
        let mut logs: Vec<_> = (0..T::LOGS).filter_map(garbage).collect();
        logs.sort_unstable();
        for (_, log) in logs {
            if self.collect_some(log, &guard)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Collects so that a change can be made that there was no room for.
    ///
    /// # Errors
    /// No room comes of it: what the pool said, or what else was wrong.
    #[cold]
    pub(super) fn ensure_space(
        &self,
        unmade: WriteError,
        attempts: usize,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let (log, full) = match unmade {
            WriteError::Uncollected { log, full } => (log, full),
            WriteError::Error(error) => return Err(error),
        };
        let _held = self.log.collector(log);
        let has_moved = self.step(log, true, guard)?;
        // By then all that is live has been packed together, twice.
        let is_vain = !has_moved || attempts > 2 * self.log.filled(log) + 2;
        full.filter(|_| is_vain).map_or(Ok(()), Err)
    }

    /// Appends again what is live in the oldest chunk of a log, and begins it anew; for who has the collector's
    /// latch. False if there is no room for that. Where it is `urgent`, the only chunk is collected too,
    /// and nothing is left for later.
    ///
    /// ```text
    /// for each live record: W C F copy, or base of its chain |   crash: original or copy, or both
    /// |
    /// C F | use of the chunk      see `LeafLogs::recycle_oldest`
    /// ```
    fn step(&self, log: usize, urgent: bool, guard: &Guard) -> Result<bool, Corrupt> {
        let (pool, root) = (&*self.pool, self.root_words()?);
        let Some(oldest) = self.log.oldest(pool, root, log, urgent)? else { return Ok(false) };
        let chunk = LogChunk::open(pool, oldest, self.log.lines())?;
        let (mut line, mut moved) = (self.log.cursor(log), 0);
        let mut has_room = true;
        while line < chunk.lines() {
            let Some(found) = chunk.record(pool, line)? else {
                line += 1;
                continue;
            };
            if moved >= STEP_LINES && !urgent && !self.log.is_kept(log) {
                break;
            }
            let collected = self.collect_record(&found, urgent, guard).inspect_err(|_| {
                let _ = pool.medium().fence(); // The next step does not know of the copies so far.
            });
            let Some(lines) = collected? else {
                has_room = false;
                break;
            };
            moved += lines;
            line += found.head.lines();
        }
        self.log.set_cursor(log, line);
        if moved > 0 {
            let _ = pool.medium().fence();
        }
        if line >= chunk.lines() {
            self.log.recycle_oldest(pool, root, log, guard)?;
        }
        Ok(has_room)
    }

    /// Appends a record again if it is live; gives the lines that it took, or `None` if there is no room.
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
        if !urgent && row.shape::<M>().deltas() > 0 && self.consolidate(row, guard)? {
            return Ok(Some(row.shape::<M>().lines()));
        }
        let image = record::image_of(self.pool.medium(), found.words, found.head.kind);
        let lines = found.head.lines();
        let Ok(at) = self.append(leaf, &image, lines, true)? else { return Ok(None) };
        self.log.drop_lines(T::log_of(leaf), lines);
        row.moved::<M>(part, at);
        Ok(Some(lines))
    }

    /// Puts a chain together; false if there is no room. Durable at return.
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

    /// Collects now: chunks in which something is garbage are used anew, or given back. Writes go on
    /// meanwhile.
    ///
    /// # Errors
    /// The pool is damaged.
    pub fn collect(&self) -> Result<(), TreeError> {
        let guard = pin();
        for log in 0..T::LOGS {
            let _held = self.log.collector(log);
            // As many as there are now: what is appended meanwhile is not collected again.
            for _ in 1..self.log.filled(log) {
                let oldest = || self.log.chunks(log).first().copied();
                let first = oldest();
                while oldest() == first && self.step(log, false, &guard)? {}
            }
            if self.log.is_dead(log) {
                self.log.clear(&self.pool, self.root_words()?, log, &guard);
            }
        }
        Ok(())
    }
}
