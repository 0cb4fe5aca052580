//! The leaf of NV-Tree: an insert and a remove each append one element, an update one or two, and
//! the newest element of a key decides.
//!
//! For `N` elements (14, 30 or 62 in leaves of 256, 512 or 1024 B):
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | state | commit | highest set bit: the number of elements; below: 1 pair, 0 tombstone |
//! | 1 | 8 | next | commit | the right neighbour |
//! | 2 | 8 | low | data | separator word of the low key |
//! | 3 | 8 | latch | transient | version |
//! | 4 | 16 N | elements | data | key word, value word |
//!
//! 1. An element is durable before the state counts it. One word, the state, commits every change,
//!    so nothing relies on the order in which the words of a line persist.
//! 2. A present key has one key word: an update and a tombstone repeat the key word of the pair
//!    that they follow. So the live pairs are those whose key word no later element repeats;
//!    finding them reads no key. Key words of different keys differ, as in every layer whose
//!    [`store_entry_key`](Key::store_entry_key) is [`store_separator`](Key::store_separator).
//! 3. The key word of any other element may name a record that is freed or that holds another key
//!    by now. It is compared as a word and never followed.
//! 4. A full leaf is replaced with fresh ones before the next insert or update. A remove must not
//!    fail: in a full leaf it turns the newest element of its key into a tombstone.
//! 5. A leaf without live pairs has no elements: the remove of the last pair drops all of them.

use super::{InsertResult, Leaf, TaggedEntry, slots};
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;
use core::fmt::Debug;
use core::marker::PhantomData;

const STATE: usize = 0;
const ELEMENTS: usize = 4;

/// 2^64 divided by the golden ratio (Fibonacci hashing), so that consecutive words spread over the
/// buckets.
const HASH_MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The elements that an update appends.
pub trait UpdateOrder: Debug + Send + Sync + 'static {
    /// The number of elements of an update.
    const ELEMENTS: usize;

    /// Appends the elements of an update of the pair `entry`, which are at most `ELEMENTS`. Durable
    /// on return.
    fn update<M: Medium>(medium: &M, appender: Appender<'_>, entry: Entry) -> Fenced;
}

/// The order of `nv-tree-r`: the new pair hides the former one.
#[derive(Debug)]
pub struct OneElement;

/// The published order, of `nv-tree`: an update is a delete and an insert, which one store of the
/// state commits.
#[derive(Debug)]
pub struct TwoElements;

impl UpdateOrder for OneElement {
    const ELEMENTS: usize = 1;

    /// Persist order: that of `Appender::append`, of one element.
    #[inline(always)]
    fn update<M: Medium>(medium: &M, appender: Appender<'_>, entry: Entry) -> Fenced {
        appender.append(medium, &[(entry, true)])
    }
}

impl UpdateOrder for TwoElements {
    const ELEMENTS: usize = 2;

    /// Persist order: that of `Appender::append`, of a tombstone and a pair.
    #[inline(always)]
    fn update<M: Medium>(medium: &M, appender: Appender<'_>, entry: Entry) -> Fenced {
        appender.append(medium, &[(Entry::plain(entry.key, 0), false), (entry, true)])
    }
}

/// The free end of a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Appender<'p> {
    words: &'p [PmWord],
    state: State,
}

impl Appender<'_> {
    /// Appends `elements`, each with `true` if it is a pair. Durable on return.
    ///
    /// ```text
    /// W elements                1 line, of two elements up to 2; crash before C: not counted
    /// F elements |                         the record that a key word names is fenced with them
    /// C state                   8 B
    /// F header |                -> durable  budget: 2 lines (3), 2 fences
    /// ```
    #[inline(always)]
    fn append<M: Medium>(self, medium: &M, elements: &[(Entry, bool)]) -> Fenced {
        let first = ELEMENTS + 2 * self.state.count();
        let target = &self.words[first..first + 2 * elements.len()];
        let mut state = self.state;
        for (element, &(entry, is_pair)) in target.chunks_exact(2).zip(elements) {
            medium.store(&element[0], entry.key);
            medium.store(&element[1], entry.value);
            state = state.append(is_pair);
        }
        let fenced = medium.persist(target);
        state.commit(medium, self.words, fenced)
    }
}

/// The append-only leaf of `NODE` bytes, whose updates append what `U` says.
#[derive(Debug)]
pub struct Append<const NODE: usize, U>(PhantomData<U>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u64);

impl State {
    #[inline(always)]
    fn load<M: Medium>(medium: &M, words: &[PmWord]) -> Self {
        Self(medium.load(&words[STATE]))
    }

    /// Returns the number of elements; up to 63 if the leaf is damaged.
    #[inline(always)]
    const fn count(self) -> usize {
        (self.0 | 1).ilog2() as usize
    }

    /// Returns the elements that are pairs, as bits.
    #[inline(always)]
    const fn pairs(self) -> u64 {
        self.0 & !(1 << self.count())
    }

    const fn of(count: usize, pairs: u64) -> Self {
        Self(1 << count | pairs)
    }

    #[inline(always)]
    const fn append(self, is_pair: bool) -> Self {
        let count = self.count();
        Self::of(count + 1, self.pairs() | (is_pair as u64) << count)
    }

    #[inline(always)]
    fn commit<M: Medium>(self, medium: &M, words: &[PmWord], fenced: Fenced) -> Fenced {
        medium.commit(&words[STATE], self.0, fenced);
        medium.persist(&words[STATE..=STATE])
    }
}

impl<const NODE: usize, U: UpdateOrder> Append<NODE, U> {
    const ELEMENTS_MAX: usize = {
        let elements = (NODE / 8 - ELEMENTS) / 2;
        assert!(
            NODE.is_multiple_of(64) && elements < 64,
            "whole lines; a state bit for each element, one above"
        );
        elements
    };

    /// Returns the state, or that of an empty leaf if the stored one counts more elements than fit.
    /// So no index leaves the leaf, even if a reader loads a torn or damaged word.
    #[inline(always)]
    fn state<M: Medium>(medium: &M, words: &[PmWord]) -> State {
        let state = State::load(medium, words);
        if state.count() <= Self::ELEMENTS_MAX { state } else { State::of(0, 0) }
    }

    #[inline(always)]
    fn element(words: &[PmWord], slot: usize) -> &[PmWord] {
        let at = ELEMENTS + 2 * slot;
        &words[at..at + 2]
    }

    #[inline(always)]
    fn entry<M: Medium>(medium: &M, words: &[PmWord], slot: usize) -> Entry {
        let element = Self::element(words, slot);
        Entry::plain(medium.load(&element[0]), medium.load(&element[1]))
    }

    /// Returns `true` if no later element repeats the key word in `slot`.
    #[inline(always)]
    fn is_newest<M: Medium>(medium: &M, words: &[PmWord], state: State, slot: usize) -> bool {
        let key = |slot| medium.load(&Self::element(words, slot)[0]);
        (slot + 1..state.count()).all(|later| key(later) != key(slot))
    }

    /// Returns the live pairs, as bits: those whose key word no later element repeats (2).
    fn live<M: Medium>(medium: &M, words: &[PmWord], state: State) -> u64 {
        // A filter with one bit for each hash value: a key word whose bit is clear is new, so most
        // words need no comparison with the later elements.
        let (mut seen, mut live) = ([0u64; 4], 0);
        for slot in (0..state.count()).rev() {
            let key = medium.load(&Self::element(words, slot)[0]);
            let hash = key.wrapping_mul(HASH_MULTIPLIER) >> 56;
            let (word, bit) = (&mut seen[hash as usize / 64], 1 << (hash % 64));
            let is_newest = *word & bit == 0 || Self::is_newest(medium, words, state, slot);
            *word |= bit;
            live |= u64::from(is_newest) << slot & state.pairs();
        }
        live
    }

    /// Returns `true` if the leaf has a live pair besides the one in `slot`.
    #[inline(always)]
    fn has_other_live_pair<M: Medium>(
        medium: &M,
        words: &[PmWord],
        state: State,
        slot: usize,
    ) -> bool {
        let others = state.pairs() & !(1 << slot);
        let is_pair = |&other: &usize| others >> other & 1 == 1;
        let mut newest_first = (0..state.count()).rev().filter(is_pair);
        newest_first.any(|other| Self::is_newest(medium, words, state, other))
    }

    /// Returns the live pair of `key`, in layers whose key word is the key: the newest element with
    /// that word decides, and reading it follows no pointer.
    #[inline(always)]
    fn find_by_word<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        state: State,
        key: K::Ref<'_>,
    ) -> Result<Option<usize>, Corrupt> {
        for slot in (0..state.count()).rev() {
            let word = pool.medium().load(&Self::element(words, slot)[0]);
            if K::order(pool, word, key)? == Ordering::Equal {
                return Ok(Some(slot).filter(|slot| state.pairs() >> slot & 1 == 1));
            }
        }
        Ok(None)
    }

    /// Returns the live pair of `key`, in layers whose key words name records: only live pairs may
    /// be read (3).
    fn find_by_record<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        state: State,
        key: K::Ref<'_>,
    ) -> Result<Option<usize>, Corrupt> {
        for slot in slots(Self::live(pool.medium(), words, state)) {
            let entry = Self::entry(pool.medium(), words, slot);
            if K::order_entry(pool, entry, key)? == Ordering::Equal {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }
}

impl<const NODE: usize, U: UpdateOrder> Leaf for Append<NODE, U> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = Self::ELEMENTS_MAX;
    const NEXT: usize = 1;
    const LOW: usize = 2;
    const LATCH: usize = 3;
    const IS_APPEND_ONLY: bool = true;
    const UPDATE_SLOTS: usize = U::ELEMENTS;

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let state = State::of(entries.len(), (1 << entries.len()) - 1);
        let elements = entries.iter().flat_map(|tagged| [tagged.entry.key, tagged.entry.value]);
        let image: Vec<u8> = [state.0, next, low, 0]
            .into_iter()
            .chain(elements)
            .flat_map(u64::to_le_bytes)
            .collect();
        pool.medium().fill(&words[..ELEMENTS + 2 * entries.len()], &image);
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
        entries.extend(slots(live).map(tagged));
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::live(medium, words, Self::state(medium, words)).count_ones() as usize
    }

    fn free_slots<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::CAPACITY - Self::state(medium, words).count()
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
        if state.count() >= Self::CAPACITY {
            return Ok(InsertResult::Full);
        }
        let entry = Entry::plain(K::store_entry_key(pool, key, value.word)?, value.word);
        Ok(InsertResult::Done(Appender { words, state }.append(pool.medium(), &[(entry, true)])))
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
        if state.count() + U::ELEMENTS > Self::CAPACITY {
            return None;
        }
        let entry = Entry::plain(Self::entry(medium, words, slot).key, value.word);
        Some(U::update(medium, Appender { words, state }, entry))
    }

    /// Persist order: that of `Appender::append`, of a tombstone. In a full leaf, or for the last
    /// live pair:
    ///
    /// ```text
    /// C state                   8 B        the newest element of the key becomes a tombstone;
    ///                                      if no other pair is live, the leaf becomes empty
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let medium = pool.medium();
        let (state, entry) = (Self::state(medium, words), Self::entry(medium, words, slot));
        debug_assert!(state.pairs() >> slot & 1 == 1);
        let is_last = !Self::has_other_live_pair(medium, words, state, slot);
        if state.count() < Self::CAPACITY && !is_last {
            let tombstone = (Entry::plain(entry.key, 0), false);
            let _ = Appender { words, state }.append(medium, &[tombstone]);
        } else {
            let state = if is_last { State::of(0, 0) } else { State(state.0 & !(1 << slot)) };
            medium.store(&words[STATE], state.0);
            let _ = medium.persist(&words[STATE..=STATE]);
        }
        entry
    }

    /// ```text
    /// C state                   8 B        the pairs that become tombstones were hidden already
    /// F header |                -> durable  budget: 1 line, 1 fence
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let state = Self::state(medium, words);
        let mut kept = state.0;
        for slot in slots(Self::live(medium, words, state)) {
            if !keep(Self::entry(medium, words, slot))? {
                kept &= !(1 << slot);
            }
        }
        if kept != state.0 {
            medium.store(&words[STATE], kept);
            let _ = medium.persist(&words[STATE..=STATE]);
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
        Ok(Appender { words, state: Self::state(medium, words) }.append(medium, &pairs))
    }

    /// Checks the state word and writes nothing: no field is derived from the elements.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let state = State::load(pool.medium(), words);
        if state.0 != 0 && state.count() <= Self::CAPACITY {
            return Ok(());
        }
        let (what, expected) = ("element count of a leaf", Self::CAPACITY as u64);
        Err(Corrupt { at: at + 8 * STATE as u64, what, expected, found: state.0 })
    }
}

#[cfg(test)]
mod tests;
