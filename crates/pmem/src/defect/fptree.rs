//! The defects of `fptree`.

defects! {
    fptree;

    /// A split links the new leaf before it fills it.
    LinkBeforeFill = printed(
        "fptree",
        "link-before-fill",
        "the new leaf is allocated into the chain before bitmap and next are set",
        "FPTree (SIGMOD 2016), public C++ port",
    ),
    /// Recovery of a split mistakes the old neighbour for the new leaf.
    OldNeighbour = printed(
        "fptree",
        "old-neighbour",
        "the micro-log names the old right neighbour as the new leaf; recovery resets its bits",
        "FPTree (SIGMOD 2016), public C++ port",
    ),
    /// A writer changes a leaf without checking that it was not split since the search.
    LeafStale = threads(
        "fptree",
        "leaf-stale",
        "keys are missing after inserts by several threads",
        "uTree (VLDB 2020), authors' code",
    ),
    /// A split publishes the new leaf before it resets its micro-log.
    RightEarly = own_threads(
        "fptree",
        "right-early",
        "a thread writes to the new leaf of a split whose micro-log a replay still completes",
        "micro-logs beside other threads",
    ),
    /// A split releases the latch of the full leaf before it resets its micro-log.
    LeftEarly = own_threads(
        "fptree",
        "left-early",
        "a thread writes to the full leaf of a split whose micro-log a replay still completes",
        "micro-logs beside other threads",
    ),
    /// The reset of a micro-log clears the current leaf first.
    LogCurrentFirst = own(
        "fptree",
        "log-current-first",
        "a crash inside the reset of a micro-log leaves a leaf that the next split takes over",
        "micro-logs beside other threads",
    ),
    /// Recovery of a split takes a new leaf for copied that the micro-log alone names.
    CopyTrusted = own(
        "fptree",
        "copy-trusted",
        "recovery cuts a full leaf by the bitmap of a new one to which nothing was copied yet",
        "replay of a split from its beginning",
    ),
    /// A delete frees the block of the leaf before it resets its micro-log.
    BlockEarly = own_threads(
        "fptree",
        "block-early",
        "a thread reuses the block of a deleted leaf that a micro-log still names",
        "micro-logs beside other threads",
    ),
    /// A delete releases the latch of the left neighbour before it resets its micro-log.
    NeighbourEarly = own_threads(
        "fptree",
        "neighbour-early",
        "a thread changes the left neighbour of a deleted leaf that a micro-log still names",
        "micro-logs beside other threads",
    ),
}
