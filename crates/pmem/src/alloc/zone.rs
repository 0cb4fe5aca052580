//! A zone: the chunks of a pool that belong to one NUMA node, or all chunks. It knows which of them
//! are free and which may have space.

use super::chunk::{CLASSES, Class};
use crate::layout::CHUNK_BYTES;
use crate::numa::Placement;
use std::collections::BTreeSet;

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

    /// Returns the zone of the chunk with that index.
    pub(crate) fn zone_of(self, index: u32) -> usize {
        if self.zones == 1 { 0 } else { (index / self.stripe_chunks % self.zones) as usize }
    }
}

/// The free chunks of a zone, and its chunks that may have space.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) free: BTreeSet<u32>,
    /// The chunks that may have space, by class. An entry may be stale, so each use checks it.
    roomy: [Vec<u32>; CLASSES],
}

impl Zone {
    pub(super) fn new() -> Self {
        Self { free: BTreeSet::new(), roomy: [const { Vec::new() }; CLASSES] }
    }

    /// Returns the chunks that may have space for a block of `class`. The last is the first to try.
    pub(super) fn roomy(&mut self, class: Class) -> &mut Vec<u32> {
        &mut self.roomy[class.index()]
    }

    /// Removes each chunk from the list of a class if `is_of` says that it has another class now.
    pub(super) fn retain_roomy(&mut self, is_of: impl Fn(u32, usize) -> bool) {
        for (class, list) in self.roomy.iter_mut().enumerate() {
            list.retain(|&index| is_of(index, class));
        }
    }
}

/// Returns the start of the lowest run of `count` consecutive numbers in `indices`, which ascend.
pub(super) fn lowest_run(indices: impl Iterator<Item = u32>, count: u32) -> Option<u32> {
    let (mut start, mut length) = (0, 0);
    for index in indices {
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

/// Returns the free chunks of all zones in ascending order.
pub(super) fn free_of_all(zones: &[Zone]) -> impl Iterator<Item = u32> + '_ {
    let mut ahead: Vec<_> = zones.iter().map(|zone| zone.free.iter().copied().peekable()).collect();
    core::iter::from_fn(move || {
        let nexts = ahead.iter_mut().filter_map(|zone| Some((*zone.peek()?, zone)));
        nexts.min_by_key(|(index, _)| *index)?.1.next()
    })
}
