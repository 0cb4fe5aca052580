//! Protocols: the ways in which several nodes change as one.

use crate::index::TreeError;
use crate::node::{Changes, Entries, Layout, Slot, View};
use bristlecone_pmem::log::{PAIRS_MAX, UndoLog, UndoLogs};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord, Pool};

/// A protocol that changes several nodes as one.
pub trait Protocol: Send + Sync + Sized + 'static {
    /// `true` if a transaction may store a new pair in place without a log: a crash before its end
    /// restores commit words that do not show the pair.
    const STORES_PAIRS_UNLOGGED: bool = false;
    /// Returns the most levels that one transaction may split. [`Layout::COMMIT_WORDS`] of a node
    /// are at most `commit_words`.
    fn split_levels_max(_commit_words: usize) -> usize {
        1
    }
    /// `true` if each inner node has a log of its own, of [`log_bytes`](Self::log_bytes) bytes.
    const HAS_NODE_LOGS: bool = false;

    /// Returns the number of bytes behind the root block's first line that hold the protocol's
    /// logs. They are zero in a new tree.
    fn log_bytes(_node_bytes: u64) -> u64 {
        0
    }

    /// Opens the protocol of the tree whose logs are at `at`. Completes or undoes the transactions
    /// that a crash interrupted.
    ///
    /// # Errors
    /// A log is damaged.
    fn open<M: Medium>(pool: &Pool<M>, at: PmPtr, node_bytes: u64) -> Result<Self, Corrupt>;

    /// Completes the transaction that a crash interrupted in the log of a node. Durable on return.
    ///
    /// # Errors
    /// The log is damaged.
    fn replay<M: Medium>(_: &Pool<M>, _log: PmPtr, _node_bytes: u64) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Empties the log of a fresh node. Durable after the next fence.
    ///
    /// # Errors
    /// No log can lie at `log`.
    fn clear_log<M: Medium>(_: &Pool<M>, _log: PmPtr, _node_bytes: u64) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Writes `bytes` to a fresh node that nothing points to. Durable after the next fence.
    fn fill<M: Medium>(node: View<'_, M>, bytes: &[u8]) {
        node.medium().fill(node.words(), bytes);
    }

    /// Writes `bytes` to a fresh node, as [`fill`](Self::fill) does, unless the transaction that
    /// publishes the node logs its words. Then adds these to `fresh`.
    fn stage<'a, M: Medium>(node: View<'a, M>, bytes: &[u8], _fresh: &mut Changes<'a>) {
        Self::fill(node, bytes);
    }

    /// Writes an entry into a free place of a node, unless the transaction logs its words.
    fn place<M: Medium, L: Layout>(node: View<'_, M>, slot: Slot) {
        Self::write_free_slots::<M, L>(node, &[slot]);
    }

    /// Writes entries into free places of a node, as [`Layout::write_free_slots`] does.
    fn write_free_slots<M: Medium, L: Layout>(node: View<'_, M>, slots: &[Slot]) {
        L::write_free_slots(node, slots);
    }

    /// Makes all of `changes` or, after a crash, none of them. `log` is the log of the topmost node
    /// that changes, if nodes have logs. `fresh` are the [staged](Self::stage) words of the nodes
    /// that the changes publish. The caller has flushed everything else that they make visible, and
    /// holds the latches of all nodes concerned. `store_in_place` stores and flushes whatever the
    /// protocol does not store itself. On return everything is durable, and the caller may release
    /// the latches.
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        log: PmPtr,
        fresh: &Changes<'_>,
        changes: &Changes<'_>,
        store_in_place: impl FnOnce(),
    );

    /// Stores and flushes one word of a transaction, unless the protocol has stored it already.
    fn apply<M: Medium>(pool: &Pool<M>, change: (&PmWord, u64));

    /// Stores and flushes an entry in a place that is free since the commit, unless the protocol
    /// has stored it already. `entries` is the place of the node's entries.
    fn apply_entry<M: Medium>(_node: View<'_, M>, _entries: Entries, _slot: Slot) {}

    /// Changes one word. Durable on return.
    ///
    /// ```text
    /// C word    8 B
    /// F word |  -> durable    budget: 1 line, 1 fence
    /// ```
    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        pool.medium().store(word, value);
        let _ = pool.medium().persist(core::slice::from_ref(word));
    }

    /// Changes one word, which names fresh nodes. Durable on return, and the nodes with it.
    ///
    /// ```text
    /// |           covers the nodes
    /// C word    8 B
    /// F word |  -> durable    budget: 1 line, 2 fences
    /// ```
    fn publish<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        let fenced = pool.medium().fence();
        pool.medium().commit(word, value, fenced);
        let _ = pool.medium().persist(core::slice::from_ref(word));
    }

    /// Checks that trees of the design survive their process, so that one can be opened.
    ///
    /// # Errors
    /// The design called `name` is volatile.
    fn check_reopenable(_name: &'static str) -> Result<(), TreeError> {
        Ok(())
    }
}

/// A redo transaction through the pool's redo log.
#[derive(Debug)]
pub struct Redo;

impl Protocol for Redo {
    const STORES_PAIRS_UNLOGGED: bool = true;

    /// A leaf logs its commit words and its link, an inner node its commit words and an entry, the
    /// node above its commit words: 8 levels with one commit word, 5 with two.
    fn split_levels_max(commit_words: usize) -> usize {
        let (leaf, inner, above) = (commit_words + 1, commit_words + ENTRY_WORDS, commit_words);
        1 + (PAIRS_MAX - leaf - above) / inner
    }

    fn open<M: Medium>(_: &Pool<M>, _: PmPtr, _: u64) -> Result<Self, Corrupt> {
        Ok(Self)
    }

    /// ```text
    /// |                            covers new nodes and placed entries, which the caller flushed
    /// W log                        crash before C: nothing has changed
    /// C seals of the log, F |
    /// W nodes, F |                 crash from here on: the log is replayed
    /// W seal cleared, F |          -> done
    ///                              budget: ceil(changes / 3) + 1 lines and those of the nodes,
    ///                              4 fences
    /// ```
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        _log: PmPtr,
        _fresh: &Changes<'_>,
        changes: &Changes<'_>,
        store_in_place: impl FnOnce(),
    ) {
        let published = if M::INJECTS_DEFECTS && pool.medium().injects(Defect::LogWithNode) {
            Fenced::after_fence() // Wrong: the log may become durable before the nodes that it links.
        } else {
            pool.medium().fence()
        };
        let committed = pool.redo_log().commit(changes, published);
        store_in_place();
        let applied = if M::INJECTS_DEFECTS && pool.medium().injects(Defect::LogEndsEarly) {
            Fenced::after_fence() // Wrong: the end of the log may become durable before the nodes.
        } else {
            pool.medium().fence()
        };
        let _ = committed.truncate(applied);
    }

    fn apply<M: Medium>(pool: &Pool<M>, (word, value): (&PmWord, u64)) {
        pool.medium().store(word, value);
        pool.medium().flush(core::slice::from_ref(word));
    }

    fn apply_entry<M: Medium>(node: View<'_, M>, entries: Entries, slot: Slot) {
        node.store_entry(entries, slot.index, slot.entry);
        node.flush_entries(entries, [slot.index]);
    }
}

/// The number of words of a node's header, and of an entry.
const HEADER_WORDS: usize = 2;
const ENTRY_WORDS: usize = 2;

/// An undo-redo transaction through logs in the tree's root block. Each word is logged, then
/// changed in place.
#[derive(Debug)]
pub struct Undo {
    logs: UndoLogs,
}

impl Undo {
    /// The most levels that one transaction may split: a log for more would take most of a small
    /// pool.
    const SPLIT_LEVELS_MAX: usize = 3;

    /// The most words of half a node, with one entry more and a header.
    const fn half(node_bytes: u64) -> usize {
        node_bytes as usize / 16 + ENTRY_WORDS + HEADER_WORDS
    }

    /// The most words in use that a transaction changes. Half of each node that splits is written
    /// again. All entries of the node above shift, and make room for one.
    const fn records(node_bytes: u64) -> usize {
        let node_words = node_bytes as usize / 8;
        Self::SPLIT_LEVELS_MAX * Self::half(node_bytes) + node_words + ENTRY_WORDS
    }

    /// The most words of new nodes in a transaction: half of each node that splits, and a root with
    /// one entry.
    const fn fresh(node_bytes: u64) -> usize {
        Self::SPLIT_LEVELS_MAX * Self::half(node_bytes) + HEADER_WORDS + ENTRY_WORDS
    }

    /// Returns the blocks that the logs record ([`UndoLog::alloc_node`]).
    pub(super) fn allocated<M: Medium>(&self, pool: &Pool<M>) -> Result<Vec<PmPtr>, Corrupt> {
        pool.allocated_nodes(&self.logs)
    }

    /// Begins a log for one transaction.
    pub(super) fn log<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> UndoLog<'p, M> {
        pool.undo_log_in(&self.logs)
    }
}

impl Protocol for Undo {
    fn split_levels_max(_commit_words: usize) -> usize {
        Self::SPLIT_LEVELS_MAX
    }

    fn stage<'a, M: Medium>(node: View<'a, M>, bytes: &[u8], fresh: &mut Changes<'a>) {
        fresh.extend(words_of(bytes).enumerate().map(|(index, value)| (node.word(index), value)));
    }

    /// Does nothing: the inner nodes of the designs with this protocol are sorted, so the
    /// transaction logs every word that shifts.
    fn place<M: Medium, L: Layout>(_: View<'_, M>, _: Slot) {}

    fn log_bytes(node_bytes: u64) -> u64 {
        UndoLogs::bytes(Self::records(node_bytes), Self::fresh(node_bytes))
    }

    fn open<M: Medium>(pool: &Pool<M>, at: PmPtr, node_bytes: u64) -> Result<Self, Corrupt> {
        let (records, fresh) = (Self::records(node_bytes), Self::fresh(node_bytes));
        Ok(Self { logs: pool.open_undo_logs(at, records, fresh)? })
    }

    /// Stores every word itself.
    ///
    /// ```text
    /// W fresh words                no pointer leads to them before C
    /// W their records, F |         nothing if there are none
    /// for each change but the last
    ///   W record, F |              durable before: every earlier record and flush
    ///   W word                     crash before C: every word is rolled back
    /// C record of the last change, F |
    /// W word                       crash from here on: every word is stored again
    /// F words |
    /// W end of the log, F |        -> done
    ///                              budget: a line for four fresh words, one a change, those of
    ///                              the words, 1; changes + 2 fences, one more with fresh words
    /// ```
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        _log: PmPtr,
        fresh: &Changes<'_>,
        changes: &Changes<'_>,
        _store_in_place: impl FnOnce(),
    ) {
        let mut log = self.log(pool);
        for &(word, value) in fresh {
            log.new_redo(word, value);
        }
        let (&(last, value), others) = changes.split_last().expect("a transaction has a change");
        for &(word, value) in others {
            log.write_undo_redo(word, value);
        }
        log.commit(last, value).finish();
    }

    /// Does nothing: `transact` has already stored the word.
    fn apply<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}
}

/// Returns the words of `bytes`.
fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    bytes.chunks_exact(8).map(word)
}

/// Plain stores without flush or fence: the tree does not survive its process.
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
        for (index, value) in words_of(bytes).enumerate() {
            node.store(index, value);
        }
    }

    /// ```text
    /// W entries    never durable
    /// ```
    fn write_free_slots<M: Medium, L: Layout>(node: View<'_, M>, slots: &[Slot]) {
        for slot in slots {
            node.store_entry(L::ENTRIES, slot.index, slot.entry);
        }
    }

    /// Stores every word itself.
    ///
    /// ```text
    /// W words    never durable
    /// ```
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        _log: PmPtr,
        _fresh: &Changes<'_>,
        changes: &Changes<'_>,
        _store_in_place: impl FnOnce(),
    ) {
        for &(word, value) in changes {
            pool.medium().store(word, value);
        }
    }

    /// Does nothing: the transaction has already stored the word.
    fn apply<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}

    fn set<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        pool.medium().store(word, value);
    }

    fn publish<M: Medium>(pool: &Pool<M>, word: &PmWord, value: u64) {
        Self::set(pool, word, value);
    }

    fn check_reopenable(name: &'static str) -> Result<(), TreeError> {
        Err(TreeError::Volatile(name))
    }
}
