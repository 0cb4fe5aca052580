//! The defects of FAST & FAIR.

defects! {
    fast_fair;

    /// A removal flushes a line when it writes the line's first entry, not after the last.
    DeleteFlush = printed(
        "fast-fair",
        "delete-flush",
        "delete flushes a line when its first entry is written, not its last",
        "FAST & FAIR (FAST 2018), authors' code",
    ),
    /// A removal of the first entry hides all entries of the leaf until it ends.
    DeleteFront = printed(
        "fast-fair",
        "delete-front",
        "delete of the first entry writes null there first, which ends the array",
        "FAST & FAIR (FAST 2018), algorithm and code",
    ),
    /// An insert stores the key, which makes an entry valid here, before the value.
    KeyBeforeValue = printed(
        "fast-fair",
        "key-before-value",
        "the compiler drops or moves the store that keeps a new entry invalid",
        "FAST & FAIR (FAST 2018), authors' code: plain stores",
    ),
    /// A writer leaves the duplicate entry of an interrupted insert.
    DuplicateLeft = printed(
        "fast-fair",
        "duplicate-left",
        "delete after a crash inside an insert removes only the duplicate",
        "FAST & FAIR (FAST 2018), lazy recovery that is not there",
    ),
    /// A writer does not complete an interrupted split.
    SplitUnrepaired = printed(
        "fast-fair",
        "split-unrepaired",
        "an interrupted split is never completed; writers continue beside stale copies",
        "FAST & FAIR (FAST 2018), lazy recovery described, not coded",
    ),
    /// No operation looks for a sibling of the root.
    RootSibling = printed(
        "fast-fair",
        "root-sibling",
        "a crash between linking the root's sibling and publishing the new root",
        "FAST & FAIR, as found by RECIPE (SOSP 2019)",
    ),
    /// A split does not write the terminator of the new node; the block may not be zero there.
    NoTerminator = printed(
        "fast-fair",
        "no-terminator",
        "a split copies only the entries into the new node, not their terminator",
        "FAST & FAIR (FAST 2018), authors' code",
    ),
    /// A split inserts the separator into the parent that it found, which may have been split
    /// since.
    WrongParent = threads(
        "fast-fair",
        "wrong-parent",
        "a separator is put into the wrong node by a concurrent split of inner nodes",
        "FAST & FAIR (FAST 2018), authors' code",
    ),
    /// A search does not check the low key of the child that a shift led it to.
    WrongChild = threads(
        "fast-fair",
        "wrong-child",
        "a search of an inner node follows a wrong child during a shift",
        "FAST & FAIR (FAST 2018), authors' code",
    ),
    /// A split releases the latch before the link to the new sibling is durable.
    LinkLate = threads(
        "fast-fair",
        "link-late",
        "a writer follows a link that is not persistent yet, and inserts behind it",
        "FAST & FAIR, as found by concurrency checkers",
    ),
    /// A search does not follow the sibling link.
    HopMissed = threads(
        "fast-fair",
        "hop-missed",
        "a search that should follow the sibling link reports the key as absent",
        "optimistic coupling, B-link trees",
    ),
    /// A split puts a new root above a node that may not be the root any more.
    RootStale = threads(
        "fast-fair",
        "root-stale",
        "the root is split over a node that is no longer the root",
        "optimistic coupling",
    ),
    /// A reader without a latch does not load the key of an entry again after its value.
    EntryLoadedOnce = threads(
        "fast-fair",
        "entry-loaded-once",
        "a reader without a latch checks the key alone: it can return a neighbour's value",
        "FAST & FAIR (FAST 2018), authors' code",
    ),
    /// A reader without a latch answers beside a writer and flushes nothing.
    ReadUnflushed = threads(
        "fast-fair",
        "read-unflushed",
        "a reader without a latch returns what a crash can undo",
        "FAST & FAIR (FAST 2018), algorithm and code",
    ),
    /// A reader without a latch follows a link that is not durable.
    LinkUnflushed = own_threads(
        "fast-fair",
        "link-unflushed",
        "a reader without a latch follows a link that is not durable",
        "an answer from a node that a crash frees",
    ),
    /// A reader without a latch scans to the right whichever way a writer shifts.
    DirectionIgnored = own_threads(
        "fast-fair",
        "direction-ignored",
        "a reader without a latch scans to the right whichever way a writer shifts",
        "a race between scan and shift",
    ),
    /// A merge does not count the change of the left node's range.
    MergeUncounted = own_threads(
        "fast-fair",
        "merge-uncounted",
        "a reader without a latch misses the pairs that a merge moves into its leaf",
        "a race between scan and shift",
    ),
}
