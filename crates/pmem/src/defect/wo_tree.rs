//! The defects of `wo-tree`.

defects! {
    wo_tree;

    /// The bitmap and the slot array of a leaf persist one after the other, and no word says
    /// whether they agree.
    SlotsApart = printed(
        "wo-tree",
        "slots-apart",
        "bitmap and slot array persist one after the other; nothing says whether they agree",
        "WO-tree (JCST 2021), insertion and deletion in a leaf",
    ),
    /// A split copies one entry more into the new leaf than it counts.
    HalfUncounted = printed(
        "wo-tree",
        "half-uncounted",
        "a split copies from the middle to the last entry inclusive, and counts half of them",
        "WO-tree (JCST 2021), split of a leaf",
    ),
    /// A split removes the upper half from the old leaf before it links the new one.
    CutBeforeLink = printed(
        "wo-tree",
        "cut-before-link",
        "the old leaf's lines are flushed in no order: its cut may persist before its link",
        "WO-tree (JCST 2021), split of a leaf",
    ),
    /// The log record of a leaf is not flushed before the leaf changes.
    RecordUnfenced = own(
        "wo-tree",
        "record-unfenced",
        "the log record of a leaf is stored and not flushed: the leaf may change durably without it",
        "a record without which bitmap and slots may disagree",
    ),
    /// A shift in an inner node stores the key of an entry before its child.
    ShiftKeyFirst = own(
        "wo-tree",
        "shift-key-first",
        "a shift in an inner node stores a key before the child: an entry counts with the next one's key",
        "the order of two stores in a line",
    ),
    /// An insert into an inner node does not double the left neighbour's child first.
    PointerNotDoubled = own(
        "wo-tree",
        "pointer-not-doubled",
        "an insert into an inner node does not double the pointer first: a key changes under a child that counts",
        "a store that looks dead",
    ),
    /// A split of an inner node flushes its link and its cut under one fence.
    InnerLinkWithCut = printed(
        "wo-tree",
        "inner-link-with-cut",
        "the lines of a split inner node are flushed under one fence: its cut may persist before its link",
        "WO-tree (JCST 2021), split of an inner node",
    ),
    /// A search without a latch loads the child of an inner node a second time.
    ChildTwice = own_threads(
        "wo-tree",
        "child-twice",
        "a search loads the child of an inner node again after it compared the key: it may be null",
        "a race between skip and load",
    ),
    /// A search without a latch does not check the low key of the node that it reaches.
    LowUnchecked = own_threads(
        "wo-tree",
        "low-unchecked",
        "a search does not compare its key with the low key of the node that it reaches",
        "a race between skip and load",
    ),
    /// A split of a leaf does not latch the right leaf until the link is durable.
    RightLeafOpen = own_threads(
        "wo-tree",
        "right-leaf-open",
        "the right leaf of a split takes inserts before the link to it is durable",
        "a split that another thread uses too early",
    ),
    /// A split does not latch the right inner node until the link is durable.
    RightInnerOpen = own_threads(
        "wo-tree",
        "right-inner-open",
        "the right inner node of a split takes an entry before the link to it is durable",
        "a split that another thread uses too early",
    ),
    /// A split releases the left leaf before the parent leads to the right one.
    PostUnlatched = own_threads(
        "wo-tree",
        "post-unlatched",
        "the left leaf of a split may change, and so end its record, before the parent leads to the right one",
        "a record that must outlive a step of its operation",
    ),
    /// A fresh leaf begins with the sequence number 0.
    FreshSeqZero = own(
        "wo-tree",
        "fresh-seq-zero",
        "a fresh leaf begins below the records about an earlier leaf in its block: recovery replays them",
        "a block that is used again",
    ),
    /// Recovery clears the log records before it posts what they name.
    RecordsEarly = own(
        "wo-tree",
        "records-early",
        "recovery clears the records before it posts the leaves that only they name",
        "a crash of a recovery",
    ),
    /// Recovery tries each log record once.
    RecordsOnePass = own_threads(
        "wo-tree",
        "records-one-pass",
        "recovery tries each record once: that of a leaf is skipped if the split that made it comes later",
        "records that depend on each other",
    ),
}
