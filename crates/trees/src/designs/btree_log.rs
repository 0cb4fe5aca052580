//! `btree-log`: the B+-tree sorted in place, every word that it moves first in an undo-redo log.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Undo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Layout, Sorted};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;

/// Undo-redo logging over sorted nodes, in nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeLog<const NODE: usize>;

/// What a transaction costs that changes so many words, which lie in every line of a node. Each is
/// logged with a line and a fence. The log's state changes three times, the last two with a fence; and
/// the lines of the node are written back before the last one, with a fence.
const fn logged<const NODE: usize>(words: usize) -> Cost {
    Cost::new((words + 3 + NODE / 64) as u32, (words + 3) as u32)
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
        relies_on_line_order: true, // The undo-redo log does.
        features: &["concurrent readers and writers", "merge", "interleaved multi_get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for BTreeLog<NODE> {
    type Leaf = Sorted<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Undo;
}
