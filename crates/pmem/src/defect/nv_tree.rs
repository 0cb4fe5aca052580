//! The records of the defects of `nv-tree`, in the order of the enumeration.

use super::about::own_threads;
use super::{About, Defect};

/// The part of the catalogue.
pub(super) const DEFECTS: [(Defect, About); 2] = [
    (
        Defect::RebuildUnlatched,
        own_threads(
            "nv-tree",
            "rebuild-unlatched",
            "a separator that reaches a lowest node after its copy is lost with the former array",
            "rebuild of inner nodes",
        ),
    ),
    (
        Defect::RebuildUnseen,
        own_threads(
            "nv-tree",
            "rebuild-unseen",
            "a descent that began before a rebuild inserts its separator into the former array",
            "rebuild of inner nodes",
        ),
    ),
];
