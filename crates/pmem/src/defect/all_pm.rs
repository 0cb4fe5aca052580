//! The records of the defects of write-ahead logs and bulk loads, in the order of the enumeration.

use super::about::own;
use super::{About, Defect};

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 3] = [
    (
        Defect::StateWithRecords,
        own(
            "persistent-unsorted",
            "state-with-records",
            "the state of a write-ahead log may persist before the records that it makes count",
            "write-ahead log",
        ),
    ),
    (
        Defect::StateEndsEarly,
        own(
            "persistent-unsorted",
            "state-ends-early",
            "the end of a write-ahead log may persist before the words that it covers",
            "write-ahead log",
        ),
    ),
    (
        Defect::LoadUnfenced,
        own(
            "persistent-unsorted",
            "load-unfenced",
            "the root word of a bulk load may persist before the nodes below it",
            "bulk load",
        ),
    ),
];
