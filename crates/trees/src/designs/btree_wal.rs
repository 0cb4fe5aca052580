//! `btree-wal`: the B+-tree sorted in place, with a write-ahead log of every changed word.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Wal};
use crate::index::Design;
use crate::key::{Entry, Key};
use crate::node::{Layout, LinearSorted};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};

/// The B+-tree with a write-ahead log and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeWal<const NODE: usize>;

/// Returns the cost of a change of `words` words in all lines of a leaf: the log's lines (two
/// header words, one word for each line, the new values), the leaf's lines, and the log's state
/// twice.
const fn logged<const NODE: usize>(words: usize) -> Cost {
    let lines = NODE / LINE_BYTES;
    Cost::new(((2 + lines + words).div_ceil(LINE_WORDS) + lines + 2) as u32, 4)
}

impl<const NODE: usize> Design for BTreeWal<NODE> {
    const SPEC: Spec = Spec {
        name: "btree-wal",
        source: "Ni et al., Closing the Performance Gap between DRAM and PM for In-Memory Index Structures, 2020",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            // The count, and all entries of a leaf that becomes full.
            insert: logged::<NODE>(1 + Entry::WIDE_WORDS * LinearSorted::<NODE>::CAPACITY),
            update: Cost::new(1, 1),
            // The count, and all entries but the last of a leaf that was full.
            remove: logged::<NODE>(1 + Entry::WIDE_WORDS * (LinearSorted::<NODE>::CAPACITY - 1)),
        },
        relies_on_line_order: false,
        features: &["optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for BTreeWal<NODE> {
    type Leaf = LinearSorted<NODE>;
    type Inner = LinearSorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Wal;
}
