//! The parts that leaves with a bitmap and a slot array share: the fields and how they are read.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bitmap | commit | bit i: entry i is valid |
//! | 1 | 8 | next | commit | the right neighbour |
//! | 2 | 8 | low | data | separator word of the low key |
//! | 3 | 8 | latch | transient | version |
//! | (4) | 8 | bitmap, second word | commit | bit i: entry 64 + i is valid; only above 64 entries |
//! | A.. | `PREFIX` + n | slot array | hint | the prefix; indices of entries in key order |
//! | E.. | 16 n | entries | data | key word, value word |
//!
//! A is 4, or 5 after a second bitmap word. The layout defines the prefix. E is the first even word
//! after the slot array.
//!
//! 1. An entry is valid if and only if its bit is set, so the number of slots in use is the number
//!    of set bits. A reader follows an index only if its bit is set. So a torn or damaged array
//!    leads neither to an invalid entry nor out of the leaf.
//! 2. The slot array can be rebuilt from the bitmap and the entries, so recovery never relies on
//!    it.
//! 3. Both bitmap words lie in the first line of the leaf. An insert or a remove changes one of
//!    them. A change of both adds or drops only entries that the right neighbour's low key hides.

mod order;

pub(super) use order::{insert_slot, ordered, retain_slots};

use super::TaggedEntry;
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool};
use core::cmp::Ordering;

/// The index of the first bitmap word.
pub(super) const BITMAP: usize = 0;
/// The index of the word that names the right neighbour.
pub(super) const NEXT: usize = 1;
/// The index of the word of the low key.
pub(super) const LOW: usize = 2;
/// The index of the latch word.
pub(super) const LATCH: usize = 3;
/// The index of the second bitmap word, in leaves of more than 64 entries.
const BITMAP_HIGH: usize = 4;
const BITS_MAX: usize = 128;

/// The bytes of a slot array, large enough for every leaf size.
pub(super) type Array = [u8; BITS_MAX + 8];

/// Returns the number of entries, the first word of the array and the first word of the entries, in
/// a leaf of `bytes` bytes.
const fn geometry(bytes: usize, prefix: usize) -> (usize, usize, usize) {
    let mut capacity = BITS_MAX;
    loop {
        let array = if capacity > 64 { BITMAP_HIGH + 1 } else { BITMAP_HIGH };
        let entries = (array + (prefix + capacity).div_ceil(8)).next_multiple_of(2);
        if entries + 2 * capacity <= bytes / 8 {
            return (capacity, array, entries);
        }
        capacity -= 1;
    }
}

/// Yields the indices of the set bits, from the lowest.
#[inline(always)]
pub(super) fn indices(mut bits: u128) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (index < BITS_MAX).then_some(index)
    })
}

/// The result of a search in a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlottedSearch {
    /// The number of entries that precede the key.
    pub(super) rank: usize,
    /// The index of the key's entry and its value; `None` if the key is absent.
    pub(super) found: Option<(usize, Value)>,
}

/// A view of a leaf of `NODE` bytes whose slots begin at byte `PREFIX` of the slot array.
#[derive(Debug)]
pub(super) struct SlottedLeaf<'p, M, const NODE: usize, const PREFIX: usize> {
    pub(super) medium: &'p M,
    pub(super) words: &'p [PmWord],
}

impl<M, const NODE: usize, const PREFIX: usize> Clone for SlottedLeaf<'_, M, NODE, PREFIX> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const NODE: usize, const PREFIX: usize> Copy for SlottedLeaf<'_, M, NODE, PREFIX> {}

/// The sizes and positions of the fields, computed from `NODE` and `PREFIX`.
#[derive(Debug)]
pub(super) struct Geometry<const NODE: usize, const PREFIX: usize>;

impl<const NODE: usize, const PREFIX: usize> Geometry<NODE, PREFIX> {
    const GEOMETRY: (usize, usize, usize) = geometry(NODE, PREFIX);
    /// The maximum number of entries.
    pub(super) const CAPACITY: usize = {
        assert!(NODE.is_multiple_of(64) && Self::GEOMETRY.0 >= 4);
        Self::GEOMETRY.0
    };
    /// The index of the slot array's first word.
    pub(super) const ARRAY: usize = Self::GEOMETRY.1;
    /// The index of the first entry's first word.
    pub(super) const ENTRIES: usize = Self::GEOMETRY.2;
    const ARRAY_WORDS: usize = (PREFIX + Self::CAPACITY).div_ceil(8);
    const ALL: u128 = u128::MAX >> (BITS_MAX - Self::CAPACITY);
}

impl<'p, M: Medium, const NODE: usize, const PREFIX: usize> SlottedLeaf<'p, M, NODE, PREFIX> {
    const CAPACITY: usize = Geometry::<NODE, PREFIX>::CAPACITY;
    const ARRAY: usize = Geometry::<NODE, PREFIX>::ARRAY;
    const ENTRIES: usize = Geometry::<NODE, PREFIX>::ENTRIES;
    const ARRAY_WORDS: usize = Geometry::<NODE, PREFIX>::ARRAY_WORDS;
    const ALL: u128 = Geometry::<NODE, PREFIX>::ALL;

    #[inline(always)]
    pub(super) fn new(medium: &'p M, words: &'p [PmWord]) -> Self {
        Self { medium, words }
    }

    /// Returns the bitmap as stored, including bits beyond the last entry.
    #[inline(always)]
    fn raw_bitmap(self) -> u128 {
        let low = u128::from(self.medium.load(&self.words[BITMAP]));
        if Self::CAPACITY <= 64 {
            return low;
        }
        low | u128::from(self.medium.load(&self.words[BITMAP_HIGH])) << 64
    }

    /// Returns the valid entries, as bits.
    #[inline(always)]
    pub(super) fn bitmap(self) -> u128 {
        self.raw_bitmap() & Self::ALL
    }

    /// Checks that no bit beyond the last entry is set.
    pub(super) fn check_bitmap(self, at: u64) -> Result<(), Corrupt> {
        let (found, what) = (self.raw_bitmap(), "bitmap of a leaf with bits beyond the last entry");
        if found & !Self::ALL == 0 {
            return Ok(());
        }
        Err(Corrupt { at, what, expected: Self::ALL as u64, found: found as u64 })
    }

    /// Returns the lowest free index; `None` if the leaf is full.
    #[inline(always)]
    pub(super) fn first_free(bitmap: u128) -> Option<usize> {
        let index = bitmap.trailing_ones() as usize;
        (index < Self::CAPACITY).then_some(index)
    }

    /// Yields the free indices, from the lowest.
    pub(super) fn all_free(bitmap: u128) -> impl Iterator<Item = usize> {
        indices(!bitmap & Self::ALL)
    }

    /// Returns the bitmap word that holds the bit of `index`, and the value of that word in
    /// `bitmap`.
    #[inline(always)]
    pub(super) fn bitmap_word(self, bitmap: u128, index: usize) -> (&'p PmWord, u64) {
        if index < 64 {
            (&self.words[BITMAP], bitmap as u64)
        } else {
            (&self.words[BITMAP_HIGH], (bitmap >> 64) as u64)
        }
    }

    /// Stores the words of `bitmap` that differ from the stored ones.
    fn store_bitmap(self, bitmap: u128) {
        let changed = self.bitmap() ^ bitmap;
        for index in [0, 64] {
            if changed >> index & u128::from(u64::MAX) != 0 {
                let (word, value) = self.bitmap_word(bitmap, index);
                self.medium.store(word, value);
            }
        }
    }

    /// Commits `bitmap`, whose new entries the right neighbour's low key hides, and flushes the
    /// header up to the word `last`. Durable on return. `_published` proves that the entries were
    /// fenced.
    pub(super) fn commit_all(self, bitmap: u128, last: usize, _published: Fenced) -> Fenced {
        self.drop_all(bitmap, last)
    }

    /// Commits `bitmap`, which lacks only entries that the right neighbour's low key hides, and
    /// flushes the header up to the word `last`. Durable on return.
    pub(super) fn drop_all(self, bitmap: u128, last: usize) -> Fenced {
        self.store_bitmap(bitmap);
        self.medium.persist(&self.words[BITMAP..=last])
    }

    #[inline(always)]
    pub(super) fn entry(self, index: usize) -> Entry {
        let words = self.entry_words(index);
        Entry::plain(self.medium.load(&words[0]), self.medium.load(&words[1]))
    }

    /// Returns the two words of an entry: key word, value word.
    #[inline(always)]
    pub(super) fn entry_words(self, index: usize) -> &'p [PmWord; 2] {
        let words = self.words[Self::ENTRIES + 2 * index..].first_chunk();
        words.expect("an entry is two words within the leaf")
    }

    #[inline(always)]
    pub(super) fn store_entry(self, index: usize, entry: Entry) {
        let words = self.entry_words(index);
        self.medium.store(&words[0], entry.key);
        self.medium.store(&words[1], entry.value);
    }

    /// Replaces the value of an entry. One word changes, so its store is the commit. Durable on
    /// return.
    #[inline]
    pub(super) fn update(self, index: usize, value: Value) -> Fenced {
        let words = self.entry_words(index);
        self.medium.store(&words[1], value.word);
        self.medium.persist(words)
    }

    /// Stores entries in free slots and flushes them. Returns them with their indices, in the order
    /// of `entries`.
    ///
    /// ```text
    /// W entries    crash: no bit is set for them
    /// F entries
    /// ```
    pub(super) fn write_free_slots(
        self,
        bitmap: u128,
        entries: &[TaggedEntry],
    ) -> Vec<(usize, Entry)> {
        let written = Self::all_free(bitmap).zip(entries.iter().map(|tagged| tagged.entry));
        let written: Vec<_> = written.collect();
        debug_assert_eq!(written.len(), entries.len());
        for &(index, entry) in &written {
            self.store_entry(index, entry);
            self.medium.flush(self.entry_words(index));
        }
        written
    }

    /// Returns the first word of the slot array.
    #[inline(always)]
    pub(super) fn array_word(self) -> &'p PmWord {
        &self.words[Self::ARRAY]
    }

    #[inline(always)]
    pub(super) fn byte(self, at: usize) -> u8 {
        (self.medium.load(&self.words[Self::ARRAY + at / 8]) >> (8 * (at % 8))) as u8
    }

    pub(super) fn array(self) -> Array {
        let mut array = [0; BITS_MAX + 8];
        let words = &self.words[Self::ARRAY..Self::ARRAY + Self::ARRAY_WORDS];
        for (bytes, word) in array.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&self.medium.load(word).to_le_bytes());
        }
        array
    }

    /// Stores, with `store`, the words of `array` that differ from `old`, the stored array. Returns
    /// the index of the last word stored, or `BITMAP` if none differs.
    #[inline]
    pub(super) fn store_array(
        self,
        old: &Array,
        array: &Array,
        store: impl Fn(&M, &PmWord, u64),
    ) -> usize {
        let mut last = BITMAP;
        let pairs = old.chunks_exact(8).zip(array.chunks_exact(8));
        for (at, (old, new)) in pairs.take(Self::ARRAY_WORDS).enumerate() {
            if old != new {
                last = Self::ARRAY + at;
                let value = new.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
                store(self.medium, &self.words[last], value);
            }
        }
        last
    }

    /// Returns the index of the entry of that rank. An index whose bit in `bitmap` is clear is
    /// damage, or a concurrent writer's change.
    #[inline(always)]
    fn index_of_rank(self, pool: &Pool<M>, bitmap: u128, rank: usize) -> Result<usize, Corrupt> {
        let index = usize::from(self.byte(PREFIX + rank));
        if index < Self::CAPACITY && bitmap >> index & 1 == 1 {
            return Ok(index);
        }
        let (at, what) =
            (pool.offset_of(self.array_word()).offset(), "slot that names no valid entry");
        Err(Corrupt { at, what, expected: bitmap as u64, found: index as u64 })
    }

    /// Searches the first `count` slots for `key`, by bisection.
    #[inline(always)]
    pub(super) fn search<K: Key>(
        self,
        pool: &Pool<M>,
        count: usize,
        key: K::Ref<'_>,
    ) -> Result<SlottedSearch, Corrupt> {
        let bitmap = self.bitmap();
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            let index = self.index_of_rank(pool, bitmap, middle)?;
            let entry = self.entry(index);
            match K::order_entry(pool, entry, key)? {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    let found = Some((index, entry.held_value()));
                    return Ok(SlottedSearch { rank: middle, found });
                }
            }
        }
        Ok(SlottedSearch { rank: low, found: None })
    }

    /// Yields the entries whose bits are set in `bitmap`, with their indices.
    pub(super) fn entries(self, bitmap: u128) -> impl Iterator<Item = (usize, Entry)> {
        indices(bitmap).map(move |index| (index, self.entry(index)))
    }

    /// Yields the valid entries as tagged entries, without a fingerprint.
    pub(super) fn tagged_entries(self) -> impl Iterator<Item = TaggedEntry> {
        self.entries(self.bitmap()).map(|(_, entry)| TaggedEntry { entry, fingerprint: 0 })
    }

    /// Returns the entries of `bitmap` that `keep` accepts, as bits.
    pub(super) fn kept(
        self,
        bitmap: u128,
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<u128, Corrupt> {
        let mut kept = bitmap;
        for (index, entry) in self.entries(bitmap) {
            if !keep(entry)? {
                kept &= !(1 << index);
            }
        }
        Ok(kept)
    }

    /// Commits the bitmap word that holds the bit of `index`. Durable on return.
    #[inline(always)]
    pub(super) fn commit(self, bitmap: u128, index: usize, fenced: Fenced) -> Fenced {
        let (word, value) = self.bitmap_word(bitmap, index);
        self.medium.commit(word, value, fenced);
        self.medium.persist(core::slice::from_ref(word))
    }

    /// Fills a fresh block with a leaf of `entries`, which are in key order and take the first
    /// slots. `prefix` is the part of the slot array before the slots. Durable after the next
    /// fence.
    pub(super) fn fill(self, low: u64, next: u64, prefix: [u8; PREFIX], entries: &[Entry]) {
        let count = entries.len();
        assert!(count <= Self::CAPACITY);
        let mut image = vec![0u64; Self::ENTRIES + 2 * count];
        let bitmap = u128::MAX.checked_shr((BITS_MAX - count) as u32).unwrap_or(0);
        image[BITMAP] = bitmap as u64;
        if Self::CAPACITY > 64 {
            image[BITMAP_HIGH] = (bitmap >> 64) as u64;
        }
        image[NEXT] = next;
        image[LOW] = low;
        for (at, byte) in prefix.into_iter().chain(0..count as u8).enumerate() {
            image[Self::ARRAY + at / 8] |= u64::from(byte) << (8 * (at % 8));
        }
        for (pair, entry) in image[Self::ENTRIES..].chunks_exact_mut(2).zip(entries) {
            pair.copy_from_slice(&[entry.key, entry.value]);
        }
        let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.medium.fill(self.words, &bytes);
    }
}

#[cfg(test)]
mod tests;
