//! `fptree-r`: FPTree without micro-logs, with two fences an insert and updates in place.
//!
//! See `docs/designs/fptree-r.md` for the source, the budget and the mechanisms.

use crate::hybrid::{Hybrid, HybridSpec};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::fingerprint_bitmap::{FingerprintBitmap, TwoFences};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// FPTree without micro-logs, with leaves of `NODE` bytes: 256, 512 or 1024.
#[derive(Debug)]
pub struct FpTreeR<const NODE: usize>;

impl<const NODE: usize> HybridSpec for FpTreeR<NODE> {
    const SPEC: Spec = Spec {
        name: "fptree-r",
        source: "Oukid et al., FPTree, SIGMOD 2016",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(1 + FingerprintBitmap::<NODE, TwoFences>::HEADER_LINES, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: false,
        features: &[SELECTIVE, "fingerprints", "optimistic-latches", "multi-get"],
    };
    type Leaf = FingerprintBitmap<NODE, TwoFences>;
    type Inner<M: Medium> = Inner<M>;
}

impl<const NODE: usize> Design for FpTreeR<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = Hybrid<Self, M, K>;
}
