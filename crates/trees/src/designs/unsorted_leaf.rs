//! `unsorted-leaf`: the volatile baseline with unsorted leaves, whose entries a validity bitmap
//! shows. An insert moves none. The tree never flushes and does not survive its process.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Volatile};
use crate::index::Design;
use crate::key::Key;
use crate::node::{LinearSorted, WideBitmap};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The volatile baseline with unsorted leaves and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct UnsortedLeaf<const NODE: usize>;

impl<const NODE: usize> Design for UnsortedLeaf<NODE> {
    const SPEC: Spec = Spec {
        name: "unsorted-leaf",
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

impl<const NODE: usize> AllPmSpec for UnsortedLeaf<NODE> {
    type Leaf = WideBitmap<NODE>;
    type Inner = LinearSorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Volatile;
}
