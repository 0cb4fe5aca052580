//! What leaves with a bitmap and a slot array have in common: where things lie, and how they are read.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bitmap | commit | bit i: entry i is there |
//! | 1 | 8 | next | commit | the leaf to the right |
//! | 2 | 8 | low | data | separator word of the low key |
//! | 3 | 8 | latch | transient | version |
//! | (4) | 8 | bitmap, second word | commit | bit i: entry 64 + i is there; only in leaves of more than 64 entries |
//! | A.. | `PREFIX` + n | slot array | hint | what the layout puts first; then the indices of the entries in key order |
//! | E.. | 16 n | entries | data | key word, value word; E is even |
//!
//! A is 4, or 5 behind a second word of the bitmap; E is what the array leaves, made even.
//!
//! 1. An entry is there if its bit is set, and at no other time: how many slots count is how many bits
//!    are set. An index is followed only if its bit is set, so a torn or damaged array leads to no
//!    foreign entry, and out of no leaf.
//! 2. The array can be made again from the bitmap and the entries, so recovery never believes it.
//! 3. Both words of the bitmap are in the first line of the leaf. An insert or a remove changes one of
//!    them; whatever changes both changes entries that the right neighbour's low key hides.

mod order;

pub(super) use order::{keep, ordered, put};

use super::TaggedEntry;
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool};
use core::cmp::Ordering;

/// The first word of the bitmap.
pub(super) const BITMAP: usize = 0;
/// The word that names the right neighbour.
pub(super) const NEXT: usize = 1;
/// The word of the low key.
pub(super) const LOW: usize = 2;
/// The word of the latch.
pub(super) const LATCH: usize = 3;
/// The second word of the bitmap, where there is one.
const BITMAP_MORE: usize = 4;
const BITS_MAX: usize = 128;

/// The bytes of a slot array, with room for the largest.
pub(super) type Array = [u8; BITS_MAX + 8];

/// Entries, the array's first word, and the entries' first word, of a leaf of `bytes`.
const fn shape(bytes: usize, prefix: usize) -> (usize, usize, usize) {
    let mut capacity = BITS_MAX;
    loop {
        let array = if capacity > 64 { BITMAP_MORE + 1 } else { BITMAP_MORE };
        let entries = (array + (prefix + capacity).div_ceil(8)).next_multiple_of(2);
        if entries + 2 * capacity <= bytes / 8 {
            return (capacity, array, entries);
        }
        capacity -= 1;
    }
}

/// The indices whose bits are set, from the lowest.
#[inline(always)]
pub(super) fn indices(mut bits: u128) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (index < BITS_MAX).then_some(index)
    })
}

/// What a search came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlottedSearch {
    /// How many entries precede the key.
    pub(super) rank: usize,
    /// The key's entry and its value, if it is there.
    pub(super) found: Option<(usize, Value)>,
}

/// The leaf of `NODE` bytes whose slots begin at byte `PREFIX` of their array.
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

/// The numbers of a layout.
#[derive(Debug)]
pub(super) struct Geometry<const NODE: usize, const PREFIX: usize>;

impl<const NODE: usize, const PREFIX: usize> Geometry<NODE, PREFIX> {
    const SHAPE: (usize, usize, usize) = shape(NODE, PREFIX);
    /// The most entries.
    pub(super) const CAPACITY: usize = {
        assert!(NODE.is_multiple_of(64) && Self::SHAPE.0 >= 4);
        Self::SHAPE.0
    };
    /// The first word of the slot array.
    pub(super) const ARRAY: usize = Self::SHAPE.1;
    /// The first word of the first entry.
    pub(super) const ENTRIES: usize = Self::SHAPE.2;
    /// Words of the slot array.
    const ARRAY_WORDS: usize = (PREFIX + Self::CAPACITY).div_ceil(8);
    /// Lines that hold the header and the slot array.
    pub(super) const HEADER_LINES: u32 =
        (Self::ARRAY + Self::ARRAY_WORDS).div_ceil(bristlecone_pmem::line::LINE_WORDS) as u32;
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

    /// The bits as they are, of entries that no leaf has included.
    #[inline(always)]
    fn raw_bitmap(self) -> u128 {
        let low = u128::from(self.medium.load(&self.words[BITMAP]));
        if Self::CAPACITY <= 64 {
            return low;
        }
        low | u128::from(self.medium.load(&self.words[BITMAP_MORE])) << 64
    }

    /// Which entries are there.
    #[inline(always)]
    pub(super) fn bitmap(self) -> u128 {
        self.raw_bitmap() & Self::ALL
    }

    /// Checks that no bit is set that has no entry.
    pub(super) fn check_bitmap(self, at: u64) -> Result<(), Corrupt> {
        let (found, what) = (self.raw_bitmap(), "bitmap of a leaf names entries that it has not");
        if found & !Self::ALL == 0 {
            return Ok(());
        }
        Err(Corrupt { at, what, expected: Self::ALL as u64, found: found as u64 })
    }

    /// The lowest index that is free; `None` if there is none.
    #[inline(always)]
    pub(super) fn free(bitmap: u128) -> Option<usize> {
        let index = bitmap.trailing_ones() as usize;
        (index < Self::CAPACITY).then_some(index)
    }

    /// The free indices.
    pub(super) fn all_free(bitmap: u128) -> impl Iterator<Item = usize> {
        indices(!bitmap & Self::ALL)
    }

    /// The word of the bitmap that has the bit of `index`, and its value in `bitmap`.
    #[inline(always)]
    pub(super) fn bitmap_word(self, bitmap: u128, index: usize) -> (&'p PmWord, u64) {
        if index < 64 {
            (&self.words[BITMAP], bitmap as u64)
        } else {
            (&self.words[BITMAP_MORE], (bitmap >> 64) as u64)
        }
    }

    /// Stores what of `bitmap` is different.
    fn store_bitmap(self, bitmap: u128) {
        let changed = self.bitmap() ^ bitmap;
        for index in [0, 64] {
            if changed >> index & u128::from(u64::MAX) != 0 {
                let (word, value) = self.bitmap_word(bitmap, index);
                self.medium.store(word, value);
            }
        }
    }

    /// Shows the entries of `bitmap`, which others hide still, and writes the header back up to the
    /// word `last`. Durable at return.
    pub(super) fn commit_all(self, bitmap: u128, last: usize, _published: Fenced) -> Fenced {
        self.drop_all(bitmap, last)
    }

    /// Leaves the entries of `bitmap`; the others are hidden already. As
    /// [`commit_all`](Self::commit_all).
    pub(super) fn drop_all(self, bitmap: u128, last: usize) -> Fenced {
        self.store_bitmap(bitmap);
        self.medium.persist(&self.words[BITMAP..=last])
    }

    #[inline(always)]
    pub(super) fn entry(self, index: usize) -> Entry {
        let words = self.entry_words(index);
        Entry::plain(self.medium.load(&words[0]), self.medium.load(&words[1]))
    }

    /// The words of an entry: key word, value word.
    #[inline(always)]
    pub(super) fn entry_words(self, index: usize) -> &'p [PmWord; 2] {
        let words = self.words[Self::ENTRIES + 2 * index..].first_chunk();
        words.expect("every entry has two words")
    }

    #[inline(always)]
    pub(super) fn store_entry(self, index: usize, entry: Entry) {
        let words = self.entry_words(index);
        self.medium.store(&words[0], entry.key);
        self.medium.store(&words[1], entry.value);
    }

    /// Changes the value of an entry, durably: the word decides by itself.
    #[inline]
    pub(super) fn update(self, index: usize, value: Value) -> Fenced {
        let words = self.entry_words(index);
        self.medium.store(&words[1], value.word);
        self.medium.persist(words)
    }

    /// Begins to write an entry back, unless it lies in a line that is written back anyway because
    /// `with`, a word of the header, is.
    pub(super) fn flush_entry_beside(self, index: usize, with: usize) {
        let line = |word: usize| word / bristlecone_pmem::line::LINE_WORDS;
        if line(Self::ENTRIES + 2 * index) > line(with) {
            self.medium.flush(self.entry_words(index));
        }
    }

    /// Stores entries in free places, flushed, and gives the places in the order of `entries`.
    ///
    /// ```text
    /// W entries    crash: no bit shows them
    /// F entries
    /// ```
    pub(super) fn place(self, bitmap: u128, entries: &[TaggedEntry]) -> Vec<(usize, Entry)> {
        let placed = Self::all_free(bitmap).zip(entries.iter().map(|held| held.entry));
        let placed: Vec<_> = placed.collect();
        debug_assert_eq!(placed.len(), entries.len());
        for &(index, entry) in &placed {
            self.store_entry(index, entry);
            self.medium.flush(self.entry_words(index));
        }
        placed
    }

    /// The first word of the array.
    #[inline(always)]
    pub(super) fn array_word(self) -> &'p PmWord {
        &self.words[Self::ARRAY]
    }

    /// A byte of the array.
    #[inline(always)]
    pub(super) fn byte(self, at: usize) -> u8 {
        (self.medium.load(&self.words[Self::ARRAY + at / 8]) >> (8 * (at % 8))) as u8
    }

    /// The bytes of the array.
    pub(super) fn array(self) -> Array {
        let mut array = [0; BITS_MAX + 8];
        let words = &self.words[Self::ARRAY..Self::ARRAY + Self::ARRAY_WORDS];
        for (bytes, word) in array.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&self.medium.load(word).to_le_bytes());
        }
        array
    }

    /// Stores the words of `array` that differ from `old`, which is what is there, by `store`; gives
    /// the last of them.
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

    /// The index of the entry of that rank, which `bitmap` must have.
    #[inline(always)]
    fn ranked(self, pool: &Pool<M>, bitmap: u128, rank: usize) -> Result<usize, Corrupt> {
        let index = usize::from(self.byte(PREFIX + rank));
        if index < Self::CAPACITY && bitmap >> index & 1 == 1 {
            return Ok(index);
        }
        let (at, what) = (pool.offset_of(self.array_word()).offset(), "slot without entry");
        Err(Corrupt { at, what, expected: bitmap as u64, found: index as u64 })
    }

    /// Halves the first `count` of the slots until the place of `key` is found.
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
            let index = self.ranked(pool, bitmap, middle)?;
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

    /// The entries that `bitmap` has, each with its index.
    pub(super) fn entries(self, bitmap: u128) -> impl Iterator<Item = (usize, Entry)> {
        indices(bitmap).map(move |index| (index, self.entry(index)))
    }

    /// The entries that are there, as leaves without fingerprints hold them.
    pub(super) fn held(self) -> impl Iterator<Item = TaggedEntry> {
        self.entries(self.bitmap()).map(|(_, entry)| TaggedEntry { entry, fingerprint: 0 })
    }

    /// Which of the entries in `bitmap` `keep` accepts.
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

    /// Sets the bit of `index` or clears it, durably. The store that decides.
    #[inline(always)]
    pub(super) fn commit(self, bitmap: u128, index: usize, fenced: Fenced) -> Fenced {
        let (word, value) = self.bitmap_word(bitmap, index);
        self.medium.commit(word, value, fenced);
        self.medium.persist(core::slice::from_ref(word))
    }

    /// Fills a fresh block with a leaf; durable after the next fence. `entries` come in key order
    /// and take the first places; `prefix` is what comes before the slots.
    pub(super) fn fill(self, low: u64, next: u64, prefix: [u8; PREFIX], entries: &[Entry]) {
        let count = entries.len();
        assert!(count <= Self::CAPACITY);
        let mut image = vec![0u64; Self::ENTRIES + 2 * count];
        let bitmap = u128::MAX.checked_shr((BITS_MAX - count) as u32).unwrap_or(0);
        image[BITMAP] = bitmap as u64;
        if Self::CAPACITY > 64 {
            image[BITMAP_MORE] = (bitmap >> 64) as u64;
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
