//! Settling: writing the referenced log records of a unit into it.

use super::UnitTreeIndex;
use super::rows::{Pending, REFERENCES, UnitRow};
use super::unit::{Place, UNITS, UnitLeaf, UnitWord, home_of};
use crate::index::MaintenanceCost;
use crate::key::Key;
use crate::leaf::slots;
use crate::leaf_table::EntryChange;
use crate::spec::Cost;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium};

/// Returns the cost of the units that a write may settle: all of its leaf, and one whose old record
/// is cleaned.
pub(super) const fn maintenance_cost(bytes: usize) -> MaintenanceCost {
    let units = UNITS as u32 + 1;
    let lines = (bytes / LINE_BYTES + UNITS) as u32;
    MaintenanceCost { most: Cost::new(units * lines, units * 3), every: 1 }
}

/// A change that is not logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unlogged {
    pub(super) change: EntryChange,
    /// The reference of its key, if there is one.
    pub(super) replaced: Option<usize>,
}

/// The state of a leaf whose changes are written and not committed.
struct Written {
    /// The slots of each unit that will be valid.
    valid: [u64; UNITS],
    /// The lines to flush, as bits.
    dirty: u64,
    /// `true` if keys with the home may lie in other units.
    spilled: bool,
    /// The number of referenced keys that no unit had.
    fresh: usize,
}

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Settles all units of a latched leaf. Durable on return.
    pub(super) fn settle_leaf(
        &self,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
    ) -> Result<(), Corrupt> {
        (0..UNITS)
            .filter(|&home| row.of_home::<M>(home) != 0)
            .try_for_each(|home| self.settle_unit(row, leaf, home, None))
    }

    /// Settles the unit of a latched leaf with the most references. Durable on return.
    pub(super) fn settle_fullest(
        &self,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
    ) -> Result<(), Corrupt> {
        let references = |home: &usize| row.of_home::<M>(*home).count_ones();
        let fullest = (0..UNITS).max_by_key(references).unwrap_or(0);
        self.settle_unit(row, leaf, fullest, None)
    }

    /// Writes the records of keys with this home that a latched leaf refers to, and `unlogged`, of
    /// a key with this home, into the leaf. Durable on return. They count no more then.
    ///
    /// ```text
    /// W values of present keys; key and value words in slots that are free
    /// F their lines |             crash before C: the records restore each value; that of
    ///                             `unlogged` is the word of an operation that has not returned
    /// C commit words of other units, F |    only if keys come or go there: the home was full
    /// C commit word of the home    8 B      slots and stamp: the records count no more
    /// F its line |                -> durable     budget: lines of the entries, units that change;
    ///                                       2 fences, 3 with other units; 1 without new entries
    ///                                       and records, or without entries
    /// ```
    ///
    /// # Errors
    /// A record is damaged, or the leaf has too few slots. Only logged changes are then valid.
    pub(super) fn settle_unit(
        &self,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
        home: usize,
        unlogged: Option<&Unlogged>,
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        let references = row.of_home::<M>(home);
        let replaced = unlogged.and_then(|unlogged| unlogged.replaced);
        let mut changes = Vec::with_capacity(REFERENCES + 1);
        let mut pending = row.pending::<M>();
        for at in slots(references) {
            let change = self.log.change(&self.pool, row.position::<M>(at))?;
            // Damage may have made a record a remove.
            pending.removed = pending.removed.saturating_sub(usize::from(change.is_removed));
            if replaced != Some(at) {
                changes.push((change, true));
            }
        }
        if let Some(unlogged) = unlogged {
            changes.push((unlogged.change, replaced.is_some()));
        }
        let before = leaf.unit_words(medium);
        let is_spilled = row.is_spilled::<M>(home);
        let written = self.write_changes(leaf, (home, is_spilled), before, &changes)?;
        row.add_spilled::<M>(u64::from(written.spilled) << home);
        for line in slots(written.dirty) {
            medium.flush(leaf.line(line));
        }
        let is_early = M::INJECTS_DEFECTS && medium.injects(Defect::UnitStampEarly);
        let fenced = (written.dirty != 0 && !is_early).then(|| medium.fence());
        let stamp = if references == 0 { before[home].stamp() } else { row.version::<M>() };
        self.commit_units(leaf, (home, stamp), (before, written.valid), fenced);
        pending.count -= references.count_ones() as usize;
        pending.fresh = pending.fresh.saturating_sub(written.fresh);
        row.drop_all::<M>(references, pending);
        Ok(())
    }

    /// Writes changes of keys with this home to a latched leaf with these commit words. A change
    /// comes with `true` if the row refers to a record of its key. The caller flushes the lines.
    ///
    /// # Errors
    /// As [`settle_unit`](Self::settle_unit).
    fn write_changes(
        &self,
        leaf: UnitLeaf<'_, BYTES>,
        (home, spilled): (usize, bool),
        before: [UnitWord; UNITS],
        changes: &[(EntryChange, bool)],
    ) -> Result<Written, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let valid = before.map(UnitWord::valid);
        let mut written = Written { valid, dirty: 0, spilled, fresh: 0 };
        // A slot that comes free here is not used again here.
        let mut taken = valid;
        for (change, is_referenced) in changes {
            let key = K::read_entry(pool, change.entry)?;
            let place = (home, written.spilled);
            let found = leaf.find::<K, M>(pool, place, K::borrow(&key))?.map(|(place, _)| place);
            written.fresh += usize::from(found.is_none() && *is_referenced);
            if change.is_removed {
                if let Some(Place { unit, slot }) = found {
                    written.valid[unit] &= !(1 << slot);
                }
                continue;
            }
            let Place { unit, slot } = if let Some(place) = found {
                place
            } else {
                let unit = UnitLeaf::<BYTES>::unit_for(home, taken);
                let unit = unit.ok_or_else(|| no_space(leaf))?;
                Place { unit, slot: taken[unit].trailing_ones() as usize }
            };
            let [key_word, value_word] = UnitLeaf::<BYTES>::indices(Place { unit, slot });
            if found.is_none() {
                medium.store(&leaf.words[key_word], change.entry.key);
                written.dirty |= 1 << (key_word / LINE_WORDS);
                written.spilled |= unit != home;
            }
            medium.store(&leaf.words[value_word], change.entry.value);
            written.dirty |= 1 << (value_word / LINE_WORDS);
            written.valid[unit] |= 1 << slot;
            taken[unit] |= 1 << slot;
        }
        Ok(written)
    }

    /// Sets the valid slots of the units of a latched leaf, and the stamp of `home`, after all
    /// others. `fenced` is the fence of the entries, if there are any. Durable on return.
    fn commit_units(
        &self,
        leaf: UnitLeaf<'_, BYTES>,
        (home, stamp): (usize, u64),
        (before, valid): ([UnitWord; UNITS], [u64; UNITS]),
        mut fenced: Option<Fenced>,
    ) {
        let medium = self.pool.medium();
        let mut changes_others = false;
        for unit in (0..UNITS).filter(|&unit| unit != home) {
            let word = UnitWord::new(valid[unit], before[unit].stamp());
            if word != before[unit] {
                medium.store(leaf.commit_word(unit), word.bits());
                medium.flush(core::slice::from_ref(leaf.commit_word(unit)));
                changes_others = true;
            }
        }
        if changes_others && !(M::INJECTS_DEFECTS && medium.injects(Defect::UnitSpillLate)) {
            fenced = Some(medium.fence());
        }
        let (word, home_word) = (UnitWord::new(valid[home], stamp), leaf.commit_word(home));
        if word != before[home] {
            match fenced {
                Some(fenced) => medium.commit(home_word, word.bits(), fenced),
                None => medium.store(home_word, word.bits()), // There are no new entries.
            }
            let _ = medium.persist(core::slice::from_ref(home_word));
        }
    }

    /// Returns the number of keys in a latched leaf with these references.
    pub(super) fn live(&self, leaf: UnitLeaf<'_, BYTES>, pending: Pending) -> usize {
        (leaf.used(self.pool.medium()) + pending.fresh).saturating_sub(pending.removed)
    }

    /// Returns the home of the key of an entry.
    pub(super) fn home_of_key(key: &K::Owned) -> usize {
        home_of(K::hash(K::borrow(key)))
    }
}

#[cold]
pub(super) fn no_space<const BYTES: usize>(leaf: UnitLeaf<'_, BYTES>) -> Corrupt {
    let (at, what) = (leaf.at.offset(), "leaf has no space for its logged writes");
    let capacity = UnitLeaf::<BYTES>::CAPACITY as u64;
    Corrupt { at, what, expected: capacity, found: capacity + 1 }
}
