//! The leaf of NV-Tree: an insert and a remove each append one element, an update one or two, and
//! the newest element of a key decides.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | state | commit | the number of elements; of `KindBits` also their kinds |
//! | 1 | 8 | next | commit | the right neighbour |
//! | 2 | 8 | low | data | separator word of the low key |
//! | 3 | 8 | latch | transient | version |
//! | 4 | 16 N or 24 N | elements | data | of `KindWords` first the kind; key word, value word |
//!
//! | form | state | kind | N in 256, 512, 1024, 2048 B |
//! | --- | --- | --- | --- |
//! | `KindWords` (`nv-tree`) | tag (56 bits), number (8) | 1 pair, 0 tombstone | 9, 20, 41, 84 |
//! | `KindBits` (`nv-tree-r`) | number: the highest set bit | bits below: 1 pair | 14, 30, 62, - |
//!
//! 1. An element is durable before the state counts it. One word commits every change: the state,
//!    or in a full leaf the kind of an element. So nothing relies on the order in which the words
//!    of a line persist.
//! 2. A present key has one key word: an update and a tombstone repeat the key word of the pair
//!    that they follow. So the live pairs are those whose key word no later element repeats;
//!    finding them reads no key. Key words of different keys differ, as in every layer whose
//!    [`store_entry_key`](Key::store_entry_key) is [`store_separator`](Key::store_separator).
//! 3. The key word of any other element may name a record that is freed or that holds another key
//!    by now. It is compared as a word and never followed.
//! 4. A full leaf is replaced with fresh ones before the next insert or update. A remove must not
//!    fail: in a full leaf it turns the newest element of its key into a tombstone.
//! 5. A leaf without live pairs has no elements: the remove of the last pair drops all of them.

mod form;

pub use form::{ElementForm, KindBits, KindWords};

use super::{InsertResult, Leaf, TaggedEntry};
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;
use core::marker::PhantomData;

const STATE: usize = 0;
const ELEMENTS: usize = 4;

/// 2^64 divided by the golden ratio (Fibonacci hashing), so that consecutive words spread over the
/// buckets.
const HASH_MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The free end of a leaf.
#[derive(Debug)]
pub struct Appender<'p, E> {
    words: &'p [PmWord],
    state: u64,
    form: PhantomData<E>,
}

impl<'p, E: ElementForm> Appender<'p, E> {
    fn new(words: &'p [PmWord], state: u64) -> Self {
        Self { words, state, form: PhantomData }
    }

    /// Appends `elements`, each with `true` if it is a pair. Durable on return.
    ///
    /// ```text
    /// W elements                their lines  crash before C: not counted
    /// F elements |                           the record that a key word names is fenced with them
    /// C state                   8 B
    /// F header |                -> durable   budget: lines of the elements + 1, 2 fences
    /// ```
    #[inline(always)]
    pub(super) fn append<M: Medium>(self, medium: &M, elements: &[(Entry, bool)]) -> Fenced {
        let first = ELEMENTS + E::WORDS * E::count(self.state);
        let target = &self.words[first..first + E::WORDS * elements.len()];
        let mut state = self.state;
        for (element, &(entry, is_pair)) in target.chunks_exact(E::WORDS).zip(elements) {
            E::store_kind(medium, element, is_pair);
            medium.store(&element[E::WORDS - 2], entry.key);
            medium.store(&element[E::WORDS - 1], entry.value);
            state = E::append(state, is_pair);
        }
        let fenced = medium.persist(target);
        medium.commit(&self.words[STATE], state, fenced);
        medium.persist(&self.words[STATE..=STATE])
    }
}

/// The append-only leaf of `NODE` bytes, with elements of the form `E`.
#[derive(Debug)]
pub struct Append<const NODE: usize, E>(PhantomData<E>);

/// A set of slots: bit i is slot i.
type SlotSet = u128;

/// Yields the slots of a set, from the lowest.
#[inline(always)]
fn slots_of(mut set: SlotSet) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let slot = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (slot < 128).then_some(slot)
    })
}

impl<const NODE: usize, E: ElementForm> Append<NODE, E> {
    const ELEMENTS_MAX: usize = {
        let elements = (NODE / 8 - ELEMENTS) / E::WORDS;
        assert!(
            NODE.is_multiple_of(64) && elements <= E::COUNT_MAX && elements <= 128,
            "whole lines; a state for each number of elements; a slot set holds all"
        );
        elements
    };

    /// Returns the state, or that of an empty leaf if the stored one counts more elements than fit.
    /// So no index leaves the leaf, even if a reader loads a torn or damaged word.
    #[inline(always)]
    fn state<M: Medium>(medium: &M, words: &[PmWord]) -> u64 {
        let state = medium.load(&words[STATE]);
        if E::count(state) <= Self::ELEMENTS_MAX { state } else { E::EMPTY }
    }

    /// Returns the index of the key word in `slot`. The value word follows it.
    #[inline(always)]
    const fn key_at(slot: usize) -> usize {
        ELEMENTS + E::WORDS * slot + E::WORDS - 2
    }

    #[inline(always)]
    fn key<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> u64 {
        medium.load(&words[Self::key_at(slot)])
    }

    #[inline(always)]
    fn entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> Entry {
        let value = medium.load(&words[Self::key_at(slot) + 1]);
        Entry::plain(Self::key(medium, words, slot), value)
    }

    /// Returns `true` if no later element repeats the key word in `slot`.
    #[inline(always)]
    fn is_newest<M: Medium>(medium: &M, words: &[PmWord], state: u64, slot: usize) -> bool {
        let key = Self::key(medium, words, slot);
        (slot + 1..E::count(state)).all(|later| Self::key(medium, words, later) != key)
    }

    /// Returns the live pairs: those whose key word no later element repeats (2).
    fn live<M: Medium>(medium: &M, words: &[PmWord], state: u64) -> SlotSet {
        // A filter with one bit for each hash value: a key word whose bit is clear is new, so most
        // words need no comparison with the later elements.
        let (mut seen, mut live) = ([0u64; 4], 0);
        for slot in (0..E::count(state)).rev() {
            let hash = Self::key(medium, words, slot).wrapping_mul(HASH_MULTIPLIER) >> 56;
            let (word, bit) = (&mut seen[hash as usize / 64], 1 << (hash % 64));
            let is_newest = *word & bit == 0 || Self::is_newest(medium, words, state, slot);
            *word |= bit;
            if is_newest && E::is_pair(medium, words, state, slot) {
                live |= 1 << slot;
            }
        }
        live
    }

    /// Returns `true` if the leaf has a live pair besides the one in `slot`.
    #[inline(always)]
    fn has_other_live_pair<M: Medium>(
        medium: &M,
        words: &[PmWord],
        state: u64,
        slot: usize,
    ) -> bool {
        (0..E::count(state)).rev().any(|other| {
            other != slot
                && E::is_pair(medium, words, state, other)
                && Self::is_newest(medium, words, state, other)
        })
    }

    /// Returns the live pair of `key`, in layers whose key word is the key: the newest element with
    /// that word decides, and reading it follows no pointer.
    #[inline(always)]
    fn find_by_word<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        state: u64,
        key: K::Ref<'_>,
    ) -> Result<Option<usize>, Corrupt> {
        let medium = pool.medium();
        for slot in (0..E::count(state)).rev() {
            if K::order(pool, Self::key(medium, words, slot), key)? == Ordering::Equal {
                return Ok(E::is_pair(medium, words, state, slot).then_some(slot));
            }
        }
        Ok(None)
    }

    /// Returns the live pair of `key`, in layers whose key words name records: only live pairs may
    /// be read (3).
    fn find_by_record<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        state: u64,
        key: K::Ref<'_>,
    ) -> Result<Option<usize>, Corrupt> {
        for slot in slots_of(Self::live(pool.medium(), words, state)) {
            let entry = Self::entry(pool.medium(), words, slot);
            if K::order_entry(pool, entry, key)? == Ordering::Equal {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }
}

impl<const NODE: usize, E: ElementForm> Leaf for Append<NODE, E> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = Self::ELEMENTS_MAX;
    const NEXT: usize = 1;
    const LOW: usize = 2;
    const LATCH: usize = 3;
    const IS_APPEND_ONLY: bool = true;
    const UPDATE_SLOTS: usize = E::UPDATE_ELEMENTS;

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let state = entries.iter().fold(E::EMPTY, |state, _| E::append(state, true));
        let header = [state, next, low, 0];
        let elements = entries.iter().flat_map(|tagged| {
            let words = [KindWords::PAIR, tagged.entry.key, tagged.entry.value];
            words.into_iter().skip(words.len() - E::WORDS)
        });
        let image: Vec<u8> =
            header.into_iter().chain(elements).flat_map(u64::to_le_bytes).collect();
        pool.medium().fill(&words[..image.len() / 8], &image);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let state = Self::state(pool.medium(), words);
        let found = if K::EXACT {
            Self::find_by_word::<K, M>(pool, words, state, key)?
        } else {
            Self::find_by_record::<K, M>(pool, words, state, key)?
        };
        Ok(found.map(|slot| (slot, Self::entry(pool.medium(), words, slot).held_value())))
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        let live = Self::live(medium, words, Self::state(medium, words));
        let tagged = |slot| TaggedEntry { entry: Self::entry(medium, words, slot), fingerprint: 0 };
        entries.extend(slots_of(live).map(tagged));
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::live(medium, words, Self::state(medium, words)).count_ones() as usize
    }

    fn free_slots<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::CAPACITY - E::count(Self::state(medium, words))
    }

    /// Persist order: that of `Appender::append`.
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let state = Self::state(pool.medium(), words);
        if E::count(state) >= Self::CAPACITY {
            return Ok(InsertResult::Full);
        }
        let entry = Entry::plain(K::store_entry_key(pool, key, value.word)?, value.word);
        let appender = Appender::<E>::new(words, state);
        Ok(InsertResult::Done(appender.append(pool.medium(), &[(entry, true)])))
    }

    /// Persist order: that of `Appender::append`.
    #[inline]
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let medium = pool.medium();
        let state = Self::state(medium, words);
        if E::count(state) + E::UPDATE_ELEMENTS > Self::CAPACITY {
            return None;
        }
        let entry = Entry::plain(Self::entry(medium, words, slot).key, value.word);
        Some(E::update(medium, Appender::new(words, state), entry))
    }

    /// Persist order: that of `Appender::append`, of a tombstone. In a full leaf that of
    /// [`ElementForm::hide`], of the newest element of the key. For the last live pair:
    ///
    /// ```text
    /// C state                   8 B        the leaf becomes empty
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let medium = pool.medium();
        let (state, entry) = (Self::state(medium, words), Self::entry(medium, words, slot));
        debug_assert!(E::is_pair(medium, words, state, slot));
        if !Self::has_other_live_pair(medium, words, state, slot) {
            medium.store(&words[STATE], E::EMPTY);
            let _ = medium.persist(&words[STATE..=STATE]);
        } else if E::count(state) < Self::CAPACITY {
            let tombstone = (Entry::plain(entry.key, 0), false);
            let _ = Appender::<E>::new(words, state).append(medium, &[tombstone]);
        } else {
            E::hide(medium, words, state, &[slot]);
        }
        entry
    }

    /// Persist order: that of [`ElementForm::hide`]. The pairs that become tombstones were hidden
    /// already.
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let state = Self::state(medium, words);
        let mut dropped = Vec::new();
        for slot in slots_of(Self::live(medium, words, state)) {
            if !keep(Self::entry(medium, words, slot))? {
                dropped.push(slot);
            }
        }
        if !dropped.is_empty() {
            E::hide(medium, words, state, &dropped);
        }
        Ok(())
    }

    /// ```text
    /// W elements                their lines  crash before C: not counted
    /// F elements |
    /// C state                   8 B          crash after C: hidden by the neighbour's low key
    /// F header |                -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let medium = pool.medium();
        let pairs: Vec<_> = entries.iter().map(|tagged| (tagged.entry, true)).collect();
        Ok(Appender::<E>::new(words, Self::state(medium, words)).append(medium, &pairs))
    }

    /// Checks the state word and writes nothing: no field is derived from the elements.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let found = pool.medium().load(&words[STATE]);
        if E::count(found) <= Self::CAPACITY {
            return Ok(());
        }
        let (what, expected) = ("element count of a leaf", Self::CAPACITY as u64);
        Err(Corrupt { at: at + 8 * STATE as u64, what, expected, found })
    }
}

#[cfg(test)]
mod tests;
