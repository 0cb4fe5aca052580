//! Lines that the shift of entries flushes in an inner node.

use bristlecone_reproduce::experiments::inner_shift::shifts;

#[test]
fn a_shift_flushes_lines_and_not_entries() {
    let found = shifts("fast-fair").unwrap();
    let lines = found.entries / 4.0;
    assert!((lines * 0.8..lines * 1.2).contains(&found.front_lines), "{found:?}");
}
