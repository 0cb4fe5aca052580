//! Merges of sparse leaves into their left neighbours.

use super::UnitTreeIndex;
use super::rows::UnitRow;
use super::settle::no_space;
use super::unit::{Place, UnitLeaf, UnitWord};
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes};
use crate::key::{self, Key};
use crate::leaf::slots;
use crate::leaf_table::{LeafTable, latch_leaf};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Exclusive, Guard, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

type Latched<'a, M> = (UnitRow<'a>, Exclusive<OnDram<'a, M>>);

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// The most keys of a leaf that is sparse.
    pub(super) const SPARSE: usize = UnitLeaf::<BYTES>::CAPACITY / 4;

    /// Merges the leaf at `at`, which has covered `key`, into its left neighbour, unless the two
    /// have too many keys, or the leaf is the first or is unlinked already.
    #[cold]
    pub(super) fn merge_sparse(
        &self,
        key: K::Ref<'_>,
        at: PmPtr,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        loop {
            let (row, held) = latch_leaf(self, key, |_| ())?;
            let leaf = self.leaf(row)?;
            let word = leaf.low(self.pool.medium())?;
            let live = self.live(leaf, row.pending::<M>());
            if leaf.at != at || word == 0 || live > Self::SPARSE {
                return Ok(());
            }
            let low = K::read(&self.pool, word)?;
            drop(held); // Rows are latched from left to right.
            let Some(left) = self.latch_left(K::borrow(&low))? else { continue };
            if self.merge(left, (at, &low, word), guard)? {
                return Ok(());
            }
        }
    }

    /// Latches the leaf that covers the keys just below `low`. Returns `None` if another thread
    /// changed it meanwhile.
    fn latch_left(&self, low: K::Ref<'_>) -> Result<Option<Latched<'_, M>>, Corrupt> {
        let route = self.inner.seek::<K>(&self.pool, low, Direction::Below)?;
        let (row, latch) = self.row(route.leaf.offset() as usize);
        let Some(version) = latch.read() else { return Ok(None) };
        if !self.inner.is_current(&route) {
            return Ok(None);
        }
        Ok(latch.upgrade(version).map(|held| (row, held)))
    }

    /// Moves the entries of the leaf at `at` to its latched left neighbour, which takes over its
    /// range, and unlinks the leaf. `low` is its low key, with the separator word. Returns `false`
    /// if another thread has changed one of them. Durable on return.
    ///
    /// ```text
    /// settle_leaf of both
    /// W entries in free slots of the left leaf, F their lines
    /// W commit words of the left leaf, F |     stamps no lower than any record of either leaf;
    ///                                          crash before C: recovery removes the entries that
    ///                                          are not below the low key of the leaf
    /// C next of the left leaf, F its line |    -> durable     budget: lines of the entries, units,
    ///                                          1 more; 2 fences
    /// ```
    fn merge(
        &self,
        (left, _left_held): Latched<'_, M>,
        (at, low, word): (PmPtr, &K::Owned, u64),
        guard: &Guard,
    ) -> Result<bool, TreeError> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let left_leaf = self.leaf(left)?;
        if left_leaf.next(medium)? != at {
            return Ok(false);
        }
        let route = self.inner.seek::<K>(pool, K::borrow(low), Direction::Key)?;
        let number = route.leaf.offset() as usize;
        let (row, latch) = self.row(number);
        let Some(version) = latch.read() else { return Ok(false) };
        if !self.inner.is_current(&route) {
            return Ok(false);
        }
        let Some(held) = latch.upgrade(version) else { return Ok(false) };
        let leaf = self.leaf(row)?;
        if leaf.at != at {
            return Ok(false);
        }
        let moved = self.live(leaf, row.pending::<M>());
        let kept = self.live(left_leaf, left.pending::<M>());
        if moved > 0 && kept + moved > UnitLeaf::<BYTES>::CAPACITY / 2 {
            return Ok(true);
        }
        self.settle_leaf(left, left_leaf)?;
        self.settle_leaf(row, leaf)?;
        let newest = left.version::<M>().max(row.version::<M>());
        left.set_version::<M>(newest);
        let is_forgotten = M::INJECTS_DEFECTS && medium.injects(Defect::UnitMergeStamp);
        let stamp = |unit| if is_forgotten { left_leaf.word(medium, unit).stamp() } else { newest };
        self.move_left(leaf, (left, left_leaf), stamp)?;
        left_leaf.set_next(medium, leaf.next(medium)?);
        let _ = medium.fence();
        self.inner.unlink::<K>(pool, K::borrow(low), PmPtr::new(number as u64))?;
        pool.retire(at, BYTES as u64, guard);
        drop(held);
        self.rows.put_back(number);
        key::retire::<K, M>(pool, word, guard)?;
        Ok(true)
    }

    /// Adds the entries of a latched leaf to its latched left neighbour, whose units get these
    /// stamps. Durable on return.
    fn move_left(
        &self,
        leaf: UnitLeaf<'_, BYTES>,
        (left, left_leaf): (UnitRow<'_>, UnitLeaf<'_, BYTES>),
        stamp: impl Fn(usize) -> u64,
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        // Damage is met before anything moves.
        let entries = leaf.sorted::<K, M>(&self.pool)?;
        let mut valid = left_leaf.unit_words(medium).map(UnitWord::valid);
        let (mut dirty, mut spilled) = (0u64, 0);
        for (key, entry) in &entries {
            let home = Self::home_of_key(key);
            let unit = UnitLeaf::<BYTES>::unit_for(home, valid);
            let unit = unit.ok_or_else(|| no_space(left_leaf))?;
            let slot = valid[unit].trailing_ones() as usize;
            let [key_word, value_word] = UnitLeaf::<BYTES>::indices(Place { unit, slot });
            medium.store(&left_leaf.words[key_word], entry.key);
            medium.store(&left_leaf.words[value_word], entry.value);
            dirty |= 1 << (key_word / LINE_WORDS) | 1 << (value_word / LINE_WORDS);
            valid[unit] |= 1 << slot;
            spilled |= u64::from(unit != home) << home;
        }
        left.add_spilled::<M>(spilled);
        for line in slots(dirty) {
            medium.flush(left_leaf.line(line));
        }
        for (unit, valid) in valid.into_iter().enumerate() {
            let commit_word = left_leaf.commit_word(unit);
            medium.store(commit_word, UnitWord::new(valid, stamp(unit)).bits());
            medium.flush(core::slice::from_ref(commit_word));
        }
        let _ = medium.fence();
        Ok(())
    }
}
