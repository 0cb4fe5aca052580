//! FAST & FAIR with selective persistence: its leaves in persistent memory, inner nodes in DRAM.
//!
//! As `fast-fair-sp`, with one fence a flush, and with the engine's search of inner nodes.

use crate::hybrid::{HybridSpec, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::sorted_shift::{FencedAfter, ShiftForm, SortedShift};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// FAST & FAIR leaves of `NODE` bytes, with one fence a flush, under inner nodes in DRAM.
#[derive(Debug)]
pub struct FastFairSpR<const NODE: usize>;

impl<const NODE: usize> HybridSpec for FastFairSpR<NODE> {
    const SPEC: Spec = {
        // A shift over a whole leaf flushes and fences each of its lines.
        let lines = (NODE / 64) as u32;
        let whole = Cost::new(lines, FencedAfter::FENCES * lines);
        Spec {
            name: "fast-fair-sp-r",
            source: "Hwang et al., FAST & FAIR, FAST 2018; inner nodes in DRAM as later studies have it",
            persistent: true,
            node_bytes: NODE,
            budget: Budget {
                insert: whole,
                update: Cost::new(1, FencedAfter::FENCES),
                remove: whole,
            },
            relies_on_line_order: true,
            features: &[SELECTIVE, "log-free", "optimistic-latches", "multi-get"],
        }
    };
    type Leaf = SortedShift<NODE, FencedAfter>;
    type Inner<M: Medium> = Inner<M>;
}

impl<const NODE: usize> Design for FastFairSpR<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}
