//! `isle-tree-r`: Isle-Tree without counters, so that each operation changes a single line.
//!
//! See `docs/designs/isle-tree-r.md` for the source, the budget and the mechanisms.

use crate::hybrid::{HybridSpec, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::isle::Isle;
use crate::leaf::isle::count_word::InLine;
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// Isle-Tree without counters, with leaves of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct IsleTreeR<const NODE: usize>;

impl<const NODE: usize> HybridSpec for IsleTreeR<NODE> {
    const SPEC: Spec = Spec {
        name: "isle-tree-r",
        source: "Wang and Chattopadhyay, Isle-Tree: A B+-Tree with Intra-Cache Line Sorted Leaves for Non-volatile Memory",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(1, 1),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: true,
        features: &[SELECTIVE, "log-free", "optimistic-latches", "multi-get"],
    };
    type Leaf = Isle<InLine, NODE>;
    type Inner<M: Medium> = Inner<M>;
}

impl<const NODE: usize> Design for IsleTreeR<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}
