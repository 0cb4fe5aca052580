//! The logs. Each is a circular buffer of segments, and records are appended at its tail.
//!
//! The root block of the index:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | lines | data | lines of a segment |
//! | 1 to 7 | | | zero |
//! | 8 + 8 i | segments of log i | commit | the segment that was linked last, or 0 |
//! | 9 + 8 i | head of log i | commit | the position before which no line counts |
//!
//! 1. All records of a leaf are in one log, [`LsOptions::log_of`] of its number. Each has a greater
//!    position than the one before it.
//! 2. All segments of a log are linked durably. Those with lines that count are *filled*, in the
//!    order of their laps; the last one is *open*. The others are empty.
//! 3. The head moves over a line only when no record there is live and every copy of its records is
//!    durable. A segment is empty once the head behind it is durable.
//! 4. A line is *live* if it belongs to a chain, or to an end record that a base waits for. The
//!    empty segments have space for all that log GC writes before the head has passed the oldest
//!    live line; see `space`. So GC makes space for a change that lengthens no chain: a remove, an
//!    update, a base instead of a chain.

use super::record::{self, lines_of};
use super::segment::{self, Segment};
use super::tuning::LsOptions;
use crate::designs::btree_ls_r::log::{LogGuard, lock};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::OnDram;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// The word of the root block that holds the lines of a segment.
pub(super) const ROOT_LINES: usize = 0;

/// Returns the size of the root block in words.
pub(super) const fn root_words<T: LsOptions>() -> usize {
    (1 + T::LOGS) * LINE_WORDS
}

/// Returns the word of the root block that points to the first segment of a log.
pub(super) fn segments_word(root: &[PmWord], log: usize) -> &PmWord {
    &root[(1 + log) * LINE_WORDS]
}

/// Returns the word of the root block that holds the head of a log.
pub(super) fn head_word(root: &[PmWord], log: usize) -> &PmWord {
    &root[(1 + log) * LINE_WORDS + 1]
}

/// A segment in the order of the circular buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentPlace {
    pub(super) at: PmPtr,
    /// The lap of a filled segment; undefined for an empty one.
    pub(super) lap: u64,
}

/// The DRAM lists of a log. No thread holds this mutex while it accesses a medium.
#[derive(Debug, Default)]
pub(super) struct CircularLists {
    /// All segments: the filled ones, the oldest first, then the empty ones.
    pub(super) ring: VecDeque<SegmentPlace>,
    /// All segments in link order: each follows the segment that it links to.
    pub(super) linked: Vec<PmPtr>,
    /// The table index of each leaf in the log.
    pub(super) leaves: HashMap<u64, usize>,
    /// The number of bases that wait for the end of each leaf.
    pub(super) ended: HashMap<u64, u8>,
}

/// The DRAM state of a log. Only the holder of `latch` changes it, except the counters.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct CircularLog {
    latch: AtomicU64,
    /// The collector latch: held by the thread that collects this log.
    collector: AtomicU64,
    /// The open segment; 0 if no segment is filled.
    pub(super) open: AtomicU64,
    /// The greatest lap.
    pub(super) lap: AtomicU64,
    /// The next line of the open segment.
    pub(super) line: AtomicUsize,
    pub(super) head: AtomicU64,
    pub(super) live: AtomicUsize,
    pub(super) filled: AtomicUsize,
    pub(super) segments: AtomicUsize,
    pub(super) lists: Mutex<CircularLists>,
}

/// A record to append.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppendedRecord<'a> {
    pub(super) log: usize,
    pub(super) image: &'a [u64],
    /// The number of lines that stop being live once the record is durable.
    pub(super) replaced: usize,
    /// `true` for a record that log GC writes, which may use the last empty segments.
    pub(super) is_gc_copy: bool,
}

/// The reason why a record was not appended.
#[derive(Debug)]
pub(super) enum NotAppended {
    /// Log GC can make space. Holds the pool's error if the pool refused a segment.
    NeedsCollection(Option<PoolError>),
    /// The log has too many live lines, and the pool refused a segment.
    Full(PoolError),
}

/// The results of recovery for one log.
#[derive(Debug, Default)]
pub(super) struct RecoveredBuffer {
    pub(super) ring: SegmentRing,
    pub(super) live: usize,
    pub(super) leaves: HashMap<u64, usize>,
    pub(super) ended: HashMap<u64, u8>,
}

/// The circular buffer of a log, as found by recovery.
#[derive(Debug, Default)]
pub(super) struct SegmentRing {
    /// All segments: the filled ones, the oldest first, then the empty ones.
    pub(super) places: Vec<SegmentPlace>,
    /// All segments in link order: each follows the segment that it links to.
    pub(super) linked: Vec<PmPtr>,
    pub(super) filled: usize,
    pub(super) head: u64,
    /// The greatest lap.
    pub(super) lap: u64,
    /// The first line of the last filled segment without a sealed line after it.
    pub(super) line: usize,
}

/// The lines at the head of a log, which log GC reads next.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogFront {
    pub(super) segment: PmPtr,
    pub(super) lap: u64,
    pub(super) line: usize,
    /// The line behind the last one.
    pub(super) end: usize,
}

/// The DRAM state of all logs of an index.
#[derive(Debug)]
pub(super) struct CircularLogs<M, T> {
    /// The lines of a segment.
    pub(super) lines: usize,
    /// The lines of the longest record.
    pub(super) max_record_lines: usize,
    pub(super) states: Box<[CircularLog]>,
    types: PhantomData<fn() -> (M, T)>,
}

impl<M: Medium, T: LsOptions> CircularLogs<M, T> {
    /// Returns logs without segments, for an index with segments of `lines` lines. Their first lap
    /// is `lap`.
    pub(super) fn new(lines: usize, max_record_lines: usize, lap: u64) -> Self {
        let of = |_| CircularLog { lap: AtomicU64::new(lap - 1), ..CircularLog::default() };
        let states = (0..T::LOGS).map(of).collect();
        Self { lines, max_record_lines, states, types: PhantomData }
    }

    /// Installs the results of recovery for one log.
    pub(super) fn resume(&self, log: usize, known: RecoveredBuffer) {
        let state = &self.states[log];
        let RecoveredBuffer { ring, live, leaves, ended } = known;
        let open = ring.filled.checked_sub(1).map_or(0, |open| ring.places[open].at.offset());
        state.open.store(open, Relaxed);
        state.lap.store(ring.lap, Relaxed);
        state.line.store(ring.line, Relaxed);
        state.head.store(ring.head, Relaxed);
        state.live.store(live, Relaxed);
        state.filled.store(ring.filled, Relaxed);
        state.segments.store(ring.places.len(), Relaxed);
        *state.lists.lock() =
            CircularLists { ring: ring.places.into(), linked: ring.linked, leaves, ended };
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
    /// new segments         as `CircularLogs::grow`; only if the log has too few
    /// W C F record         as `record::write`; the caller fences
    /// ```
    pub(super) fn append(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        request: &AppendedRecord<'_>,
    ) -> Result<Result<PmPtr, NotAppended>, Corrupt> {
        let state = &self.states[request.log];
        let _held = self.lock_log(request.log);
        let lines = lines_of(request.image);
        if !request.is_gc_copy
            && let Err(error) = self.admit(pool, root, request, lines)?
        {
            return Ok(Err(error));
        }
        if !self.fits_open(request.log, lines) && !self.open_next(request.log) {
            return Ok(Err(NotAppended::NeedsCollection(None)));
        }
        let (line, lap) = (state.line.load(Relaxed), state.lap.load(Relaxed));
        let at = PmPtr::new(state.open.load(Relaxed) + segment::bytes(line));
        let words = pool.words(at, lines * LINE_WORDS)?;
        record::write(pool.medium(), words, request.image, self.position(lap, line));
        state.line.store(line + lines, Relaxed);
        state.live.fetch_add(lines, Relaxed);
        Ok(Ok(at))
    }

    /// Returns the position of a line.
    pub(super) fn position(&self, lap: u64, line: usize) -> u64 {
        lap * self.lines as u64 + line as u64
    }

    /// Returns `true` if the open segment has `lines` more lines.
    pub(super) fn fits_open(&self, log: usize, lines: usize) -> bool {
        let state = &self.states[log];
        state.open.load(Relaxed) != 0 && state.line.load(Relaxed) + lines <= self.lines
    }

    /// Opens an empty segment. Returns `false` if there is none.
    fn open_next(&self, log: usize) -> bool {
        let state = &self.states[log];
        let (filled, lap) = (state.filled.load(Relaxed), state.lap.load(Relaxed) + 1);
        let mut lists = state.lists.lock();
        let Some(place) = lists.ring.get_mut(filled) else { return false };
        place.lap = lap;
        state.open.store(place.at.offset(), Relaxed);
        state.lap.store(lap, Relaxed);
        state.line.store(1, Relaxed);
        state.filled.store(filled + 1, Relaxed);
        true
    }

    /// Returns the segments of a log in link order.
    pub(super) fn segments(&self, log: usize) -> Vec<PmPtr> {
        self.states[log].lists.lock().linked.clone()
    }

    /// Returns the lines at the head of a log: those of its oldest segment, up to the tail. `None`
    /// if no segment is filled.
    pub(super) fn front(&self, log: usize) -> Option<LogFront> {
        let state = &self.states[log];
        let _held = self.lock_log(log);
        let filled = state.filled.load(Relaxed);
        let place = *state.lists.lock().ring.front().filter(|_| filled > 0)?;
        let begin = self.position(place.lap, 0);
        let line = state.head.load(Relaxed).saturating_sub(begin) as usize;
        let end = if filled == 1 { state.line.load(Relaxed) } else { self.lines };
        Some(LogFront { segment: place.at, lap: place.lap, line: line.max(1), end })
    }

    /// Moves the head of a log behind `line` lines of its oldest segment, in which nothing live is
    /// left before. Durable on return. The caller is the collector and has fenced the copies.
    ///
    /// ```text
    /// C head of the log   8 B               crash before C: originals and copies
    /// F its line |        -> durable: a segment behind it is empty
    /// ```
    pub(super) fn advance(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        front: LogFront,
        line: usize,
    ) {
        let state = &self.states[log];
        let _held = self.lock_log(log);
        let (word, head) = (head_word(root, log), self.position(front.lap, line));
        pool.medium().store(word, head);
        if !(M::INJECTS_DEFECTS && pool.medium().injects(Defect::LsHeadVolatile)) {
            let _ = pool.medium().persist(core::slice::from_ref(word));
        }
        state.head.store(head, Relaxed);
        if line < self.lines {
            return;
        }
        state.lists.lock().ring.rotate_left(1);
        let filled = state.filled.fetch_sub(1, Relaxed) - 1;
        if filled == 0 {
            state.open.store(0, Relaxed);
        }
    }
}

/// Opens the segments of a log, from `first` on along the links. The pool's size bounds their
/// number, so the loop ends whatever the pool holds.
pub(super) fn open_segments<M: Medium>(
    pool: &Pool<M>,
    first: PmPtr,
    lines: usize,
) -> Result<Vec<Segment<'_>>, Corrupt> {
    let most = pool.medium().len() / segment::bytes(lines);
    let (mut segments, mut at) = (Vec::new(), first);
    while !at.is_null() {
        let segment = Segment::open(pool, at, lines)?;
        segments.push(segment);
        if segments.len() as u64 > most {
            let (found, what) = (segments.len() as u64, "endless list of log segments");
            return Err(Corrupt { at: at.offset(), what, expected: most, found });
        }
        at = PmPtr::new(pool.medium().load(segment.next_word()));
    }
    Ok(segments)
}
