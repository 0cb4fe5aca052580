//! The records of some defects of `wo-tree`, in the order of the enumeration.

use super::about::{own, own_threads};
use super::{About, Defect};

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 4] = [
    (
        Defect::PostUnlatched,
        own_threads(
            "wo-tree",
            "post-unlatched",
            "the left leaf of a split may change, and so end its record, before the parent leads to the right one",
            "a record that must outlive a step of its operation",
        ),
    ),
    (
        Defect::FreshSeqZero,
        own(
            "wo-tree",
            "fresh-seq-zero",
            "a fresh leaf begins below the records about an earlier leaf in its block: recovery replays them",
            "a block that is used again",
        ),
    ),
    (
        Defect::RecordsEarly,
        own(
            "wo-tree",
            "records-early",
            "recovery clears the records before it posts the leaves that only they name",
            "a crash of a recovery",
        ),
    ),
    (
        Defect::RecordsOnePass,
        own_threads(
            "wo-tree",
            "records-one-pass",
            "recovery tries each record once: that of a leaf is skipped if the split that made it comes later",
            "records that depend on each other",
        ),
    ),
];
