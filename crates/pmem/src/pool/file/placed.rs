//! A pool on several nodes: where a thread is, and what is near.

use super::{Medium, Placement, Pool};
use crate::alloc::{NodeUsage, ZoneMap};
use crate::word::PmPtr;

impl<M: Medium> Pool<M> {
    pub(super) fn zone_map(&self) -> ZoneMap {
        self.placement.as_ref().map_or(ZoneMap::SINGLE, ZoneMap::of)
    }

    /// The zone whose blocks this thread prefers.
    #[inline]
    pub(super) fn current_zone(&self) -> usize {
        self.placement.as_ref().map_or(0, Placement::current_zone)
    }

    /// Which node each stripe of the pool belongs to, if the medium was given that.
    pub fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
    }

    /// Which of `blocks` a thread that keeps blocks of its own takes: the last that is of its node,
    /// else the last. Without a placement that is the last.
    pub fn nearest(&self, blocks: &[PmPtr]) -> Option<usize> {
        let last = blocks.len().checked_sub(1)?;
        let Some(placement) = &self.placement else { return Some(last) };
        let node = placement.nodes()[placement.current_zone()];
        let near = |at: &PmPtr| placement.node_of(at.offset()) == node;
        Some(blocks.iter().rposition(near).unwrap_or(last))
    }

    /// How much of each node's stripes is in use; nothing without a [placement](Self::placement).
    pub fn usage_of_nodes(&self) -> Vec<NodeUsage> {
        let Some(placement) = &self.placement else { return Vec::new() };
        self.heap.lock().usage_of(placement.nodes())
    }
}
