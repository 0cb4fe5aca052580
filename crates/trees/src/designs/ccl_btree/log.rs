//! The logs: a lane for each thread that writes, and in each lane a log of each epoch.
//!
//! The root block of the index, a line each:
//!
//! | line | word | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 0 | first leaf | data | head of the chain; never freed |
//! | 1 + i | 0, 1 | logs of lane i | commit | latest chunk of the log of even and of odd epochs, or 0 |
//!
//! 1. An entry is appended under its leaf's latch and its lane's, to the lane's log of the epoch that is
//!    current then. What a buffer slot holds is the newest entry of its key.
//! 2. There are logs of two epochs at the most, the current one and, while a collection runs, the one
//!    before. A collection ends when no slot's newest entry is of the epoch before.
//! 3. Entries count by their stamps alone; neither lanes nor chunks have an order.
//! 4. A chunk is linked, durably, before an entry in it is acknowledged: who links it fences before the
//!    lane is anybody else's.

use super::chunk::{self, Logged, WalChunk};
use crate::inner::{load, store};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Exclusive, Latch, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;

/// Logs that threads can append to at the same time.
pub(super) const LANES: usize = 8;
/// Lines of a chunk for each buffer node that a step logs again.
pub(super) const LINES_A_STEP: usize = 4;
/// Words of the root block.
pub(super) const ROOT_WORDS: usize = (1 + LANES) * LINE_WORDS;

/// The volatile side of a lane. All but `live` belongs to who holds the latch.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    latch: AtomicU64,
    /// WalChunk that is being filled, or 0, and the next entry in it.
    chunk: AtomicU64,
    index: AtomicUsize,
    epoch: AtomicU64,
    /// Slots that were filled by this lane's threads, less those that they settled; may wrap.
    live: AtomicU64,
}

/// The volatile side of all logs of an index.
#[derive(Debug)]
pub(super) struct LaneLogs<M> {
    /// Lines of a chunk that is begun.
    lines: usize,
    lanes: [Lane; LANES],
    /// The current epoch; only its parity is written down.
    epoch: AtomicU64,
    /// Whether there is something to collect: read after each write, and rarely changed.
    pub(super) phase: AtomicU64,
    /// Chunks that are linked.
    chunks: AtomicU64,
    /// Chunks that nothing leads to, to be begun anew.
    spares: Mutex<Vec<PmPtr>>,
    pub(super) collector: Collector,
    medium: PhantomData<fn() -> M>,
}

/// No collection runs, and none is due.
pub(super) const IDLE: u64 = 0;
/// None runs, one is due, and left to a keeper.
pub(super) const DUE: u64 = 1;
/// One runs; writes take steps of it unless there is a keeper.
pub(super) const RUNNING: u64 = 2;
/// One runs, and writes take steps of it though there is a keeper.
pub(super) const HELPED: u64 = 3;

/// How far a collection is. Changes with each step, so it is on a line that no write reads.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Collector {
    pub(super) latch: AtomicU64,
    /// The next buffer node to look at, and where to stop.
    pub(super) cursor: AtomicUsize,
    pub(super) end: AtomicUsize,
}

/// Where an entry went.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogPosition {
    /// Parity of the epoch.
    pub(super) parity: u64,
    /// Whether it is fenced already.
    pub(super) is_durable: bool,
}

type LaneGuard<'a, M> = Exclusive<OnDram<'a, M>>;

/// The lane that this thread tries first.
fn usual_lane() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| number % LANES)
}

impl<M: Medium> LaneLogs<M> {
    /// The logs of an index in a pool of that many bytes.
    pub(super) fn new(pool_bytes: u64) -> Self {
        Self {
            lines: chunk::lines(pool_bytes),
            lanes: Default::default(),
            epoch: AtomicU64::new(0),
            phase: AtomicU64::new(IDLE),
            chunks: AtomicU64::new(0),
            spares: Mutex::default(),
            collector: Collector::default(),
            medium: PhantomData,
        }
    }

    /// Buffer nodes whose writes one operation of a collection logs again: what comes of a step fits in
    /// the chunk that is begun for it.
    pub(super) fn step(&self) -> usize {
        self.lines / LINES_A_STEP
    }

    /// The word that names the latest chunk of a log.
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

    /// A lane and its latch: this thread's, or one that is free. Where the medium decides who goes on,
    /// threads have no numbers.
    fn lane(&self) -> (usize, LaneGuard<'_, M>) {
        let usual = if M::CONTROLS_SCHEDULE { 0 } else { usual_lane() };
        let lanes = (usual..LANES).chain(0..usual);
        let free = lanes.into_iter().find_map(|lane| Some((lane, self.latch(lane).try_lock()?)));
        free.unwrap_or_else(|| (usual, self.latch_leaf(usual)))
    }

    fn latch_leaf(&self, lane: usize) -> LaneGuard<'_, M> {
        loop {
            if let Some(held) = self.latch(lane).lock() {
                return held; // A lane's latch is never obsolete.
            }
        }
    }

    /// Appends an entry, flushed but not fenced. `None` if it takes a chunk that the pool has not.
    /// `is_due` is asked where a chunk is full: whether to begin a collection, and so a new epoch.
    ///
    /// ```text
    /// N chunk, or W F its use |             only where the former chunk is full or of another epoch
    /// C latest chunk of the log   8 B
    /// F that word
    /// W C F entry                           see `WalChunk::write`
    /// |                                     only where a chunk was begun; else the caller fences
    /// ```
    pub(super) fn append(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        logged: &Logged,
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

    /// Links a chunk at `head`; the word is flushed, not fenced.
    fn begin_chunk<'p>(
        &self,
        pool: &'p Pool<M>,
        head: &PmWord,
    ) -> Result<Option<WalChunk<'p>>, Corrupt> {
        let medium = pool.medium();
        let former = PmPtr::new(medium.load(head));
        let spare = {
            let mut spares = self.spares.lock();
            pool.nearest(&spares).map(|at| spares.swap_remove(at))
        };
        let chunk = if let Some(at) = spare {
            WalChunk::begin_anew(pool, at, former)?
        } else {
            let Ok(at) = pool.reserve(chunk::bytes(self.lines)) else { return Ok(None) };
            WalChunk::begin(pool, at, former, self.lines)?
        };
        medium.commit(head, chunk.at.offset(), medium.fence());
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::HeadVolatile)) {
            medium.flush(core::slice::from_ref(head));
        }
        self.chunks.fetch_add(1, Ordering::Relaxed);
        Ok(Some(chunk))
    }

    /// Notes that there is one more slot whose entry counts.
    pub(super) fn count_buffered(&self) {
        self.live().fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that there are so many less.
    pub(super) fn count_settled(&self, slots: u64) {
        self.live().fetch_sub(slots, Ordering::Relaxed);
    }

    fn live(&self) -> &AtomicU64 {
        &self.lanes[if M::CONTROLS_SCHEDULE { 0 } else { usual_lane() }].live
    }

    /// Entries that there is room for, and about how many count.
    pub(super) fn fill(&self) -> (u64, u64) {
        let chunks = self.chunks.load(Ordering::Relaxed);
        let live = self.lanes.iter().map(|lane| lane.live.load(Ordering::Relaxed));
        let live = live.fold(0, u64::wrapping_add);
        // One lane may be seen before an addition, another after the subtraction that goes with it.
        let live = if live > u64::MAX / 2 { 0 } else { live };
        (chunks * chunk::entries(self.lines) as u64, live)
    }

    /// Gives the logs of the epoch before the current one up: nothing in them counts, and what
    /// counts instead is durable. Durable at return.
    ///
    /// ```text
    /// for each lane: C latest chunk = 0, F     in any order: no entry in them counts
    /// |                                        -> then the chunks are used anew, or free
    /// ```
    pub(super) fn retire_former(&self, pool: &Pool<M>, root: &[PmWord]) -> Result<(), Corrupt> {
        let epoch = self.epoch();
        let mut heads = [PmPtr::NULL; LANES];
        for (number, former) in heads.iter_mut().enumerate() {
            let _held = self.latch_leaf(number);
            let lane = &self.lanes[number];
            if lane.epoch.load(Ordering::Relaxed) != epoch {
                lane.chunk.store(0, Ordering::Relaxed);
            }
            let head = Self::head(root, number, (epoch & 1) ^ 1);
            *former = clear(pool.medium(), head);
        }
        let _ = pool.medium().fence();
        for head in heads {
            for chunk in walk(pool, head) {
                let chunk = chunk?;
                let linked = self.chunks.fetch_sub(1, Ordering::Relaxed) - 1;
                let mut spares = self.spares.lock();
                if chunk.is_reusable(self.lines) && (spares.len() as u64) < linked.max(1) {
                    spares.push(chunk.at);
                } else {
                    drop(spares);
                    pool.release(chunk.at, chunk.bytes());
                }
            }
        }
        Ok(())
    }

    /// Gives all logs up, and every chunk back to the pool. Nobody may write meanwhile.
    pub(super) fn retire_all(&self, pool: &Pool<M>, root: &[PmWord]) -> Result<(), Corrupt> {
        let chunks = chunks(pool, root)?;
        clear_all(pool.medium(), root);
        let spares = core::mem::take(&mut *self.spares.lock());
        let bytes = chunk::bytes(self.lines);
        for (at, bytes) in chunks.into_iter().chain(spares.into_iter().map(|at| (at, bytes))) {
            pool.release(at, bytes);
        }
        Ok(())
    }

    /// Every chunk that there is, linked or not, and its bytes.
    pub(super) fn blocks(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
    ) -> Result<Vec<(PmPtr, u64)>, Corrupt> {
        let mut blocks = chunks(pool, root)?;
        let linked = self.chunks.load(Ordering::Relaxed);
        if blocks.len() as u64 != linked {
            let (at, what) = (pool.offset_of(&root[0]).offset(), "chunks that the logs lead to");
            return Err(Corrupt { at, what, expected: linked, found: blocks.len() as u64 });
        }
        let bytes = chunk::bytes(self.lines);
        blocks.extend(self.spares.lock().iter().map(|&at| (at, bytes)));
        Ok(blocks)
    }
}

/// Stores 0 and flushes; gives what was there.
fn clear<M: Medium>(medium: &M, head: &PmWord) -> PmPtr {
    let former = PmPtr::new(medium.load(head));
    if !former.is_null() {
        medium.store(head, 0);
        medium.flush(core::slice::from_ref(head));
    }
    former
}

/// Makes the index have no logs. Durable at return. Nothing in them may count.
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

/// The chunks of a log from its latest on. There are no more than the pool has room for, so the walk
/// ends whatever the pool holds.
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
                let (at, what) = (at.offset(), "chunks of a log have no end");
                return Err(Corrupt { at, what, expected: most, found: count });
            }
            Ok(chunk)
        });
        at = chunk.as_ref().map_or(PmPtr::NULL, |chunk| chunk.former(pool.medium()));
        Some(chunk)
    })
}

/// The latest chunks of all logs.
pub(super) fn latest<'r, M: Medium>(
    medium: &'r M,
    root: &'r [PmWord],
) -> impl Iterator<Item = PmPtr> + 'r {
    heads(root).map(|head| PmPtr::new(medium.load(head)))
}

/// The chunks of all logs and their bytes.
pub(super) fn chunks<M: Medium>(
    pool: &Pool<M>,
    root: &[PmWord],
) -> Result<Vec<(PmPtr, u64)>, Corrupt> {
    let mut chunks = Vec::new();
    for head in latest(pool.medium(), root) {
        for chunk in walk(pool, head) {
            let chunk = chunk?;
            chunks.push((chunk.at, chunk.bytes()));
        }
    }
    Ok(chunks)
}
