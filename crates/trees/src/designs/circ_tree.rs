//! `circ-tree`: Circ-Tree, with every node in persistent memory, a sorted ring.
//!
//! See `docs/designs/circ-tree.md` for the source, the budget and the mechanisms.

use crate::all_pm::{AllPmSpec, FailureAtomic, UniqueWordsAllPm, Wal};
use crate::index::Design;
use crate::key::Key;
use crate::leaf::circular::Circular;
use crate::node::CircularNode;
use crate::spec::{Budget, CIRCULAR, Cost, Spec};
use bristlecone_pmem::Medium;

/// Circ-Tree with nodes of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct CircTree<const NODE: usize>;

impl<const NODE: usize> Design for CircTree<NODE> {
    const SPEC: Spec = Spec {
        name: "circ-tree",
        source: "Wang et al., Circ-Tree, arXiv 1912.09783, 2019",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(Circular::<NODE>::INSERT_LINES, Circular::<NODE>::INSERT_LINES),
            update: Cost::new(1, 1),
            remove: Cost::new(Circular::<NODE>::REMOVE_LINES, Circular::<NODE>::REMOVE_LINES),
        },
        relies_on_line_order: true, // The shifts of a ring rely on it; the log does not.
        features: &["sorted-leaves", CIRCULAR, "optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = UniqueWordsAllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for CircTree<NODE> {
    type Leaf = CircularNode<NODE>;
    type Inner = CircularNode<NODE>;
    type LeafUpdate = FailureAtomic;
    type Protocol = Wal;
    const FLUSHES_LEFT_HALF: bool = true;
}
