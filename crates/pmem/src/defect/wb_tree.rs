//! The defects of wB+-Trees.

defects! {
    wb_tree;

    /// A latch that was held at a crash stays held.
    LatchKept = known(
        "wb-tree",
        "latch-kept",
        "a persisted latch word is never released",
        "FPTree (SIGMOD 2016), public C++ port; P-ART and others (RECIPE)",
    ),
    /// A line of the redo log gets its seal before its contents.
    LogUnmarked = printed(
        "wb-tree",
        "log-unmarked",
        "the redo log of a split has no defined commit mark",
        "wB+-Tree (VLDB 2015), split",
    ),
    /// A redo log is not truncated after its changes are applied.
    LogKept = printed(
        "wb-tree",
        "log-kept",
        "the redo log is never truncated: a replay overwrites later changes",
        "wB+-Tree (VLDB 2015), split",
    ),
    /// A redo log and the node that it publishes become durable with the same fence.
    LogWithNode = printed(
        "wb-tree",
        "log-with-node",
        "the new node and the log that links it are in one fence group",
        "wB+-Tree (VLDB 2015), split and merge",
    ),
    /// A search relies on a slot array that is marked invalid.
    SlotsUnrepaired = printed(
        "wb-tree",
        "slots-unrepaired",
        "a crash leaves a slot array invalid, and searches rely on it",
        "wB+-Tree (VLDB 2015), search",
    ),
    /// A repair flushes a slot array and its valid bit without a fence between them.
    ValidUnordered = About {
        node_bytes: Some(1024), // In smaller nodes one line holds both.
        ..printed(
            "wb-tree",
            "valid-unordered",
            "a repair sets the valid bit without ordering it after the slot array",
            "wB+-Tree (VLDB 2015), recovery of a node",
        )
    },
    /// A split of the root and the new root word are not one transaction.
    RootLate = known(
        "wb-tree",
        "root-late",
        "a crash between the split of the root and the new root pointer",
        "P-Masstree, as found by RECIPE (SOSP 2019) and later checkers",
    ),
    /// An insert sets the bit of an entry before the entry is durable.
    TokenFirst = known(
        "wb-tree-bitmap-leaf",
        "token-first",
        "the token is set before the pair is persistent",
        "level hashing (OSDI 2018), code",
    ),
    /// The only child replaces a root that may have got another child.
    CountStale = threads(
        "wb-tree",
        "count-stale",
        "the root is republished from a stale count",
        "optimistic coupling",
    ),
    /// An insert uses the slot that it found before it took the latch.
    SlotStale = threads(
        "wb-tree",
        "slot-stale",
        "a writer uses a slot that an earlier insert has moved",
        "optimistic coupling",
    ),
    /// A descent does not repair an inner node whose slot array is marked invalid.
    InnerUnrepaired = own(
        "wb-tree-bitmap-leaf",
        "inner-unrepaired",
        "a crash leaves the slot array of an inner node invalid, and no descent repairs it",
        "repair of an inner node by the first descent",
    ),
    /// A merge does not retire the node that it unlinks.
    NodeLeaks = own(
        "wb-tree",
        "node-leaks",
        "a merge never frees the node that it unlinks; only a recovery does",
        "leaks that a recovery hides",
    ),
    /// An insert flushes only the first line of a slot array.
    SlotLineUnflushed = own(
        "wb-tree",
        "slot-line-unflushed",
        "an insert flushes only the first of the two lines of a slot array",
        "headers of two lines",
    ),
    /// A logged change of a node flushes only the first line of its slot array.
    AppliedLineUnflushed = own(
        "wb-tree",
        "applied-line-unflushed",
        "a merge flushes only the first of the two lines of a slot array before its log ends",
        "headers of two lines",
    ),
    /// A replay does not truncate the redo log.
    ReplayKept = own(
        "wb-tree",
        "replay-kept",
        "an open replays a log and keeps it: the open after a second crash replays it over later changes",
        "damage that a second life shows",
    ),
    /// The end of a redo log becomes durable with the words that it covers.
    LogEndsEarly = own(
        "wb-tree",
        "log-ends-early",
        "one fence covers the words of a transaction and the end of its log",
        "insert and splits in one transaction",
    ),
    /// A split shows the new node in its parent before the log is sealed.
    ParentEarly = own(
        "wb-tree",
        "parent-early",
        "the parent shows the new node before the log of the split is sealed",
        "insert and splits in one transaction",
    ),
    /// A redo log shows a pair that it does not hold.
    PairUnlogged = own(
        "wb-tree",
        "pair-unlogged",
        "the logged bitmap of a split shows the new pair, which the log does not hold",
        "insert and splits in one transaction",
    ),
    /// A redo log holds bitmaps with the valid bit, and not the slot arrays.
    ReplayValid = own(
        "wb-tree",
        "replay-valid",
        "a replay sets the valid bit and does not restore the slot array",
        "insert and splits in one transaction",
    ),
}
