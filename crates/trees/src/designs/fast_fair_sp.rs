//! FAST & FAIR with selective persistence: its leaves in persistent memory, inner nodes in DRAM.
//!
//! The tree is the hybrid engine with FAST & FAIR's node as the leaf, and with inner nodes of the
//! same kind.

use crate::hybrid::{HybridSpec, Restructuring, UniqueWordsHybrid};
use crate::index::Design;
use crate::inner::FastNodes;
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::{FencedAround, ShiftForm, SortedShift, Wide};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::Medium;

/// FAST & FAIR leaves of `NODE` bytes, with entries of 32 B, under inner nodes of as many bytes,
/// which are `WORDS` words, in DRAM.
#[derive(Debug)]
pub struct FastFairSp<const NODE: usize, const WORDS: usize>;

impl<const NODE: usize, const WORDS: usize> HybridSpec for FastFairSp<NODE, WORDS> {
    const SPEC: Spec = {
        // A shift over a whole leaf flushes and fences each of its lines.
        assert!(NODE == 8 * WORDS, "inner nodes have the size of leaves");
        let lines = (NODE / 64) as u32;
        let whole = Cost::new(lines, FencedAround::FENCES * lines);
        Spec {
            name: "fast-fair-sp",
            source: "Ni et al., Closing the Performance Gap between DRAM and PM for In-Memory Index Structures, 2020",
            persistent: true,
            node_bytes: NODE,
            budget: Budget {
                insert: whole,
                update: Cost::new(1, FencedAround::FENCES),
                remove: whole,
            },
            relies_on_line_order: true,
            features: &[SELECTIVE, "log-free", "optimistic-latches", "multi-get"],
        }
    };
    type Leaf = SortedShift<NODE, Wide<FencedAround>>;
    type Inner<M: Medium> = FastNodes<M, WORDS, { Entry::WIDE_WORDS }>;
    const RESTRUCTURING: Restructuring = Restructuring::Unlinking;
    const PREFETCHES: bool = false;
}

impl<const NODE: usize, const WORDS: usize> Design for FastFairSp<NODE, WORDS> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = UniqueWordsHybrid<Self, M, K>;
}

#[cfg(test)]
mod tests {
    use super::FastFairSp;
    use crate::designs::FastFairSpR;
    use crate::index::{Design, PmIndex};
    use bristlecone_pmem::medium::Count;
    use bristlecone_pmem::{Mapped, Pool};
    use std::sync::Arc;

    /// Returns the lines and fences of an insert that splits a full leaf of 256 B with `capacity`
    /// entries, and goes to the front of the lower half.
    fn split_cost<D: Design>(capacity: u64) -> (u64, u64) {
        let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
        let tree = D::Index::<_, u64>::create(Arc::new(pool), "tree").unwrap();
        for key in 1..=capacity {
            tree.insert(10 * key, key).unwrap();
        }
        tree.pool().medium().take();
        tree.insert(5, 0).unwrap();
        assert_eq!(tree.check().unwrap().leaves, 2);
        let counts = tree.pool().medium().take();
        (counts.lines, counts.fences)
    }

    #[test]
    fn a_split_costs_exactly_the_budget() {
        // Three entries of 32 B, or six of 16 B, shift over three lines.
        assert_eq!(split_cost::<FastFairSp<256, 32>>(7), (4 + 2 + 3, 6 + 2 * 3));
        assert_eq!(split_cost::<FastFairSpR<256>>(13), (4 + 2 + 3, 3 + 3));
    }

    /// Returns the number of entries that a leaf with `capacity` entries between two others has
    /// left when removes free it, and the lines and fences of that remove beyond those of one which
    /// empties the first leaf.
    fn entries_at_unlink<D: Design>(capacity: u64) -> (u64, (u64, u64)) {
        let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
        let tree = D::Index::<_, u64>::create(Arc::new(pool), "tree").unwrap();
        let remove = |key| {
            tree.pool().medium().take();
            tree.remove(key).unwrap();
            let counts = tree.pool().medium().take();
            (counts.lines, counts.fences)
        };
        tree.insert(0, 0).unwrap();
        let alone = remove(0);
        for key in 1..=3 * capacity {
            tree.insert(key, key).unwrap();
        }
        for key in 2 * capacity + 5..=3 * capacity {
            tree.remove(key).unwrap();
        }
        let leaves = tree.check().unwrap().leaves;
        for key in capacity + 1..=2 * capacity {
            let cost = remove(key);
            if tree.check().unwrap().leaves < leaves {
                return (2 * capacity - key, (cost.0 - alone.0, cost.1 - alone.1));
            }
        }
        unreachable!("an empty leaf is unlinked")
    }

    #[test]
    fn only_an_empty_leaf_is_unlinked_where_the_authors_code_merges_none() {
        // The authors' code fences before and after a flush.
        assert_eq!(entries_at_unlink::<FastFairSp<256, 32>>(7), (0, (1, 2)));
        assert_eq!(entries_at_unlink::<FastFairSpR<256>>(13).0, 13 / 4);
    }
}
