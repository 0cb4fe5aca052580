//! `wo-tree-r`: WO-tree, repaired. The bitmap is the only commit word; the slot array is never
//! flushed.
//!
//! See `docs/designs/wo-tree-r.md` for the source, the budget and the mechanisms.

use crate::hybrid::{Hybrid, HybridSpec};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::slot_cache::SlotCache;
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// Repaired WO-tree with leaves of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct WoTreeR<const NODE: usize>;

impl<const NODE: usize> HybridSpec for WoTreeR<NODE> {
    const SPEC: Spec = Spec {
        name: "wo-tree-r",
        source: "after Ma et al., Write-Optimized B+ Tree Index Technology for Persistent Memory, JCST 2021",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: false,
        features: &[SELECTIVE, "log-free", "optimistic-latches", "multi-get"],
    };
    type Leaf = SlotCache<NODE>;
    type Inner<M: Medium> = Inner<M>;
}

impl<const NODE: usize> Design for WoTreeR<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = Hybrid<Self, M, K>;
}
