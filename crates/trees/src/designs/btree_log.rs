//! `btree-log`: the B+-tree sorted in place, with an undo-redo log of every word that it changes.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Undo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Layout, Sorted};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// Undo-redo logging over sorted nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeLog<const NODE: usize>;

/// Returns the cost of a transaction that changes `words` words in all lines of a node. Each word
/// is logged with one line and one fence. Then the lines of the node are flushed and fenced, and
/// the end of the log.
const fn logged<const NODE: usize>(words: usize) -> Cost {
    Cost::new((words + 1 + NODE / 64) as u32, (words + 2) as u32)
}

impl<const NODE: usize> Design for BTreeLog<NODE> {
    const SPEC: Spec = Spec {
        name: "btree-log",
        source: "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: logged::<NODE>(2 * Sorted::<NODE>::CAPACITY + 1),
            update: Cost::new(1, 1),
            remove: logged::<NODE>(2 * Sorted::<NODE>::CAPACITY - 1),
        },
        relies_on_line_order: true, // The undo-redo log relies on it.
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for BTreeLog<NODE> {
    type Leaf = Sorted<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Undo;
    const INSERTS_WITH_SPLITS: bool = true;
}
