//! The allocator proper: chunks, the lists of those with room, and blocks that wait for readers.

use super::Usage;
use super::chunk::{CHUNK_BYTES, CLASSES, Chunk, Class, SMALL_MAX_BYTES, Use};
use crate::pool::Corrupt;
use std::collections::{BTreeMap, BTreeSet};

/// All chunks of a pool. The pool guards it with one mutex: it is held for some tens of
/// nanoseconds, and an insert reserves a block only when a node splits.
#[derive(Debug)]
pub(crate) struct Heap {
    chunks: Vec<Chunk>,
    free: BTreeSet<u32>,
    /// Chunks of each class that may have room. An entry may be out of date: it is checked on use.
    roomy: [Vec<u32>; CLASSES],
    /// Blocks that were retired and wait until no reader can hold them.
    waiting: BTreeMap<u64, u64>,
}

impl Heap {
    /// A heap over `pool_bytes`, of which the first `header_chunks` chunks are the pool's own.
    pub(crate) fn new(pool_bytes: u64, header_chunks: u32) -> Self {
        let mut heap = Self {
            chunks: Vec::new(),
            free: BTreeSet::new(),
            roomy: [const { Vec::new() }; CLASSES],
            waiting: BTreeMap::new(),
        };
        heap.extend(pool_bytes);
        heap.take_run(0, header_chunks);
        heap
    }

    /// Adds the chunks that a pool of `pool_bytes` has beyond those known.
    pub(crate) fn extend(&mut self, pool_bytes: u64) {
        let count = (pool_bytes / CHUNK_BYTES) as u32;
        for index in self.chunks.len() as u32..count {
            self.chunks.push(Chunk::FREE);
            self.free.insert(index);
        }
    }

    /// A block of at least `bytes`, or `None` if the heap has to be extended first.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Option<u64> {
        if bytes > SMALL_MAX_BYTES {
            return self.reserve_large(u32::try_from(bytes.div_ceil(CHUNK_BYTES)).ok()?);
        }
        let class = Class::of(bytes);
        while let Some(&index) = self.roomy[class.index()].last() {
            let chunk = &mut self.chunks[index as usize];
            if chunk.usage == Use::Small(class)
                && let Some(block) = chunk.take(class)
            {
                return Some(u64::from(index) * CHUNK_BYTES + u64::from(block) * class.bytes());
            }
            chunk.listed &= chunk.usage != Use::Small(class);
            self.roomy[class.index()].pop();
        }
        let index = self.take_free_chunk()?;
        self.chunks[index as usize] = Chunk::of(class);
        self.roomy[class.index()].push(index);
        self.chunks[index as usize].take(class).map(|_| u64::from(index) * CHUNK_BYTES)
    }

    fn take_free_chunk(&mut self) -> Option<u32> {
        self.free.pop_first().or_else(|| {
            self.reclaim_empty();
            self.free.pop_first()
        })
    }

    fn reserve_large(&mut self, count: u32) -> Option<u64> {
        let first = self.find_run(count).or_else(|| {
            self.reclaim_empty();
            self.find_run(count)
        })?;
        self.take_run(first, count);
        Some(u64::from(first) * CHUNK_BYTES)
    }

    /// The lowest run of `count` free chunks.
    fn find_run(&self, count: u32) -> Option<u32> {
        let (mut start, mut length) = (0, 0);
        for &index in &self.free {
            if length > 0 && index == start + length {
                length += 1;
            } else {
                (start, length) = (index, 1);
            }
            if length == count {
                return Some(start);
            }
        }
        None
    }

    fn take_run(&mut self, first: u32, count: u32) {
        for index in first..first + count {
            self.free.remove(&index);
            self.chunks[index as usize].usage = Use::Tail;
        }
        self.chunks[first as usize].usage = Use::Large(count);
    }

    /// Gives chunks whose blocks are all free back for any use.
    fn reclaim_empty(&mut self) {
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            if matches!(chunk.usage, Use::Small(_)) && chunk.used == 0 {
                *chunk = Chunk::FREE;
                self.free.insert(index as u32);
            }
        }
        let chunks = &self.chunks;
        for (class, list) in self.roomy.iter_mut().enumerate() {
            list.retain(|&index| {
                matches!(chunks[index as usize].usage, Use::Small(c) if c.index() == class)
            });
        }
    }

    /// Frees a block that was reserved for `bytes`.
    ///
    /// # Panics
    /// The block is not in use at that size: the caller freed it twice, or never had it.
    pub(crate) fn release(&mut self, offset: u64, bytes: u64) {
        let released = self.try_release(offset, bytes);
        assert!(released, "block {offset:#x} is freed once, at the size it was reserved for");
    }

    /// Frees a block that was reserved for `bytes`; false, and nothing has changed, if there is none.
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
                    self.free.insert(tail as u32);
                }
                true
            }
            Use::Small(class) if bytes <= SMALL_MAX_BYTES && class == Class::of(bytes) => {
                if !class.block_at(within).is_some_and(|block| chunk.clear(block)) {
                    return false;
                }
                if !chunk.listed {
                    chunk.listed = true;
                    self.roomy[class.index()].push(index as u32);
                }
                true
            }
            _ => false,
        }
    }

    /// Whether a block of the size that `bytes` takes is in use at `offset`, and not retired.
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
        in_use && !self.waiting.contains_key(&offset)
    }

    /// Notes a block that is unlinked but that readers may still hold.
    pub(crate) fn retire(&mut self, offset: u64, bytes: u64) {
        let again = self.waiting.insert(offset, bytes);
        assert!(again.is_none(), "a block is retired once");
    }

    /// Frees a retired block; nothing if [`Self::drain`] came first.
    pub(crate) fn release_retired(&mut self, offset: u64) {
        if let Some(bytes) = self.waiting.remove(&offset) {
            self.release(offset, bytes);
        }
    }

    /// Frees all retired blocks: the caller knows that no reader is left.
    pub(crate) fn drain(&mut self) {
        for (offset, bytes) in core::mem::take(&mut self.waiting) {
            self.release(offset, bytes);
        }
    }

    /// Marks a block of `bytes` as reached, while recovering.
    ///
    /// # Errors
    /// It overlaps another block, or could never have been reserved: the pool is damaged.
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
            let taken = (index..index + run).find(|i| !self.free.contains(i));
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
            self.free.remove(&(index as u32));
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

    /// After the last mark: lists the chunks that have room.
    pub(crate) fn finish_marking(&mut self) {
        for (index, chunk) in self.chunks.iter_mut().enumerate() {
            if let Use::Small(class) = chunk.usage
                && chunk.used < class.capacity()
            {
                chunk.listed = true;
                self.roomy[class.index()].push(index as u32);
            }
        }
    }

    /// Whether the block at `offset` is in use.
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

    /// Bytes of all chunks.
    pub(crate) fn pool_bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK_BYTES
    }

    /// Blocks that are retired and wait until no reader can hold them.
    pub(crate) fn waiting_blocks(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage {
            pool_bytes: self.pool_bytes(),
            free_bytes: self.free.len() as u64 * CHUNK_BYTES,
            waiting_blocks: self.waiting_blocks() as u64,
            ..Usage::default()
        };
        for chunk in &self.chunks {
            match chunk.usage {
                Use::Small(class) => {
                    usage.blocks += u64::from(chunk.used);
                    usage.used_bytes += u64::from(chunk.used) * class.bytes();
                    usage.free_bytes += if chunk.used == 0 { CHUNK_BYTES } else { 0 };
                }
                Use::Large(count) => {
                    usage.blocks += 1;
                    usage.used_bytes += u64::from(count) * CHUNK_BYTES;
                }
                Use::Free | Use::Tail => {}
            }
        }
        usage
    }

    /// Bytes of the image that [`Self::encode`] makes.
    pub(crate) fn image_bytes(&self) -> u64 {
        self.chunks.len() as u64 * IMAGE_CHUNK_BYTES
    }

    /// The free map, for a clean close.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let words = self.chunks.iter().flat_map(Chunk::encode);
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// The heap that `image` describes, or `None` if the image is nonsense.
    pub(crate) fn decode(image: &[u8], pool_bytes: u64) -> Option<Self> {
        let count = pool_bytes / CHUNK_BYTES;
        if image.len() as u64 != count * IMAGE_CHUNK_BYTES {
            return None;
        }
        let mut heap = Self::new(pool_bytes, 0);
        for (index, bytes) in image.chunks_exact(IMAGE_CHUNK_BYTES as usize).enumerate() {
            let mut words = [0; 9];
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().ok()?);
            }
            heap.chunks[index] = Chunk::decode(&words)?;
            if heap.chunks[index].usage != Use::Free {
                heap.free.remove(&(index as u32));
            }
        }
        let header_is_kept = heap.chunks.first()?.usage == Use::Large(1);
        (header_is_kept && heap.runs_are_whole()).then(|| {
            heap.finish_marking();
            heap
        })
    }

    /// Whether every large block is followed by exactly its tails.
    fn runs_are_whole(&self) -> bool {
        let mut tails_left = 0;
        for chunk in &self.chunks {
            match chunk.usage {
                Use::Tail if tails_left > 0 => tails_left -= 1,
                Use::Tail => return false,
                _ if tails_left > 0 => return false,
                Use::Large(0) => return false,
                Use::Large(count) => tails_left = count - 1,
                Use::Free | Use::Small(_) => {}
            }
        }
        tails_left == 0
    }
}

/// Bytes that a block reserved for `bytes` takes.
pub(crate) fn reserved_bytes(bytes: u64) -> u64 {
    if bytes > SMALL_MAX_BYTES {
        bytes.next_multiple_of(CHUNK_BYTES)
    } else {
        Class::of(bytes).bytes()
    }
}

const IMAGE_CHUNK_BYTES: u64 = 72;

#[cfg(test)]
mod tests;
