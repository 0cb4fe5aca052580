//! `wb-tree-slot-only`: the write-atomic B+-tree with nodes of one line or two, whose slot array is
//! itself the commit word.

use crate::all_pm::{AllPm, AllPmSpec, FailureAtomic, Redo};
use crate::index::Design;
use crate::key::Key;
use crate::node::SlotOnly;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The write-atomic B+-tree with slot-only nodes. `NODE` is 64 or 128, because a commit word holds
/// at most seven slots.
#[derive(Debug)]
pub struct WbTreeSlotOnly<const NODE: usize>;

impl<const NODE: usize> Design for WbTreeSlotOnly<NODE> {
    const SPEC: Spec = Spec {
        name: "wb-tree-slot-only",
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

impl<const NODE: usize> AllPmSpec for WbTreeSlotOnly<NODE> {
    type Leaf = SlotOnly<NODE>;
    type Inner = SlotOnly<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = Redo;
    const INSERTS_WITH_SPLITS: bool = true;
}
