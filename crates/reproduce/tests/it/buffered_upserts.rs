//! The law of CCL-BTree: how many units an upsert of a key that is there writes.
//!
//! Of each `N + 1` writes to a leaf one settles the buffer and writes the leaf's unit; the other
//! `N` are logged, in entries of 24 B that share units. So an upsert writes `(1 + N * 24 / 256) /
//! (N + 1)` units: 0.396 with buffers of 2.
//!
//! The law leaves out two things. A key that the pass before left in the buffer takes no slot. A
//! collection logs again what the buffers hold.

use crate::{assert_near, profile};
use bristlecone_reproduce::experiments::buffered_upserts;

#[test]
fn buffers_save_the_writes_that_the_law_says() {
    const ALL: u64 = 200_000;
    let profile = profile("optane-200");
    for (batch, leaf, log) in [(1, 0.5, 3.0 / 64.0), (2, 1.0 / 3.0, 0.0625)] {
        assert_near("the law", leaf + log, buffered_upserts::law(batch), 1e-9);
        let found = buffered_upserts::upserts(batch, &profile, [ALL, ALL / 8]).unwrap();
        assert_near("leaves", found.leaf_units, leaf, 0.1);
        assert_near("logs", found.log_units, log, 0.1);
    }
    let none = buffered_upserts::upserts(0, &profile, [ALL, ALL / 8]).unwrap();
    assert_near("no buffer", none.leaf_units, 1.0, 0.1);
    assert!(none.log_units < f64::EPSILON, "{none:?}");
}

#[test]
fn each_technique_saves_media_writes() {
    const ALL: u64 = 50_000;
    const PASSES: u64 = 5;
    let found = buffered_upserts::techniques(&profile("optane-200"), [ALL, PASSES]).unwrap();
    let units: Vec<_> = found.iter().map(|&(_, units)| units).collect();
    assert_eq!(units.len(), 4);
    assert!(units.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
    assert!(units[3] > 1.05 * buffered_upserts::law(2), "collections log again: {found:?}");
    // Without write-conservative logging each write is an entry of 24 B, with it two of three are.
    // More entries also make more collections.
    assert!(units[1] - units[2] > 24.0 / 256.0 / 3.0, "{found:?}");
}
