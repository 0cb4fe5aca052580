//! The defects of `unit-tree`.

defects! {
    unit_tree;

    /// Settling does not fence the entries before the commit word with the stamp.
    UnitStampEarly = own(
        "unit-tree",
        "unit-stamp-early",
        "the stamp of a unit may persist before the entries whose records it ends",
        "settled units",
    ),
    /// Settling does not fence the commit words of other units before that of the home.
    UnitSpillLate = own(
        "unit-tree",
        "unit-spill-late",
        "the stamp of a full home may persist before the entries that lie in another unit",
        "settled units",
    ),
    /// A merge leaves the stamps of the left leaf.
    UnitMergeStamp = own(
        "unit-tree",
        "unit-merge-stamp",
        "old records of keys that moved to the left leaf count again",
        "log records and splits",
    ),
    /// A recovery takes a leaf as a whole, without the end of its range.
    UnitRangeIgnored = own(
        "unit-tree",
        "unit-range-ignored",
        "a recovery takes entries that a split has moved for entries of the left leaf",
        "log records and splits",
    ),
    /// A chunk is used again before it is clean.
    UnitChunkEarly = own(
        "unit-tree",
        "unit-chunk-early",
        "a record is overwritten that no unit has yet",
        "logs that are used again",
    ),
    /// The word that points to a chunk is not flushed.
    UnitChunkVolatile = own(
        "unit-tree",
        "unit-chunk-volatile",
        "the pointer to a chunk is not persistent: logged writes are lost",
        "logs that are used again",
    ),
}
