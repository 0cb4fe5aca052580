//! Changes of one leaf that are made word by word: what becomes of the words is up to the protocol.

use super::{Protocol, Undo, Volatile};
use crate::node::{Layout, SlotPos, View, Writer};
use bristlecone_pmem::log::UndoLog;
use bristlecone_pmem::{Medium, PmWord, Pool};

/// A protocol through which a leaf can change word by word.
pub trait Words: Protocol {
    /// Takes the words of one change.
    type Change<'p, M: Medium>: Writer;

    /// Begins a change. Whoever makes it holds the leaf's latch.
    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> Self::Change<'p, M>;

    /// Ends it: all of it has happened, durably where the protocol makes anything durable.
    fn end<M: Medium>(change: Self::Change<'_, M>);

    /// Changes a value, which is one word and needs no log.
    ///
    /// ```text
    /// C value    8 B
    /// F value |  -> durable    budget: 1 line, 1 fence
    /// ```
    #[inline(always)]
    fn set_value<M: Medium, L: Layout>(leaf: View<'_, M>, at: SlotPos, value: u64) {
        let _ = L::update(leaf, at, value);
    }
}

/// Stores each word.
#[derive(Debug)]
pub struct Plain<'p, M>(&'p M);

impl<M: Medium> Writer for Plain<'_, M> {
    #[inline(always)]
    fn write_visible(&mut self, word: &PmWord, value: u64) {
        self.0.store(word, value);
    }

    #[inline(always)]
    fn write_hidden(&mut self, word: &PmWord, value: u64) {
        self.0.store(word, value);
    }
}

/// ```text
/// W words    never durable    budget: 0 lines, 0 fences
/// ```
impl Words for Volatile {
    type Change<'p, M: Medium> = Plain<'p, M>;

    #[inline(always)]
    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> Plain<'p, M> {
        Plain(pool.medium())
    }

    #[inline(always)]
    fn end<M: Medium>(_: Plain<'_, M>) {}

    /// ```text
    /// W value    never durable    budget: 0 lines, 0 fences
    /// ```
    #[inline(always)]
    fn set_value<M: Medium, L: Layout>(leaf: View<'_, M>, at: SlotPos, value: u64) {
        leaf.store(L::ENTRIES + 2 * at.index + 1, value);
    }
}

impl<M: Medium> Writer for UndoLog<'_, M> {
    fn write_visible(&mut self, word: &PmWord, value: u64) {
        self.write_undo_redo(word, value);
    }

    fn write_hidden(&mut self, word: &PmWord, value: u64) {
        self.new_redo(word, value);
    }
}

/// ```text
/// for each word that is in use
///   W record, F |       crash before C: every word goes back
///   W word
/// for each fresh one
///   W record
///   W word              crash before C: nothing shows it
/// C state of the log, F records |
/// F words |             crash from here on: every word is stored again
/// W state cleared, F |  -> durable
/// ```
impl Words for Undo {
    type Change<'p, M: Medium> = UndoLog<'p, M>;

    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> UndoLog<'p, M> {
        self.log(pool)
    }

    fn end<M: Medium>(log: UndoLog<'_, M>) {
        log.commit_new_redo().finish();
    }
}
