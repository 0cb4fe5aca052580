//! FPTree's leaf with the published persist orders: an insert and an update fence three times.
//!
//! The layout is that of [`FingerprintBitmap`].

use super::{FingerprintBitmap, InsertResult, Leaf, TaggedEntry};
use crate::fingerprint;
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};

/// The published FPTree leaf of `NODE` bytes.
#[derive(Debug)]
pub struct Published<const NODE: usize>;

impl<const NODE: usize> Published<NODE> {
    /// Returns the lowest free slot, or `None` in a full leaf.
    #[inline(always)]
    fn free_slot(bitmap: u64) -> Option<usize> {
        let slot = bitmap.trailing_ones() as usize;
        (slot < Self::CAPACITY).then_some(slot)
    }

    /// Writes an entry into the free `slot`, then its fingerprint, then the bitmap `bitmap`.
    /// Durable on return.
    ///
    /// ```text
    /// W entry[slot]             1 line     crash before C: the entry is invisible
    /// F entry[slot] |
    /// W fingerprint[slot]       1 B
    /// F its line |
    /// C bitmap                  8 B
    /// F its line |              -> durable  budget: 3 lines, 3 fences
    /// ```
    #[inline(always)]
    fn write_entry<M: Medium>(
        medium: &M,
        words: &[PmWord],
        (slot, TaggedEntry { entry, fingerprint }): (usize, TaggedEntry),
        bitmap: u64,
    ) -> Fenced {
        let target = FingerprintBitmap::<NODE>::entry_words(words, slot);
        medium.store(&target[0], entry.key);
        medium.store(&target[1], entry.value);
        let _ = medium.persist(target);
        FingerprintBitmap::<NODE>::set_fingerprint(medium, words, slot, fingerprint);
        let fenced = medium.persist(&words[slot / 8..=slot / 8]);
        let commit = FingerprintBitmap::<NODE>::BITMAP;
        medium.commit(&words[commit], bitmap, fenced);
        medium.persist(&words[commit..=commit])
    }
}

impl<const NODE: usize> Leaf for Published<NODE> {
    const WORDS: usize = FingerprintBitmap::<NODE>::WORDS;
    const CAPACITY: usize = FingerprintBitmap::<NODE>::CAPACITY;
    const NEXT: usize = FingerprintBitmap::<NODE>::NEXT;
    const LOW: usize = FingerprintBitmap::<NODE>::LOW;
    const LATCH: usize = FingerprintBitmap::<NODE>::LATCH;
    const BITMAP: Option<usize> = Some(FingerprintBitmap::<NODE>::BITMAP);

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        FingerprintBitmap::<NODE>::format::<K, M>(pool, words, low, next, entries)
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        FingerprintBitmap::<NODE>::find::<K, M>(pool, words, key)
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        FingerprintBitmap::<NODE>::collect(medium, words, entries);
    }

    #[inline(always)]
    fn prefetch_candidates<K: Key, M: Medium>(pool: &Pool<M>, words: &[PmWord], key: K::Ref<'_>) {
        FingerprintBitmap::<NODE>::prefetch_candidates::<K, M>(pool, words, key);
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        FingerprintBitmap::<NODE>::count(medium, words)
    }

    /// The order is that of `write_entry`.
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let medium = pool.medium();
        let bitmap = FingerprintBitmap::<NODE>::bitmap(medium, words);
        let Some(slot) = Self::free_slot(bitmap) else { return Ok(InsertResult::Full) };
        let entry = Entry::plain(K::store_entry_key(pool, key, value.word)?, value.word);
        let tagged = TaggedEntry { entry, fingerprint: fingerprint::of(K::hash(key)) };
        let written = Self::write_entry(medium, words, (slot, tagged), bitmap | 1 << slot);
        Ok(InsertResult::Done(written))
    }

    /// The order is that of `write_entry`; one store of the bitmap sets the bit of the new entry
    /// and clears that of the old one.
    #[inline]
    fn update<M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let bitmap = FingerprintBitmap::<NODE>::bitmap(medium, words);
        let new = Self::free_slot(bitmap)?;
        let old = FingerprintBitmap::<NODE>::entry(medium, words, slot);
        let tagged = TaggedEntry {
            entry: Entry::plain(old.key, value.word),
            fingerprint: FingerprintBitmap::<NODE>::fingerprint(medium, words, slot),
        };
        let changed = (bitmap | 1 << new) & !(1 << slot);
        Some(Self::write_entry(medium, words, (new, tagged), changed))
    }

    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        FingerprintBitmap::<NODE>::remove(pool, words, slot)
    }

    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        FingerprintBitmap::<NODE>::retain(medium, words, keep)
    }

    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        FingerprintBitmap::<NODE>::absorb::<K, M>(pool, words, entries)
    }

    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        FingerprintBitmap::<NODE>::repair::<K, M>(pool, at, words)
    }
}
