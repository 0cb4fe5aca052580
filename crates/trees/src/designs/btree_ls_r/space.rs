//! The space of the logs: admission of records, growing, reusing and freeing chunks, and the GC
//! threshold.

use super::chunk::{self, LogChunk};
use super::log::{AppendRequest, LeafLogs, LogLists, LogState, head_word};
use super::tuning::Tuning;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::sync::atomic::Ordering::Relaxed;

/// The empty chunks that a log keeps for future records: two, and one more for each eight filled
/// ones.
const EMPTY_MIN: usize = 2;
const EMPTY_SHARE: usize = 8;
/// The most chunks that are freed after one was collected, as a shrinking log keeps fewer empty
/// ones.
pub(super) const FREED_MAX: usize = 2;
/// The upper limit of the threshold for maintenance workers. Records leave the ends of chunks
/// empty, so above 50 percent a packed log could stay due and a worker would copy for ever. Two
/// adjacent packed chunks are together more than half full, because a record of the second did not
/// fit in the first.
const MAINTENANCE_PERCENT: usize = 50;

impl<M: Medium, T: Tuning> LeafLogs<M, T> {
    /// Returns the lines of a chunk that records can use.
    fn record_lines(&self) -> usize {
        self.lines - 1
    }

    /// Returns the most live lines that a log of `chunks` chunks may have: invariant 5 of `log`.
    fn live_max(&self, chunks: usize) -> usize {
        let whole = self.record_lines() + 1 - self.max_record_lines;
        (chunks.saturating_sub(1) * whole).saturating_sub(self.max_record_lines)
    }

    /// Ensures that the log may have `lines` more live lines, minus the replaced ones; grows the
    /// log if needed. The caller holds the log's latch.
    pub(super) fn reserve_lines(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        request: &AppendRequest<'_>,
        lines: usize,
    ) -> Result<Result<(), PoolError>, Corrupt> {
        let (state, replaced) = (&self.states[request.log], request.replaced);
        if lines <= replaced {
            return Ok(Ok(()));
        }
        let live = (state.live.load(Relaxed) + lines).saturating_sub(replaced);
        let chunks = state.chunks.load(Relaxed);
        let mut more = 0;
        while live > self.live_max(chunks + more) {
            more += 1;
        }
        if more == 0 { Ok(Ok(())) } else { self.grow(pool, root, request.log, more) }
    }

    /// Links `more` empty chunks to a log, or none if the pool has too little space. Durable on
    /// return. The caller holds the log's latch.
    ///
    /// ```text
    /// N chunks, linked to each other and to the head |   crash before C: the chunks are free
    /// C head of the log   8 B
    /// F that word |       -> durable: they belong to the log and are empty
    /// ```
    #[cold]
    pub(super) fn grow(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        more: usize,
    ) -> Result<Result<(), PoolError>, Corrupt> {
        let (state, bytes) = (&self.states[log], chunk::bytes(self.lines));
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
        let mut uses = state.newest.load(Relaxed);
        let mut head = state.lists.lock().linked.last().copied().unwrap_or(PmPtr::NULL);
        for &at in &blocks {
            uses += 1;
            LogChunk::make(pool, at, self.lines, uses, head)?;
            head = at;
        }
        let fenced = pool.medium().fence();
        let word = head_word(root, log);
        pool.medium().commit(word, head.offset(), fenced);
        let _ = pool.medium().persist(core::slice::from_ref(word));
        state.newest.store(uses, Relaxed);
        state.chunks.fetch_add(more, Relaxed);
        let mut lists = state.lists.lock();
        lists.chunks.extend(&blocks);
        lists.linked.extend(&blocks);
        Ok(Ok(()))
    }

    /// Reuses the oldest chunk, in which nothing is live, or frees it; may free one more. Durable
    /// on return. The caller is the collector and has fenced the copies.
    ///
    /// ```text
    /// C use of the chunk   8 B                  crash before C: originals, copies or both
    /// F its line |         -> durable: it is the reserve chunk; the previous one is valid
    /// ```
    pub(super) fn recycle_oldest(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let state = &self.states[log];
        let _held = self.lock_log(log);
        let Some(oldest) = state.lists.lock().chunks.front().copied() else { return Ok(()) };
        if self.has_excess_chunk(log, 1) {
            self.unlink(pool, root, log, 0, guard)?;
            state.filled.fetch_sub(1, Relaxed);
        } else {
            let uses = state.newest.load(Relaxed) + 1;
            LogChunk::open(pool, oldest, self.lines)?.begin_use(pool.medium(), uses);
            state.newest.store(uses, Relaxed);
            state.filled.fetch_sub(1, Relaxed);
            state.is_reserve_open.store(false, Relaxed);
            state.lists.lock().chunks.rotate_left(1);
        }
        state.cursor.store(1, Relaxed);
        for _ in 1..FREED_MAX {
            if self.has_excess_chunk(log, 0) {
                self.unlink(pool, root, log, state.filled.load(Relaxed), guard)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if a log has more chunks than it should keep, once `emptied` of the filled
    /// ones are empty.
    fn has_excess_chunk(&self, log: usize, emptied: usize) -> bool {
        let state = &self.states[log];
        let (chunks, filled) = (state.chunks.load(Relaxed), state.filled.load(Relaxed) - emptied);
        chunks - filled > EMPTY_MIN + filled / EMPTY_SHARE
            && state.live.load(Relaxed) <= self.live_max(chunks - 1)
    }

    /// Unlinks and frees the chunk at index `place`, counted from the oldest. It is not the newest,
    /// and nothing in it is live. Durable on return.
    ///
    /// ```text
    /// C link to it = its own link   8 B   crash before C: an empty or collected chunk
    /// F that word |                         -> then the chunk is free
    /// ```
    fn unlink(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        place: usize,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let state = &self.states[log];
        let (at, next, leading) = {
            let lists = state.lists.lock();
            let at = lists.chunks[place];
            let linked = lists.linked.iter().position(|&chunk| chunk == at).unwrap_or(0);
            let next = linked.checked_sub(1).map_or(PmPtr::NULL, |next| lists.linked[next]);
            (at, next, lists.linked.get(linked + 1).copied())
        };
        let word = match leading {
            Some(leading) => LogChunk::open(pool, leading, self.lines)?.next_word(),
            None => head_word(root, log),
        };
        pool.medium().store(word, next.offset());
        let _ = pool.medium().persist(core::slice::from_ref(word));
        state.chunks.fetch_sub(1, Relaxed);
        let mut lists = state.lists.lock();
        lists.chunks.remove(place);
        lists.linked.retain(|&chunk| chunk != at);
        drop(lists);
        pool.retire(at, chunk::bytes(self.lines), guard);
        Ok(())
    }

    /// Frees all chunks of a log in which nothing is live. The caller is the collector.
    ///
    /// ```text
    /// C head of the log = 0   8 B
    /// F that word |           -> then the chunks are free
    /// ```
    pub(super) fn clear(&self, pool: &Pool<M>, root: &[PmWord], log: usize, guard: &Guard) {
        let state = &self.states[log];
        let _held = self.lock_log(log);
        if !self.is_dead(log) {
            return;
        }
        let word = head_word(root, log);
        pool.medium().store(word, 0);
        let _ = pool.medium().persist(core::slice::from_ref(word));
        state.open.store(0, Relaxed);
        state.filled.store(0, Relaxed);
        state.chunks.store(0, Relaxed);
        state.cursor.store(1, Relaxed);
        let LogLists { chunks, linked, .. } = &mut *state.lists.lock();
        linked.clear();
        for at in core::mem::take(chunks) {
            pool.retire(at, chunk::bytes(self.lines), guard);
        }
    }

    /// Subtracts `lines` from the live lines of a log.
    pub(super) fn drop_lines(&self, log: usize, lines: usize) {
        self.states[log].live.fetch_sub(lines, Relaxed);
    }

    /// Returns `true` if a log has chunks but no live line.
    pub(super) fn is_dead(&self, log: usize) -> bool {
        let state = &self.states[log];
        state.live.load(Relaxed) == 0 && state.chunks.load(Relaxed) > 0
    }

    /// Returns `true` if at most [`Tuning::LIVE_PERCENT`] percent of the lines in full chunks are
    /// live.
    pub(super) fn is_due(&self, log: usize) -> bool {
        self.is_sparse(log, self.full(log), T::LIVE_PERCENT)
    }

    /// Returns `true` if a log has twice the length at which GC is due: the maintenance workers do
    /// not keep up.
    pub(super) fn is_overdue(&self, log: usize) -> bool {
        self.is_sparse(log, self.full(log) / 2, T::LIVE_PERCENT)
    }

    /// Returns the number of garbage lines of a log, or `None` if it has no work for a maintenance
    /// worker.
    pub(super) fn garbage_lines(&self, log: usize) -> Option<usize> {
        let full = self.full(log);
        let is_due = self.is_sparse(log, full, T::LIVE_PERCENT.min(MAINTENANCE_PERCENT));
        (is_due || self.is_dead(log))
            .then(|| (full * self.record_lines()).saturating_sub(self.live(log)))
    }

    /// Returns the number of chunks that take no further record.
    fn full(&self, log: usize) -> usize {
        self.filled(log).saturating_sub(1)
    }

    /// Returns `true` if at most `percent` of the lines in `full` full chunks are live.
    fn is_sparse(&self, log: usize, full: usize, percent: usize) -> bool {
        full > 0 && 100 * self.live(log) <= percent * full * self.record_lines()
    }

    /// Returns `true` if the reserve chunk is being filled.
    pub(super) fn is_reserve_open(&self, log: usize) -> bool {
        self.states[log].is_reserve_open.load(Relaxed)
    }

    /// Returns the number of filled chunks of a log.
    pub(super) fn filled(&self, log: usize) -> usize {
        self.states[log].filled.load(Relaxed)
    }

    pub(super) fn live(&self, log: usize) -> usize {
        self.states[log].live.load(Relaxed)
    }

    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Returns the next line of the oldest chunk to collect.
    pub(super) fn cursor(&self, log: usize) -> usize {
        self.states[log].cursor.load(Relaxed).max(1)
    }

    pub(super) fn set_cursor(&self, log: usize, line: usize) {
        self.states[log].cursor.store(line, Relaxed);
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

    fn state_of(&self, leaf: u64) -> &LogState {
        &self.states[T::log_of(leaf)]
    }

    /// Returns the chunks of a log, the oldest first.
    pub(super) fn chunks(&self, log: usize) -> Vec<PmPtr> {
        self.states[log].lists.lock().chunks.iter().copied().collect()
    }
}
