//! The leaf of pairs: unsorted entries in any encoding, a fingerprint for each, and a checksum that
//! detects damage. A leaf has 512 B and 24 entries:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 24 | fingerprints | data | one byte for each entry |
//! | 3 | 24 | encodings | data | one byte for each entry |
//! | 6 | 8 | state | commit | bits 0..24: entry i is valid; 24..64: checksum |
//! | 7 | 8 | latch | transient | version, or the note (`note.rs`) of a write under way |
//! | 8 | 8 | next | commit | the right neighbour, 0 if none, in 48 bits; their check in 16 |
//! | 9 | 8 | low | data | separator word of the low key |
//! | 10 | 8 | kind | data | the layout of the entries: 0, the one here |
//! | 11 | 40 | - | - | zero |
//! | 16 | 384 | entries | data | key word, value word |
//!
//! The checksum covers the low key and the valid entries. A later release may write leaves of other
//! kinds; this one refuses them.
//!
//! 1. An entry does not change while its valid bit is set. It is durable with the bit, or before if
//!    it names a record.
//! 2. Fingerprints and encodings lie in the line of the state and are stored before it. Stores to
//!    one line persist in their order, so they are durable with the state.
//! 3. One store changes the valid bits and the checksum. So every crash image has the checksum of
//!    its low key and valid entries, or a note by which recovery finds the state before. Any other
//!    leaf is damaged. A leaf of zeros is damaged too.
//! 4. One line holds all that a lookup reads besides the entry.

mod note;

use super::{InsertResult, Leaf, TaggedEntry, link, slots};
use crate::fingerprint;
use crate::key::{Entry, Key, Record, Value};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;

const ENCODINGS: usize = 3;
const STATE: usize = 6;
const KIND: usize = 10;
const ENTRIES: usize = 16;
const CAPACITY: usize = 24;
/// The bits of the state word that mark valid entries.
const ALL: u64 = (1 << CAPACITY) - 1;

/// The leaf of pairs, with a checksum over its entries.
#[derive(Debug)]
pub struct PairLeaf;

#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64);

impl State {
    /// Returns the state of a leaf without entries.
    const fn empty(low: u64) -> Self {
        Self(
            entry_checksum(
                CAPACITY,
                TaggedEntry { entry: Entry::plain(low, !low), fingerprint: 0 },
            ) << CAPACITY,
        )
    }

    #[inline(always)]
    fn load<M: Medium>(medium: &M, words: &[PmWord]) -> Self {
        Self(medium.load(&words[STATE]))
    }

    #[inline(always)]
    const fn valid(self) -> u64 {
        self.0 & ALL
    }

    /// Returns the state after `tagged` in `slot` becomes valid, or stops being valid.
    #[inline(always)]
    const fn toggle(self, slot: usize, tagged: TaggedEntry) -> Self {
        Self(self.0 ^ 1 << slot ^ entry_checksum(slot, tagged) << CAPACITY)
    }

    #[inline(always)]
    fn commit<M: Medium>(self, medium: &M, words: &[PmWord], fenced: Fenced) -> Fenced {
        medium.commit(&words[STATE], self.0, fenced);
        medium.persist(&words[STATE..=STATE])
    }
}

/// Returns the contribution of an entry to the checksum of its leaf. Each step is a bijection of
/// the word that it mixes in, and only the last shift loses bits. So a change within one word goes
/// undetected with probability 1 in 2^40.
#[inline(always)]
const fn entry_checksum(slot: usize, tagged: TaggedEntry) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let TaggedEntry { entry, fingerprint } = tagged;
    let mut state = (entry.key ^ 0x5851_F42D_4C95_7F2D).wrapping_mul(MULTIPLIER);
    state = (state ^ state >> 32 ^ entry.value).wrapping_mul(MULTIPLIER);
    let rest = slot as u64 | (entry.encoding as u64) << 8 | (fingerprint as u64) << 16;
    state = (state ^ state >> 29 ^ rest).wrapping_mul(MULTIPLIER);
    (state ^ state >> 32) & (u64::MAX >> CAPACITY)
}

#[inline(always)]
fn entry_words(words: &[PmWord], slot: usize) -> &[PmWord] {
    let at = ENTRIES + 2 * slot;
    &words[at..at + 2]
}

#[inline(always)]
fn set_byte<M: Medium>(medium: &M, words: &[PmWord], at: usize, byte: u8) {
    let shift = 8 * (at % 8);
    let word = &words[at / 8];
    let value = medium.load(word) & !(0xff << shift) | u64::from(byte) << shift;
    medium.store(word, value);
}

#[inline(always)]
fn load_tagged_entry(load: impl Fn(usize) -> u64, slot: usize) -> TaggedEntry {
    let byte = |at: usize| (load(at / 8) >> (8 * (at % 8))) as u8;
    let at = ENTRIES + 2 * slot;
    let (key, value, encoding) = (load(at), load(at + 1), byte(8 * ENCODINGS + slot));
    TaggedEntry { entry: Entry { key, value, encoding }, fingerprint: byte(slot) }
}

#[inline(always)]
fn tagged_entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> TaggedEntry {
    load_tagged_entry(|word| medium.load(&words[word]), slot)
}

#[inline(always)]
fn encoding<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> u8 {
    (medium.load(&words[ENCODINGS + slot / 8]) >> (8 * (slot % 8))) as u8
}

#[inline(always)]
fn entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> Entry {
    let [key, value] = entry_words(words, slot) else { unreachable!("an entry is two words") };
    let encoding = encoding(medium, words, slot);
    Entry { key: medium.load(key), value: medium.load(value), encoding }
}

/// Stores an entry into a slot that is not valid, its key word first, and flushes it.
#[inline(always)]
fn set_entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize, entry: Entry) {
    let target = entry_words(words, slot);
    medium.store(&target[0], entry.key);
    medium.store(&target[1], entry.value);
    medium.flush(target);
}

/// Stores the fingerprint and the encoding of an entry, which lie in the line of the state.
#[inline(always)]
fn set_tags<M: Medium>(medium: &M, words: &[PmWord], slot: usize, tagged: TaggedEntry) {
    set_byte(medium, words, slot, tagged.fingerprint);
    set_byte(medium, words, 8 * ENCODINGS + slot, tagged.entry.encoding);
}

/// Returns the valid entries with this fingerprint, as bits.
#[inline(always)]
fn matching<M: Medium>(medium: &M, words: &[PmWord], fingerprint: u8) -> u64 {
    // `fingerprint::matches` takes words in pairs. The fourth word holds encodings; no valid bit
    // stands for its bytes.
    let matches =
        fingerprint::matches::<4>(core::array::from_fn(|i| medium.load(&words[i])), fingerprint);
    matches & State::load(medium, words).valid()
}

/// Returns the state of a leaf, whose words `load` returns, if the entries `valid` are valid.
#[inline(always)]
fn state_of(load: impl Fn(usize) -> u64, valid: u64) -> State {
    let empty = State::empty(load(PairLeaf::LOW));
    slots(valid).fold(empty, |state, slot| state.toggle(slot, load_tagged_entry(&load, slot)))
}

/// Recomputes the checksum of the leaf at `at`, whose words `load` returns, and compares it with
/// the stored one. Refuses a leaf of another kind.
#[inline(always)]
fn verify(at: u64, load: impl Fn(usize) -> u64) -> Result<(), Corrupt> {
    let kind = load(KIND);
    if kind != 0 {
        let (at, what) = (at + 8 * KIND as u64, "kind of a leaf, unknown to this release");
        return Err(Corrupt { at, what, expected: 0, found: kind });
    }
    let found = State(load(STATE));
    let expected = state_of(load, found.valid());
    if expected == found {
        return Ok(());
    }
    let (at, what) = (at + 8 * STATE as u64, "checksum of a leaf");
    Err(Corrupt { at, what, expected: expected.0, found: found.0 })
}

impl PairLeaf {
    /// Looks up `key`, whose fingerprint is `fingerprint`, like [`Leaf::find`].
    #[inline(always)]
    pub(crate) fn find_tagged<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        fingerprint: u8,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let medium = pool.medium();
        for slot in slots(matching(medium, words, fingerprint)) {
            let entry = entry(medium, words, slot);
            if K::order_entry(pool, entry, key)? == Ordering::Equal {
                return Ok(Some((slot, entry.held_value())));
            }
            // A matching fingerprint with another key is rare, and is what a damaged key looks
            // like.
            K::verify_mismatch(pool, entry, key)?;
        }
        Ok(None)
    }

    /// Prefetches the entries with this fingerprint of a leaf whose first line is there. Returns
    /// `true` if one of them names a record.
    #[inline(always)]
    pub(crate) fn prefetch_matching<M: Medium>(
        medium: &M,
        words: &[PmWord],
        fingerprint: u8,
    ) -> bool {
        let mut names_record = false;
        for slot in slots(matching(medium, words, fingerprint)) {
            medium.prefetch(&entry_words(words, slot)[..1]);
            names_record |= !Record::is_inline(encoding(medium, words, slot));
        }
        names_record
    }

    /// Prefetches the records of the entries with this fingerprint.
    #[inline(always)]
    pub(crate) fn prefetch_tagged<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        fingerprint: u8,
    ) {
        let medium = pool.medium();
        for slot in slots(matching(medium, words, fingerprint)) {
            K::prefetch_entry(pool, entry(medium, words, slot));
        }
    }
}

impl Leaf for PairLeaf {
    const WORDS: usize = 64;
    const CAPACITY: usize = CAPACITY;
    const NEXT: usize = 8;
    const LOW: usize = 9;
    const LATCH: usize = 7;
    const HAS_CHECKSUM: bool = true;
    const HAS_DIRECTORY: bool = true; // I4

    fn encode_next(next: u64) -> u64 {
        link::encode(next)
    }

    fn decode_next(word: u64) -> u64 {
        link::decode(word)
    }

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let mut bytes = [0u8; 8 * Self::WORDS];
        let mut state = State::empty(low);
        for (slot, &tagged) in entries.iter().enumerate() {
            let TaggedEntry { entry, fingerprint } = tagged;
            bytes[slot] = fingerprint;
            bytes[8 * ENCODINGS + slot] = entry.encoding;
            let at = 8 * (ENTRIES + 2 * slot);
            bytes[at..at + 8].copy_from_slice(&entry.key.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&entry.value.to_le_bytes());
            state = state.toggle(slot, tagged);
        }
        let header = [(STATE, state.0), (Self::NEXT, Self::encode_next(next)), (Self::LOW, low)];
        for (word, value) in header {
            bytes[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        }
        pool.medium().fill(words, &bytes); // also the free slots: invariant 3 of `note`
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        Self::find_tagged::<K, M>(pool, words, key, fingerprint::of(K::hash(key)))
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        let valid = slots(State::load(medium, words).valid());
        entries.extend(valid.map(|slot| tagged_entry(medium, words, slot)));
    }

    #[inline(always)]
    fn prefetch_entries<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> bool {
        Self::prefetch_matching(pool.medium(), words, fingerprint::of(K::hash(key)))
    }

    #[inline(always)]
    fn prefetch_records<K: Key, M: Medium>(pool: &Pool<M>, words: &[PmWord], key: K::Ref<'_>) {
        Self::prefetch_tagged::<K, M>(pool, words, fingerprint::of(K::hash(key)));
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        State::load(medium, words).valid().count_ones() as usize
    }

    /// See `note::write` for the persist order.
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let slot = State::load(pool.medium(), words).valid().trailing_ones() as usize;
        if slot >= CAPACITY {
            return Ok(InsertResult::Full);
        }
        let key_word = K::store_entry_key(pool, key, value.word)?;
        let entry = Entry { key: key_word, value: value.word, encoding: value.encoding };
        let tagged = TaggedEntry { entry, fingerprint: fingerprint::of(K::hash(key)) };
        Ok(InsertResult::Done(note::write::<K, M>(pool, words, (slot, tagged), None)))
    }

    /// Writes a second entry and swaps the two valid bits: one store cannot change a value in place
    /// together with the checksum. See `note::write` for the persist order.
    #[inline]
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let medium = pool.medium();
        let free = State::load(medium, words).valid().trailing_ones() as usize;
        if free >= CAPACITY {
            return None;
        }
        let former = tagged_entry(medium, words, slot);
        let entry = Entry { key: former.entry.key, value: value.word, encoding: value.encoding };
        let tagged = TaggedEntry { entry, fingerprint: former.fingerprint };
        Some(note::write::<K, M>(pool, words, (free, tagged), Some((slot, former))))
    }

    /// ```text
    /// C state                   8 B
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let medium = pool.medium();
        let tagged = tagged_entry(medium, words, slot);
        let state = State::load(medium, words);
        debug_assert!(state.valid() & 1 << slot != 0);
        medium.store(&words[STATE], state.toggle(slot, tagged).0);
        let _ = medium.persist(&words[STATE..=STATE]);
        tagged.entry
    }

    /// ```text
    /// C state                   8 B        the dropped entries were hidden already
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let state = State::load(medium, words);
        let mut kept = state;
        for slot in slots(state.valid()) {
            let tagged = tagged_entry(medium, words, slot);
            if !keep(tagged.entry)? {
                kept = kept.toggle(slot, tagged);
            }
        }
        if kept != state {
            medium.store(&words[STATE], kept.0);
            let _ = medium.persist(&words[STATE..=STATE]);
        }
        Ok(())
    }

    /// ```text
    /// W entries                 their lines  crash before C: invisible
    /// F entries |
    /// W fingerprints, encodings              in the line of C, before it
    /// C state                   8 B          crash after C: hidden by the neighbour's low key
    /// F header |                -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let medium = pool.medium();
        let mut state = State::load(medium, words);
        let free = !state.valid() & ALL;
        debug_assert!(entries.len() <= free.count_ones() as usize);
        for (slot, &tagged) in slots(free).zip(entries) {
            set_entry(medium, words, slot, tagged.entry);
            state = state.toggle(slot, tagged);
        }
        let fenced = medium.fence();
        for (slot, &tagged) in slots(free).zip(entries) {
            set_tags(medium, words, slot, tagged);
        }
        Ok(state.commit(medium, words, fenced))
    }

    fn verify<M: Medium>(medium: &M, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        verify(at, |word| medium.load(&words[word]))
    }

    fn verify_torn<M: Medium>(medium: &M, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        note::settled(at, |word| medium.load(&words[word]), false).map(|_| ())
    }

    /// ```text
    /// C state                   8 B        the one before a torn write; nothing if it is whole
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    fn settle<M: Medium>(medium: &M, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let keeps_torn = M::INJECTS_DEFECTS && medium.injects(Defect::PairTornKept);
        let settled = note::settled(at, |word| medium.load(&words[word]), keeps_torn)?;
        if settled != State::load(medium, words) {
            medium.store(&words[STATE], settled.0);
            let _ = medium.persist(&words[STATE..=STATE]);
        }
        Ok(())
    }

    /// Does nothing: no field is derived from the entries, and every crash image satisfies the
    /// invariants.
    fn repair<K: Key, M: Medium>(_: &Pool<M>, _at: u64, _: &[PmWord]) -> Result<(), Corrupt> {
        Ok(())
    }
}
