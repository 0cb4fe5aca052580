//! A leaf as its chain has it: the base, and the deltas after it.

use super::record::{self, Base};
use super::table::{ITEMS_MAX, Row, Shape};
use crate::fingerprint;
use crate::key::{Entry, Key};
use crate::leaf_table::{EntryChange, KeyedEntries, misplaced};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// The fingerprint of a key.
pub(super) fn print<K: Key>(key: &K::Owned) -> u8 {
    fingerprint::of(K::hash(K::borrow(key)))
}

/// What a chain comes to.
#[derive(Debug)]
pub(super) struct Contents<K: Key> {
    pub(super) pairs: KeyedEntries<K>,
    /// Entries that the chain has and whose keys are gone: of each the last one.
    pub(super) gone: Vec<Entry>,
}

impl<K: Key> Contents<K> {
    /// What a base and the deltas after it come to. May run while a writer writes.
    pub(super) fn read<M: Medium>(
        pool: &Pool<M>,
        base: &Base<'_>,
        deltas: impl Iterator<Item = PmPtr>,
    ) -> Result<Self, Corrupt> {
        let mut pairs = Vec::with_capacity(base.items + 2);
        for at in 0..base.items {
            let entry = base.item(pool.medium(), at);
            pairs.push((K::read_entry(pool, entry)?, entry));
        }
        let mut contents = Self { pairs, gone: Vec::new() };
        for at in deltas {
            let change = record::delta(pool, at)?;
            contents.apply(K::read_entry(pool, change.entry)?, change);
        }
        Ok(contents)
    }

    /// The fingerprints of the keys.
    pub(super) fn prints(&self) -> impl Iterator<Item = u8> {
        self.pairs.iter().map(|(key, _)| print::<K>(key))
    }

    /// Makes a change.
    pub(super) fn apply(&mut self, key: K::Owned, change: EntryChange) {
        match (self.pairs.binary_search_by(|(other, _)| other.cmp(&key)), change.is_removed) {
            (Ok(at), false) => self.pairs[at].1 = change.entry,
            (Err(at), false) => {
                self.gone.retain(|gone| gone.key != change.entry.key);
                self.pairs.insert(at, (key, change.entry));
            }
            (Ok(at), true) => {
                self.pairs.remove(at);
                self.gone.push(change.entry);
            }
            (Err(_), true) => {}
        }
    }

    /// All entries that the chain keeps alive.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.pairs.iter().map(|(_, entry)| *entry).chain(self.gone.iter().copied())
    }

    /// Whether pairs lie in the range of their leaf, in strict order.
    pub(super) fn check(
        &self,
        at: PmPtr,
        low: &K::Owned,
        high: Option<&K::Owned>,
    ) -> Result<(), Corrupt> {
        let Some(entry) = misplaced::<K>(&self.pairs, low, high) else { return Ok(()) };
        let what = "an entry outside its leaf's range, or out of order";
        Err(Corrupt { at: at.offset(), what, expected: 0, found: entry.key })
    }
}

impl Row<'_> {
    /// The base of the chain.
    #[inline(always)]
    pub(super) fn base_in<M: Medium>(self, pool: &Pool<M>) -> Result<Base<'_>, Corrupt> {
        Base::new(pool, self.base::<M>(), self.shape::<M>().items())
    }

    /// What the chain comes to. May run while a writer writes.
    pub(super) fn contents<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
    ) -> Result<Contents<K>, Corrupt> {
        self.prefetch_all(pool);
        Contents::read(pool, &self.base_in(pool)?, self.deltas::<M>())
    }

    /// Asks for all records of the chain to be brought near.
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

    /// The deltas that may be about a key of that fingerprint, a bit each.
    #[inline(always)]
    fn deltas_like<M: Medium>(self, shape: Shape, print: u8) -> u64 {
        let matches = fingerprint::matches::<2>([self.prints::<M>(), 0], print);
        matches & ((1 << shape.deltas()) - 1)
    }

    /// The items of the base that may have a key of that fingerprint, a bit each.
    #[inline(always)]
    fn items_like<M: Medium>(self, shape: Shape, print: u8) -> u64 {
        let items = shape.items().min(ITEMS_MAX);
        let mut matches = 0;
        for from in (0..items).step_by(16) {
            let prints = [from, from + 8].map(|from| self.item_prints::<M>(from));
            matches |= fingerprint::matches::<2>(prints, print) << from;
        }
        matches & u64::MAX.checked_shr(64 - items as u32).unwrap_or(0)
    }

    /// Asks for what [`find`](Self::find) reads to be brought near.
    #[inline(always)]
    pub(super) fn prefetch<K: Key, M: Medium>(self, pool: &Pool<M>, key: K::Ref<'_>) {
        let (shape, print) = (self.shape::<M>(), fingerprint::of(K::hash(key)));
        // Of the same shape as the fingerprints: a writer may give the row another one meanwhile.
        if let Ok(base) = Base::new(pool, self.base::<M>(), shape.items()) {
            for item in places(self.items_like::<M>(shape, print)) {
                base.prefetch_item(pool.medium(), item);
            }
        }
        for delta in places(self.deltas_like::<M>(shape, print)) {
            if let Ok(words) = pool.words(self.delta::<M>(delta), LINE_WORDS) {
                pool.medium().prefetch(words);
            }
        }
    }

    /// The newest change of `key` that the chain has: of what is in the base, the entry. May run while a
    /// writer writes: the caller validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Option<EntryChange>, Corrupt> {
        let (shape, print) = (self.shape::<M>(), fingerprint::of(K::hash(key)));
        let mut deltas = self.deltas_like::<M>(shape, print);
        while deltas != 0 {
            let newest = deltas.ilog2();
            let change = record::delta(pool, self.delta::<M>(newest as usize))?;
            if K::order_entry(pool, change.entry, key)?.is_eq() {
                return Ok(Some(change));
            }
            deltas ^= 1 << newest;
        }
        let base = Base::new(pool, self.base::<M>(), shape.items())?;
        for item in places(self.items_like::<M>(shape, print)) {
            let entry = base.item(pool.medium(), item);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some(EntryChange { entry, is_removed: false }));
            }
        }
        Ok(None)
    }
}

/// The places of the bits that are set, from the lowest.
fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < 64).then_some(place)
    })
}
