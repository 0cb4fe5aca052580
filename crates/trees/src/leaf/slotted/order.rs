//! The order that slots give to entries: making it, and changing it a slot at a time.

use super::{Array, BITS_MAX, SlottedLeaf};
use crate::key::{Entry, Key};
use crate::sorting::sort_pairs_stably;
use bristlecone_pmem::{Corrupt, Medium, Pool};

/// `entries`, each with its index, in key order.
pub(in crate::leaf) fn ordered<K: Key, M: Medium>(
    pool: &Pool<M>,
    entries: impl IntoIterator<Item = (usize, Entry)>,
) -> Result<Vec<(usize, Entry)>, Corrupt> {
    let mut keyed = Vec::new();
    for (index, entry) in entries {
        keyed.push((K::read_entry(pool, entry)?, (index, entry)));
    }
    sort_pairs_stably(&mut keyed);
    Ok(keyed.into_iter().map(|(_, one)| one).collect())
}

impl<M: Medium, const NODE: usize, const PREFIX: usize> SlottedLeaf<'_, M, NODE, PREFIX> {
    /// The array as it is, and with the slots of `entries`, in key order, from the slot `from` on.
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

/// Puts `index` among the first `count` of `slots`, at `rank`.
#[inline]
pub(in crate::leaf) fn put(slots: &mut [u8], count: usize, rank: usize, index: usize) {
    slots.copy_within(rank..count, rank + 1);
    slots[rank] = index as u8;
}

/// Moves those of the first `count` of `slots` that are in `kept` together; gives how many.
#[inline]
pub(in crate::leaf) fn keep(slots: &mut [u8], count: usize, kept: u128) -> usize {
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
