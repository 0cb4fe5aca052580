//! `nv-tree-r`: this project's cheaper variant of NV-Tree, with one element for an update and
//! merges in place.
//!
//! See `docs/designs/nv-tree-r.md` for what differs from `nv-tree`.

use crate::hybrid::{HybridSpec, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::append::{Append, KindBits};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// The cheaper NV-Tree with leaves of `NODE` bytes: 256, 512 or 1024.
#[derive(Debug)]
pub struct NvTreeR<const NODE: usize>;

impl<const NODE: usize> HybridSpec for NvTreeR<NODE> {
    const SPEC: Spec = Spec {
        name: "nv-tree-r",
        source: "Yang et al., NV-Tree, FAST 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(2, 2),
            remove: Cost::new(2, 2),
        },
        relies_on_line_order: false,
        features: &[SELECTIVE, "append-only", "optimistic-latches", "multi-get"],
    };
    type Leaf = Append<NODE, KindBits>;
    type Inner<M: Medium> = Inner<M>;
}

impl<const NODE: usize> Design for NvTreeR<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}
