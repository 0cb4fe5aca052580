//! A tree on a modelled device gives the answers of a map, with every profile.

use crate::{Dram, pool, profile};
use bristlecone_lab::device::Profile;
use bristlecone_lab::workload::mix64;
use bristlecone_trees::designs::FpTree;
use bristlecone_trees::{Design, Order, PmIndex};
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::Arc;

type Tree = <FpTree<256> as Design>::Index<Dram, u64>;

#[test]
fn a_tree_on_any_device_is_the_map_that_it_should_be() {
    for name in Profile::names() {
        let mut profile = profile(name);
        // With a cache of a few lines, most accesses reach the modelled device.
        profile.cpu.cache_bytes = 1 << 12;
        profile.cpu.cache_ways = 4;
        let pool = pool(&profile, 4 << 20);
        let tree = Tree::create(Arc::clone(&pool), "tree").unwrap();
        let mut map = BTreeMap::new();
        for step in 0..8000_u64 {
            let (key, value) = (mix64(step) % 1500, mix64(step ^ 0xABCD));
            match mix64(step + 77) % 4 {
                0 | 1 => assert_eq!(tree.upsert(key, value).unwrap(), map.insert(key, value)),
                2 => assert_eq!(tree.remove(key).unwrap(), map.remove(&key)),
                _ => assert_eq!(tree.get(key).unwrap(), map.get(&key).copied()),
            }
            pool.medium().end_op(16);
        }
        let mut pairs = Vec::new();
        tree.scan((Bound::Unbounded, Bound::Unbounded), Order::Ascending, &mut |key, value| {
            pairs.push((key, value));
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(pairs, map.into_iter().collect::<Vec<_>>(), "{name}");
        tree.check().unwrap();
        assert!(pool.medium().report().seconds > 0.0);
    }
}

#[test]
fn several_threads_share_a_device() {
    let pool = pool(&profile("optane-100"), 4 << 20);
    let tree = Tree::create(Arc::clone(&pool), "tree").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (tree, pool) = (&tree, &pool);
            scope.spawn(move || {
                for index in 0..3000 {
                    let key = index * 3 + thread;
                    assert_eq!(tree.insert(key, key).unwrap(), None);
                    pool.medium().end_op(16);
                }
            });
        }
    });
    assert_eq!(tree.check().unwrap().keys, 9000);
    assert_eq!(pool.medium().report().ops, 9000);
}

#[test]
fn a_pool_grows_on_a_device() {
    let pool = pool(&profile("optane-200"), 1 << 20);
    let before = pool.usage().pool_bytes;
    let tree = Tree::create(Arc::clone(&pool), "tree").unwrap();
    for key in 0..60_000 {
        tree.insert(mix64(key), key).unwrap();
        pool.medium().end_op(16);
    }
    assert!(pool.usage().pool_bytes > before);
    assert_eq!(tree.check().unwrap().keys, 60_000);
}
