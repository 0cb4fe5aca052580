//! The records of the defects of `ccl-btree`'s log and leaves, in the order of the enumeration.

use super::about::{own, printed};
use super::{About, Defect};

/// Returns the record of a defect of the public code of CCL-BTree.
pub(super) const fn public_code(name: &'static str, what: &'static str) -> About {
    printed("ccl-btree", name, what, "CCL-BTree (EuroSys 2024), authors' code")
}

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 6] = [
    (
        Defect::EntryTorn,
        public_code(
            "entry-torn",
            "a log entry crosses the end of a line, and no fence orders its parts",
        ),
    ),
    (
        Defect::EntryRecycled,
        public_code(
            "entry-recycled",
            "a log chunk is used again with its old entries, which recovery accepts",
        ),
    ),
    (
        Defect::UnlinkedStamp,
        public_code(
            "unlinked-stamp",
            "the timestamp of an unlinked leaf is lost: old log entries count in its left neighbour",
        ),
    ),
    (
        Defect::RightUnfenced,
        own(
            "ccl-btree",
            "right-unfenced",
            "the state of a split leaf may persist before its right leaf",
            "merge and split in one pass",
        ),
    ),
    (
        Defect::RightUnstamped,
        own(
            "ccl-btree",
            "right-unstamped",
            "the right leaf of a split begins with stamp 0: old log entries of its keys count",
            "merge and split in one pass",
        ),
    ),
    (
        Defect::RecordEarly,
        own(
            "ccl-btree",
            "record-early",
            "the record of a removed key is used again while log entries name it",
            "log entries without a leaf",
        ),
    ),
];
