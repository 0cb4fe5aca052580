//! The store's own leaf: unsorted entries of any shape, a fingerprint each, and a sum that tells
//! damage from content. 512 B, 24 entries:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 24 | fingerprints | data | a byte an entry |
//! | 3 | 24 | shapes | data | a byte an entry |
//! | 6 | 8 | state | commit | bits 0..24: entry i is valid; 24..64: sum of low key and valid entries |
//! | 7 | 8 | latch | transient | version |
//! | 8 | 8 | next | commit | the leaf to the right, 0 if none, in 48 bits, a check of them in 16 |
//! | 9 | 8 | low | data | separator word of the low key |
//! | 10 | 48 | - | - | zero |
//! | 16 | 384 | entries | data | key word, value word |
//!
//! 1. An entry is durable before its bit is set, and is never changed while the bit is.
//! 2. Fingerprints and shapes lie in the line of the state and are stored before it, so they are
//!    durable with it: the leaf relies on the order of stores within a line.
//! 3. Bits and sum change in one store. So whatever a crash leaves, the sum is that of the low key and
//!    the valid entries, and a leaf whose sum is another is damaged. All zeros are damage too.
//! 4. All that a lookup reads beside its entry lies in one line.

use super::{InsertResult, Leaf, TaggedEntry, slots};
use crate::fingerprint;
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;

const SHAPES: usize = 3;
const STATE: usize = 6;
const ENTRIES: usize = 16;
const CAPACITY: usize = 24;
/// The bits of the state that say which entries are valid.
const ALL: u64 = (1 << CAPACITY) - 1;
/// The bits of a word that hold an offset.
const OFFSET_BITS: u32 = 48;

/// The leaf of pairs.
#[derive(Debug)]
pub struct PairLeaf;

/// The state word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64);

impl State {
    /// The state of a leaf without entries.
    const fn empty(low: u64) -> Self {
        Self(sum(CAPACITY, TaggedEntry { entry: Entry::plain(low, !low), print: 0 }) << CAPACITY)
    }

    #[inline(always)]
    fn load<M: Medium>(medium: &M, words: &[PmWord]) -> Self {
        Self(medium.load(&words[STATE]))
    }

    #[inline(always)]
    const fn valid(self) -> u64 {
        self.0 & ALL
    }

    /// The state with a valid entry more, or less.
    #[inline(always)]
    const fn toggle(self, slot: usize, held: TaggedEntry) -> Self {
        Self(self.0 ^ 1 << slot ^ sum(slot, held) << CAPACITY)
    }

    #[inline(always)]
    fn commit<M: Medium>(self, medium: &M, words: &[PmWord], fenced: Fenced) -> Fenced {
        medium.commit(&words[STATE], self.0, fenced);
        medium.persist(&words[STATE..=STATE])
    }
}

/// What an entry adds to the sum of its leaf. Each step is a bijection of the word that it takes in,
/// so a change within one word shows but for what the last shift drops: 1 in 2^40.
#[inline(always)]
const fn sum(slot: usize, held: TaggedEntry) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let TaggedEntry { entry, print } = held;
    let mut state = (entry.key ^ 0x5851_F42D_4C95_7F2D).wrapping_mul(MULTIPLIER);
    state = (state ^ state >> 32 ^ entry.value).wrapping_mul(MULTIPLIER);
    let rest = slot as u64 | (entry.encoding as u64) << 8 | (print as u64) << 16;
    state = (state ^ state >> 29 ^ rest).wrapping_mul(MULTIPLIER);
    (state ^ state >> 32) & (u64::MAX >> CAPACITY)
}

/// The check of an offset, in the bits above it. That of no offset is not 0: a zeroed link is damage, not
/// the end of the chain.
#[inline(always)]
const fn seal(offset: u64) -> u64 {
    ((offset ^ 0x5851_F42D).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> OFFSET_BITS) << OFFSET_BITS
}

#[inline(always)]
fn entry_words(words: &[PmWord], slot: usize) -> &[PmWord] {
    let at = ENTRIES + 2 * slot;
    &words[at..at + 2]
}

#[inline(always)]
fn byte<M: Medium>(medium: &M, words: &[PmWord], at: usize) -> u8 {
    (medium.load(&words[at / 8]) >> (8 * (at % 8))) as u8
}

#[inline(always)]
fn set_byte<M: Medium>(medium: &M, words: &[PmWord], at: usize, byte: u8) {
    let shift = 8 * (at % 8);
    let word = &words[at / 8];
    let value = medium.load(word) & !(0xff << shift) | u64::from(byte) << shift;
    medium.store(word, value);
}

#[inline(always)]
fn entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> Entry {
    let [key, value] = entry_words(words, slot) else { unreachable!("an entry is two words") };
    let encoding = byte(medium, words, 8 * SHAPES + slot);
    Entry { key: medium.load(key), value: medium.load(value), encoding }
}

#[inline(always)]
fn held<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> TaggedEntry {
    TaggedEntry { entry: entry(medium, words, slot), print: byte(medium, words, slot) }
}

/// Stores an entry into a slot that is not valid, and flushes it.
#[inline(always)]
fn set_entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize, entry: Entry) {
    let target = entry_words(words, slot);
    medium.store(&target[0], entry.key);
    medium.store(&target[1], entry.value);
    medium.flush(target);
}

/// Stores what the line of the state says of an entry.
#[inline(always)]
fn describe<M: Medium>(medium: &M, words: &[PmWord], slot: usize, held: TaggedEntry) {
    set_byte(medium, words, slot, held.print);
    set_byte(medium, words, 8 * SHAPES + slot, held.entry.encoding);
}

/// The valid entries whose fingerprint is `print`.
#[inline(always)]
fn matching<M: Medium>(medium: &M, words: &[PmWord], print: u8) -> u64 {
    // Fingerprints are matched in pairs of words; the fourth word's bytes have no bit among the valid.
    let matches =
        fingerprint::matches::<4>(core::array::from_fn(|i| medium.load(&words[i])), print);
    matches & State::load(medium, words).valid()
}

impl Leaf for PairLeaf {
    const WORDS: usize = 64;
    const CAPACITY: usize = CAPACITY;
    const NEXT: usize = 8;
    const LOW: usize = 9;
    const LATCH: usize = 7;
    const IS_SUMMED: bool = true;

    fn link(next: u64) -> u64 {
        next ^ seal(next)
    }

    fn linked(word: u64) -> u64 {
        word ^ seal(word & ((1 << OFFSET_BITS) - 1))
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
        for (slot, &held) in entries.iter().enumerate() {
            let TaggedEntry { entry, print } = held;
            bytes[slot] = print;
            bytes[8 * SHAPES + slot] = entry.encoding;
            let at = 8 * (ENTRIES + 2 * slot);
            bytes[at..at + 8].copy_from_slice(&entry.key.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&entry.value.to_le_bytes());
            state = state.toggle(slot, held);
        }
        let header = [(STATE, state.0), (Self::NEXT, Self::link(next)), (Self::LOW, low)];
        for (word, value) in header {
            bytes[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        }
        // What lies behind the last entry may be anything.
        let used = ENTRIES + 2 * entries.len();
        pool.medium().fill(&words[..used], &bytes[..8 * used]);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let medium = pool.medium();
        let print = fingerprint::of(K::hash(key));
        for slot in slots(matching(medium, words, print)) {
            let entry = entry(medium, words, slot);
            if K::order_entry(pool, entry, key)? == Ordering::Equal {
                return Ok(Some((slot, entry.held_value())));
            }
            // Rare, and it is what a damaged key looks like.
            K::verify_entry(pool, entry)?;
        }
        Ok(None)
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        let valid = slots(State::load(medium, words).valid());
        entries.extend(valid.map(|slot| held(medium, words, slot)));
    }

    #[inline(always)]
    fn prefetch_candidates<K: Key, M: Medium>(pool: &Pool<M>, words: &[PmWord], key: K::Ref<'_>) {
        let medium = pool.medium();
        let print = fingerprint::of(K::hash(key));
        for slot in slots(matching(medium, words, print)) {
            K::prefetch_entry(pool, entry(medium, words, slot));
        }
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        State::load(medium, words).valid().count_ones() as usize
    }

    /// ```text
    /// W entry[i]                1 line     crash before C: the entry is invisible
    /// F entry[i] |                         what its value word names is fenced with it
    /// W fingerprint[i], shape[i]           in the line of C, before it
    /// C state                   8 B
    /// F header |                -> durable  budget: 2 lines, 2 fences
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let medium = pool.medium();
        let state = State::load(medium, words);
        let slot = state.valid().trailing_ones() as usize;
        if slot >= CAPACITY {
            return Ok(InsertResult::Full);
        }
        let key_word = K::store_entry_key(pool, key, value.word)?;
        let entry = Entry { key: key_word, value: value.word, encoding: value.encoding };
        let held = TaggedEntry { entry, print: fingerprint::of(K::hash(key)) };
        set_entry(medium, words, slot, entry);
        let fenced = medium.fence();
        describe(medium, words, slot, held);
        Ok(InsertResult::Done(state.toggle(slot, held).commit(medium, words, fenced)))
    }

    /// The entry is written anew beside the old one: the sum could not follow a change in place.
    ///
    /// ```text
    /// W entry[j]                1 line     crash before C: the former value
    /// F entry[j] |                         what its value word names is fenced with it
    /// W fingerprint[j], shape[j]           in the line of C, before it
    /// C state                   8 B        i is invalid, j valid
    /// F header |                -> durable  budget: 2 lines, 2 fences
    /// ```
    #[inline]
    fn update<M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let state = State::load(medium, words);
        let free = state.valid().trailing_ones() as usize;
        if free >= CAPACITY {
            return None;
        }
        let former = held(medium, words, slot);
        let entry = Entry { key: former.entry.key, value: value.word, encoding: value.encoding };
        let held = TaggedEntry { entry, print: former.print };
        set_entry(medium, words, free, entry);
        let fenced = medium.fence();
        describe(medium, words, free, held);
        Some(state.toggle(slot, former).toggle(free, held).commit(medium, words, fenced))
    }

    /// ```text
    /// C state                   8 B
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let medium = pool.medium();
        let held = held(medium, words, slot);
        let state = State::load(medium, words);
        debug_assert!(state.valid() & 1 << slot != 0);
        medium.store(&words[STATE], state.toggle(slot, held).0);
        let _ = medium.persist(&words[STATE..=STATE]);
        held.entry
    }

    /// ```text
    /// C state                   8 B        what it drops was hidden already
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
            let held = held(medium, words, slot);
            if !keep(held.entry)? {
                kept = kept.toggle(slot, held);
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
    /// W fingerprints, shapes                 in the line of C, before it
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
        for (slot, &held) in slots(free).zip(entries) {
            set_entry(medium, words, slot, held.entry);
            state = state.toggle(slot, held);
        }
        let fenced = medium.fence();
        for (slot, &held) in slots(free).zip(entries) {
            describe(medium, words, slot, held);
        }
        Ok(state.commit(medium, words, fenced))
    }

    /// Computes the sum anew.
    fn verify<M: Medium>(medium: &M, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let found = State::load(medium, words);
        let empty = State::empty(medium.load(&words[Self::LOW]));
        let expected = slots(found.valid())
            .fold(empty, |state, slot| state.toggle(slot, held(medium, words, slot)));
        if expected == found {
            return Ok(());
        }
        let (at, what) = (at + 8 * STATE as u64, "sum of the entries of a leaf");
        Err(Corrupt { at, what, expected: expected.0, found: found.0 })
    }

    /// Nothing here is computed again: what a crash leaves is whole.
    fn repair<K: Key, M: Medium>(_: &Pool<M>, _at: u64, _: &[PmWord]) -> Result<(), Corrupt> {
        Ok(())
    }
}
