//! The free map that a clean close saves. It does not contain zones, since each open divides the
//! free chunks anew.
//!
//! A pool of over 1 MiB keeps pages for it, so that a full pool can close cleanly. A smaller one
//! recovers as fast as it would read the map.

use super::{CHUNK_BYTES, CHUNK_PAGES, Chunk, Heap, PAGE_BYTES, Pages, ZoneMap};

const SAVED_CHUNK_BYTES: u64 = 72;
/// The size of the largest pool that keeps no pages for its free map, in bytes.
const POOL_BYTES_WITHOUT: u64 = 1 << 20;

impl Heap {
    /// Returns the size of the saved free map, in bytes.
    pub(crate) fn free_map_bytes(&self) -> u64 {
        self.chunks.len() as u64 * SAVED_CHUNK_BYTES
    }

    /// Keeps pages for the free map, and more of them after the pool has grown. They suffice until
    /// it has grown by half once more. Without space, it keeps those that it has.
    pub(crate) fn keep_pages(&mut self) {
        let kept = self.for_free_map.map_or(0, |(_, count)| count);
        let bytes = self.free_map_bytes();
        if self.pool_bytes() <= POOL_BYTES_WITHOUT || kept * PAGE_BYTES >= bytes {
            return;
        }
        let count = (bytes + bytes / 2).div_ceil(PAGE_BYTES);
        if let Some(first) = self.find_pages(Pages { count, alignment: 1 }, 0, false) {
            self.free_kept_pages();
            self.take_pages(first, count);
            self.for_free_map = Some((first, count));
        }
    }

    fn free_kept_pages(&mut self) {
        if let Some((first, count)) = self.for_free_map.take() {
            self.release_pages(first, count);
        }
    }

    /// Reserves a block for the free map, from the pages that are kept for it. Returns its offset,
    /// or `None` if there is no space.
    pub(crate) fn reserve_free_map(&mut self) -> Option<u64> {
        self.free_kept_pages();
        let count = self.free_map_bytes().div_ceil(PAGE_BYTES);
        let first = self.find_pages(Pages { count, alignment: 1 }, 0, false)?;
        self.take_pages(first, count);
        Some(first * PAGE_BYTES)
    }

    /// Frees the block of `bytes` at `offset` in which the free map was saved. Returns `false` if
    /// there is no such block.
    pub(crate) fn release_free_map(&mut self, offset: u64, bytes: u64) -> bool {
        let (first, count) = (offset / PAGE_BYTES, bytes.div_ceil(PAGE_BYTES));
        let is_whole = offset.is_multiple_of(PAGE_BYTES) && self.is_block_of_pages(first, count);
        if is_whole {
            self.release_pages(first, count);
        }
        is_whole
    }

    /// Returns the size of the pages that are kept for the free map, in bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.for_free_map.map_or(0, |(_, count)| count * PAGE_BYTES)
    }

    /// Returns the free map as a clean close saves it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let words = self.chunks.iter().flat_map(Chunk::encode);
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Returns the heap whose free map is `saved`, or `None` if no heap has that map.
    pub(crate) fn decode(saved: &[u8], pool_bytes: u64, zone_map: ZoneMap) -> Option<Self> {
        let count = pool_bytes / CHUNK_BYTES;
        if saved.len() as u64 != count * SAVED_CHUNK_BYTES {
            return None;
        }
        let mut heap = Self::new(pool_bytes, 0, zone_map);
        for (index, bytes) in saved.chunks_exact(SAVED_CHUNK_BYTES as usize).enumerate() {
            let mut words = [0; 9];
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().ok()?);
            }
            if words != [0; 9] {
                heap.chunks[index] = Chunk::decode(&words)?;
            }
        }
        (heap.is_block_of_pages(0, CHUNK_PAGES) && heap.pages_belong_to_blocks()).then(|| {
            heap.finish_marking();
            heap
        })
    }

    /// Returns `true` if each page in use begins a block or follows a page in use.
    fn pages_belong_to_blocks(&self) -> bool {
        let mut follows = 0;
        self.chunks.iter().all(|chunk| {
            let (used, begins) = chunk.pages();
            let continued = used << 1 | follows;
            follows = used >> (CHUNK_PAGES - 1) & 1;
            used & !begins & !continued == 0
        })
    }
}
