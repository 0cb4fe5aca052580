//! The defects of `cell-tree`.

defects! {
    cell_tree;

    /// An insert stores the commit word before the entry.
    CellCommitFirst = own(
        "cell-tree",
        "cell-commit-first",
        "the commit word of a cell may persist before the entry that it makes valid",
        "cells that commit themselves",
    ),
    /// An update stores the commit word before the former sum.
    FormerSumLate = own(
        "cell-tree",
        "former-sum-late",
        "a commit word that allows either sum may persist before the former sum",
        "cells that commit themselves",
    ),
    /// An update stores the value before the sums.
    SumsLate = own(
        "cell-tree",
        "sums-late",
        "the value may persist before the sums: neither fits after a crash",
        "cells that commit themselves",
    ),
    /// A split does not fence the link before the insert of a key that goes left.
    KeyWithLink = own(
        "cell-tree",
        "key-with-link",
        "the new key takes the slot of a moved entry and may persist before the link",
        "hidden entries",
    ),
    /// An open takes a leaf as a whole, without the end of its range.
    RangeIgnored = own(
        "cell-tree",
        "range-ignored",
        "an open takes moved entries for entries of the left leaf",
        "hidden entries",
    ),
    /// A split leaves the moved entries of keys with records where they are.
    HiddenRecords = own(
        "cell-tree",
        "hidden-records",
        "a hidden entry outlives its record, and a lower key gets the block: an open counts it",
        "hidden entries",
    ),
    /// A merge leaves the hidden entries of the left leaf.
    HiddenKept = own(
        "cell-tree",
        "hidden-kept",
        "hidden entries lie in the range that a leaf takes over: removed pairs are back",
        "hidden entries",
    ),
    /// A merge does not fence the moved entries before the link.
    MergeWithLink = own(
        "cell-tree",
        "merge-with-link",
        "the link past a merged leaf may persist before its entries in the left leaf",
        "merges",
    ),
    /// A merge into a new leaf does not fence that leaf before the link.
    ReplacedEarly = own(
        "cell-tree",
        "replaced-early",
        "the link to a new leaf in the place of two may persist before its cells",
        "dense cells",
    ),
    /// A merge does not look whether the range is too wide for the left leaf.
    MergedWide = own(
        "cell-tree",
        "merged-wide",
        "the low bits of two keys of a leaf may be equal",
        "dense cells",
    ),
    /// A split does not flush the cells that the last use of the block has left.
    CellsKept = own(
        "cell-tree",
        "cells-kept",
        "cells of the last use of a block, whose sums fit, are back in the new leaf",
        "cells that commit themselves",
    ),
    /// Recovery takes a fresh slot without the check of its record.
    FreshUnchecked = own(
        "cell-tree",
        "fresh-unchecked",
        "an open takes a slot whose record may not have persisted under the same fence",
        "records under the fence of their cell",
    ),
    /// Recovery takes any whole record for that of a fresh slot.
    OlderRecord = own(
        "cell-tree",
        "older-record",
        "the record that the block held before an insert passes for the torn one",
        "records under the fence of their cell",
    ),
    /// An insert stores the note of the record after the commit word.
    NoteLate = own(
        "cell-tree",
        "note-late",
        "a fresh slot may persist without the note by which recovery checks its record",
        "records under the fence of their cell",
    ),
    /// A write changes the last word of a cell while the commit word still says fresh.
    FreshKept = own(
        "cell-tree",
        "fresh-kept",
        "recovery compares a durable record with a word that is not its note, and drops it",
        "records under the fence of their cell",
    ),
    /// Recovery stores the new epoch before it has settled the leaves.
    EpochEarly = own(
        "cell-tree",
        "epoch-early",
        "after a crash of the recovery a torn record passes for damage",
        "records under the fence of their cell",
    ),
    /// An open does not look for keys in far cells.
    FarForgotten = own(
        "cell-tree",
        "far-forgotten",
        "after an open, lookups pass over the far cells, in which acknowledged keys may lie",
        "far cells",
    ),
}
