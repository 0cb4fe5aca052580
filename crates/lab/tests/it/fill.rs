//! Inserts into leaves that are all equally full.

use crate::profile;
use bristlecone_lab::fill;

#[test]
fn leaves_are_as_full_as_is_asked_for_and_full_ones_are_split() {
    let profile = profile("pcm");
    for name in fill::names() {
        let [some, all] = [70, 100].map(|p| fill::inserts(name, p, &profile, [4000, 40]).unwrap());
        // A leaf has 31 places or 7, and the last one is not filled.
        assert!((0.68..=0.72).contains(&some.fill) && some.splits < 1e-9, "{name}: {some:?}");
        assert!(all.fill > 0.99 && all.fill <= 1.0 && all.splits > 0.5, "{name}: {all:?}");
        assert!(some.report.lines_per_op <= all.report.lines_per_op, "{name}");
    }
    assert!(fill::inserts("fptree", 70, &profile, [4000, 40]).is_err());
    assert!(fill::inserts("wb-tree", 30, &profile, [4000, 40]).is_err());
}
