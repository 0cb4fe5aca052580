//! `btree-gf`: the volatile baseline with group flushing. It flushes adjacent written lines
//! together so that the medium can merge them into one write. It never fences and does not survive
//! its process.

use crate::all_pm::{AllPm, AllPmSpec, Grouped, LoggedInPlace};
use crate::index::Design;
use crate::key::Key;
use crate::node::LinearSorted;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;
use bristlecone_pmem::line::LINE_BYTES;

/// The volatile baseline with group flushing and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeGf<const NODE: usize>;

impl<const NODE: usize> Design for BTreeGf<NODE> {
    const SPEC: Spec = Spec {
        name: "btree-gf",
        source: "Ni et al., Closing the Performance Gap between DRAM and PM for In-Memory Index Structures, 2020",
        persistent: false,
        node_bytes: NODE,
        budget: Budget {
            // All lines of a leaf: the worst case is its least key.
            insert: Cost::new((NODE / LINE_BYTES) as u32, 0),
            update: Cost::new(0, 0),
            remove: Cost::new((NODE / LINE_BYTES) as u32, 0),
        },
        relies_on_line_order: false,
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for BTreeGf<NODE> {
    type Leaf = LinearSorted<NODE>;
    type Inner = LinearSorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Grouped;
}
