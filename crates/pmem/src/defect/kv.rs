//! The records of the defects of the key-value store over a design, in the order of the
//! enumeration.

use super::about::{own, own_threads};
use super::{About, Defect};

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 3] = [
    (
        Defect::ValueUnfenced,
        own(
            "kv-isle-tree",
            "value-unfenced",
            "the pointer to a value record may persist before the record",
            "value records",
        ),
    ),
    (
        Defect::ValueFreedEarly,
        own_threads(
            "kv-isle-tree",
            "value-freed-early",
            "a replaced value record is used again while a reader copies it",
            "value records",
        ),
    ),
    (
        Defect::ValuesUnmarked,
        own(
            "kv-wb-tree",
            "values-unmarked",
            "recovery frees the value records that the leaves name",
            "value records",
        ),
    ),
];
