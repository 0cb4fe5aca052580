//! The defects of the trees with logs of their index.

defects! {
    all_pm;

    /// A replay does not truncate the undo-redo log of an index.
    IndexReplayKept = own(
        "btree-log",
        "index-replay-kept",
        "an open replays the log of an index and keeps it for the open after a second crash",
        "damage that a second life shows",
    ),
    /// The first record of an undo-redo log has the commit.
    CommitBitEarly = own(
        "btree-log",
        "commit-bit-early",
        "the commit of an undo-redo log is in a record that is not the last",
        "the end of an undo-redo log",
    ),
    /// The end of an undo-redo log becomes durable with the words that it covers.
    UndoEndsEarly = own(
        "btree-log",
        "undo-ends-early",
        "one fence covers the words of a transaction and the end of its undo-redo log",
        "the end of an undo-redo log",
    ),
    /// The state of a write-ahead log becomes durable with the records that it makes count.
    StateWithRecords = own(
        "persistent-unsorted",
        "state-with-records",
        "the state of a write-ahead log may persist before the records that it makes count",
        "write-ahead log",
    ),
    /// The end of a write-ahead log becomes durable with the words that it covers.
    StateEndsEarly = own(
        "persistent-unsorted",
        "state-ends-early",
        "the end of a write-ahead log may persist before the words that it covers",
        "write-ahead log",
    ),
    /// A bulk load names its root without a fence after the nodes.
    LoadUnfenced = own(
        "persistent-unsorted",
        "load-unfenced",
        "the root word of a bulk load may persist before the nodes below it",
        "bulk load",
    ),
}
