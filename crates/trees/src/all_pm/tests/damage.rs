//! Pointers to blocks that hold no node of the tree.

use crate::all_pm::{AllPm, AllPmSpec, read_root, root_cell, root_word};
use crate::designs::{BTreeLog, BTreeShadow, IsleTreeAll, WbTree};
use crate::index::{PmIndex, TreeError};
use crate::key::{Key, Text};
use crate::node::{Layout, Ordered, View};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::pool::HEADER_BYTES;
use bristlecone_pmem::sync::OnMedium;
use bristlecone_pmem::{Mapped, Medium, PmPtr, Pool, PoolError};
use std::sync::Arc;

type Tree<K, S> = AllPm<Mapped, K, S>;

fn create<K: Key, S: AllPmSpec>() -> Tree<K, S> {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    Tree::build(Arc::new(pool), "tree").unwrap()
}

/// Returns the root and its level.
fn root<K: Key, S: AllPmSpec>(tree: &Tree<K, S>) -> (View<'_, Mapped>, u64) {
    let (root, level) = read_root(tree.anchor().unwrap()).unwrap();
    (tree.node(root).unwrap(), level)
}

/// Returns the lines of the logs that look like nodes whose latch is held.
fn held_lines<S: AllPmSpec>(tree: &Tree<u64, S>) -> Vec<u64> {
    let is_held = |&at: &u64| {
        let words = tree.pool.words(PmPtr::new(at), S::Leaf::LATCH + 1).unwrap();
        let (word, bits) = (&words[S::Leaf::LATCH], S::Leaf::LATCH_BITS);
        OnMedium::latch_in(tree.medium(), word, bits, tree.pool.nonce()).is_held() == Some(true)
    };
    let anchor = tree.anchor.offset();
    let logs = (0..HEADER_BYTES).chain(anchor..anchor + Tree::<u64, S>::anchor_bytes());
    logs.filter(|at| at.is_multiple_of(LINE_BYTES as u64)).filter(is_held).collect()
}

/// Leads the last pointer of the root to each of these lines.
fn meets_logs<S: AllPmSpec>() {
    let tree = create::<u64, S>();
    let (mut key, mut held) = (0, Vec::new());
    while root(&tree).1 == 0 || held.is_empty() {
        assert!(tree.insert(key, key).unwrap().is_none() && key < 100, "{}", S::SPEC.name);
        held = held_lines(&tree);
        key += 1;
    }
    let (view, _) = root(&tree);
    let last = S::Inner::nth(view, S::Inner::count(view) - 1).unwrap();
    for at in held {
        view.store(S::Inner::ENTRIES.word(last.index) + 1, at);
        let (found, put) = (tree.get(key), tree.insert(key, key));
        let is_damage = |error| matches!(error, TreeError::Pool(PoolError::Corrupt(_)));
        assert!(found.is_err_and(is_damage) && put.is_err_and(is_damage), "{}", S::SPEC.name);
    }
}

#[test]
fn no_thread_waits_for_a_latch_that_a_log_has() {
    meets_logs::<BTreeShadow<64>>();
    meets_logs::<BTreeLog<64>>();
}

/// Makes a copy of the root, in the free block that is reserved next, the root.
fn move_root_to_free_block<K: Key, S: AllPmSpec>(tree: &Tree<K, S>) {
    let (view, level) = root(tree);
    let free = tree.pool.reserve(Tree::<K, S>::NODE_BYTES).unwrap();
    let copy = tree.node(free).unwrap();
    for index in 0..copy.words().len() {
        copy.store(index, view.load(index));
    }
    tree.pool.release(free, Tree::<K, S>::NODE_BYTES);
    let cell = root_cell(tree.anchor().unwrap());
    tree.medium().store(cell, root_word(free, level));
}

fn assert_free(put: &Result<Option<u64>, TreeError>, name: &str) {
    let Err(TreeError::Pool(PoolError::Corrupt(damage))) = put else { panic!("{name}: {put:?}") };
    assert_eq!(damage.what, "block of the tree is free in the pool", "{name}");
}

/// Inserts into a full leaf whose parent, with more entries than half a leaf, is in a free block.
fn splits_below_a_free_block<S: AllPmSpec>() {
    let tree = create::<u64, S>();
    let capacity = S::Leaf::CAPACITY;
    let mut key = 0;
    loop {
        let (view, level) = root(&tree);
        if level == 1 && S::Inner::count(view) + 1 >= S::Inner::CAPACITY {
            let last = S::Inner::nth(view, S::Inner::count(view) - 1).unwrap().entry.value;
            if S::Leaf::count(tree.node(PmPtr::new(last)).unwrap()) == capacity {
                break;
            }
        }
        assert_eq!(tree.insert(key, key).unwrap(), None);
        key += 1;
    }
    move_root_to_free_block(&tree);
    assert_free(&tree.insert(key, key), S::SPEC.name);
}

#[test]
fn a_split_below_a_node_in_a_free_block_is_an_error() {
    splits_below_a_free_block::<BTreeShadow<64>>();
    splits_below_a_free_block::<BTreeLog<64>>();
    splits_below_a_free_block::<WbTree<256>>();
    splits_below_a_free_block::<IsleTreeAll<256>>();
}

#[test]
fn a_record_that_gets_the_block_of_its_leaf_is_an_error() {
    let tree = create::<Text, BTreeLog<64>>();
    assert_eq!(tree.insert(b"kauri", 1).unwrap(), None);
    move_root_to_free_block(&tree);
    assert_free(&tree.insert(b"rimu", 2), "btree-log");
}
