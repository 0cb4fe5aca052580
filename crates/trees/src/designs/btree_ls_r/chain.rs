//! The contents of a chain: the base with all deltas applied.

use super::record::{self, Base};
use super::table::{ChainSize, ITEMS_MAX, Row};
use crate::fingerprint;
use crate::key::Key;
use crate::leaf_table::{Contents, EntryChange};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// Returns the fingerprint of a key.
pub(super) fn fingerprint_of<K: Key>(key: &K::Owned) -> u8 {
    fingerprint::of(K::hash(K::borrow(key)))
}

impl<K: Key> Contents<K> {
    /// Applies `deltas` to `base`. A writer may run at the same time; the caller validates.
    pub(super) fn read<M: Medium>(
        pool: &Pool<M>,
        base: &Base<'_>,
        deltas: impl Iterator<Item = PmPtr>,
    ) -> Result<Self, Corrupt> {
        let items = (0..base.items).map(|at| base.item(pool.medium(), at));
        let mut contents = Self::of_items(pool, items)?;
        for at in deltas {
            let change = record::delta(pool, at)?;
            contents.apply(K::read_entry(pool, change.entry)?, change);
        }
        Ok(contents)
    }

    /// Returns the fingerprints of the keys.
    pub(super) fn fingerprints(&self) -> impl Iterator<Item = u8> {
        self.pairs.iter().map(|(key, _)| fingerprint_of::<K>(key))
    }
}

impl Row<'_> {
    /// Returns the base of the chain.
    #[inline(always)]
    pub(super) fn base_in<M: Medium>(self, pool: &Pool<M>) -> Result<Base<'_>, Corrupt> {
        Base::new(pool, self.base::<M>(), self.size::<M>().items())
    }

    /// Returns the contents of the chain. A writer may run at the same time; the caller validates.
    pub(super) fn contents<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
    ) -> Result<Contents<K>, Corrupt> {
        self.prefetch_all(pool);
        Contents::read(pool, &self.base_in(pool)?, self.deltas::<M>())
    }

    /// Prefetches all records of the chain.
    fn prefetch_all<M: Medium>(self, pool: &Pool<M>) {
        if let Ok(base) = self.base_in(pool) {
            base.prefetch(pool.medium());
        }
        for delta in self.deltas::<M>() {
            if let Ok(words) = pool.words(delta, LINE_WORDS) {
                pool.medium().prefetch(words);
            }
        }
    }

    /// Returns a bit mask of the deltas that may be about a key with this fingerprint.
    #[inline(always)]
    fn matching_deltas<M: Medium>(self, size: ChainSize, fingerprint: u8) -> u64 {
        let matches = fingerprint::matches::<2>([self.fingerprints::<M>(), 0], fingerprint);
        matches & ((1 << size.deltas()) - 1)
    }

    /// Returns a bit mask of the items that may have a key with this fingerprint.
    #[inline(always)]
    fn matching_items<M: Medium>(self, size: ChainSize, fingerprint: u8) -> u64 {
        let items = size.items().min(ITEMS_MAX);
        let mut matches = 0;
        for from in (0..items).step_by(16) {
            let fingerprints = [from, from + 8].map(|from| self.item_fingerprints::<M>(from));
            matches |= fingerprint::matches::<2>(fingerprints, fingerprint) << from;
        }
        matches & u64::MAX.checked_shr(64 - items as u32).unwrap_or(0)
    }

    /// Prefetches the records that [`find`](Self::find) will read.
    #[inline(always)]
    pub(super) fn prefetch<K: Key, M: Medium>(self, pool: &Pool<M>, key: K::Ref<'_>) {
        let (size, fingerprint) = (self.size::<M>(), fingerprint::of(K::hash(key)));
        // Uses the sizes read above: a concurrent writer may change the row's sizes meanwhile.
        if let Ok(base) = Base::new(pool, self.base::<M>(), size.items()) {
            for item in set_bits(self.matching_items::<M>(size, fingerprint)) {
                base.prefetch_item(pool.medium(), item);
            }
        }
        for delta in set_bits(self.matching_deltas::<M>(size, fingerprint)) {
            if let Ok(words) = pool.words(self.delta::<M>(delta), LINE_WORDS) {
                pool.medium().prefetch(words);
            }
        }
    }

    /// Returns the newest change of `key` in the chain; an item of the base counts as a put. A
    /// writer may run at the same time; the caller validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Option<EntryChange>, Corrupt> {
        let (size, fingerprint) = (self.size::<M>(), fingerprint::of(K::hash(key)));
        let mut deltas = self.matching_deltas::<M>(size, fingerprint);
        while deltas != 0 {
            let newest = deltas.ilog2();
            let change = record::delta(pool, self.delta::<M>(newest as usize))?;
            if K::order_entry(pool, change.entry, key)?.is_eq() {
                return Ok(Some(change));
            }
            deltas ^= 1 << newest;
        }
        let base = Base::new(pool, self.base::<M>(), size.items())?;
        for item in set_bits(self.matching_items::<M>(size, fingerprint)) {
            let entry = base.item(pool.medium(), item);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some(EntryChange { entry, is_removed: false }));
            }
        }
        Ok(None)
    }
}

/// Returns the indices of the set bits, in ascending order.
fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < 64).then_some(place)
    })
}
