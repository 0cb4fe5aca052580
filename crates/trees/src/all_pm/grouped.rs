//! Group flushing: adjacent lines that were written are flushed together in ascending order. A
//! medium with write units larger than a line can then merge them into one write.
//!
//! 1. Nothing is durable: no fence follows the flushes.
//! 2. A line without a written neighbour is not flushed; the processor writes it back on eviction.

use super::{Protocol, Volatile, Words};
use crate::index::TreeError;
use crate::node::{Changes, Layout, Slot, SlotPos, View, Writer};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// Stores and group flushes without fences: the tree does not survive its process.
#[derive(Debug)]
pub struct Grouped;

impl Protocol for Grouped {
    fn open<M: Medium>(_: &Pool<M>, _: PmPtr, _: u64) -> Result<Self, Corrupt> {
        Ok(Self)
    }

    /// ```text
    /// W words
    /// F their lines    where these are two or more
    /// ```
    fn fill<M: Medium>(node: View<'_, M>, bytes: &[u8]) {
        Volatile::fill(node, bytes);
        let lines = bytes.len().div_ceil(LINE_BYTES);
        if lines > 1 {
            node.flush(0..=lines * LINE_WORDS - 1);
        }
    }

    /// Does nothing: the transaction stores every word that differs.
    fn write_free_slots<M: Medium, L: Layout>(_: View<'_, M>, _: &[Slot]) {}

    /// ```text
    /// W words
    /// F their lines    where two or more are neighbours
    /// ```
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        _log: PmPtr,
        _fresh: &Changes<'_>,
        changes: &Changes<'_>,
        store_in_place: impl FnOnce(),
    ) {
        let mut stores = GroupedStores::over(pool);
        for &(word, value) in changes {
            stores.write_visible(word, value);
        }
        store_in_place();
        stores.flush();
    }

    /// Does nothing: the transaction has already stored the word.
    fn apply<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}

    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        Volatile::set(pool, word, value);
    }

    fn publish<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        Volatile::publish(pool, word, value);
    }

    fn check_reopenable(name: &'static str) -> Result<(), TreeError> {
        Volatile::check_reopenable(name)
    }
}

/// A writer that stores each word at once and records its line for the group flush.
#[derive(Debug)]
pub struct GroupedStores<'p, M: Medium> {
    pool: &'p Pool<M>,
    /// Offsets of the written lines. A line may occur more than once.
    lines: Vec<u64>,
}

impl<'p, M: Medium> GroupedStores<'p, M> {
    fn over(pool: &'p Pool<M>) -> Self {
        Self { pool, lines: Vec::new() }
    }

    /// Flushes each run of at least two adjacent lines.
    fn flush(mut self) {
        self.lines.sort_unstable();
        self.lines.dedup();
        for group in self.lines.chunk_by(|a, b| b - a == LINE_BYTES as u64) {
            if group.len() > 1 {
                let words = self.pool.words(PmPtr::new(group[0]), group.len() * LINE_WORDS);
                self.pool
                    .medium()
                    .flush(words.expect("the lines of words that were stored lie in the pool"));
            }
        }
    }
}

impl<M: Medium> Writer for GroupedStores<'_, M> {
    fn write_visible(&mut self, word: &PmWord, value: u64) {
        self.pool.medium().store(word, value);
        let line = self.pool.offset_of(word).offset() & !(LINE_BYTES as u64 - 1);
        if self.lines.last() != Some(&line) {
            self.lines.push(line);
        }
    }

    fn write_hidden(&mut self, word: &PmWord, value: u64) {
        self.write_visible(word, value);
    }
}

/// ```text
/// W words
/// F their lines    where two or more are neighbours    budget: the lines of a leaf, 0 fences
/// ```
impl Words for Grouped {
    type Change<'p, M: Medium> = GroupedStores<'p, M>;

    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> GroupedStores<'p, M> {
        GroupedStores::over(pool)
    }

    fn end<M: Medium>(mut change: GroupedStores<'_, M>, (word, value): (&PmWord, u64)) {
        change.write_visible(word, value);
        change.flush();
    }

    #[inline(always)]
    fn set_value<M: Medium, L: Layout>(leaf: View<'_, M>, at: SlotPos, value: u64) {
        Volatile::set_value::<M, L>(leaf, at, value);
    }
}
