//! The buffers of the DIMMs: recently read units, and units whose writes are combined.
//!
//! 1. The slots of a DIMM form a ring. The newest slot follows the oldest, so reusing the oldest
//!    only turns the ring.
//! 2. `index` maps a unit to its slot, so finding a unit needs no search.

use super::media::{Unit, grow};

const NONE: Unit = Unit::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: Unit,
    newer: u16,
    older: u16,
}

/// The buffered units of all DIMMs. The least recently used unit of a DIMM is evicted first.
#[derive(Debug)]
pub(super) struct Buffers {
    /// For each unit: the number of its slot plus one, or 0.
    index: Vec<u16>,
    slots: Vec<Slot>,
    /// The newest slot of each DIMM.
    newest: Vec<u16>,
}

impl Buffers {
    /// Returns empty buffers of `each` units on each of `dimms` DIMMs.
    pub(super) fn new(dimms: usize, each: usize) -> Self {
        let slot = |slot: usize| {
            let (first, at) = (slot / each * each, slot % each);
            let newer = (first + (at + 1) % each) as u16;
            Slot { unit: NONE, newer, older: (first + (at + each - 1) % each) as u16 }
        };
        let slots = (0..dimms * each).map(slot).collect();
        let newest = (0..dimms).map(|dimm| (dimm * each) as u16).collect();
        Self { index: Vec::new(), slots, newest }
    }

    /// Makes room for units with numbers below `units`.
    pub(super) fn grow(&mut self, units: usize) {
        grow(&mut self.index, units);
    }

    /// Returns `true` if the buffers have no slots.
    pub(super) fn is_none(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of slots.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the slot of `unit`.
    #[inline(always)]
    pub(super) fn find(&self, unit: Unit) -> Option<usize> {
        usize::from(self.index[unit as usize]).checked_sub(1)
    }

    /// Returns the unit in `slot`.
    pub(super) fn unit_of(&self, slot: usize) -> Option<Unit> {
        Some(self.slots[slot].unit).filter(|&unit| unit != NONE)
    }

    /// Empties `slot`, which keeps its position in the ring.
    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(unit) = self.unit_of(slot) {
            self.index[unit as usize] = 0;
            self.slots[slot].unit = NONE;
        }
    }

    /// Returns the slot that the next new unit of `dimm` takes, and the unit that must leave it.
    pub(super) fn oldest(&self, dimm: usize) -> (usize, Option<Unit>) {
        let oldest = usize::from(self.slots[usize::from(self.newest[dimm])].newer);
        (oldest, self.unit_of(oldest))
    }

    /// Gives the oldest slot of `dimm` to `unit`, as the newest.
    pub(super) fn insert(&mut self, dimm: usize, unit: Unit) -> usize {
        let (slot, former) = self.oldest(dimm);
        if let Some(former) = former {
            self.index[former as usize] = 0;
        }
        self.slots[slot].unit = unit;
        self.index[unit as usize] = slot as u16 + 1;
        self.newest[dimm] = slot as u16;
        slot
    }

    /// Makes `slot` of `dimm` the newest.
    #[inline]
    pub(super) fn make_newest(&mut self, dimm: usize, slot: usize) {
        let newest = self.newest[dimm];
        if usize::from(newest) == slot {
            return;
        }
        let Slot { newer, older, .. } = self.slots[slot];
        let oldest = self.slots[usize::from(newest)].newer;
        if usize::from(oldest) != slot {
            self.slots[usize::from(newer)].older = older;
            self.slots[usize::from(older)].newer = newer;
            self.slots[slot].newer = oldest;
            self.slots[slot].older = newest;
            self.slots[usize::from(newest)].newer = slot as u16;
            self.slots[usize::from(oldest)].older = slot as u16;
        }
        self.newest[dimm] = slot as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::mix64;

    #[test]
    fn it_keeps_what_was_used_last_as_a_list_would() {
        let (dimms, each, units) = (3, 5, 60);
        let mut buffers = Buffers::new(dimms, each);
        buffers.grow(units);
        let mut lists: Vec<Vec<Unit>> = vec![Vec::new(); dimms];
        for step in 0..10_000 {
            let unit = (mix64(step) % units as u64) as u32;
            let dimm = unit as usize % dimms;
            let list = &mut lists[dimm];
            let listed = list.iter().position(|&other| other == unit);
            let slot = buffers.find(unit);
            assert_eq!(slot.is_some(), listed.is_some());
            let oldest = (list.len() == each).then(|| list[0]);
            assert_eq!(buffers.oldest(dimm).1, oldest);
            if let Some((slot, at)) = slot.zip(listed) {
                buffers.make_newest(dimm, slot);
                list.remove(at);
            } else {
                buffers.insert(dimm, unit);
                if oldest.is_some() {
                    list.remove(0);
                }
            }
            list.push(unit);
        }
    }

    #[test]
    fn one_slot_is_a_buffer_too() {
        let mut buffers = Buffers::new(2, 1);
        buffers.grow(8);
        buffers.insert(1, 3);
        assert_eq!((buffers.find(3), buffers.oldest(1)), (Some(1), (1, Some(3))));
        buffers.make_newest(1, 1);
        buffers.insert(1, 5);
        assert_eq!((buffers.find(3), buffers.find(5)), (None, Some(1)));
        assert!(Buffers::new(2, 0).is_none());
    }
}
