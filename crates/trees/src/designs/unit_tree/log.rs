//! The logs: each thread has a lane, to whose chunk it appends records.
//!
//! The root block of the index:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | first leaf | data | first leaf of the list; never freed |
//! | 1 | chunks | commit | the newest chunk of the list of all chunks, or 0 |
//! | 2..8 | | | zero |
//!
//! 1. A thread appends a record while it holds the latches of the row and of its lane.
//! 2. Versions of a lane ascend, and the version of a record is above that of the newest write to
//!    its leaf. So of two records of a key the newer one has the greater version.
//! 3. A full chunk waits, in the order in which chunks became full, until a lane cleans it: it
//!    settles the units of the records that rows refer to. Then the lane appends to it again.
//! 4. Chunks are added while the logs have room for fewer records than a share of the slots of all
//!    leaves. A clean chunk beyond that is removed. The list has both links in DRAM.

use super::record::{self, CHUNK_MAX, Position, RecordChunk, VersionedChange};
use super::unit::STAMP_MAX;
use crate::inner::{Arena, load, store};
use crate::lanes::{LANES, own_lane};
use crate::leaf_table::EntryChange;
use bristlecone_pmem::sync::{Exclusive, Guard, Latch, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// The number of words of the root block.
pub(super) const ROOT_WORDS: usize = 8;
/// The root word of the newest chunk.
const CHUNKS: usize = 1;
/// The number of records that a write cleans: two for the one that it appends, so that a chunk is
/// clean before the lane needs it; and while the logs have a chunk more than they should.
const RECORDS: usize = 2;
const SPARE_RECORDS: usize = 16;

/// The words of a chunk in DRAM: its offset, or 0, and one more than the numbers of the chunks
/// before and behind it in the list, or 0. The latch `growth` protects them, but the offset.
const CHUNK_WORDS: usize = 3;
const AT: usize = 0;
const BEFORE: usize = 1;
const BEHIND: usize = 2;

/// A lane. Only the holder of `latch` changes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    latch: AtomicU64,
    /// One more than the number of the chunk that is appended to, or 0; then its next record.
    chunk: AtomicU64,
    number: AtomicU64,
    base: AtomicU64,
    /// One more than the number of the chunk that is cleaned, or 0; then its next record.
    cleaned: AtomicU64,
    next_to_clean: AtomicU64,
    /// The number of records that were cleaned.
    total: AtomicU64,
    /// The version of the newest record.
    clock: AtomicU64,
}

/// The logs of an index.
#[derive(Debug)]
pub(super) struct Logs<M> {
    lanes: Box<[Lane; LANES]>,
    /// The chunks, by their numbers.
    chunks: Arena<CHUNK_WORDS>,
    /// The number of chunks.
    count: AtomicU64,
    /// The numbers of full chunks.
    waiting: Mutex<VecDeque<usize>>,
    /// One more than the number of the first chunk of the list, or 0.
    first: AtomicU64,
    /// The latch of the thread that adds or removes a chunk.
    growth: AtomicU64,
    lines: usize,
    medium: PhantomData<fn() -> M>,
}

type LaneGuard<'a, M> = (&'a Lane, Exclusive<OnDram<'a, M>>);

/// A record that has to be cleaned.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldRecord {
    pub(super) position: Position,
    /// The record; `None` if there is none at the position.
    pub(super) record: Option<VersionedChange>,
    total: u64,
}

fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

fn set(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

fn lock<M: Medium>(latch: &AtomicU64) -> Exclusive<OnDram<'_, M>> {
    let latch: Latch<OnDram<'_, M>> = OnDram::latch(latch);
    loop {
        if let Some(held) = latch.lock() {
            return held; // These latches never become obsolete.
        }
    }
}

impl<M: Medium> Logs<M> {
    /// Returns the logs of an index with this root block, before their chunks are found. All chunks
    /// have one size, also when the pool has grown since the first.
    ///
    /// # Errors
    /// The header of the first chunk is damaged.
    pub(super) fn new(pool: &Pool<M>, root: &[PmWord]) -> Result<Self, PoolError> {
        let first = PmPtr::new(pool.medium().load(&root[CHUNKS]));
        let lines = if first.is_null() {
            record::lines(pool.medium().len())
        } else {
            RecordChunk::lines(pool, first)?
        };
        Ok(Self {
            lanes: Box::new(core::array::from_fn(|_| Lane::default())),
            chunks: Arena::new()?,
            count: AtomicU64::new(0),
            waiting: Mutex::default(),
            first: AtomicU64::new(0),
            growth: AtomicU64::new(0),
            lines,
            medium: PhantomData,
        })
    }

    /// Latches the lane of this thread.
    fn lock_own(&self) -> LaneGuard<'_, M> {
        let lane = &self.lanes[own_lane::<M>()];
        (lane, lock(&lane.latch))
    }

    fn records(&self) -> usize {
        record::records_of(self.lines)
    }

    /// Returns the number of records that the logs have room for.
    fn capacity(&self) -> u64 {
        load::<M>(&self.count) * self.records() as u64
    }

    #[inline(always)]
    fn chunk<'p>(&self, pool: &'p Pool<M>, number: usize) -> Result<RecordChunk<'p>, Corrupt> {
        let at = load::<M>(&self.chunks.get(number)[AT]);
        RecordChunk::at(pool, PmPtr::new(at), self.lines)
    }

    /// Returns the change of the record at `position`, to which a row refers. A writer may run at
    /// the same time; the caller validates.
    #[inline(always)]
    pub(super) fn change(&self, pool: &Pool<M>, position: u32) -> Result<EntryChange, Corrupt> {
        let position = Position::of_word(position);
        Ok(self.chunk(pool, position.chunk)?.change(pool.medium(), position.number))
    }

    /// Returns the record at `position`; `None` if there is none.
    pub(super) fn record(
        &self,
        pool: &Pool<M>,
        position: Position,
    ) -> Result<Option<VersionedChange>, Corrupt> {
        Ok(self.chunk(pool, position.chunk)?.record(pool.medium(), position.number))
    }

    /// Appends a record of `change` to a leaf whose newest write has the version `newest`. Returns
    /// its position and its version. Durable on return. Returns `None` if the lane has no room:
    /// its next chunk is not clean yet, or the pool is full; or if there is no greater version.
    /// `target` is the number of records that the logs should have room for.
    ///
    /// ```text
    /// add a chunk, or renew it          if the last one is full
    /// W C F record |                    as `RecordChunk::write`      budget: 1 line, 1 fence
    /// ```
    pub(super) fn append(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        (change, newest): (EntryChange, u64),
        target: u64,
    ) -> Result<Option<(Position, u64)>, Corrupt> {
        let (lane, _held) = self.lock_own();
        let version = get(&lane.clock).max(newest) + 1;
        let is_reachable = |version: u64| {
            u32::try_from(version.saturating_sub(get(&lane.base))).is_ok()
                && get(&lane.number) < self.records() as u64
                && get(&lane.chunk) != 0
        };
        if !is_reachable(version) && !self.take_chunk(pool, root, (lane, version), target)? {
            return Ok(None);
        }
        let version = version.max(get(&lane.base));
        if version > STAMP_MAX {
            return Ok(None);
        }
        let position =
            Position { chunk: get(&lane.chunk) as usize - 1, number: get(&lane.number) as usize };
        let record = VersionedChange { change, version };
        self.chunk(pool, position.chunk)?.write(pool.medium(), position.number, &record);
        let _ = pool.medium().fence();
        set(&lane.number, position.number as u64 + 1);
        set(&lane.clock, version);
        Ok(Some((position, version)))
    }

    /// Gives `lane` an empty or a clean chunk to append to, and one to clean. Returns `false` if
    /// there is none.
    #[cold]
    fn take_chunk(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        (lane, version): (&Lane, u64),
        target: u64,
    ) -> Result<bool, Corrupt> {
        let medium = pool.medium();
        let is_clean = get(&lane.next_to_clean) >= self.records() as u64;
        let is_early = M::INJECTS_DEFECTS && medium.injects(Defect::UnitChunkEarly);
        let may_grow = self.capacity() < target;
        let cleaned = get(&lane.cleaned);
        let taken = if cleaned != 0 && (is_clean || is_early) {
            set(&lane.cleaned, 0);
            Some(cleaned as usize - 1)
        } else if may_grow || cleaned == 0 && self.waiting.lock().is_empty() {
            self.add_chunk(pool, root, version)?
        } else {
            None
        };
        if let Some(full) = get(&lane.chunk).checked_sub(1) {
            self.waiting.lock().push_back(full as usize);
            set(&lane.chunk, 0);
        }
        if get(&lane.cleaned) == 0 && (self.capacity() >= target || taken.is_none()) {
            self.clean_next(lane);
        }
        let Some(taken) = taken else { return Ok(false) };
        let chunk = self.chunk(pool, taken)?;
        if version.saturating_sub(chunk.base(medium)) > u64::from(u32::MAX) / 2 {
            chunk.renew(medium, version);
        }
        set(&lane.chunk, taken as u64 + 1);
        set(&lane.number, 0);
        set(&lane.base, chunk.base(medium));
        Ok(true)
    }

    /// Adds a chunk to the list and returns its number; `None` if there is no space. Durable on
    /// return.
    ///
    /// ```text
    /// N chunk |
    /// C chunks     8 B       crash before C: the chunk is unreachable and free
    /// F that word |          -> durable
    /// ```
    fn add_chunk(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        base: u64,
    ) -> Result<Option<usize>, Corrupt> {
        let (medium, _held) = (pool.medium(), lock::<M>(&self.growth));
        if load::<M>(&self.count) > CHUNK_MAX as u64 {
            return Ok(None);
        }
        let Ok(at) = pool.reserve(record::bytes_of(self.lines)) else { return Ok(None) };
        let word = &root[CHUNKS];
        let next = PmPtr::new(medium.load(word));
        RecordChunk::begin(pool, (at, self.lines), next, base)?;
        medium.commit(word, at.offset(), medium.fence());
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::UnitChunkVolatile)) {
            // Fenced under the latch: a thread that removes a chunk behind it relies on it.
            let _ = medium.persist(core::slice::from_ref(word));
        }
        Ok(Some(self.note_chunk(at)))
    }

    /// Gives the chunk at `at` a number. It becomes the first of the list.
    fn note_chunk(&self, at: PmPtr) -> usize {
        let number = self.chunks.take();
        let [at_word, before, behind] = self.chunks.get(number);
        let next = get(&self.first);
        set(before, 0);
        set(behind, next);
        if let Some(next) = next.checked_sub(1) {
            set(&self.chunks.get(next as usize)[BEFORE], number as u64 + 1);
        }
        set(&self.first, number as u64 + 1);
        store::<M>(at_word, at.offset());
        store::<M>(&self.count, load::<M>(&self.count) + 1);
        number
    }

    /// Removes a clean chunk from the list and frees it. Durable on return.
    ///
    /// ```text
    /// C link before it, or chunks   8 B     no record in it counts
    /// F that word |                         -> the chunk is free
    /// ```
    fn remove_chunk(
        &self,
        (pool, guard): (&Pool<M>, &Guard),
        root: &[PmWord],
        number: usize,
    ) -> Result<(), Corrupt> {
        let (medium, _held) = (pool.medium(), lock::<M>(&self.growth));
        let [at, before, behind] = self.chunks.get(number);
        let [at, before, behind] = [load::<M>(at), get(before), get(behind)];
        let next = behind.checked_sub(1).map_or(0, |next| get(&self.chunks.get(next as usize)[AT]));
        if let Some(before) = before.checked_sub(1) {
            self.chunk(pool, before as usize)?.set_next(medium, PmPtr::new(next));
            set(&self.chunks.get(before as usize)[BEHIND], behind);
        } else {
            medium.store(&root[CHUNKS], next);
            let _ = medium.persist(&root[CHUNKS..=CHUNKS]);
            set(&self.first, behind);
        }
        if let Some(behind) = behind.checked_sub(1) {
            set(&self.chunks.get(behind as usize)[BEFORE], before);
        }
        store::<M>(&self.count, load::<M>(&self.count) - 1);
        set(&self.chunks.get(number)[AT], 0);
        pool.retire(PmPtr::new(at), record::bytes_of(self.lines), guard);
        self.chunks.put_back(number);
        Ok(())
    }

    /// Returns the number of records that a write cleans.
    pub(super) fn records_to_clean(&self, target: u64) -> usize {
        if self.has_spare(target) { SPARE_RECORDS } else { RECORDS }
    }

    /// Returns `true` if the logs have a chunk more than they should.
    fn has_spare(&self, target: u64) -> bool {
        self.capacity() >= target + self.records() as u64
    }

    /// Returns the numbers of this thread's lane, and of all lanes.
    pub(super) fn lanes() -> (usize, core::ops::Range<usize>) {
        (own_lane::<M>(), 0..LANES)
    }

    /// Returns the next record that a lane has to clean; `None` if there is none.
    pub(super) fn next_to_clean(
        &self,
        pool: &Pool<M>,
        lane: usize,
    ) -> Result<Option<OldRecord>, Corrupt> {
        let lane = &self.lanes[lane];
        if get(&lane.cleaned) == 0 {
            return Ok(None); // without the latch
        }
        let _held = lock::<M>(&lane.latch);
        let Some(chunk) = get(&lane.cleaned).checked_sub(1) else { return Ok(None) };
        let position =
            Position { chunk: chunk as usize, number: get(&lane.next_to_clean) as usize };
        if position.number >= self.records() {
            return Ok(None);
        }
        let (record, total) = (self.record(pool, position)?, get(&lane.total));
        Ok(Some(OldRecord { position, record, total }))
    }

    /// Notes that no row refers to `old`, a record of a lane, any more, unless another thread has.
    /// Removes its chunk if that is clean, and the logs should have room for `target` records.
    pub(super) fn note_cleaned(
        &self,
        (pool, guard): (&Pool<M>, &Guard),
        root: &[PmWord],
        (lane, old): (usize, &OldRecord),
        target: u64,
    ) -> Result<(), Corrupt> {
        let lane = &self.lanes[lane];
        let _held = lock::<M>(&lane.latch);
        if get(&lane.total) != old.total {
            return Ok(());
        }
        set(&lane.total, old.total + 1);
        set(&lane.next_to_clean, get(&lane.next_to_clean) + 1);
        if get(&lane.next_to_clean) < self.records() as u64 || !self.has_spare(target) {
            return Ok(());
        }
        if let Some(cleaned) = get(&lane.cleaned).checked_sub(1) {
            self.clean_next(lane);
            self.remove_chunk((pool, guard), root, cleaned as usize)?;
        }
        Ok(())
    }

    /// Makes the chunk that has waited longest the one that `lane` cleans.
    fn clean_next(&self, lane: &Lane) {
        let next = self.waiting.lock().pop_front();
        set(&lane.cleaned, next.map_or(0, |number| number as u64 + 1));
        set(&lane.next_to_clean, 0);
    }

    /// Finds the chunks of a pool that is opened, all of which wait then. The pool's size bounds
    /// their number, so this ends whatever the pool holds.
    ///
    /// # Errors
    /// The header of a chunk is damaged.
    pub(super) fn find_chunks(&self, pool: &Pool<M>, root: &[PmWord]) -> Result<(), Corrupt> {
        let most = (pool.medium().len() / record::bytes_of(self.lines)).min(CHUNK_MAX as u64);
        let (mut at, mut found) = (PmPtr::new(pool.medium().load(&root[CHUNKS])), Vec::new());
        while !at.is_null() {
            let next = RecordChunk::open(pool, at, self.lines)?;
            if found.len() as u64 >= most {
                let (at, what) = (at.offset(), "endless list of log chunks");
                return Err(Corrupt { at, what, expected: most, found: most + 1 });
            }
            found.push(at);
            at = next;
        }
        for at in found.into_iter().rev() {
            let number = self.note_chunk(at);
            self.waiting.lock().push_back(number);
        }
        Ok(())
    }

    /// Returns the numbers of the chunks.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let is_used = |&number: &usize| load::<M>(&self.chunks.get(number)[AT]) != 0;
        (0..self.chunks.end()).filter(is_used).collect()
    }

    /// Calls `visit` with the position of each record of a chunk, and the record.
    ///
    /// # Errors
    /// The check of a line does not fit; or an error of `visit`.
    pub(super) fn for_each_record(
        &self,
        pool: &Pool<M>,
        chunk: usize,
        mut visit: impl FnMut(Position, VersionedChange) -> Result<(), Corrupt>,
    ) -> Result<(), Corrupt> {
        let records = self.chunk(pool, chunk)?;
        records.for_each(pool.medium(), |number, record| visit(Position { chunk, number }, record))
    }

    /// Returns the greatest base of a chunk.
    pub(super) fn greatest_base(&self, pool: &Pool<M>) -> Result<u64, Corrupt> {
        self.numbers()
            .into_iter()
            .try_fold(0, |most, number| self.base(pool, number).map(|base| base.max(most)))
    }

    /// Returns what the offsets of versions in a chunk are added to.
    pub(super) fn base(&self, pool: &Pool<M>, number: usize) -> Result<u64, Corrupt> {
        Ok(self.chunk(pool, number)?.base(pool.medium()))
    }

    /// Makes all versions that follow greater than `version`.
    pub(super) fn set_clocks(&self, version: u64) {
        self.lanes.iter().for_each(|lane| set(&lane.clock, version));
    }

    /// Returns the chunks and their sizes.
    pub(super) fn blocks(&self) -> Vec<(PmPtr, u64)> {
        let at = |number: usize| load::<M>(&self.chunks.get(number)[AT]);
        let bytes = record::bytes_of(self.lines);
        self.numbers().into_iter().map(|number| (PmPtr::new(at(number)), bytes)).collect()
    }

    pub(super) fn dram_bytes(&self) -> u64 {
        self.chunks.bytes() + (LANES * size_of::<Lane>()) as u64
    }

    /// Unlinks and frees all chunks, to whose records no row refers. No other thread uses the
    /// index. Durable on return.
    ///
    /// ```text
    /// W chunks = 0, F |       -> the chunks are free
    /// ```
    pub(super) fn remove_all(&self, pool: &Pool<M>, root: &[PmWord]) {
        let blocks = self.blocks();
        if blocks.is_empty() {
            return;
        }
        pool.medium().store(&root[CHUNKS], 0);
        let _ = pool.medium().persist(&root[CHUNKS..=CHUNKS]);
        for (at, bytes) in blocks {
            // In a damaged pool two lists may share a block.
            if pool.is_block(at, bytes) {
                pool.release(at, bytes);
            }
        }
    }
}
