use super::*;
use crate::alloc::NodeUsage;
use crate::medium::{Count, FileOptions, Mapped};
use crate::numa::{self, Placement};
use crate::pool::Opened;
use crate::word::PmPtr;
use std::path::Path;

const NODE_BYTES: u64 = 256;

fn striped(nodes: &[u16], chunks: u64) -> Placement {
    Placement::as_it_lies(nodes, chunks * CHUNK_BYTES).unwrap()
}

fn pool_on(placement: Placement, chunks: u64) -> Pool<Mapped> {
    Pool::create(Mapped::anonymous_on(chunks * CHUNK_BYTES, placement).unwrap()).unwrap()
}

fn open(path: &Path, placement: Option<Placement>) -> (Pool<Mapped>, Opened) {
    let options = FileOptions { placement, ..FileOptions::default() };
    Pool::open(Mapped::open(path, &options).unwrap()).unwrap()
}

fn bytes_of(pool: &Pool<Mapped>) -> u64 {
    pool.usage().pool_bytes
}

#[test]
fn threads_get_blocks_of_their_own_stripes() {
    let placement = striped(&[1, 0], 4);
    let pool = pool_on(placement, 64);
    std::thread::scope(|scope| {
        for node in [0, 1] {
            let pool = &pool;
            scope.spawn(move || {
                let _on = numa::override_node(node);
                for round in 0..3000u64 {
                    let bytes = if round % 100 == 7 { 3 * CHUNK_BYTES } else { NODE_BYTES };
                    let block = pool.reserve(bytes).unwrap();
                    assert_eq!(placement.node_of(block.offset()), node);
                    assert_eq!(placement.node_of(block.offset() + bytes - 1), node);
                    if round % 3 == 0 {
                        pool.release(block, bytes);
                    }
                }
            });
        }
    });
    let usages = pool.usage_of_nodes();
    assert_eq!(usages.iter().map(|usage| usage.node).collect::<Vec<_>>(), [1, 0]);
    let sum = |of: fn(&NodeUsage) -> u64| usages.iter().map(of).sum::<u64>();
    let usage = pool.usage();
    assert_eq!(sum(|usage| usage.pool_bytes), usage.pool_bytes);
    assert_eq!(sum(|usage| usage.used_bytes), usage.used_bytes);
    assert_eq!(sum(|usage| usage.free_bytes), usage.free_bytes);
}

#[test]
fn growth_adds_a_stripe_for_every_node_and_precedes_blocks_of_other_nodes() {
    let placement = striped(&[0, 1, 2], 4);
    let pool = pool_on(placement, 5);
    let _on = numa::override_node(2);
    let block = pool.reserve(NODE_BYTES).unwrap();
    assert_eq!(placement.node_of(block.offset()), 2);
    assert!(bytes_of(&pool).is_multiple_of(12 * CHUNK_BYTES));
    let rest = pool.usage_of_nodes()[0];
    assert!(rest.free_bytes >= 3 * CHUNK_BYTES, "{rest:?}");
}

#[test]
fn if_the_pool_cannot_grow_blocks_come_from_every_node() {
    let pool = pool_on(striped(&[0, 1], 2), 16);
    pool.limit(16 * CHUNK_BYTES);
    let _on = numa::override_node(1);
    let mut blocks = Vec::new();
    let full = loop {
        match pool.reserve(NODE_BYTES) {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, PoolError::Full { .. }), "{full}");
    assert_eq!(blocks.len() as u64, 15 * CHUNK_BYTES / NODE_BYTES);
    let per_zone = blocks.len() / 15 * 8;
    let own = |block: &PmPtr| pool.placement().unwrap().node_of(block.offset()) == 1;
    assert!(blocks[..per_zone].iter().all(own), "blocks of the own node come first");
    for block in blocks.drain(..) {
        pool.release(block, NODE_BYTES);
    }
    assert_eq!(
        pool.reserve(7 * CHUNK_BYTES).unwrap().offset(),
        CHUNK_BYTES,
        "a block of several stripes"
    );
    pool.limit(u64::MAX);
    let block = pool.reserve(2 * CHUNK_BYTES).unwrap();
    assert!(own(&block));
}

#[test]
fn a_block_longer_than_a_stripe_lies_in_several() {
    let placement = striped(&[0, 1], 2);
    let pool = pool_on(placement, 8);
    for node in [0, 1] {
        let _on = numa::override_node(node);
        let block = pool.reserve(20 * CHUNK_BYTES).unwrap();
        pool.release(block, 20 * CHUNK_BYTES);
        let block = pool.reserve(2 * CHUNK_BYTES).unwrap();
        assert_eq!(placement.node_of(block.offset()), node);
    }
}

#[test]
fn a_pool_opens_under_any_placement() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let placements =
        [Some(striped(&[0, 1], 1)), None, Some(striped(&[3, 1, 2], 5)), Some(striped(&[0], 3))];
    let options = FileOptions { placement: placements[0], ..FileOptions::default() };
    let mut pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let mut held = Vec::new();
    for round in 1..=8u64 {
        for node in [0, 1, 3] {
            let _on = numa::override_node(node);
            held.extend([64, 700, 50_000].map(|bytes| (pool.reserve(bytes).unwrap(), bytes)));
        }
        let (block, bytes) = held.swap_remove(round as usize);
        pool.release(block, bytes);
        let usage = pool.usage();
        let placement = placements[round as usize % placements.len()];
        let opened;
        if round % 3 == 0 {
            drop(pool);
            (pool, opened) = open(&path, placement);
            assert_eq!(opened, Opened::Crashed);
            pool.mark_all(&held).unwrap();
            pool.finish_recovery();
        } else {
            pool.close().unwrap();
            (pool, opened) = open(&path, placement);
            assert_eq!(opened, Opened::Clean);
        }
        assert_eq!(pool.usage().used_bytes, usage.used_bytes);
        assert_eq!(pool.usage().blocks, usage.blocks);
        assert!(held.iter().all(|&(block, bytes)| pool.is_block(block, bytes)));
    }
}

#[test]
fn a_close_needs_no_space_on_the_own_node() {
    let pool = pool_on(striped(&[0, 1], 8), 16);
    let _on = numa::override_node(1);
    for _ in 0..8 {
        pool.reserve(CHUNK_BYTES).unwrap();
    }
    pool.limit(16 * CHUNK_BYTES);
    pool.close().unwrap();
}

#[test]
fn nearest_returns_the_last_block_on_the_own_node() {
    let [a, b, c] = [1, 2, 3].map(|chunk| PmPtr::new(chunk * CHUNK_BYTES));
    let pool =
        Pool::create(Count::new(Mapped::anonymous_on(1 << 20, striped(&[0, 1], 1)).unwrap()));
    let pool = pool.unwrap();
    let _on = numa::override_node(0);
    assert_eq!(pool.nearest(&[]), None);
    assert_eq!(pool.nearest(&[a, b, c]), Some(1));
    assert_eq!(pool.nearest(&[a, c]), Some(1), "no block is on the own node");
    let unplaced = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    assert_eq!(unplaced.nearest(&[a, b, c]), Some(2));
    assert!(unplaced.usage_of_nodes().is_empty());
}

#[test]
fn a_block_takes_the_free_end_of_a_pool_and_what_it_grows_by() {
    let pool = Pool::create(Mapped::anonymous(64 * CHUNK_BYTES).unwrap()).unwrap();
    pool.limit(100 * CHUNK_BYTES);
    let kept = pool.reserve(10 * CHUNK_BYTES).unwrap();
    let wanted = 80 * CHUNK_BYTES;
    let block = pool.reserve(wanted).unwrap();
    assert!(bytes_of(&pool) <= 100 * CHUNK_BYTES && pool.is_block(block, wanted));
    assert!(matches!(pool.reserve(20 * CHUNK_BYTES), Err(PoolError::Full { .. })));
    assert!(pool.is_block(kept, 10 * CHUNK_BYTES));
}
