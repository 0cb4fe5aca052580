//! `unsorted-bitmap-log`: unsorted leaves with a bitmap and inner nodes sorted in place. An
//! undo-redo log covers every change.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Undo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Bitmap, Sorted};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// Undo-redo logging over unsorted leaves with a bitmap and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct UnsortedBitmapLog<const NODE: usize>;

impl<const NODE: usize> UnsortedBitmapLog<NODE> {
    /// The most lines of a leaf in which its header and one entry lie.
    const LINES: u32 = if NODE > 64 { 2 } else { 1 };
}

impl<const NODE: usize> Design for UnsortedBitmapLog<NODE> {
    const SPEC: Spec = Spec {
        name: "unsorted-bitmap-log",
        source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(3 + Self::LINES, 4),
            update: Cost::new(1, 1),
            remove: Cost::new(3, 3),
        },
        relies_on_line_order: true, // The undo-redo log relies on it.
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for UnsortedBitmapLog<NODE> {
    type Leaf = Bitmap<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Undo;
    const INSERTS_WITH_SPLITS: bool = true;
}
