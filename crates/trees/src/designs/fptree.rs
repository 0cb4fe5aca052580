//! `fptree`: FPTree as published, with fingerprints and a bitmap in each leaf, micro-logs, and
//! inner nodes in DRAM.
//!
//! See `docs/designs/fptree.md` for the source, the budget and the mechanisms.

use crate::hybrid::{Hybrid, HybridSpec, Restructuring};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::fingerprint_bitmap::{FingerprintBitmap, ThreeFences};
use crate::spec::{Budget, Cost, EMPTY_LEAVES, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// FPTree with leaves of `NODE` bytes: 256, 512 or 1024.
#[derive(Debug)]
pub struct FpTree<const NODE: usize>;

impl<const NODE: usize> HybridSpec for FpTree<NODE> {
    const SPEC: Spec = Spec {
        name: "fptree",
        source: "Oukid et al., FPTree, SIGMOD 2016",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(3, 3),
            update: Cost::new(3, 3),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: true,
        features: &[
            SELECTIVE,
            "fingerprints",
            "micro-logs",
            EMPTY_LEAVES,
            "optimistic-latches",
            "multi-get",
        ],
    };
    type Leaf = FingerprintBitmap<NODE, ThreeFences>;
    type Inner<M: Medium> = Inner<M>;
    const RESTRUCTURING: Restructuring = Restructuring::MicroLogged;
}

impl<const NODE: usize> Design for FpTree<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = Hybrid<Self, M, K>;
}
