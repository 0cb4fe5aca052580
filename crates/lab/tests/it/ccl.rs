//! The law of CCL-BTree: how many units an upsert of a key that is there writes.
//!
//! Of each `N + 1` writes to a leaf one settles the buffer and writes the leaf's unit; the other `N` are
//! logged, in entries of 32 B that share units. So an upsert writes `(1 + N * 32 / 256) / (N + 1)` units:
//! 0.417 with buffers of 2. The paper's entries of 24 B make it 0.396.

use crate::{Dram, assert_near, mix, pool, profile};
use bristlecone_trees::designs::CclBTree;
use bristlecone_trees::{Design, PmIndex};
use std::sync::Arc;

const KEYS: u64 = 60_000;
const UPSERTS: u64 = 120_000;

fn units_per_upsert<const BATCH: usize>() -> f64 {
    let pool = pool(&profile("optane-200"), 64 << 20);
    let tree =
        <CclBTree<BATCH> as Design>::Index::<Dram, u64>::create(Arc::clone(&pool), "tree").unwrap();
    for key in 0..KEYS {
        tree.upsert(mix(key), key).unwrap();
    }
    for index in 0..KEYS {
        tree.upsert(mix(mix(index ^ 1 << 40) % KEYS), index).unwrap();
    }
    pool.medium().renew();
    for index in 0..UPSERTS {
        let key = mix(mix(index ^ 1 << 50) % KEYS);
        assert!(tree.upsert(key, index).unwrap().is_some());
        pool.medium().end_op(16);
    }
    pool.medium().settle();
    pool.medium().report().media_bytes_per_op / 256.0
}

fn law(batch: f64) -> f64 {
    (1.0 + batch * 32.0 / 256.0) / (batch + 1.0)
}

#[test]
fn buffers_save_the_writes_that_the_law_says() {
    assert_near("no buffer", units_per_upsert::<0>(), law(0.0), 0.05);
    assert_near("buffers of 2", units_per_upsert::<2>(), law(2.0), 0.05);
    assert_near("buffers of 4", units_per_upsert::<4>(), law(4.0), 0.05);
}
