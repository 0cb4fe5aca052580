//! FAST & FAIR with selective persistence: its leaves in persistent memory, inner nodes in DRAM.
//!
//! The tree is the hybrid engine with FAST & FAIR's node as the leaf.

use crate::hybrid::{HybridSpec, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::sorted_shift::SortedShift;
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// FAST & FAIR leaves of `NODE` bytes under inner nodes in DRAM.
#[derive(Debug)]
pub struct FastFairSp<const NODE: usize>;

impl<const NODE: usize> HybridSpec for FastFairSp<NODE> {
    const SPEC: Spec = {
        // A shift over a whole leaf flushes and fences each of its lines.
        let whole = Cost::new((NODE / 64) as u32, (NODE / 64) as u32);
        Spec {
            name: "fast-fair-sp",
            source: "Hwang et al., FAST & FAIR, FAST 2018; inner nodes in DRAM as later studies have it",
            persistent: true,
            node_bytes: NODE,
            budget: Budget { insert: whole, update: Cost::new(1, 1), remove: whole },
            relies_on_line_order: true,
            features: &[SELECTIVE, "log-free", "optimistic-latches", "multi-get"],
        }
    };
    type Leaf = SortedShift<NODE>;
    type Inner<M: Medium> = Inner<M>;
}

impl<const NODE: usize> Design for FastFairSp<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}
