//! Group flushing: neighbouring lines that were written are flushed together, in ascending order, so
//! that a medium that writes larger units than lines sees them as one.
//!
//! 1. It promises nothing: no fence follows, and nothing survives.
//! 2. A line by itself is left to the processor, which writes it back when it needs the place.

use super::{Protocol, Volatile, Words};
use crate::index::TreeError;
use crate::node::{Changes, Layout, Slot, SlotPos, View, Writer};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// Stores and group flushes: nothing is durable, nothing survives.
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

    /// Nothing: the transaction stores all that differs.
    fn write_free_slots<M: Medium, L: Layout>(_: View<'_, M>, _: &[Slot]) {}

    /// ```text
    /// W words
    /// F their lines    where two or more are neighbours
    /// ```
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        changes: &Changes<'_>,
        store_in_place: impl FnOnce(),
    ) {
        let mut stores = Stores::over(pool);
        for &(word, value) in changes {
            stores.write_visible(word, value);
        }
        store_in_place();
        stores.flush();
    }

    /// Nothing: the word was stored with the others.
    fn apply<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}

    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        Volatile::set(pool, word, value);
    }

    fn may_open(name: &'static str) -> Result<(), TreeError> {
        Volatile::may_open(name)
    }
}

/// Stores each word, and remembers its line.
#[derive(Debug)]
pub struct Stores<'p, M: Medium> {
    pool: &'p Pool<M>,
    /// Offsets of lines; one may be there more than once.
    lines: Vec<u64>,
}

impl<'p, M: Medium> Stores<'p, M> {
    fn over(pool: &'p Pool<M>) -> Self {
        Self { pool, lines: Vec::new() }
    }

    /// Flushes the lines that have a neighbour among them.
    fn flush(mut self) {
        self.lines.sort_unstable();
        self.lines.dedup();
        for group in self.lines.chunk_by(|a, b| b - a == LINE_BYTES as u64) {
            if group.len() > 1 {
                let words = self.pool.words(PmPtr::new(group[0]), group.len() * LINE_WORDS);
                self.pool.medium().flush(words.expect("the lines were written"));
            }
        }
    }
}

impl<M: Medium> Writer for Stores<'_, M> {
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
    type Change<'p, M: Medium> = Stores<'p, M>;

    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> Stores<'p, M> {
        Stores::over(pool)
    }

    fn end<M: Medium>(change: Stores<'_, M>) {
        change.flush();
    }

    #[inline(always)]
    fn set_value<M: Medium, L: Layout>(leaf: View<'_, M>, at: SlotPos, value: u64) {
        Volatile::set_value::<M, L>(leaf, at, value);
    }
}
