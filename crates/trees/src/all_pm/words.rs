//! Changes of one leaf, word by word. The protocol decides how each word is logged and stored.

use super::{Protocol, Undo, Volatile};
use crate::node::{Layout, SlotPos, View, Writer};
use bristlecone_pmem::log::UndoLog;
use bristlecone_pmem::{Medium, PmWord, Pool};

/// A protocol through which a leaf can change word by word.
pub trait Words: Protocol {
    /// The writer for the words of one change.
    type Change<'p, M: Medium>: Writer;

    /// Begins a change. The caller holds the leaf's latch.
    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> Self::Change<'p, M>;

    /// Changes `last`, a word of the node's visible content, and ends the change. It is complete
    /// and, unless the protocol is volatile, durable on return.
    fn end<M: Medium>(change: Self::Change<'_, M>, last: (&PmWord, u64));

    /// Changes a value. It is one word, so it needs no log.
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

/// A writer that stores each word at once.
#[derive(Debug)]
pub struct PlainStores<'p, M>(&'p M);

impl<M: Medium> Writer for PlainStores<'_, M> {
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
    type Change<'p, M: Medium> = PlainStores<'p, M>;

    #[inline(always)]
    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> PlainStores<'p, M> {
        PlainStores(pool.medium())
    }

    #[inline(always)]
    fn end<M: Medium>(mut change: PlainStores<'_, M>, (word, value): (&PmWord, u64)) {
        change.write_visible(word, value);
    }

    /// ```text
    /// W value    never durable    budget: 0 lines, 0 fences
    /// ```
    #[inline(always)]
    fn set_value<M: Medium, L: Layout>(leaf: View<'_, M>, at: SlotPos, value: u64) {
        leaf.store(L::ENTRIES.word(at.index) + 1, value);
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
/// W fresh words         crash before C: no commit word shows them
/// W their records, F |  nothing if there are none
/// for each word that is in use, but for the last
///   W record, F |       crash before C: every word is rolled back
///   W word
/// C record of the last word, F |
/// W word                crash from here on: every word is stored again
/// F words |
/// W end of the log, F | -> durable
/// ```
impl Words for Undo {
    type Change<'p, M: Medium> = UndoLog<'p, M>;

    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> UndoLog<'p, M> {
        self.log(pool)
    }

    fn end<M: Medium>(log: UndoLog<'_, M>, (word, value): (&PmWord, u64)) {
        log.commit(word, value).finish();
    }
}
