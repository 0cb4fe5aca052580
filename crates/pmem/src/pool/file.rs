//! The life of a pool: create, open, reserve, grow, close.

use super::PoolError;
use super::superblock::{COPIES, Image, Superblock, WORDS};
use crate::alloc::{Heap, Reach, Usage, ZoneMap};
use crate::checksum::checksum;
use crate::error::Corrupt;
use crate::layout::{CHUNK_BYTES, HEADER_BYTES, POOL_BYTES_MIN};
use crate::line::LINE_BYTES;
use crate::medium::{self, Medium, MediumError};
use crate::numa::Placement;
use crate::sync::Guard;
use crate::word::{PmPtr, PmWord};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

mod growth;
mod placed;

/// A pool on a medium.
#[derive(Debug)]
pub struct Pool<M> {
    medium: M,
    generation: u64,
    uuid: [u64; 2],
    recovering: AtomicBool,
    bytes_max: AtomicU64,
    rebuilt_count: AtomicU64,
    /// The medium's; nobody asks where a thread runs if there is none.
    placement: Option<Placement>,
    heap: Arc<Mutex<Heap>>,
    superblock: Mutex<Superblock>,
    pub(super) root_latch: Mutex<()>,
    pub(crate) log_slots: crate::log::Slots,
}

/// In which state an open found the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It was closed cleanly: what is in use is known, nothing needs recovery.
    Clean,
    /// It was not: the owners of the roots must recover and [`Pool::mark`] what they reach, and
    /// then [`Pool::finish_recovery`] must be called.
    Crashed,
}

impl<M: Medium> Pool<M> {
    /// Makes a pool of the whole medium, whose header must be zero. Durable at return.
    ///
    /// # Errors
    /// The medium is smaller than [`POOL_BYTES_MIN`], or there is something in its header: a pool is
    /// never made over another.
    pub fn create(medium: M) -> Result<Self, PoolError> {
        let bytes = medium.len();
        if bytes < POOL_BYTES_MIN {
            return Err(PoolError::TooSmall { bytes, minimum: POOL_BYTES_MIN });
        }
        let pool_bytes = bytes / CHUNK_BYTES * CHUNK_BYTES;
        let superblock =
            Superblock { uuid: draw_uuid(), sequence: 0, generation: 1, pool_bytes, image: None };
        let pool = Self::assemble(medium, superblock, false);
        let header = pool.words(PmPtr::NULL, HEADER_BYTES as usize / 8)?;
        for (word, at) in header.iter().zip((0..).step_by(8)) {
            let found = pool.medium.load(word);
            if found != 0 {
                return Err(PoolError::NotEmpty { at, found });
            }
        }
        pool.superblock.lock().write_new(&pool.medium, pool.superblock_copies()?);
        Ok(pool)
    }

    /// Opens the pool on `medium`: picks the newer whole superblock, replays the logs, and marks the
    /// pool as open.
    ///
    /// # Errors
    /// It is no pool, or damaged, cut short, or of a newer version. Nothing has changed then.
    pub fn open(medium: M) -> Result<(Self, Opened), PoolError> {
        let bytes = medium.len();
        if bytes < POOL_BYTES_MIN {
            return Err(PoolError::TooSmall { bytes, minimum: POOL_BYTES_MIN });
        }
        let unknown = Superblock {
            uuid: [0; 2],
            sequence: 0,
            generation: 0,
            pool_bytes: HEADER_BYTES,
            image: None,
        };
        let mut pool = Self::assemble(medium, unknown, true);
        let mut superblock = Superblock::read(&pool.medium, pool.superblock_copies()?)?;
        superblock.check(bytes)?;
        // A pool that was closed cleanly has nothing to replay; its logs are read all the same, for
        // the number at which transactions go on.
        crate::log::replay(&pool.medium, &pool.log_slots, superblock.pool_bytes)?;
        let saved = superblock.image.and_then(|image| {
            let saved = pool.load_image(image, &superblock);
            saved.or_else(|| {
                pool.note_rebuilt();
                None
            })
        });
        superblock.image = None;
        superblock.generation += 1;
        superblock.write_both(&pool.medium, pool.superblock_copies()?);
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
            generation: superblock.generation,
            uuid: superblock.uuid,
            recovering: AtomicBool::new(recovering),
            bytes_max: AtomicU64::new(u64::MAX),
            rebuilt_count: AtomicU64::new(0),
            heap: Arc::new(Mutex::new(heap)),
            superblock: Mutex::new(superblock),
            root_latch: Mutex::new(()),
            log_slots: crate::log::Slots::new(),
        }
    }

    /// The free map that a clean close saved, if all of it is as it should be. The block that holds
    /// it is free in the map that is returned.
    fn load_image(&self, image: Image, superblock: &Superblock) -> Option<Heap> {
        let words = self.words(image.at, image.bytes.div_ceil(8) as usize).ok()?;
        let mut bytes = vec![0; image.bytes as usize];
        self.medium.copy_out(words, &mut bytes);
        if checksum(&bytes) != image.crc {
            return None;
        }
        let mut heap = Heap::decode(&bytes, superblock.pool_bytes, self.zone_map())?;
        heap.try_release(image.at.offset(), image.bytes).then_some(heap)
    }

    fn superblock_copies(&self) -> Result<[&[PmWord]; 2], Corrupt> {
        let [a, b] = COPIES.map(|at| self.words(PmPtr::new(at), WORDS));
        Ok([a?, b?])
    }

    /// The medium that the pool is on.
    #[inline(always)]
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// How much of what a close had saved was damaged, and was made anew from the rest since the pool
    /// was opened: its free map, the inner nodes of an index. No crash leaves any of it so.
    pub fn rebuilt_count(&self) -> u64 {
        self.rebuilt_count.load(Ordering::Relaxed)
    }

    /// Notes that the caller makes anew what a close had saved, since it is damaged.
    pub fn note_rebuilt(&self) {
        self.rebuilt_count.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the pool has been opened; latch words that carry another number are stale.
    #[inline(always)]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The number drawn when the pool was created.
    pub fn uuid(&self) -> u128 {
        u128::from(self.uuid[0]) << 64 | u128::from(self.uuid[1])
    }

    /// `count` consecutive words from `at`.
    ///
    /// # Errors
    /// They do not lie in the pool, or `at` is no multiple of 8: a pointer in the pool is damaged.
    #[inline(always)]
    pub fn words(&self, at: PmPtr, count: usize) -> Result<&[PmWord], Corrupt> {
        medium::words_at(&self.medium, at, count)
    }

    /// The `count` words of a block of that many, at `at`.
    ///
    /// # Errors
    /// As [`words`](Self::words), or no such block begins there: of two that overlapped, the latch of one could
    /// be a word of the other, and whoever wrote there would wait for itself.
    #[inline(always)]
    pub fn block(&self, at: PmPtr, count: usize) -> Result<&[PmWord], Corrupt> {
        let bytes = 8 * count as u64;
        let place = if bytes.is_power_of_two() { bytes } else { LINE_BYTES as u64 };
        if !at.offset().is_multiple_of(place) {
            return Err(misplaced(at, place));
        }
        self.words(at, count)
    }

    /// The offset of `word`, which must be one of this pool's.
    #[inline]
    pub fn offset_of(&self, word: &PmWord) -> PmPtr {
        medium::offset_of(&self.medium, word)
    }

    /// Reserves a block of at least `bytes`, with whatever content, growing the pool if need be.
    /// Nothing persistent changes: the block belongs to the caller until a crash or
    /// [`release`](Self::release), and for good once something durable points to it.
    ///
    /// # Errors
    /// The pool is full and cannot grow, or is still being recovered.
    pub fn reserve(&self, bytes: u64) -> Result<PmPtr, PoolError> {
        self.reserve_within(bytes, Reach::Near)
    }

    fn reserve_within(&self, bytes: u64, reach: Reach) -> Result<PmPtr, PoolError> {
        if self.recovering.load(Ordering::Acquire) {
            return Err(PoolError::Recovering);
        }
        if !self.medium.admits_allocation(bytes) {
            let reason = MediumError::Limit { wanted: bytes, limit: self.medium.len() };
            return Err(PoolError::Full { wanted: bytes, reason });
        }
        let zone = self.current_zone();
        loop {
            let full_at = {
                let mut heap = self.heap.lock();
                if let Some(offset) = heap.reserve(bytes, zone, reach) {
                    return Ok(PmPtr::new(offset));
                }
                heap.pool_bytes()
            };
            self.grow_for(bytes, full_at)?;
        }
    }

    /// Frees a block that was reserved for `bytes` and that nothing reaches, nor ever a reader did.
    pub fn release(&self, block: PmPtr, bytes: u64) {
        self.heap.lock().release(block.offset(), bytes);
    }

    /// Frees a block that nothing reaches any more, once no reader that may still hold it is left.
    /// Offset and length come from the pool most often; if they are damaged, so that no such block
    /// is in use, nothing is freed, and recovery frees what nothing reaches.
    pub fn retire(&self, block: PmPtr, bytes: u64, guard: &Guard) {
        let _ = self.try_retire(block, bytes, guard);
    }

    /// Retires a block as [`retire`](Self::retire) does, if such a block is in use: for offsets and
    /// lengths that were read from the pool.
    ///
    /// # Errors
    /// No block of `bytes` is in use there, or it is retired already. Nothing has changed then; if
    /// there is a block, the next recovery finds it.
    pub fn try_retire(&self, block: PmPtr, bytes: u64, guard: &Guard) -> Result<(), Corrupt> {
        let mut heap = self.heap.lock();
        if !heap.is_block(block.offset(), bytes) {
            let what = "no block of that length is in use here";
            return Err(Corrupt { at: block.offset(), what, expected: bytes, found: 0 });
        }
        let turn = heap.retire(block.offset(), bytes);
        drop(heap);
        let heap = Arc::clone(&self.heap);
        guard.defer(move || heap.lock().release_retired(block.offset(), turn));
        Ok(())
    }

    /// Frees every retired block at once, without waiting. For a caller who knows that nobody is left
    /// who may still hold one, such as a test on one thread that wants blocks used again.
    pub fn reclaim(&self) {
        self.heap.lock().drain();
    }

    /// Whether a block of exactly the size that `bytes` takes is in use at `block`, and not retired.
    pub fn is_block(&self, block: PmPtr, bytes: u64) -> bool {
        self.heap.lock().is_block(block.offset(), bytes)
    }

    /// While recovering: notes that a root reaches the block of `bytes` at `block`.
    ///
    /// # Errors
    /// The block cannot be one: it overlaps another, or is outside the pool.
    pub fn mark(&self, block: PmPtr, bytes: u64) -> Result<(), Corrupt> {
        self.mark_all(&[(block, bytes)])
    }

    /// [`mark`](Self::mark)s blocks, each with its bytes, under one lock.
    ///
    /// # Errors
    /// As there, for the first that cannot be one.
    pub fn mark_all(&self, blocks: &[(PmPtr, u64)]) -> Result<(), Corrupt> {
        debug_assert!(self.recovering.load(Ordering::Relaxed), "marks belong to recovery");
        let mut heap = self.heap.lock();
        blocks.iter().try_for_each(|&(block, bytes)| heap.mark(block.offset(), bytes))
    }

    /// Ends recovery: what was not marked is free, and blocks can be reserved.
    pub fn finish_recovery(&self) {
        self.heap.lock().finish_marking();
        self.recovering.store(false, Ordering::Release);
    }

    /// Whether [`mark`](Self::mark)s are expected.
    pub fn is_recovering(&self) -> bool {
        self.recovering.load(Ordering::Acquire)
    }

    /// Blocks that are retired and wait until no reader can hold them.
    pub fn waiting_blocks(&self) -> usize {
        self.heap.lock().waiting_blocks()
    }

    /// How much is in use.
    pub fn usage(&self) -> Usage {
        self.heap.lock().usage()
    }

    /// Bytes that a block reserved for `bytes` takes.
    pub fn reserved_bytes(&self, bytes: u64) -> u64 {
        crate::alloc::reserved_bytes(bytes)
    }

    /// Whether a block in use begins at or covers `block`.
    pub fn is_reserved(&self, block: PmPtr) -> bool {
        self.heap.lock().holds(block.offset())
    }

    /// Saves the free map and closes, so that the next open needs no recovery. Whoever still used
    /// the pool is done: retired blocks are freed at once. Durable at return.
    ///
    /// ```text
    /// N free map |             crash before C: not clean, recovery as after any crash
    /// C one superblock         2 lines, checksummed
    /// F superblock |           -> durable
    /// ```
    ///
    /// # Errors
    /// There is no room for the free map; the pool is left as a crash would leave it, which loses
    /// nothing. So does dropping a pool.
    pub fn close(self) -> Result<(), PoolError> {
        if self.recovering.load(Ordering::Acquire) {
            return Err(PoolError::Recovering);
        }
        self.heap.lock().drain();
        let (at, image) = loop {
            let bytes = self.heap.lock().image_bytes();
            // It is free again at the next open, so wherever there is room will do.
            let at = self.reserve_within(bytes, Reach::Far)?;
            let image = self.heap.lock().encode();
            if image.len() as u64 == bytes {
                break (at, image);
            }
            self.release(at, bytes); // The pool grew for it, and so did its map.
        };
        self.medium.fill(self.words(at, image.len() / 8)?, &image);
        let _ = self.medium.fence();
        let mut superblock = self.superblock.lock();
        let crc = checksum(&image);
        superblock.image = Some(Image { at, bytes: image.len() as u64, crc });
        superblock.write_one(&self.medium, self.superblock_copies()?);
        Ok(())
    }
}

#[cold]
fn misplaced(at: PmPtr, place: u64) -> Corrupt {
    let (what, found) = ("place of a block", at.offset() % place);
    Corrupt { at: at.offset(), what, expected: 0, found }
}

/// Two words that no other pool is likely to have: hashes under keys that the standard library draws
/// from the system's randomness.
fn draw_uuid() -> [u64; 2] {
    use std::hash::{BuildHasher, RandomState};
    core::array::from_fn(|i| RandomState::new().hash_one((i, std::process::id())))
}

#[cfg(test)]
mod tests;
