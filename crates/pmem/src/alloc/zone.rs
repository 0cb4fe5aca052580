//! A zone: the chunks of a pool that belong to one NUMA node, or all chunks. It knows their
//! free pages and which chunks have space.

use super::chunk::{CLASSES, Class, FILLS};
use super::runs::Runs;
use crate::layout::CHUNK_BYTES;
use crate::numa::Placement;

/// The map from chunks to zones. Chunks lie in stripes, which belong to the zones in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneMap {
    zones: u32,
    stripe_chunks: u32,
}

impl ZoneMap {
    /// The map of a pool without a placement: one zone.
    pub(crate) const SINGLE: Self = Self { zones: 1, stripe_chunks: u32::MAX };

    /// Returns the map for that number of zones, with stripes of `stripe_chunks` chunks.
    pub(crate) fn new(zones: usize, stripe_chunks: u32) -> Self {
        debug_assert!(zones > 0 && stripe_chunks > 0);
        if zones == 1 { Self::SINGLE } else { Self { zones: zones as u32, stripe_chunks } }
    }

    /// Returns the map under `placement`: one zone for each of its nodes, in their order.
    pub(crate) fn of(placement: &Placement) -> Self {
        Self::new(placement.nodes().len(), (placement.stripe_bytes() / CHUNK_BYTES) as u32)
    }

    pub(crate) fn zones(self) -> usize {
        self.zones as usize
    }

    /// Returns the number of chunks in a stripe. No run of chunks of one zone is longer.
    pub(super) fn stripe_chunks(self) -> u32 {
        self.stripe_chunks
    }

    /// Returns the first chunk after the stripe of the chunk with that index, or `None` if the
    /// stripe has no end.
    pub(super) fn stripe_end(self, index: u32) -> Option<u32> {
        (self.zones > 1)
            .then(|| (index / self.stripe_chunks + 1).saturating_mul(self.stripe_chunks))
    }

    /// Returns the zone of the chunk with that index.
    pub(crate) fn zone_of(self, index: u32) -> usize {
        if self.zones == 1 { 0 } else { (index / self.stripe_chunks % self.zones) as usize }
    }
}

/// The free pages of a zone, and its chunks that have space.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) runs: Runs,
    /// The chunks that have space, by class and by the part of their blocks that is in use.
    roomy: [[Vec<u32>; FILLS]; CLASSES],
}

impl Zone {
    pub(super) fn new() -> Self {
        let (runs, roomy) = (Runs::default(), [const { [const { Vec::new() }; FILLS] }; CLASSES]);
        Self { runs, roomy }
    }

    /// Returns the lists of chunks that have space for a block of `class`, the emptiest first.
    pub(super) fn roomy(&mut self, class: Class) -> &mut [Vec<u32>; FILLS] {
        &mut self.roomy[class.index()]
    }
}
