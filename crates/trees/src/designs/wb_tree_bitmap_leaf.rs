//! `wb-tree-bitmap-leaf`: the write-atomic B+-tree whose leaves have a bitmap but no slot array, so
//! that an insert commits with two fences. Inner nodes have both.

use crate::all_pm::{AllPm, AllPmSpec, FailureAtomic, Redo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Bitmap, SlotBitmap};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The write-atomic B+-tree with bitmap-only leaves and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct WbTreeBitmapLeaf<const NODE: usize>;

impl<const NODE: usize> Design for WbTreeBitmapLeaf<NODE> {
    const SPEC: Spec = Spec {
        name: "wb-tree-bitmap-leaf",
        source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: true, // The redo log of splits and merges relies on it.
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for WbTreeBitmapLeaf<NODE> {
    type Leaf = Bitmap<NODE>;
    type Inner = SlotBitmap<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = Redo;
    const INSERTS_WITH_SPLITS: bool = true;
}
