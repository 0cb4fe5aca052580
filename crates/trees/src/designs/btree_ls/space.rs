//! The space of the logs: admission of records, growing, shrinking and freeing logs, and the GC
//! threshold.
//!
//! 1. Records leave the ends of segments empty. So a segment has space for at least
//!    `whole_lines` lines of them.
//! 2. Before log GC has passed the last record of a chain, the chain lies in the log twice: as it
//!    was, and as the base that replaces it. The base takes at most one line more for each delta,
//!    and the head has passed the lines of the old base. So one round of GC needs empty segments
//!    for half of the live lines (`spare_segments`).
//! 3. A thread may lengthen a chain only if, with all live lines packed, so many segments would be
//!    empty (`least_segments`). Otherwise the log grows, or the change fails.

use super::log::{
    AppendedRecord, CircularLists, CircularLog, CircularLogs, NotAppended, segments_word,
};
use super::segment::{self, Segment};
use super::tuning::{GC_OFF, LsOptions};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::sync::atomic::Ordering::Relaxed;

/// The empty segments that a log may have beyond those that it needs, before GC frees one.
const EXCESS_MAX: usize = 2;
/// The most segments that are freed after one step of GC.
pub(super) const FREED_MAX: usize = 2;

impl<M: Medium, T: LsOptions> CircularLogs<M, T> {
    /// Returns the lines of a segment that records can use in any case.
    fn whole_lines(&self) -> usize {
        self.lines - self.max_record_lines
    }

    /// Returns the number of empty segments that a round of log GC needs with `live` live lines.
    fn spare_segments(&self, live: usize) -> usize {
        (live / 2 + 2 * self.max_record_lines).div_ceil(self.whole_lines()) + 1
    }

    /// Returns the fewest segments of a log with `live` live lines: two of the filled ones may have
    /// few of them, and the next record may open one.
    fn least_segments(&self, live: usize) -> usize {
        live.div_ceil(self.whole_lines()) + 3 + self.spare_segments(live)
    }

    /// Ensures that a record of `lines` lines may be appended; grows the log if needed. The caller
    /// holds the log's latch.
    pub(super) fn admit(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        request: &AppendedRecord<'_>,
        lines: usize,
    ) -> Result<Result<(), NotAppended>, Corrupt> {
        let (log, state) = (request.log, &self.states[request.log]);
        let live = (state.live.load(Relaxed) + lines).saturating_sub(request.replaced);
        let missing = self.least_segments(live).saturating_sub(state.segments.load(Relaxed));
        if lines > request.replaced
            && missing > 0
            && let Err(full) = self.grow(pool, root, log, missing)?
        {
            return Ok(Err(NotAppended::Full(full)));
        }
        while !self.has_spare(log, live, lines) {
            if self.is_overdue(log) {
                return Ok(Err(NotAppended::NeedsCollection(None)));
            }
            if let Err(full) = self.grow(pool, root, log, 1)? {
                return Ok(Err(NotAppended::NeedsCollection(Some(full))));
            }
        }
        Ok(Ok(()))
    }

    /// Returns `true` if enough segments stay empty when a record of `lines` lines is appended.
    fn has_spare(&self, log: usize, live: usize, lines: usize) -> bool {
        let opened = usize::from(!self.fits_open(log, lines));
        self.empty(log) >= self.spare_segments(live) + opened
    }

    /// Returns `true` if the longest record may be appended instead of others. The caller is the
    /// collector.
    pub(super) fn has_space(&self, log: usize) -> bool {
        let _held = self.lock_log(log);
        let live = self.live(log) + self.max_record_lines;
        self.has_spare(log, live, self.max_record_lines)
    }

    /// Links `more` empty segments to a log, or none if the pool has too little space. Durable on
    /// return. The caller holds the log's latch.
    ///
    /// ```text
    /// N segments, linked to each other and to the first |   crash before C: they are free
    /// C first segment of the log   8 B
    /// F that word |       -> durable: they belong to the log and are empty
    /// ```
    #[cold]
    fn grow(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        more: usize,
    ) -> Result<Result<(), PoolError>, Corrupt> {
        let (state, bytes) = (&self.states[log], segment::bytes(self.lines));
        let mut blocks = Vec::with_capacity(more);
        for _ in 0..more {
            match pool.reserve(bytes) {
                Ok(at) => blocks.push(at),
                Err(full) => {
                    for at in blocks {
                        pool.release(at, bytes);
                    }
                    return Ok(Err(full));
                }
            }
        }
        let mut first = state.lists.lock().linked.last().copied().unwrap_or(PmPtr::NULL);
        for &at in &blocks {
            Segment::make(pool, at, self.lines, first)?;
            first = at;
        }
        let fenced = pool.medium().fence();
        let word = segments_word(root, log);
        pool.medium().commit(word, first.offset(), fenced);
        let _ = pool.medium().persist(core::slice::from_ref(word));
        state.segments.fetch_add(more, Relaxed);
        let mut lists = state.lists.lock();
        lists.ring.extend(blocks.iter().map(|&at| super::log::SegmentPlace { at, lap: 0 }));
        lists.linked.extend(&blocks);
        Ok(Ok(()))
    }

    /// Frees empty segments that a log does not need. Durable on return. The caller is the
    /// collector.
    pub(super) fn shrink(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let _held = self.lock_log(log);
        for _ in 0..FREED_MAX {
            let live = self.live(log);
            let has_excess = self.empty(log) > self.spare_segments(live) + EXCESS_MAX
                && self.states[log].segments.load(Relaxed) > self.least_segments(live);
            if !has_excess {
                break;
            }
            self.unlink_last(pool, root, log, guard)?;
        }
        Ok(())
    }

    /// Unlinks and frees the last empty segment. Durable on return.
    ///
    /// ```text
    /// C link to it = its own link   8 B   crash before C: an empty segment
    /// F that word |                         -> then the segment is free
    /// ```
    fn unlink_last(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let state = &self.states[log];
        let (at, next, leading) = {
            let CircularLists { ring, linked, .. } = &mut *state.lists.lock();
            let Some(last) = ring.pop_back() else { return Ok(()) };
            let place = linked.iter().position(|&at| at == last.at).unwrap_or(0);
            let next = place.checked_sub(1).map_or(PmPtr::NULL, |next| linked[next]);
            linked.remove(place);
            (last.at, next, linked.get(place).copied())
        };
        let word = match leading {
            Some(leading) => Segment::open(pool, leading, self.lines)?.next_word(),
            None => segments_word(root, log),
        };
        pool.medium().store(word, next.offset());
        let _ = pool.medium().persist(core::slice::from_ref(word));
        state.segments.fetch_sub(1, Relaxed);
        pool.retire(at, segment::bytes(self.lines), guard);
        Ok(())
    }

    /// Frees all segments of a log in which nothing is live. The caller is the collector.
    ///
    /// ```text
    /// C first segment of the log = 0   8 B
    /// F that word |           -> then the segments are free
    /// ```
    pub(super) fn clear(&self, pool: &Pool<M>, root: &[PmWord], log: usize, guard: &Guard) {
        let state = &self.states[log];
        let _held = self.lock_log(log);
        if !self.is_dead(log) {
            return;
        }
        let word = segments_word(root, log);
        pool.medium().store(word, 0);
        let _ = pool.medium().persist(core::slice::from_ref(word));
        state.open.store(0, Relaxed);
        state.filled.store(0, Relaxed);
        state.segments.store(0, Relaxed);
        let CircularLists { ring, linked, .. } = &mut *state.lists.lock();
        linked.clear();
        for place in core::mem::take(ring) {
            pool.retire(place.at, segment::bytes(self.lines), guard);
        }
    }

    /// Subtracts `lines` from the live lines of a log.
    pub(super) fn drop_lines(&self, log: usize, lines: usize) {
        self.states[log].live.fetch_sub(lines, Relaxed);
    }

    pub(super) fn live(&self, log: usize) -> usize {
        self.states[log].live.load(Relaxed)
    }

    fn empty(&self, log: usize) -> usize {
        let state = &self.states[log];
        state.segments.load(Relaxed).saturating_sub(state.filled.load(Relaxed))
    }

    /// Returns `true` if a log has segments but no live line.
    pub(super) fn is_dead(&self, log: usize) -> bool {
        self.live(log) == 0 && self.states[log].segments.load(Relaxed) > 0
    }

    /// Returns `true` if a log has more garbage than [`LsOptions::GARBAGE_KIB`] allows.
    pub(super) fn is_due(&self, log: usize) -> bool {
        self.exceeds(log, 1)
    }

    /// Returns `true` if a log has twice the garbage that makes GC due: the maintenance workers do
    /// not keep up.
    pub(super) fn is_overdue(&self, log: usize) -> bool {
        self.exceeds(log, 2)
    }

    fn exceeds(&self, log: usize, times: usize) -> bool {
        let filled = self.states[log].filled.load(Relaxed);
        if filled < 2 || T::GARBAGE_KIB == GC_OFF {
            return false;
        }
        // The empty ends of packed segments are no garbage that GC could free.
        let ends = filled * self.max_record_lines;
        let threshold = match T::GARBAGE_KIB {
            0 => self.live(log) + self.lines,
            kib => kib * 1024 / LINE_BYTES,
        };
        self.garbage(log) > times * threshold + ends
    }

    /// Returns the lines from the head of a log to its tail that are not live.
    pub(super) fn garbage(&self, log: usize) -> usize {
        let CircularLog { filled, line, head, .. } = &self.states[log];
        let passed = head.load(Relaxed) as usize % self.lines;
        let used = filled.load(Relaxed).saturating_sub(1) * (self.lines - 1) + line.load(Relaxed);
        used.saturating_sub(passed + self.live(log))
    }

    /// Returns the greatest lap of a log.
    pub(super) fn last_lap(&self, log: usize) -> u64 {
        self.states[log].lap.load(Relaxed)
    }

    /// Returns the table index of a leaf.
    pub(super) fn leaf(&self, leaf: u64) -> Option<usize> {
        M::yield_point();
        self.state_of(leaf).lists.lock().leaves.get(&leaf).copied()
    }

    pub(super) fn add_leaf(&self, leaf: u64, index: usize) {
        M::yield_point();
        self.state_of(leaf).lists.lock().leaves.insert(leaf, index);
    }

    pub(super) fn remove_leaf(&self, leaf: u64) {
        M::yield_point();
        self.state_of(leaf).lists.lock().leaves.remove(&leaf);
    }

    /// Records that `bases` bases wait for the end of `leaf`.
    pub(super) fn add_end(&self, leaf: u64, bases: u8) {
        M::yield_point();
        self.state_of(leaf).lists.lock().ended.insert(leaf, bases);
    }

    /// Returns `true` if a base waits for the end of `leaf`.
    pub(super) fn is_end_live(&self, leaf: u64) -> bool {
        M::yield_point();
        self.state_of(leaf).lists.lock().ended.contains_key(&leaf)
    }

    /// Records that one base less waits for the end of `leaf`, because a later record of its chain
    /// is durable. With the last one the end record becomes garbage.
    pub(super) fn confirm(&self, leaf: u64) {
        M::yield_point();
        let state = self.state_of(leaf);
        let CircularLists { ended, .. } = &mut *state.lists.lock();
        if let Some(bases) = ended.get_mut(&leaf) {
            *bases -= 1;
            if *bases == 0 {
                ended.remove(&leaf);
                state.live.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Takes back [`add_end`](Self::add_end), because no end record was appended.
    pub(super) fn remove_end(&self, leaf: u64) {
        M::yield_point();
        self.state_of(leaf).lists.lock().ended.remove(&leaf);
    }

    fn state_of(&self, leaf: u64) -> &CircularLog {
        &self.states[T::log_of(leaf)]
    }
}
