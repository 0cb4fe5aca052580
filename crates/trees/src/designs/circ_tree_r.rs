//! `circ-tree-r`: Circ-Tree, with sorted leaves that are ring buffers and inner nodes in DRAM.
//!
//! See `docs/designs/circ-tree-r.md` for the source, the budget and the departures.

use crate::hybrid::{HybridSpec, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::circular::Circular;
use crate::spec::{Budget, CIRCULAR, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// Circ-Tree with leaves of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct CircTreeR<const NODE: usize>;

impl<const NODE: usize> HybridSpec for CircTreeR<NODE> {
    const SPEC: Spec = Spec {
        name: "circ-tree-r",
        source: "Wang et al., Circ-Tree, arXiv 1912.09783, 2019",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(Circular::<NODE>::INSERT_LINES, Circular::<NODE>::INSERT_LINES),
            update: Cost::new(1, 1),
            remove: Cost::new(Circular::<NODE>::REMOVE_LINES, Circular::<NODE>::REMOVE_LINES),
        },
        relies_on_line_order: true,
        features: &[SELECTIVE, "sorted-leaves", CIRCULAR, "optimistic-latches", "multi-get"],
    };
    type Leaf = Circular<NODE>;
    type Inner<M: Medium> = Inner<M>;
}

impl<const NODE: usize> Design for CircTreeR<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}
