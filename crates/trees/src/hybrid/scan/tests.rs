//! Tests of scans whose next leaf has become the first one.

use super::*;
use crate::designs::FpTree;
use crate::index::{Design, PmIndex};
use bristlecone_pmem::{Mapped, Pool};
use std::sync::Arc;

type Tree = <FpTree<256> as Design>::Index<Mapped, u64>;

/// A scan has passed the first leaf. It finds no key behind in the next one, which has become the
/// first, and then once more the next leaf has become the first, with the last key that it visited.
#[test]
fn a_scan_visits_no_key_twice_behind_a_leaf_in_which_it_has_passed_all_keys() {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    let tree = Tree::create(Arc::new(pool), "t").unwrap();
    for key in 1..=60 {
        assert_eq!(tree.insert(1_000 * key, key).unwrap(), None);
    }
    let copy_first = || tree.copy_at(0, Direction::Key).unwrap();
    let keys_of = |copy: &LeafCopy<u64>| -> Vec<u64> {
        copy.entries.iter().map(|(prefix, _)| *prefix).collect()
    };
    let remove = |keys: &[u64]| {
        for &key in keys {
            assert!(tree.remove(key).unwrap().is_some());
        }
    };
    let mut restarts = Restarts::default();
    let first = copy_first();
    let visited = keys_of(&first);
    remove(&visited);
    tree.insert(1, 1).unwrap();
    let mut second = copy_first();
    assert_eq!((second.at, second.low), (first.next, 0));
    remove(&keys_of(&second)[1..]);
    tree.check_progress(&mut second, first, &mut restarts).unwrap();
    assert_eq!((second.entries.len(), Some(&second.low)), (0, visited.last()));

    remove(&[1]);
    let last = *visited.last().unwrap();
    tree.insert(last, last).unwrap();
    let mut third = copy_first();
    assert_eq!(keys_of(&third)[0], last);
    tree.check_progress(&mut third, second, &mut restarts).unwrap();
    assert!(keys_of(&third)[0] > last);
}
