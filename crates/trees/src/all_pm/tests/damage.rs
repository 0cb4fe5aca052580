//! Pointers to blocks that hold no node of the tree.

use crate::all_pm::{AllPm, AllPmSpec, read_root};
use crate::designs::{BTreeLog, BTreeShadow};
use crate::index::{PmIndex, TreeError};
use crate::key::Key;
use crate::node::{Layout, Ordered, View};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::pool::HEADER_BYTES;
use bristlecone_pmem::sync::OnMedium;
use bristlecone_pmem::{Mapped, PmPtr, Pool, PoolError};
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
