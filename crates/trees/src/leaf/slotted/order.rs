//! The slot array as a permutation: building it from the entries, and changing one slot at a time.

use super::{Array, BITS_MAX, SlottedLeaf};
use crate::key::{Entry, Key};
use crate::sorting::sort_pairs_stably;
use bristlecone_pmem::{Corrupt, Medium, Pool};

/// Returns `entries`, each with its index, in key order.
pub(in crate::leaf) fn ordered<K: Key, M: Medium>(
    pool: &Pool<M>,
    entries: impl IntoIterator<Item = (usize, Entry)>,
) -> Result<Vec<(usize, Entry)>, Corrupt> {
    let mut keyed = Vec::new();
    for (index, entry) in entries {
        keyed.push((K::read_entry(pool, entry)?, (index, entry)));
    }
    sort_pairs_stably(&mut keyed);
    Ok(keyed.into_iter().map(|(_, entry)| entry).collect())
}

impl<M: Medium, const NODE: usize, const PREFIX: usize> SlottedLeaf<'_, M, NODE, PREFIX> {
    /// Returns the stored slot array, and a copy of it in which the slots from `from` on list
    /// `entries` in key order.
    pub(in crate::leaf) fn with_slots<K: Key>(
        self,
        pool: &Pool<M>,
        from: usize,
        entries: impl IntoIterator<Item = (usize, Entry)>,
    ) -> Result<(Array, Array), Corrupt> {
        let old = self.array();
        let mut array = old;
        let ordered = ordered::<K, M>(pool, entries)?;
        for (slot, (index, _)) in array[PREFIX + from..].iter_mut().zip(ordered) {
            *slot = index as u8;
        }
        Ok((old, array))
    }
}

/// Inserts `index` at `rank` into the first `count` slots.
#[inline]
pub(in crate::leaf) fn insert_slot(slots: &mut [u8], count: usize, rank: usize, index: usize) {
    slots.copy_within(rank..count, rank + 1);
    slots[rank] = index as u8;
}

/// Compacts the first `count` slots to those whose bit in `kept` is set. Returns their number.
#[inline]
pub(in crate::leaf) fn retain_slots(slots: &mut [u8], count: usize, kept: u128) -> usize {
    let mut to = 0;
    for from in 0..count {
        let index = slots[from];
        if usize::from(index) < BITS_MAX && kept >> index & 1 == 1 {
            slots[to] = index;
            to += 1;
        }
    }
    to
}
