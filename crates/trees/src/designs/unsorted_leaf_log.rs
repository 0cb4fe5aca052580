//! `unsorted-leaf-log`: packed unsorted leaves and inner nodes sorted in place. An undo-redo log
//! covers every change.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Undo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Packed, Sorted};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// Undo-redo logging over packed unsorted leaves and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct UnsortedLeafLog<const NODE: usize>;

impl<const NODE: usize> UnsortedLeafLog<NODE> {
    /// The most lines of a leaf in which its header and one entry lie.
    const LINES: u32 = if NODE > 64 { 2 } else { 1 };
}

impl<const NODE: usize> Design for UnsortedLeafLog<NODE> {
    const SPEC: Spec = Spec {
        name: "unsorted-leaf-log",
        source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(3 + Self::LINES, 4),
            update: Cost::new(1, 1),
            remove: Cost::new(4 + Self::LINES, 5),
        },
        relies_on_line_order: true, // The undo-redo log relies on it.
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for UnsortedLeafLog<NODE> {
    type Leaf = Packed<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Undo;
    const INSERTS_WITH_SPLITS: bool = true;
}
