//! `btree-linear`: the volatile baseline of the gap report, a B+-tree with nodes sorted in place
//! and searched from the front. It never flushes and does not survive its process.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Volatile};
use crate::index::Design;
use crate::key::Key;
use crate::node::LinearSorted;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The volatile baseline, searched from the front, with nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeLinear<const NODE: usize>;

impl<const NODE: usize> Design for BTreeLinear<NODE> {
    const SPEC: Spec = Spec {
        name: "btree-linear",
        source: "Ni et al., Closing the Performance Gap between DRAM and PM for In-Memory Index Structures, 2020",
        persistent: false,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(0, 0),
            update: Cost::new(0, 0),
            remove: Cost::new(0, 0),
        },
        relies_on_line_order: false,
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for BTreeLinear<NODE> {
    type Leaf = LinearSorted<NODE>;
    type Inner = LinearSorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Volatile;
}
