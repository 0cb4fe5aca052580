//! `unsorted-bitmap-shadow`: copy-on-write of unsorted leaves with a bitmap (shadowing).

use crate::all_pm::{AllPm, AllPmSpec, CopyOnWrite, Undo};
use crate::index::Design;
use crate::key::Key;
use crate::node::{Bitmap, Layout, Sorted};
use crate::spec::{Budget, Cost, SHADOWING, Spec};
use bristlecone_pmem::Medium;
use bristlecone_pmem::line::LINE_WORDS;

/// Shadowing over unsorted leaves with a bitmap and nodes of `NODE` bytes.
#[derive(Debug)]
pub struct UnsortedBitmapShadow<const NODE: usize>;

impl<const NODE: usize> Design for UnsortedBitmapShadow<NODE> {
    const SPEC: Spec = {
        // The lines of the copy, the log, the two pointers, and the end of the log. At 1 KiB a
        // bitmap in one word marks less than fits.
        let copy = Bitmap::<NODE>::ENTRIES.word(Bitmap::<NODE>::CAPACITY).div_ceil(LINE_WORDS);
        let change = Cost::new(copy as u32 + 5, 4);
        Spec {
            name: "unsorted-bitmap-shadow",
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

impl<const NODE: usize> AllPmSpec for UnsortedBitmapShadow<NODE> {
    type Leaf = Bitmap<NODE>;
    type Inner = Sorted<NODE>;
    type LeafUpdate = CopyOnWrite;
    type Protocol = Undo;
    const INSERTS_WITH_SPLITS: bool = true;
}
