//! `wb-tree`: the write-atomic B+-tree, with a slot array and a bitmap in every node.

use crate::all_pm::{AllPm, AllPmSpec, FailureAtomic, Redo};
use crate::index::Design;
use crate::key::Key;
use crate::node::SlotBitmap;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The write-atomic B+-tree with nodes of `NODE` bytes.
#[derive(Debug)]
pub struct WbTree<const NODE: usize>;

impl<const NODE: usize> Design for WbTree<NODE> {
    const SPEC: Spec = Spec {
        name: "wb-tree",
        source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: SlotBitmap::<NODE>::INSERT,
            update: Cost::new(1, 1),
            remove: SlotBitmap::<NODE>::REMOVE,
        },
        relies_on_line_order: true, // The redo log of splits and merges relies on it.
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for WbTree<NODE> {
    type Leaf = SlotBitmap<NODE>;
    type Inner = SlotBitmap<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = Redo;
    const INSERTS_WITH_SPLITS: bool = true;
}
