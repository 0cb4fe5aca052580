//! The forms of the elements of the two trees that have this leaf.

use super::{Appender, ELEMENTS, STATE};
use crate::key::Entry;
use bristlecone_pmem::{Fenced, Medium, PmWord};
use core::fmt::Debug;

/// The form of the elements of a leaf: the place of their kinds, and the elements of an update.
pub trait ElementForm: Debug + Send + Sync + Sized + 'static {
    /// The number of words of an element. The last two are the key word and the value word.
    const WORDS: usize;
    /// The most elements that a state can count.
    const COUNT_MAX: usize;
    /// The number of elements of an update.
    const UPDATE_ELEMENTS: usize;
    /// The state of a leaf without elements.
    const EMPTY: u64;

    /// Returns the number of elements that `state` counts; more than
    /// [`COUNT_MAX`](Self::COUNT_MAX) if no leaf has this state.
    fn count(state: u64) -> usize;

    /// Returns the state once one more element counts.
    fn append(state: u64, is_pair: bool) -> u64;

    /// Returns `true` if the element in `slot`, which `state` counts, is a pair.
    fn is_pair<M: Medium>(medium: &M, words: &[PmWord], state: u64, slot: usize) -> bool;

    /// Stores the kind of an element that no state counts yet, if it has a word for it.
    ///
    /// ```text
    /// W kind    8 B, or nothing
    /// ```
    fn store_kind<M: Medium>(medium: &M, element: &[PmWord], is_pair: bool);

    /// Turns the pairs in `slots` into tombstones. Durable on return.
    ///
    /// ```text
    /// KindWords
    /// C kind                    8 B each     one, or hidden pairs
    /// F their lines |           -> durable   budget: their lines, 1 fence
    ///
    /// KindBits
    /// C state                   8 B
    /// F header |                -> durable   budget: 1 line, 1 fence
    /// ```
    fn hide<M: Medium>(medium: &M, words: &[PmWord], state: u64, slots: &[usize]);

    /// Appends the elements of an update of the pair `entry`. Durable on return.
    fn update<M: Medium>(medium: &M, appender: Appender<'_, Self>, entry: Entry) -> Fenced;
}

/// The form of `nv-tree-r`: the state has the kinds, and a new pair hides the former one.
#[derive(Debug)]
pub struct KindBits;

/// The published form, of `nv-tree`: an element has a word for its kind, and an update is a delete
/// and an insert, which one store of the state commits.
#[derive(Debug)]
pub struct KindWords;

impl ElementForm for KindBits {
    const WORDS: usize = 2;
    const COUNT_MAX: usize = 63;
    const UPDATE_ELEMENTS: usize = 1;
    const EMPTY: u64 = 1;

    #[inline(always)]
    fn count(state: u64) -> usize {
        state.checked_ilog2().map_or(usize::MAX, |count| count as usize)
    }

    #[inline(always)]
    fn append(state: u64, is_pair: bool) -> u64 {
        let end = 1 << Self::count(state);
        state & !end | end << 1 | if is_pair { end } else { 0 }
    }

    #[inline(always)]
    fn is_pair<M: Medium>(_: &M, _: &[PmWord], state: u64, slot: usize) -> bool {
        state >> slot & 1 == 1
    }

    #[inline(always)]
    fn store_kind<M: Medium>(_: &M, _: &[PmWord], _is_pair: bool) {}

    fn hide<M: Medium>(medium: &M, words: &[PmWord], state: u64, slots: &[usize]) {
        let hidden = slots.iter().fold(0, |bits, slot| bits | 1 << slot);
        medium.store(&words[STATE], state & !hidden);
        let _ = medium.persist(&words[STATE..=STATE]);
    }

    /// Persist order: that of `Appender::append`, of one element.
    #[inline(always)]
    fn update<M: Medium>(medium: &M, appender: Appender<'_, Self>, entry: Entry) -> Fenced {
        appender.append(medium, &[(entry, true)])
    }
}

impl KindWords {
    /// The bits above the number of elements: "nv24" in ASCII, so that neither zeros nor the state
    /// of another form count any.
    const TAG: u64 = 0x6e76_3234 << 32;
    const KIND: usize = 0;
    pub(super) const PAIR: u64 = 1;
    const TOMBSTONE: u64 = 0;
}

impl ElementForm for KindWords {
    const WORDS: usize = 3;
    const COUNT_MAX: usize = 0xff;
    const UPDATE_ELEMENTS: usize = 2;
    const EMPTY: u64 = Self::TAG;

    #[inline(always)]
    fn count(state: u64) -> usize {
        (state ^ Self::TAG) as usize
    }

    #[inline(always)]
    fn append(state: u64, _is_pair: bool) -> u64 {
        state + 1
    }

    #[inline(always)]
    fn is_pair<M: Medium>(medium: &M, words: &[PmWord], _state: u64, slot: usize) -> bool {
        medium.load(&words[ELEMENTS + Self::WORDS * slot + Self::KIND]) == Self::PAIR
    }

    #[inline(always)]
    fn store_kind<M: Medium>(medium: &M, element: &[PmWord], is_pair: bool) {
        let kind = if is_pair { Self::PAIR } else { Self::TOMBSTONE };
        medium.store(&element[Self::KIND], kind);
    }

    fn hide<M: Medium>(medium: &M, words: &[PmWord], _state: u64, slots: &[usize]) {
        for slot in slots {
            let kind = ELEMENTS + Self::WORDS * slot + Self::KIND;
            medium.store(&words[kind], Self::TOMBSTONE);
            medium.flush(&words[kind..=kind]);
        }
        let _ = medium.fence();
    }

    /// Persist order: that of `Appender::append`, of a tombstone and a pair.
    #[inline(always)]
    fn update<M: Medium>(medium: &M, appender: Appender<'_, Self>, entry: Entry) -> Fenced {
        appender.append(medium, &[(Entry::plain(entry.key, 0), false), (entry, true)])
    }
}
