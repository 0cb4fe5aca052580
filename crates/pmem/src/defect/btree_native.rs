//! The defects of `btree-native`.

defects! {
    btree_native;

    /// The log record of a node is not flushed before the node changes.
    WriteAheadUnfenced = own(
        "btree-native",
        "write-ahead-unfenced",
        "the log record of a node is stored and not flushed: entries may move durably without it",
        "a log that is written, and not ahead",
    ),
    /// Moved entries are flushed and not fenced one by one.
    MovesUnfenced = own(
        "btree-native",
        "moves-unfenced",
        "moved entries are flushed under one fence: an entry may be gone before its copy is durable",
        "flushes in no order",
    ),
    /// The value word of a moved entry is stored before its key word.
    MoveValueFirst = own(
        "btree-native",
        "move-value-first",
        "a move stores the value before the key: the doubled key is then that of the move before",
        "the order of two stores in a line",
    ),
    /// Recovery moves all entries of an interrupted change again.
    RedoFromStart = own(
        "btree-native",
        "redo-from-start",
        "recovery moves all entries again, and does not resume at the doubled key: copies overwrite entries",
        "a redo that is not idempotent",
    ),
    /// The right node of a split is not durable before the record that names it.
    RightAfterRecord = own(
        "btree-native",
        "right-after-record",
        "the record of a split may be durable before the right node that it names",
        "a fence that another one seems to cover",
    ),
    /// A fresh node begins with the sequence number 0.
    NativeSeqZero = own(
        "btree-native",
        "native-seq-zero",
        "a fresh node begins below the records about an earlier node in its block: recovery completes them",
        "a block that is used again",
    ),
    /// A descent releases the latch of the parent before it has that of the child.
    Uncoupled = own_threads(
        "btree-native",
        "uncoupled",
        "a descent releases the parent before it has the child's latch: the child may split or go meanwhile",
        "latches that are not coupled",
    ),
}
