//! `fptree`: FPTree as published, with fingerprints and a bitmap in each leaf, micro-logs, and
//! inner nodes in DRAM.
//!
//! See `docs/designs/fptree.md` for the source, the persist orders and the departures. The
//! mechanisms of the paper and their places in the code:
//!
//! | mechanism | here |
//! | --- | --- |
//! | leaf; insert and update in three fences | `leaf/fingerprint_bitmap/`: `ThreeFences` |
//! | micro-logged split and leaf delete; log queue; replay | `hybrid/micro_log.rs` |
//! | inner nodes in DRAM, removal of a leaf from them | `inner/`, `inner/change/unlink.rs` |
//! | latch in the leaf | the word `LATCH` of the leaf, transient |
//! | hardware transactions around inner nodes | departure: optimistic versions |
//! | leaf without a low key | departure: a low key, 8 B a leaf, which bounds a leaf for scans |
//! | a replay repeats a split from its start | departure: it undoes a split whose leaf is whole |

use crate::hybrid::{Hybrid, HybridSpec, Restructuring};
use crate::index::Design;
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
    const RESTRUCTURING: Restructuring = Restructuring::MicroLogged;
}

impl<const NODE: usize> Design for FpTree<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = Hybrid<Self, M, K>;
}
