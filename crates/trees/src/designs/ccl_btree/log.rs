//! The logs: each thread has a lane, a pair of logs, one for each of two epochs.
//!
//! The root block of the index:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | first leaf | data | first leaf of the list; never freed |
//! | 8 + 2i, 9 + 2i | logs of lane i | commit | newest chunk of the even and odd epoch, or 0 |
//!
//! 1. A thread appends an entry while it holds the latches of the leaf and of its lane, to the
//!    lane's log of the current epoch. A buffer slot holds the newest logged write of its key.
//! 2. Logs of at most two epochs exist: the current one and, during a collection, the previous one.
//!    A collection ends when no slot's newest entry is of the previous epoch.
//! 3. Stamps alone decide which entries count; lanes and chunks have no order.
//! 4. A chunk is linked durably before an entry in it is acknowledged: the thread that links it
//!    fences before it releases the lane.

#[cfg(test)]
mod tests;

use super::chunk::{self, LogEntry, WalChunk};
use crate::inner::{load, store};
use crate::lanes::{LANES, own_lane};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Exclusive, Guard, Latch, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;

/// The number of words of the root block.
pub(super) const ROOT_WORDS: usize = LINE_WORDS + 2 * LANES;
/// The number of entries of a lane after which its thread asks whether a collection is due.
const ASK_ENTRIES: u64 = 10_000;

/// The DRAM state of a thread's logs. Only the holder of `latch` changes it, except `settled`.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    latch: AtomicU64,
    /// The open chunk, or 0; then its next entry and its epoch.
    chunk: AtomicU64,
    index: AtomicUsize,
    epoch: AtomicU64,
    /// The number of entries that the thread appended.
    appended: AtomicU64,
    /// The number of buffered writes that the thread settled.
    settled: AtomicU64,
}

/// The DRAM state of all logs of an index.
#[derive(Debug)]
pub(super) struct LaneLogs<M> {
    lanes: [Lane; LANES],
    /// The current epoch. Only its parity is recorded.
    epoch: AtomicU64,
    /// The phase of log GC, on its own because every write reads it and few change it.
    pub(super) phase: AtomicU64,
    /// The numbers of entries appended and of writes settled before the current epoch.
    former: [AtomicU64; 2],
    /// The number of linked chunks.
    chunks: AtomicU64,
    /// Unlinked chunks for reuse.
    reusable: Mutex<Vec<PmPtr>>,
    /// Key records that nothing but log entries names, by the parity of the epoch in which they
    /// were removed. Entries of that epoch and the one before may name them.
    unnamed: [Mutex<Vec<(PmPtr, u64)>>; 2],
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

impl<M: Medium> LaneLogs<M> {
    /// Returns the logs of a new index.
    pub(super) fn new() -> Self {
        Self {
            lanes: core::array::from_fn(|_| Lane::default()),
            epoch: AtomicU64::new(0),
            phase: AtomicU64::new(IDLE),
            former: Default::default(),
            chunks: AtomicU64::new(0),
            reusable: Mutex::default(),
            unnamed: Default::default(),
            collector: Collector::default(),
            medium: PhantomData,
        }
    }

    /// Returns the root word that points to the newest chunk of a log.
    pub(super) fn head(root: &[PmWord], lane: usize, parity: u64) -> &PmWord {
        &root[LINE_WORDS + 2 * lane + parity as usize]
    }

    pub(super) fn epoch(&self) -> u64 {
        load::<M>(&self.epoch)
    }

    /// Begins the next epoch: appends go to the other logs, and the counts begin again.
    pub(super) fn begin_epoch(&self) {
        for (former, total) in self.former.iter().zip(self.totals()) {
            former.store(total, Ordering::Relaxed);
        }
        store::<M>(&self.epoch, self.epoch() + 1);
    }

    fn latch(&self, lane: usize) -> Latch<OnDram<'_, M>> {
        OnDram::latch(&self.lanes[lane].latch)
    }

    fn lock_lane(&self, lane: usize) -> LaneGuard<'_, M> {
        loop {
            if let Some(held) = self.latch(lane).lock() {
                return held; // A lane's latch never becomes obsolete.
            }
        }
    }

    /// Appends an entry to the thread's log and flushes it without a fence. Returns `None` if the
    /// pool has no space for a chunk. When a chunk is full, and after every [`ASK_ENTRIES`],
    /// `is_due` decides whether a collection, and so a new epoch, begins.
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
        let number = own_lane::<M>();
        let (lane, _held) = (&self.lanes[number], self.lock_lane(number));
        let mut epoch = self.epoch();
        let at = PmPtr::new(lane.chunk.load(Ordering::Relaxed));
        let mut open = None;
        if !at.is_null() && lane.epoch.load(Ordering::Relaxed) == epoch {
            let chunk = WalChunk::open(pool, at)?;
            let is_full = lane.index.load(Ordering::Relaxed) == chunk.entries();
            let is_asked = lane.appended.load(Ordering::Relaxed).is_multiple_of(ASK_ENTRIES);
            let has_begun = (is_full || is_asked) && is_due();
            open = (!is_full && !has_begun).then_some(chunk);
            // Another thread may begin an epoch now. The entry is still of the chunk's.
            if has_begun {
                epoch = self.epoch();
            }
        }
        let parity = epoch & 1;
        let is_durable = open.is_none();
        let chunk = if let Some(chunk) = open {
            chunk
        } else {
            let head = Self::head(root, number, parity);
            let Some(chunk) = self.begin_chunk(pool, head)? else { return Ok(None) };
            lane.chunk.store(chunk.at.offset(), Ordering::Relaxed);
            lane.epoch.store(epoch, Ordering::Relaxed);
            lane.index.store(0, Ordering::Relaxed);
            chunk
        };
        chunk.write(pool.medium(), lane.index.fetch_add(1, Ordering::Relaxed), logged);
        lane.appended.fetch_add(1, Ordering::Relaxed);
        if is_durable {
            let _ = pool.medium().fence();
        }
        Ok(Some(LogPosition { parity, is_durable }))
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
            let lines = chunk::lines(medium.len());
            let Ok(at) = pool.reserve(chunk::bytes(lines)) else { return Ok(None) };
            WalChunk::begin(pool, at, previous, lines)?
        };
        medium.commit(head, chunk.at.offset(), medium.fence());
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::HeadVolatile)) {
            medium.flush(core::slice::from_ref(head));
        }
        self.chunks.fetch_add(1, Ordering::Relaxed);
        Ok(Some(chunk))
    }

    /// Retires a key record when the logs that may name it are retired. The caller holds the latch
    /// of the record's leaf.
    pub(super) fn retire_later(&self, block: PmPtr, bytes: u64) {
        self.unnamed[(self.epoch() & 1) as usize].lock().push((block, bytes));
    }

    /// Counts buffered writes that were settled.
    pub(super) fn count_settled(&self, writes: usize) {
        self.lanes[own_lane::<M>()].settled.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// Takes `writes` off the count of settled writes, to which this thread has just added them.
    pub(super) fn discount_settled(&self, writes: usize) {
        self.lanes[own_lane::<M>()].settled.fetch_sub(writes as u64, Ordering::Relaxed);
    }

    /// Returns the numbers of entries appended and of writes settled since the open.
    fn totals(&self) -> [u64; 2] {
        self.lanes.iter().fold([0, 0], |[appended, settled], lane| {
            [
                appended + lane.appended.load(Ordering::Relaxed),
                settled + lane.settled.load(Ordering::Relaxed),
            ]
        })
    }

    /// Returns the numbers of entries appended and of writes settled in this epoch.
    pub(super) fn fill(&self) -> [u64; 2] {
        let [appended, settled] = self.totals();
        let former = |at: usize| self.former[at].load(Ordering::Relaxed);
        // The lanes are read one after another, while others append.
        [appended.saturating_sub(former(0)), settled.saturating_sub(former(1))]
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
        guard: &Guard,
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
        // Half of the chunks of two epochs are about those of one.
        let most = (self.chunks.load(Ordering::Relaxed) as usize / 2).max(1);
        let lines = chunk::lines(pool.medium().len());
        let mut reusable = self.reusable.lock();
        let mut freed = Vec::new();
        for head in heads {
            for chunk in walk(pool, head) {
                let chunk = chunk?;
                self.chunks.fetch_sub(1, Ordering::Relaxed);
                if chunk.is_reusable(lines) {
                    reusable.push(chunk.at);
                } else {
                    freed.push((chunk.at, chunk.bytes()));
                }
            }
        }
        let kept = reusable.len().min(most);
        for at in reusable.drain(kept..) {
            freed.push((at, WalChunk::open(pool, at)?.bytes()));
        }
        drop(reusable);
        for (at, bytes) in freed {
            pool.release(at, bytes);
        }
        let unnamed = core::mem::take(&mut *self.unnamed[(epoch & 1 ^ 1) as usize].lock());
        for (block, bytes) in unnamed {
            pool.retire(block, bytes, guard);
        }
        Ok(())
    }

    /// Unlinks all logs and frees every chunk. No thread may write meanwhile.
    pub(super) fn retire_all(&self, pool: &Pool<M>, root: &[PmWord]) -> Result<(), Corrupt> {
        let chunks = [chunks(pool, root)?, self.unlinked(pool)?].concat();
        clear_all(pool.medium(), root);
        self.reusable.lock().clear();
        self.unnamed.iter().for_each(|records| records.lock().clear());
        for (at, bytes) in chunks {
            // In a damaged pool two entries may own a record.
            if pool.is_block(at, bytes) {
                pool.release(at, bytes);
            }
        }
        Ok(())
    }

    /// Returns the chunks for reuse and the key records that only entries name, each with its size.
    fn unlinked(&self, pool: &Pool<M>) -> Result<Vec<(PmPtr, u64)>, Corrupt> {
        let mut blocks = Vec::new();
        for &at in self.reusable.lock().iter() {
            blocks.push((at, WalChunk::open(pool, at)?.bytes()));
        }
        blocks.extend(self.unnamed.iter().flat_map(|records| records.lock().clone()));
        Ok(blocks)
    }

    /// Returns every chunk, linked or not, and every key record that only entries name, each with
    /// its size.
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
        blocks.extend(self.unlinked(pool)?);
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
    root[LINE_WORDS..].iter()
}

/// Iterates over the chunks of a log, the newest first. The pool's size bounds their bytes, so the
/// iterator ends whatever the pool holds.
pub(super) fn walk<M: Medium>(
    pool: &Pool<M>,
    head: PmPtr,
) -> impl Iterator<Item = Result<WalChunk<'_>, Corrupt>> {
    let most = pool.medium().len();
    let mut at = head;
    let mut bytes = 0;
    core::iter::from_fn(move || {
        if at.is_null() {
            return None;
        }
        let chunk = WalChunk::open(pool, at).and_then(|chunk| {
            bytes += chunk.bytes();
            if bytes > most {
                let (at, what) = (at.offset(), "endless list of log chunks");
                return Err(Corrupt { at, what, expected: most, found: bytes });
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
