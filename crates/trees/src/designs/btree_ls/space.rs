//! How much room the logs have: who may append what, which chunks are kept, when to collect.

use super::chunk::{self, LogChunk};
use super::log::{LeafLogs, LogState, State, Wanted, head_word};
use super::tuning::Tuning;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::sync::atomic::Ordering::Relaxed;

/// Chunks that a log keeps empty, for what comes next: two, and one for so many that have records.
const EMPTY_LEAST: usize = 2;
const EMPTY_SHARE: usize = 8;
/// Chunks that are given back at most when one has been collected: as a log shrinks, fewer are kept empty.
pub(super) const GIVEN_BACK: usize = 2;
/// Where more in a hundred lines may be live, a log can be due though it is packed, for records leave the ends of
/// chunks empty: whoever tends it while nobody writes would copy for ever. Two neighbouring chunks that are packed
/// are more than half full together, for a record of the second did not fit in the first.
const TENDED_PERCENT: usize = 50;

impl<M: Medium, T: Tuning> LeafLogs<M, T> {
    /// Lines of a chunk that records may take.
    fn room(&self) -> usize {
        self.lines - 1
    }

    /// Live lines that a log of so many chunks may have: see invariant 5 of `log`.
    fn live_max(&self, chunks: usize) -> usize {
        let whole = self.room() + 1 - self.widest;
        (chunks.saturating_sub(1) * whole).saturating_sub(self.widest)
    }

    /// Makes sure that a log may have so many live lines more, or else that they are no more than those
    /// that go; takes chunks from the pool for it. For who has the log's latch.
    pub(super) fn admit(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        wanted: &Wanted<'_>,
        lines: usize,
    ) -> Result<Result<(), PoolError>, Corrupt> {
        let (side, replaced) = (&self.sides[wanted.log], wanted.replaced);
        if lines <= replaced {
            return Ok(Ok(()));
        }
        let live = (side.live.load(Relaxed) + lines).saturating_sub(replaced);
        let chunks = side.chunks.load(Relaxed);
        let mut more = 0;
        while live > self.live_max(chunks + more) {
            more += 1;
        }
        if more == 0 { Ok(Ok(())) } else { self.grow(pool, root, wanted.log, more) }
    }

    /// Links so many empty chunks more to a log, or none if the pool has not got as many. Durable at return.
    /// For who has the log's latch.
    ///
    /// ```text
    /// N chunks, each leads to the next, the last to the head |   crash before C: the pool's
    /// C head of the log   8 B
    /// F that word |       -> durable: the log's, and empty. A crash before the first record leaves them so
    /// ```
    #[cold]
    pub(super) fn grow(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        more: usize,
    ) -> Result<Result<(), PoolError>, Corrupt> {
        let (side, bytes) = (&self.sides[log], chunk::bytes(self.lines));
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
        let mut uses = side.newest.load(Relaxed);
        let mut head = side.state.lock().linked.last().copied().unwrap_or(PmPtr::NULL);
        for &at in &blocks {
            uses += 1;
            LogChunk::make(pool, at, self.lines, uses, head)?;
            head = at;
        }
        let fenced = pool.medium().fence();
        let word = head_word(root, log);
        pool.medium().commit(word, head.offset(), fenced);
        let _ = pool.medium().persist(core::slice::from_ref(word));
        side.newest.store(uses, Relaxed);
        side.chunks.fetch_add(more, Relaxed);
        let mut state = side.state.lock();
        state.chunks.extend(&blocks);
        state.linked.extend(&blocks);
        Ok(Ok(()))
    }

    /// Begins the oldest chunk anew, in which nothing is live any more, or gives it back, and perhaps another.
    /// Durable at return. For who collects, who has fenced the copies.
    ///
    /// ```text
    /// C use of the chunk   8 B                  crash before C: original or copy, or both: the same
    /// F its line |         -> durable: empty, and the newest; what was the newest counts
    /// ```
    pub(super) fn recycle_oldest(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let side = &self.sides[log];
        let _held = self.latched(log);
        let Some(oldest) = side.state.lock().chunks.front().copied() else { return Ok(()) };
        if self.has_too_many(log, 1) {
            self.unlink(pool, root, log, 0, guard)?;
            side.filled.fetch_sub(1, Relaxed);
        } else {
            let uses = side.newest.load(Relaxed) + 1;
            LogChunk::open(pool, oldest, self.lines)?.renew(pool.medium(), uses);
            side.newest.store(uses, Relaxed);
            side.filled.fetch_sub(1, Relaxed);
            side.is_kept.store(false, Relaxed);
            side.state.lock().chunks.rotate_left(1);
        }
        side.cursor.store(1, Relaxed);
        for _ in 1..GIVEN_BACK {
            if self.has_too_many(log, 0) {
                self.unlink(pool, root, log, side.filled.load(Relaxed), guard)?;
            }
        }
        Ok(())
    }

    /// Whether a log has more chunks than it need keep, once so many of those that have records are empty.
    fn has_too_many(&self, log: usize, emptied: usize) -> bool {
        let side = &self.sides[log];
        let (chunks, filled) = (side.chunks.load(Relaxed), side.filled.load(Relaxed) - emptied);
        chunks - filled > EMPTY_LEAST + filled / EMPTY_SHARE
            && side.live.load(Relaxed) <= self.live_max(chunks - 1)
    }

    /// Unlinks a chunk, by its place among all from the oldest on, and gives it back. It is not the newest,
    /// and nothing in it is live. Durable at return.
    ///
    /// ```text
    /// C what leads to it = the chunk that it leads to   8 B   crash before C: empty, or original or copy
    /// F that word |                                           -> then the chunk is free
    /// ```
    fn unlink(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        place: usize,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let side = &self.sides[log];
        let (at, next, leading) = {
            let state = side.state.lock();
            let at = state.chunks[place];
            let linked = state.linked.iter().position(|&chunk| chunk == at).unwrap_or(0);
            let next = linked.checked_sub(1).map_or(PmPtr::NULL, |next| state.linked[next]);
            (at, next, state.linked.get(linked + 1).copied())
        };
        let word = match leading {
            Some(leading) => LogChunk::open(pool, leading, self.lines)?.next_word(),
            None => head_word(root, log),
        };
        pool.medium().store(word, next.offset());
        let _ = pool.medium().persist(core::slice::from_ref(word));
        side.chunks.fetch_sub(1, Relaxed);
        let mut state = side.state.lock();
        state.chunks.remove(place);
        state.linked.retain(|&chunk| chunk != at);
        drop(state);
        pool.retire(at, chunk::bytes(self.lines), guard);
        Ok(())
    }

    /// Gives all chunks of a log back in which nothing is live. For who collects.
    ///
    /// ```text
    /// C head of the log = 0   8 B
    /// F that word |           -> then the chunks are free
    /// ```
    pub(super) fn clear(&self, pool: &Pool<M>, root: &[PmWord], log: usize, guard: &Guard) {
        let side = &self.sides[log];
        let _held = self.latched(log);
        if !self.is_dead(log) {
            return;
        }
        let word = head_word(root, log);
        pool.medium().store(word, 0);
        let _ = pool.medium().persist(core::slice::from_ref(word));
        side.open.store(0, Relaxed);
        side.filled.store(0, Relaxed);
        side.chunks.store(0, Relaxed);
        side.cursor.store(1, Relaxed);
        let State { chunks, linked, .. } = &mut *side.state.lock();
        linked.clear();
        for at in core::mem::take(chunks) {
            pool.retire(at, chunk::bytes(self.lines), guard);
        }
    }

    /// So many lines of a log are live no more.
    pub(super) fn drop_lines(&self, log: usize, lines: usize) {
        self.sides[log].live.fetch_sub(lines, Relaxed);
    }

    /// Whether no line of a log is live, though it has chunks.
    pub(super) fn is_dead(&self, log: usize) -> bool {
        let side = &self.sides[log];
        side.live.load(Relaxed) == 0 && side.chunks.load(Relaxed) > 0
    }

    /// Whether at most [`Tuning::LIVE_PERCENT`] of the lines of the chunks that are full are live.
    pub(super) fn is_due(&self, log: usize) -> bool {
        self.is_sparse(log, self.full(log), T::LIVE_PERCENT)
    }

    /// Whether a log is twice as long as where collecting begins: keepers do not keep up.
    pub(super) fn is_behind(&self, log: usize) -> bool {
        self.is_sparse(log, self.full(log) / 2, T::LIVE_PERCENT)
    }

    /// How many lines of a log are garbage, if there is something in it for a keeper to do.
    pub(super) fn tended(&self, log: usize) -> Option<usize> {
        let full = self.full(log);
        let is_due = self.is_sparse(log, full, T::LIVE_PERCENT.min(TENDED_PERCENT));
        (is_due || self.is_dead(log)).then(|| (full * self.room()).saturating_sub(self.live(log)))
    }

    /// Chunks of a log that take no record more.
    fn full(&self, log: usize) -> usize {
        self.filled(log).saturating_sub(1)
    }

    /// Whether no more than so many in a hundred lines of so many full chunks are live.
    fn is_sparse(&self, log: usize, full: usize, percent: usize) -> bool {
        full > 0 && 100 * self.live(log) <= percent * full * self.room()
    }

    /// Whether the chunk for collecting is being filled.
    pub(super) fn is_kept(&self, log: usize) -> bool {
        self.sides[log].is_kept.load(Relaxed)
    }

    /// Chunks of a log that have records.
    pub(super) fn filled(&self, log: usize) -> usize {
        self.sides[log].filled.load(Relaxed)
    }

    pub(super) fn live(&self, log: usize) -> usize {
        self.sides[log].live.load(Relaxed)
    }

    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Of the oldest chunk of a log, the line at which collecting goes on.
    pub(super) fn cursor(&self, log: usize) -> usize {
        self.sides[log].cursor.load(Relaxed).max(1)
    }

    pub(super) fn set_cursor(&self, log: usize, line: usize) {
        self.sides[log].cursor.store(line, Relaxed);
    }

    /// The index in the table of a leaf.
    pub(super) fn leaf(&self, leaf: u64) -> Option<usize> {
        M::yield_point();
        self.side_of(leaf).state.lock().leaves.get(&leaf).copied()
    }

    pub(super) fn add_leaf(&self, leaf: u64, index: usize) {
        M::yield_point();
        self.side_of(leaf).state.lock().leaves.insert(leaf, index);
    }

    pub(super) fn remove_leaf(&self, leaf: u64) {
        M::yield_point();
        self.side_of(leaf).state.lock().leaves.remove(&leaf);
    }

    fn side_of(&self, leaf: u64) -> &LogState {
        &self.sides[T::log_of(leaf)]
    }

    /// The chunks of a log, the oldest first.
    pub(super) fn chunks(&self, log: usize) -> Vec<PmPtr> {
        self.sides[log].state.lock().chunks.iter().copied().collect()
    }
}
