//! `btree`: the volatile baseline, a textbook B+-tree with nodes sorted in place. It runs in a pool
//! like every design, but never flushes and does not survive its process.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Volatile};
use crate::index::Design;
use crate::key::Key;
use crate::node::Sorted;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The volatile baseline with nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTree<const NODE: usize>;

impl<const NODE: usize> Design for BTree<NODE> {
    const SPEC: Spec = Spec {
        name: "btree",
        source: "Bayer and McCreight, 1972; as the baseline of Chen and Jin, VLDB 2015",
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

impl<const NODE: usize> AllPmSpec for BTree<NODE> {
    type Leaf = Sorted<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Volatile;
}
