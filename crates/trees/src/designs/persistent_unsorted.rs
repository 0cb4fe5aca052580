//! `persistent-unsorted`: unsorted leaves that commit through a bitmap, and sorted inner nodes.
//! Only structure modifications use a write-ahead log, of a node's own.

use crate::all_pm::{AllPm, AllPmSpec, FailureAtomic, NodeWal};
use crate::index::Design;
use crate::key::Key;
use crate::node::{LinearSorted, WideBitmap};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// Failure-atomic unsorted leaves under sorted inner nodes, both of `NODE` bytes.
#[derive(Debug)]
pub struct PersistentUnsorted<const NODE: usize>;

impl<const NODE: usize> Design for PersistentUnsorted<NODE> {
    const SPEC: Spec = Spec {
        name: "persistent-unsorted",
        source: "Ni et al., Closing the Performance Gap between DRAM and PM for In-Memory Index Structures, 2020",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: false,
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for PersistentUnsorted<NODE> {
    type Leaf = WideBitmap<NODE>;
    type Inner = LinearSorted<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = NodeWal;
}
