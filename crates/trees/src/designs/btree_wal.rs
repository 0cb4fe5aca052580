//! `btree-wal`: a B+-tree whose nodes are sorted in place, made safe by a write-ahead log.

use crate::all_pm::{AllPm, AllPmSpec, LoggedInPlace, Wal};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Layout, Sorted};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::Medium;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};

/// The B+-tree with a write-ahead log, in nodes of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeWal<const NODE: usize>;

/// What it costs to change `words` words of a leaf that lie in all of its lines: the log's lines (its
/// two words, a word for each line, the new values), those of the leaf, and the state of the log twice.
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
            // The count, and all entries of a leaf that is full then.
            insert: logged::<NODE>(1 + 2 * Sorted::<NODE>::CAPACITY),
            update: Cost::new(1, 1),
            // The count, and all entries but the last of a leaf that was full.
            remove: logged::<NODE>(2 * Sorted::<NODE>::CAPACITY - 1),
        },
        relies_on_line_order: false,
        features: &["concurrent readers and writers", "merge", "interleaved multi_get"],
    };
    type Index<M: Medium, K: Key> = AllPm<M, K, Self>;
}

impl<const NODE: usize> AllPmSpec for BTreeWal<NODE> {
    type Leaf = Sorted<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = LoggedInPlace;
    type Protocol = Wal;
}
