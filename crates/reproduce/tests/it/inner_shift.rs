//! Lines that the shift of entries flushes in an inner node.

use bristlecone_reproduce::experiments::inner_shift::shifts;

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
