//! The layout of a leaf: four units.
//!
//! A unit of `BYTES` / 4 bytes, with n slots (15 in 256 B, 7 in 128 B):
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | commit word | commit | bits 0..15: the valid slots; 15..64: stamp |
//! | 1 | 8 | header | data | a part of the leaf's header |
//! | 2 | 8 n | keys | data | key words |
//! | 2 + n | 8 n | values | data | value words |
//!
//! | header of unit | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | next | commit | [link](crate::leaf::link) to the right neighbour |
//! | 1 | low | data | separator word of the low key; it never changes |
//! | 2 | check | data | check of the offset of the leaf and of its low word |
//! | 3 | | | zero |
//!
//! 1. The hash of a key chooses its *home* unit. A key lies in another unit only if its home was
//!    full when it settled.
//! 2. Log records of keys with this home, up to the stamp, are in the leaf.
//! 3. Recovery removes entries that are not below the low key of the right neighbour.

use crate::key::{Entry, Key};
use crate::leaf::{link, slots};
use crate::leaf_table::KeyedEntries;
use crate::sorting::sort_pairs;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The number of units of a leaf.
pub(super) const UNITS: usize = 4;

const HEADER: usize = 1;
const KEYS: usize = 2;
/// The units whose header words are the fields.
const NEXT: usize = 0;
const LOW: usize = 1;
const CHECK: usize = 2;

const STAMP_SHIFT: u32 = 15;
const SLOTS_MAX: usize = STAMP_SHIFT as usize;

/// The greatest stamp and version. With ten million writes a second it is reached after ten months.
/// Then each write settles its unit.
pub(super) const STAMP_MAX: u64 = u64::MAX >> (STAMP_SHIFT + 1);

/// Returns the words of a unit of a leaf of `bytes` bytes.
const fn unit_words(bytes: usize) -> usize {
    bytes / 8 / UNITS
}

/// Returns the number of slots of a unit of a leaf of `bytes` bytes.
pub(super) const fn slots_of(bytes: usize) -> usize {
    (unit_words(bytes) - KEYS) / 2
}

/// Returns the number of the home unit of a key with this hash.
#[inline(always)]
pub(super) const fn home_of(hash: u64) -> usize {
    (hash >> 48) as usize % UNITS
}

/// The place of an entry in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) unit: usize,
    pub(super) slot: usize,
}

/// A view of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitLeaf<'a, const BYTES: usize> {
    pub(super) at: PmPtr,
    pub(super) words: &'a [PmWord],
}

/// The commit word of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitWord(u64);

impl UnitWord {
    #[inline(always)]
    pub(super) const fn new(valid: u64, stamp: u64) -> Self {
        Self(stamp << STAMP_SHIFT | valid)
    }

    /// Returns the valid slots as a bit mask.
    #[inline(always)]
    pub(super) const fn valid(self) -> u64 {
        self.0 & ((1 << SLOTS_MAX) - 1)
    }

    #[inline(always)]
    pub(super) const fn stamp(self) -> u64 {
        self.0 >> STAMP_SHIFT
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }
}

impl<'a, const BYTES: usize> UnitLeaf<'a, BYTES> {
    pub(super) const WORDS: usize = BYTES / 8;
    /// The number of slots of a unit.
    pub(super) const SLOTS: usize = slots_of(BYTES);
    /// The number of slots of a leaf.
    pub(super) const CAPACITY: usize = UNITS * Self::SLOTS;
    const UNIT_WORDS: usize = unit_words(BYTES);
    /// The bits of the slots of a unit.
    pub(super) const ALL: u64 = (1 << Self::SLOTS) - 1;

    #[inline(always)]
    pub(super) fn new<M: Medium>(pool: &'a Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        const { assert!(Self::SLOTS <= SLOTS_MAX && Self::WORDS / LINE_WORDS <= 16) };
        Ok(Self { at, words: pool.block(at, Self::WORDS)? })
    }

    #[inline(always)]
    fn header(self, unit: usize) -> &'a PmWord {
        &self.words[unit * Self::UNIT_WORDS + HEADER]
    }

    /// Returns the word of the commit word of `unit`.
    #[inline(always)]
    pub(super) fn commit_word(self, unit: usize) -> &'a PmWord {
        &self.words[unit * Self::UNIT_WORDS]
    }

    #[inline(always)]
    pub(super) fn word<M: Medium>(self, medium: &M, unit: usize) -> UnitWord {
        UnitWord(medium.load(self.commit_word(unit)))
    }

    /// Returns the commit words of all units.
    #[inline(always)]
    pub(super) fn unit_words<M: Medium>(self, medium: &M) -> [UnitWord; UNITS] {
        core::array::from_fn(|unit| self.word(medium, unit))
    }

    /// Returns the number of valid entries.
    #[inline(always)]
    pub(super) fn used<M: Medium>(self, medium: &M) -> usize {
        let words = self.unit_words(medium);
        words.iter().map(|word| word.valid().count_ones() as usize).sum()
    }

    /// Returns the indices of the key word and of the value word of a slot.
    #[inline(always)]
    pub(super) const fn indices(place: Place) -> [usize; 2] {
        let key = place.unit * Self::UNIT_WORDS + KEYS + place.slot;
        [key, key + Self::SLOTS]
    }

    #[inline(always)]
    pub(super) fn entry<M: Medium>(self, medium: &M, place: Place) -> Entry {
        let [key, value] = Self::indices(place);
        Entry::plain(medium.load(&self.words[key]), medium.load(&self.words[value]))
    }

    /// Returns the words of a line.
    pub(super) fn line(self, line: usize) -> &'a [PmWord] {
        &self.words[line * LINE_WORDS..(line + 1) * LINE_WORDS]
    }

    /// Returns the right neighbour, or a null pointer.
    ///
    /// # Errors
    /// The link does not have its check.
    pub(super) fn next<M: Medium>(self, medium: &M) -> Result<PmPtr, Corrupt> {
        link::checked(self.at.offset(), medium.load(self.header(NEXT)))
    }

    /// Returns the separator word of the low key.
    ///
    /// # Errors
    /// The header is damaged.
    pub(super) fn low<M: Medium>(self, medium: &M) -> Result<u64, Corrupt> {
        let low = medium.load(self.header(LOW));
        let (expected, found) = (check_of(self.at, low), medium.load(self.header(CHECK)));
        if expected != found {
            let (at, what) = (self.at.offset(), "check in the header of a leaf");
            return Err(Corrupt { at, what, expected, found });
        }
        Ok(low)
    }

    /// Returns the place and the entry of `key`, whose home is `home`. `is_spilled` says that keys
    /// with this home may lie in other units. A writer may run at the same time; the caller
    /// validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        (home, is_spilled): (usize, bool),
        key: K::Ref<'_>,
    ) -> Result<Option<(Place, Entry)>, Corrupt> {
        let found = self.find_in::<K, M>(pool, home, key)?;
        if found.is_some() || !is_spilled {
            return Ok(found);
        }
        for unit in (0..UNITS).filter(|&unit| unit != home) {
            let found = self.find_in::<K, M>(pool, unit, key)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn find_in<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        unit: usize,
        key: K::Ref<'_>,
    ) -> Result<Option<(Place, Entry)>, Corrupt> {
        let medium = pool.medium();
        for slot in slots(self.word(medium, unit).valid() & Self::ALL) {
            let place = Place { unit, slot };
            let entry = self.entry(medium, place);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some((place, entry)));
            }
        }
        Ok(None)
    }

    /// Returns the valid entries with their places. A writer may run at the same time.
    pub(super) fn entries<M: Medium>(self, medium: &M) -> impl Iterator<Item = (Place, Entry)> {
        (0..UNITS).flat_map(move |unit| {
            slots(self.word(medium, unit).valid() & Self::ALL).map(move |slot| {
                let place = Place { unit, slot };
                (place, self.entry(medium, place))
            })
        })
    }

    /// Returns the valid entries with their keys, in key order. A writer may run at the same time.
    pub(super) fn sorted<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
    ) -> Result<KeyedEntries<K>, Corrupt> {
        let mut pairs = Vec::with_capacity(Self::CAPACITY);
        for (_, entry) in self.entries(pool.medium()) {
            pairs.push((K::read_entry(pool, entry)?, entry));
        }
        sort_pairs(&mut pairs);
        Ok(pairs)
    }

    /// Prefetches all lines of a unit.
    #[inline(always)]
    pub(super) fn prefetch<M: Medium>(self, medium: &M, unit: usize) {
        medium.prefetch(&self.words[unit * Self::UNIT_WORDS..(unit + 1) * Self::UNIT_WORDS]);
    }

    /// Sets the right neighbour. Durable after the next fence.
    ///
    /// ```text
    /// C next      8 B
    /// F its line
    /// ```
    pub(super) fn set_next<M: Medium>(self, medium: &M, next: PmPtr) {
        let word = self.header(NEXT);
        medium.store(word, link::encode(next.offset()));
        medium.flush(core::slice::from_ref(word));
    }

    /// Writes a new leaf in which all units have the stamp `stamp`, and entry i, with the hash of
    /// its key, lies in the unit that [`unit_for`](Self::unit_for) chooses. Returns the homes with
    /// keys in other units, as bits. Durable after the next fence.
    ///
    /// ```text
    /// N all lines
    /// ```
    pub(super) fn format<M: Medium>(
        self,
        medium: &M,
        (low, next, stamp): (u64, PmPtr, u64),
        entries: impl Iterator<Item = (Entry, u64)>,
    ) -> u64 {
        let mut image = vec![0u64; Self::WORDS];
        let (mut valid, mut spilled) = ([0u64; UNITS], 0);
        for (entry, hash) in entries {
            let home = home_of(hash);
            let unit = Self::unit_for(home, valid).unwrap_or(home);
            let slot = valid[unit].trailing_ones() as usize;
            let [key, value] = Self::indices(Place { unit, slot });
            (image[key], image[value]) = (entry.key, entry.value);
            valid[unit] |= 1 << slot;
            spilled |= u64::from(unit != home) << home;
        }
        for (unit, valid) in valid.into_iter().enumerate() {
            image[unit * Self::UNIT_WORDS] = UnitWord::new(valid, stamp).bits();
        }
        let header = |unit: usize| unit * Self::UNIT_WORDS + HEADER;
        image[header(NEXT)] = link::encode(next.offset());
        image[header(LOW)] = low;
        image[header(CHECK)] = check_of(self.at, low);
        let bytes: Vec<u8> = image.into_iter().flat_map(u64::to_le_bytes).collect();
        medium.fill(self.words, &bytes);
        spilled
    }

    /// Returns the unit for a new entry with this home: the home, or else the unit with the most
    /// free slots. `None` if none of those is free that are not in `taken`.
    pub(super) fn unit_for(home: usize, taken: [u64; UNITS]) -> Option<usize> {
        if taken[home] != Self::ALL {
            return Some(home);
        }
        let emptiest = (0..UNITS).min_by_key(|&unit| taken[unit].count_ones())?;
        (taken[emptiest] != Self::ALL).then_some(emptiest)
    }
}

/// Returns the check of a leaf at `at` with this low word.
fn check_of(at: PmPtr, low: u64) -> u64 {
    const SEED: u64 = 0x554E_4954_7472_6565; // `UNITtree` in ASCII
    (SEED ^ at.offset() ^ low.rotate_left(32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Checks a stamp, a version or a base that was read from the pool.
pub(super) fn check_stamp(at: PmPtr, stamp: u64) -> Result<u64, Corrupt> {
    if stamp > STAMP_MAX {
        let (at, what) = (at.offset(), "stamp or version out of range");
        return Err(Corrupt { at, what, expected: STAMP_MAX, found: stamp });
    }
    Ok(stamp)
}
