//! The chunks of a heap. The state of a chunk gets memory when it is first changed. So the cost of
//! an open goes by what a pool uses, not by the size that its superblock claims.

use super::chunk::Chunk;
use core::ops::{Index, IndexMut};

/// The number of chunks whose states get memory together: a few KiB, so that the open of a small
/// pool writes little.
const SEGMENT_CHUNKS: usize = 64;

/// The state of a chunk that was never changed.
static FREE: Chunk = Chunk::FREE;

/// The states of all chunks, by index.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    segments: Vec<Option<Box<[Chunk]>>>,
    count: usize,
}

impl Chunks {
    /// Returns the number of chunks.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds free chunks until there are `count`.
    pub(super) fn extend_to(&mut self, count: usize) {
        self.segments.resize_with(count.div_ceil(SEGMENT_CHUNKS), || None);
        self.count = count;
    }

    /// Returns the chunk at `index`, if there is one.
    pub(super) fn get(&self, index: usize) -> Option<&Chunk> {
        (index < self.count).then(|| &self[index])
    }

    /// Returns all chunks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Chunk> {
        (0..self.count).map(|index| &self[index])
    }

    /// Returns the number of chunks from `index` on that were never changed, up to the end of their
    /// segment; 0 if the one at `index` was changed.
    pub(super) fn untouched_from(&self, index: usize) -> usize {
        let segment = index / SEGMENT_CHUNKS;
        match self.segments[segment] {
            Some(_) => 0,
            None => ((segment + 1) * SEGMENT_CHUNKS).min(self.count) - index,
        }
    }
}

impl Index<usize> for Chunks {
    type Output = Chunk;

    #[inline]
    fn index(&self, index: usize) -> &Chunk {
        assert!(index < self.count, "the heap has no chunk {index}");
        match &self.segments[index / SEGMENT_CHUNKS] {
            Some(segment) => &segment[index % SEGMENT_CHUNKS],
            None => &FREE,
        }
    }
}

impl IndexMut<usize> for Chunks {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Chunk {
        assert!(index < self.count, "the heap has no chunk {index}");
        let segment = &mut self.segments[index / SEGMENT_CHUNKS];
        let segment = segment.get_or_insert_with(|| vec![Chunk::FREE; SEGMENT_CHUNKS].into());
        &mut segment[index % SEGMENT_CHUNKS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_memory_once_it_was_changed() {
        let mut chunks = Chunks::default();
        chunks.extend_to(3 * SEGMENT_CHUNKS + 5);
        assert_eq!(chunks.iter().filter(|chunk| chunk.used == 0).count(), 3 * SEGMENT_CHUNKS + 5);
        chunks[SEGMENT_CHUNKS + 7].used = 9;
        assert_eq!(chunks.untouched_from(3), SEGMENT_CHUNKS - 3);
        assert_eq!(chunks.untouched_from(SEGMENT_CHUNKS), 0);
        assert_eq!(chunks.untouched_from(3 * SEGMENT_CHUNKS + 1), 4);
        chunks.extend_to(5 * SEGMENT_CHUNKS);
        assert_eq!(chunks[SEGMENT_CHUNKS + 7].used, 9);
        assert_eq!(chunks.iter().filter(|chunk| chunk.used != 0).count(), 1);
        assert_eq!(chunks.segments.iter().flatten().count(), 1);
        assert!(chunks.get(5 * SEGMENT_CHUNKS).is_none() && chunks.len() == 5 * SEGMENT_CHUNKS);
    }
}
