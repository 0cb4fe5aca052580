//! What a node does, by the layout that its level gives it: leaves are at level 0.

use super::{AllPm, AllPmSpec, Protocol};
use crate::key::{Entry, Key};
use crate::node::{Changes, Image, Layout, Slot, View};
use crate::sorting::sort_pairs_stably;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Number of entries that a node can hold.
    #[inline(always)]
    pub(super) const fn capacity(level: u64) -> usize {
        if level == 0 { S::Leaf::CAPACITY } else { S::Inner::CAPACITY }
    }

    /// Number of entries of a node.
    #[inline(always)]
    pub(super) fn count(view: View<'_, M>, level: u64) -> usize {
        if level == 0 { S::Leaf::count(view) } else { S::Inner::count(view) }
    }

    /// Checks that a node says of itself that it has that level.
    ///
    /// # Errors
    /// It does not.
    #[inline(always)]
    pub(super) fn check_level(view: View<'_, M>, level: u64) -> Result<(), Corrupt> {
        let found = if level == 0 { S::Leaf::level(view)? } else { S::Inner::level(view)? };
        if found == level { Ok(()) } else { Err(view.corrupt(0, "level of a node", level, found)) }
    }

    /// The content of a node, in key order.
    ///
    /// # Errors
    /// It breaks its layout's rules, or points to where no node can be.
    pub(super) fn image(&self, view: View<'_, M>, level: u64) -> Result<Image, Corrupt> {
        let image = if level == 0 {
            let places = S::Leaf::slot_indices(view)?;
            let mut slots = Self::slots(view, S::Leaf::ENTRIES, places);
            if !S::Leaf::is_sorted(view) {
                sort_by(&mut slots, |slot| K::read_entry(&self.pool, slot.entry))?;
                S::Leaf::check_order(view, &slots)?;
            }
            Image { level, link: S::Leaf::link(view), slots }
        } else {
            let places = S::Inner::slot_indices(view)?;
            let mut slots = Self::slots(view, S::Inner::ENTRIES, places);
            if !S::Inner::is_sorted(view) {
                sort_by(&mut slots, |slot| K::read(&self.pool, slot.entry.key))?;
            }
            let image = Image { level, link: S::Inner::link(view), slots };
            for slot in &image.slots {
                self.check_pointer(view, slot.entry.value)?;
            }
            image
        };
        self.check_pointer(view, image.link)?;
        Ok(image)
    }

    fn slots(view: View<'_, M>, entries: usize, places: Vec<usize>) -> Vec<Slot> {
        let slot = |index| Slot { index, entry: view.entry(entries, index) };
        places.into_iter().map(slot).collect()
    }

    /// Checks that a node can lie at `offset`, or that it is no pointer at all.
    fn check_pointer(&self, view: View<'_, M>, offset: u64) -> Result<(), Corrupt> {
        let end = self.medium().len() - Self::NODE_BYTES;
        if offset > end || !offset.is_multiple_of(Self::NODE_BYTES) {
            return Err(view.corrupt(0, "pointer to a node", end, offset));
        }
        Ok(())
    }

    /// As [`Layout::plan`].
    pub(super) fn plan<'a>(view: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        if image.level == 0 {
            S::Leaf::plan(view, image, changes);
        } else {
            S::Inner::plan(view, image, changes);
        }
    }

    /// As [`Layout::apply`].
    pub(super) fn apply(view: View<'_, M>, image: &Image) {
        if image.level == 0 {
            S::Leaf::apply(view, image);
        } else {
            S::Inner::apply(view, image);
        }
    }

    /// As [`Layout::write_free_slots`].
    pub(super) fn write_free_slots(view: View<'_, M>, level: u64, slots: &[Slot]) {
        if level == 0 {
            S::Protocol::write_free_slots::<M, S::Leaf>(view, slots);
        } else {
            S::Protocol::write_free_slots::<M, S::Inner>(view, slots);
        }
    }

    /// Writes a fresh node with entries in key order. Durable after the next fence.
    ///
    /// # Errors
    /// No node can be at `at`.
    pub(super) fn write_new(
        &self,
        at: PmPtr,
        level: u64,
        link: u64,
        entries: &[Entry],
    ) -> Result<(), Corrupt> {
        let encode = if level == 0 { S::Leaf::encode } else { S::Inner::encode };
        S::Protocol::fill(self.node(at)?, &encode(level, link, entries));
        Ok(())
    }

    /// As [`Layout::needs_repair`].
    pub(super) fn needs_repair(view: View<'_, M>, level: u64) -> bool {
        if level == 0 { S::Leaf::needs_repair(view) } else { S::Inner::needs_repair(view) }
    }

    /// As [`Layout::repair`].
    pub(super) fn repair(view: View<'_, M>, image: &Image) {
        if image.level == 0 {
            S::Leaf::repair(view, image);
        } else {
            S::Inner::repair(view, image);
        }
    }
}

/// Sorts slots by their keys.
fn sort_by<T: Ord>(
    slots: &mut Vec<Slot>,
    key: impl Fn(&Slot) -> Result<T, Corrupt>,
) -> Result<(), Corrupt> {
    let mut keyed = Vec::with_capacity(slots.len());
    for slot in slots.iter() {
        keyed.push((key(slot)?, *slot));
    }
    sort_pairs_stably(&mut keyed);
    slots.clear();
    slots.extend(keyed.into_iter().map(|(_, slot)| slot));
    Ok(())
}
