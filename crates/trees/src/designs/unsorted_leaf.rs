//! `unsorted-leaf`: the volatile baseline with unsorted leaves, in which an insert moves no entry.
//! It never flushes and does not survive its process.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Volatile};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Packed, Sorted};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// The volatile baseline with unsorted leaves and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct UnsortedLeaf<const NODE: usize>;

impl<const NODE: usize> Design for UnsortedLeaf<NODE> {
    const SPEC: Spec = Spec {
        name: "unsorted-leaf",
        source: "Chen, Gibbons and Nath, Rethinking Database Algorithms for Phase Change Memory, CIDR 2011; as a baseline of Chen and Jin, VLDB 2015",
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
    type Leaf = Packed<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Volatile;
}
