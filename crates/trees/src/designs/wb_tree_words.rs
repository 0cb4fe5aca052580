//! `wb-tree-words`: the write-atomic B+-tree with the printed loop, which flushes the slot array
//! every 8 B, and readers that lock out writers.

use crate::all_pm::{AllPm, AllPmSpec, FailureAtomic, Redo};
use crate::index::Design;
use crate::key::Key;
use crate::node::SlotWords;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The write-atomic B+-tree with nodes of `NODE` bytes, whose slot arrays are flushed by words.
#[derive(Debug)]
pub struct WbTreeWords<const NODE: usize>;

impl<const NODE: usize> Design for WbTreeWords<NODE> {
    const SPEC: Spec = Spec {
        name: "wb-tree-words",
        source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: SlotWords::<NODE>::INSERT,
            update: Cost::new(1, 1),
            remove: SlotWords::<NODE>::REMOVE,
        },
        relies_on_line_order: true, // The redo log of splits and merges relies on it.
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for WbTreeWords<NODE> {
    type Leaf = SlotWords<NODE>;
    type Inner = SlotWords<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = Redo;
    const INSERTS_WITH_SPLITS: bool = true;
    const COUNTS_READERS: bool = true;
}
