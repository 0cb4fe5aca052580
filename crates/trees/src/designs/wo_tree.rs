//! `wo-tree`: WO-tree, with a bitmap and a slot array in each leaf, changed under a redo record.
//!
//! See `docs/designs/wo-tree.md` for the source, the persist orders and the departures.

use crate::hybrid::{Hybrid, HybridSpec};
use crate::index::Design;
use crate::key::Key;
use crate::leaf::slot_log::SlotLog;
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// WO-tree with leaves of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct WoTree<const NODE: usize>;

impl<const NODE: usize> HybridSpec for WoTree<NODE> {
    const SPEC: Spec = {
        let header = SlotLog::<NODE>::HEADER_LINES;
        Spec {
            name: "wo-tree",
            source: "Ma et al., Write-Optimized B+ Tree Index Technology for Persistent Memory, JCST 2021",
            persistent: true,
            node_bytes: NODE,
            budget: Budget {
                insert: Cost::new(3 + header, 3),
                update: Cost::new(1, 1),
                remove: Cost::new(2 + header, 3),
            },
            relies_on_line_order: true, // The redo log relies on it.
            features: &[SELECTIVE, "partial-logging", "optimistic-latches", "multi-get"],
        }
    };
    type Leaf = SlotLog<NODE>;
}

impl<const NODE: usize> Design for WoTree<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = Hybrid<Self, M, K>;
}
