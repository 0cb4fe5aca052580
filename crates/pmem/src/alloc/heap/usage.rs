//! The amounts of used and free space in a heap, and in each of its zones.

use super::{CHUNK_BYTES, Heap, Use};
use crate::alloc::{NodeUsage, Usage};

impl Heap {
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage {
            pool_bytes: self.pool_bytes(),
            free_bytes: self.zones.iter().map(|zone| zone.free.len() as u64 * CHUNK_BYTES).sum(),
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

    /// Returns the usage of each zone, for the node at the same index of `nodes`. A block that lies
    /// in several zones counts in each with its chunks there.
    pub(crate) fn usage_of(&self, nodes: &[u16]) -> Vec<NodeUsage> {
        debug_assert_eq!(nodes.len(), self.zones.len());
        let nothing = |&node| NodeUsage { node, ..NodeUsage::default() };
        let mut usages: Vec<_> = nodes.iter().map(nothing).collect();
        for (index, chunk) in (0..).zip(&self.chunks) {
            let usage = &mut usages[self.zone_map.zone_of(index)];
            usage.pool_bytes += CHUNK_BYTES;
            match chunk.usage {
                Use::Small(class) => {
                    usage.used_bytes += u64::from(chunk.used) * class.bytes();
                    usage.free_bytes += if chunk.used == 0 { CHUNK_BYTES } else { 0 };
                }
                Use::Large(_) | Use::Tail => usage.used_bytes += CHUNK_BYTES,
                Use::Free => usage.free_bytes += CHUNK_BYTES,
            }
        }
        usages
    }
}
