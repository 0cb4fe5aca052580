//! The defects of `ccl-btree`.

defects! {
    ccl_btree;

    /// The word that points to a log is not flushed.
    HeadVolatile = public_code(
        "head-volatile",
        "the pointer to the chunks of a log is not persistent: logged writes are lost",
    ),
    /// An insert stores the timestamp of a leaf before the entries that it covers are valid.
    StampFirst = public_code(
        "stamp-first",
        "a leaf's header is copied in no order: its timestamp may precede its bitmap",
    ),
    /// A split stores the leaf's timestamp before the buffered entries are in the leaf.
    StampAtSplit = public_code(
        "stamp-at-split",
        "a split sets the leaf's new timestamp before the buffered writes are in the leaf",
    ),
    /// Recovery reads 32 of the 47 bits of a stamp.
    StampTruncated = own(
        "ccl-btree",
        "stamp-truncated",
        "recovery compares 32 of the 47 bits of a log entry's stamp",
        "numbers near their bounds",
    ),
    /// A log entry that crosses the end of a line is flushed once, at its end.
    EntryTorn = public_code(
        "entry-torn",
        "a log entry crosses the end of a line, and no fence orders its parts",
    ),
    /// Recovery accepts entries of an earlier use of a log chunk.
    EntryRecycled = public_code(
        "entry-recycled",
        "a log chunk is used again with its old entries, which recovery accepts",
    ),
    /// Unlinking a leaf does not raise the stamp of its left neighbour above its own.
    UnlinkedStamp = public_code(
        "unlinked-stamp",
        "the timestamp of an unlinked leaf is lost: old log entries count in its left neighbour",
    ),
    /// A split stores the state of the full leaf without a fence after the right leaf.
    RightUnfenced = own(
        "ccl-btree",
        "right-unfenced",
        "the state of a split leaf may persist before its right leaf",
        "merge and split in one pass",
    ),
    /// A split gives the right leaf the stamp of a leaf without log entries.
    RightUnstamped = own(
        "ccl-btree",
        "right-unstamped",
        "the right leaf of a split begins with stamp 0: old log entries of its keys count",
        "merge and split in one pass",
    ),
    /// A collection goes on where the last one of this life has ended.
    CursorKept = own(
        "ccl-btree",
        "cursor-kept",
        "the second collection of a life logs nothing again and frees the logs of live entries",
        "log garbage collection by epochs",
    ),
    /// A remove frees the record of its key while log entries name it.
    RecordEarly = own(
        "ccl-btree",
        "record-early",
        "the record of a removed key is used again while log entries name it",
        "log entries without a leaf",
    ),
}
