//! The amounts of used and free space in a heap, and in each of its zones.

use super::{CHUNK_BYTES, Class, Heap, PAGE_BYTES, Use, pages_by_chunk};
use crate::alloc::{ClassUsage, NodeUsage, Usage};

impl Heap {
    /// Returns the usage of the whole heap, from counters: in a time that does not depend on the
    /// size of the pool.
    pub(crate) fn usage(&self) -> Usage {
        let kept = self.kept_bytes();
        let large_bytes = self.counts.large_pages * PAGE_BYTES - kept;
        let free_pages: u64 = self.zones.iter().map(|zone| zone.runs.pages()).sum();
        let free_bytes = self.free_chunks() * CHUNK_BYTES;
        let mut usage = Usage {
            used_bytes: large_bytes,
            blocks: self.counts.large_blocks - u64::from(kept > 0),
            waiting_blocks: self.waiting_blocks() as u64,
            waiting_bytes: self.retired.bytes,
            free_bytes,
            free_page_bytes: free_pages * PAGE_BYTES - free_bytes,
            kept_bytes: kept,
            pool_bytes: self.pool_bytes(),
            ..Usage::default()
        };
        for class in Class::all() {
            let (chunks, blocks) = self.counts.small[class.index()];
            let of_class = class.usage(chunks, blocks);
            usage.blocks += blocks;
            usage.used_bytes += blocks * class.bytes();
            usage.partial_bytes += of_class.free_bytes;
            usage.rest_bytes += chunks * CHUNK_BYTES - blocks * class.bytes() - of_class.free_bytes;
        }
        usage
    }

    /// Returns the usage of the chunks of each block size that has any, the smallest size first.
    pub(crate) fn usage_of_classes(&self) -> Vec<ClassUsage> {
        let of_class = |class: Class| {
            let (chunks, blocks) = self.counts.small[class.index()];
            (chunks > 0).then(|| class.usage(chunks, blocks))
        };
        Class::all().filter_map(of_class).collect()
    }

    /// Returns the usage of each zone, for the node at the same index of `nodes`. A block that lies
    /// in several zones counts in each with its pages there.
    pub(crate) fn usage_of(&self, nodes: &[u16]) -> Vec<NodeUsage> {
        debug_assert_eq!(nodes.len(), self.zones.len());
        let nothing = |&node| NodeUsage { node, ..NodeUsage::default() };
        let mut usages: Vec<_> = nodes.iter().map(nothing).collect();
        for (index, chunk) in (0..).zip(self.chunks.iter()) {
            let usage = &mut usages[self.zone_map.zone_of(index)];
            usage.pool_bytes += CHUNK_BYTES;
            match chunk.usage {
                Use::Small(class) => usage.used_bytes += u64::from(chunk.used) * class.bytes(),
                Use::Pages => usage.used_bytes += u64::from(chunk.used) * PAGE_BYTES,
                Use::Free => usage.free_bytes += CHUNK_BYTES,
            }
        }
        let (first, count) = self.for_free_map.unwrap_or_default();
        for (index, pages) in pages_by_chunk(first, count) {
            let kept = u64::from(pages.count_ones()) * PAGE_BYTES;
            usages[self.zone_map.zone_of(index as u32)].used_bytes -= kept;
        }
        usages
    }
}
