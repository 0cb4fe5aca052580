//! Tests of the store over three designs. The crash explorer tests its recovery.

use super::*;
use crate::designs::{FastFair, IsleTree, WbTree};
use crate::erased::ErasedDesign;
use crate::index::{Order, TreeError};
use crate::spec::Cost;
use bristlecone_pmem::medium::{Count, FileOptions};
use bristlecone_pmem::{Mapped, Medium, PmPtr, Pool, PoolError};
use core::ops::{Bound, ControlFlow};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The fields of YCSB's default record.
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const ROOT: &str = "kv";

fn designs<M: Medium>() -> [ErasedDesign<M, KvKey>; 3] {
    [
        ErasedDesign::of::<IsleTree<256>>(),
        ErasedDesign::of::<WbTree<256>>(),
        ErasedDesign::of::<FastFair<256>>(),
    ]
}

fn store_of(design: &ErasedDesign<Mapped, KvKey>, bytes: u64) -> KvStore<Mapped> {
    let pool = Pool::create(Mapped::anonymous(bytes).unwrap()).unwrap();
    KvStore::create(design, Arc::new(pool), ROOT).unwrap()
}

fn get<M: Medium>(store: &KvStore<M>, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = vec![7; 3];
    store.get(key, &mut value).unwrap().then_some(value)
}

fn pairs<M: Medium>(store: &KvStore<M>, order: Order) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let scanned = store.scan(bounds, order, |key, value| {
        pairs.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    });
    scanned.unwrap();
    pairs
}

/// Checks that the store reaches every block in use but the one of the pool's header.
fn expect_no_leak<M: Medium>(store: &KvStore<M>) {
    store.pool().reclaim();
    let stats = store.check().unwrap();
    assert_eq!(store.pool().usage().blocks, stats.blocks + 1, "blocks that nothing reaches");
}

fn reopen(
    design: &ErasedDesign<Mapped, KvKey>,
    path: &Path,
    store: KvStore<Mapped>,
    is_clean: bool,
) -> KvStore<Mapped> {
    if is_clean {
        let pool = store.close().unwrap();
        Arc::into_inner(pool).expect("the store is its only user").close().unwrap();
    } else {
        drop(store);
    }
    let medium = Mapped::open(path, &FileOptions::default()).unwrap();
    let (pool, opened) = Pool::open(medium).unwrap();
    KvStore::open(design, Arc::new(pool), ROOT, opened).unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Put(Vec<u8>, Vec<u8>),
    UpdateField(Vec<u8>, usize, Vec<u8>),
    Delete(Vec<u8>),
    Reopen(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || prop::collection::vec(0_u8..3, 0..5);
    let value = || prop::collection::vec(any::<u8>(), 0..200);
    let field = prop::collection::vec(any::<u8>(), 0..40);
    let step = prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Step::Insert(key, value)),
        6 => (key(), value()).prop_map(|(key, value)| Step::Put(key, value)),
        6 => (key(), 0_usize..150, field)
            .prop_map(|(key, at, field)| Step::UpdateField(key, at, field)),
        6 => key().prop_map(Step::Delete),
        1 => any::<bool>().prop_map(Step::Reopen),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_store_is_a_map(steps in steps()) {
        for design in designs() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("kv.pool");
            let medium = Mapped::create(&path, 4 << 20, &FileOptions::default()).unwrap();
            let pool = Arc::new(Pool::create(medium).unwrap());
            let mut store = KvStore::create(&design, pool, ROOT).unwrap();
            let mut model = BTreeMap::new();
            for step in steps.clone() {
                match step {
                    Step::Insert(key, value) => {
                        let is_new = !model.contains_key(&key);
                        prop_assert_eq!(store.insert(&key, &value).unwrap(), is_new);
                        model.entry(key).or_insert(value);
                    }
                    Step::Put(key, value) => {
                        store.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                    Step::UpdateField(key, at, field) => {
                        let found = store.update_field(&key, at, &field);
                        let Some(value) = model.get_mut(&key) else {
                            prop_assert!(!found.unwrap());
                            continue;
                        };
                        if let Some(target) = value.get_mut(at..at + field.len()) {
                            target.copy_from_slice(&field);
                            prop_assert!(found.unwrap());
                        } else {
                            let is_refused = matches!(found, Err(KvError::NoField { .. }));
                            prop_assert!(is_refused);
                        }
                    }
                    Step::Delete(key) => {
                        let was_present = model.remove(&key).is_some();
                        prop_assert_eq!(store.delete(&key).unwrap(), was_present);
                    }
                    Step::Reopen(is_clean) => {
                        store = reopen(&design, &path, store, is_clean);
                        expect_no_leak(&store);
                    }
                }
            }
            for (key, value) in &model {
                let found = get(&store, key);
 prop_assert_eq!(found.as_ref(), Some(value));
            }
            let expected: Vec<_> = model.into_iter().collect();
            prop_assert_eq!(&pairs(&store, Order::Ascending), &expected);
            let reversed: Vec<_> = expected.into_iter().rev().collect();
            prop_assert_eq!(pairs(&store, Order::Descending), reversed);
            expect_no_leak(&store);
        }
    }
}

/// Counts one insert, update of a field, and delete of a record of YCSB beside another pair.
fn costs(design: &ErasedDesign<Count<Mapped>, KvKey>) -> [Cost; 3] {
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let store = KvStore::create(design, Arc::new(pool), ROOT).unwrap();
    let (key, value) = (b"user0002", [1; FIELDS * FIELD_BYTES]);
    store.insert(b"user0001", &value).unwrap();
    let count = || {
        let counts = store.pool().medium().take();
        Cost::new(counts.lines as u32, counts.fences as u32)
    };
    count();
    assert!(store.insert(key, &value).unwrap());
    let insert = count();
    assert!(store.update_field(key, FIELD_BYTES, &[2; FIELD_BYTES]).unwrap());
    let update = count();
    assert!(store.delete(key).unwrap());
    [insert, update, count()]
}

/// A record of 1000 B takes 16 lines and a fence above the index, and the key record one line. An
/// insert of `isle-tree` and of `fast-fair` also fences the key record. The pair of `wb-tree` lies
/// in the line of the slots. `fast-fair` appends here, so it shifts nothing, and fences before and
/// after its flush.
#[test]
fn operations_cost_the_index_and_the_record() {
    let cost = Cost::new;
    let expected = [
        [cost(19, 4), cost(17, 2), cost(2, 2)],
        [cost(20, 4), cost(17, 2), cost(3, 3)],
        [cost(18, 4), cost(17, 3), cost(1, 2)],
    ];
    for (design, expected) in designs().iter().zip(expected) {
        assert_eq!(costs(design), expected, "{}", design.spec.name);
    }
}

/// Two threads update fields of one value. Without the latch one would overwrite the other's field
/// by the old contents.
#[test]
fn updates_of_two_fields_are_both_kept() {
    const ROUNDS: u32 = 2_000;
    let store = store_of(&designs()[0], 4 << 20);
    store.insert(b"key", &[0; 8]).unwrap();
    std::thread::scope(|scope| {
        for at in [0, 4] {
            let store = &store;
            scope.spawn(move || {
                let mut value = Vec::new();
                for round in 1..=ROUNDS {
                    assert!(store.update_field(b"key", at, &round.to_le_bytes()).unwrap());
                    store.get(b"key", &mut value).unwrap();
                    assert_eq!(value[at..at + 4], round.to_le_bytes());
                }
            });
        }
    });
    assert_eq!(get(&store, b"key").unwrap(), [ROUNDS.to_le_bytes(); 2].concat());
    expect_no_leak(&store);
}

#[test]
fn a_record_that_no_entry_names_is_free_after_a_crash() {
    for design in designs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv.pool");
        let medium = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
        let store =
            KvStore::create(&design, Arc::new(Pool::create(medium).unwrap()), ROOT).unwrap();
        store.put(b"key", &[1; 500]).unwrap();
        value_record::write(store.pool(), &[2; 500]).unwrap();
        let store = reopen(&design, &path, store, false);
        assert_eq!(get(&store, b"key").unwrap(), [1; 500]);
        expect_no_leak(&store);
    }
}

#[test]
fn the_index_of_texts_does_not_open_the_store() {
    let design = &designs()[0];
    let pool = store_of(design, 1 << 20).close().unwrap();
    let text = ErasedDesign::<Mapped, crate::Text>::of::<IsleTree<256>>();
    let opened = (text.open)(pool, ROOT, bristlecone_pmem::pool::Opened::Clean);
    assert!(matches!(opened.err(), Some(TreeError::Foreign { .. })));
}

#[test]
fn lengths_beyond_the_limits_are_errors() {
    let store = store_of(&designs()[0], 4 << 20);
    let long_key = vec![0; crate::key::KEY_BYTES_MAX + 1];
    let long_value = vec![0; VALUE_BYTES_MAX + 1];
    assert!(matches!(store.get(&long_key, &mut Vec::new()), Err(KvError::KeyTooLong { .. })));
    assert!(matches!(store.put(b"key", &long_value), Err(KvError::ValueTooLong { .. })));
    store.put(&long_key[1..], &long_value[1..]).unwrap();
    assert_eq!(get(&store, &long_key[1..]).unwrap(), long_value[1..]);
    expect_no_leak(&store);
}

/// A length that would read past the record's block, or past the pool, is damage.
#[test]
fn a_damaged_length_is_named() {
    let store = store_of(&designs()[0], 1 << 20);
    store.put(b"key", b"value").unwrap();
    let at = store.pool().reserve(64).unwrap();
    for length in [VALUE_BYTES_MAX as u64 + 1, VALUE_BYTES_MAX as u64, u64::MAX] {
        store.pool().medium().store(&store.pool().words(at, 1).unwrap()[0], length);
        let mut value = Vec::new();
        assert!(value_record::read(store.pool(), at, &mut value).is_err(), "{length}");
    }
    assert!(value_record::read(store.pool(), PmPtr::new(12), &mut Vec::new()).is_err());
}

#[test]
fn a_full_store_changes_nothing_and_deletes() {
    for design in designs() {
        let pool = Pool::create(Mapped::anonymous(512 << 10).unwrap()).unwrap();
        pool.limit(512 << 10);
        let store = KvStore::create(&design, Arc::new(pool), ROOT).unwrap();
        let key = |number: u32| format!("user{number:04}").into_bytes();
        let mut count = 0;
        let error = loop {
            match store.insert(&key(count), &[3; 1000]) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, KvError::Tree(TreeError::Pool(PoolError::Full { .. }))), "{error}");
        assert_eq!(get(&store, &key(count)), None);
        expect_no_leak(&store);
        for number in 0..count {
            assert!(store.delete(&key(number)).unwrap());
        }
        expect_no_leak(&store);
        assert!(store.insert(&key(0), &[3; 1000]).unwrap());
    }
}
