//! How several nodes change together.

use crate::index::TreeError;
use crate::node::{Changes, Layout, Slot, View};
use bristlecone_pmem::log::{UndoLog, UndoLogs};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord, Pool};

/// A way to change several nodes as one.
pub trait Protocol: Send + Sync + Sized + 'static {
    /// Bytes of the root block behind its first line, where the protocol keeps logs; all zero in a new
    /// tree.
    fn log_bytes(_node_bytes: u64) -> u64 {
        0
    }

    /// The protocol of a tree whose logs are at `at`. What a crash has left in them is brought to its
    /// end.
    ///
    /// # Errors
    /// They are damaged.
    fn open<M: Medium>(pool: &Pool<M>, at: PmPtr, node_bytes: u64) -> Result<Self, Corrupt>;

    /// Writes `bytes` into a fresh node, which nothing reaches yet. Durable after the next fence.
    fn fill<M: Medium>(node: View<'_, M>, bytes: &[u8]) {
        node.medium().fill(node.words(), bytes);
    }

    /// As [`Layout::place`].
    fn place<M: Medium, L: Layout>(node: View<'_, M>, slots: &[Slot]) {
        L::place(node, slots);
    }

    /// Brings `changes` about wholly or not at all, whatever they publish having been flushed
    /// before. `settle` stores in place, and flushes, whatever the protocol has not stored itself. The
    /// caller holds the latches of all nodes concerned; at return all is durable, and the latches may
    /// be released.
    fn transact<M: Medium>(&self, pool: &Pool<M>, changes: &Changes<'_>, settle: impl FnOnce());

    /// Stores a single word of a transaction in place, if that has not done so itself. Flushed.
    fn settle<M: Medium>(pool: &Pool<M>, change: (&PmWord, u64));

    /// Changes one word, durably.
    ///
    /// ```text
    /// C word    8 B
    /// F word |  -> durable    budget: 1 line, 1 fence
    /// ```
    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        pool.medium().store(word, value);
        let _ = pool.medium().persist(core::slice::from_ref(word));
    }

    /// Whether a tree that another process, or an earlier part of this one, has left can be opened.
    ///
    /// # Errors
    /// It cannot: the design of that name is volatile.
    fn may_open(_name: &'static str) -> Result<(), TreeError> {
        Ok(())
    }
}

/// A redo transaction through the pool's line-sealed log.
#[derive(Debug)]
pub struct Redo;

impl Protocol for Redo {
    fn open<M: Medium>(_: &Pool<M>, _: PmPtr, _: u64) -> Result<Self, Corrupt> {
        Ok(Self)
    }

    /// ```text
    /// |                            what the caller flushed: new nodes, placed entries
    /// W log                        crash before C: nothing has changed
    /// C seals of the log, F |
    /// W nodes, F |                 crash from here on: the log is replayed
    /// W seal cleared, F |          -> done
    ///                              budget: ceil(changes / 3) + 1 lines and those of the nodes,
    ///                              4 fences
    /// ```
    fn transact<M: Medium>(&self, pool: &Pool<M>, changes: &Changes<'_>, settle: impl FnOnce()) {
        let published = if M::INJECTS_DEFECTS && pool.medium().injects(Defect::LogWithNode) {
            Fenced::after_fence() // The log's own fence is to serve for what it publishes, too.
        } else {
            pool.medium().fence()
        };
        let committed = pool.redo_log().commit(changes, published);
        settle();
        let _ = committed.truncate(pool.medium().fence());
    }

    fn settle<M: Medium>(pool: &Pool<M>, (word, value): (&PmWord, u64)) {
        pool.medium().store(word, value);
        pool.medium().flush(core::slice::from_ref(word));
    }
}

/// An undo-redo transaction through logs of the tree's own: each word is logged, then changed in
/// place.
#[derive(Debug)]
pub struct Undo {
    logs: UndoLogs,
}

impl Undo {
    /// The most words that a transaction changes: a leaf that is packed anew, and a parent whose
    /// entries all shift.
    const fn records(node_bytes: u64) -> usize {
        3 * (node_bytes as usize / 16) + 8
    }

    /// A log for one transaction.
    pub(super) fn log<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> UndoLog<'p, M> {
        pool.undo_log_in(&self.logs)
    }
}

impl Protocol for Undo {
    fn log_bytes(node_bytes: u64) -> u64 {
        UndoLogs::bytes(Self::records(node_bytes))
    }

    fn open<M: Medium>(pool: &Pool<M>, at: PmPtr, node_bytes: u64) -> Result<Self, Corrupt> {
        Ok(Self { logs: pool.open_undo_logs(at, Self::records(node_bytes))? })
    }

    /// ```text
    /// for each change
    ///   W record, F |              durable before: what the caller flushed, and every record so far
    ///   W word                     crash before C: every word goes back
    /// C state of the log, F |
    /// F words |                    crash from here on: every word is stored again
    /// W state cleared, F |         -> done
    ///                              budget: changes + 3 lines and those of the words, changes + 3
    ///                              fences
    /// ```
    fn transact<M: Medium>(&self, pool: &Pool<M>, changes: &Changes<'_>, settle: impl FnOnce()) {
        let mut log = self.log(pool);
        for &(word, value) in changes {
            log.write_undo_redo(word, value);
        }
        let committed = log.commit_new_redo();
        settle();
        committed.finish();
    }

    /// Nothing: the word was logged, and changed.
    fn settle<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}
}

/// Stores alone: nothing is durable, nothing survives.
#[derive(Debug)]
pub struct Volatile;

impl Protocol for Volatile {
    fn open<M: Medium>(_: &Pool<M>, _: PmPtr, _: u64) -> Result<Self, Corrupt> {
        Ok(Self)
    }

    /// ```text
    /// W words    never durable
    /// ```
    fn fill<M: Medium>(node: View<'_, M>, bytes: &[u8]) {
        for (index, bytes) in bytes.chunks_exact(8).enumerate() {
            let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            node.store(index, value);
        }
    }

    /// Nothing: the transaction stores all that differs.
    fn place<M: Medium, L: Layout>(_: View<'_, M>, _: &[Slot]) {}

    fn transact<M: Medium>(&self, pool: &Pool<M>, changes: &Changes<'_>, settle: impl FnOnce()) {
        for &(word, value) in changes {
            pool.medium().store(word, value);
        }
        settle();
    }

    /// Nothing: the word was stored with the others.
    fn settle<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}

    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        pool.medium().store(word, value);
    }

    fn may_open(name: &'static str) -> Result<(), TreeError> {
        Err(TreeError::Volatile(name))
    }
}
