//! The logs. Each is a ring of chunks, and records are appended to its open chunk.
//!
//! The root block of the index:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | lines | data | lines of a chunk |
//! | 1 to 7 | | | zero |
//! | 8 + i | head of log i | commit | the chunk that was linked last, or 0 |
//!
//! 1. All records of a leaf are in one log, [`Tuning::log_of`] of its number.
//! 2. All chunks of a log are linked durably, whether filled or empty. Each links to the one that
//!    was linked before it. In the order of their use numbers, the filled chunks come first; the
//!    last of these is the *open* chunk. Empty chunks follow.
//! 3. The newest chunk is the *reserve chunk* of log GC. It is empty, or it holds only copies of
//!    records in the oldest chunk; while it is being filled, no other thread appends. So recovery
//!    need not read it, and GC finds space after any crash.
//! 4. A chunk is reused or unlinked only when no record in it is live and every copy of its records
//!    is durable. A reused chunk becomes the newest; the same store turns the previous reserve
//!    chunk into an ordinary one.
//! 5. A line is *live* if it belongs to a chain as it is durable. A thread may lengthen a chain
//!    only if all live lines of the log would fit in one chunk less than the log has, however
//!    fragmented, with space for one more record. Otherwise the log grows, or the change fails. So
//!    GC always makes space for a change that lengthens no chain: a remove, an update, a base
//!    instead of a chain. No crash and no close takes a chunk from a log, so an open reserves none.

use super::chunk::{self, LogChunk};
use super::record::{self, lines_of};
use super::tuning::Tuning;
use crate::index::TreeError;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Exclusive, Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// The word of the root block that holds the lines of a chunk.
pub(super) const ROOT_LINES: usize = 0;
const ROOT_HEADS: usize = LINE_WORDS;

/// Returns the size of the root block in words, a multiple of a line.
pub(super) const fn root_words<T: Tuning>() -> usize {
    ROOT_HEADS + T::LOGS.next_multiple_of(LINE_WORDS)
}

/// Returns the word of the root block that points to the first chunk of a log.
pub(super) fn head_word(root: &[PmWord], log: usize) -> &PmWord {
    &root[ROOT_HEADS + log]
}

/// The DRAM lists of a log. No thread holds this mutex while it accesses a medium.
#[derive(Debug, Default)]
pub(super) struct LogLists {
    /// All chunks, the oldest first.
    pub(super) chunks: VecDeque<PmPtr>,
    /// All chunks in link order: each follows the chunk that it links to.
    pub(super) linked: Vec<PmPtr>,
    /// The table index of each leaf in the log.
    pub(super) leaves: HashMap<u64, usize>,
}

/// The DRAM state of a log. Only the holder of `latch` changes it, except the counters.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LogState {
    latch: AtomicU64,
    /// The collector latch: held by the thread that collects this log.
    collector: AtomicU64,
    /// The open chunk, with its use number and its next line.
    pub(super) open: AtomicU64,
    uses: AtomicU64,
    line: AtomicUsize,
    /// `true` if the reserve chunk is the open one.
    pub(super) is_reserve_open: AtomicBool,
    /// The number of live lines.
    pub(super) live: AtomicUsize,
    /// The number of filled chunks, including the open one.
    pub(super) filled: AtomicUsize,
    /// The number of all chunks.
    pub(super) chunks: AtomicUsize,
    /// The greatest use number of a chunk.
    pub(super) newest: AtomicU64,
    /// The next line of the oldest chunk to collect. Belongs to the collector.
    pub(super) cursor: AtomicUsize,
    pub(super) lists: Mutex<LogLists>,
}

/// A record to append.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppendRequest<'a> {
    pub(super) log: usize,
    pub(super) image: &'a [u64],
    /// The number of lines that stop being live once the record is durable.
    pub(super) replaced: usize,
    /// `true` for a copy made by log GC, which may use the reserve chunk.
    pub(super) is_gc_copy: bool,
}

/// The reason why a record was not appended.
#[derive(Debug)]
pub(super) enum AppendError {
    /// Log GC can make space. Holds the pool's error if the pool refused a chunk.
    NeedsCollection(Option<PoolError>),
    /// The log has too many live lines, and the pool refused a chunk.
    Full(PoolError),
}

impl AppendError {
    /// Converts the error for a caller that cannot run log GC.
    pub(super) fn into_error(self) -> TreeError {
        match self {
            Self::Full(full) | Self::NeedsCollection(Some(full)) => full.into(),
            Self::NeedsCollection(None) => PoolError::Recovering.into(),
        }
    }
}

/// The results of recovery for one log.
#[derive(Debug, Default)]
pub(super) struct RecoveredLog {
    pub(super) ring: ChunkRing,
    pub(super) live: usize,
    pub(super) leaves: HashMap<u64, usize>,
}

/// The chunks of a log, as found by recovery.
#[derive(Debug, Default)]
pub(super) struct ChunkRing {
    /// All chunks, the oldest first.
    pub(super) chunks: Vec<PmPtr>,
    /// All chunks in link order: each follows the chunk that it links to.
    pub(super) linked: Vec<PmPtr>,
    /// The greatest use number of a chunk.
    pub(super) newest: u64,
    /// The number of filled chunks; then the use number of the last one, and its first line without
    /// a sealed line after it.
    pub(super) filled: usize,
    pub(super) uses: u64,
    pub(super) line: usize,
}

/// The DRAM state of all logs of an index.
#[derive(Debug)]
pub(super) struct LeafLogs<M, T> {
    /// The lines of a chunk.
    pub(super) lines: usize,
    /// The lines of the longest record.
    pub(super) max_record_lines: usize,
    pub(super) states: Box<[LogState]>,
    types: PhantomData<fn() -> (M, T)>,
}

pub(in crate::designs) type LogGuard<'a, M> = Exclusive<OnDram<'a, M>>;

/// Takes a latch that never becomes obsolete.
pub(in crate::designs) fn lock<'a, M: Medium>(latch: &Latch<OnDram<'a, M>>) -> LogGuard<'a, M> {
    loop {
        if let Some(held) = latch.lock() {
            return held;
        }
    }
}

impl<M: Medium, T: Tuning> LeafLogs<M, T> {
    /// Returns logs without chunks, for an index with chunks of `lines` lines.
    pub(super) fn new(lines: usize, max_record_lines: usize) -> Self {
        let states = (0..T::LOGS).map(|_| LogState::default()).collect();
        Self { lines, max_record_lines, states, types: PhantomData }
    }

    /// Installs the results of recovery for one log.
    pub(super) fn resume(&self, log: usize, known: RecoveredLog) {
        let state = &self.states[log];
        let RecoveredLog { ring, live, leaves } = known;
        let open = ring.filled.checked_sub(1).map_or(0, |open| ring.chunks[open].offset());
        state.open.store(open, Relaxed);
        state.uses.store(ring.uses, Relaxed);
        state.line.store(ring.line, Relaxed);
        state.live.store(live, Relaxed);
        state.filled.store(ring.filled, Relaxed);
        state.chunks.store(ring.chunks.len(), Relaxed);
        state.newest.store(ring.newest, Relaxed);
        state.cursor.store(1, Relaxed);
        let mut lists = state.lists.lock();
        lists.chunks = ring.chunks.into();
        lists.linked = ring.linked;
        lists.leaves = leaves;
    }

    pub(super) fn lock_log(&self, log: usize) -> LogGuard<'_, M> {
        lock(&OnDram::latch(&self.states[log].latch))
    }

    /// Waits for the collector latch of a log.
    pub(super) fn lock_collector(&self, log: usize) -> LogGuard<'_, M> {
        lock(&OnDram::latch(&self.states[log].collector))
    }

    /// Takes the collector latch of a log, unless another thread holds it.
    pub(super) fn try_lock_collector(&self, log: usize) -> Option<LogGuard<'_, M>> {
        OnDram::latch(&self.states[log].collector).try_lock()
    }

    /// Appends a record, flushes it without a fence, and counts its lines as live. After its fence,
    /// the caller subtracts the lines that it replaces with [`drop_lines`](Self::drop_lines).
    ///
    /// ```text
    /// new chunks           as `LeafLogs::grow`; only if the log has too few
    /// W C F record         as `record::write`; the caller fences
    /// ```
    pub(super) fn append(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        request: &AppendRequest<'_>,
    ) -> Result<Result<PmPtr, AppendError>, Corrupt> {
        let state = &self.states[request.log];
        let _held = self.lock_log(request.log);
        let lines = lines_of(request.image);
        if !request.is_gc_copy {
            if state.is_reserve_open.load(Relaxed) {
                return Ok(Err(AppendError::NeedsCollection(None)));
            }
            if let Err(full) = self.reserve_lines(pool, root, request, lines)? {
                return Ok(Err(AppendError::Full(full)));
            }
        }
        let has_room =
            state.open.load(Relaxed) != 0 && state.line.load(Relaxed) + lines <= self.lines;
        if !has_room
            && let Err(full) = self.open_next_chunk(pool, root, request.log, request.is_gc_copy)?
        {
            return Ok(Err(AppendError::NeedsCollection(Some(full))));
        }
        let line = state.line.load(Relaxed);
        let at = PmPtr::new(state.open.load(Relaxed) + chunk::bytes(line));
        let words = pool.words(at, lines * LINE_WORDS)?;
        record::write(pool.medium(), words, request.image, state.uses.load(Relaxed));
        state.line.store(line + lines, Relaxed);
        state.live.fetch_add(lines, Relaxed);
        Ok(Ok(at))
    }

    /// Opens the next chunk. Only a copy of log GC may open the reserve chunk.
    fn open_next_chunk(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        is_gc_copy: bool,
    ) -> Result<Result<(), PoolError>, Corrupt> {
        let state = &self.states[log];
        let filled = state.filled.load(Relaxed);
        let empty = state.chunks.load(Relaxed) - filled;
        let mut is_reserve_open = false;
        if empty < 2
            && let Err(full) = self.grow(pool, root, log, 2 - empty)?
        {
            is_reserve_open = is_gc_copy && empty == 1;
            if !is_reserve_open {
                return Ok(Err(full));
            }
        }
        let next = state.lists.lock().chunks[filled];
        let uses = LogChunk::open(pool, next, self.lines)?.uses;
        state.open.store(next.offset(), Relaxed);
        state.uses.store(uses, Relaxed);
        state.line.store(1, Relaxed);
        state.is_reserve_open.store(is_reserve_open, Relaxed);
        state.filled.store(filled + 1, Relaxed);
        Ok(Ok(()))
    }

    /// Returns the oldest chunk, for the collector, and ensures that there is another chunk to copy
    /// to. `None` if there is no space, or nothing to collect.
    pub(super) fn oldest(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        is_needed: bool,
    ) -> Result<Option<PmPtr>, Corrupt> {
        let state = &self.states[log];
        let _held = self.lock_log(log);
        let filled = state.filled.load(Relaxed);
        if filled == 1 && is_needed && self.open_next_chunk(pool, root, log, true)?.is_err() {
            return Ok(None);
        }
        let front = state.lists.lock().chunks.front().copied();
        Ok(front.filter(|_| filled > 1 || filled == 1 && is_needed))
    }
}
