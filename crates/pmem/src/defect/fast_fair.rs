//! The records of the defects of the readers of `fast-fair`, in the order of the enumeration.

use super::about::{own_threads, threads};
use super::{About, Defect};

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 5] = [
    (
        Defect::EntryLoadedOnce,
        threads(
            "fast-fair",
            "entry-loaded-once",
            "a reader without a latch checks the key alone: it can return a neighbour's value",
            "FAST & FAIR (FAST 2018), authors' code",
        ),
    ),
    (
        Defect::ReadUnflushed,
        threads(
            "fast-fair",
            "read-unflushed",
            "a reader without a latch returns what a crash can undo",
            "FAST & FAIR (FAST 2018), algorithm and code",
        ),
    ),
    (
        Defect::LinkUnflushed,
        own_threads(
            "fast-fair",
            "link-unflushed",
            "a reader without a latch follows a link that is not durable",
            "an answer from a node that a crash frees",
        ),
    ),
    (
        Defect::DirectionIgnored,
        own_threads(
            "fast-fair",
            "direction-ignored",
            "a reader without a latch scans to the right whichever way a writer shifts",
            "a race between scan and shift",
        ),
    ),
    (
        Defect::MergeUncounted,
        own_threads(
            "fast-fair",
            "merge-uncounted",
            "a reader without a latch misses the pairs that a merge moves into its leaf",
            "a race between scan and shift",
        ),
    ),
];
