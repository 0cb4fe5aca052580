//! `isle-tree-all`: Isle-Tree with every node in persistent memory. A leaf is sorted within each
//! line and counts the pairs of each line; inner nodes are sorted and change in place.
//!
//! See `docs/designs/isle-tree-all.md` for the source, the budget and the mechanisms.

use crate::all_pm::{AllPmSpec, Replacement, UniqueWordsAllPm, Wal};
use crate::index::Design;
use crate::key::Key;
use crate::leaf::isle::Isle;
use crate::leaf::isle::count_word::Counters;
use crate::node::Shifted;
use crate::spec::{Budget, Cost, LOCK_ARRAYS, PARENTS_MENDED, Spec};
use bristlecone_pmem::Medium;

/// Isle-Tree without DRAM nodes, with nodes of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct IsleTreeAll<const NODE: usize>;

impl<const NODE: usize> Design for IsleTreeAll<NODE> {
    const SPEC: Spec = Spec {
        name: "isle-tree-all",
        source: "Wang and Chattopadhyay, Isle-Tree: A B+-Tree with Intra-Cache Line Sorted Leaves for Non-volatile Memory",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(2, 2),
        },
        relies_on_line_order: true, // The shifts within a line rely on it; the log does not.
        features: &[PARENTS_MENDED, LOCK_ARRAYS, "optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = UniqueWordsAllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for IsleTreeAll<NODE> {
    type Leaf = Isle<Counters, NODE>;
    type Inner = Shifted<NODE>;
    type LeafUpdate = Replacement;
    type Protocol = Wal;
    const HAS_LOCKS: bool = true;
}
