//! Tests of the engine's structure. The conformance suite tests that it is a correct index.

use super::*;
use crate::designs::{Bristlecone, FpTree, FpTreeR, IsleTree, NvTree, NvTreeR};
use crate::index::Design;
use crate::key::Text;
use bristlecone_pmem::medium::{Count, FileOptions};
use bristlecone_pmem::{Mapped, Pool, PoolError};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

type Index<K> = <FpTreeR<256> as Design>::Index<Mapped, K>;
type FpLeaf = <FpTreeR<256> as HybridSpec>::Leaf;

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
    let stats = index.check().unwrap();
    assert_eq!((stats.keys, stats.leaves, stats.height), (0, 1, 2));
}

type AppendOnly = <NvTreeR<256> as Design>::Index<Mapped, u64>;

/// Inserts `count` keys and removes all but one in eight. Returns the number of leaves before and
/// after.
fn remove_most(count: u64) -> (u64, u64) {
    let pool = Pool::create(Mapped::anonymous(8 << 20).unwrap()).unwrap();
    let index = AppendOnly::create(Arc::new(pool), "t").unwrap();
    let keys: Vec<u64> = (0..count).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    for &key in &keys {
        assert_eq!(index.insert(key, !key).unwrap(), None);
    }
    let before = index.check().unwrap().leaves;
    for (_, &key) in keys.iter().enumerate().filter(|(i, _)| i % 8 != 0) {
        assert_eq!(index.remove(key).unwrap(), Some(!key));
    }
    let stats = index.check().unwrap();
    assert_eq!(stats.keys, count.div_ceil(8));
    for (i, &key) in keys.iter().enumerate() {
        assert_eq!(index.get(key).unwrap(), (i % 8 == 0).then_some(!key));
    }
    for &key in keys.iter().step_by(8) {
        assert_eq!(index.remove(key).unwrap(), Some(!key));
    }
    let emptied = index.check().unwrap();
    assert_eq!((emptied.keys, emptied.leaves, emptied.height), (0, 1, 2));
    (before, stats.leaves)
}

/// An append-only leaf has no space left although most of its entries have been removed.
#[test]
fn sparse_leaves_without_room_are_merged() {
    let (before, after) = remove_most(20_000);
    assert!(after * 4 < before, "{after} of {before} leaves remain");
}

/// A full leaf of two-element updates is replaced, and sparse leaves merge into fresh ones.
#[test]
fn updates_of_two_elements_replace_full_leaves() {
    type Published = <NvTree<256> as Design>::Index<Mapped, u64>;
    let pool = Pool::create(Mapped::anonymous(8 << 20).unwrap()).unwrap();
    let index = Published::create(Arc::new(pool), "t").unwrap();
    for key in 0..100u64 {
        assert_eq!(index.insert(key, 0).unwrap(), None);
    }
    let leaves = index.check().unwrap().leaves;
    for round in 1..20u64 {
        for key in 0..100 {
            assert_eq!(index.update(key, round).unwrap(), Some(round - 1));
        }
    }
    assert!(index.check().unwrap().leaves >= leaves);
    for key in (0..100).filter(|key| key % 8 != 0) {
        assert_eq!(index.remove(key).unwrap(), Some(19));
    }
    let stats = index.check().unwrap();
    assert_eq!(stats.keys, 13);
    assert!(stats.leaves < leaves, "{} of {leaves} leaves remain", stats.leaves);
}

/// Damage gives the second of two leaves a low key that the leaf itself covers.
#[test]
fn a_leaf_that_is_its_own_left_neighbour_is_damage() {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let index = Hybrid::<NvTree<256>, _, u64>::create(Arc::new(pool), "t").unwrap();
    for key in 0..10 {
        index.insert(key, key).unwrap();
    }
    let first = index.leaf(PmPtr::new(index.load(&index.root_words().unwrap()[0]))).unwrap();
    let second = index.leaf(index.next(&first)).unwrap();
    let low = <NvTree<256> as HybridSpec>::Leaf::LOW;
    index.pool.medium().store(&second.words[low], 7);
    let refused = (20..40).find_map(|key| index.insert(key, key).err()).unwrap();
    assert!(matches!(refused, TreeError::Pool(PoolError::Corrupt(_))), "{refused}");
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
        let stats = open.check().unwrap();
        if clean {
            Arc::into_inner(Box::new(open).close().unwrap()).unwrap().close().unwrap();
        } else {
            drop(open);
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, clean);
        let again = Index::<crate::Text>::open(Arc::new(pool), "t", opened).unwrap();
        let reopened = again.check().unwrap();
        assert_eq!((reopened.keys, reopened.blocks), (stats.keys, stats.blocks));
        assert_eq!(again.pool().usage().blocks, reopened.blocks + 1);
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

/// Writes `word` to the file at `path` at the offset of `target`.
fn overwrite(path: &Path, target: PmPtr, word: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&word.to_le_bytes(), target.offset()).unwrap();
}

/// A latch word that is held, with the nonce of any session: a file of a power cut can hold the
/// words of all earlier ones.
#[test]
fn a_latch_that_an_earlier_session_left_held_is_free_after_a_close_and_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 4 << 20, &options).unwrap()).unwrap();
    let mut nonces = vec![0, pool.nonce()];
    let index = Index::<u64>::create(Arc::new(pool), "t").unwrap();
    index.insert(7, 70).unwrap();
    let leaf = index.leaf(PmPtr::new(index.load(&index.root_words().unwrap()[0]))).unwrap();
    let latch = index.pool.offset_of(&leaf.words[<FpTreeR<256> as HybridSpec>::Leaf::LATCH]);
    let mut index = Some(index);
    for session in 0..12 {
        let open = index.take().unwrap();
        assert!(open.upsert(7, session).unwrap().is_some());
        let clean = session % 3 > 0;
        if clean {
            Arc::into_inner(Box::new(open).close().unwrap()).unwrap().close().unwrap();
        } else {
            drop(open);
        }
        for nonce in &nonces {
            overwrite(&path, latch, nonce << 40 | 1);
            let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
            let again = Index::<u64>::open(Arc::new(pool), "t", opened).unwrap();
            assert_eq!(again.get(7).unwrap(), Some(session));
            assert_eq!(again.upsert(7, session).unwrap(), Some(session));
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        nonces = [vec![pool.nonce()], nonces].concat();
        nonces.truncate(5);
        index = Some(Index::<u64>::open(Arc::new(pool), "t", opened).unwrap());
    }
}

/// The words of the root block that lead to the checkpoint are hints: any value of them opens.
#[test]
fn damage_to_the_hint_of_a_close_is_repaired_at_the_first_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let index = Index::<u64>::create(Arc::new(pool), "t").unwrap();
    (0..100).for_each(|key| assert_eq!(index.insert(key, !key).unwrap(), None));
    let hints = PmPtr::new(index.root.offset() + 8);
    Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let at = hints.offset() as usize;
    let hint = u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    for damage in
        [u64::MAX, 1 << 20, hint + 1, hint ^ 1 << 40, (1 << 20) - 8, hint + 64, 8, hint ^ 64]
    {
        std::fs::write(&path, &whole).unwrap();
        overwrite(&path, hints, damage);
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened, Opened::Clean);
        let index = Index::<u64>::open(Arc::new(pool), "t", opened).unwrap();
        assert_eq!(index.pool.rebuilt_count(), 1, "{damage:#x}");
        assert!((0..100).all(|key| index.get(key).unwrap() == Some(!key)), "{damage:#x}");
    }
}

/// The scan finds its next leaf to be the first one again and again, which is no sign of damage
/// while it gets on.
#[test]
fn a_scan_may_remove_all_that_it_visits() {
    let pool = Pool::create(Mapped::anonymous(16 << 20).unwrap()).unwrap();
    let index = <FpTree<256> as Design>::Index::<Mapped, u64>::create(Arc::new(pool), "t").unwrap();
    let keys = 60_000;
    for key in 0..keys {
        assert_eq!(index.insert(key, !key).unwrap(), None);
    }
    assert!(index.check().unwrap().leaves > u64::from(Restarts::LIMIT));
    let mut visited = 0;
    let all = (Bound::Unbounded, Bound::Unbounded);
    let scanned = index.scan(all, Order::Ascending, &mut |key, value| {
        assert_eq!((key, value), (visited, !visited));
        assert_eq!(index.remove(key).unwrap(), Some(value));
        visited += 1;
        ControlFlow::Continue(())
    });
    scanned.unwrap_or_else(|error| panic!("after {visited} keys: {error}"));
    assert_eq!((visited, index.check().unwrap().keys), (keys, 0));
}

/// A recovery of one index would free the blocks of the other, and the next insert use them.
#[test]
fn no_index_recovers_in_a_pool_with_another_root() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Arc::new(Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap());
    let names = ["first", "second"];
    let both = names.map(|name| Index::<u64>::create(Arc::clone(&pool), name).unwrap());
    for key in 0..100 {
        assert!(both.iter().all(|index| index.insert(key, !key).unwrap().is_none()));
    }
    let open_both = || {
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        let pool = Arc::new(pool);
        (names.map(|name| Index::<u64>::open(Arc::clone(&pool), name, opened)), pool)
    };
    for index in both {
        drop(Box::new(index).close().unwrap());
    }
    Arc::into_inner(pool).unwrap().close().unwrap();
    let (both, pool) = open_both();
    for index in &both {
        let index = index.as_ref().unwrap();
        assert!((0..100).all(|key| index.get(key).unwrap() == Some(!key)));
    }
    drop((both, pool)); // as a crash leaves it
    let (both, pool) = open_both();
    for index in &both {
        let error = index.as_ref().expect_err("it would free what is not its own");
        assert!(matches!(error, TreeError::Shared { roots: 2 }), "{error}");
    }
    assert!(pool.is_recovering());
}

/// Returns an index with over 1000 leaves, after leaves were split and merged.
fn grown_index() -> Index<u64> {
    let index = index::<u64>();
    let keys: Vec<u64> = (0..40_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    for &key in &keys {
        index.insert(key, key).unwrap();
    }
    for &key in keys.iter().filter(|&key| key % 3 == 0 || key >> 60 == 7) {
        index.remove(key).unwrap();
    }
    index
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    fn leaves(&self, crashed: bool) -> Result<Vec<PmPtr>, Corrupt> {
        Ok(self.links(crashed)?.into_iter().map(|link| link.at).collect())
    }
}

/// Returns the leaves in order, following one link after the other.
fn leaves_by_links(index: &Index<u64>) -> Vec<PmPtr> {
    let mut leaves = Vec::new();
    let mut at = PmPtr::new(index.load(&index.root_words().unwrap()[0]));
    while !at.is_null() {
        leaves.push(at);
        at = index.next(&index.leaf(at).unwrap());
    }
    leaves
}

#[test]
fn interleaved_walks_find_the_leaves_in_order() {
    let index = grown_index();
    let leaves = leaves_by_links(&index);
    assert!(
        leaves.len() > 1000 && index.walk_starts().len() > 50,
        "too few leaves or walks for the test"
    );
    assert!(index.leaves(false).unwrap() == leaves);
}

#[test]
fn a_chain_with_a_cycle_or_a_bad_link_is_damage() {
    let index = grown_index();
    let leaves = leaves_by_links(&index);
    let (middle, last) = (leaves[leaves.len() / 2], leaves[leaves.len() - 1]);
    let outside = index.pool.medium().len();
    for (from, to) in
        [(last, leaves[0]), (last, last), (last, middle), (middle, PmPtr::new(middle.offset() + 8))]
            .into_iter()
            .chain([(middle, PmPtr::new(outside)), (middle, leaves[1])])
    {
        let leaf = index.leaf(from).unwrap();
        let next = index.next(&leaf);
        let link = &leaf.words[<FpLeaf as Leaf>::NEXT];
        index.pool.medium().store(link, <FpLeaf as Leaf>::encode_next(to.offset()));
        assert!(index.leaves(false).is_err(), "{from:?} leads to {to:?}");
        index.pool.medium().store(link, <FpLeaf as Leaf>::encode_next(next.offset()));
    }
    assert!(index.leaves(false).unwrap() == leaves);
}

#[test]
fn a_zeroed_link_is_damage_if_leaves_have_checksums() {
    type Checksummed = <Bristlecone as Design>::Index<Mapped, u64>;
    type Leaf512 = <Bristlecone as HybridSpec>::Leaf;
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    let index = Checksummed::create(Arc::new(pool), "t").unwrap();
    (0..1000).for_each(|key| assert_eq!(index.insert(key, key).unwrap(), None));
    let leaves = index.leaves(false).unwrap();
    for &at in &leaves {
        let link = &index.leaf(at).unwrap().words[<Leaf512 as Leaf>::NEXT];
        let word = index.pool.medium().load(link);
        index.pool.medium().store(link, 0);
        assert!(index.leaves(false).is_err() && index.check().is_err());
        index.pool.medium().store(link, word);
    }
    assert!(index.leaves(false).unwrap() == leaves);
}

/// A remove is durable before the leaf is merged. Damage to the neighbour is the neighbour's.
#[test]
fn a_remove_succeeds_beside_a_damaged_neighbour() {
    type Checksummed = <Bristlecone as Design>::Index<Mapped, u64>;
    const ENTRY: usize = 16;
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    let index = Checksummed::create(Arc::new(pool), "t").unwrap();
    (0..1000).for_each(|key| assert_eq!(index.insert(key, key).unwrap(), None));
    let leaves = index.leaves(false).unwrap();
    let low = |leaf: usize| index.low(&index.leaf(leaves[leaf]).unwrap());
    // Keep the neighbour short enough for a merge, then damage an entry of it.
    let (middle, right) = (low(10)..low(11), low(11)..low(12));
    right.clone().skip(3).for_each(|key| assert!(index.remove(key).unwrap().is_some()));
    assert_eq!(index.leaves(false).unwrap().len(), leaves.len(), "no leaf is merged yet");
    let word = &index.leaf(leaves[11]).unwrap().words[ENTRY];
    let sound = index.pool.medium().load(word);
    index.pool.medium().store(word, sound ^ 1 << 63);
    for key in middle.clone() {
        assert_eq!(index.remove(key).unwrap(), Some(key));
        assert_eq!(index.get(key).unwrap(), None);
    }
    assert!(index.check().is_err(), "the damage is reported later");
    index.pool.medium().store(word, sound);
    let stats = index.check().unwrap();
    assert_eq!(stats.keys, 1000 - (middle.end - middle.start) - (right.end - right.start - 3));
}

/// Damages a separator beside a leaf that only a split of the leaf reads. The split must not leave
/// a linked leaf that no thread reaches: its pairs would be absent.
fn split_beside_a_damaged_separator<S: HybridSpec>() {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    let index = Hybrid::<S, Mapped, Text>::create(Arc::new(pool), "t").unwrap();
    let medium = index.pool.medium();
    let key = |number: u64| format!("aaaaaaaa{number:04}").into_bytes();
    let free_slots = |leaf| S::Leaf::free_slots(medium, index.leaf(leaf).unwrap().words);
    let mut numbers = 0;
    let leaves = loop {
        let leaves = index.leaves(false).unwrap();
        if leaves.len() == 3 && free_slots(leaves[2]) == 1 {
            break leaves;
        }
        assert_eq!(index.insert(&key(numbers), numbers).unwrap(), None);
        numbers += 1;
    };
    index.insert(b"c", numbers).unwrap(); // The last leaf is full.
    let low = PmPtr::new(index.low(&index.leaf(leaves[2]).unwrap()));
    let header = &index.pool.words(low, 1).unwrap()[0];
    let sound = medium.load(header);
    medium.store(header, sound ^ 1 << 38);
    // The prefix of this key is not that of the separator, so the way to the leaf reads no record.
    assert!(matches!(index.insert(b"b", 0), Err(TreeError::Pool(PoolError::Corrupt(_)))));
    medium.store(header, sound);
    assert!(index.leaves(false).unwrap() == leaves);
    for number in 0..numbers {
        assert_eq!(index.get(&key(number)).unwrap(), Some(number));
    }
    assert_eq!(index.insert(b"b", 0).unwrap(), None);
    assert_eq!(index.check().unwrap().keys, numbers + 2);
}

#[test]
fn a_split_beside_a_damaged_separator_moves_nothing() {
    split_beside_a_damaged_separator::<FpTreeR<256>>();
    split_beside_a_damaged_separator::<Bristlecone>();
}

#[test]
fn a_micro_logged_split_beside_a_damaged_separator_moves_nothing() {
    split_beside_a_damaged_separator::<FpTree<256>>();
}

/// The low key of a leaf is damaged so that its left neighbour seems to hold entries that belong to
/// the right: recovery must not drop them.
#[test]
fn recovery_drops_nothing_for_a_damaged_low_key() {
    type Checksummed = <Bristlecone as Design>::Index<Mapped, u64>;
    type Leaf512 = <Bristlecone as HybridSpec>::Leaf;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 4 << 20, &options).unwrap()).unwrap();
    let index = Checksummed::create(Arc::new(pool), "t").unwrap();
    (0..100).for_each(|key| assert_eq!(index.insert(key, key).unwrap(), None));
    let leaves = index.leaves(false).unwrap();
    let low = &index.leaf(leaves[1]).unwrap().words[<Leaf512 as Leaf>::LOW];
    let sound = index.pool.medium().load(low);
    index.pool.medium().store(low, sound - 5);
    drop(index);
    let open = || {
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        let pool = Arc::new(pool);
        (Arc::clone(&pool), Checksummed::open(pool, "t", opened))
    };
    let (pool, refused) = open();
    assert!(matches!(refused, Err(TreeError::Pool(PoolError::Corrupt(_)))));
    pool.medium().store(&pool.block(leaves[1], 64).unwrap()[<Leaf512 as Leaf>::LOW], sound);
    drop(pool);
    let index = open().1.unwrap();
    (0..100).for_each(|key| assert_eq!(index.get(key).unwrap(), Some(key)));
}

/// Inserts keys in a mixed order and removes them in another. Asserts that each replacement of a
/// full leaf, and each of two sparse ones, costs its `NODE / 64` lines and the link's, and that it
/// leaves no other block behind.
fn replacements_cost_their_leaves<const NODE: usize>() {
    type Tree<const NODE: usize> = <IsleTree<NODE> as Design>::Index<Count<Mapped>, u64>;
    const KEYS: u64 = 4_001;
    let medium = Count::new(Mapped::anonymous(4 << 20).unwrap());
    let pool = Pool::create(medium).unwrap();
    let tree = Tree::<NODE>::create(Arc::new(pool), "t").unwrap();
    let leaf_lines = NODE as u64 / 64;
    let mut before = tree.check().unwrap();
    let (mut splits, mut merges) = (0, 0);
    for i in 0..KEYS {
        tree.pool().medium().take();
        assert_eq!(tree.insert(i * 2_909 % KEYS, i).unwrap(), None);
        let counts = tree.pool().medium().take();
        let after = tree.check().unwrap();
        let split = after.leaves - before.leaves;
        assert_eq!(counts.lines, 2 + split * (2 * leaf_lines + 1), "insert {i}");
        assert_eq!(counts.fences, 2 + split * 3, "insert {i}");
        (splits, before) = (splits + split, after);
    }
    for i in 0..KEYS {
        tree.pool().medium().take();
        assert!(tree.remove(i * 1_009 % KEYS).unwrap().is_some());
        let counts = tree.pool().medium().take();
        let after = tree.check().unwrap();
        let merged = before.leaves - after.leaves;
        assert_eq!(counts.lines, 2 + merged * (leaf_lines + 1), "remove {i}");
        assert_eq!(counts.fences, 2 + merged * 3, "remove {i}");
        (merges, before) = (merges + merged, after);
    }
    assert_eq!(merges, splits);
    assert_eq!((before.keys, before.leaves, before.height), (0, 1, 2));
}

#[test]
fn a_leaf_of_isle_tree_is_replaced_at_the_published_cost() {
    replacements_cost_their_leaves::<256>();
    replacements_cost_their_leaves::<512>();
    replacements_cost_their_leaves::<2048>();
}

/// Leaves are merged as soon as both are less than half full, and not before.
#[test]
fn two_leaves_of_isle_tree_below_half_become_one() {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let tree =
        <IsleTree<256> as Design>::Index::<Mapped, u64>::create(Arc::new(pool), "t").unwrap();
    // Leaves of 12: a split leaves six and six, and the insert after it makes the right one seven.
    (0..13).for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
    assert_eq!(tree.check().unwrap().leaves, 2);
    (0..6).for_each(|key| assert_eq!(tree.remove(key).unwrap(), Some(key)));
    assert_eq!(tree.remove(6).unwrap(), Some(6));
    assert_eq!(tree.check().unwrap().leaves, 2, "the right leaf is half full");
    assert_eq!(tree.remove(7).unwrap(), Some(7));
    let stats = tree.check().unwrap();
    assert_eq!((stats.keys, stats.leaves), (5, 1));
}
