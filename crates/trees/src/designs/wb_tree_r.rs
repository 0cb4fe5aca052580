//! `wb-tree-r`: the write-atomic B+-tree with a header in one line, so that a change of a node commits
//! in that line: what `wb-tree` becomes once it relies on the order of stores within a line.

use crate::all_pm::{AllPm, AllPmSpec, FailureAtomic, Redo};
use crate::index::Design;
use crate::key::Key;
use crate::node::SlotLine;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The write-atomic B+-tree that commits in one line, in nodes of `NODE` bytes.
#[derive(Debug)]
pub struct WbTreeR<const NODE: usize>;

impl<const NODE: usize> Design for WbTreeR<NODE> {
    const SPEC: Spec = Spec {
        name: "wb-tree-r",
        source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015; its header kept in one line",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: SlotLine::<NODE>::INSERT,
            update: Cost::new(1, 1),
            remove: SlotLine::<NODE>::REMOVE,
        },
        relies_on_line_order: true, // Bitmap and slot array of a node do, and the log of splits.
        features: &["concurrent readers and writers", "merge", "interleaved multi_get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for WbTreeR<NODE> {
    type Leaf = SlotLine<NODE>;
    type Inner = SlotLine<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = Redo;
}
