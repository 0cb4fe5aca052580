//! The records of the defects of `lb-tree`, in the order of the enumeration.

use super::about::{own, own_threads, printed};
use super::{About, Defect};

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 7] = [
    (
        Defect::LockBitKept,
        printed(
            "lb-tree",
            "lock-bit-kept",
            "a lock bit that persisted as set is never cleared: the next insert waits for ever",
            "LB+-Tree (VLDB 2020), authors' code: no recovery",
        ),
    ),
    (
        Defect::MovedUnfenced,
        own(
            "lb-tree",
            "moved-unfenced",
            "the header may persist before the line of the new and the moved entries",
            "entry moving",
        ),
    ),
    (
        Defect::FingerprintsLate,
        own(
            "lb-tree",
            "fingerprints-late",
            "the header word persists before the fingerprints behind it: a lookup misses moved entries",
            "entry moving",
        ),
    ),
    (
        Defect::SiblingUnfenced,
        own(
            "lb-tree",
            "sibling-unfenced",
            "the flipped header may persist before the sibling word that it makes count",
            "logless split",
        ),
    ),
    (
        Defect::SiblingInUse,
        own(
            "lb-tree",
            "sibling-in-use",
            "a split overwrites the sibling word in use: the right half counts twice until the commit",
            "logless split",
        ),
    ),
    (
        Defect::SeparatorFreed,
        own(
            "lb-tree",
            "separator-freed",
            "a remove frees the record of a key that inner nodes still compare with",
            "leaves without a low key",
        ),
    ),
    (
        Defect::UnlinkUnlatched,
        own_threads(
            "lb-tree",
            "unlink-unlatched",
            "the left neighbour of an unlinked leaf may split while its sibling word changes",
            "leaves without a low key",
        ),
    ),
];
