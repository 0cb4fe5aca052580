//! The records of the defects of `isle-tree-all`, in the order of the enumeration.

use super::about::{own, own_threads};
use super::{About, Defect};

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 4] = [
    (
        Defect::NeighborOpen,
        own_threads(
            "isle-tree-all",
            "neighbor-open",
            "a leaf is replaced while another thread replaces its left neighbour, whose link it changes",
            "replacement of a leaf",
        ),
    ),
    (
        Defect::DoubledKept,
        own(
            "isle-tree-all",
            "doubled-kept",
            "recovery keeps an entry whose child a shift has doubled",
            "parents mended from children",
        ),
    ),
    (
        Defect::FirstChildKept,
        own(
            "isle-tree-all",
            "first-child-kept",
            "recovery keeps a leaf that has been replaced as the first child of its parent",
            "parents mended from children",
        ),
    ),
    (
        Defect::ParentUnmended,
        own(
            "isle-tree-all",
            "parent-unmended",
            "recovery does not add the new leaf that a parent lacks",
            "parents mended from children",
        ),
    ),
];
