//! `unsorted-leaf-shadow`: copy-on-write of packed unsorted leaves (shadowing).

use crate::all_pm::{AllPm, AllPmSpec, CopyOnWrite, Undo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Packed, Sorted};
use crate::spec::{Budget, Cost, SHADOWING, Spec};
use bristlecone_pmem::Medium;

/// Shadowing over packed unsorted leaves and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct UnsortedLeafShadow<const NODE: usize>;

impl<const NODE: usize> Design for UnsortedLeafShadow<NODE> {
    const SPEC: Spec = {
        // The lines of the copy, the log, the two pointers, and the end of the log.
        let change = Cost::new((NODE / 64) as u32 + 5, 4);
        Spec {
            name: "unsorted-leaf-shadow",
            source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015",
            persistent: true,
            node_bytes: NODE,
            budget: Budget { insert: change, update: Cost::new(1, 1), remove: change },
            relies_on_line_order: true, // The redo and undo logs rely on it.
            features: &[SHADOWING, "optimistic-latches", "multi-get"],
        }
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for UnsortedLeafShadow<NODE> {
    type Leaf = Packed<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = CopyOnWrite;
    type Protocol = Undo;
    const INSERTS_WITH_SPLITS: bool = true;
}
