//! A zone: the part of a pool that is of one node, or all of it. What of it is free, and what has room.

use super::chunk::{CLASSES, Class};
use crate::layout::CHUNK_BYTES;
use crate::numa::Placement;
use std::collections::BTreeSet;

/// How the chunks of a pool are divided among zones: in stripes, which take the zones in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneMap {
    zones: u32,
    stripe_chunks: u32,
}

impl ZoneMap {
    /// One zone, of which all is.
    pub(crate) const SINGLE: Self = Self { zones: 1, stripe_chunks: u32::MAX };

    /// So many zones, in stripes of so many chunks.
    pub(crate) fn new(zones: usize, stripe_chunks: u32) -> Self {
        debug_assert!(zones > 0 && stripe_chunks > 0);
        if zones == 1 { Self::SINGLE } else { Self { zones: zones as u32, stripe_chunks } }
    }

    /// The map under `placement`: a zone for each of its nodes, in their order.
    pub(crate) fn of(placement: &Placement) -> Self {
        Self::new(placement.nodes().len(), (placement.stripe_bytes() / CHUNK_BYTES) as u32)
    }

    pub(crate) fn zones(self) -> usize {
        self.zones as usize
    }

    /// Chunks of a stripe: no run of one zone is longer.
    pub(super) fn stripe_chunks(self) -> u32 {
        self.stripe_chunks
    }

    /// The zone of the chunk of that number.
    pub(crate) fn zone_of(self, index: u32) -> usize {
        if self.zones == 1 { 0 } else { (index / self.stripe_chunks % self.zones) as usize }
    }
}

/// The volatile state of a zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) free: BTreeSet<u32>,
    /// Chunks of each class that may have room. An entry may be out of date: it is checked on use.
    roomy: [Vec<u32>; CLASSES],
}

impl Zone {
    pub(super) fn new() -> Self {
        Self { free: BTreeSet::new(), roomy: [const { Vec::new() }; CLASSES] }
    }

    /// Chunks that may have room for a block of `class`, the one to try first at the end.
    pub(super) fn roomy(&mut self, class: Class) -> &mut Vec<u32> {
        &mut self.roomy[class.index()]
    }

    /// Keeps of the chunks that may have room those that `is_of` says are still of their class.
    pub(super) fn retain_roomy(&mut self, is_of: impl Fn(u32, usize) -> bool) {
        for (class, list) in self.roomy.iter_mut().enumerate() {
            list.retain(|&index| is_of(index, class));
        }
    }
}

/// The first of the lowest run of `count` among `indices`, which ascend.
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

/// The free chunks of all zones, ascending.
pub(super) fn free_of_all(zones: &[Zone]) -> impl Iterator<Item = u32> + '_ {
    let mut ahead: Vec<_> = zones.iter().map(|zone| zone.free.iter().copied().peekable()).collect();
    core::iter::from_fn(move || {
        let nexts = ahead.iter_mut().filter_map(|zone| Some((*zone.peek()?, zone)));
        nexts.min_by_key(|(index, _)| *index)?.1.next()
    })
}
