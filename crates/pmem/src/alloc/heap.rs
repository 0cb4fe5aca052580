//! The heap: the chunks of a pool, the lists of those with space, and blocks that wait for readers.

use super::chunk::{
    CHUNK_PAGES, CLASSES, Chunk, Class, PAGE_BYTES, SMALL_MAX_BYTES, SPARSE_FILLS, Use,
};
use super::chunks::Chunks;
use super::runs::lowest_fit;
use super::zone::{Zone, ZoneMap};
use crate::error::Corrupt;
use crate::layout::CHUNK_BYTES;
use crate::sys;
use std::collections::{BTreeSet, VecDeque};

mod evacuation;
mod free_map;
mod usage;

pub use evacuation::Evacuation;

/// The chunks of a pool. The pool guards them with one mutex. A thread holds it for some tens of
/// nanoseconds, and an insert reserves a block only when a node splits.
#[derive(Debug)]
pub(crate) struct Heap {
    chunks: Chunks,
    zone_map: ZoneMap,
    zones: Vec<Zone>,
    /// `true` if a zone without space waits for growth, `false` if it uses the space of other
    /// zones.
    prefers_growth: bool,
    counts: Counts,
    retired: Retired,
    /// The pages in which a close saves the free map: the first page and the number of pages.
    for_free_map: Option<(u64, u64)>,
}

/// The numbers of blocks and chunks in use.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// For each class, the number of its chunks and of its blocks in use.
    small: [(u64, u64); CLASSES],
    /// The number of blocks that take pages.
    large_blocks: u64,
    /// The number of pages in use.
    large_pages: u64,
    /// The bytes that come free if the blocks of sparse chunks move elsewhere.
    sparse_bytes: u64,
}

/// The retired blocks that readers may still hold.
#[derive(Debug, Default)]
struct Retired {
    /// The blocks in the order of their retirement, so that the oldest comes first.
    queue: VecDeque<RetiredBlock>,
    /// The offsets of the blocks in the queue.
    offsets: BTreeSet<u64>,
    /// The size of the blocks in the queue, in bytes.
    bytes: u64,
    /// The number of retirements since the open.
    count: u64,
    /// The number and the size of the blocks since the last attempt to free some.
    since: (u32, u64),
}

#[derive(Clone, Copy, Debug)]
struct RetiredBlock {
    epoch: u64,
    offset: u64,
    bytes: u64,
}

/// The number of retirements, and their bytes, after which a thread tries to free retired blocks.
const COLLECT_BLOCKS: u32 = 64;
const COLLECT_BYTES: u64 = 1 << 20;
/// The number of blocks that one attempt frees at most, in some tens of microseconds. It frees at
/// most 1 MiB, or twice what was retired since the last attempt. So a backlog shrinks.
const FREED_BLOCKS_MAX: usize = 256;

/// A block that takes pages: the number of pages, and the alignment of the first.
#[derive(Clone, Copy)]
struct Pages {
    count: u64,
    alignment: u64,
}

impl Pages {
    fn of(bytes: u64) -> Self {
        let alignment =
            if bytes.is_power_of_two() { bytes.min(CHUNK_BYTES) / PAGE_BYTES } else { 1 };
        Self { count: bytes.div_ceil(PAGE_BYTES), alignment }
    }
}

/// Returns the chunks in which a run of pages lies, each with the bits of the run's pages.
fn pages_by_chunk(first: u64, count: u64) -> impl Iterator<Item = (usize, u64)> {
    let end = first + count;
    (first / CHUNK_PAGES..end.div_ceil(CHUNK_PAGES)).map(move |index| {
        let begin = index * CHUNK_PAGES;
        let from = first.saturating_sub(begin);
        let to = (end - begin).min(CHUNK_PAGES);
        (index as usize, ((1 << to) - 1) & !((1u64 << from) - 1))
    })
}

impl Heap {
    /// Returns the heap of a pool of `pool_bytes`, whose first `header_chunks` chunks are the
    /// header.
    pub(crate) fn new(pool_bytes: u64, header_chunks: u32, zone_map: ZoneMap) -> Self {
        let mut heap = Self {
            chunks: Chunks::default(),
            zone_map,
            zones: (0..zone_map.zones()).map(|_| Zone::new()).collect(),
            prefers_growth: true,
            counts: Counts::default(),
            retired: Retired::default(),
            for_free_map: None,
        };
        heap.extend(pool_bytes);
        if header_chunks > 0 {
            heap.take_pages(0, u64::from(header_chunks) * CHUNK_PAGES);
        }
        heap
    }

    /// Adds the chunks by which a pool of `pool_bytes` is larger than the heap.
    pub(crate) fn extend(&mut self, pool_bytes: u64) {
        let old = self.chunks.len() as u64;
        let count = pool_bytes / CHUNK_BYTES;
        if count > old {
            self.chunks.extend_to(count as usize);
            self.give_back(old * CHUNK_PAGES, (count - old) * CHUNK_PAGES);
        }
    }

    /// Returns `true` if a zone without space waits for growth although other zones have space.
    /// Always `false` for a heap of one zone.
    pub(crate) fn prefers_growth(&self) -> bool {
        self.prefers_growth && self.zones.len() > 1
    }

    /// Sets whether a zone without space waits for growth. The pool clears it when growth fails.
    pub(crate) fn prefer_growth(&mut self, prefers: bool) {
        self.prefers_growth = prefers;
    }

    /// Reserves a block of at least `bytes`, from `zone` if it has space. Other zones are used only
    /// if growth is not [preferred](Self::prefers_growth), or if the block is longer than a stripe.
    /// Returns the offset, or `None` if the heap must be extended first.
    pub(crate) fn reserve(&mut self, bytes: u64, zone: usize) -> Option<u64> {
        let is_near = self.prefers_growth;
        if bytes > SMALL_MAX_BYTES {
            let pages = Pages::of(bytes);
            // A block that is longer than a stripe lies in several zones anyway.
            let stripe = u64::from(self.zone_map.stripe_chunks()) * CHUNK_PAGES;
            let first = self.find_pages(pages, zone, is_near && pages.count <= stripe)?;
            self.take_pages(first, pages.count);
            return Some(first * PAGE_BYTES);
        }
        let class = Class::of(bytes);
        let zones = (zone..self.zones.len()).chain(0..zone);
        let mut zones = zones.take(if is_near { 1 } else { self.zones.len() });
        zones
            .find_map(|zone| self.take_block(class, zone).or_else(|| self.begin_chunk(class, zone)))
    }

    /// Reserves a block in the fullest chunks of `zone` that already have `class`, so that others
    /// become empty.
    fn take_block(&mut self, class: Class, zone: usize) -> Option<u64> {
        let lists = self.zones[zone].roomy(class);
        let index = *lists.iter().rev().find_map(|list| list.last())?;
        self.change(index, |chunk| chunk.take(class)).map(|block| block_offset(index, block, class))
    }

    /// Gives a free chunk of `zone` the class and reserves its first block.
    fn begin_chunk(&mut self, class: Class, zone: usize) -> Option<u64> {
        let runs = &mut self.zones[zone].runs;
        let index = runs.lowest_chunk()?;
        runs.take(u64::from(index) * CHUNK_PAGES, CHUNK_PAGES);
        self.counts.small[class.index()].0 += 1;
        let begin = |chunk: &mut Chunk| {
            *chunk = Chunk::of(class);
            chunk.take(class)
        };
        self.change(index, begin).map(|block| block_offset(index, block, class))
    }

    /// Changes a chunk that has a class, and keeps counts and lists as they must be.
    fn change<T>(&mut self, index: u32, change: impl FnOnce(&mut Chunk) -> T) -> T {
        let chunk = &mut self.chunks[index as usize];
        let (old_list, place) = (chunk.list(), chunk.place);
        let old_used = chunk.used;
        self.counts.sparse_bytes -= chunk.sparse_bytes();
        let result = change(chunk);
        self.counts.sparse_bytes += chunk.sparse_bytes();
        let new_list = chunk.list();
        if let Use::Small(class) = chunk.usage {
            let blocks = &mut self.counts.small[class.index()].1;
            *blocks = *blocks + u64::from(chunk.used) - u64::from(old_used);
        }
        if old_list != new_list {
            let zone = &mut self.zones[self.zone_map.zone_of(index)];
            if let Some((class, fill)) = old_list {
                let list = &mut zone.roomy(class)[fill];
                list.swap_remove(place as usize);
                if let Some(&moved) = list.get(place as usize) {
                    self.chunks[moved as usize].place = place;
                }
            }
            if let Some((class, fill)) = new_list {
                let list = &mut zone.roomy(class)[fill];
                self.chunks[index as usize].place = list.len() as u32;
                list.push(index);
            }
        }
        result
    }

    /// Returns the first of free pages of `zone`, which lie in one stripe. If there are none and
    /// the block need not be near, returns the lowest of the whole heap.
    fn find_pages(
        &self,
        Pages { count, alignment }: Pages,
        zone: usize,
        is_near: bool,
    ) -> Option<u64> {
        let own = self.zones[zone].runs.best_fit(count, alignment);
        if own.is_some() || is_near || self.zones.len() == 1 {
            return own;
        }
        lowest_fit(self.zones.iter().map(|zone| &zone.runs), count, alignment)
    }

    /// Calls `visit` with the zone of each part of a run of pages that lies in one stripe.
    fn by_zone(&mut self, first: u64, count: u64, visit: impl Fn(&mut Zone, u64, u64)) {
        let (mut first, end) = (first, first + count);
        while first < end {
            let index = (first / CHUNK_PAGES) as u32;
            let stripe_end = match self.zone_map.stripe_end(index) {
                Some(chunk) => u64::from(chunk) * CHUNK_PAGES,
                None => end,
            };
            let part = end.min(stripe_end) - first;
            visit(&mut self.zones[self.zone_map.zone_of(index)], first, part);
            first += part;
        }
    }

    fn give_back(&mut self, first: u64, count: u64) {
        self.by_zone(first, count, |zone, first, count| zone.runs.insert(first, count));
    }

    /// Reserves a block of free pages.
    fn take_pages(&mut self, first: u64, count: u64) {
        self.by_zone(first, count, |zone, first, count| zone.runs.take(first, count));
        self.mark_pages(first, count);
        self.counts.large_blocks += 1;
        self.counts.large_pages += count;
    }

    fn mark_pages(&mut self, first: u64, count: u64) {
        for (index, pages) in pages_by_chunk(first, count) {
            let begins =
                if index as u64 == first / CHUNK_PAGES { pages & pages.wrapping_neg() } else { 0 };
            self.chunks[index].take_pages(pages, begins);
        }
    }

    fn release_pages(&mut self, first: u64, count: u64) {
        for (index, pages) in pages_by_chunk(first, count) {
            self.chunks[index].free_pages(pages);
        }
        self.give_back(first, count);
        self.counts.large_blocks -= 1;
        self.counts.large_pages -= count;
    }

    /// Returns `true` if a block of exactly `count` pages begins at page `first`.
    fn is_block_of_pages(&self, first: u64, count: u64) -> bool {
        let end = first.saturating_add(count);
        let all = self.chunks.len() as u64 * CHUNK_PAGES;
        let page = |at: u64| {
            let (used, begins) = self.chunks[(at / CHUNK_PAGES) as usize].pages();
            (used >> (at % CHUNK_PAGES) & 1 != 0, begins >> (at % CHUNK_PAGES) & 1 != 0)
        };
        count > 0
            && end <= all
            && page(first).1
            && (end == all || page(end) != (true, false))
            && pages_by_chunk(first, count).all(|(index, pages)| {
                let (used, begins) = self.chunks[index].pages();
                let is_first = index as u64 == first / CHUNK_PAGES;
                let expected = if is_first { pages & pages.wrapping_neg() } else { 0 };
                used & pages == pages && begins & pages == expected
            })
    }

    /// Frees a block that was reserved for `bytes`.
    ///
    /// # Panics
    /// No block of that size is in use there: the caller has freed it twice, or never reserved it.
    pub(crate) fn release(&mut self, offset: u64, bytes: u64) {
        let released = self.try_release(offset, bytes);
        assert!(
            released,
            "no block of {bytes} bytes is in use at {offset:#x}: freed twice, or at another size"
        );
    }

    /// Frees a block that was reserved for `bytes`, or returns `false` if no block of that size is
    /// in use there. Then nothing has changed.
    pub(crate) fn try_release(&mut self, offset: u64, bytes: u64) -> bool {
        if !self.is_in_use(offset, bytes) {
            return false;
        }
        if bytes > SMALL_MAX_BYTES {
            self.release_pages(offset / PAGE_BYTES, Pages::of(bytes).count);
            return true;
        }
        let index = (offset / CHUNK_BYTES) as u32;
        let class = Class::of(bytes);
        let Some(block) = class.block_at(offset % CHUNK_BYTES) else { return false };
        self.change(index, |chunk| chunk.clear(block));
        if self.chunks[index as usize].used == 0 {
            self.counts.small[class.index()].0 -= 1;
            self.chunks[index as usize] = Chunk::FREE;
            self.give_back(u64::from(index) * CHUNK_PAGES, CHUNK_PAGES);
        }
        true
    }

    /// Returns `true` if a block of the size that `bytes` takes is in use at `offset`.
    pub(crate) fn is_in_use(&self, offset: u64, bytes: u64) -> bool {
        if bytes > SMALL_MAX_BYTES {
            let first = offset / PAGE_BYTES;
            return offset.is_multiple_of(PAGE_BYTES)
                && self.for_free_map.is_none_or(|(at, _)| at != first)
                && self.is_block_of_pages(first, Pages::of(bytes).count);
        }
        let class = Class::of(bytes);
        let chunk = self.chunks.get((offset / CHUNK_BYTES) as usize);
        let block = class.block_at(offset % CHUNK_BYTES);
        chunk
            .filter(|chunk| chunk.usage == Use::Small(class))
            .is_some_and(|chunk| block.is_some_and(|block| chunk.holds(block)))
    }

    /// Returns `true` if a block of the size that `bytes` takes is in use at `offset` and not
    /// retired.
    pub(crate) fn is_block(&self, offset: u64, bytes: u64) -> bool {
        self.is_in_use(offset, bytes) && !self.retired.offsets.contains(&offset)
    }

    /// Records a block that was unlinked before `epoch` but that readers may still hold. Returns
    /// `true` if it is time to free some.
    pub(crate) fn retire(&mut self, offset: u64, bytes: u64, epoch: u64) -> bool {
        let retired = &mut self.retired;
        assert!(retired.offsets.insert(offset), "a block is retired once until it is freed");
        retired.queue.push_back(RetiredBlock { epoch, offset, bytes });
        let bytes = reserved_bytes(bytes);
        retired.bytes += bytes;
        retired.count += 1;
        retired.since.0 += 1;
        retired.since.1 += bytes;
        retired.since.0 >= COLLECT_BLOCKS || retired.since.1 >= COLLECT_BYTES
    }

    /// Frees some of the blocks that were retired before the epoch `oldest`, in which the oldest
    /// reader is pinned. Returns the number of blocks that it freed.
    pub(crate) fn release_retired(&mut self, oldest: u64) -> usize {
        let (_, since) = core::mem::take(&mut self.retired.since);
        let bytes_max = COLLECT_BYTES.max(2 * since);
        let (mut blocks, mut bytes) = (0, 0);
        while blocks < FREED_BLOCKS_MAX
            && bytes < bytes_max
            && let Some(block) = self.retired.queue.front().filter(|block| block.epoch < oldest)
        {
            blocks += 1;
            bytes += reserved_bytes(block.bytes);
            self.release_oldest();
        }
        blocks
    }

    /// Frees the block that waits longest.
    fn release_oldest(&mut self) {
        if let Some(RetiredBlock { offset, bytes, .. }) = self.retired.queue.pop_front() {
            self.retired.offsets.remove(&offset);
            self.retired.bytes -= reserved_bytes(bytes);
            self.release(offset, bytes);
        }
    }

    /// Returns the number of retirements so far.
    pub(crate) fn retirements(&self) -> u64 {
        self.retired.count
    }

    /// Frees the blocks of the first `retirements` retirements and returns them, each with its size
    /// in bytes. The caller must know that no reader holds one.
    pub(crate) fn drain_until(&mut self, retirements: u64) -> Vec<(u64, u64)> {
        let mut freed = Vec::new();
        while let Some(&RetiredBlock { offset, bytes, .. }) = self.retired.queue.front()
            && self.retired.count - (self.retired.queue.len() as u64) < retirements
        {
            self.release_oldest();
            freed.push((offset, bytes));
        }
        freed
    }

    /// Frees all retired blocks. The caller must know that no reader holds one.
    pub(crate) fn drain(&mut self) {
        while !self.retired.queue.is_empty() {
            self.release_oldest();
        }
        self.retired = Retired { count: self.retired.count, ..Retired::default() };
    }

    /// Marks a block of `bytes` as in use, because a root reaches it. Only during recovery. The
    /// free pages and the lists follow in [`Self::finish_marking`].
    ///
    /// # Errors
    /// The block overlaps another, or no heap could have reserved it: the pool is damaged.
    pub(crate) fn mark(&mut self, offset: u64, bytes: u64) -> Result<(), Corrupt> {
        let corrupt = |what, expected, found| Corrupt { at: offset, what, expected, found };
        let pool_bytes = self.pool_bytes();
        if offset >= pool_bytes || bytes > pool_bytes - offset {
            return Err(corrupt("block past the end of the pool", pool_bytes, offset));
        }
        if bytes > SMALL_MAX_BYTES {
            let (first, count) = (offset / PAGE_BYTES, Pages::of(bytes).count);
            let overlaps = pages_by_chunk(first, count).any(|(index, pages)| {
                let chunk = &self.chunks[index];
                matches!(chunk.usage, Use::Small(_)) || chunk.pages().0 & pages != 0
            });
            if !offset.is_multiple_of(PAGE_BYTES) || overlaps {
                return Err(corrupt("large block overlaps another", 0, bytes));
            }
            self.mark_pages(first, count);
            return Ok(());
        }
        let class = Class::of(bytes);
        let within = offset % CHUNK_BYTES;
        let chunk = &mut self.chunks[(offset / CHUNK_BYTES) as usize];
        let has_class = matches!(chunk.usage, Use::Free) || chunk.usage == Use::Small(class);
        let Some(block) = class.block_at(within).filter(|_| has_class) else {
            return Err(corrupt("block does not fit its chunk", class.bytes(), within));
        };
        chunk.usage = Use::Small(class);
        if !chunk.set(block) {
            return Err(corrupt("block is reached twice", 1, 2));
        }
        Ok(())
    }

    /// Prefetches what [`mark`](Self::mark) of a block at `offset` will read.
    pub(crate) fn prefetch(&self, offset: u64) {
        if let Some(chunk) = self.chunks.get((offset / CHUNK_BYTES) as usize) {
            let at = core::ptr::from_ref(chunk).addr();
            sys::prefetch(at);
            sys::prefetch(at + size_of::<Chunk>() - 1);
        }
    }

    /// Finds the free pages, and lists the chunks that have space. Call it after the last mark.
    pub(crate) fn finish_marking(&mut self) {
        self.zones = (0..self.zone_map.zones()).map(|_| Zone::new()).collect();
        self.counts = Counts::default();
        let mut free = (0, 0);
        let mut index = 0;
        while index < self.chunks.len() {
            let first = index as u64 * CHUNK_PAGES;
            let untouched = self.chunks.untouched_from(index);
            if untouched > 0 {
                if free.1 == 0 {
                    free.0 = first;
                }
                free.1 += untouched as u64 * CHUNK_PAGES;
                index += untouched;
                continue;
            }
            let chunk = &mut self.chunks[index];
            let taken = match chunk.usage {
                Use::Small(_) => (1 << CHUNK_PAGES) - 1,
                Use::Free | Use::Pages => chunk.pages().0,
            };
            if let Use::Small(class) = chunk.usage {
                let used = core::mem::take(&mut chunk.used);
                self.counts.small[class.index()].0 += 1;
                self.change(index as u32, |chunk| chunk.used = used);
            } else {
                let (used, begins) = chunk.pages();
                self.counts.large_blocks += u64::from(begins.count_ones());
                self.counts.large_pages += u64::from(used.count_ones());
            }
            // The runs of zeros in `taken`.
            let mut at = 0;
            while at < CHUNK_PAGES {
                let used = u64::from((taken >> at).trailing_ones());
                if used > 0 {
                    self.give_back(free.0, free.1);
                    free = (first + at + used, 0);
                    at += used;
                    continue;
                }
                let length = u64::from((taken >> at).trailing_zeros()).min(CHUNK_PAGES - at);
                if free.1 == 0 {
                    free.0 = first + at;
                }
                free.1 += length;
                at += length;
            }
            index += 1;
        }
        self.give_back(free.0, free.1);
    }

    /// Returns `true` if `offset` lies in a block that is in use.
    pub(crate) fn holds(&self, offset: u64) -> bool {
        match self.chunks.get((offset / CHUNK_BYTES) as usize) {
            Some(chunk) => match chunk.usage {
                Use::Free => false,
                Use::Small(class) => {
                    let block = (offset % CHUNK_BYTES / class.bytes()) as u16;
                    block < class.capacity() && chunk.holds(block)
                }
                Use::Pages => chunk.pages().0 >> (offset % CHUNK_BYTES / PAGE_BYTES) & 1 != 0,
            },
            None => false,
        }
    }

    /// Returns the size of all chunks, in bytes.
    pub(crate) fn pool_bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK_BYTES
    }

    /// Returns the free space of the zone that has least of it, times the number of zones, in
    /// bytes: the free chunks of a heap of one zone. If blocks can
    /// [move together](Self::can_compact), what that frees counts too.
    pub(crate) fn scarcest_zone_bytes(&self) -> u64 {
        let least = self.zones.iter().map(|zone| zone.runs.chunks()).min().unwrap_or(0);
        let compactable = if self.can_compact() { self.counts.sparse_bytes } else { 0 };
        least * self.zones.len() as u64 * CHUNK_BYTES + compactable
    }

    /// Returns the size of the free chunks at the end of the pool, in bytes, which growth makes
    /// longer; 0 for a heap of several zones.
    pub(crate) fn free_end_bytes(&self) -> u64 {
        let [zone] = &self.zones[..] else { return 0 };
        zone.runs.chunks_before(self.chunks.len() as u64 * CHUNK_PAGES) * CHUNK_BYTES
    }

    /// Returns the number of retired blocks that readers may still hold.
    pub(crate) fn waiting_blocks(&self) -> usize {
        self.retired.queue.len()
    }

    fn free_chunks(&self) -> u64 {
        self.zones.iter().map(|zone| zone.runs.chunks()).sum()
    }
}

fn block_offset(index: u32, block: u16, class: Class) -> u64 {
    u64::from(index) * CHUNK_BYTES + u64::from(block) * class.bytes()
}

/// Returns the size of a block that is reserved for `bytes`, in bytes.
pub(crate) fn reserved_bytes(bytes: u64) -> u64 {
    if bytes > SMALL_MAX_BYTES {
        bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX)
    } else {
        Class::of(bytes).bytes()
    }
}

#[cfg(test)]
mod tests;
