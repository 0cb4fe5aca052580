//! Lines that the shift of entries flushes in a node.

use bristlecone_reproduce::experiments::inner_shift::{in_leaf, shifts};

#[test]
fn a_shift_flushes_lines_and_not_entries() {
    let found = shifts("fast-fair").unwrap();
    let lines = found.entries / 2.0 / 4.0;
    assert!((lines * 0.8..lines * 1.2).contains(&found.middle_lines), "{found:?}");
}

#[test]
fn a_shift_of_the_native_tree_flushes_each_entry() {
    let found = shifts("btree-native").unwrap();
    let expected = found.entries / 2.0 + 1.0;
    assert!((expected * 0.8..expected * 1.2).contains(&found.middle_lines), "{found:?}");
}

#[test]
fn an_insert_into_a_sorted_leaf_flushes_half_of_its_entries_and_two_lines() {
    for entries in [5_u64, 20] {
        let found = in_leaf("btree-native", entries).unwrap();
        let expected = f64::midpoint(entries as f64, 1.0) + 2.0;
        assert!((found - expected).abs() < 1e-9, "{entries}: {found}, not {expected}");
    }
}
