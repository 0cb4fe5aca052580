//! Node operations for either layout: level 0 uses the leaf layout, higher levels the inner layout.

use super::{AllPm, AllPmSpec, Protocol};
use crate::key::{Entry, Key};
use crate::node::{Changes, Image, Layout, Slot, View};
use crate::sorting::sort_pairs_stably;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Returns the most entries that a node on `level` can hold.
    #[inline(always)]
    pub(super) const fn capacity(level: u64) -> usize {
        if level == 0 { S::Leaf::CAPACITY } else { S::Inner::CAPACITY }
    }

    /// Returns the number of entries in a node.
    #[inline(always)]
    pub(super) fn count(view: View<'_, M>, level: u64) -> usize {
        if level == 0 { S::Leaf::count(view) } else { S::Inner::count(view) }
    }

    /// Checks that the node's header names `level`.
    ///
    /// # Errors
    /// The header names another level, or belongs to no node of this layout.
    #[inline(always)]
    pub(super) fn check_level(view: View<'_, M>, level: u64) -> Result<(), Corrupt> {
        let found = if level == 0 { S::Leaf::level(view)? } else { S::Inner::level(view)? };
        if found == level { Ok(()) } else { Err(view.corrupt(0, "level of a node", level, found)) }
    }

    /// Returns the contents of a node, in key order.
    ///
    /// # Errors
    /// The contents break the rules of the layout, or a pointer lies outside the pool.
    pub(super) fn image(&self, view: View<'_, M>, level: u64) -> Result<Image, Corrupt> {
        let image = if level == 0 {
            let places = S::Leaf::slot_indices(view)?;
            let mut slots = Self::slots(view, S::Leaf::ENTRIES, places);
            if !S::Leaf::is_sorted(view) {
                sort_slots_by(&mut slots, |slot| K::read_entry(&self.pool, slot.entry))?;
                S::Leaf::check_order(view, &slots)?;
            }
            Image { level, link: S::Leaf::link(view), slots }
        } else {
            let places = S::Inner::slot_indices(view)?;
            let mut slots = Self::slots(view, S::Inner::ENTRIES, places);
            if !S::Inner::is_sorted(view) {
                sort_slots_by(&mut slots, |slot| K::read(&self.pool, slot.entry.key))?;
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

    /// Checks that `offset` is null or an offset at which a node can lie.
    fn check_pointer(&self, view: View<'_, M>, offset: u64) -> Result<(), Corrupt> {
        let end = self.medium().len() - Self::NODE_BYTES;
        if offset > end || !offset.is_multiple_of(Self::NODE_BYTES) {
            return Err(view.corrupt(0, "pointer to a node", end, offset));
        }
        Ok(())
    }

    /// Calls [`Layout::plan`] of the layout for the image's level.
    pub(super) fn plan<'a>(view: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        if image.level == 0 {
            S::Leaf::plan(view, image, changes);
        } else {
            S::Inner::plan(view, image, changes);
        }
    }

    /// Calls [`Layout::apply`] of the layout for the image's level.
    pub(super) fn apply(view: View<'_, M>, image: &Image) {
        if image.level == 0 {
            S::Leaf::apply(view, image);
        } else {
            S::Inner::apply(view, image);
        }
    }

    /// Calls the protocol's `place` with the layout for `level`.
    pub(super) fn write_free_slots(view: View<'_, M>, level: u64, slots: &[Slot]) {
        if level == 0 {
            S::Protocol::write_free_slots::<M, S::Leaf>(view, slots);
        } else {
            S::Protocol::write_free_slots::<M, S::Inner>(view, slots);
        }
    }

    /// Writes a fresh node with `entries`, which are in key order. Durable after the next fence.
    ///
    /// # Errors
    /// No node can lie at `at`.
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

    /// Calls [`Layout::needs_repair`] of the layout for `level`.
    pub(super) fn needs_repair(view: View<'_, M>, level: u64) -> bool {
        if level == 0 { S::Leaf::needs_repair(view) } else { S::Inner::needs_repair(view) }
    }

    /// Calls [`Layout::repair`] of the layout for the image's level.
    pub(super) fn repair(view: View<'_, M>, image: &Image) {
        if image.level == 0 {
            S::Leaf::repair(view, image);
        } else {
            S::Inner::repair(view, image);
        }
    }
}

/// Sorts slots by their keys.
fn sort_slots_by<T: Ord>(
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
