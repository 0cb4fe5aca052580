//! How the bitmap and the slot array take turns, so that the valid bit never vouches for an array
//! that a crash has left half changed.
//!
//! 1. Between two valid states of the array the medium holds, for as long as the array may be torn,
//!    a bitmap without the valid bit.
//! 2. The bitmap meanwhile shows the entries as they were: recovery makes the old array again.

use super::{COMMIT, SLOTS, SlotBytes, VALID, store_slots};
use crate::key::Entry;
use crate::node::View;
use crate::spec::Cost;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Fenced, Medium};

/// A change of the bitmap and the slot array.
#[derive(Debug)]
pub struct SlotChange {
    /// The bitmap as it is, with the valid bit.
    pub(super) bitmap: u64,
    /// The bitmap as it is to be, with the valid bit.
    pub(super) next: u64,
    pub(super) old: SlotBytes,
    pub(super) new: SlotBytes,
}

/// How the bitmap and the slot array take turns.
pub trait SlotCommit: Send + Sync + 'static {
    /// The most lines that header and array may lie in.
    const SLOT_LINES_MAX: u32;
    /// What an insert costs at most beside the flush of the array.
    const INSERT: Cost;
    /// What a remove costs at most beside the flush of the array.
    const REMOVE: Cost;

    /// Writes `entry` at `word`, where nothing shows it, and makes `change`, which shows it.
    fn insert<M: Medium>(
        node: View<'_, M>,
        change: &SlotChange,
        word: usize,
        entry: Entry,
    ) -> Fenced;

    /// Makes `change`, which hides an entry.
    fn remove<M: Medium>(node: View<'_, M>, change: &SlotChange) -> Fenced;
}

/// FencedTwice between the turns, wherever the array lies. This is how it was published.
#[derive(Debug)]
pub struct FencedTwice;

impl SlotCommit for FencedTwice {
    const SLOT_LINES_MAX: u32 = 2;
    const INSERT: Cost = Cost::new(3, 3);
    const REMOVE: Cost = Cost::new(2, 3);

    /// ```text
    /// W bitmap without valid bit    crash before C: the entry is not there, and the array is made
    /// F bitmap |                    again if the valid bit is clear
    /// W entry, slots from the rank on
    /// F entry, slots |
    /// C bitmap with both bits       8 B
    /// F bitmap |      -> durable    budget: 4 lines (5 where the array has two), 3 fences
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
        node.flush(SLOTS..=last);
        if word / LINE_WORDS > last / LINE_WORDS {
            node.flush(word..=word);
        }
        let fenced = node.medium().fence();
        node.medium().commit(node.word(COMMIT), change.next, fenced);
        node.persist(COMMIT..=COMMIT)
    }

    /// ```text
    /// W bitmap without valid bit    crash before C: the entry is still there, for its bit is
    /// F bitmap |
    /// W slots from the rank on
    /// F slots |
    /// C bitmap without the entry    8 B
    /// F bitmap |      -> durable    budget: 3 lines (4 where the array has two), 3 fences
    /// ```
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, change: &SlotChange) -> Fenced {
        node.store(COMMIT, change.bitmap & !VALID);
        let _ = node.persist(COMMIT..=COMMIT);
        let last = store_slots(node, &change.old, &change.new);
        node.flush(SLOTS..=last);
        let fenced = node.medium().fence();
        node.medium().commit(node.word(COMMIT), change.next, fenced);
        node.persist(COMMIT..=COMMIT)
    }
}

/// No fence between the turns, for bitmap and array lie in one line, whose stores persist in order.
#[derive(Debug)]
pub struct InOneLine;

impl SlotCommit for InOneLine {
    const SLOT_LINES_MAX: u32 = 1;
    const INSERT: Cost = Cost::new(1, 2);
    const REMOVE: Cost = Cost::new(0, 1);

    /// ```text
    /// W entry       1 line          crash before C: the entry is not there, and the array is made
    /// F entry |                     again if the valid bit is clear
    /// W bitmap without valid bit, slots from the rank on
    /// C bitmap with both bits       8 B, in the line of what it vouches for
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
    /// W bitmap without valid bit    crash before C: the entry is still there, for its bit is
    /// W slots from the rank on
    /// C bitmap without the entry    8 B, in the line of what it vouches for
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
