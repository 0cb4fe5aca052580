//! The order of stores to bitmap and slot array. A crash must never leave the valid bit set beside
//! an array that is only partly changed.
//!
//! 1. Whenever a crash image can hold a torn array, its bitmap has a clear valid bit.
//! 2. That bitmap shows the entries as before the change, so a repair rebuilds the old array; or as
//!    after it, if the second word of the bitmap persisted before the valid bit. The entry of an
//!    insert is durable by then.

use super::{COMMIT, HIGH, SlotBytes, VALID, store_slots};
use crate::key::Entry;
use crate::node::View;
use crate::spec::Cost;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Defect, Fenced, Medium};

/// A change of the bitmap and the slot array.
#[derive(Debug)]
pub struct SlotChange {
    /// The current first word of the bitmap, with the valid bit set.
    pub(super) bitmap: u64,
    /// The new first word, with the valid bit set.
    pub(super) next: u64,
    /// The new second word of the bitmap, if it changes.
    pub(super) high: Option<u64>,
    /// The index of the first word of the slot array, and the number of its words.
    pub(super) slots: usize,
    pub(super) slot_words: usize,
    pub(super) old: SlotBytes,
    pub(super) new: SlotBytes,
}

impl SlotChange {
    /// Stores the words of the array that change. Returns the index of the last one.
    #[inline(always)]
    fn store_slots<M: Medium>(&self, node: View<'_, M>) -> usize {
        store_slots(node, self.slots, &self.old[..8 * self.slot_words], &self.new)
    }

    /// Stores the second word of the bitmap, if it changes, and commits the first one. The second
    /// word persists with the first one or before it, because they lie in one line. Durable on
    /// return.
    #[inline(always)]
    fn commit<M: Medium>(&self, node: View<'_, M>, fenced: Fenced) -> Fenced {
        if let Some(high) = self.high {
            node.store(HIGH, high);
        }
        node.medium().commit(node.word(COMMIT), self.next, fenced);
        node.persist(COMMIT..=COMMIT)
    }
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
            (change.slots..=change.slots + words).for_each(|word| node.flush(word..=word));
        } else {
            node.flush(change.slots..=last);
        }
    }
}

impl<const BY_WORD: bool> SlotCommit for FencedTwice<BY_WORD> {
    const SLOT_LINES_MAX: u32 = 3;
    const BY_WORD: bool = BY_WORD;
    const INSERT: Cost = Cost::new(3, 3);
    const REMOVE: Cost = Cost::new(2, 3);

    /// ```text
    /// W bitmap without valid bit    crash before C: the entry is invisible; a repair rebuilds
    /// F bitmap |                    the array if the valid bit is clear
    /// W entry, slots from the rank on
    /// F entry, slots |
    /// C bitmap with both bits       8 B; a changed second word is stored before, in its line
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
        let last = change.store_slots(node);
        let first_line = M::INJECTS_DEFECTS && node.medium().injects(Defect::SlotLineUnflushed);
        Self::flush_slots(node, change, if first_line { last.min(LINE_WORDS - 1) } else { last });
        if BY_WORD || word / LINE_WORDS > last / LINE_WORDS {
            node.flush(word..=word);
        }
        let fenced = node.medium().fence();
        change.commit(node, fenced)
    }

    /// ```text
    /// W bitmap without valid bit    crash before C: the entry is still valid (its bit is set)
    /// F bitmap |
    /// W slots from the rank on
    /// F slots |
    /// C bitmap without the entry    8 B; a changed second word is stored before, in its line
    /// F bitmap |      -> durable    budget: 2 lines and the flushes of the array, 3 fences
    /// ```
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, change: &SlotChange) -> Fenced {
        node.store(COMMIT, change.bitmap & !VALID);
        let _ = node.persist(COMMIT..=COMMIT);
        let last = change.store_slots(node);
        Self::flush_slots(node, change, last);
        let fenced = node.medium().fence();
        change.commit(node, fenced)
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
        change.store_slots(node);
        change.commit(node, fenced)
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
        debug_assert!(change.high.is_none(), "array and bitmap in one line have one word each");
        change.store_slots(node);
        node.store(COMMIT, change.next);
        node.persist(COMMIT..=COMMIT)
    }
}
