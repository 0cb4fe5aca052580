//! Splits: a new right leaf takes the upper half of the entries.

use super::UnitTreeIndex;
use super::rows::UnitRow;
use super::unit::{UnitLeaf, UnitWord};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Key};
use bristlecone_pmem::sync::{Exclusive, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError};

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Settles a latched leaf that has no slot for a new key, and splits it if removes have made
    /// none. Durable on return.
    #[cold]
    pub(super) fn split(
        &self,
        (row, _held): (UnitRow<'_>, Exclusive<OnDram<'_, M>>),
        leaf: UnitLeaf<'_, BYTES>,
    ) -> Result<(), TreeError> {
        self.settle_leaf(row, leaf)?;
        if leaf.used(self.pool.medium()) < UnitLeaf::<BYTES>::CAPACITY {
            return Ok(());
        }
        self.cut(row, leaf)
    }

    /// Moves the upper half of the entries of a latched leaf, to which all of its records have
    /// settled, to a new right leaf. Durable on return.
    ///
    /// ```text
    /// N right leaf, low key |    its stamps are the version of the leaf: no record that there is
    ///                            counts in it
    /// C next, F its line |       crash before C: the right leaf is unreachable, free
    /// W commit words without the moved entries, F their lines |
    ///         -> durable         crash before: recovery removes what is not below the low key of
    ///                            the right leaf      budget: lines of a leaf + 5, 3 fences
    /// ```
    fn cut(&self, row: UnitRow<'_>, leaf: UnitLeaf<'_, BYTES>) -> Result<(), TreeError> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let pairs = leaf.sorted::<K, M>(pool)?;
        let (kept, moved) = pairs.split_at(pairs.len() / 2);
        let separator = K::between(pool, kept[kept.len() - 1].1, K::borrow(&moved[0].0))?;
        let mut valid = leaf.unit_words(medium).map(UnitWord::valid);
        for (place, entry) in leaf.entries(medium) {
            if K::order_entry(pool, entry, K::borrow(&separator))?.is_ge() {
                valid[place.unit] &= !(1 << place.slot);
            }
        }
        let next = leaf.next(medium)?;
        let word = K::store_separator(pool, K::borrow(&separator))?;
        let free_separator = |_: &PoolError| key::free_separator::<K, M>(pool, word);
        let at = pool.reserve(BYTES as u64).inspect_err(free_separator)?;
        let right = UnitLeaf::<BYTES>::new(pool, at)?;
        let hashed = moved.iter().map(|(key, entry)| (*entry, K::hash(K::borrow(key))));
        let version = row.version::<M>();
        let spilled = right.format(medium, (word, next, version), hashed);
        let _ = medium.fence();
        leaf.set_next(medium, at);
        let _ = medium.fence();
        for (unit, valid) in valid.into_iter().enumerate() {
            let (word, commit_word) = (leaf.word(medium, unit), leaf.commit_word(unit));
            medium.store(commit_word, UnitWord::new(valid, word.stamp()).bits());
            medium.flush(core::slice::from_ref(commit_word));
        }
        let _ = medium.fence();
        let number = self.rows.take::<M>(at, version, spilled);
        self.inner.post::<K>(pool, K::borrow(&separator), word, PmPtr::new(number as u64))?;
        Ok(())
    }
}
