//! How several nodes change together.

use crate::index::TreeError;
use crate::node::Changes;
use bristlecone_pmem::{Defect, Fenced, Medium, PmWord, Pool};

/// A way to change several nodes as one.
pub trait Protocol: Send + Sync + 'static {
    /// Brings `changes` about wholly or not at all, whatever they publish having been flushed
    /// before. `settle` stores them in place, and flushes. The caller holds the latches of all
    /// nodes concerned; at return all is durable, and the latches may be released.
    fn transact<M: Medium>(pool: &Pool<M>, changes: &Changes<'_>, settle: impl FnOnce());

    /// Stores a single word of a transaction in place. Flushed.
    fn settle<M: Medium>(pool: &Pool<M>, change: (&PmWord, u64));

    /// Changes one word, durably.
    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64);

    /// Whether a tree that another process, or an earlier part of this one, has left can be opened.
    ///
    /// # Errors
    /// It cannot: the design of that name is volatile.
    fn may_open(name: &'static str) -> Result<(), TreeError>;
}

/// A redo transaction through the pool's line-sealed log.
#[derive(Debug)]
pub struct Redo;

impl Protocol for Redo {
    /// ```text
    /// |                            what the caller flushed: new nodes, placed entries
    /// W log                        crash before C: nothing has changed
    /// C seals of the log, F |
    /// W nodes, F |                 crash from here on: the log is replayed
    /// W seal cleared, F |          -> done
    ///                              budget: ceil(changes / 3) + 1 lines and those of the nodes,
    ///                              4 fences
    /// ```
    fn transact<M: Medium>(pool: &Pool<M>, changes: &Changes<'_>, settle: impl FnOnce()) {
        let published = if M::SEEDED && pool.medium().seeded(Defect::LogWithNode) {
            Fenced::witness() // The log's own fence is to serve for what it publishes, too.
        } else {
            pool.medium().fence()
        };
        let committed = pool.log().commit(changes, published);
        settle();
        let _ = committed.truncate(pool.medium().fence());
    }

    fn settle<M: Medium>(pool: &Pool<M>, (word, value): (&PmWord, u64)) {
        pool.medium().store(word, value);
        pool.medium().flush(core::slice::from_ref(word));
    }

    /// ```text
    /// C word    8 B
    /// F word |  -> durable    budget: 1 line, 1 fence
    /// ```
    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        Self::settle(pool, (word, value));
        let _ = pool.medium().fence();
    }

    fn may_open(_: &'static str) -> Result<(), TreeError> {
        Ok(())
    }
}

/// Stores alone: nothing is durable, nothing survives.
#[derive(Debug)]
pub struct Volatile;

impl Protocol for Volatile {
    fn transact<M: Medium>(_: &Pool<M>, _: &Changes<'_>, settle: impl FnOnce()) {
        settle();
    }

    fn settle<M: Medium>(pool: &Pool<M>, (word, value): (&PmWord, u64)) {
        pool.medium().store(word, value);
    }

    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        Self::settle(pool, (word, value));
    }

    fn may_open(name: &'static str) -> Result<(), TreeError> {
        Err(TreeError::Volatile(name))
    }
}
