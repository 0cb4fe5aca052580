//! The logs: threads write to different lanes, and each lane has one log for each epoch.
//!
//! The root block of the index:
//!
//! | line | word | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 0 | first leaf | data | first leaf of the list; never freed |
//! | 1 + i | 0, 1 | logs of lane i | commit | newest chunk of the even and of the odd epoch, or 0 |
//!
//! 1. A thread appends an entry while it holds the latches of the leaf and of a lane, to the lane's
//!    log of the current epoch. A buffer slot holds the newest logged write of its key.
//! 2. Logs of at most two epochs exist: the current one and, during a collection, the previous one.
//!    A collection ends when no slot's newest entry is of the previous epoch.
//! 3. Stamps alone decide which entries count; lanes and chunks have no order.
//! 4. A chunk is linked durably before an entry in it is acknowledged: the thread that links it
//!    fences before it releases the lane.

use super::chunk::{self, LogEntry, WalChunk};
use crate::inner::{load, store};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Exclusive, Latch, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;

/// The number of logs that threads can append to at the same time.
pub(super) const LANES: usize = 8;
/// The lines of a chunk for each buffer node that a step logs again.
pub(super) const LINES_A_STEP: usize = 4;
/// The number of words of the root block.
pub(super) const ROOT_WORDS: usize = (1 + LANES) * LINE_WORDS;

/// The DRAM state of a lane. Only the holder of `latch` changes it, except `live`.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    latch: AtomicU64,
    /// The open chunk, or 0; then its next entry and its epoch.
    chunk: AtomicU64,
    index: AtomicUsize,
    epoch: AtomicU64,
    /// The number of slots that this lane's threads filled, minus those that they settled. May
    /// wrap.
    live: AtomicU64,
}

/// The DRAM state of all logs of an index.
#[derive(Debug)]
pub(super) struct LaneLogs<M> {
    /// The lines of a new chunk.
    lines: usize,
    lanes: [Lane; LANES],
    /// The current epoch. Only its parity is recorded.
    epoch: AtomicU64,
    /// The phase of log GC, on its own because every write reads it and few change it.
    pub(super) phase: AtomicU64,
    /// The number of linked chunks.
    chunks: AtomicU64,
    /// Unlinked chunks for reuse.
    reusable: Mutex<Vec<PmPtr>>,
    pub(super) collector: Collector,
    medium: PhantomData<fn() -> M>,
}

/// No collection runs and none is due.
pub(super) const IDLE: u64 = 0;
/// A collection is due and left to a maintenance worker.
pub(super) const DUE: u64 = 1;
/// A collection runs. Writes take its steps unless the index has maintenance workers.
pub(super) const RUNNING: u64 = 2;
/// A collection runs, and writes take its steps because the maintenance workers do not keep up.
pub(super) const HELPED: u64 = 3;

/// The progress of a collection. It changes with each step, so it lies in a line that no write
/// reads.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Collector {
    pub(super) latch: AtomicU64,
    /// The next buffer node to visit, and the end.
    pub(super) cursor: AtomicUsize,
    pub(super) end: AtomicUsize,
}

/// The result of an append.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogPosition {
    /// The parity of the entry's epoch.
    pub(super) parity: u64,
    /// `true` if the entry is already fenced.
    pub(super) is_durable: bool,
}

type LaneGuard<'a, M> = Exclusive<OnDram<'a, M>>;

/// Returns the lane that this thread tries first.
fn preferred_lane() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| number % LANES)
}

impl<M: Medium> LaneLogs<M> {
    /// Returns the logs of a new index in a pool of `pool_bytes` bytes.
    pub(super) fn new(pool_bytes: u64) -> Self {
        Self {
            lines: chunk::lines(pool_bytes),
            lanes: Default::default(),
            epoch: AtomicU64::new(0),
            phase: AtomicU64::new(IDLE),
            chunks: AtomicU64::new(0),
            reusable: Mutex::default(),
            collector: Collector::default(),
            medium: PhantomData,
        }
    }

    /// Returns the most buffer nodes that one step logs again. Their entries fit in one new chunk.
    pub(super) fn nodes_per_step(&self) -> usize {
        self.lines / LINES_A_STEP
    }

    /// Returns the root word that points to the newest chunk of a log.
    pub(super) fn head(root: &[PmWord], lane: usize, parity: u64) -> &PmWord {
        &root[(1 + lane) * LINE_WORDS + parity as usize]
    }

    pub(super) fn epoch(&self) -> u64 {
        load::<M>(&self.epoch)
    }

    pub(super) fn begin_epoch(&self, epoch: u64) {
        store::<M>(&self.epoch, epoch);
    }

    fn latch(&self, lane: usize) -> Latch<OnDram<'_, M>> {
        OnDram::latch(&self.lanes[lane].latch)
    }

    /// Returns this thread's lane. If the medium schedules threads, that is lane 0, or at a small
    /// scale the number of the thread under test, so that a schedule is repeatable.
    fn preferred_lane() -> usize {
        match (M::CONTROLS_SCHEDULE, M::has_small_scale()) {
            (false, _) => preferred_lane(),
            (true, true) => M::scheduled_thread() % LANES,
            (true, false) => 0,
        }
    }

    /// Latches a free lane, preferably this thread's.
    fn lane(&self) -> (usize, LaneGuard<'_, M>) {
        let preferred = Self::preferred_lane();
        let lanes = (preferred..LANES).chain(0..preferred);
        let free = lanes.into_iter().find_map(|lane| Some((lane, self.latch(lane).try_lock()?)));
        free.unwrap_or_else(|| (preferred, self.lock_lane(preferred)))
    }

    fn lock_lane(&self, lane: usize) -> LaneGuard<'_, M> {
        loop {
            if let Some(held) = self.latch(lane).lock() {
                return held; // A lane's latch never becomes obsolete.
            }
        }
    }

    /// Appends an entry and flushes it without a fence. Returns `None` if the pool has no space for
    /// a chunk. When a chunk is full, `is_due` decides whether a collection, and so a new epoch,
    /// begins.
    ///
    /// ```text
    /// N chunk, or W F its use |             if the open chunk is full or of another epoch
    /// C latest chunk of the log   8 B
    /// F that word
    /// W C F entry                           as `WalChunk::write`
    /// |                                     if a chunk was begun; else the caller fences
    /// ```
    pub(super) fn append(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        logged: &LogEntry,
        is_due: impl FnOnce() -> bool,
    ) -> Result<Option<LogPosition>, Corrupt> {
        let (number, _held) = self.lane();
        let lane = &self.lanes[number];
        let mut epoch = self.epoch();
        let mut index = lane.index.load(Ordering::Relaxed);
        let at = PmPtr::new(lane.chunk.load(Ordering::Relaxed));
        let mut is_open = !at.is_null() && lane.epoch.load(Ordering::Relaxed) == epoch;
        if is_open && index == chunk::entries(self.lines) {
            if is_due() {
                epoch = self.epoch();
            }
            is_open = false;
        }
        let parity = epoch & 1;
        let chunk = if is_open {
            WalChunk::open(pool, at)?
        } else {
            let head = Self::head(root, number, parity);
            let Some(chunk) = self.begin_chunk(pool, head)? else { return Ok(None) };
            lane.chunk.store(chunk.at.offset(), Ordering::Relaxed);
            lane.epoch.store(epoch, Ordering::Relaxed);
            index = 0;
            chunk
        };
        chunk.write(pool.medium(), index, logged);
        lane.index.store(index + 1, Ordering::Relaxed);
        if !is_open {
            let _ = pool.medium().fence();
        }
        Ok(Some(LogPosition { parity, is_durable: !is_open }))
    }

    /// Links a chunk at `head`. The word is flushed but not fenced.
    fn begin_chunk<'p>(
        &self,
        pool: &'p Pool<M>,
        head: &PmWord,
    ) -> Result<Option<WalChunk<'p>>, Corrupt> {
        let medium = pool.medium();
        let previous = PmPtr::new(medium.load(head));
        let reused = {
            let mut reusable = self.reusable.lock();
            pool.nearest(&reusable).map(|at| reusable.swap_remove(at))
        };
        let chunk = if let Some(at) = reused {
            WalChunk::reuse(pool, at, previous)?
        } else {
            let Ok(at) = pool.reserve(chunk::bytes(self.lines)) else { return Ok(None) };
            WalChunk::begin(pool, at, previous, self.lines)?
        };
        medium.commit(head, chunk.at.offset(), medium.fence());
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::HeadVolatile)) {
            medium.flush(core::slice::from_ref(head));
        }
        self.chunks.fetch_add(1, Ordering::Relaxed);
        Ok(Some(chunk))
    }

    /// Counts a slot that was filled.
    pub(super) fn count_buffered(&self) {
        self.live().fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `slots` slots that were settled.
    pub(super) fn count_settled(&self, slots: u64) {
        self.live().fetch_sub(slots, Ordering::Relaxed);
    }

    fn live(&self) -> &AtomicU64 {
        &self.lanes[Self::preferred_lane()].live
    }

    /// Returns the number of entries that the linked chunks can hold, and about how many of them
    /// are live.
    pub(super) fn fill(&self) -> (u64, u64) {
        let chunks = self.chunks.load(Ordering::Relaxed);
        let live = self.lanes.iter().map(|lane| lane.live.load(Ordering::Relaxed));
        let live = live.fold(0, u64::wrapping_add);
        // The lanes are read one after another, so an addition may be missed whose subtraction is
        // seen.
        let live = if live > u64::MAX / 2 { 0 } else { live };
        (chunks * chunk::entries(self.lines) as u64, live)
    }

    /// Unlinks the logs of the previous epoch. Every live entry has a durable copy elsewhere.
    /// Durable on return.
    ///
    /// ```text
    /// for each lane: C latest chunk = 0, F     in any order: no entry in them is live
    /// |                                        -> then the chunks are reused or freed
    /// ```
    pub(super) fn retire_previous_epoch(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
    ) -> Result<(), Corrupt> {
        let epoch = self.epoch();
        let mut heads = [PmPtr::NULL; LANES];
        for (number, previous) in heads.iter_mut().enumerate() {
            let _held = self.lock_lane(number);
            let lane = &self.lanes[number];
            if lane.epoch.load(Ordering::Relaxed) != epoch {
                lane.chunk.store(0, Ordering::Relaxed);
            }
            let head = Self::head(root, number, (epoch & 1) ^ 1);
            *previous = clear(pool.medium(), head);
        }
        let _ = pool.medium().fence();
        for head in heads {
            for chunk in walk(pool, head) {
                let chunk = chunk?;
                let linked = self.chunks.fetch_sub(1, Ordering::Relaxed) - 1;
                let mut reusable = self.reusable.lock();
                if chunk.is_reusable(self.lines) && (reusable.len() as u64) < linked.max(1) {
                    reusable.push(chunk.at);
                } else {
                    drop(reusable);
                    pool.release(chunk.at, chunk.bytes());
                }
            }
        }
        Ok(())
    }

    /// Unlinks all logs and frees every chunk. No thread may write meanwhile.
    pub(super) fn retire_all(&self, pool: &Pool<M>, root: &[PmWord]) -> Result<(), Corrupt> {
        let chunks = chunks(pool, root)?;
        clear_all(pool.medium(), root);
        let reusable = core::mem::take(&mut *self.reusable.lock());
        let bytes = chunk::bytes(self.lines);
        for (at, bytes) in chunks.into_iter().chain(reusable.into_iter().map(|at| (at, bytes))) {
            pool.release(at, bytes);
        }
        Ok(())
    }

    /// Returns every chunk, linked or not, and its size.
    pub(super) fn blocks(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
    ) -> Result<Vec<(PmPtr, u64)>, Corrupt> {
        let mut blocks = chunks(pool, root)?;
        let linked = self.chunks.load(Ordering::Relaxed);
        if blocks.len() as u64 != linked {
            let (at, what) =
                (pool.offset_of(&root[0]).offset(), "wrong number of chunks in the logs");
            return Err(Corrupt { at, what, expected: linked, found: blocks.len() as u64 });
        }
        let bytes = chunk::bytes(self.lines);
        blocks.extend(self.reusable.lock().iter().map(|&at| (at, bytes)));
        Ok(blocks)
    }
}

/// Stores 0 to `head`, flushes it, and returns the old pointer.
fn clear<M: Medium>(medium: &M, head: &PmWord) -> PmPtr {
    let old = PmPtr::new(medium.load(head));
    if !old.is_null() {
        medium.store(head, 0);
        medium.flush(core::slice::from_ref(head));
    }
    old
}

/// Unlinks all logs. No entry in them may be live. Durable on return.
pub(super) fn clear_all<M: Medium>(medium: &M, root: &[PmWord]) {
    let mut changed = false;
    for head in heads(root) {
        changed |= !clear(medium, head).is_null();
    }
    if changed {
        let _ = medium.fence();
    }
}

fn heads(root: &[PmWord]) -> impl Iterator<Item = &PmWord> {
    (0..2 * LANES).map(|i| &root[(1 + i / 2) * LINE_WORDS + i % 2])
}

/// Iterates over the chunks of a log, the newest first. The pool's size bounds their number, so the
/// iterator ends whatever the pool holds.
pub(super) fn walk<M: Medium>(
    pool: &Pool<M>,
    head: PmPtr,
) -> impl Iterator<Item = Result<WalChunk<'_>, Corrupt>> {
    let most = pool.medium().len() / chunk::bytes(2);
    let mut at = head;
    let mut count = 0;
    core::iter::from_fn(move || {
        if at.is_null() {
            return None;
        }
        count += 1;
        let chunk = WalChunk::open(pool, at).and_then(|chunk| {
            if count > most {
                let (at, what) = (at.offset(), "endless list of log chunks");
                return Err(Corrupt { at, what, expected: most, found: count });
            }
            Ok(chunk)
        });
        at = chunk.as_ref().map_or(PmPtr::NULL, |chunk| chunk.previous(pool.medium()));
        Some(chunk)
    })
}

/// Returns the newest chunk of each log.
pub(super) fn newest_chunks<'r, M: Medium>(
    medium: &'r M,
    root: &'r [PmWord],
) -> impl Iterator<Item = PmPtr> + 'r {
    heads(root).map(|head| PmPtr::new(medium.load(head)))
}

/// Returns the chunks of all logs and their sizes.
pub(super) fn chunks<M: Medium>(
    pool: &Pool<M>,
    root: &[PmWord],
) -> Result<Vec<(PmPtr, u64)>, Corrupt> {
    let mut chunks = Vec::new();
    for head in newest_chunks(pool.medium(), root) {
        for chunk in walk(pool, head) {
            let chunk = chunk?;
            chunks.push((chunk.at, chunk.bytes()));
        }
    }
    Ok(chunks)
}
