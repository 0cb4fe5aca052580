use super::*;
use bristlecone_pmem::Mapped;

/// Nodes with 6 separators, as in `fast-fair-sp` at 256 B.
type Nodes = FastNodes<Mapped, 32, 4>;

fn pool() -> Pool<Mapped> {
    Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap()
}

fn leaf(key: u64) -> SeparatedLeaf {
    SeparatedLeaf { prefix: key, word: key, leaf: 64 * (key + 1) }
}

fn slot(key: u64) -> SeparatedChild {
    let SeparatedLeaf { prefix, word, leaf } = leaf(key);
    SeparatedChild { prefix, word, child: leaf }
}

/// Returns nodes over the leaves 0, 10, .., 90: two lowest nodes of five leaves, below a root.
fn two_nodes() -> Nodes {
    let inner = Nodes::build(&(0..10).map(|at| leaf(10 * at)).collect::<Vec<_>>(), true).unwrap();
    assert_eq!((inner.node_count(), inner.height()), (3, 2));
    inner
}

/// Splits the lowest node of the leaves 0 to 40, without a separator for its new sibling, which it
/// returns. The new leaves are 11, 12 and 13; the sibling begins with the leaf 12.
fn split_unposted(inner: &Nodes) -> SeparatedChild {
    let first = inner.node(inner.root()).child(0) as usize;
    assert!(inner.insert_or_split(first, 1, slot(11)).is_none());
    assert!(inner.insert_or_split(first, 2, slot(12)).is_none());
    inner.insert_or_split(first, 3, slot(13)).unwrap()
}

fn listed(inner: &Nodes) -> Vec<u64> {
    let mut keys = Vec::new();
    inner.for_each_leaf(&mut |separated| {
        assert_eq!(separated, leaf(separated.prefix));
        keys.push(separated.prefix);
    });
    keys
}

fn seek(inner: &Nodes, pool: &Pool<Mapped>, key: u64, direction: Direction) -> u64 {
    inner.seek::<u64>(pool, key, direction).unwrap().leaf.offset() / 64 - 1
}

#[test]
fn a_descent_follows_the_link_to_a_node_without_a_separator() {
    let (pool, inner) = (pool(), two_nodes());
    let sibling = split_unposted(&inner);
    let keys = [0, 10, 11, 12, 13, 20, 30, 40, 50, 60, 70, 80, 90];
    assert_eq!(listed(&inner), keys);
    for (at, &key) in keys.iter().enumerate() {
        assert_eq!(seek(&inner, &pool, key, Direction::Key), key);
        if at > 0 {
            assert_eq!(seek(&inner, &pool, key, Direction::Below), keys[at - 1]);
        }
    }
    let parent = |key| inner.seek::<u64>(&pool, key, Direction::Key).unwrap().parent;
    assert_eq!(parent(sibling.prefix), sibling.child as usize);
    assert_ne!(parent(sibling.prefix - 1), sibling.child as usize);
    inner.post_above::<u64>(&pool, sibling).unwrap();
    assert_eq!(inner.node(inner.root()).count(), 2);
    assert_eq!(listed(&inner), keys);
}

#[test]
fn nodes_between_which_an_unposted_one_lies_do_not_merge() {
    let (pool, inner) = (pool(), two_nodes());
    let sibling = split_unposted(&inner);
    let (root, version) = inner.read_root();
    let last = inner.node(inner.node(root).child(1) as usize);
    last.set_level_and_count(1, 0); // sparse enough for either neighbour
    assert_eq!(inner.merge_nodes(root, version, 0), Some(false));
    inner.post_above::<u64>(&pool, sibling).unwrap();
    let (root, version) = inner.read_root();
    assert_eq!(inner.merge_nodes(root, version, 1), Some(true));
    assert_eq!(listed(&inner), [0, 10, 11, 12, 13, 20, 30, 40, 50]);
}

#[test]
fn a_root_above_an_unposted_node_stays() {
    let (pool, inner) = (pool(), two_nodes());
    let (root, version) = inner.read_root();
    let [left, right] = [0, 1].map(|at| inner.node(inner.node(root).child(at) as usize));
    left.set_level_and_count(1, 0);
    right.set_level_and_count(1, 0);
    assert_eq!(inner.merge_nodes(root, version, 0), Some(true));
    for at in 1..=5 {
        inner.post::<u64>(&pool, at, at, PmPtr::new(64 * (at + 1))).unwrap();
    }
    let first = inner.node(inner.root()).child(0) as usize;
    let sibling = inner.insert_or_split(first, 5, slot(6)).unwrap();
    inner.merge_path::<u64>(&pool, 0).unwrap();
    assert_eq!((inner.height(), inner.root()), (2, root));
    inner.post_above::<u64>(&pool, sibling).unwrap();
    assert_eq!(listed(&inner), [0, 1, 2, 3, 4, 5, 6, 50]);
}

/// Threads post separators of their own, which splits nodes at all levels, and remove every second
/// one again, which merges them.
#[test]
fn threads_that_split_and_merge_nodes_lose_no_leaf() {
    const THREADS: u64 = 4;
    const KEYS: u64 = 2_000;
    let (pool, inner) = (pool(), Nodes::build(&[leaf(0)], true).unwrap());
    let merge = |key: u64| {
        let take = |_: PmPtr, right: PmPtr| Ok::<_, Corrupt>(right.offset() == leaf(key).leaf);
        inner.merge_leaves::<u64, _>(&pool, key, take).unwrap();
    };
    std::thread::scope(|scope| {
        for thread in 1..=THREADS {
            let (inner, pool, merge) = (&inner, &pool, &merge);
            scope.spawn(move || {
                let keys = (0..KEYS).map(|at| at * THREADS + thread);
                for key in keys.clone() {
                    inner.post::<u64>(pool, key, key, PmPtr::new(leaf(key).leaf)).unwrap();
                    assert_eq!(seek(inner, pool, key, Direction::Key), key);
                }
                keys.clone().filter(|key| key % 8 >= 4).for_each(merge);
                for key in keys.filter(|key| key % 8 < 4) {
                    assert_eq!(seek(inner, pool, key, Direction::Key), key);
                }
            });
        }
    });
    assert!(inner.height() > 2);
    let listed = listed(&inner);
    assert!((0..=THREADS * KEYS).filter(|key| key % 8 < 4).all(|key| listed.contains(&key)));
    // Only the leftmost leaf of a lowest node stays.
    assert!((listed.len() as u64) < THREADS * KEYS * 3 / 4, "no leaf was merged away");
    for (at, &key) in listed.iter().enumerate() {
        assert_eq!(seek(&inner, &pool, key, Direction::Key), key);
        assert!(at == 0 || listed[at - 1] < key);
    }
}

/// Removes leaves in a mixed order until only the first is left. Nodes lose their leftmost child,
/// vanish, and merge.
#[test]
fn leaves_are_unlinked_wherever_they_are() {
    const LEAVES: u64 = 1_009;
    let (pool, inner) = (pool(), Nodes::build(&[leaf(0)], true).unwrap());
    for at in 1..LEAVES {
        let key = at * 383 % LEAVES;
        inner.post::<u64>(&pool, key, key, PmPtr::new(leaf(key).leaf)).unwrap();
    }
    assert!(inner.height() > 3);
    let mut left: Vec<_> = (0..LEAVES).collect();
    for at in 1..LEAVES {
        let key = at * 617 % LEAVES;
        inner.unlink::<u64>(&pool, key, PmPtr::new(leaf(key).leaf)).unwrap();
        let place = left.binary_search(&key).unwrap();
        left.remove(place);
        for probe in [key, left[place - 1], *left.get(place).unwrap_or(&LEAVES)] {
            let covering = left.partition_point(|&low| low <= probe) - 1;
            assert_eq!(seek(&inner, &pool, probe, Direction::Key), left[covering]);
            if covering > 0 {
                let low = left[covering];
                assert_eq!(seek(&inner, &pool, low, Direction::Below), left[covering - 1]);
            }
        }
        if at % 16 == 0 {
            assert_eq!(listed(&inner), left);
        }
    }
    assert_eq!((listed(&inner), inner.node_count(), inner.height()), (vec![0], 1, 1));
}

#[test]
fn the_first_leaf_stays() {
    let (pool, inner) = (pool(), two_nodes());
    assert!(inner.unlink::<u64>(&pool, 0, PmPtr::new(leaf(0).leaf)).is_err());
    assert_eq!(listed(&inner).len(), 10);
}

#[test]
fn a_leaf_below_a_node_that_damage_keeps_unposted_is_an_error() {
    let (pool, inner) = (pool(), two_nodes());
    let sibling = split_unposted(&inner);
    let at = PmPtr::new(leaf(sibling.prefix).leaf);
    store::<Mapped>(&inner.unposted, 1);
    assert!(inner.unlink::<u64>(&pool, sibling.prefix, at).is_err());
    inner.post_above::<u64>(&pool, sibling).unwrap();
    inner.unlink::<u64>(&pool, sibling.prefix, at).unwrap();
    assert_eq!(listed(&inner).len(), 12);
}
