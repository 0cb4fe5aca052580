//! The lines and fences of every step, structure changes too, and the redo of interrupted moves.
//! The conformance suite tests answers, and the explorer crashes.

use super::log::{Change, NodeOp, NodeRecord};
use super::*;
use crate::Text;
use crate::key::Entry;
use bristlecone_pmem::Fenced;
use bristlecone_pmem::medium::{Count, Counts};

type Counted = Count<Mapped>;
type Tree<const NODE: usize> = BTreeNativeIndex<Counted, u64, NODE>;

fn pool(bytes: u64) -> Arc<Pool<Counted>> {
    Arc::new(Pool::create(Count::new(Mapped::anonymous(bytes).unwrap())).unwrap())
}

fn tree<const NODE: usize>() -> Tree<NODE> {
    Tree::<NODE>::create(pool(8 << 20), "t").unwrap()
}

fn cost(counts: Counts) -> (u64, u64) {
    (counts.lines, counts.fences)
}

impl<const NODE: usize> Tree<NODE> {
    const PLACES: u64 = SortedNode::<Counted, NODE>::CAPACITY as u64;

    /// Returns the cost of `step`.
    fn measured(&self, step: impl FnOnce()) -> (u64, u64) {
        self.pool.medium().take();
        step();
        cost(self.pool.medium().take())
    }

    fn inserted(&self, key: u64) -> (u64, u64) {
        self.measured(|| assert_eq!(self.insert(key, key).unwrap(), None))
    }

    fn removed(&self, key: u64) -> (u64, u64) {
        self.measured(|| assert_eq!(self.remove(key).unwrap(), Some(key)))
    }
}

/// Returns the number of lines that a fresh node with `entries` entries takes.
fn lines_of_fresh(entries: u64) -> u64 {
    (32 + 16 * entries).div_ceil(64)
}

fn costs_follow_the_place<const NODE: usize>() {
    let count = Tree::<NODE>::PLACES - 1;
    for place in 0..=count {
        let tree = tree::<NODE>();
        for key in 0..count {
            tree.insert(10 * key + 10, 0).unwrap();
        }
        let moved = count - place;
        assert_eq!(tree.inserted(10 * place + 5), (moved + 3, moved + 3), "insert at {place}");
        assert_eq!(tree.measured(|| drop(tree.insert(10, 7))), (0, 0), "a refused insert");
        assert_eq!(tree.measured(|| drop(tree.get(10))), (0, 0));
        assert_eq!(tree.removed(10 * place + 5), (moved + 2, moved + 2), "remove at {place}");
        assert_eq!(tree.measured(|| drop(tree.update(10, 7))), (1, 1));
        assert_eq!(tree.check().unwrap().keys, count);
    }
}

#[test]
fn an_operation_flushes_each_moved_entry() {
    costs_follow_the_place::<256>();
    costs_follow_the_place::<1024>();
}

fn splits_cost<const NODE: usize>() {
    let tree = tree::<NODE>();
    let places = Tree::<NODE>::PLACES;
    let (lower, upper) = (places / 2, places - places / 2);
    for key in 0..places {
        assert_eq!(tree.inserted(key), (3, 3));
    }
    // The right node, the record, the cut, and entry and state of the parent; then the insert.
    let leaf = (lines_of_fresh(upper) + 1 + 1 + 2, 1 + 1 + 1 + 2);
    let grow = (2, 2);
    assert_eq!(tree.inserted(places), (grow.0 + leaf.0 + 3, grow.1 + leaf.1 + 3));
    // Ascending keys leave lower halves, and add an entry at the end of the parent.
    let mut key = places + 1;
    for split in 1..=places {
        while tree.check().unwrap().leaves < split + 2 {
            let found = tree.inserted(key);
            key += 1;
            if tree.check().unwrap().leaves < split + 2 {
                assert_eq!(found, (3, 3));
            } else if split < places {
                assert_eq!(found, (leaf.0 + 3, leaf.1 + 3));
            } else {
                // The root splits too: its middle separator moves to the new root.
                let inner = (lines_of_fresh(upper - 1) + 4, 5);
                let sum = |part: fn((u64, u64)) -> u64| part(grow) + part(inner) + part(leaf) + 3;
                assert_eq!(found, (sum(|cost| cost.0), sum(|cost| cost.1)));
            }
        }
    }
    let stats = tree.check().unwrap();
    assert_eq!((stats.height, stats.inner_nodes, stats.keys), (3, 3, key));
    assert!(lower * stats.leaves <= key);
}

#[test]
fn splits_cost_what_their_persist_orders_say() {
    splits_cost::<256>();
    splits_cost::<512>();
    splits_cost::<1024>();
    splits_cost::<2048>();
}

fn a_merge_costs<const NODE: usize>() {
    let tree = tree::<NODE>();
    let places = Tree::<NODE>::PLACES;
    for key in 0..=places {
        tree.insert(key, key).unwrap();
    }
    let (left, sparse) = (places / 2, places / 4);
    for key in (left + sparse + 1..=places).rev() {
        assert_eq!(tree.removed(key), (2, 2), "the last entry of the right leaf");
    }
    let line = |entry: u64| (4 + 2 * entry) / 8;
    let copied = line(left + sparse - 1) - line(left) + 1;
    // The removal, the copies, the record, the left leaf, the parent, and the root that goes.
    let expected = (2 + copied + 1 + 1 + 1 + 1, 2 + 1 + 1 + 1 + 1 + 1);
    assert_eq!(tree.removed(left + sparse), expected);
    let stats = tree.check().unwrap();
    assert_eq!((stats.height, stats.leaves, stats.keys), (1, 1, left + sparse));
}

#[test]
fn a_merge_costs_what_its_persist_order_says() {
    a_merge_costs::<256>();
    a_merge_costs::<512>();
    a_merge_costs::<1024>();
    a_merge_costs::<2048>();
}

/// Removes leave nothing but a leaf, in any order, and give all other blocks back.
#[test]
fn an_emptied_tree_is_a_leaf() {
    let orders: [fn(u64) -> u64; 3] = [|i| i, |i| 4999 - i, |i| i * 2_777 % 5000];
    for order in orders {
        type Keys = UniqueWords<Text>;
        let tree = BTreeNativeIndex::<Counted, Keys, 256>::create(pool(8 << 20), "t").unwrap();
        let key = |i: u64| i.to_be_bytes();
        for i in 0..5000 {
            tree.insert(&key(i * 3_331 % 5000), i).unwrap();
        }
        for i in 0..5000 {
            assert!(tree.remove(&key(order(i))).unwrap().is_some());
        }
        tree.pool.reclaim();
        let stats = tree.check().unwrap();
        assert_eq!((stats.keys, stats.leaves, stats.height), (0, 1, 1));
        assert_eq!(stats.blocks, 3);
        assert_eq!(stats.blocks + 1, tree.pool.usage().blocks);
    }
}

/// Returns a leaf with the entries (10, 1), (20, 2), .., and the tree of it alone.
fn leaf_of(count: u64) -> Tree<256> {
    let tree = tree::<256>();
    for entry in 1..=count {
        tree.insert(10 * entry, entry).unwrap();
    }
    tree
}

/// Stores to a leaf what is there after `words` words of the moves of an insert, or of a removal.
fn interrupt(leaf: &SortedNode<'_, Counted, 256>, moves: &[(usize, Entry)], words: usize) {
    for (at, (index, entry)) in moves.iter().enumerate() {
        for (offset, value) in [entry.key, entry.value].into_iter().enumerate() {
            if 2 * at + offset < words {
                leaf.view.store(node::ENTRIES.word(*index) + offset, value);
            }
        }
    }
}

/// Whatever word of a change was the last one to be stored, and however often recovery is itself
/// interrupted, it resumes at the doubled key and completes the change.
#[test]
fn a_redo_resumes_at_the_doubled_key() {
    for count in 1..Tree::<256>::PLACES as usize {
        for place in 0..=count {
            let entry = Entry::plain(10 * place as u64 + 5, 99);
            let pairs: Vec<Entry> = leaf_of(count as u64).root_node().unwrap().entries(count);
            let mut inserted = pairs.clone();
            inserted.insert(place, entry);
            let moves: Vec<_> = (place..=count).rev().map(|at| (at, inserted[at])).collect();
            completes(&moves, count, Change::In { place, entry }, &inserted);
            if place < count {
                let mut removed = pairs.clone();
                removed.remove(place);
                let moves: Vec<_> = (place..count - 1).map(|at| (at, removed[at])).collect();
                completes(&moves, count, Change::Out { place }, &removed);
            }
        }
    }
}

fn completes(moves: &[(usize, Entry)], count: usize, change: Change, expected: &[Entry]) {
    let tree = leaf_of(count as u64);
    let leaf = tree.root_node().unwrap();
    let before = leaf.entries(count);
    let state = leaf.state().unwrap();
    for words in 0..=2 * moves.len() {
        for (index, entry) in before.iter().enumerate() {
            leaf.view.store_entry(node::ENTRIES, index, *entry);
        }
        interrupt(&leaf, moves, words);
        let _ = tree.complete(&leaf, change, state.seq + 1).unwrap();
        let after = leaf.state().unwrap();
        assert_eq!((after.count, after.seq), (expected.len(), state.seq + 1));
        assert_eq!(leaf.entries(after.count), expected, "{change:?} after {words} words");
        let _ = leaf.commit_link(leaf.link(), state, Fenced::nothing());
    }
}

/// The records of all operations are there again after they are written.
#[test]
fn a_record_is_read_as_it_was_written() {
    let tree = tree::<1024>();
    let leaf = tree.root_node().unwrap();
    let (right, parent) = (PmPtr::new(1 << 20), PmPtr::new(64));
    let ops = [
        NodeOp::Insert { place: 61, key: u64::MAX, value: 0 },
        NodeOp::Remove { place: 0 },
        NodeOp::Split { place: 3, low: 0, right, parent },
        NodeOp::Merge { place: 126, right, parent },
    ];
    for (seq, op) in (7..).zip(ops) {
        let written = tree.logged(op, &leaf, seq, Ok);
        written.unwrap();
    }
    let found = tree.log.records(&tree.pool, NodeRecord::decode).unwrap();
    let expected: Vec<_> =
        (7..).zip(ops).map(|(seq, op)| NodeRecord { op, node: leaf.at, seq }).collect();
    assert_eq!(found, expected);
    assert_eq!(tree.log.above_all(), 11);
}

#[test]
fn a_scan_below_the_least_key_finds_nothing() {
    let tree = tree::<256>();
    tree.insert(0, 1).unwrap();
    let below = (Bound::Unbounded, Bound::Excluded(0));
    tree.scan(below, Order::Descending, &mut |_, _| panic!("0 is the least key")).unwrap();
}

/// Returns the mean lines and fences of an insert of `count` uniform keys.
fn means<const NODE: usize>(count: u64) -> (f64, f64) {
    let tree = Tree::<NODE>::create(pool(96 << 20), "t").unwrap();
    let (lines, fences) = tree.measured(|| {
        for i in 1..=count {
            let key = (i ^ i >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            assert_eq!(tree.insert(key ^ key >> 29, i).unwrap(), None);
        }
    });
    (lines as f64 / count as f64, fences as f64 / count as f64)
}

#[test]
fn uniform_inserts_cost_what_the_page_says() {
    let found = [means::<256>(40_000), means::<512>(40_000), means::<1024>(40_000)];
    eprintln!("{found:?}");
    let (lines, fences) = found[2];
    assert!((24.4..=27.0).contains(&lines) && fences <= lines, "{found:?}");
}
