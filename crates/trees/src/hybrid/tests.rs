//! What is the engine's own; that it is a correct index is for the conformance suite to show.

use super::*;
use crate::designs::FpTree;
use crate::index::Design;
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Mapped, Pool};
use std::collections::BTreeMap;

type Index<K> = <FpTree<256> as Design>::Index<Mapped, K>;

fn index<K: Key>() -> Index<K> {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    Index::create(Arc::new(pool), "t").unwrap()
}

#[test]
fn ascending_inserts_leave_full_leaves() {
    let index = index::<u64>();
    for key in 0..13_000 {
        assert_eq!(index.insert(key, key).unwrap(), None);
    }
    assert_eq!(index.check().unwrap().leaves, 1_000);
}

#[test]
fn an_emptied_index_has_one_leaf() {
    let index = index::<u64>();
    let keys: Vec<u64> = (0..20_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    for &key in &keys {
        index.insert(key, !key).unwrap();
    }
    assert!(index.check().unwrap().height >= 4);
    for &key in keys.iter().rev() {
        assert_eq!(index.remove(key).unwrap(), Some(!key));
    }
    let census = index.check().unwrap();
    assert_eq!((census.keys, census.leaves, census.height), (0, 1, 2));
}

#[test]
fn a_clean_close_saves_the_inner_nodes_and_a_crash_rebuilds_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 4 << 20, &options).unwrap()).unwrap();
    let index = Index::<crate::Text>::create(Arc::new(pool), "t").unwrap();
    let mut model = BTreeMap::new();
    for i in 0..5_000u64 {
        let key = format!("a shared beginning/{}", i * 7_919 % 5_003).into_bytes();
        index.insert(&key, i).unwrap();
        model.insert(key, i);
    }
    let mut index = Some(index);
    for clean in [true, false, true, true, false] {
        let open = index.take().unwrap();
        let census = open.check().unwrap();
        if clean {
            Arc::into_inner(open.close().unwrap()).unwrap().close().unwrap();
        } else {
            drop(open);
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, clean);
        let again = Index::<crate::Text>::open(Arc::new(pool), "t", opened).unwrap();
        let found = again.check().unwrap();
        assert_eq!((found.keys, found.blocks), (census.keys, census.blocks));
        assert_eq!(again.pool().usage().blocks, found.blocks + 1);
        let mut listed = Vec::new();
        let all = (Bound::Unbounded, Bound::Unbounded);
        again
            .scan(all, Order::Ascending, &mut |key, value| {
                listed.push((key.to_vec(), value));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(listed.iter().cloned().eq(model.clone()));
        index = Some(again);
    }
}

/// A latch word that is held, in the generation that opens next: only damage writes that.
#[test]
fn a_latch_that_damage_holds_is_free_after_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 4 << 20, &options).unwrap()).unwrap();
    let index = Index::<u64>::create(Arc::new(pool), "t").unwrap();
    index.insert(7, 70).unwrap();
    let leaf = index.leaf(PmPtr::new(index.load(&index.root_words().unwrap()[0]))).unwrap();
    let held = (index.pool.generation() + 1) << 40 | 1;
    index
        .pool
        .medium()
        .store_transient(&leaf.words[<FpTree<256> as HybridSpec>::Leaf::LATCH], held);
    drop(index);
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(opened, Opened::Crashed);
    let index = Index::<u64>::open(Arc::new(pool), "t", opened).unwrap();
    assert_eq!(index.get(7).unwrap(), Some(70));
    assert_eq!(index.insert(7, 71).unwrap(), Some(70));
}
