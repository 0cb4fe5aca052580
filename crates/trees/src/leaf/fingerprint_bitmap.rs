//! The layout of FPTree's leaf: unsorted entries, a bitmap of the valid ones, and a fingerprint for
//! each.
//!
//! In leaves of 256, 512 or 1024 B, `N` entries are 12, 27 or 57 with a link of 16 B, as published,
//! and 13, 28 or 58 with one of 8 B. With `P` = 2, 4 or 8, and `L` = 1 for a link of 16 B, else 0:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 P | fingerprints | hint | one byte for each entry |
//! | P | 8 | bitmap | commit | bit i: entry i is valid |
//! | P + 1 | 8 L | file | data | the file of the right neighbour: 1, that of the pool |
//! | P + L + 1 | 8 | next | commit | its offset |
//! | P + L + 2 | 8 | low | data | separator word of the low key |
//! | P + L + 3 | 8 | latch | transient | version |
//! | P + 2 L + 4 | 16 N | entries | data | key word, value word |
//!
//! 1. An entry is durable before its bit is set.
//! 2. A fingerprint is stored before the bit of its entry and flushed with it, but recovery does
//!    not rely on it: it recomputes all fingerprints.
//! 3. An entry lies in one line, because it is aligned to 16 B.

mod write_order;

pub use write_order::{ThreeFences, TwoFences, WriteOrder};

use super::{InsertResult, Leaf, TaggedEntry, slots};
use crate::fingerprint;
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;
use core::marker::PhantomData;

/// The file that every link names. A pool is one file, so that a store of the offset alone changes
/// a link.
const FILE: u64 = 1;

/// The FPTree leaf of `NODE` bytes, whose writes persist in the order `W`.
#[derive(Debug)]
pub struct FingerprintBitmap<const NODE: usize, W>(PhantomData<W>);

impl<const NODE: usize, W: WriteOrder> FingerprintBitmap<NODE, W> {
    /// The number of words of fingerprints; even, because `fingerprint::matches` takes pairs of
    /// words.
    const FINGERPRINT_WORDS: usize = match NODE {
        256 => 2,
        512 => 4,
        1024 => 8,
        _ => panic!("leaves have 256, 512 or 1024 bytes"),
    };
    const BITMAP_WORD: usize = Self::FINGERPRINT_WORDS;
    const FILE_WORD: usize = Self::BITMAP_WORD + 1;
    const FILE_WORDS: usize = W::HAS_FILE_IN_LINK as usize;
    const ENTRIES: usize = Self::FINGERPRINT_WORDS + 4 + 2 * Self::FILE_WORDS;
    /// The number of lines that an insert changes besides the entry's: 2 if the fingerprints have a
    /// line of their own (1024 B), else 1.
    pub(crate) const HEADER_LINES: u32 = (Self::BITMAP_WORD / LINE_WORDS + 1) as u32;
    const ALL: u64 = (1 << Self::CAPACITY) - 1;

    #[inline(always)]
    fn bitmap<M: Medium>(medium: &M, words: &[PmWord]) -> u64 {
        medium.load(&words[Self::BITMAP_WORD]) & Self::ALL
    }

    /// Returns the lowest free slot, or `None` in a full leaf.
    #[inline(always)]
    fn free_slot<M: Medium>(medium: &M, words: &[PmWord]) -> Option<usize> {
        let slot = Self::bitmap(medium, words).trailing_ones() as usize;
        (slot < Self::CAPACITY).then_some(slot)
    }

    #[inline(always)]
    fn entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> Entry {
        let at = Self::ENTRIES + 2 * slot;
        Entry::plain(medium.load(&words[at]), medium.load(&words[at + 1]))
    }

    #[inline(always)]
    fn entry_words(words: &[PmWord], slot: usize) -> &[PmWord] {
        let at = Self::ENTRIES + 2 * slot;
        &words[at..at + 2]
    }

    #[inline(always)]
    fn matching<M: Medium>(medium: &M, words: &[PmWord], fingerprint: u8) -> u64 {
        match Self::FINGERPRINT_WORDS {
            2 => fingerprint::matches::<2>(
                core::array::from_fn(|i| medium.load(&words[i])),
                fingerprint,
            ),
            4 => fingerprint::matches::<4>(
                core::array::from_fn(|i| medium.load(&words[i])),
                fingerprint,
            ),
            _ => fingerprint::matches::<8>(
                core::array::from_fn(|i| medium.load(&words[i])),
                fingerprint,
            ),
        }
    }

    #[inline(always)]
    fn fingerprint<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> u8 {
        (medium.load(&words[slot / 8]) >> (8 * (slot % 8))) as u8
    }

    #[inline(always)]
    fn set_fingerprint<M: Medium>(medium: &M, words: &[PmWord], slot: usize, fingerprint: u8) {
        let shift = 8 * (slot % 8);
        let word = &words[slot / 8];
        let value = medium.load(word) & !(0xff << shift) | u64::from(fingerprint) << shift;
        medium.store(word, value);
    }

    /// Flushes and fences the header lines that a change of the bit and the fingerprint of `slot`
    /// touches.
    #[inline(always)]
    fn persist_header<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> Fenced {
        let skips = M::INJECTS_DEFECTS && medium.injects(Defect::FingerprintLineUnflushed);
        if slot / 8 / LINE_WORDS != Self::BITMAP_WORD / LINE_WORDS && !skips {
            medium.flush(&words[slot / 8..=slot / 8]);
        }
        medium.persist(&words[Self::BITMAP_WORD..=Self::BITMAP_WORD])
    }

    fn fingerprint_of<K: Key, M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u8, Corrupt> {
        let key = K::read_entry(pool, entry)?;
        Ok(fingerprint::of(K::hash(K::borrow(&key))))
    }
}

impl<const NODE: usize, W: WriteOrder> Leaf for FingerprintBitmap<NODE, W> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = {
        let capacity = (Self::WORDS - Self::ENTRIES) / 2;
        assert!(capacity <= 8 * Self::FINGERPRINT_WORDS && capacity < 64);
        capacity
    };
    const NEXT: usize = Self::FILE_WORD + Self::FILE_WORDS;
    const LOW: usize = Self::NEXT + 1;
    const LATCH: usize = Self::NEXT + 2;
    const BITMAP: Option<usize> = Some(Self::BITMAP_WORD);

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let mut image = vec![0u64; Self::ENTRIES + 2 * entries.len()];
        for (slot, &TaggedEntry { entry, fingerprint }) in entries.iter().enumerate() {
            image[slot / 8] |= u64::from(fingerprint) << (8 * (slot % 8));
            image[Self::ENTRIES + 2 * slot] = entry.key;
            image[Self::ENTRIES + 2 * slot + 1] = entry.value;
        }
        image[Self::BITMAP_WORD] = (1 << entries.len()) - 1;
        if W::HAS_FILE_IN_LINK {
            image[Self::FILE_WORD] = FILE;
        }
        image[Self::NEXT] = next;
        image[Self::LOW] = low;
        let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        pool.medium().fill(words, &bytes);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let medium = pool.medium();
        let fingerprint = fingerprint::of(K::hash(key));
        let candidates = Self::matching(medium, words, fingerprint) & Self::bitmap(medium, words);
        for slot in slots(candidates) {
            let entry = Self::entry(medium, words, slot);
            if K::order_entry(pool, entry, key)? == Ordering::Equal {
                return Ok(Some((slot, entry.held_value())));
            }
        }
        Ok(None)
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        let valid = slots(Self::bitmap(medium, words));
        entries.extend(valid.map(|slot| TaggedEntry {
            entry: Self::entry(medium, words, slot),
            fingerprint: Self::fingerprint(medium, words, slot),
        }));
    }

    #[inline(always)]
    fn prefetch_records<K: Key, M: Medium>(pool: &Pool<M>, words: &[PmWord], key: K::Ref<'_>) {
        let medium = pool.medium();
        let fingerprint = fingerprint::of(K::hash(key));
        let candidates = Self::matching(medium, words, fingerprint) & Self::bitmap(medium, words);
        for slot in slots(candidates) {
            K::prefetch_entry(pool, Self::entry(medium, words, slot));
        }
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::bitmap(medium, words).count_ones() as usize
    }

    /// The order is that of [`WriteOrder::insert`].
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let medium = pool.medium();
        let Some(slot) = Self::free_slot(medium, words) else { return Ok(InsertResult::Full) };
        let entry = Entry::plain(K::store_entry_key(pool, key, value.word)?, value.word);
        let tagged = TaggedEntry { entry, fingerprint: fingerprint::of(K::hash(key)) };
        Ok(InsertResult::Done(W::insert::<NODE, M>(medium, words, slot, tagged)))
    }

    /// The order is that of [`WriteOrder::update`].
    #[inline]
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let medium = pool.medium();
        W::update::<NODE, M>(medium, words, slot, value)
    }

    /// ```text
    /// C bitmap                  8 B
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let medium = pool.medium();
        let entry = Self::entry(medium, words, slot);
        let bitmap = Self::bitmap(medium, words);
        debug_assert!(bitmap & 1 << slot != 0);
        medium.store(&words[Self::BITMAP_WORD], bitmap & !(1 << slot));
        let _ = medium.persist(&words[Self::BITMAP_WORD..=Self::BITMAP_WORD]);
        entry
    }

    /// ```text
    /// C bitmap                  8 B        the dropped entries were hidden already
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let bitmap = Self::bitmap(medium, words);
        let mut kept = bitmap;
        for slot in slots(bitmap) {
            if !keep(Self::entry(medium, words, slot))? {
                kept &= !(1 << slot);
            }
        }
        if kept != bitmap {
            medium.store(&words[Self::BITMAP_WORD], kept);
            let _ = medium.persist(&words[Self::BITMAP_WORD..=Self::BITMAP_WORD]);
        }
        Ok(())
    }

    /// ```text
    /// W entries                 their lines  crash before C: invisible
    /// F entries |
    /// R fingerprints
    /// C bitmap                  8 B          crash after C: hidden by the neighbour's low key
    /// F header |                -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let medium = pool.medium();
        let mut bitmap = Self::bitmap(medium, words);
        let free = !bitmap & Self::ALL;
        debug_assert!(entries.len() <= free.count_ones() as usize);
        for (slot, &TaggedEntry { entry, fingerprint }) in slots(free).zip(entries) {
            let target = Self::entry_words(words, slot);
            medium.store(&target[0], entry.key);
            medium.store(&target[1], entry.value);
            medium.flush(target);
            Self::set_fingerprint(medium, words, slot, fingerprint);
            bitmap |= 1 << slot;
        }
        let fenced = medium.fence();
        medium.commit(&words[Self::BITMAP_WORD], bitmap, fenced);
        Ok(medium.persist(&words[..=Self::BITMAP_WORD]))
    }

    /// Checks the file of the link, if it has one.
    fn verify<M: Medium>(medium: &M, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let found = medium.load(&words[Self::FILE_WORD]);
        if !W::HAS_FILE_IN_LINK || found == FILE {
            return Ok(());
        }
        let (at, what) = (at + 8 * Self::FILE_WORD as u64, "file of the link of a leaf");
        Err(Corrupt { at, what, expected: FILE, found })
    }

    /// ```text
    /// R fingerprints            stored and flushed only where they are wrong
    /// F header |
    /// ```
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let medium = pool.medium();
        let bitmap = medium.load(&words[Self::BITMAP_WORD]);
        if bitmap & !Self::ALL != 0 {
            let at = at + 8 * Self::BITMAP_WORD as u64;
            let what = "bitmap of a leaf with bits beyond the last entry";
            return Err(Corrupt { at, what, expected: Self::ALL, found: bitmap });
        }
        let mut changed = false;
        for slot in slots(bitmap) {
            let fingerprint = Self::fingerprint_of::<K, M>(pool, Self::entry(medium, words, slot))?;
            if Self::fingerprint(medium, words, slot) != fingerprint {
                Self::set_fingerprint(medium, words, slot, fingerprint);
                changed = true;
            }
        }
        if changed {
            let _ = medium.persist(&words[..=Self::BITMAP_WORD]);
        }
        Ok(())
    }
}
