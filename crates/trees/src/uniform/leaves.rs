//! How a leaf gets an entry, loses one, and splits.

use super::descend::{Held, Hop, Path, Stop};
use super::{Undo, Uniform, UniformSpec};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Atomic, Layout, Place, Wordwise, Writer};
use bristlecone_pmem::log::UndoLog;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Medium, PmWord, Pool};

/// How the leaves of a design change. The leaf is the node of `path`, `held` its latch.
pub trait Leaves<S: UniformSpec>: Send + Sync + 'static {
    /// The leaf to the left, if its link is to change too. Looked for before a latch is taken.
    ///
    /// # Errors
    /// Another thread is in the way, or there is damage.
    #[inline(always)]
    fn beside<'a, M: Medium, K: Key>(
        _tree: &'a Uniform<M, K, S>,
        _path: &Path<'a, M>,
    ) -> Result<Option<Hop<'a, M>>, Stop> {
        Ok(None)
    }

    /// Adds an entry to a leaf that has room. Durable at return; a refusal has changed nothing.
    ///
    /// # Errors
    /// Another thread is in the way, or the pool is full.
    fn insert<M: Medium, K: Key>(
        tree: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        left: Option<Hop<'_, M>>,
        held: Held<'_, M>,
        rank: usize,
        entry: Entry,
        guard: &Guard,
    ) -> Result<(), Stop>;

    /// Takes an entry out, and gives the number of those left. Durable at return; a refusal has
    /// changed nothing.
    ///
    /// # Errors
    /// Another thread is in the way.
    fn remove<M: Medium, K: Key>(
        tree: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        left: Option<Hop<'_, M>>,
        held: Held<'_, M>,
        at: Place,
        guard: &Guard,
    ) -> Result<usize, Stop>;

    /// Splits a full node, the one of `path`, whose parent has room. `key` leads there.
    ///
    /// # Errors
    /// Another thread is in the way, or the pool is full.
    fn split<'a, M: Medium, K: Key>(
        tree: &'a Uniform<M, K, S>,
        path: &Path<'a, M>,
        _key: K::Ref<'_>,
        _guard: &Guard,
    ) -> Result<(), Stop> {
        tree.split(path)
    }

    /// Whether an insert that was refused may try again: what had to go first has been seen to. Called
    /// without a latch or a pin. `refusals` counts the calls for one key.
    fn may_try_again<M: Medium>(_: &Pool<M>, _refused: &TreeError, _refusals: usize) -> bool {
        false
    }

    /// Changes a value. Durable at return.
    #[inline(always)]
    fn update<M: Medium>(path: &Path<'_, M>, at: Place, value: u64) {
        let _ = S::Leaf::update(path.node.view, at, value);
    }
}

/// By the leaf's own commit word.
#[derive(Debug)]
pub struct ByCommitWord;

impl<S: UniformSpec<Leaf: Atomic>> Leaves<S> for ByCommitWord {
    /// As [`Atomic::insert`].
    #[inline(always)]
    fn insert<M: Medium, K: Key>(
        _: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<Hop<'_, M>>,
        _held: Held<'_, M>,
        rank: usize,
        entry: Entry,
        _: &Guard,
    ) -> Result<(), Stop> {
        let _ = S::Leaf::insert(path.node.view, rank, entry);
        Ok(())
    }

    /// As [`Atomic::remove`].
    #[inline(always)]
    fn remove<M: Medium, K: Key>(
        _: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<Hop<'_, M>>,
        _held: Held<'_, M>,
        at: Place,
        _: &Guard,
    ) -> Result<usize, Stop> {
        let _ = S::Leaf::remove(path.node.view, at);
        Ok(S::Leaf::count(path.node.view))
    }
}

/// By stores alone: for trees that are volatile.
#[derive(Debug)]
pub struct ByStores;

/// Stores each word.
struct Plain<'m, M>(&'m M);

impl<M: Medium> Writer for Plain<'_, M> {
    #[inline(always)]
    fn used(&mut self, word: &PmWord, value: u64) {
        self.0.store(word, value);
    }

    #[inline(always)]
    fn fresh(&mut self, word: &PmWord, value: u64) {
        self.0.store(word, value);
    }
}

impl<S: UniformSpec<Leaf: Wordwise>> Leaves<S> for ByStores {
    /// ```text
    /// W words    never durable    budget: 0 lines, 0 fences
    /// ```
    #[inline(always)]
    fn insert<M: Medium, K: Key>(
        tree: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<Hop<'_, M>>,
        _held: Held<'_, M>,
        rank: usize,
        entry: Entry,
        _: &Guard,
    ) -> Result<(), Stop> {
        S::Leaf::insert(path.node.view, rank, entry, &mut Plain(tree.medium()));
        Ok(())
    }

    /// ```text
    /// W words    never durable    budget: 0 lines, 0 fences
    /// ```
    #[inline(always)]
    fn remove<M: Medium, K: Key>(
        tree: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<Hop<'_, M>>,
        _held: Held<'_, M>,
        at: Place,
        _: &Guard,
    ) -> Result<usize, Stop> {
        S::Leaf::remove(path.node.view, at, &mut Plain(tree.medium()));
        Ok(S::Leaf::count(path.node.view))
    }

    /// ```text
    /// W value    never durable    budget: 0 lines, 0 fences
    /// ```
    #[inline(always)]
    fn update<M: Medium>(path: &Path<'_, M>, at: Place, value: u64) {
        path.node.view.store(S::Leaf::ENTRIES + 2 * at.index + 1, value);
    }
}

/// By an undo-redo log, in which every word is before it changes.
#[derive(Debug)]
pub struct ByLog;

impl<M: Medium> Writer for UndoLog<'_, M> {
    fn used(&mut self, word: &PmWord, value: u64) {
        self.write_undo_redo(word, value);
    }

    fn fresh(&mut self, word: &PmWord, value: u64) {
        self.new_redo(word, value);
    }
}

impl<S: UniformSpec<Leaf: Wordwise, Protocol = Undo>> Leaves<S> for ByLog {
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
    fn insert<M: Medium, K: Key>(
        tree: &Uniform<M, K, S>,
        path: &Path<'_, M>,
        _left: Option<Hop<'_, M>>,
        _held: Held<'_, M>,
        rank: usize,
        entry: Entry,
        _: &Guard,
    ) -> Result<(), Stop> {
        let mut log = tree.protocol.begin(&tree.pool);
        S::Leaf::insert(path.node.view, rank, entry, &mut log);
        log.commit_new_redo().finish();
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
        let mut log = tree.protocol.begin(&tree.pool);
        S::Leaf::remove(path.node.view, at, &mut log);
        log.commit_new_redo().finish();
        Ok(S::Leaf::count(path.node.view))
    }
}
