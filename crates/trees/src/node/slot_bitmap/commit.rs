//! The order of stores to bitmap and slot array. A crash must never leave the valid bit set beside
//! an array that is only partly changed.
//!
//! 1. Whenever a crash image can hold a torn array, its bitmap has a clear valid bit.
//! 2. That bitmap shows the entries as before the change, so a repair rebuilds the old array.

use super::{COMMIT, SLOTS, SlotBytes, VALID, store_slots};
use crate::key::Entry;
use crate::node::View;
use crate::spec::Cost;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Defect, Fenced, Medium};

/// A change of the bitmap and the slot array.
#[derive(Debug)]
pub struct SlotChange {
    /// The current bitmap, with the valid bit set.
    pub(super) bitmap: u64,
    /// The new bitmap, with the valid bit set.
    pub(super) next: u64,
    pub(super) old: SlotBytes,
    pub(super) new: SlotBytes,
}

/// An order of the stores to bitmap and slot array.
pub trait SlotCommit: Send + Sync + 'static {
    /// The maximum number of lines that header and slot array may take.
    const SLOT_LINES_MAX: u32;
    /// `true` if each word of the array is flushed by itself.
    const BY_WORD: bool;
    /// The maximum cost of an insert, without the flush of the array.
    const INSERT: Cost;
    /// The maximum cost of a remove, without the flush of the array.
    const REMOVE: Cost;

    /// Writes `entry` at `word`, a free slot, and then makes `change`, which shows it. Durable on
    /// return.
    fn insert<M: Medium>(
        node: View<'_, M>,
        change: &SlotChange,
        word: usize,
        entry: Entry,
    ) -> Fenced;

    /// Makes `change`, which hides an entry. Durable on return.
    fn remove<M: Medium>(node: View<'_, M>, change: &SlotChange) -> Fenced;
}

/// The published order, with a fence before and after the change of the array. Bitmap and array may
/// lie in different lines. The loop as it is printed steps by 8 B, so it flushes a line once for
/// each of its words: `BY_WORD` does so.
#[derive(Debug)]
pub struct FencedTwice<const BY_WORD: bool>;

impl<const BY_WORD: bool> FencedTwice<BY_WORD> {
    /// Flushes the array of `change`, of which the words up to `last` were stored.
    #[inline(always)]
    fn flush_slots<M: Medium>(node: View<'_, M>, change: &SlotChange, last: usize) {
        if BY_WORD {
            let words = usize::from(change.old[0].max(change.new[0])) / 8;
            (SLOTS..=SLOTS + words).for_each(|word| node.flush(word..=word));
        } else {
            node.flush(SLOTS..=last);
        }
    }
}

impl<const BY_WORD: bool> SlotCommit for FencedTwice<BY_WORD> {
    const SLOT_LINES_MAX: u32 = 2;
    const BY_WORD: bool = BY_WORD;
    const INSERT: Cost = Cost::new(3, 3);
    const REMOVE: Cost = Cost::new(2, 3);

    /// ```text
    /// W bitmap without valid bit    crash before C: the entry is invisible; a repair rebuilds
    /// F bitmap |                    the array if the valid bit is clear
    /// W entry, slots from the rank on
    /// F entry, slots |
    /// C bitmap with both bits       8 B
    /// F bitmap |      -> durable    budget: 3 lines and the flushes of the array, 3 fences
    /// ```
    #[inline(always)]
    fn insert<M: Medium>(
        node: View<'_, M>,
        change: &SlotChange,
        word: usize,
        entry: Entry,
    ) -> Fenced {
        node.store(COMMIT, change.bitmap & !VALID);
        let _ = node.persist(COMMIT..=COMMIT);
        node.store(word, entry.key);
        node.store(word + 1, entry.value);
        let last = store_slots(node, &change.old, &change.new);
        let first_line = M::INJECTS_DEFECTS && node.medium().injects(Defect::SlotLineUnflushed);
        Self::flush_slots(node, change, if first_line { last.min(LINE_WORDS - 1) } else { last });
        if BY_WORD || word / LINE_WORDS > last / LINE_WORDS {
            node.flush(word..=word);
        }
        let fenced = node.medium().fence();
        node.medium().commit(node.word(COMMIT), change.next, fenced);
        node.persist(COMMIT..=COMMIT)
    }

    /// ```text
    /// W bitmap without valid bit    crash before C: the entry is still valid (its bit is set)
    /// F bitmap |
    /// W slots from the rank on
    /// F slots |
    /// C bitmap without the entry    8 B
    /// F bitmap |      -> durable    budget: 2 lines and the flushes of the array, 3 fences
    /// ```
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, change: &SlotChange) -> Fenced {
        node.store(COMMIT, change.bitmap & !VALID);
        let _ = node.persist(COMMIT..=COMMIT);
        let last = store_slots(node, &change.old, &change.new);
        Self::flush_slots(node, change, last);
        let fenced = node.medium().fence();
        node.medium().commit(node.word(COMMIT), change.next, fenced);
        node.persist(COMMIT..=COMMIT)
    }
}

/// An order without a fence around the change of the array. It needs bitmap and array in one line,
/// whose stores persist in their order.
#[derive(Debug)]
pub struct InOneLine;

impl SlotCommit for InOneLine {
    const SLOT_LINES_MAX: u32 = 1;
    const BY_WORD: bool = false;
    const INSERT: Cost = Cost::new(1, 2);
    const REMOVE: Cost = Cost::new(0, 1);

    /// ```text
    /// W entry       1 line          crash before C: the entry is invisible; a repair rebuilds
    /// F entry |                     the array if the valid bit is clear
    /// W bitmap without valid bit, slots from the rank on
    /// C bitmap with both bits       8 B, in the line of the slots
    /// F bitmap |      -> durable    budget: 2 lines, 2 fences
    /// ```
    #[inline(always)]
    fn insert<M: Medium>(
        node: View<'_, M>,
        change: &SlotChange,
        word: usize,
        entry: Entry,
    ) -> Fenced {
        node.store(word, entry.key);
        node.store(word + 1, entry.value);
        let fenced = node.persist(word..=word);
        node.store(COMMIT, change.bitmap & !VALID);
        store_slots(node, &change.old, &change.new);
        node.medium().commit(node.word(COMMIT), change.next, fenced);
        node.persist(COMMIT..=COMMIT)
    }

    /// ```text
    /// W bitmap without valid bit    crash before C: the entry is still valid (its bit is set)
    /// W slots from the rank on
    /// C bitmap without the entry    8 B, in the line of the slots
    /// F bitmap |      -> durable    budget: 1 line, 1 fence
    /// ```
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, change: &SlotChange) -> Fenced {
        node.store(COMMIT, change.bitmap & !VALID);
        store_slots(node, &change.old, &change.new);
        node.store(COMMIT, change.next);
        node.persist(COMMIT..=COMMIT)
    }
}
