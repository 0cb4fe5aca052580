//! Write-ahead logs of the nodes: each inner node has a log of its own, in another block, and the
//! root block has one behind its first line. A log is a slot of [`Wal`](super::Wal); its latch word
//! is not used. The header of an inner node has, beside the fields of its layout:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 2 | 8 | log | data | offset of the block of the node's log |
//!
//! A transaction uses the log of the topmost node that it changes: the parent of a node that
//! splits, merges or borrows, or the root block. So a leaf has none.
//!
//! 1. A thread that writes a log holds the latches of its node, and of all nodes that the
//!    transaction changes, until the log is empty. So a log has at most one transaction, and no two
//!    logs name the same word.
//! 2. No transaction changes a word that leads to a log.
//! 3. After a crash the walk replays the log of a node before it reads the node. What leads there
//!    is in nodes above, whose logs are empty by then.
//! 4. The log of a fresh node is empty before a pointer leads to the node.

use super::{Protocol, wal};
use crate::node::Changes;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The index of an inner node's word with the offset of its log. The layout leaves it free.
pub(super) const LOG: usize = 2;

/// A redo transaction through the log of a node.
#[derive(Debug)]
pub struct NodeWal {
    slot_words: usize,
}

impl Protocol for NodeWal {
    const HAS_NODE_LOGS: bool = true;

    fn log_bytes(node_bytes: u64) -> u64 {
        8 * wal::slot_words(node_bytes as usize) as u64
    }

    /// ```text
    /// replay                   the log of the root block
    /// ```
    fn open<M: Medium>(pool: &Pool<M>, at: PmPtr, node_bytes: u64) -> Result<Self, Corrupt> {
        Self::replay(pool, at, node_bytes)?;
        Ok(Self { slot_words: wal::slot_words(node_bytes as usize) })
    }

    fn replay<M: Medium>(pool: &Pool<M>, log: PmPtr, node_bytes: u64) -> Result<(), Corrupt> {
        let slot = pool.words(log, wal::slot_words(node_bytes as usize))?;
        wal::replay(pool, slot, wal::read(pool, slot, slot)?);
        Ok(())
    }

    fn clear_log<M: Medium>(pool: &Pool<M>, log: PmPtr, node_bytes: u64) -> Result<(), Corrupt> {
        wal::clear(pool, pool.words(log, wal::slot_words(node_bytes as usize))?);
        Ok(())
    }

    /// Gathers all of `changes`, then commits as `wal` does. Stores every word itself.
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        log: PmPtr,
        _fresh: &Changes<'_>,
        changes: &Changes<'_>,
        _store_in_place: impl FnOnce(),
    ) {
        let slot = pool.words(log, self.slot_words).expect("a log is a block of the pool");
        let offset = |&(word, value): &(&PmWord, u64)| (pool.offset_of(word).offset(), value);
        wal::commit(pool, slot, &mut changes.iter().map(offset).collect::<Vec<_>>());
    }

    /// Does nothing: the transaction has already stored the word.
    fn apply<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}
}
