//! The layout of a leaf: one media block of 256 B, unsorted, with fingerprints.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | state | commit | bits 0..13: entry i is valid; bits 16..64: the right neighbour |
//! | 1 | 8 | stamp | data | log entries of keys in its range, up to this stamp, are in the leaf |
//! | 2 | 16 | fingerprints | data | one byte for each entry |
//! | 4 | 8 | low | data | separator word of the low key; it never changes |
//! | 5 | 8 | | | zero |
//! | 6 | 208 | 13 entries | data | key word, value word |
//!
//! 1. A change stores entries, then fingerprints, then the state, then the stamp. Entry 0 shares a
//!    line with the header; the other entries are fenced before the state changes.
//! 2. An entry is aligned to 16 B, so it lies in one line.
//! 3. Every valid entry lies in the leaf's range, because the valid bits and the right neighbour
//!    are one word.

use crate::fingerprint;
use crate::key::{Entry, Key};
use crate::leaf::{TaggedEntry, slots};
use crate::sorting::sort_pairs;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The number of words of a leaf.
pub(super) const WORDS: usize = 32;
/// The number of bytes of a leaf.
pub(super) const BYTES: u64 = 8 * WORDS as u64;
/// The most entries of a leaf.
pub(super) const CAPACITY: usize = 13;

pub(super) const STATE: usize = 0;
pub(super) const STAMP: usize = 1;
const FINGERPRINTS: usize = 2;
const LOW: usize = 4;
const ENTRIES: usize = 6;

const ALL: u64 = (1 << CAPACITY) - 1;
const NEXT_SHIFT: u32 = 16;

/// The number of bits of a stamp. A log entry stores it in one word with the kind of the change and
/// the use number of its chunk.
pub(super) const STAMP_BITS: u32 = 47;
/// The greatest stamp that a file may contain: half of the range, because a reopened index counts
/// on from it. A leaf with a million writes a second reaches it after two years.
pub(super) const STAMP_MAX: u64 = (1 << (STAMP_BITS - 1)) - 1;
/// The stamp of the first leaf of an index in a pool that [is aged](Medium::is_aged).
pub(super) const STAMP_AGED: u64 = STAMP_MAX - (1 << 20);

const _: () = assert!(ENTRIES + 2 * CAPACITY == WORDS && CAPACITY <= 16);
const _: () = assert!(bristlecone_pmem::pool::POOL_BYTES_MAX < 1 << (64 - NEXT_SHIFT));

/// Returns the stamp that follows `stamp`.
pub(super) const fn after(stamp: u64) -> u64 {
    stamp + 1
}

/// Checks a stamp that was read from the pool.
pub(super) fn check_stamp(at: PmPtr, stamp: u64) -> Result<u64, Corrupt> {
    if stamp > STAMP_MAX {
        let (at, what) = (at.offset(), "stamp of a leaf out of range");
        return Err(Corrupt { at, what, expected: STAMP_MAX, found: stamp });
    }
    Ok(stamp)
}

/// Returns the state word of a leaf with these valid entries and this right neighbour.
pub(super) const fn state(valid: u64, next: u64) -> u64 {
    next << NEXT_SHIFT | valid
}

/// Returns the index of the line that contains entry `slot`.
pub(super) const fn line_of(slot: usize) -> usize {
    (ENTRIES + 2 * slot) / LINE_WORDS
}

/// A view of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeafView<'a> {
    pub(super) at: PmPtr,
    pub(super) words: &'a [PmWord],
}

impl<'a> LeafView<'a> {
    #[inline(always)]
    pub(super) fn new<M: Medium>(pool: &'a Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        Ok(Self { at, words: pool.block(at, WORDS)? })
    }

    /// Returns the valid entries as a bit mask.
    #[inline(always)]
    pub(super) fn valid<M: Medium>(&self, medium: &M) -> u64 {
        medium.load(&self.words[STATE]) & ALL
    }

    pub(super) fn next<M: Medium>(&self, medium: &M) -> PmPtr {
        PmPtr::new(medium.load(&self.words[STATE]) >> NEXT_SHIFT)
    }

    pub(super) fn stamp<M: Medium>(&self, medium: &M) -> u64 {
        medium.load(&self.words[STAMP])
    }

    pub(super) fn low<M: Medium>(&self, medium: &M) -> u64 {
        medium.load(&self.words[LOW])
    }

    #[inline(always)]
    pub(super) fn entry<M: Medium>(&self, medium: &M, slot: usize) -> Entry {
        let [key, value] = self.entry_words(slot);
        Entry::plain(medium.load(key), medium.load(value))
    }

    #[inline(always)]
    pub(super) fn entry_words(&self, slot: usize) -> [&'a PmWord; 2] {
        let at = ENTRIES + 2 * slot;
        [&self.words[at], &self.words[at + 1]]
    }

    /// Returns the words of a line.
    pub(super) fn line(&self, line: usize) -> &'a [PmWord] {
        &self.words[line * LINE_WORDS..(line + 1) * LINE_WORDS]
    }

    /// Returns the slot and the entry of `key`. A writer may run at the same time; the caller
    /// validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Entry)>, Corrupt> {
        let medium = pool.medium();
        let fingerprints =
            [medium.load(&self.words[FINGERPRINTS]), medium.load(&self.words[FINGERPRINTS + 1])];
        let fingerprint = fingerprint::of(K::hash(key));
        for slot in slots(fingerprint::matches::<2>(fingerprints, fingerprint) & self.valid(medium))
        {
            let entry = self.entry(medium, slot);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some((slot, entry)));
            }
        }
        Ok(None)
    }

    /// Prefetches the key records that [`find`](Self::find) will read.
    pub(super) fn prefetch_candidates<K: Key, M: Medium>(&self, pool: &Pool<M>, key: K::Ref<'_>) {
        let medium = pool.medium();
        let fingerprints =
            [medium.load(&self.words[FINGERPRINTS]), medium.load(&self.words[FINGERPRINTS + 1])];
        let fingerprint = fingerprint::of(K::hash(key));
        for slot in slots(fingerprint::matches::<2>(fingerprints, fingerprint) & self.valid(medium))
        {
            K::prefetch_entry(pool, self.entry(medium, slot));
        }
    }

    /// Returns the valid entries with their keys, in key order. A writer may run at the same time.
    pub(super) fn sorted<K: Key, M: Medium>(
        &self,
        pool: &Pool<M>,
    ) -> Result<Vec<(K::Owned, Entry)>, Corrupt> {
        let mut entries = Vec::with_capacity(CAPACITY + 1);
        for slot in slots(self.valid(pool.medium())) {
            let entry = self.entry(pool.medium(), slot);
            entries.push((K::read_entry(pool, entry)?, entry));
        }
        sort_pairs(&mut entries);
        Ok(entries)
    }

    /// Stores the fingerprint of an entry without a flush: it shares the line of the state.
    pub(super) fn set_fingerprint<M: Medium>(&self, medium: &M, slot: usize, fingerprint: u8) {
        let shift = 8 * (slot % 8);
        let word = &self.words[FINGERPRINTS + slot / 8];
        medium.store(word, medium.load(word) & !(0xff << shift) | u64::from(fingerprint) << shift);
    }
}

/// Returns the bytes of a leaf with `entries`, at most [`CAPACITY`].
pub(super) fn image(low: u64, next: u64, stamp: u64, entries: &[TaggedEntry]) -> Vec<u8> {
    let mut words = [0u64; WORDS];
    words[STATE] = state((1 << entries.len()) - 1, next);
    words[STAMP] = stamp;
    words[LOW] = low;
    for (slot, &TaggedEntry { entry, fingerprint }) in entries.iter().enumerate() {
        words[FINGERPRINTS + slot / 8] |= u64::from(fingerprint) << (8 * (slot % 8));
        words[ENTRIES + 2 * slot] = entry.key;
        words[ENTRIES + 2 * slot + 1] = entry.value;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
