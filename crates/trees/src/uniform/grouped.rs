//! Group flushing: neighbouring lines that were written are flushed together, in ascending order, so
//! that a medium that writes larger units than lines sees them as one.
//!
//! 1. It promises nothing: no fence follows, and nothing survives.
//! 2. A line by itself is left to the processor, which writes it back when it needs the place.

use super::descend::{Held, Hop, Path, Stop};
use super::{ByStores, Leaves, Protocol, Uniform, UniformSpec, Volatile};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Changes, Layout, Place, Slot, View, Wordwise, Writer};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::sync::Guard;
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
    fn place<M: Medium, L: Layout>(_: View<'_, M>, _: &[Slot]) {}

    /// ```text
    /// W words
    /// F their lines    where two or more are neighbours
    /// ```
    fn transact<M: Medium>(&self, pool: &Pool<M>, changes: &Changes<'_>, settle: impl FnOnce()) {
        let mut stores = Stores::over(pool);
        for &(word, value) in changes {
            stores.used(word, value);
        }
        settle();
        stores.flush();
    }

    /// Nothing: the word was stored with the others.
    fn settle<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}

    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        Volatile::set(pool, word, value);
    }

    fn may_open(name: &'static str) -> Result<(), TreeError> {
        Volatile::may_open(name)
    }
}

/// Stores each word, and remembers its line.
struct Stores<'p, M: Medium> {
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
    fn used(&mut self, word: &PmWord, value: u64) {
        self.pool.medium().store(word, value);
        let line = self.pool.offset_of(word).offset() & !(LINE_BYTES as u64 - 1);
        if self.lines.last() != Some(&line) {
            self.lines.push(line);
        }
    }

    fn fresh(&mut self, word: &PmWord, value: u64) {
        self.used(word, value);
    }
}

/// By stores and group flushes: for trees that are volatile.
#[derive(Debug)]
pub struct ByGroups;

impl<S: UniformSpec<Leaf: Wordwise>> Leaves<S> for ByGroups {
    /// ```text
    /// W words
    /// F their lines    where two or more are neighbours    budget: the lines of a leaf, 0 fences
    /// ```
    fn insert<M: Medium, K: Key>(
        tree: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<Hop<'_, M>>,
        _held: Held<'_, M>,
        rank: usize,
        entry: Entry,
        _: &Guard,
    ) -> Result<(), Stop> {
        let mut stores = Stores::over(&tree.pool);
        S::Leaf::insert(path.node.view, rank, entry, &mut stores);
        stores.flush();
        Ok(())
    }

    /// As an insert.
    fn remove<M: Medium, K: Key>(
        tree: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<Hop<'_, M>>,
        _held: Held<'_, M>,
        at: Place,
        _: &Guard,
    ) -> Result<usize, Stop> {
        let mut stores = Stores::over(&tree.pool);
        S::Leaf::remove(path.node.view, at, &mut stores);
        stores.flush();
        Ok(S::Leaf::count(path.node.view))
    }

    /// ```text
    /// W value    never durable    budget: 0 lines, 0 fences
    /// ```
    #[inline(always)]
    fn update<M: Medium>(path: &Path<'_, M>, at: Place, value: u64) {
        <ByStores as Leaves<S>>::update(path, at, value);
    }
}
