//! The free map that a clean close saves. It does not contain zones, since each open divides the
//! free chunks anew.

use super::{CHUNK_BYTES, Chunk, Heap, Use, ZoneMap};

const SAVED_CHUNK_BYTES: u64 = 72;

impl Heap {
    /// Returns the size of the saved free map, in bytes.
    pub(crate) fn free_map_bytes(&self) -> u64 {
        self.chunks.len() as u64 * SAVED_CHUNK_BYTES
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
            heap.chunks[index] = Chunk::decode(&words)?;
            if heap.chunks[index].usage != Use::Free {
                heap.free_of(index as u32).remove(&(index as u32));
            }
        }
        let header_is_kept = heap.chunks.first()?.usage == Use::Large(1);
        (header_is_kept && heap.runs_are_whole()).then(|| {
            heap.finish_marking();
            heap
        })
    }

    /// Returns `true` if each large block is followed by exactly its tails.
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
