//! `bristlecone`: leaves of pairs in persistent memory, each with a checksum; inner nodes in DRAM.
//!
//! See `docs/designs/bristlecone.md` for the reasons.

use crate::hybrid::{Hybrid, HybridSpec};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::Leaf;
use crate::leaf::pairs::PairLeaf;
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// A tree of leaves of pairs, on the hybrid engine.
#[derive(Debug)]
pub struct Bristlecone;

impl HybridSpec for Bristlecone {
    const SPEC: Spec = Spec {
        name: "bristlecone",
        source: "this project; after FPTree (Oukid et al., SIGMOD 2016)",
        persistent: true,
        node_bytes: 8 * PairLeaf::WORDS,
        budget: Budget {
            insert: Cost::new(2, 1),
            update: Cost::new(2, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: true,
        features: &[
            SELECTIVE,
            "fingerprints",
            "inline-pairs",
            "checksums",
            "optimistic-latches",
            "multi-get",
        ],
    };
    type Leaf = PairLeaf;
    type Inner<M: Medium> = Inner<M>;
}

impl Design for Bristlecone {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = Hybrid<Self, M, K>;
}
