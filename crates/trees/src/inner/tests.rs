use super::*;
use bristlecone_pmem::Mapped;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

mod locked;

/// Returns the offset of a leaf of that number.
const fn leaf(number: u64) -> u64 {
    64 * number
}

fn pool() -> Pool<Mapped> {
    Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap()
}

fn leaf_of(
    inner: &impl InnerNodes<Mapped>,
    pool: &Pool<Mapped>,
    key: u64,
    direction: Direction,
) -> u64 {
    let route = inner.seek::<u64>(pool, key, direction).unwrap();
    inner.leaf_and_lock(&route).0.offset()
}

/// Compares descents with a map from low keys to leaves, while separators are added and removed and
/// the tree grows and loses levels.
fn descents_agree_with_a_map<I: InnerNodes<Mapped>>() {
    let pool = pool();
    let inner = I::build(&[SeparatedLeaf { prefix: 0, word: 0, leaf: leaf(1) }], true).unwrap();
    let mut model = BTreeMap::from([(0u64, leaf(1))]);
    let mut state = 1u64;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for round in 0..40_000u64 {
        let key = random() % 100_000 + 1;
        if round < 25_000 {
            if let Entry::Vacant(place) = model.entry(key) {
                inner.post::<u64>(&pool, key, key, PmPtr::new(leaf(round + 2))).unwrap();
                place.insert(leaf(round + 2));
            }
        } else {
            let mut merge = |left: PmPtr, right: PmPtr| {
                let (&low, _) = model.iter().find(|(_, leaf)| **leaf == right.offset()).unwrap();
                let before = model.range(..low).next_back().map(|(_, leaf)| *leaf);
                assert_eq!(before, Some(left.offset()));
                model.remove(&low);
                Ok::<_, Corrupt>(true)
            };
            if round % 4 == 0 {
                inner.merge_leaves::<u64, _>(&pool, key, &mut merge).unwrap();
            }
        }
        let probe = random() % 100_001;
        let expected = *model.range(..=probe).next_back().unwrap().1;
        assert_eq!(leaf_of(&inner, &pool, probe, Direction::Key), expected);
        if probe > 0 {
            let expected = *model.range(..probe).next_back().unwrap().1;
            assert_eq!(leaf_of(&inner, &pool, probe, Direction::Below), expected);
        }
        if round % 16 == 0 {
            let step = [0, 1, 40, 700, 6_000][round as usize / 16 % 5];
            let keys: Vec<u64> = (0..BATCH as u64).map(|i| probe + i * step).collect();
            let mut routes = [None; BATCH];
            inner.seek_batch::<u64>(&pool, &keys, &mut routes, |_, _| ()).unwrap();
            for (key, route) in keys.into_iter().zip(routes) {
                let expected = *model.range(..=key).next_back().unwrap().1;
                assert_eq!(inner.leaf_and_lock(&route.unwrap()).0.offset(), expected, "{key}");
            }
        }
    }
    let mut listed = Vec::new();
    inner.for_each_leaf(&mut |separated| listed.push((separated.prefix, separated.leaf)));
    assert_eq!(listed, model.into_iter().collect::<Vec<_>>());
}

#[test]
fn descents_agree_with_a_map_while_it_grows_and_shrinks() {
    descents_agree_with_a_map::<Inner<Mapped>>();
    descents_agree_with_a_map::<Inner<Mapped, VectorSearch, 32>>();
    descents_agree_with_a_map::<Inner<Mapped, LinearWithLocks>>();
    descents_agree_with_a_map::<InnerArray<Mapped>>();
    descents_agree_with_a_map::<FastNodes<Mapped, 64, 2>>();
    descents_agree_with_a_map::<FastNodes<Mapped, 32, 4>>();
}

fn built_nodes_list_their_leaves<I: InnerNodes<Mapped>>() {
    let pool = pool();
    // From 16 on, an array has a second lowest node; from 1024 and 65536 on, one more level.
    for count in [1, 2, 16, 17, 27, 28, 100, 1024, 1025, 5_000, 65_537] {
        let leaves: Vec<_> = (0..count)
            .map(|i| SeparatedLeaf { prefix: i * 3, word: i * 3, leaf: leaf(i + 7) })
            .collect();
        let inner = I::build(&leaves, true).unwrap();
        let mut listed = Vec::new();
        inner.for_each_leaf(&mut |separated| listed.push(separated));
        assert_eq!(listed, leaves);
        assert_eq!(inner.leaf_and_lock(&inner.seek_last()).0, PmPtr::new(leaf(count + 6)));
        for at in 0..count {
            assert_eq!(leaf_of(&inner, &pool, 3 * at + 2, Direction::Key), leaf(at + 7));
            assert_eq!(leaf_of(&inner, &pool, 3 * at + 3, Direction::Below), leaf(at + 7));
        }
    }
}

#[test]
fn built_nodes_list_the_leaves_that_they_were_built_from() {
    built_nodes_list_their_leaves::<Inner<Mapped>>();
    built_nodes_list_their_leaves::<Inner<Mapped, VectorSearch, 32>>();
    built_nodes_list_their_leaves::<Inner<Mapped, LinearWithLocks>>();
    built_nodes_list_their_leaves::<InnerArray<Mapped>>();
    built_nodes_list_their_leaves::<FastNodes<Mapped, 64, 2>>();
    built_nodes_list_their_leaves::<FastNodes<Mapped, 32, 4>>();
}

/// A full lowest node makes all of them half full; nothing else changes the number of nodes.
#[test]
fn a_full_lowest_node_rebuilds_the_array() {
    let pool = pool();
    let leaf = |key| SeparatedLeaf { prefix: key, word: key, leaf: key + 1 };
    let inner = InnerArray::<Mapped>::build(&[leaf(0)], true).unwrap();
    let mut counts = Vec::new();
    for key in 1..=61 {
        inner.post::<u64>(&pool, key, key, PmPtr::new(key + 1)).unwrap();
        counts.push((inner.node_count(), inner.height()));
    }
    let with = |count, times| vec![count; times];
    // Of 31 leaves 16 and 15 are below the first two nodes, and 16 more fit into the second one.
    // Then 47 leaves take three nodes, of 16, 16 and 15.
    let expected = [with((1, 1), 30), with((3, 2), 16), with((4, 2), 15)].concat();
    assert_eq!(counts, expected);
    let mut listed = Vec::new();
    inner.for_each_leaf(&mut |separated| listed.push(separated));
    assert_eq!(listed, (0..=61).map(leaf).collect::<Vec<_>>());
}
