//! The pool: create, open, reserve, retire, recover, close.

use super::PoolError;
use super::superblock::{COPIES, SavedFreeMap, Superblock, WORDS, too_short};
use crate::alloc::{ClassUsage, Evacuation, Heap, Usage, ZoneMap};
use crate::checksum::checksum;
use crate::error::Corrupt;
use crate::journal::Mark;
use crate::layout::{CHUNK_BYTES, HEADER_BYTES, POOL_BYTES_MIN};
use crate::line::LINE_BYTES;
use crate::log::Replay;
use crate::medium::{self, Domain, Medium, MediumError};
use crate::numa::Placement;
use crate::sync::{Guard, Readers};
use crate::word::{PmPtr, PmWord};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::Mutex;

mod growth;
mod placed;

/// The generation of a new pool that [is aged](Medium::is_aged): the low 24 bits wrap soon.
const AGED_GENERATION: u64 = (1 << 24) - 2;

/// A pool on a medium: the owner of all blocks of the medium.
#[derive(Debug)]
pub struct Pool<M> {
    medium: M,
    nonce: u64,
    former_nonce: u64,
    generation: u64,
    uuid: [u64; 2],
    recovering: AtomicBool,
    bytes_max: AtomicU64,
    /// The largest step of growth, in bytes.
    growth_bytes: AtomicU64,
    rebuilt_count: AtomicU64,
    /// The medium's placement. Without one, no operation asks on which node a thread runs.
    placement: Option<Placement>,
    heap: Mutex<Heap>,
    readers: Readers,
    /// The value of [`Heap::is_sparse`] at the last reservation or evacuation.
    is_sparse: AtomicBool,
    superblock: Mutex<Superblock>,
    /// `true` if a sync of a file of the page cache has failed.
    has_sync_failed: Mutex<bool>,
    pub(super) root_latch: Mutex<()>,
    pub(crate) log_slots: crate::log::SlotState,
}

/// The default of the largest step of growth, in bytes.
const GROWTH_BYTES: u64 = 64 << 20;
/// The number of times that one reservation frees retired blocks before it lets the pool grow.
const COLLECTIONS_MAX: u32 = 4;

/// The state in which an open found the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The pool was closed cleanly: the blocks in use are known, and recovery is not needed.
    Clean,
    /// The pool was not closed. The owners of the roots must recover and [`Pool::mark`] every block
    /// that they reach, then [`Pool::finish_recovery`] must be called.
    Crashed,
}

/// The distance, in blocks, at which what marking a block reads is prefetched.
const MARK_DISTANCE: usize = 16;

impl<M: Medium> Pool<M> {
    /// Creates a pool that takes the whole medium, and syncs it. Durable on return.
    ///
    /// # Errors
    /// The medium is smaller than [`POOL_BYTES_MIN`], or a word of its header is not zero: a pool
    /// is never created over another. Or the system could not write the file.
    pub fn create(medium: M) -> Result<Self, PoolError> {
        let bytes = medium.len();
        if bytes < POOL_BYTES_MIN {
            return Err(PoolError::TooSmall { bytes, minimum: POOL_BYTES_MIN });
        }
        let pool_bytes = bytes / CHUNK_BYTES * CHUNK_BYTES;
        let mut superblock = Superblock {
            uuid: draw_uuid(),
            sequence: 0,
            generation: if M::is_aged() { AGED_GENERATION } else { 0 },
            pool_bytes,
            free_map: None,
            nonce: 0,
            boot_id: [0; 2],
            features: 0,
            file_id: [0; 2],
        };
        superblock.begin(&medium);
        let pool = Self::assemble(medium, superblock, false);
        let header = pool.words(PmPtr::NULL, HEADER_BYTES as usize / 8)?;
        for (word, at) in header.iter().zip((0..).step_by(8)) {
            let found = pool.medium.load(word);
            if found != 0 {
                return Err(PoolError::NotEmpty { at, found });
            }
        }
        pool.heap.lock().keep_pages();
        pool.superblock.lock().write_new(&pool.medium, pool.superblock_copies()?);
        if M::is_aged() {
            pool.log_slots.resume_above(crate::log::AGED_TXID);
        }
        pool.medium.sync()?;
        Ok(pool)
    }

    /// Opens the pool on `medium`: reads the newer whole superblock, makes durable what a killed
    /// process has left in the caches, marks the pool as open, and replays the logs. The mark is
    /// durable before anything else changes.
    ///
    /// # Errors
    /// The medium holds no pool, or the pool is damaged, cut short, of another version, [may be
    /// torn](PoolError::MayBeTorn), or is a [copy](PoolError::UnclosedCopy) of one that was not
    /// closed. Nothing has changed then. If the system cannot write
    /// the mark, a pool that was closed is as after a crash, which loses nothing. Any other may be
    /// torn from then on.
    pub fn open(medium: M) -> Result<(Self, Opened), PoolError> {
        Self::open_if(medium, |superblock, medium| {
            superblock.check_boot(medium)?;
            superblock.check_file(medium.file_id())
        })
    }

    /// Opens the pool on `medium` even if it [may be torn](PoolError::MayBeTorn), or is a
    /// [copy](PoolError::UnclosedCopy) of one that was not closed. It takes the file as it is:
    /// after a restart of the machine, and in a copy of an open file, pages can be from different
    /// times, so writes may be missing and answers wrong. From now on the pool counts as whole.
    ///
    /// # Errors
    /// As [`open`](Self::open), except for [`PoolError::MayBeTorn`] and
    /// [`PoolError::UnclosedCopy`].
    pub fn open_torn(medium: M) -> Result<(Self, Opened), PoolError> {
        Self::open_if(medium, |_, _| Ok(()))
    }

    fn open_if(
        medium: M,
        check: impl FnOnce(&Superblock, &M) -> Result<(), PoolError>,
    ) -> Result<(Self, Opened), PoolError> {
        let bytes = medium.len();
        if bytes < POOL_BYTES_MIN {
            return Err(too_short(&medium));
        }
        let unknown = Superblock {
            uuid: [0; 2],
            sequence: 0,
            generation: 0,
            pool_bytes: HEADER_BYTES,
            free_map: None,
            nonce: 0,
            boot_id: [0; 2],
            features: 0,
            file_id: [0; 2],
        };
        let mut pool = Self::assemble(medium, unknown, true);
        let mut superblock = Superblock::read(&pool.medium, pool.superblock_copies()?)?;
        check_whole(&pool.medium)?;
        // A root is synced before it is reported. So without one, no root was ever reported, and
        // nothing that was acknowledged can be missing.
        if pool.has_roots()? {
            check(&superblock, &pool.medium)?;
        }
        superblock.check(bytes)?;
        pool.medium.fit_to(superblock.pool_bytes)?;
        if superblock.free_map.is_none() {
            pool.medium.write_back_all()?;
        }
        // A cleanly closed pool has nothing to replay. Its logs are read all the same, for the
        // greatest transaction number.
        let logs = Replay::read(&pool.medium, superblock.pool_bytes)?;
        let saved = superblock.free_map.and_then(|place| {
            let saved = pool.load_free_map(place, &superblock);
            saved.or_else(|| {
                pool.note_rebuilt();
                None
            })
        });
        pool.former_nonce = superblock.nonce;
        let was_closed = superblock.is_closed();
        superblock.begin(&pool.medium);
        superblock.write_both(&pool.medium, pool.superblock_copies()?);
        if let Err(error) = pool.medium.sync_front(HEADER_BYTES) {
            if !was_closed {
                superblock.write_torn(&pool.medium, pool.superblock_copies()?);
            }
            return Err(error.into());
        }
        logs.end(&pool.medium, &pool.log_slots)?;
        pool.nonce = superblock.nonce;
        pool.generation = superblock.generation;
        pool.uuid = superblock.uuid;
        *pool.superblock.get_mut() = superblock;
        let opened = if saved.is_some() { Opened::Clean } else { Opened::Crashed };
        pool.recovering = AtomicBool::new(opened == Opened::Crashed);
        *pool.heap.lock() =
            saved.unwrap_or_else(|| Heap::new(superblock.pool_bytes, 1, pool.zone_map()));
        Ok((pool, opened))
    }

    fn assemble(medium: M, superblock: Superblock, recovering: bool) -> Self {
        let placement = medium.placement();
        let zone_map = placement.as_ref().map_or(ZoneMap::SINGLE, ZoneMap::of);
        let heap = Heap::new(superblock.pool_bytes, 1, zone_map);
        Self {
            medium,
            placement,
            nonce: superblock.nonce,
            former_nonce: 0,
            generation: superblock.generation,
            uuid: superblock.uuid,
            recovering: AtomicBool::new(recovering),
            bytes_max: AtomicU64::new(u64::MAX),
            growth_bytes: AtomicU64::new(GROWTH_BYTES),
            rebuilt_count: AtomicU64::new(0),
            heap: Mutex::new(heap),
            readers: Readers::new(),
            is_sparse: AtomicBool::new(false),
            superblock: Mutex::new(superblock),
            has_sync_failed: Mutex::new(false),
            root_latch: Mutex::new(()),
            log_slots: crate::log::SlotState::new(),
        }
    }

    /// Returns the free map that a clean close saved, or `None` if it is damaged. The block with
    /// the saved map is free in the result.
    fn load_free_map(&self, place: SavedFreeMap, superblock: &Superblock) -> Option<Heap> {
        let words = self.words(place.at, place.bytes.div_ceil(8) as usize).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(place.bytes as usize).ok()?; // The file gives this length.
        bytes.resize(place.bytes as usize, 0);
        self.medium.copy_out(words, &mut bytes);
        if checksum(&bytes) != place.crc {
            return None;
        }
        let mut heap = Heap::decode(&bytes, superblock.pool_bytes, self.zone_map())?;
        let is_freed = heap.release_free_map(place.at.offset(), place.bytes);
        heap.keep_pages();
        is_freed.then_some(heap)
    }

    #[cfg(test)]
    pub(super) fn superblock_of_this_open(&self) -> Superblock {
        *self.superblock.lock()
    }

    fn superblock_copies(&self) -> Result<[&[PmWord]; 2], Corrupt> {
        let [a, b] = COPIES.map(|at| self.words(PmPtr::new(at), WORDS));
        Ok([a?, b?])
    }

    /// Returns the medium that the pool is on.
    #[inline(always)]
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Returns the number of structures that the last close had saved (the free map, the inner
    /// nodes of an index) and that were damaged and rebuilt since the open. No crash causes such
    /// damage.
    pub fn rebuilt_count(&self) -> u64 {
        self.rebuilt_count.load(Ordering::Relaxed)
    }

    /// Counts a saved structure that the caller rebuilds because it is damaged.
    pub fn note_rebuilt(&self) {
        self.rebuilt_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the random number of this open. Latch words carry its low 24 bits, which are not 0;
    /// a latch word with other bits is stale.
    #[inline(always)]
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Returns the nonce of the open, or the creation, before this one. What its close saved
    /// carries it.
    pub fn former_nonce(&self) -> u64 {
        self.former_nonce
    }

    /// Returns the number of times that the pool has been opened, its creation counted.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the random number drawn when the pool was created.
    pub fn uuid(&self) -> u128 {
        u128::from(self.uuid[0]) << 64 | u128::from(self.uuid[1])
    }

    /// Returns the `count` consecutive words that begin at `at`.
    ///
    /// # Errors
    /// The words are not inside the pool, or `at` is no multiple of 8: a pointer in the pool is
    /// damaged.
    #[inline(always)]
    pub fn words(&self, at: PmPtr, count: usize) -> Result<&[PmWord], Corrupt> {
        medium::words_at(&self.medium, at, count)
    }

    /// Returns the `count` words of the block at `at`.
    ///
    /// # Errors
    /// As [`words`](Self::words), or no block of that size can begin there. Of two blocks that
    /// overlapped, the latch of one could be a word of the other, and a writer of that word could
    /// wait for itself.
    #[inline(always)]
    pub fn block(&self, at: PmPtr, count: usize) -> Result<&[PmWord], Corrupt> {
        let bytes = 8 * count as u64;
        let alignment = if bytes.is_power_of_two() { bytes } else { LINE_BYTES as u64 };
        if !at.offset().is_multiple_of(alignment) {
            return Err(misaligned(at, alignment));
        }
        self.words(at, count)
    }

    /// Returns the offset of `word`, which must be a word of this pool.
    #[inline]
    pub fn offset_of(&self, word: &PmWord) -> PmPtr {
        medium::offset_of(&self.medium, word)
    }

    /// Reserves a block of at least `bytes`, with undefined contents, and grows the pool if
    /// necessary. This changes nothing persistent: the block belongs to the caller until a crash or
    /// [`release`](Self::release), and for good once a durable pointer leads to it.
    ///
    /// # Errors
    /// The pool is full and cannot grow, or is in recovery.
    pub fn reserve(&self, bytes: u64) -> Result<PmPtr, PoolError> {
        if self.recovering.load(Ordering::Acquire) {
            return Err(PoolError::Recovering);
        }
        if !self.medium.admits_allocation(bytes) {
            let reason = MediumError::Limit { wanted: bytes, limit: self.medium.len() };
            return Err(PoolError::Full { wanted: bytes, reason });
        }
        let zone = self.current_zone();
        let (mut collections, mut has_grown) = (0, false);
        loop {
            let (full_at, waits) = {
                let mut heap = self.heap.lock();
                if let Some(offset) = heap.reserve(bytes, zone) {
                    if has_grown {
                        heap.keep_pages();
                    }
                    let is_sparse = heap.is_sparse();
                    if is_sparse != self.is_sparse.load(Ordering::Relaxed) {
                        self.is_sparse.store(is_sparse, Ordering::Relaxed);
                    }
                    let (pool_bytes, left) = (heap.pool_bytes(), heap.scarcest_zone_bytes());
                    drop(heap);
                    self.prepare_if_low(pool_bytes, left);
                    return Ok(PmPtr::new(offset));
                }
                (heap.pool_bytes(), heap.waiting_blocks() > 0)
            };
            collections += 1;
            if !waits || collections > COLLECTIONS_MAX || !self.collect_some() {
                self.grow_for(bytes, full_at)?;
                has_grown = true;
            }
        }
    }

    /// Frees a block that was reserved for `bytes`, which no pointer reaches and no reader may
    /// hold.
    pub fn release(&self, block: PmPtr, bytes: u64) {
        self.heap.lock().release(block.offset(), bytes);
    }

    /// Pins the current thread in this pool: until the guard is dropped, no block is freed that the
    /// thread may reach. Frees of other pools do not wait for it. Pins nest. On a medium that
    /// controls the schedule, other threads may run before it pins.
    #[inline(always)]
    pub fn pin(&self) -> Guard {
        M::yield_point();
        self.readers.pin()
    }

    /// Frees a block that no pointer reaches any more, after every reader that may hold it has
    /// unpinned. `guard` is a pin of this pool. If no block of `bytes` is in use at `block`,
    /// because the caller read a damaged offset or length from the pool, this does nothing; the
    /// next recovery frees the block.
    pub fn retire(&self, block: PmPtr, bytes: u64, guard: &Guard) {
        let _ = self.try_retire(block, bytes, guard);
    }

    /// Retires a block like [`retire`](Self::retire), but reports an offset or length that is
    /// damaged.
    ///
    /// # Errors
    /// No block of `bytes` is in use there, or it is retired already. Nothing has changed then. If
    /// there is a block, the next recovery frees it.
    pub fn try_retire(&self, block: PmPtr, bytes: u64, _guard: &Guard) -> Result<(), Corrupt> {
        let mut heap = self.heap.lock();
        if !heap.is_block(block.offset(), bytes) {
            let what = "no block of that length is in use here";
            return Err(Corrupt { at: block.offset(), what, expected: bytes, found: 0 });
        }
        let is_due = heap.retire(block.offset(), bytes, Readers::retirement_epoch());
        drop(heap);
        if is_due {
            self.collect_some();
        }
        Ok(())
    }

    /// Frees every retired block that no reader can hold any more. [`retire`](Self::retire) does so
    /// for some of them at every 64th block, or 1 MiB; a reservation does so before the pool grows.
    /// Call it when space has run out. Returns `true` if it freed any.
    #[cold]
    pub fn collect(&self) -> bool {
        let oldest = self.readers.oldest_pinned_epoch();
        let mut has_freed = false;
        while self.heap.lock().release_retired(oldest) > 0 {
            has_freed = true;
        }
        has_freed
    }

    /// Frees some of the retired blocks that no reader can hold any more, as many as one operation
    /// may free for others. Returns `true` if it freed any.
    #[cold]
    fn collect_some(&self) -> bool {
        let oldest = self.readers.oldest_pinned_epoch();
        self.heap.lock().release_retired(oldest) > 0
    }

    /// Frees every retired block at once, without waiting for readers. The caller must know that no
    /// reader holds one; for example a test on one thread that wants blocks reused.
    pub fn reclaim(&self) {
        self.heap.lock().drain();
    }

    /// Returns the number of blocks that were retired since the open. For a scheduler that decides
    /// when the readers of a block have unpinned.
    #[doc(hidden)]
    pub fn retirements(&self) -> u64 {
        self.heap.lock().retirements()
    }

    /// Frees the blocks of the first `retirements` retirements since the open and returns them,
    /// each with its size in bytes. The caller must know that no reader holds one.
    #[doc(hidden)]
    pub fn reclaim_until(&self, retirements: u64) -> Vec<(PmPtr, u64)> {
        let freed = self.heap.lock().drain_until(retirements);
        freed.into_iter().map(|(at, bytes)| (PmPtr::new(at), bytes)).collect()
    }

    /// Returns `true` if a block of exactly the size that `bytes` takes is in use at `block` and
    /// not retired.
    pub fn is_block(&self, block: PmPtr, bytes: u64) -> bool {
        self.heap.lock().is_block(block.offset(), bytes)
    }

    /// Returns `true` if a block of exactly the size that `bytes` takes is in use at `block`,
    /// retired or not.
    pub fn is_block_in_use(&self, block: PmPtr, bytes: u64) -> bool {
        self.heap.lock().is_in_use(block.offset(), bytes)
    }

    /// Marks the block of `bytes` at `block` as in use, because a root reaches it. Only during
    /// recovery.
    ///
    /// # Errors
    /// The block overlaps another or is outside the pool, so the pointer to it is damaged.
    pub fn mark(&self, block: PmPtr, bytes: u64) -> Result<(), Corrupt> {
        self.mark_all(&[(block, bytes)])
    }

    /// [`mark`](Self::mark)s blocks, each with its size in bytes, under one lock.
    ///
    /// # Errors
    /// As [`mark`](Self::mark), for the first damaged pointer.
    pub fn mark_all(&self, blocks: &[(PmPtr, u64)]) -> Result<(), Corrupt> {
        debug_assert!(
            self.recovering.load(Ordering::Relaxed),
            "blocks are marked only during recovery"
        );
        let mut heap = self.heap.lock();
        for (index, &(block, bytes)) in blocks.iter().enumerate() {
            if let Some((ahead, _)) = blocks.get(index + MARK_DISTANCE) {
                heap.prefetch(ahead.offset());
            }
            heap.mark(block.offset(), bytes)?;
        }
        Ok(())
    }

    /// Ends recovery: frees every block that is not marked, and allows reservations.
    pub fn finish_recovery(&self) {
        let mut heap = self.heap.lock();
        heap.finish_marking();
        heap.keep_pages();
        drop(heap);
        self.recovering.store(false, Ordering::Release);
    }

    /// Returns `true` until [`finish_recovery`](Self::finish_recovery) after an open that found the
    /// pool [crashed](Opened::Crashed).
    pub fn is_recovering(&self) -> bool {
        self.recovering.load(Ordering::Acquire)
    }

    /// Returns the number of retired blocks that readers may still hold.
    pub fn waiting_blocks(&self) -> usize {
        self.heap.lock().waiting_blocks()
    }

    /// Calls `read` with the heap and returns its result. In a child of the process that opened the
    /// pool no thread releases a lock that was held at the fork: there it returns the default then.
    fn read_heap<T: Default>(&self, read: impl FnOnce(&Heap) -> T) -> T {
        if self.medium.is_inherited() {
            return self.heap.try_lock().map_or_else(T::default, |heap| read(&heap));
        }
        read(&self.heap.lock())
    }

    /// Holds the lock of the heap, as a thread does that reserves a block.
    #[cfg(test)]
    pub(crate) fn hold_heap(&self) -> impl Drop + '_ {
        self.heap.lock()
    }

    /// Returns the amounts of used and free space; zeros in a child that was forked while a thread
    /// changed them.
    pub fn usage(&self) -> Usage {
        self.read_heap(Heap::usage)
    }

    /// Returns the usage of the chunks of each block size, the smallest size first; in a child as
    /// [`usage`](Self::usage).
    pub fn usage_of_classes(&self) -> Vec<ClassUsage> {
        self.read_heap(Heap::usage_of_classes)
    }

    /// Returns `true` if little of the pool is free but its chunks are sparse: before the pool
    /// grows, the owners of blocks should move them, with
    /// [`begin_evacuation`](Self::begin_evacuation).
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.is_sparse.load(Ordering::Relaxed)
    }

    /// Chooses a chunk at most half of whose blocks are in use, and reserves no more blocks in it.
    /// The caller moves the blocks that are its own and retires them, then calls
    /// [`end_evacuation`](Self::end_evacuation). Returns `None` if nothing would come free.
    pub fn begin_evacuation(&self) -> Option<Evacuation> {
        self.heap.lock().begin_evacuation()
    }

    /// Ends an evacuation. The chunk comes free when the last of its blocks is freed. If some have
    /// stayed, blocks are reserved in it again.
    pub fn end_evacuation(&self, evacuation: &Evacuation) {
        let mut heap = self.heap.lock();
        heap.end_evacuation(evacuation);
        self.is_sparse.store(heap.is_sparse(), Ordering::Relaxed);
    }

    /// Returns the size of a block that is reserved for `bytes`, in bytes.
    pub fn reserved_bytes(&self, bytes: u64) -> u64 {
        crate::alloc::reserved_bytes(bytes)
    }

    /// Returns `true` if `block` lies in a block that is in use.
    pub fn is_reserved(&self, block: PmPtr) -> bool {
        self.heap.lock().holds(block.offset())
    }

    /// Saves the free map and closes the pool, so that the next open needs no recovery. No thread
    /// may use the pool any more: retired blocks are freed at once. Durable on return, on a plain
    /// file too: S syncs a file of the page cache, where no fence does.
    ///
    /// A pool of over 1 MiB keeps space for its free map. Without space, this closes the pool
    /// without the map: nothing is lost, and the next open recovers it.
    ///
    /// ```text
    /// N free map |, S          crash before C: not clean, recovery as after any crash
    /// C one superblock         2 lines, checksummed
    /// F superblock |, S        -> durable
    /// ```
    ///
    /// # Errors
    /// The pool is in recovery. It is then as after a crash, which loses nothing, and the same
    /// holds for a pool that is dropped. Or the system could not write the file: pages may be lost,
    /// and the next open returns [`PoolError::MayBeTorn`].
    pub fn close(self) -> Result<(), PoolError> {
        if self.medium.is_inherited() {
            return Err(MediumError::Inherited.into());
        }
        if self.recovering.load(Ordering::Acquire) {
            return Err(PoolError::Recovering);
        }
        self.heap.lock().drain();
        let Some((at, free_map)) = self.reserve_free_map()? else {
            return self.close_without_free_map();
        };
        self.medium.fill(self.words(at, free_map.len() / 8)?, &free_map);
        let _ = self.medium.fence();
        // The mark says that all pages are as they should be, so all are durable before it.
        self.sync_pages()?;
        let mut superblock = self.superblock.lock();
        let crc = checksum(&free_map);
        superblock.free_map = Some(SavedFreeMap { at, bytes: free_map.len() as u64, crc });
        superblock.end();
        superblock.write_one(&self.medium, self.superblock_copies()?);
        self.medium.sync_front(HEADER_BYTES)?;
        self.medium.finish()?;
        Ok(())
    }

    /// Writes to the device what was stored so far. In a domain that covers a power cut nothing is
    /// left to write but the file's metadata, and lines that a journal has not synced.
    ///
    /// # Errors
    /// The system could not write the file, now or before. Without a journal pages may be lost, and
    /// the next open returns [`PoolError::MayBeTorn`], whatever is synced later.
    pub fn sync(&self) -> Result<(), PoolError> {
        if self.medium.domain().covers(Domain::Disk) {
            return Ok(self.medium.sync()?);
        }
        self.sync_pages()
    }

    /// Syncs a file of the page cache. If that fails, the pool may be torn from now on: the system
    /// tells one caller alone, and calls the pages clean that it could not write.
    pub(super) fn sync_pages(&self) -> Result<(), PoolError> {
        if self.medium.domain().covers(Domain::Disk) {
            return Ok(());
        }
        let mut has_failed = self.has_sync_failed.lock();
        if *has_failed {
            let earlier = std::io::Error::other("an earlier sync of the file has failed");
            return Err(MediumError::system("write the file to the device", earlier).into());
        }
        if let Err(error) = self.medium.sync() {
            *has_failed = true;
            self.superblock.lock().write_torn(&self.medium, self.superblock_copies()?);
            return Err(error.into());
        }
        Ok(())
    }

    /// Closes the pool so that the next open recovers it. A file of the page cache is synced, and
    /// the superblock then names no boot: a restart of the machine loses nothing.
    fn close_without_free_map(self) -> Result<(), PoolError> {
        self.sync_pages()?;
        let mut superblock = self.superblock.lock();
        superblock.boot_id = [0; 2];
        superblock.end();
        superblock.write_one(&self.medium, self.superblock_copies()?);
        self.medium.sync_front(HEADER_BYTES)?;
        self.medium.finish()?;
        Ok(())
    }

    /// Reserves a block for the free map, and returns it with the map. Returns `None` if there is
    /// no space.
    fn reserve_free_map(&self) -> Result<Option<(PmPtr, Vec<u8>)>, PoolError> {
        loop {
            let (bytes, full_at) = {
                let mut heap = self.heap.lock();
                if let Some(at) = heap.reserve_free_map() {
                    return Ok(Some((PmPtr::new(at), heap.encode())));
                }
                (heap.free_map_bytes(), heap.pool_bytes())
            };
            match self.grow_for(bytes, full_at) {
                Err(PoolError::Full { .. }) => return Ok(None),
                other => other?,
            }
        }
    }
}

/// Checks that no mark of a journal says that the file alone is not whole. Working memory with a
/// journal has no mark.
fn check_whole<M: Medium>(medium: &M) -> Result<(), PoolError> {
    let is_marked = |at| {
        let word = medium::words_at(medium, PmPtr::new(at), 1)?;
        Ok::<_, Corrupt>(medium.load(&word[0]) != 0)
    };
    let [first, second] = Mark::SECTORS.map(is_marked);
    if !first? && !second? {
        return Ok(());
    }
    let mut page = vec![0; 0x1000];
    medium.copy_out(medium::words_at(medium, PmPtr::NULL, page.len() / 8)?, &mut page);
    match Mark::read(&page)? {
        Some(mark) if mark.needs_journal() => Err(PoolError::NeedsJournal),
        _ => Ok(()),
    }
}

#[cold]
fn misaligned(at: PmPtr, alignment: u64) -> Corrupt {
    let (what, found) = ("alignment of a block", at.offset() % alignment);
    Corrupt { at: at.offset(), what, expected: 0, found }
}

/// Returns two random words. The standard library seeds its hasher from the system's randomness, so
/// no other pool is likely to have them.
fn draw_uuid() -> [u64; 2] {
    use std::hash::{BuildHasher, RandomState};
    core::array::from_fn(|i| RandomState::new().hash_one((i, std::process::id())))
}

#[cfg(test)]
mod tests;
