use super::descend::DescentState;
use super::*;
use crate::Text;
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::{Count, Counts, FileOptions};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

type Tree<K> = FastFairTree<Mapped, K, FastFairR<256>, 256>;
const CAPACITY: usize = ShiftNode::<Mapped, FencedAfter, 256>::CAPACITY;
const ALL: (Bound<u64>, Bound<u64>) = (Bound::Unbounded, Bound::Unbounded);

fn tree<K: Key>() -> Tree<K> {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    Tree::<K>::create(Arc::new(pool), "t").unwrap()
}

fn pairs_of<M: Medium, K: Key, S: FastFairSpec, const N: usize>(
    tree: &FastFairTree<M, K, S, N>,
    bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
    order: Order,
) -> Vec<(K::Owned, u64)> {
    let mut pairs = Vec::new();
    tree.scan(bounds, order, &mut |key, value| {
        pairs.push((K::to_owned(key), value));
        ControlFlow::Continue(())
    })
    .unwrap();
    pairs
}

#[derive(Clone, Debug)]
enum Step<T> {
    Insert(T, u64),
    Update(T, u64),
    Upsert(T, u64),
    Remove(T),
    Scan(T, T, u8),
    MultiGet(Vec<T>),
    RemoveAll,
}

fn steps<T: Clone + core::fmt::Debug + 'static>(
    key: impl Strategy<Value = T> + Clone + 'static,
    length: usize,
) -> impl Strategy<Value = Vec<Step<T>>> {
    let value = prop_oneof![Just(0), Just(u64::MAX), Just(7), any::<u64>()];
    let step = prop_oneof![
        40 => (key.clone(), value.clone()).prop_map(|(k, v)| Step::Insert(k, v)),
        5 => (key.clone(), value.clone()).prop_map(|(k, v)| Step::Update(k, v)),
        20 => (key.clone(), value).prop_map(|(k, v)| Step::Upsert(k, v)),
        30 => key.clone().prop_map(Step::Remove),
        3 => (key.clone(), key.clone(), any::<u8>()).prop_map(|(a, b, s)| Step::Scan(a, b, s)),
        2 => prop::collection::vec(key, 0..40).prop_map(Step::MultiGet),
        1 => Just(Step::RemoveAll),
    ];
    prop::collection::vec(step, 1..length)
}

fn run_steps<K: Key>(steps: Vec<Step<K::Owned>>) {
    let tree = tree::<K>();
    let mut model = BTreeMap::new();
    for step in steps {
        match step {
            Step::Insert(key, value) => {
                let former = tree.insert(K::borrow(&key), value).unwrap();
                assert_eq!(former, model.get(&key).copied());
                model.entry(key).or_insert(value);
            }
            Step::Update(key, value) => {
                let former = tree.update(K::borrow(&key), value).unwrap();
                assert_eq!(former, model.get(&key).copied());
                model.entry(key).and_modify(|v| *v = value);
            }
            Step::Upsert(key, value) => {
                let former = tree.upsert(K::borrow(&key), value).unwrap();
                assert_eq!(former, model.insert(key, value));
            }
            Step::Remove(key) => {
                assert_eq!(tree.remove(K::borrow(&key)).unwrap(), model.remove(&key));
            }
            Step::Scan(a, b, shape) => check_scan(&tree, &model, &a, &b, shape),
            Step::MultiGet(keys) => {
                let keys: Vec<_> = keys.iter().map(K::borrow).collect();
                let mut values = vec![Some(1); keys.len()];
                tree.multi_get(&keys, &mut values).unwrap();
                for (&key, value) in keys.iter().zip(values) {
                    assert_eq!(value, model.get(&K::to_owned(key)).copied());
                    assert_eq!(value, tree.get(key).unwrap());
                }
            }
            Step::RemoveAll => {
                for (key, value) in core::mem::take(&mut model) {
                    assert_eq!(tree.remove(K::borrow(&key)).unwrap(), Some(value));
                }
                let stats = tree.check().unwrap();
                assert_eq!((stats.leaves, stats.height), (1, 1), "an empty tree is one leaf");
            }
        }
    }
    assert_eq!(tree.check().unwrap().keys, model.len() as u64);
    let all = || (Bound::Unbounded, Bound::Unbounded);
    assert!(pairs_of(&tree, all(), Order::Ascending).into_iter().eq(model.clone()));
    assert!(pairs_of(&tree, all(), Order::Descending).into_iter().eq(model.into_iter().rev()));
}

fn check_scan<K: Key>(
    tree: &Tree<K>,
    model: &BTreeMap<K::Owned, u64>,
    a: &K::Owned,
    b: &K::Owned,
    shape: u8,
) {
    let bound = |key, shape| match shape % 3 {
        0 => Bound::Included(key),
        1 => Bound::Excluded(key),
        _ => Bound::Unbounded,
    };
    let bounds = (bound(a, shape), bound(b, shape / 3));
    let within = |key: &K::Owned| core::ops::RangeBounds::contains(&(bounds.0, bounds.1), key);
    let expected: Vec<_> =
        model.iter().filter(|(key, _)| within(key)).map(|(k, &v)| (k.clone(), v)).collect();
    let borrowed = || (bounds.0.map(K::borrow), bounds.1.map(K::borrow));
    assert_eq!(pairs_of(tree, borrowed(), Order::Ascending), expected);
    let down = pairs_of(tree, borrowed(), Order::Descending);
    assert!(down.iter().rev().eq(&expected));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn integer_keys_match_a_btree_map(
        steps in steps(
            prop_oneof![6 => 0u64..400, 1 => u64::MAX - 20..=u64::MAX, 2 => any::<u64>()], 2500,
        )
    ) {
        run_steps::<u64>(steps);
    }

    #[test]
    fn byte_string_keys_match_a_btree_map(
        steps in steps(prop::collection::vec(0u8..4, 0..6), 600)
    ) {
        run_steps::<Text>(steps);
    }
}

#[test]
fn inserts_and_removes_in_every_order() {
    let shuffled = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let orders: [fn(u64) -> u64; 3] =
        [|i| i, |i| u64::MAX - i, |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)];
    for key_of in orders {
        let tree = tree::<u64>();
        let keys: Vec<u64> = (0..20_000).map(key_of).collect();
        for &key in &keys {
            assert_eq!(tree.insert(key, !key).unwrap(), None);
        }
        let stats = tree.check().unwrap();
        assert!(stats.height >= 4 && stats.keys == 20_000, "{stats:?}");
        assert_eq!(stats.blocks + 1, tree.pool().usage().blocks);
        let mut order: Vec<u64> = keys.clone();
        order.sort_by_key(|&key| shuffled(key ^ 0x5555));
        for key in order {
            assert_eq!(tree.remove(key).unwrap(), Some(!key));
        }
        let stats = tree.check().unwrap();
        assert_eq!((stats.keys, stats.leaves, stats.height), (0, 1, 1));
    }
}

#[test]
fn ascending_inserts_fill_leaves() {
    let tree = tree::<u64>();
    for key in 0..100 * CAPACITY as u64 {
        tree.insert(key, 0).unwrap();
    }
    assert_eq!(tree.check().unwrap().leaves, 100);
}

/// Two writers may both find that a node lacks a separator, and both post it.
#[test]
fn posting_is_idempotent() {
    for step in [1, u64::MAX] {
        let tree = tree::<u64>();
        for i in 0..3_000u64 {
            tree.insert(i.wrapping_mul(step), i).unwrap();
        }
        let stats = tree.check().unwrap();
        assert!(stats.height > 3);
        let mut leftmost = tree.root_node().unwrap();
        while leftmost.level() > 0 {
            let mut node = tree.node(PmPtr::new(leftmost.value(0)), leftmost.level() - 1).unwrap();
            leftmost = node;
            while !node.sibling().is_null() {
                node = tree.node(node.sibling(), node.level()).unwrap();
                tree.post(node.at(), &tree.pool().pin()).unwrap();
            }
        }
        assert_eq!(tree.check().unwrap(), stats);
    }
}

#[test]
fn operations_cost_exactly_the_budget() {
    operations_cost::<FastFair<256>>();
    operations_cost::<FastFairR<256>>();
    operations_cost::<FastFairWide<256>>();
}

/// A shift costs the lines from its position to the end of the array, and the fences of as many
/// flushes.
fn operations_cost<S: FastFairSpec>() {
    let fences = u64::from(S::Form::FENCES);
    let capacity = ShiftNode::<Mapped, S::Form, 256>::CAPACITY;
    let line_of = |index: usize| (48 + 8 * S::Form::ENTRY_WORDS * index) / 64;
    let medium = || Count::new(Mapped::anonymous(4 << 20).unwrap());
    let cost = |counts: Counts| (counts.lines, counts.fences);
    let budget = S::SPEC.budget;
    let (mut insert_most, mut remove_most) = (0, 0);
    for count in 0..=capacity {
        for place in 0..=count {
            let pool = Arc::new(Pool::create(medium()).unwrap());
            let tree = FastFairTree::<_, u64, S, 256>::create(pool, "t").unwrap();
            for i in 0..count as u64 {
                tree.insert(10 * (i + 1), i).unwrap();
            }
            let medium = tree.pool().medium();
            let _ = medium.take();
            if count < capacity {
                tree.insert(10 * place as u64 + 5, 1).unwrap();
                let lines = (line_of(count) - line_of(place) + 1) as u64;
                assert_eq!(
                    cost(medium.take()),
                    (lines, fences * lines),
                    "insert {place} of {count}"
                );
                insert_most = insert_most.max(lines);
                // The last entry is now at index `count`, in the line where the terminator was.
                tree.remove(10 * place as u64 + 5).unwrap();
                assert_eq!(
                    cost(medium.take()),
                    (lines, fences * lines),
                    "remove {place} of {count}"
                );
                remove_most = remove_most.max(lines);
            }
            if place < count {
                tree.update(10 * (place as u64 + 1), 9).unwrap();
                assert_eq!(cost(medium.take()), (1, fences));
                tree.get(10).unwrap();
                tree.insert(10, 3).unwrap();
                assert_eq!(cost(medium.take()), (0, 0));
            }
        }
    }
    assert_eq!((insert_most, remove_most), (4, 4));
    let most = |lines: u64| Cost::new(lines as u32, (fences * lines) as u32);
    assert_eq!(budget.insert, most(insert_most));
    assert_eq!(budget.remove, most(remove_most));
    assert_eq!(budget.update, most(1));
}

/// A split and a new root cost the lines of both new nodes, of the link, of the cut, of the insert
/// and of the root word. Each step is one flush, but for the insert, which is one a line.
#[test]
fn splits_cost_exactly_the_budget() {
    fn cost<S: FastFairSpec>(key: u64) -> (u64, u64) {
        let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
        let tree = FastFairTree::<_, u64, S, 256>::create(Arc::new(pool), "t").unwrap();
        for i in 1..=ShiftNode::<Mapped, S::Form, 256>::CAPACITY as u64 {
            tree.insert(10 * i, i).unwrap();
        }
        let medium = tree.pool().medium();
        let _ = medium.take();
        tree.insert(key, 0).unwrap();
        assert_eq!(tree.check().unwrap().leaves, 2);
        let counts = medium.take();
        (counts.lines, counts.fences)
    }
    // At the right edge nothing is cut, and the new entry comes with the sibling.
    assert_eq!(cost::<FastFairR<256>>(1000), (4 + 1 + 4 + 1, 4));
    assert_eq!(cost::<FastFair<256>>(1000), (4 + 1 + 4 + 1, 2 * 4));
    // Six entries stay, and shift by one over three lines.
    assert_eq!(cost::<FastFairR<256>>(5), (4 + 1 + 1 + 3 + 4 + 1, 5 + 3));
    assert_eq!(cost::<FastFair<256>>(5), (4 + 1 + 1 + 3 + 4 + 1, 2 * (5 + 3)));
    // Three entries of 32 B stay, and shift over as many lines.
    assert_eq!(cost::<FastFairWide<256>>(5), (4 + 1 + 1 + 3 + 4 + 1, 2 * (5 + 3)));
}

/// Makes the latch of a node stale, as those of all nodes are after an open.
fn age<M: Medium, S: FastFairSpec>(
    tree: &FastFairTree<M, u64, S, 256>,
    node: &ShiftNode<'_, M, S::Form, 256>,
) {
    tree.pool().medium().store_transient(&node.words()[4], 0);
    assert!(tree.latch(node).is_untouched());
}

/// A shift that a crash has interrupted leaves an entry twice. Readers take the right one, and
/// store nothing. The first writer that latches the leaf removes the left one, whatever it came
/// for.
#[test]
fn the_first_writer_completes_an_interrupted_shift() {
    fn check<S: FastFairSpec>(lines: u64) {
        let fences = u64::from(S::Form::FENCES);
        let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
        let tree = FastFairTree::<_, u64, S, 256>::create(Arc::new(pool), "t").unwrap();
        for key in 1..=5 {
            tree.insert(10 * key, key).unwrap();
        }
        let leaf = tree.root_node().unwrap();
        // As an insert at entry 1 leaves it, with the value of the new entry and not its key.
        let medium = tree.pool().medium();
        let word = |index: usize| &leaf.words()[6 + S::Form::ENTRY_WORDS * index..];
        for index in (1..5).rev() {
            for part in [1, 0] {
                medium.store(&word(index + 1)[part], medium.load(&word(index)[part]));
            }
        }
        medium.store(&word(1)[1], 77);
        age(&tree, &leaf);
        medium.take();
        let pairs: Vec<_> = (1..=5).map(|key| (10 * key, key)).collect();
        for turn in [false, true] {
            tree.shifts(&leaf).turn(turn);
            assert_eq!(pairs_of(&tree, ALL, Order::Ascending), pairs);
            let mut values = [None; 5];
            tree.multi_get(&[10, 20, 30, 40, 50], &mut values).unwrap();
            assert_eq!(values, [1, 2, 3, 4, 5].map(Some));
        }
        assert_eq!(tree.check().unwrap().keys, 5);
        assert_eq!((leaf.count(), medium.take().lines), (6, 0), "readers store nothing");
        assert_eq!(tree.insert(20, 0).unwrap(), Some(2));
        let counts = medium.take();
        assert_eq!((counts.lines, counts.fences), (lines, fences * lines));
        assert_eq!(leaf.count(), 5);
        assert_eq!(tree.update(20, 9).unwrap(), Some(2));
        let counts = medium.take();
        assert_eq!((counts.lines, counts.fences), (1, fences), "the second writer mends nothing");
        assert_eq!((tree.get(20).unwrap(), tree.check().unwrap().keys), (Some(9), 5));
    }
    check::<FastFair<256>>(2);
    check::<FastFairR<256>>(2);
    check::<FastFairWide<256>>(3);
}

/// A crash between the link and the cut of a split leaves the moved entries in both leaves, and the
/// new one without a separator. The first writer cuts; having passed to the new leaf, it posts it.
#[test]
fn the_first_writer_completes_an_interrupted_split() {
    type Tree = FastFairTree<Count<Mapped>, u64, FastFair<256>, 256>;
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let tree = Tree::create(Arc::new(pool), "t").unwrap();
    let keys = 1..=CAPACITY as u64;
    for key in keys.clone() {
        tree.insert(10 * key, key).unwrap();
    }
    let left = tree.root_node().unwrap();
    let upper: Vec<_> = (6..CAPACITY).map(|index| left.entry(index)).collect();
    let at = tree.pool().reserve(256).unwrap();
    let header = NodeHeader { sibling: PmPtr::NULL, low: upper[0].key, level: 0 };
    let right = ShiftNode::create(tree.pool(), at, header, &upper).unwrap();
    let medium = tree.pool().medium();
    let _ = left.link(at, medium.fence());
    age(&tree, &left);
    age(&tree, &right);
    medium.take();
    let pairs: Vec<_> = keys.map(|key| (10 * key, key)).collect();
    assert_eq!(pairs_of(&tree, ALL, Order::Ascending), pairs);
    let down: Vec<_> = pairs.iter().rev().copied().collect();
    assert_eq!(pairs_of(&tree, ALL, Order::Descending), down);
    for &(key, value) in &pairs {
        assert_eq!(tree.get(key).unwrap(), Some(value));
    }
    let stats = tree.check().unwrap();
    assert_eq!((stats.keys, stats.leaves, stats.height), (CAPACITY as u64, 2, 1));
    assert_eq!(medium.take().lines, 0, "readers store nothing");
    let last = 10 * CAPACITY as u64;
    assert_eq!(tree.update(last, 1).unwrap(), Some(CAPACITY as u64));
    let counts = medium.take();
    assert_eq!((counts.lines, counts.fences), (2, 4), "the cut and the update");
    assert_eq!((left.count(), tree.get(last).unwrap()), (6, Some(1)));
    assert_eq!(tree.remove(last).unwrap(), Some(1));
    let counts = medium.take();
    assert_eq!((counts.lines, counts.fences), (1 + 5, 2 + 4), "the remove and a new root");
    let stats = tree.check().unwrap();
    assert_eq!((stats.keys, stats.leaves, stats.height), (CAPACITY as u64 - 1, 2, 2));
}

/// Readers wait for no writer. Beside one, a lookup makes durable what its answer rests on.
#[test]
fn readers_beside_a_writer_wait_for_nothing_and_flush_their_answer() {
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let tree = FastFairTree::<_, u64, FastFairR<256>, 256>::create(Arc::new(pool), "t").unwrap();
    for i in 0..=CAPACITY as u64 {
        tree.insert(10 * (i + 1), i).unwrap(); // The last one goes to a leaf of its own.
    }
    let medium = tree.pool().medium();
    let mut state = DescentState::default();
    let leaf = tree.descend(SearchTarget::At(10), 0, &mut state).unwrap().unwrap();
    let cost = || {
        let counts = medium.take();
        (counts.lines, counts.fences)
    };
    for turn in [false, true] {
        tree.shifts(&leaf).turn(turn);
        let _ = cost();
        let read = |key| (tree.get(key).unwrap(), cost());
        assert_eq!(read(20), (Some(1), (0, 0)), "without a writer");
        let held = tree.latch(&leaf).lock().unwrap();
        assert_eq!(read(20), (Some(1), (1, 1)), "the entry's line");
        assert_eq!(read(25), (None, (1, 1)), "entries 1 and 2 share a line");
        assert_eq!(read(15), (None, (2, 1)), "entry 0 is in the header's line, entry 1 is not");
        assert_eq!(read(5), (None, (1, 1)), "entry 0 has no left neighbour");
        tree.settle_link(&leaf);
        assert_eq!(cost(), (1, 1), "the link's line");
        for order in [Order::Ascending, Order::Descending] {
            assert_eq!(pairs_of::<_, u64, _, 256>(&tree, ALL, order).len(), CAPACITY + 1);
            assert_eq!(cost(), (256 / 64, 1), "a scan flushes the leaf");
        }
        drop(held);
    }
}

#[test]
fn a_scan_below_the_least_key_finds_nothing() {
    let tree = tree::<u64>();
    for key in 0..40 {
        tree.insert(key, key).unwrap();
    }
    let below = (Bound::Unbounded, Bound::Excluded(0));
    assert_eq!(pairs_of(&tree, below, Order::Descending), []);
}

/// A terminator costs one line more if the next line holds entries from before a split.
#[test]
fn an_insert_in_a_split_node_writes_the_terminator() {
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let tree = FastFairTree::<_, u64, FastFairR<256>, 256>::create(Arc::new(pool), "t").unwrap();
    for i in 0..CAPACITY as u64 {
        tree.insert(1000 + i, i).unwrap();
    }
    tree.insert(0, 0).unwrap(); // Splits: entries 0..6 stay, and the new one.
    let medium = tree.pool().medium();
    let _ = medium.take();
    tree.insert(1, 0).unwrap(); // Seven become eight; entry 8 ends a line.
    assert_eq!(medium.take().lines, 2);
    tree.insert(2, 0).unwrap(); // Entry 9 starts a line that holds old entries.
    assert_eq!(medium.take().lines, 3, "the terminator's line and two of the shift");
    tree.remove(2).unwrap();
    let _ = medium.take();
    tree.insert(2, 0).unwrap();
    assert_eq!(medium.take().lines, 2, "the terminator exists already");
}

fn open<K: Key>(path: &Path) -> Result<Tree<K>, TreeError> {
    let medium =
        Mapped::open(path, &FileOptions::default()).map_err(bristlecone_pmem::PoolError::from)?;
    let (pool, opened) = Pool::open(medium)?;
    FastFairTree::open(Arc::new(pool), "t", opened)
}

fn create<K: Key>(path: &Path, bytes: u64) -> Tree<K> {
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(path, bytes, &options).unwrap()).unwrap();
    FastFairTree::create(Arc::new(pool), "t").unwrap()
}

#[test]
fn pairs_survive_a_close_and_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let mut tree = create::<Text>(&path, 1 << 20);
    let mut model = BTreeMap::new();
    for round in 0..6u64 {
        for i in 0..400 {
            let key = format!("key/{}", (i * 7 + round * 131) % 900).into_bytes();
            if i % 3 == 0 {
                assert_eq!(tree.remove(&key).unwrap(), model.remove(&key));
            } else {
                assert_eq!(tree.upsert(&key, i).unwrap(), model.insert(key, i));
            }
        }
        if round % 2 == 0 {
            Arc::into_inner(Box::new(tree).close().unwrap()).unwrap().close().unwrap();
        } else {
            drop(tree);
        }
        tree = open(&path).unwrap();
        let stats = tree.check().unwrap();
        assert_eq!(stats.keys, model.len() as u64);
        assert_eq!(stats.blocks + 1, tree.pool().usage().blocks);
        let all = (Bound::Unbounded, Bound::Unbounded);
        assert!(pairs_of(&tree, all, Order::Ascending).into_iter().eq(model.clone()));
    }
    // The file is still open in this process.
    assert!(matches!(open::<u64>(&path), Err(TreeError::Pool(_))));
    drop(tree);
    assert!(matches!(open::<u64>(&path), Err(TreeError::Foreign { .. })));
}

#[test]
fn a_full_pool_accepts_removes_and_then_inserts() {
    let pool = Pool::create(Mapped::anonymous(256 << 10).unwrap()).unwrap();
    pool.limit(256 << 10);
    let tree = Tree::<Text>::create(Arc::new(pool), "t").unwrap();
    let key = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    for _ in 0..3 {
        let mut count = 0;
        while tree.insert(&key(count), count).is_ok() {
            count += 1;
        }
        assert!(count > 500, "{count}");
        assert_eq!(tree.check().unwrap().keys, count);
        for i in 0..count {
            assert_eq!(tree.remove(&key(i)).unwrap(), Some(i));
        }
        let stats = tree.check().unwrap();
        assert_eq!((stats.keys, stats.leaves), (0, 1));
        // Retired blocks are free after every pinned thread of this process has unpinned.
        while tree.pool().usage().blocks != stats.blocks + 1 {
            tree.pool().collect();
            std::thread::yield_now();
        }
    }
}

/// Random damage causes an error or a wrong answer, but no panic, endless loop or stray access.
#[test]
fn damaged_nodes_cause_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let tree = create::<Text>(&path, 256 << 10);
    for i in 0..300u64 {
        tree.insert(&i.wrapping_mul(0x9E37_79B9).to_le_bytes(), i).unwrap();
    }
    let height = tree.check().unwrap().height;
    assert!(height >= 3);
    let root = tree.root.at.offset() as usize;
    drop(tree);
    let good = std::fs::read(&path).unwrap();
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for case in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..=random(3) {
            let mut at = root + 8 * random(3);
            while case % 10 > 0 && (at < 32 << 10 || bytes[at] == 0) {
                at = random(bytes.len()) / 8 * 8;
            }
            let value = match random(4) {
                0 => 0,
                1 => u64::MAX,
                2 => (random(32 << 3) as u64) << 10,
                _ => u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) ^ 1 << random(64),
            };
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        std::fs::write(&path, bytes).unwrap();
        let Ok(tree) = open::<Text>(&path) else {
            refused += 1;
            continue;
        };
        let _ = tree.check();
        let mut shown = 0;
        let all = (Bound::Unbounded, Bound::Unbounded);
        for order in [Order::Ascending, Order::Descending] {
            let _ = tree.scan(all, order, &mut |_, _| {
                shown += 1;
                assert!(shown < 10_000, "the scan does not end");
                ControlFlow::Continue(())
            });
        }
        for i in 0..300u64 {
            let key = i.wrapping_mul(0x9E37_79B9).to_le_bytes();
            let _ = (tree.get(&key), tree.remove(&key), tree.insert(&key, i));
        }
    }
    assert!(refused > 100, "{refused} of 400 were refused by open");
}

#[test]
fn concurrent_threads_leave_a_sound_tree() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 3_000;
    let tree = tree::<u64>();
    // Permanent keys between those that the threads insert and remove.
    for key in 0..200 {
        tree.insert(key * 100, key).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let tree = &tree;
            scope.spawn(move || churn(tree, thread, ROUNDS));
        }
        scope.spawn(|| {
            for round in 0..200 {
                let order = if round % 2 == 0 { Order::Ascending } else { Order::Descending };
                let mut keys: Vec<u64> = pairs_of(&tree, ALL, order).iter().map(|p| p.0).collect();
                if order == Order::Descending {
                    keys.reverse();
                }
                assert!(keys.is_sorted_by(|a, b| a < b));
                assert_eq!(keys.iter().filter(|&key| key % 100 == 0).count(), 200);
            }
        });
    });
    let stats = tree.check().unwrap();
    assert_eq!(stats.keys, 200);
    for key in 0..200 {
        assert_eq!(tree.remove(key * 100).unwrap(), Some(key));
    }
    let stats = tree.check().unwrap();
    assert_eq!((stats.keys, stats.leaves, stats.height), (0, 1, 1));
}

/// Inserts, reads and removes keys that only this thread uses, in waves that split and merge the
/// nodes it shares with other threads.
fn churn(tree: &Tree<u64>, thread: u64, rounds: u64) {
    let key = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 5000 * 4 + thread;
    for wave in 0..4 {
        let mut mine = BTreeMap::new();
        for i in 0..rounds / 2 {
            let key = key(wave * rounds + i);
            if key % 100 == 0 {
                continue;
            }
            assert_eq!(tree.upsert(key, i).unwrap(), mine.insert(key, i));
            assert_eq!(tree.get(key).unwrap(), Some(i));
        }
        let keys: Vec<u64> = mine.keys().copied().collect();
        let mut values = vec![None; keys.len()];
        tree.multi_get(&keys, &mut values).unwrap();
        assert!(values.into_iter().eq(mine.values().map(|&v| Some(v))));
        for (key, value) in mine {
            assert_eq!(tree.remove(key).unwrap(), Some(value));
            assert_eq!(tree.get(key).unwrap(), None);
        }
    }
}

/// Returns the number of entries that a leaf of 13 has left when removes make it join its
/// neighbour, which has 4.
fn entries_at_merge<D: Design>() -> u64 {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    let tree = D::Index::<_, u64>::create(Arc::new(pool), "tree").unwrap();
    for key in 1..=3 * 13 {
        tree.insert(key, key).unwrap();
    }
    for key in 13 + 5..=2 * 13 {
        tree.remove(key).unwrap();
    }
    assert_eq!(tree.check().unwrap().leaves, 3, "ascending keys leave full leaves");
    let merges = |&key: &u64| {
        tree.remove(key).unwrap();
        tree.check().unwrap().leaves == 2
    };
    13 - (1..=13).find(merges).expect("an empty leaf is unlinked")
}

#[test]
fn only_empty_leaves_merge_where_the_authors_code_merges_none() {
    assert_eq!(entries_at_merge::<FastFair<256>>(), 0);
    assert_eq!(entries_at_merge::<FastFairR<256>>(), 13 / 4);
}
