//! `nv-tree`: NV-Tree, with append-only leaves and inner nodes in one array in DRAM: an update is a
//! delete and an insert, fresh leaves replace a full leaf and two sparse ones, and a full lowest
//! inner node makes an insert rebuild all inner nodes.
//!
//! See `docs/designs/nv-tree.md` for the source, the budget and the departures.

use crate::hybrid::{HybridSpec, Restructuring, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::InnerArray;
use crate::key::Key;
use crate::leaf::append::{Append, KindWords};
use crate::spec::{Budget, Cost, INNER_ARRAY, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// NV-Tree with leaves of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct NvTree<const NODE: usize>;

impl<const NODE: usize> HybridSpec for NvTree<NODE> {
    const SPEC: Spec = Spec {
        name: "nv-tree",
        source: "Yang et al., NV-Tree, FAST 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(3, 2),
            update: Cost::new(3, 2),
            remove: Cost::new(3, 2),
        },
        relies_on_line_order: false,
        features: &[SELECTIVE, INNER_ARRAY, "append-only", "optimistic-latches", "multi-get"],
    };
    type Leaf = Append<NODE, KindWords>;
    type Inner<M: Medium> = InnerArray<M>;
    const RESTRUCTURING: Restructuring = Restructuring::Replacement;
}

impl<const NODE: usize> Design for NvTree<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}

#[cfg(test)]
mod tests;
