//! The law of CCL-BTree: how many units an upsert of a key that is there writes.
//!
//! Of each `N + 1` writes to a leaf one settles the buffer and writes the leaf's unit; the other
//! `N` are logged, in entries of 24 B that share units. So an upsert writes `(1 + N * 24 / 256) /
//! (N + 1)` units: 0.396 with buffers of 2.
//!
//! The law leaves out two things. A key that is in the buffer already takes no slot, so in a leaf
//! of `k` keys the buffer lasts longer: slot `s` is filled after `k / (k - s)` writes. And a
//! collection logs again what the buffers hold. With uniform keys that is two thirds of the log,
//! and makes up for the first, nearly.

use crate::{assert_near, profile};
use bristlecone_reproduce::experiments::buffered_upserts::{self, Upserts};

const UPSERTS: u64 = 100_000;
/// The part of the log that collections log again.
const COLLECTED: f64 = 2.0 / 3.0;

/// Units for each upsert of one of the `few` least of `all` keys; and keys of a leaf.
fn units_per_upsert(batch: usize, all: u64, few: u64) -> (f64, f64) {
    let found =
        buffered_upserts::upserts(batch, &profile("optane-200"), [all, few, UPSERTS]).unwrap();
    let Upserts { units, keys_per_leaf, .. } = found;
    (units, keys_per_leaf)
}

/// The law, for leaves of so many keys: units of leaves, and of logs.
fn law(batch: u32, keys_per_leaf: f64) -> [f64; 2] {
    let writes_to_fill = |slot| keys_per_leaf / (keys_per_leaf - f64::from(slot));
    let cycle: f64 = (0..=batch).map(writes_to_fill).sum();
    [1.0 / cycle, (1.0 - 1.0 / cycle) * 24.0 / 256.0]
}

#[test]
fn buffers_save_the_writes_that_the_law_says() {
    const ALL: u64 = 200_000;
    const FEW: u64 = ALL / 4;
    let [leaves, logs] = law(2, 1e12);
    assert_near("the law", leaves + logs, 0.396, 0.001);
    let (none, keys) = units_per_upsert(0, ALL, FEW);
    let [leaves, logs] = law(0, keys);
    assert_near("no buffer", none, leaves + logs, 0.06);
    let (two, _) = units_per_upsert(2, ALL, FEW);
    assert_near("buffers of 2, as it is printed", two, 0.396, 0.06);
}

#[test]
fn collections_log_two_thirds_of_the_log_once_more() {
    for (all, few) in [(30_000, 30_000), (100_000, 100_000), (200_000, 50_000)] {
        let (units, keys) = units_per_upsert(2, all, few);
        let [leaves, logs] = law(2, keys);
        assert_near("units", units, leaves + (1.0 + COLLECTED) * logs, 0.03);
    }
}

#[test]
fn each_technique_saves_media_writes() {
    const ALL: u64 = 50_000;
    const PASSES: u64 = 5;
    let found = buffered_upserts::techniques(&profile("optane-200"), [ALL, PASSES]).unwrap();
    let units: Vec<_> = found.iter().map(|&(_, units)| units).collect();
    assert_eq!(units.len(), 4);
    assert!(units.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
    // Without write-conservative logging each write is an entry of 24 B, with it two of three are.
    // More entries also make more collections.
    assert!(units[1] - units[2] > 24.0 / 256.0 / 3.0, "{found:?}");
}
