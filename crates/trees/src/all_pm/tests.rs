//! Tests of the engine's structure changes. The conformance suite tests that its designs are
//! correct indexes.

mod damage;

use super::descend::DescentTarget;
use super::{Protocol, Redo};
use crate::designs::{
    BTree, BTreeLinear, BTreeLog, BTreeShadow, BTreeWal, CircTree, IsleTreeAll, PersistentUnsorted,
    UnsortedBitmapLog, UnsortedBitmapShadow, UnsortedLeaf, UnsortedLeafLog, UnsortedLeafShadow,
    WbTree, WbTreeBitmapLeaf, WbTreeR, WbTreeSlotOnly, WbTreeWords,
};
use crate::index::{Design, Order, PmIndex};
use bristlecone_pmem::log::PAIRS_MAX;
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::{Mapped, Pool};
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

type Index<D> = <D as Design>::Index<Count<Mapped>, u64>;

fn create<D: Design>() -> Index<D> {
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    Index::<D>::create(Arc::new(pool), "tree").unwrap()
}

/// Returns the flushes and fences of one operation.
fn counted<D: Design>(tree: &Index<D>, operation: impl FnOnce(&Index<D>)) -> Counts {
    tree.pool().medium().take();
    operation(tree);
    tree.pool().medium().take()
}

/// Inserts keys in a mixed order until the tree has at least three levels, then removes most of
/// them in stripes, then the rest.
fn grow_and_shrink<D: Design>() {
    let tree = create::<D>();
    let capacity = D::SPEC.node_bytes as u64 / 16;
    let count = capacity * capacity * 2;
    let mixed = |i: u64| (i * 7919) % count;
    for key in (0..count).map(mixed) {
        assert_eq!(tree.insert(key, !key).unwrap(), None);
    }
    let grown = tree.check().unwrap();
    assert_eq!(grown.keys, count);
    assert!(grown.height >= 3, "{grown:?}");
    for key in (0..count).map(mixed).filter(|key| key % 8 != 3) {
        assert_eq!(tree.remove(key).unwrap(), Some(!key));
    }
    let sparse = tree.check().unwrap();
    assert!(sparse.leaves < grown.leaves / 2, "{grown:?} then {sparse:?}");
    for key in (0..count).rev() {
        assert_eq!(tree.remove(key).unwrap(), (key % 8 == 3).then_some(!key));
    }
    let left = tree.check().unwrap();
    assert_eq!((left.height, left.leaves, left.inner_nodes), (1, 1, 0));
}

/// A thread that reads a leaf keeps a writer waiting that has the latch. A lookup leaves no count.
#[test]
fn a_writer_waits_for_the_readers_of_a_node() {
    let tree = create::<WbTreeWords<256>>();
    assert_eq!(tree.insert(1, 1).unwrap(), None);
    assert_eq!(tree.get(1).unwrap(), Some(1));
    let leaf = tree.leaf(DescentTarget::At(1)).unwrap().node;
    let readers = leaf.readers().expect("the design counts readers");
    let reader = readers.enter();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(tree.insert(2, 2).unwrap(), None);
            is_done.store(true, Ordering::Release);
        });
        while leaf.holds() {
            std::thread::yield_now();
        }
        for _ in 0..1000 {
            std::thread::yield_now();
            assert!(!is_done.load(Ordering::Acquire), "a writer came beside a reader");
        }
        drop(reader);
    });
    assert!(is_done.load(Ordering::Acquire));
    assert_eq!(tree.get(2).unwrap(), Some(2));
    readers.wait_until_none();
}

#[test]
fn a_redo_log_holds_the_words_of_the_most_levels() {
    for (commit_words, levels) in [(1, 8), (2, 5)] {
        assert_eq!(Redo::split_levels_max(commit_words), levels);
        let words = |levels| (commit_words + 1) + (levels - 1) * (commit_words + 2) + commit_words;
        assert!(words(levels) <= PAIRS_MAX && words(levels + 1) > PAIRS_MAX);
    }
}

#[test]
fn an_emptied_tree_is_one_leaf() {
    grow_and_shrink::<BTree<256>>();
    grow_and_shrink::<BTreeLinear<256>>();
    grow_and_shrink::<UnsortedLeaf<256>>();
    grow_and_shrink::<PersistentUnsorted<128>>();
    grow_and_shrink::<PersistentUnsorted<256>>();
    grow_and_shrink::<PersistentUnsorted<2048>>();
    grow_and_shrink::<BTreeLog<256>>();
    grow_and_shrink::<UnsortedLeafLog<256>>();
    grow_and_shrink::<UnsortedBitmapLog<256>>();
    grow_and_shrink::<BTreeShadow<256>>();
    grow_and_shrink::<WbTree<256>>();
    grow_and_shrink::<IsleTreeAll<256>>();
    grow_and_shrink::<WbTree<2048>>();
    grow_and_shrink::<WbTreeWords<256>>();
}

/// Asserts that each split, merge or moved child costs exactly one transaction. `joined` says that
/// an insert and all of its splits cost one together.
fn structural_budgets<D: Design>(joined: bool) {
    let tree = create::<D>();
    let transaction = if D::SPEC.persistent { 4 } else { 0 };
    let budget = D::SPEC.budget;
    let mut before = tree.check().unwrap();
    let mut splits_seen = 0;
    for i in 0..3000u64 {
        let key = (i * 7919) % 3001;
        let fences =
            counted::<D>(&tree, |tree| assert_eq!(tree.insert(key, 1).unwrap(), None)).fences;
        let after = tree.check().unwrap();
        let splits = after.leaves + after.inner_nodes + u64::from(before.height)
            - (before.leaves + before.inner_nodes + u64::from(after.height));
        let expected = match (joined, splits) {
            (true, 1..) => transaction,
            _ => u64::from(budget.insert.fences) + transaction * splits,
        };
        assert_eq!(fences, expected, "{key}");
        splits_seen += splits;
        before = after;
    }
    assert!(splits_seen > 50 && before.height > 2, "{before:?}");
    let mut merges_seen = 0;
    for key in 0..3001u64 {
        let fences = counted::<D>(&tree, |tree| assert!(tree.remove(key).is_ok())).fences;
        let after = tree.check().unwrap();
        let collapses = u64::from(before.height - after.height);
        if let Some(rest) = fences.checked_sub(u64::from(budget.remove.fences))
            && D::SPEC.persistent
        {
            assert_eq!((rest - collapses) % transaction, 0, "{key}: {fences} fences");
            merges_seen += (rest - collapses) / transaction;
        }
        before = after;
    }
    assert!(merges_seen >= transaction * 10, "{merges_seen}");
}

/// Covers the designs whose transactions all cost the same.
#[test]
fn a_structural_change_is_a_transaction() {
    structural_budgets::<BTree<256>>(false);
    structural_budgets::<UnsortedLeaf<256>>(false);
    structural_budgets::<BTreeWal<256>>(false);
    structural_budgets::<PersistentUnsorted<128>>(false);
    structural_budgets::<PersistentUnsorted<256>>(false);
    structural_budgets::<WbTree<256>>(true);
    structural_budgets::<WbTreeBitmapLeaf<256>>(true);
    structural_budgets::<WbTreeSlotOnly<128>>(true);
    structural_budgets::<WbTreeSlotOnly<64>>(true);
    structural_budgets::<WbTreeR<256>>(false);
}

/// Fills a leaf with `capacity` ascending keys and empties it from its end. An insert costs 3 lines
/// and a remove 2, and in addition what `slots` says of the slot of that rank; both 3 fences.
fn slots_cost<D: Design>(capacity: u64, slots: impl Fn(u64) -> u64) {
    let tree = create::<D>();
    let cost = |counts: Counts| (counts.lines, counts.fences);
    for key in 0..capacity {
        let insert = counted::<D>(&tree, |tree| assert_eq!(tree.insert(key, key).unwrap(), None));
        assert_eq!(cost(insert), (3 + slots(key + 1), 3), "{key}");
    }
    for key in (0..capacity).rev() {
        let remove = counted::<D>(&tree, |tree| assert_eq!(tree.remove(key).unwrap(), Some(key)));
        // Only the number of slots changes.
        let slots = if D::SPEC.name == "wb-tree" { 1 } else { slots(key + 1) };
        assert_eq!(cost(remove), (2 + slots, 3), "{key}");
    }
    assert_eq!(tree.check().unwrap().leaves, 1);
}

/// The bitmap is flushed twice, the entry once, and the slot array once for each of the words up to
/// the last slot: the first word has the count and seven slots.
#[test]
fn the_printed_loop_flushes_each_word_of_the_slots() {
    slots_cost::<WbTreeWords<1024>>(58, |slot| 1 + slot / 8);
    slots_cost::<WbTreeWords<2048>>(119, |slot| 1 + slot / 8);
}

/// The slot array begins at word 3 of a node with two words of bitmap. Both of these are in the
/// line that is flushed twice.
#[test]
fn a_second_word_of_the_bitmap_costs_nothing() {
    slots_cost::<WbTree<2048>>(119, |slot| 1 + (3 + slot / 8) / 8);
}

/// Returns the lines and fences of the first two inserts that split a leaf. The first one puts a
/// new root above it. If `goes_below`, the new pair goes to the lower half.
fn split_costs<D: Design>(goes_below: bool) -> Vec<(u64, u64)> {
    let tree = create::<D>();
    let key = |i: u64| if goes_below { u64::MAX - i } else { i };
    let mut costs = Vec::new();
    for i in 0.. {
        let counts = counted::<D>(&tree, |tree| {
            assert_eq!(tree.insert(key(i), i).unwrap(), None);
        });
        if tree.check().unwrap().leaves > 1 + costs.len() as u64 {
            costs.push((counts.lines, counts.fences));
        }
        if costs.len() == 2 {
            break;
        }
    }
    costs
}

/// Asserts the cost of an insert that splits a leaf with `capacity` entries behind a header of
/// `header` bytes, for a pair that goes to the upper half and one that goes to the lower half. A
/// new root takes `root_lines` lines.
fn joined_split_budget<D: Design>(header: u64, capacity: u64, root_lines: u64) {
    // With two words of bitmap the log has a line more. In the leaf all slots move for a pair that
    // becomes the first one: their array takes a second line.
    let has_high = u64::from(capacity > 58);
    for goes_below in [false, true] {
        let costs = split_costs::<D>(goes_below);
        let upper = capacity + 1 - capacity.div_ceil(2);
        let late = u64::from(goes_below) * (1 + has_high);
        let half = (header + 16 * upper).div_ceil(64) + late + has_high;
        // Log, header, end of the log; and the separator with its header, or the root with its
        // word.
        let name = D::SPEC.name;
        assert_eq!(costs, [(half + 4 + root_lines, 4), (half + 5, 4)], "{name} {goes_below}");
    }
}

#[test]
fn an_insert_and_its_split_are_one_transaction() {
    joined_split_budget::<WbTree<256>>(32, 14, 1);
    joined_split_budget::<WbTree<512>>(48, 29, 1);
    joined_split_budget::<WbTree<2048>>(144, 119, 3);
    joined_split_budget::<WbTreeBitmapLeaf<512>>(16, 31, 1);
    joined_split_budget::<WbTreeSlotOnly<128>>(16, 7, 1);
    joined_split_budget::<WbTreeSlotOnly<64>>(16, 3, 1);
}

/// Asserts the cost of an insert that splits a leaf of 256 B under an undo-redo log. The pair goes
/// to the upper half, then to the lower half, where `lower` words of the leaf's entries change in
/// `leaf_lines` lines of the leaf.
fn logged_split_budget<D: Design>(lower: u64, leaf_lines: u64) {
    for (goes_below, moved, leaf_lines) in [(false, 0, 1), (true, lower, leaf_lines)] {
        // The leaf's link and commit word change, and the root word; or the new entry and the
        // count of the parent, and the entry that it moves.
        let first = moved + 2 + 1;
        let second = moved + 2 + if goes_below { 5 } else { 3 };
        // New nodes: an upper half of 8 entries in three lines, and a root of one entry, each
        // behind 2 words. A line of the log holds four of their words, with a fence for all. Each
        // word that changes takes a line. Then come the lines of the words, in the leaf and in its
        // parent or the root block, and the end of the log.
        let (upper, root) = (2 + 2 * 8u64, 2 + 2);
        let costs = [
            ((upper + root).div_ceil(4) + 3 + 1 + first + leaf_lines + 1 + 1, 1 + first + 2),
            (upper.div_ceil(4) + 3 + second + leaf_lines + 1 + 1, 1 + second + 2),
        ];
        assert_eq!(split_costs::<D>(goes_below), costs, "{} {goes_below}", D::SPEC.name);
    }
}

#[test]
fn a_logged_insert_and_its_split_are_one_transaction() {
    logged_split_budget::<BTreeLog<256>>(16, 3);
    logged_split_budget::<UnsortedLeafLog<256>>(16, 3);
    logged_split_budget::<UnsortedBitmapLog<256>>(2, 1);
}

/// Covers shadowing. The halves of a leaf of 256 B, with the new pair, have three lines each, the
/// new root or the copy of the parent has one. Each of the two levels has a line with the records
/// of their blocks. One word leads to them if the leaf is the first; else two, through a log.
fn copied_split_budget<D: Design>() {
    let name = D::SPEC.name;
    assert_eq!(split_costs::<D>(false), [(7 + 2 + 1, 2), (7 + 2 + 4, 4)], "{name}");
    assert_eq!(split_costs::<D>(true), [(7 + 2 + 1, 2), (7 + 2 + 1, 2)], "{name}");
    let tree = create::<D>();
    for i in 0..3000u64 {
        let counts = counted::<D>(&tree, |tree| {
            assert_eq!(tree.insert((i * 7919) % 3001, 1).unwrap(), None);
        });
        assert!([2, 4].contains(&counts.fences), "{name} {i}: {counts:?}");
    }
    assert!(tree.check().unwrap().height > 2);
}

#[test]
fn a_copied_insert_and_its_splits_are_one_swap() {
    copied_split_budget::<BTreeShadow<256>>();
    copied_split_budget::<UnsortedLeafShadow<256>>();
    copied_split_budget::<UnsortedBitmapShadow<256>>();
}

/// A split through a write-ahead log is 4 fences, the insert after it comes on top.
#[test]
fn a_split_through_a_write_ahead_log_has_its_budget() {
    // An upper half of three lines and a root of one, or the parent's line. The log's line and the
    // lines of the words, which are the leaf's header and the root block's or the parent's line,
    // and the log's state twice. One more line of either, where the parent's entry moves.
    let split = |moved: u64| (3 + 1 + 1 + moved + 2 + moved + 2, 4);
    let and_insert =
        |split: (u64, u64), insert: (u64, u64)| (split.0 + insert.0, split.1 + insert.1);
    for (goes_below, moved) in [(false, [0, 0]), (true, [0, 1])] {
        let mut costs = moved.map(|moved| and_insert(split(moved), (2, 2)));
        costs[0].0 += 1; // The log of the new root.
        assert_eq!(split_costs::<PersistentUnsorted<256>>(goes_below), costs, "{goes_below}");
        // Two entries of 32 B in the upper half, or 64, each with a header.
        let costs_of = |upper: u64| costs.map(|(lines, fences)| (lines - 3 + upper, fences));
        assert_eq!(split_costs::<PersistentUnsorted<128>>(goes_below), costs_of(2));
        // The bitmap takes two words: one word more in the log.
        let mut costs = costs_of(33);
        costs[1].0 += u64::from(goes_below);
        assert_eq!(split_costs::<PersistentUnsorted<4096>>(goes_below), costs, "{goes_below}");
        // The pair goes behind the others of its leaf, or all three move.
        let insert = if goes_below { (3 + 3 + 2, 4) } else { (2 + 2 + 2, 4) };
        let costs = moved.map(|moved| and_insert(split(moved), insert));
        assert_eq!(split_costs::<BTreeWal<256>>(goes_below), costs, "{goes_below}");
    }
}

#[test]
fn a_volatile_tree_flushes_nothing() {
    for counts in [volatile_costs::<BTreeLinear<256>>(), volatile_costs::<UnsortedLeaf<256>>()] {
        assert_eq!((counts.lines, counts.fences), (0, 0));
    }
}

/// Returns the flushes and fences of inserts that split and removes that merge.
fn volatile_costs<D: Design>() -> Counts {
    counted::<D>(&create::<D>(), |tree| {
        for key in 0..2000u64 {
            assert_eq!(tree.insert(key, key).unwrap(), None);
        }
        for key in 0..2000u64 {
            assert_eq!(tree.remove(key).unwrap(), Some(key));
        }
    })
}

/// The lines and fences of inserts and removes of `isle-tree-all` with leaves of `NODE` bytes, as
/// its page states them: those of the pair, of each leaf that is replaced, and of the parent.
fn replacement_budget<const NODE: usize>() {
    let tree = create::<IsleTreeAll<NODE>>();
    let lines = NODE as u64 / 64;
    let mut before = tree.check().unwrap();
    let (mut splits, mut splits_of_inner) = (0, 0);
    for key in 0..4000u64 {
        let found = counted::<IsleTreeAll<NODE>>(&tree, |tree| {
            assert_eq!(tree.insert(key, key).unwrap(), None);
        });
        let after = tree.check().unwrap();
        let (new_leaves, new_inner) =
            (after.leaves - before.leaves, after.inner_nodes - before.inner_nodes);
        let grown = u64::from(after.height - before.height);
        let mut expected = (2, 2);
        if new_leaves == 1 && before.height == 1 {
            // Two leaves and a root, the root word.
            expected = (2 + 3 * lines + 1, 2 + 3);
        } else if new_leaves == 1 {
            // Two leaves, the link, the pointer in the parent; the first leaf has no link. Keys
            // ascend, so the entry is the parent's last: one line, and one if the next line ends.
            let link = u64::from(before.leaves > 1);
            expected = (2 + 2 * lines + link + 2, 2 + 2 + link + 2);
            splits += 1;
        }
        // A new inner node, its entry in the parent, the cut; of a root a second one and its word.
        let split = new_inner - grown;
        if before.height > 1 {
            expected.0 += split * (lines + 2) + grown * lines;
            expected.1 += split * 3;
            splits_of_inner += split;
        }
        let spare = (found.lines - expected.0, found.fences - expected.1);
        assert!(
            spare.0 == spare.1 && spare.0 <= new_leaves + split,
            "{key}: {found:?} {expected:?}"
        );
        before = after;
    }
    assert!(splits > 30 && splits_of_inner > 0, "{splits} {splits_of_inner}");
}

#[test]
fn a_replacement_costs_two_leaves_a_link_and_the_parent() {
    replacement_budget::<256>();
    replacement_budget::<512>();
}

/// Merges the last two leaves of a tree whose root is above the leaves: a new leaf, the link, the
/// pointer in the parent, and the separator at its end. A remove costs 2 lines and 2 fences.
#[test]
fn a_merge_by_replacement_costs_a_leaf_a_link_and_the_parent() {
    let tree = create::<IsleTreeAll<256>>();
    (0..40u64).for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
    let before = tree.check().unwrap();
    assert_eq!(before.height, 2);
    let mut merge = None;
    for key in (0..40u64).rev() {
        let found = counted::<IsleTreeAll<256>>(&tree, |tree| {
            assert_eq!(tree.remove(key).unwrap(), Some(key));
        });
        if tree.check().unwrap().leaves < before.leaves {
            merge = Some((found.lines, found.fences));
            break;
        }
        assert_eq!((found.lines, found.fences), (2, 2), "{key}");
    }
    assert_eq!(merge, Some((2 + 4 + 2 + 1, 2 + 4 + 1)));
}

/// A split of a leaf of `circ-tree` flushes all lines of both leaves, as published, and the other
/// lines of its transaction.
fn both_leaves_budget<const NODE: usize>() {
    let capacity = (NODE as u64 - 32) / 16;
    let leaves = NODE as u64 / 64 + (32 + 16 * capacity.div_ceil(2)).div_ceil(64);
    // A root and its word with one line of the log, or the parent's line with two; the state twice.
    let split = (leaves + 5, 4);
    // Keys ascend or descend, so that the insert after it costs (2, 2).
    let and_insert = |moved: u64| (split.0 + moved + 2, split.1 + 2);
    assert_eq!(split_costs::<CircTree<NODE>>(false), [and_insert(0), and_insert(0)], "{NODE}");
    // The parent's entry moves, which takes one more line of the log.
    assert_eq!(split_costs::<CircTree<NODE>>(true), [and_insert(0), and_insert(1)], "{NODE}");
}

#[test]
fn a_split_of_circ_tree_flushes_both_leaves() {
    both_leaves_budget::<256>();
    both_leaves_budget::<512>();
    both_leaves_budget::<1024>();
    both_leaves_budget::<2048>();
}

/// Clears the valid bit of the root's slot array, as a replayed log leaves it, and damages the
/// array. The first operation that descends repairs it: slots, fence, bitmap, fence. `cost` is that
/// of the operation itself.
fn repaired_by(cost: (u64, u64), operation: impl Fn(&Index<WbTreeBitmapLeaf<512>>)) {
    let tree = create::<WbTreeBitmapLeaf<512>>();
    (0..300u64).for_each(|key| assert_eq!(tree.insert(2 * key, key).unwrap(), None));
    let (root, level) = super::read_root(tree.anchor().unwrap()).unwrap();
    assert_eq!(level, 1);
    let node = tree.node(root).unwrap();
    node.store(0, node.load(0) & !1);
    node.store(2, 0);
    let counts = counted::<WbTreeBitmapLeaf<512>>(&tree, operation);
    assert_eq!((counts.lines, counts.fences), (2 + cost.0, 2 + cost.1));
    let again = counted::<WbTreeBitmapLeaf<512>>(&tree, |tree| {
        (0..300u64).for_each(|key| assert!(tree.get(2 * key).unwrap().is_some()));
    });
    assert_eq!((again.lines, again.fences), (0, 0), "the node is repaired");
    assert!(tree.check().unwrap().keys >= 300);
}

#[test]
fn the_first_descent_repairs_the_slot_array_of_an_inner_node() {
    repaired_by((0, 0), |tree| assert_eq!(tree.get(250).unwrap(), Some(125)));
    repaired_by((0, 0), |tree| {
        let mut found = [None; 3];
        tree.multi_get(&[0, 250, 598], &mut found).unwrap();
        assert_eq!(found, [Some(0), Some(125), Some(299)]);
    });
    repaired_by((2, 2), |tree| assert_eq!(tree.insert(599, 7).unwrap(), None));
    repaired_by((1, 1), |tree| assert_eq!(tree.update(250, 7).unwrap(), Some(125)));
    repaired_by((0, 0), |tree| {
        let mut keys = 0;
        tree.scan((Bound::Included(0), Bound::Unbounded), Order::Ascending, &mut |_, _| {
            keys += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(keys, 300);
    });
}
