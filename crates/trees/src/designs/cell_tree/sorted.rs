//! The entries of a leaf in the order of their keys.
//!
//! The prefixes decide. Whole keys are read where prefixes are equal alone.

use super::CellTreeIndex;
use super::leaf::{CellLeaf, Placed, disagreement};
use super::place::ENTRIES_MAX;
use super::rows::Notes;
use super::word::CellLayout;
use crate::key::{Entry, Key};
use crate::leaf_table::misplaced_key;
use crate::sorting::{sort_pairs, sorted_by_keys};
use bristlecone_pmem::{Corrupt, Medium, Pool};

/// The number of the first new entry, which has no slot yet. See
/// [`CellKind::number`](super::word::CellKind::number).
pub(super) const NEW: usize = ENTRIES_MAX;

/// The prefixes of the keys of a leaf, an item for each of its entries, and the number of entries.
type Shown<T> = ([u64; ENTRIES_MAX], [T; ENTRIES_MAX], usize);

/// Returns `item` of each entry of a leaf with the prefix of its key, except for those that `notes`
/// hides. In a cell that has some, no branch depends on the slots that are in use, if the layer
/// keeps the prefix in the entry.
#[inline(always)]
pub(super) fn shown<C: CellLayout, K: Key, M: Medium, T: Copy + Default>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    notes: Notes,
    item: impl Fn(Placed) -> T,
) -> Result<Shown<T>, Corrupt> {
    let medium = pool.medium();
    let mut prefixes = [0; ENTRIES_MAX];
    // Not as a pair: the compiler would copy it.
    let mut items = [T::default(); ENTRIES_MAX];
    let mut count = 0;
    for cell in 0..leaf.cells() {
        let shown = leaf.shown_in::<C, M>(medium, notes, cell);
        if shown == 0 {
            continue; // A block's last use may have left anything there.
        }
        for slot in 0..C::KIND.slots() {
            let is_shown = shown >> slot & 1 == 1;
            if (M::COMPACT || !K::PREFIX_IN_ENTRY) && !is_shown {
                continue;
            }
            let entry = leaf.entry::<C, M>(medium, cell, slot);
            prefixes[count] = K::entry_prefix(pool, entry)?;
            items[count] = item(Placed { cell, slot, entry });
            count += usize::from(is_shown);
        }
    }
    Ok((prefixes, items, count))
}

/// Puts the items with equal prefixes, of `sorted` ones, into the order of their keys. Returns such
/// a prefix if two keys are equal.
///
/// # Errors
/// An entry is damaged.
pub(super) fn settle_ties<K: Key, M: Medium, T: Copy>(
    pool: &Pool<M>,
    sorted: &mut [(u64, T)],
    entry_of: impl Fn(T) -> Entry,
) -> Result<Option<u64>, Corrupt> {
    let mut equal = None;
    for tied in sorted.chunk_by_mut(|a, b| a.0 == b.0).filter(|tied| tied.len() > 1) {
        let mut keyed = Vec::with_capacity(tied.len());
        for &keyless in &*tied {
            keyed.push((K::read_entry(pool, entry_of(keyless.1))?, keyless));
        }
        sort_pairs(&mut keyed);
        if keyed.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            equal = Some(tied[0].0);
        }
        for (place, (_, keyless)) in tied.iter_mut().zip(keyed) {
            *place = keyless;
        }
    }
    Ok(equal)
}

impl CellLeaf<'_> {
    /// Returns the entry with this number, among those of the leaf and `new` ones.
    #[inline(always)]
    pub(super) fn entry_numbered<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        new: &[Entry],
        number: usize,
    ) -> Entry {
        if let Some(index) = number.checked_sub(NEW) {
            return new[index];
        }
        let (cell, slot) = C::KIND.place(number);
        self.entry::<C, M>(medium, cell, slot)
    }
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Returns the entries of a latched leaf and `new` ones in the order of their keys: the prefix
    /// of each, and its number. The new ones have the numbers from [`NEW`] on. Keys may be equal.
    ///
    /// # Errors
    /// An entry is out of the range of the leaf, from `low` up to `high`, or there are fewer than
    /// the leaf word counts.
    pub(super) fn in_order<C: CellLayout>(
        &self,
        leaf: CellLeaf<'_>,
        notes: Notes,
        new: &[Entry],
        (low, high): (&K::Owned, Option<&K::Owned>),
    ) -> Result<Vec<(u64, usize)>, Corrupt> {
        let (pool, medium) = (&self.pool, self.pool.medium());
        let number = |Placed { cell, slot, .. }: Placed| C::KIND.number((cell, slot));
        let (shown_prefixes, shown_numbers, count) =
            shown::<C, K, M, _>(pool, leaf, notes, number)?;
        if count != notes.count::<C>() {
            return Err(disagreement(leaf.at, count));
        }
        let mut prefixes = Vec::with_capacity(count + new.len());
        let mut numbers = Vec::with_capacity(count + new.len());
        prefixes.extend_from_slice(&shown_prefixes[..count]);
        numbers.extend_from_slice(&shown_numbers[..count]);
        for (entry, number) in new.iter().zip(NEW..) {
            prefixes.push(K::entry_prefix(pool, *entry)?);
            numbers.push(number);
        }
        let mut sorted = sorted_by_keys(&prefixes, &numbers);
        let entry_of = |number| leaf.entry_numbered::<C, M>(medium, new, number);
        if !K::EXACT {
            settle_ties::<K, M, _>(pool, &mut sorted, entry_of)?;
        }
        let order = |number, key| K::order_entry(pool, entry_of(number), K::borrow(key));
        if let (Some(first), Some(last)) = (sorted.first(), sorted.last()) {
            let is_below = order(first.1, low)?.is_lt();
            let is_above = match high {
                Some(high) => order(last.1, high)?.is_ge(),
                None => false,
            };
            if is_below || is_above {
                return Err(misplaced_key(leaf.at, if is_below { first.0 } else { last.0 }));
            }
        }
        Ok(sorted)
    }
}
