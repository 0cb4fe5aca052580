//! The heap: the chunks of a pool, the lists of those with space, and blocks that wait for readers.

use super::chunk::{Chunk, Class, SMALL_MAX_BYTES, Use};
use super::zone::{Zone, ZoneMap, free_of_all, lowest_run};
use crate::error::Corrupt;
use crate::layout::CHUNK_BYTES;
use std::collections::{BTreeSet, VecDeque};

mod free_map;
mod usage;

/// The chunks of a pool. The pool guards them with one mutex. A thread holds it for some tens of
/// nanoseconds, and an insert reserves a block only when a node splits.
#[derive(Debug)]
pub(crate) struct Heap {
    chunks: Vec<Chunk>,
    zone_map: ZoneMap,
    zones: Vec<Zone>,
    /// `true` if a zone without space waits for growth, `false` if it uses the space of other
    /// zones.
    prefers_growth: bool,
    retired: Retired,
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

/// The zones from which a block may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The caller's zone. Other zones only if growth is not [preferred](Heap::prefers_growth), or
    /// if the block is longer than a stripe.
    Near,
    /// The caller's zone if it has space, else any other.
    Far,
}

impl Heap {
    /// Returns the heap of a pool of `pool_bytes`, whose first `header_chunks` chunks are the
    /// header.
    pub(crate) fn new(pool_bytes: u64, header_chunks: u32, zone_map: ZoneMap) -> Self {
        let mut heap = Self {
            chunks: Vec::new(),
            zone_map,
            zones: (0..zone_map.zones()).map(|_| Zone::new()).collect(),
            prefers_growth: true,
            retired: Retired::default(),
        };
        heap.extend(pool_bytes);
        heap.take_run(0, header_chunks);
        heap
    }

    /// Adds the chunks by which a pool of `pool_bytes` is larger than the heap.
    pub(crate) fn extend(&mut self, pool_bytes: u64) {
        let count = (pool_bytes / CHUNK_BYTES) as u32;
        for index in self.chunks.len() as u32..count {
            self.chunks.push(Chunk::FREE);
            self.give_back(index);
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

    /// Reserves a block of at least `bytes`, from `zone` if it has space. Returns the offset, or
    /// `None` if the heap must be extended first.
    pub(crate) fn reserve(&mut self, bytes: u64, zone: usize, reach: Reach) -> Option<u64> {
        let is_near = self.prefers_growth && reach == Reach::Near;
        if bytes > SMALL_MAX_BYTES {
            let count = u32::try_from(bytes.div_ceil(CHUNK_BYTES)).ok()?;
            // A block that is longer than a stripe lies in several zones anyway.
            return self.reserve_large(
                count,
                zone,
                is_near && count <= self.zone_map.stripe_chunks(),
            );
        }
        let class = Class::of(bytes);
        let zones = (zone..self.zones.len()).chain(0..zone);
        let zones = zones.take(if is_near { 1 } else { self.zones.len() });
        let block = zones.clone().find_map(|zone| {
            self.take_block(class, zone).or_else(|| self.begin_chunk(class, zone))
        });
        block.or_else(|| {
            self.reclaim_empty();
            zones.into_iter().find_map(|zone| self.begin_chunk(class, zone))
        })
    }

    /// Reserves a block in a chunk of `zone` that already has `class`.
    fn take_block(&mut self, class: Class, zone: usize) -> Option<u64> {
        let roomy = self.zones[zone].roomy(class);
        while let Some(&index) = roomy.last() {
            let chunk = &mut self.chunks[index as usize];
            if chunk.usage == Use::Small(class)
                && let Some(block) = chunk.take(class)
            {
                return Some(u64::from(index) * CHUNK_BYTES + u64::from(block) * class.bytes());
            }
            chunk.listed &= chunk.usage != Use::Small(class);
            roomy.pop();
        }
        None
    }

    /// Gives a free chunk of `zone` the class and reserves its first block.
    fn begin_chunk(&mut self, class: Class, zone: usize) -> Option<u64> {
        let zone = &mut self.zones[zone];
        let index = zone.free.pop_first()?;
        zone.roomy(class).push(index);
        let chunk = &mut self.chunks[index as usize];
        *chunk = Chunk::of(class);
        chunk.take(class).map(|_| u64::from(index) * CHUNK_BYTES)
    }

    fn reserve_large(&mut self, count: u32, zone: usize, is_near: bool) -> Option<u64> {
        let first = self.find_run(count, zone, is_near).or_else(|| {
            self.reclaim_empty();
            self.find_run(count, zone, is_near)
        })?;
        self.take_run(first, count);
        Some(u64::from(first) * CHUNK_BYTES)
    }

    /// Returns the lowest run of `count` free chunks of `zone`, which lies in one stripe. If there
    /// is none and the block need not be near, returns the lowest run of the whole heap.
    fn find_run(&self, count: u32, zone: usize, is_near: bool) -> Option<u32> {
        let own = || lowest_run(self.zones[zone].free.iter().copied(), count);
        let any = || lowest_run(free_of_all(&self.zones), count);
        own().or_else(|| if is_near { None } else { any() })
    }

    fn free_of(&mut self, index: u32) -> &mut BTreeSet<u32> {
        &mut self.zones[self.zone_map.zone_of(index)].free
    }

    fn give_back(&mut self, index: u32) {
        self.free_of(index).insert(index);
    }

    fn take_run(&mut self, first: u32, count: u32) {
        for index in first..first + count {
            self.free_of(index).remove(&index);
            self.chunks[index as usize].usage = Use::Tail;
        }
        self.chunks[first as usize].usage = Use::Large(count);
    }

    /// Frees every chunk that has a class but no block in use, so that any class can use it.
    fn reclaim_empty(&mut self) {
        for (index, chunk) in (0..).zip(&mut self.chunks) {
            if matches!(chunk.usage, Use::Small(_)) && chunk.used == 0 {
                *chunk = Chunk::FREE;
                self.zones[self.zone_map.zone_of(index)].free.insert(index);
            }
        }
        let chunks = &self.chunks;
        let usage = |index: u32| chunks[index as usize].usage;
        let is_of = |at, class| matches!(usage(at), Use::Small(c) if c.index() == class);
        for zone in &mut self.zones {
            zone.retain_roomy(is_of);
        }
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
        let index = (offset / CHUNK_BYTES) as usize;
        let within = offset % CHUNK_BYTES;
        let Some(chunk) = self.chunks.get_mut(index) else { return false };
        match chunk.usage {
            Use::Large(count) if bytes > SMALL_MAX_BYTES => {
                if within != 0 || bytes.div_ceil(CHUNK_BYTES) != u64::from(count) {
                    return false;
                }
                for tail in index..index + count as usize {
                    self.chunks[tail] = Chunk::FREE;
                    self.give_back(tail as u32);
                }
                true
            }
            Use::Small(class) if bytes <= SMALL_MAX_BYTES && class == Class::of(bytes) => {
                if !class.block_at(within).is_some_and(|block| chunk.clear(block)) {
                    return false;
                }
                if !chunk.listed {
                    chunk.listed = true;
                    let zone = self.zone_map.zone_of(index as u32);
                    self.zones[zone].roomy(class).push(index as u32);
                }
                true
            }
            _ => false,
        }
    }

    /// Returns `true` if a block of the size that `bytes` takes is in use at `offset` and not
    /// retired.
    pub(crate) fn is_block(&self, offset: u64, bytes: u64) -> bool {
        let within = offset % CHUNK_BYTES;
        let Some(chunk) = self.chunks.get((offset / CHUNK_BYTES) as usize) else { return false };
        let in_use = match chunk.usage {
            Use::Small(class) => {
                bytes <= SMALL_MAX_BYTES
                    && class == Class::of(bytes)
                    && class.block_at(within).is_some_and(|block| chunk.holds(block))
            }
            Use::Large(count) => {
                bytes > SMALL_MAX_BYTES
                    && within == 0
                    && bytes.div_ceil(CHUNK_BYTES) == u64::from(count)
            }
            Use::Free | Use::Tail => false,
        };
        in_use && !self.retired.offsets.contains(&offset)
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

    /// Marks a block of `bytes` as in use, because a root reaches it. Only during recovery.
    ///
    /// # Errors
    /// The block overlaps another, or no heap could have reserved it: the pool is damaged.
    pub(crate) fn mark(&mut self, offset: u64, bytes: u64) -> Result<(), Corrupt> {
        let corrupt = |what, expected, found| Corrupt { at: offset, what, expected, found };
        let index = offset / CHUNK_BYTES;
        let run = if bytes > SMALL_MAX_BYTES { bytes.div_ceil(CHUNK_BYTES) } else { 1 };
        let count = self.chunks.len() as u64;
        if run > count || index > count - run {
            return Err(corrupt("block past the end of the pool", count * CHUNK_BYTES, offset));
        }
        if bytes > SMALL_MAX_BYTES {
            let run = run as u32;
            let index = index as u32;
            let taken = (index..index + run).find(|&i| !self.free_of(i).contains(&i));
            if !offset.is_multiple_of(CHUNK_BYTES) || taken.is_some() {
                return Err(corrupt("large block overlaps another", 0, bytes));
            }
            self.take_run(index, run);
            return Ok(());
        }
        let class = Class::of(bytes);
        let within = offset % CHUNK_BYTES;
        let chunk = &mut self.chunks[index as usize];
        if chunk.usage == Use::Free {
            chunk.usage = Use::Small(class);
            self.zones[self.zone_map.zone_of(index as u32)].free.remove(&(index as u32));
        }
        let block = class.block_at(within).filter(|_| chunk.usage == Use::Small(class));
        let Some(block) = block else {
            return Err(corrupt("block does not fit its chunk", class.bytes(), within));
        };
        if !chunk.set(block) {
            return Err(corrupt("block is reached twice", 1, 2));
        }
        Ok(())
    }

    /// Lists the chunks that have space. Call it after the last mark.
    pub(crate) fn finish_marking(&mut self) {
        for (index, chunk) in (0..).zip(&mut self.chunks) {
            if let Use::Small(class) = chunk.usage
                && chunk.used < class.capacity()
            {
                chunk.listed = true;
                self.zones[self.zone_map.zone_of(index)].roomy(class).push(index);
            }
        }
    }

    /// Returns `true` if `offset` lies in a block that is in use.
    pub(crate) fn holds(&self, offset: u64) -> bool {
        match self.chunks.get((offset / CHUNK_BYTES) as usize) {
            Some(chunk) => match chunk.usage {
                Use::Free => false,
                Use::Small(class) => chunk.holds((offset % CHUNK_BYTES / class.bytes()) as u16),
                Use::Large(_) | Use::Tail => true,
            },
            None => false,
        }
    }

    /// Returns the size of all chunks, in bytes.
    pub(crate) fn pool_bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK_BYTES
    }

    /// Returns the free space of the zone that has least of it, times the number of zones, in bytes:
    /// the free chunks of a heap of one zone.
    pub(crate) fn scarcest_zone_bytes(&self) -> u64 {
        let least = self.zones.iter().map(|zone| zone.free.len()).min().unwrap_or(0);
        (least * self.zones.len()) as u64 * CHUNK_BYTES
    }

    /// Returns the number of retired blocks that readers may still hold.
    pub(crate) fn waiting_blocks(&self) -> usize {
        self.retired.queue.len()
    }
}

/// Returns the size of a block that is reserved for `bytes`, in bytes.
pub(crate) fn reserved_bytes(bytes: u64) -> u64 {
    if bytes > SMALL_MAX_BYTES {
        bytes.next_multiple_of(CHUNK_BYTES)
    } else {
        Class::of(bytes).bytes()
    }
}

#[cfg(test)]
mod tests;
