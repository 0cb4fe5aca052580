//! `isle-tree`: Isle-Tree. A leaf is sorted within each line and counts the pairs of each line;
//! inner nodes are in DRAM.
//!
//! See `docs/designs/isle-tree.md` for the source, the budget and the mechanisms.

use crate::hybrid::{HybridSpec, Restructuring, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::{Inner, LinearWithLocks};
use crate::key::Key;
use crate::leaf::isle::Isle;
use crate::leaf::isle::count_word::Counters;
use crate::spec::{Budget, Cost, LOCK_ARRAYS, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// Isle-Tree with leaves of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct IsleTree<const NODE: usize>;

impl<const NODE: usize> HybridSpec for IsleTree<NODE> {
    const SPEC: Spec = Spec {
        name: "isle-tree",
        source: "Wang and Chattopadhyay, Isle-Tree: A B+-Tree with Intra-Cache Line Sorted Leaves for Non-volatile Memory",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(2, 2),
        },
        relies_on_line_order: true,
        features: &[SELECTIVE, LOCK_ARRAYS, "log-free", "optimistic-latches", "multi-get"],
    };
    type Leaf = Isle<Counters, NODE>;
    type Inner<M: Medium> = Inner<M, LinearWithLocks>;
    const RESTRUCTURING: Restructuring = Restructuring::Replacement;
}

impl<const NODE: usize> Design for IsleTree<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}
