//! `wb-tree-r`: the write-atomic B+-tree with bitmap and slot array in one line. It relies on the
//! persist order of stores within a line, so a change of a node commits with fewer fences.

use crate::all_pm::{AllPm, AllPmSpec, FailureAtomic, Redo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{SlotLine, prefetch_words};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The write-atomic B+-tree that commits in one line, with nodes of `NODE` bytes.
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
        relies_on_line_order: true, // Bitmap and slot array rely on it, and the redo log of splits and merges.
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for WbTreeR<NODE> {
    type Leaf = SlotLine<NODE>;
    type Inner = SlotLine<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = Redo;
    const LEAF_PREFETCH_WORDS: usize = prefetch_words(NODE / 8);
    const INNER_PREFETCH_WORDS: usize = prefetch_words(NODE / 8);
}
