//! A pool on several NUMA nodes: the zone of a thread, and the blocks near it.

use super::{Medium, Placement, Pool};
use crate::alloc::{NodeUsage, ZoneMap};
use crate::word::PmPtr;

impl<M: Medium> Pool<M> {
    pub(super) fn zone_map(&self) -> ZoneMap {
        self.placement.as_ref().map_or(ZoneMap::SINGLE, ZoneMap::of)
    }

    /// Returns the zone from which this thread reserves blocks.
    #[inline]
    pub(super) fn current_zone(&self) -> usize {
        self.placement.as_ref().map_or(0, Placement::current_zone)
    }

    /// Returns the map from stripes to NUMA nodes, or `None` if the medium has none.
    pub fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
    }

    /// Returns the index of the last of `blocks` on the node of this thread, or of the last one if
    /// none is there or the pool has no placement. `None` if `blocks` is empty.
    pub fn nearest(&self, blocks: &[PmPtr]) -> Option<usize> {
        let last = blocks.len().checked_sub(1)?;
        let Some(placement) = &self.placement else { return Some(last) };
        let node = placement.nodes()[placement.current_zone()];
        let near = |at: &PmPtr| placement.node_of(at.offset()) == node;
        Some(blocks.iter().rposition(near).unwrap_or(last))
    }

    /// Returns the usage of each node's stripes; empty without a [placement](Self::placement).
    pub fn usage_of_nodes(&self) -> Vec<NodeUsage> {
        let Some(placement) = &self.placement else { return Vec::new() };
        self.read_heap(|heap| heap.usage_of(placement.nodes()))
    }
}
