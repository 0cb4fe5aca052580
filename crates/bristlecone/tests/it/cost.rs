//! The lines and fences of each operation, counted exactly against the budgets of the index.

use bristlecone::{KEY_BYTES_MAX, Store, VALUE_BYTES_MAX};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_trees::designs::CellTree;
use bristlecone_trees::{Cost, Design};

type Counted = Store<Count<Mapped>>;

fn counted() -> Counted {
    Store::create_on(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap()
}

fn cost(counts: Counts) -> (u64, u64) {
    (counts.lines, counts.fences)
}

/// Returns the lines and fences of a write: those of the index, and the lines and the fence of the
/// record if the pair needs one.
fn expected(key: &str, value: &[u8], index: Cost) -> (u64, u64) {
    let bytes = 8 + key.len().next_multiple_of(8) + value.len() + 4;
    let record = if key.len() <= 8 && value.len() <= 8 { 0 } else { bytes.div_ceil(64) };
    (record as u64 + u64::from(index.lines), u64::from(index.fences) + u64::from(record > 0))
}

/// If no leaf splits or merges, each operation meets its budget exactly.
#[test]
fn operations_meet_their_budgets_exactly() {
    let budget = CellTree::<1024>::SPEC.budget;
    for (prefix, value) in [0, 1, 8, 40, 44, 48, 100, 4000, 4097, 20_000]
        .into_iter()
        .flat_map(|bytes| ["short ", "a key of some length "].map(|key| (key, vec![7; bytes])))
    {
        let store = counted();
        let take = || cost(store.medium().take());
        take();
        for i in 0..8 {
            let key = format!("{prefix}{i}");
            assert!(store.insert(&key, &value).unwrap());
            let insert = take();
            assert_eq!(insert, expected(&key, &value, budget.insert), "insert of {key:?}");
            let Cost { lines, fences } = Store::insert_cost(key.len(), value.len());
            assert_eq!(insert, (u64::from(lines), u64::from(fences)), "insert of {key:?}");
            store.put(&key, &value).unwrap();
            assert_eq!(
                take(),
                expected(&key, &value, budget.update),
                "put of {key:?}, which is there"
            );
            assert!(!store.insert(&key, &value).unwrap());
            assert_eq!(take(), (0, 0), "insert of a key that is there");
            exchanges_meet_their_budgets(&store, &key, &value);
        }
        let removal = (u64::from(budget.remove.lines), u64::from(budget.remove.fences));
        let key = format!("{prefix}3");
        assert!(store.delete(&key).unwrap());
        assert_eq!(take(), removal, "delete");
        assert!(!store.delete(&key).unwrap());
        assert_eq!(take(), (0, 0), "delete of a key that is not there");
    }
}

/// An exchange costs what the insert, update or remove does that it turns out to be. The key is
/// there before and after.
fn exchanges_meet_their_budgets(store: &Counted, key: &str, value: &[u8]) {
    let budget = CellTree::<1024>::SPEC.budget;
    let take = || cost(store.medium().take());
    let update = expected(key, value, budget.update);
    let exchange = |old: Option<&[u8]>, new: Option<&[u8]>| {
        store.compare_exchange(key, old, new).unwrap().is_ok()
    };
    assert!(exchange(Some(value), Some(value)));
    assert_eq!(take(), update, "exchange of {key:?} for a value");
    assert!(!exchange(Some(b"another"), Some(value)) && !exchange(None, Some(value)));
    assert_eq!(take(), (0, 0), "exchange that fails");
    assert_eq!(store.swap(key, value).unwrap().as_deref(), Some(value));
    assert_eq!(take(), update, "swap of {key:?}");
    store.fetch_update(key, |value| value.map(<[u8]>::to_vec)).unwrap();
    assert_eq!(take(), update, "fetch_update of {key:?}");
    assert!(exchange(Some(value), None));
    assert_eq!(take(), (u64::from(budget.remove.lines), u64::from(budget.remove.fences)));
    assert!(exchange(None, None));
    assert_eq!(take(), (0, 0), "exchange of nothing for nothing");
    assert!(exchange(None, Some(value)));
    assert_eq!(take(), expected(key, value, budget.insert), "exchange of nothing for {key:?}");
}

#[test]
fn reads_write_nothing() {
    let store = counted();
    for i in 0..3000u32 {
        store.put(i.to_be_bytes(), i.to_le_bytes()).unwrap();
    }
    store.medium().take();
    assert_eq!(store.get(7u32.to_be_bytes()).unwrap().unwrap(), 7u32.to_le_bytes());
    assert_eq!(store.multi_get(&[[0; 4], [9; 4]]).unwrap().iter().flatten().count(), 1);
    assert_eq!((store.iter().count(), store.iter().rev().count()), (3000, 3000));
    assert_eq!(store.len().unwrap(), 3000);
    assert_eq!(cost(store.medium().take()), (0, 0));
}

/// With splits, a put of a short pair averages less than one line and one fence over its budget.
#[test]
fn splits_add_less_than_a_line_and_a_fence_to_a_put() {
    let store = counted();
    store.medium().take();
    let count = 20_000u64;
    for i in 0..count {
        let key = i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        store.put(key, i.to_le_bytes()).unwrap();
    }
    let counts = store.medium().take();
    let budget = CellTree::<1024>::SPEC.budget.insert;
    let lines = u64::from(budget.lines);
    assert!(counts.lines < count * (lines + 1), "{} lines for {count} puts", counts.lines);
    assert!(20 * counts.fences < 21 * count, "{} fences", counts.fences);
}

/// The sum of such lengths overflowed, which is a panic where overflow is checked.
#[test]
fn lengths_that_no_store_takes_cost_what_the_greatest_do() {
    let greatest = Store::insert_cost(KEY_BYTES_MAX, VALUE_BYTES_MAX);
    for (key_bytes, value_bytes) in [(usize::MAX, usize::MAX), (KEY_BYTES_MAX, usize::MAX - 4096)] {
        assert_eq!(Store::insert_cost(key_bytes, value_bytes), greatest);
    }
}
