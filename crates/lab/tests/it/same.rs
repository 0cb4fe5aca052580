//! Two runs of one program on a modelled device give equal figures, to the last bit.

use crate::{Dram, pool, profile};
use bristlecone_lab::device::DeviceReport;
use bristlecone_lab::workload::mix64;
use bristlecone_trees::designs::{BTree, FpTree};
use bristlecone_trees::{Design, PmIndex};
use std::sync::Arc;

fn inserts<D: Design>(name: &str, seed: u64) -> DeviceReport {
    let mut profile = profile(name);
    profile.cpu.cache_bytes = 1 << 16;
    let pool = pool(&profile, 16 << 20);
    let tree = D::Index::<Dram, u64>::create(Arc::clone(&pool), "tree").unwrap();
    for index in 0..5000 {
        tree.insert(mix64(seed + index), index).unwrap();
    }
    pool.medium().reset_counts();
    for index in 5000..10_000 {
        tree.insert(mix64(seed + index), index).unwrap();
        tree.get(mix64(seed + index / 2)).unwrap();
        pool.medium().end_op(16);
    }
    pool.medium().settle();
    pool.medium().report()
}

#[test]
fn two_runs_differ_in_nothing() {
    for name in ["optane-100", "optane-200", "pcm", "cxl-nv"] {
        assert_eq!(inserts::<FpTree<256>>(name, 1), inserts::<FpTree<256>>(name, 1));
        assert_eq!(inserts::<BTree<512>>(name, 1), inserts::<BTree<512>>(name, 1));
    }
    let (one, other) = (inserts::<FpTree<256>>("pcm", 1), inserts::<FpTree<256>>("pcm", 1 << 32));
    assert_ne!(one, other, "another seed is another run");
}
