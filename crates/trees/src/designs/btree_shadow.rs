//! `btree-shadow`: the B+-tree of sorted nodes with copy-on-write leaves (shadowing).

use crate::all_pm::{AllPm, AllPmSpec, CopyOnWrite, Undo};
use crate::index::Design;
use crate::key::Key;
use crate::node::Sorted;
use crate::spec::{Budget, Cost, SHADOWING, Spec};
use bristlecone_pmem::Medium;

/// Shadowing over sorted nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeShadow<const NODE: usize>;

impl<const NODE: usize> Design for BTreeShadow<NODE> {
    const SPEC: Spec = {
        // The lines of the copy, its record, the log, the two pointers, and the end of the log.
        let change = Cost::new((NODE / 64) as u32 + 5, 4);
        Spec {
            name: "btree-shadow",
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

impl<const NODE: usize> AllPmSpec for BTreeShadow<NODE> {
    type Leaf = Sorted<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = CopyOnWrite;
    type Protocol = Undo;
    const INSERTS_WITH_SPLITS: bool = true;
}
