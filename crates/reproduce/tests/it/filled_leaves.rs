//! Inserts into leaves that are all equally full.

use crate::profile;
use bristlecone_reproduce::experiments::filled_leaves;

#[test]
fn leaves_are_as_full_as_is_asked_for_and_full_ones_are_split() {
    let profile = profile("pcm");
    for name in filled_leaves::names() {
        let [some, all] =
            [70, 100].map(|p| filled_leaves::inserts(name, p, &profile, [4000, 40]).unwrap());
        // Of 30, 28 or 7 slots 70 % are a whole number of 21, 19 or 4.
        assert!((0.57..=0.7).contains(&some.fill) && some.splits < 1e-9, "{name}: {some:?}");
        assert!(all.fill > 0.99 && all.fill <= 1.0 && all.splits > 0.5, "{name}: {all:?}");
        assert!(some.report.lines_per_op <= all.report.lines_per_op, "{name}");
    }
    assert!(filled_leaves::inserts("fptree", 70, &profile, [4000, 40]).is_err());
    assert!(filled_leaves::inserts("wb-tree", 101, &profile, [4000, 40]).is_err());
}
