//! The logs: each a list of chunks, the oldest first, to whose last one records are appended.
//!
//! The root block of the index:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | lines | data | lines of a chunk |
//! | 1 | 56 | | zero |
//! | 8 + i | oldest of log i | commit | its oldest chunk, or 0 |
//!
//! 1. All records of a leaf are in the log of its number, see [`log_of`].
//! 2. A chunk is linked, durably, before a record in it is acknowledged: who links it fences before the
//!    log's latch is anybody else's.
//! 3. A chunk is unlinked when no record in it is live and every copy that was made instead is durable.
//! 4. *Live* are the lines of chains. Whoever makes a chain longer makes sure that all live lines of the
//!    log would fit in one chunk less than the log has, however badly they are cut up, and leave room for
//!    one record more; where the pool has no chunk for that, it is refused. So collecting always ends with
//!    room for a change that makes no chain longer: a remove, an update, a base instead of a chain. The
//!    chunks for that which are not linked are known in DRAM alone: an open takes them from the pool again.
//!    Where something else has taken the last ones meanwhile, the open is refused if a log has one chunk
//!    alone, and else a remove may be.
//! 5. The last chunk that is left over is for collecting. While it is filled nobody else appends.

use super::chunk::{self, Chunk};
use super::record::{self, lines_of};
use crate::index::TreeError;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Exclusive, Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// Logs of an index.
pub(super) const LOGS: usize = 8;
/// Words of the root block.
pub(super) const ROOT_WORDS: usize = 2 * LINE_WORDS;
/// The word of the root block with the lines of a chunk.
pub(super) const ROOT_LINES: usize = 0;
const ROOT_HEADS: usize = LINE_WORDS;

const _: () = assert!(ROOT_HEADS + LOGS <= ROOT_WORDS);

/// The log that has the records of the leaf of that number.
pub(super) const fn log_of(leaf: u64) -> usize {
    (leaf % LOGS as u64) as usize
}

/// The word of the root block that names the oldest chunk of a log.
pub(super) fn head_word(root: &[PmWord], log: usize) -> &PmWord {
    &root[ROOT_HEADS + log]
}

/// A chunk that nothing leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spare {
    pub(super) at: PmPtr,
    /// How often it has been begun; 0 if the pool has just given it.
    pub(super) uses: u64,
}

/// What is known of a log that its words do not say, or not at once. Nobody holds this at an access to a
/// medium.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Linked, the oldest first; the last one is open.
    pub(super) chunks: VecDeque<PmPtr>,
    pub(super) spares: Vec<Spare>,
    /// The index in the table of each leaf of the log.
    pub(super) leaves: HashMap<u64, usize>,
}

/// The volatile side of a log. All but the counts belongs to who holds the latch.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Side {
    latch: AtomicU64,
    /// Latch of who collects.
    collector: AtomicU64,
    /// The open chunk, how often it has been begun, and its next line.
    pub(super) open: AtomicU64,
    uses: AtomicU64,
    line: AtomicUsize,
    /// Whether the chunk for collecting is the open one.
    pub(super) is_kept: AtomicBool,
    /// Lines of chains.
    pub(super) live: AtomicUsize,
    /// Chunks that are linked.
    pub(super) linked: AtomicUsize,
    /// Of the oldest chunk, the line at which collecting goes on; belongs to who collects.
    pub(super) cursor: AtomicUsize,
    pub(super) state: Mutex<State>,
}

/// Something to append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) log: usize,
    pub(super) image: &'a [u64],
    /// Lines that are live no more once it is there.
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
    pub(super) chunks: Vec<PmPtr>,
    /// Of the last chunk.
    pub(super) uses: u64,
    pub(super) line: usize,
    pub(super) live: usize,
    pub(super) leaves: HashMap<u64, usize>,
}

/// The volatile side of all logs of an index.
#[derive(Debug)]
pub(super) struct Log<M> {
    /// Lines of a chunk.
    pub(super) lines: usize,
    /// Lines of the longest record.
    pub(super) widest: usize,
    pub(super) sides: [Side; LOGS],
    medium: PhantomData<fn() -> M>,
}

type Held<'a, M> = Exclusive<OnDram<'a, M>>;

/// Takes a latch that is never obsolete.
fn hold<'a, M: Medium>(latch: &Latch<OnDram<'a, M>>) -> Held<'a, M> {
    loop {
        if let Some(held) = latch.lock() {
            return held;
        }
    }
}

impl<M: Medium> Log<M> {
    /// Logs without a chunk, of an index with chunks of so many lines.
    pub(super) fn new(lines: usize, widest: usize) -> Self {
        Self { lines, widest, sides: Default::default(), medium: PhantomData }
    }

    /// Takes over what recovery found out about a log.
    pub(super) fn resume(&self, log: usize, known: Known) {
        let side = &self.sides[log];
        let open = known.chunks.last().map_or(0, |chunk| chunk.offset());
        side.open.store(open, Relaxed);
        side.uses.store(known.uses, Relaxed);
        side.line.store(known.line, Relaxed);
        side.live.store(known.live, Relaxed);
        side.linked.store(known.chunks.len(), Relaxed);
        side.cursor.store(1, Relaxed);
        let mut state = side.state.lock();
        state.chunks = known.chunks.into();
        state.leaves = known.leaves;
    }

    pub(super) fn latched(&self, log: usize) -> Held<'_, M> {
        hold(&OnDram::latch(&self.sides[log].latch))
    }

    /// Waits until nobody else collects in a log.
    pub(super) fn collector(&self, log: usize) -> Held<'_, M> {
        hold(&OnDram::latch(&self.sides[log].collector))
    }

    /// The same, unless somebody does.
    pub(super) fn try_collector(&self, log: usize) -> Option<Held<'_, M>> {
        OnDram::latch(&self.sides[log].collector).try_lock()
    }

    /// Appends a record, flushed but not fenced, and counts its lines as live, and those that it replaces
    /// no more.
    ///
    /// ```text
    /// N chunk, or W F its use |             only where the former chunk is full
    /// C next of the former chunk  8 B       or, of the first chunk, the word of the root
    /// F that word |
    /// W C F record                          see `record::write`; the caller fences
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
            if let Err(full) = self.admit(pool, side, lines, wanted.replaced) {
                return Ok(Err(Refused::Full(full)));
            }
        }
        let has_room =
            side.open.load(Relaxed) != 0 && side.line.load(Relaxed) + lines <= self.lines;
        if !has_room
            && let Err(refused) = self.advance(pool, root, wanted.log, wanted.is_collected)?
        {
            return Ok(Err(refused));
        }
        let line = side.line.load(Relaxed);
        let at = PmPtr::new(side.open.load(Relaxed) + chunk::bytes(line));
        let words = pool.words(at, lines * LINE_WORDS)?;
        record::write(pool.medium(), words, wanted.image, side.uses.load(Relaxed));
        side.line.store(line + lines, Relaxed);
        side.live.fetch_add(lines, Relaxed);
        self.drop_lines(wanted.log, wanted.replaced);
        Ok(Ok(at))
    }

    /// Begins and links a chunk, if there is one for who asks.
    fn advance(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        is_collected: bool,
    ) -> Result<Result<(), Refused>, Corrupt> {
        let side = &self.sides[log];
        let (spare, is_last) = match self.take_spare(pool, side, is_collected) {
            Ok(taken) => taken,
            Err(full) => return Ok(Err(Refused::Uncollected(Some(full)))),
        };
        let medium = pool.medium();
        let chunk = Chunk::begin(pool, spare.at, self.lines, spare.uses)?;
        let fenced = medium.fence();
        let former = PmPtr::new(side.open.load(Relaxed));
        let link = if former.is_null() {
            head_word(root, log)
        } else {
            Chunk::open(pool, former, self.lines)?.next_word()
        };
        medium.commit(link, spare.at.offset(), fenced);
        let _ = medium.persist(core::slice::from_ref(link));
        side.open.store(spare.at.offset(), Relaxed);
        side.uses.store(chunk.uses, Relaxed);
        side.line.store(1, Relaxed);
        side.is_kept.store(is_last, Relaxed);
        side.linked.fetch_add(1, Relaxed);
        side.state.lock().chunks.push_back(spare.at);
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
        let linked = side.linked.load(Relaxed);
        if linked == 1 && is_needed && self.advance(pool, root, log, true)?.is_err() {
            return Ok(None);
        }
        let front = side.state.lock().chunks.front().copied();
        Ok(front.filter(|_| linked > 1 || linked == 1 && is_needed))
    }
}
