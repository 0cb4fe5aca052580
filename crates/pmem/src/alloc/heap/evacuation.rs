//! Emptying sparse chunks: the owner of the blocks moves them elsewhere, and the chunk comes free
//! for blocks of any size.

use super::{Class, Heap, SPARSE_FILLS, Use, block_offset};

/// The number of chunks of a list among which the emptiest is chosen.
const SAMPLE: usize = 8;

/// A chunk whose blocks their owner moves elsewhere.
#[derive(Debug)]
pub struct Evacuation {
    index: u32,
    /// The size of each block, in bytes.
    pub block_bytes: u64,
    /// The offsets of the blocks in use that are not retired.
    pub blocks: Vec<u64>,
}

impl Heap {
    /// Returns `true` if the blocks of sparse chunks should move elsewhere before the pool grows:
    /// less than a 16th of the pool is free, and moving them would free an eighth of it.
    pub(crate) fn is_sparse(&self) -> bool {
        self.can_compact() && self.free_chunks() < self.chunks.len() as u64 / 16
    }

    /// Returns `true` if moving the blocks of sparse chunks would free an eighth of the pool.
    pub(super) fn can_compact(&self) -> bool {
        let pool_bytes = self.pool_bytes();
        pool_bytes >= Self::SPARSE_POOL_BYTES_MIN && self.counts.sparse_bytes > pool_bytes / 8
    }

    /// The size from which on a pool can be [sparse](Self::is_sparse). A smaller one is cheap to
    /// grow.
    const SPARSE_POOL_BYTES_MIN: u64 = 16 << 20;

    /// Chooses a sparse chunk and keeps new blocks out of it, or returns `None` if the blocks of no
    /// chunk fit into others of their class. [`Self::end_evacuation`] must follow.
    pub(crate) fn begin_evacuation(&mut self) -> Option<Evacuation> {
        let (class, index) = self.sparsest_chunk()?;
        self.change(index, |chunk| chunk.is_left = true);
        let chunk = &self.chunks[index as usize];
        let offsets = chunk.blocks(class).map(|block| block_offset(index, block, class));
        let blocks = offsets.filter(|offset| !self.retired.offsets.contains(offset)).collect();
        Some(Evacuation { index, block_bytes: class.bytes(), blocks })
    }

    fn sparsest_chunk(&mut self) -> Option<(Class, u32)> {
        let chunks = &self.chunks;
        let live_part =
            |&(class, index): &(Class, u32)| u64::from(chunks[index as usize].used) * class.bytes();
        let mut found = Vec::new();
        for zone in &mut self.zones {
            for class in Class::all() {
                let lists = zone.roomy(class);
                // One chunk alone would only move into a free one.
                if lists.iter().map(Vec::len).sum::<usize>() < 2 {
                    continue;
                }
                let sparse = lists[..SPARSE_FILLS].iter().flat_map(|list| list.iter().take(SAMPLE));
                found.extend(sparse.map(|&index| (class, index)));
            }
        }
        found.into_iter().min_by_key(live_part)
    }

    /// Ends the evacuation of a chunk. If blocks are left that are not retired, they cannot move,
    /// and the chunk takes new blocks again. It is tried again once half of its blocks are free.
    pub(crate) fn end_evacuation(&mut self, evacuation: &Evacuation) {
        let index = evacuation.index;
        let chunk = &self.chunks[index as usize];
        let Use::Small(class) = chunk.usage else { return };
        if !chunk.is_left {
            return; // It came free meanwhile, and began again.
        }
        let mut offsets = chunk.blocks(class).map(|block| block_offset(index, block, class));
        let is_stuck = offsets.any(|offset| !self.retired.offsets.contains(&offset));
        drop(offsets);
        if is_stuck {
            self.change(index, |chunk| {
                chunk.is_left = false;
                chunk.immovable_above = chunk.used / 2;
            });
        }
    }
}
