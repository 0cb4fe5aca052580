//! The logs: each a ring of chunks, to the newest of which records are appended.
//!
//! The root block of the index:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | lines | data | lines of a chunk |
//! | 1 | 56 | | zero |
//! | 8 + i | head of log i | commit | the chunk of it that was linked last, or 0 |
//!
//! 1. All records of a leaf are in the log of its number, see [`Tuning::log_of`].
//! 2. All chunks of a log are linked, durably: those that have records, and those that are empty. Each leads to
//!    the one that was linked before it. Their order is that of their uses: the oldest ones have records, the
//!    last one of these is *open*, and the others wait to be.
//! 3. The newest chunk is for collecting. While it is filled nobody else appends, and it holds nothing but
//!    copies of records that are in the oldest chunk; else it is empty. So recovery does not read it, and
//!    finds room for collecting whatever a crash has cut off.
//! 4. A chunk is begun anew, or unlinked, when no record in it is live and every copy that was made instead
//!    is durable. Begun anew it is the newest; so by the same word what was the newest counts.
//! 5. *Live* are the lines of chains, as they are durable. Whoever makes a chain longer makes sure that all
//!    live lines of the log would fit in one chunk less than the log has, however badly they are cut up, and
//!    leave room for one record more; where the pool has no chunk for that, it is refused. So collecting always
//!    ends with room for a change that makes no chain longer: a remove, an update, a base instead of a chain.
//!    No crash and no close takes a chunk from a log, so an open asks the pool for none.

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

/// The word of the root block with the lines of a chunk.
pub(super) const ROOT_LINES: usize = 0;
const ROOT_HEADS: usize = LINE_WORDS;

/// Words of the root block: whole lines.
pub(super) const fn root_words<T: Tuning>() -> usize {
    ROOT_HEADS + T::LOGS.next_multiple_of(LINE_WORDS)
}

/// The word of the root block that names the oldest chunk of a log.
pub(super) fn head_word(root: &[PmWord], log: usize) -> &PmWord {
    &root[ROOT_HEADS + log]
}

/// What is known of a log that its words do not say, or not at once. Nobody holds this at an access to a
/// medium.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The oldest first.
    pub(super) chunks: VecDeque<PmPtr>,
    /// The same chunks, each after the one that it leads to.
    pub(super) linked: Vec<PmPtr>,
    /// The index in the table of each leaf of the log.
    pub(super) leaves: HashMap<u64, usize>,
}

/// The volatile side of a log. All but the counts belongs to who holds the latch.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LogState {
    latch: AtomicU64,
    /// Latch of who collects.
    collector: AtomicU64,
    /// The open chunk, its use, and its next line.
    pub(super) open: AtomicU64,
    uses: AtomicU64,
    line: AtomicUsize,
    /// Whether the chunk for collecting is the open one.
    pub(super) is_kept: AtomicBool,
    /// Lines of chains.
    pub(super) live: AtomicUsize,
    /// Chunks that have records, the open one among them.
    pub(super) filled: AtomicUsize,
    /// All chunks.
    pub(super) chunks: AtomicUsize,
    /// The greatest use of a chunk.
    pub(super) newest: AtomicU64,
    /// Of the oldest chunk, the line at which collecting goes on; belongs to who collects.
    pub(super) cursor: AtomicUsize,
    pub(super) state: Mutex<State>,
}

/// Something to append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) log: usize,
    pub(super) image: &'a [u64],
    /// Lines that are live no more once it is durable.
    pub(super) replaced: usize,
    /// Whether a collector wants it, who may use the last chunk.
    pub(super) is_collected: bool,
}

/// Why there is no room.
#[derive(Debug)]
pub(super) enum Refused {
    /// Collecting makes room. With what the pool said, if it was asked.
    Uncollected(Option<PoolError>),
    /// There is too much in the log already.
    Full(PoolError),
}

impl Refused {
    /// For a caller for whom collecting makes no room.
    pub(super) fn into_error(self) -> TreeError {
        match self {
            Self::Full(full) | Self::Uncollected(Some(full)) => full.into(),
            Self::Uncollected(None) => PoolError::Recovering.into(),
        }
    }
}

/// What recovery found out about a log.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) ring: ChunkRing,
    pub(super) live: usize,
    pub(super) leaves: HashMap<u64, usize>,
}

/// The chunks of a log.
#[derive(Debug, Default)]
pub(super) struct ChunkRing {
    /// The oldest first.
    pub(super) chunks: Vec<PmPtr>,
    /// The same chunks, each after the one that it leads to.
    pub(super) linked: Vec<PmPtr>,
    /// The greatest use of a chunk.
    pub(super) newest: u64,
    /// Chunks that have records: of the last of them the use, and the line after which none is sealed.
    pub(super) filled: usize,
    pub(super) uses: u64,
    pub(super) line: usize,
}

/// The volatile side of all logs of an index.
#[derive(Debug)]
pub(super) struct LeafLogs<M, T> {
    /// Lines of a chunk.
    pub(super) lines: usize,
    /// Lines of the longest record.
    pub(super) widest: usize,
    pub(super) sides: Box<[LogState]>,
    types: PhantomData<fn() -> (M, T)>,
}

type LogGuard<'a, M> = Exclusive<OnDram<'a, M>>;

/// Takes a latch that is never obsolete.
fn latch_leaf<'a, M: Medium>(latch: &Latch<OnDram<'a, M>>) -> LogGuard<'a, M> {
    loop {
        if let Some(held) = latch.lock() {
            return held;
        }
    }
}

impl<M: Medium, T: Tuning> LeafLogs<M, T> {
    /// Logs without a chunk, of an index with chunks of so many lines.
    pub(super) fn new(lines: usize, widest: usize) -> Self {
        let sides = (0..T::LOGS).map(|_| LogState::default()).collect();
        Self { lines, widest, sides, types: PhantomData }
    }

    /// Takes over what recovery found out about a log.
    pub(super) fn resume(&self, log: usize, known: Known) {
        let side = &self.sides[log];
        let Known { ring, live, leaves } = known;
        let open = ring.filled.checked_sub(1).map_or(0, |open| ring.chunks[open].offset());
        side.open.store(open, Relaxed);
        side.uses.store(ring.uses, Relaxed);
        side.line.store(ring.line, Relaxed);
        side.live.store(live, Relaxed);
        side.filled.store(ring.filled, Relaxed);
        side.chunks.store(ring.chunks.len(), Relaxed);
        side.newest.store(ring.newest, Relaxed);
        side.cursor.store(1, Relaxed);
        let mut state = side.state.lock();
        state.chunks = ring.chunks.into();
        state.linked = ring.linked;
        state.leaves = leaves;
    }

    pub(super) fn latched(&self, log: usize) -> LogGuard<'_, M> {
        latch_leaf(&OnDram::latch(&self.sides[log].latch))
    }

    /// Waits until nobody else collects in a log.
    pub(super) fn collector(&self, log: usize) -> LogGuard<'_, M> {
        latch_leaf(&OnDram::latch(&self.sides[log].collector))
    }

    /// The same, unless somebody does.
    pub(super) fn try_collector(&self, log: usize) -> Option<LogGuard<'_, M>> {
        OnDram::latch(&self.sides[log].collector).try_lock()
    }

    /// Appends a record, flushed but not fenced, and counts its lines as live. Once the caller has fenced it,
    /// those that it replaces are live no more: see [`drop_lines`](Self::drop_lines).
    ///
    /// ```text
    /// chunks more          see `LeafLogs::grow`; only where the log has too few
    /// W C F record         see `record::write`; the caller fences
    /// ```
    pub(super) fn append(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        wanted: &Wanted<'_>,
    ) -> Result<Result<PmPtr, Refused>, Corrupt> {
        let side = &self.sides[wanted.log];
        let _held = self.latched(wanted.log);
        let lines = lines_of(wanted.image);
        if !wanted.is_collected {
            if side.is_kept.load(Relaxed) {
                return Ok(Err(Refused::Uncollected(None)));
            }
            if let Err(full) = self.admit(pool, root, wanted, lines)? {
                return Ok(Err(Refused::Full(full)));
            }
        }
        let has_room =
            side.open.load(Relaxed) != 0 && side.line.load(Relaxed) + lines <= self.lines;
        if !has_room && let Err(full) = self.advance(pool, root, wanted.log, wanted.is_collected)? {
            return Ok(Err(Refused::Uncollected(Some(full))));
        }
        let line = side.line.load(Relaxed);
        let at = PmPtr::new(side.open.load(Relaxed) + chunk::bytes(line));
        let words = pool.words(at, lines * LINE_WORDS)?;
        record::write(pool.medium(), words, wanted.image, side.uses.load(Relaxed));
        side.line.store(line + lines, Relaxed);
        side.live.fetch_add(lines, Relaxed);
        Ok(Ok(at))
    }

    /// Opens the next chunk, if there is one for who asks: the newest one only a collector gets.
    fn advance(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        is_collected: bool,
    ) -> Result<Result<(), PoolError>, Corrupt> {
        let side = &self.sides[log];
        let filled = side.filled.load(Relaxed);
        let empty = side.chunks.load(Relaxed) - filled;
        let mut is_kept = false;
        if empty < 2
            && let Err(full) = self.grow(pool, root, log, 2 - empty)?
        {
            is_kept = is_collected && empty == 1;
            if !is_kept {
                return Ok(Err(full));
            }
        }
        let next = side.state.lock().chunks[filled];
        let uses = LogChunk::open(pool, next, self.lines)?.uses;
        side.open.store(next.offset(), Relaxed);
        side.uses.store(uses, Relaxed);
        side.line.store(1, Relaxed);
        side.is_kept.store(is_kept, Relaxed);
        side.filled.store(filled + 1, Relaxed);
        Ok(Ok(()))
    }

    /// Makes sure that there is a chunk to copy the oldest one to; gives that one. For who collects.
    pub(super) fn oldest(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        is_needed: bool,
    ) -> Result<Option<PmPtr>, Corrupt> {
        let side = &self.sides[log];
        let _held = self.latched(log);
        let filled = side.filled.load(Relaxed);
        if filled == 1 && is_needed && self.advance(pool, root, log, true)?.is_err() {
            return Ok(None);
        }
        let front = side.state.lock().chunks.front().copied();
        Ok(front.filter(|_| filled > 1 || filled == 1 && is_needed))
    }
}
