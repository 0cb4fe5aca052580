//! The defects of `btree-ls`.

defects! {
    btree_ls;

    /// Recovery takes the base of a new leaf as valid although the old leaf has not ended.
    LsSplitUncommitted = printed(
        "btree-ls",
        "ls-split-uncommitted",
        "a split has no commit record: recovery finds the old leaf and one of its two halves",
        "Closing the performance gap (UCSC-CRSS-20-01)",
    ),
    /// Log GC moves the head over an end record that a base waits for.
    LsEndDropped = own(
        "btree-ls",
        "ls-end-dropped",
        "log GC drops the end record of a leaf while the bases of its successors wait for it",
        "a record that other logs depend on",
    ),
    /// The base of a merge does not point to the chain that it replaces.
    LsMergeCut = own(
        "btree-ls",
        "ls-merge-cut",
        "the base of a merge has no pointer to the old chain: a crash before the commit loses it",
        "a pointer that only an interrupted merge needs",
    ),
    /// Log GC does not flush the head before segments behind it are reused.
    LsHeadVolatile = own(
        "btree-ls",
        "ls-head-volatile",
        "the head of a log is not flushed before records follow it: old ones count again",
        "a pointer that is stored in time but not flushed",
    ),
    /// An open numbers new leaves from the greatest number of a leaf that counts.
    LsLeafReused = own(
        "btree-ls",
        "ls-leaf-reused",
        "an open counts live leaves alone: a new leaf gets the number of one whose end is in a log",
        "a number that is used again",
    ),
    /// A delta is visible before it is durable.
    LsDeltaEarly = own_threads(
        "btree-ls",
        "ls-delta-early",
        "a row points to a delta before the fence: readers see what a crash loses",
        "visible before durable",
    ),
}
