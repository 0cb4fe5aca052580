//! Damaged leaves, torn writes, and any bytes.

use super::super::CellTreeIndex;
use super::super::epoch::Ended;
use super::*;
use crate::index::PmIndex;
use crate::key::{PmPtr, Value};
use bristlecone_pmem::{Mapped, Medium, Pool};
use proptest::prelude::*;
use std::sync::Arc;

type Index = CellTreeIndex<Mapped, Record, { LeafBytes::BYTES }>;
type Bytes = [u8; LeafBytes::BYTES];

const STATE: usize = 8 * 4;

fn new_index() -> Index {
    let pool = Pool::create(Mapped::anonymous(1 << 22).unwrap()).unwrap();
    Index::create(Arc::new(pool), "cells").unwrap()
}

/// Writes a record of `key`, and its entry. The record is not fenced, as that of a writer.
fn put_record(index: &Index, key: &[u8], value: &[u8]) -> Value {
    let value = Record::write(&index.pool, key, value).unwrap();
    index.upsert_pair(key, value).unwrap();
    value
}

fn put_short(index: &Index, key: &[u8], value: &[u8]) {
    index.upsert_pair(key, Record::inline(key, value).unwrap()).unwrap();
}

/// Returns an index with short pairs and records, of one leaf if `count` is 30.
fn filled(count: u32) -> Index {
    let index = new_index();
    for i in 0..count {
        let key = format!("{:04}", i * 7 % count);
        if i % 3 == 0 {
            put_record(&index, format!("{key} with a record").as_bytes(), &i.to_le_bytes());
        } else {
            put_short(&index, key.as_bytes(), &i.to_le_bytes());
        }
    }
    index
}

fn bytes_at(pool: &Pool<Mapped>, at: PmPtr) -> Bytes {
    let mut bytes = [0; LeafBytes::BYTES];
    pool.medium().copy_out(pool.words(at, LeafBytes::BYTES / 8).unwrap(), &mut bytes);
    bytes
}

fn first_bytes(index: &Index) -> Bytes {
    bytes_at(&index.pool, index.first)
}

/// Returns the cells of the first leaf, with these bytes.
fn cells_of_first(index: &Index, bytes: &Bytes) -> Vec<CellBytes> {
    LeafBytes::new(index.first.offset(), bytes).cells(0).collect()
}

/// Returns the cells of the first leaf in the pool, as a recovery settles them; `None` for a
/// damaged one.
fn settled_cells(index: &Index) -> Vec<Option<Vec<Entry>>> {
    let leaf = CellLeaf::new(&index.pool, index.first, LeafBytes::BYTES).unwrap();
    (0..leaf.cells())
        .map(|cell| {
            let cell = leaf.cell::<PairCells>(cell);
            let word =
                cell.settled::<Record, Mapped>(&index.pool, Ended { epoch: 0, batch: 0 }).ok()?;
            let entry = |slot| cell.entry_of(index.pool.medium(), slot, word);
            Some(slots(word.valid()).map(entry).collect())
        })
        .collect()
}

fn store(index: &Index, at: PmPtr, bytes: &[u8]) {
    let words = index.pool.words(at, bytes.len() / 8).unwrap();
    for (word, bytes) in words.iter().zip(bytes.as_chunks().0) {
        index.pool.medium().store(word, u64::from_le_bytes(*bytes));
    }
}

#[test]
fn a_whole_leaf_gives_all_entries() {
    let index = filled(30);
    let bytes = first_bytes(&index);
    let leaf = LeafBytes::new(index.first.offset(), &bytes);
    leaf.verify_header().unwrap();
    assert_eq!((leaf.low(), leaf.next().unwrap().is_null()), (Ok(0), true));
    assert_eq!(leaf.batch(), Ok(0));
    assert!(leaf.has_entries());
    let cells = cells_of_first(&index, &bytes);
    assert!(cells.iter().all(|cell| cell.damage.is_none()));
    assert_eq!(cells.iter().map(|cell| cell.entries.len()).sum::<usize>(), 30);
    let settled: Vec<_> = cells.into_iter().map(|cell| Some(cell.entries)).collect();
    assert_eq!(settled, settled_cells(&index));
}

/// A copy of the leaf at another offset is none.
#[test]
fn a_leaf_elsewhere_has_neither_header_nor_cells() {
    let index = filled(30);
    let leaf = LeafBytes::new(index.first.offset() + 1024, &first_bytes(&index));
    assert!(leaf.verify_header().is_err() && leaf.low().is_err() && !leaf.has_entries());
}

#[test]
fn a_damaged_cell_is_named_and_hides_no_other() {
    let index = filled(30);
    let sound = first_bytes(&index);
    let cells = cells_of_first(&index, &sound);
    for (number, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.entries.is_empty()) {
        // Commit word: sum and valid slots; key and value of the first entry.
        for byte in [0, 7, 8, 16] {
            let mut bytes = sound;
            let at = 64 * (1 + number) + byte;
            bytes[at] ^= 1 << 2;
            let found = cells_of_first(&index, &bytes);
            if byte >= 8 && sound[at - byte] & 1 == 0 {
                assert_eq!(found, cells, "a free slot");
                continue;
            }
            let damage = found[number].damage.unwrap();
            assert_eq!(damage.at, index.first.offset() + 64 * (1 + number as u64));
            assert!(!found[number].is_whole);
            assert!(found[number].entries.iter().all(|it| !Record::is_inline(it.encoding)));
            for (other, cell) in cells.iter().enumerate().filter(|(other, _)| *other != number) {
                assert_eq!(&found[other], cell);
            }
        }
        assert!(cell.damage.is_none());
    }
}

#[test]
fn a_damaged_header_is_named_and_hides_no_cell() {
    let index = filled(200);
    let sound = first_bytes(&index);
    let cells = cells_of_first(&index, &sound);
    let with = |at: usize| {
        let mut bytes = sound;
        bytes[at] ^= 1;
        assert_eq!(cells_of_first(&index, &bytes), cells);
        LeafBytes::new(index.first.offset(), &bytes)
    };
    let is_whole = |leaf: &LeafBytes| {
        let low = leaf.low().is_ok();
        (leaf.next().is_ok(), low, leaf.verify_header().is_ok(), leaf.batch().is_ok())
    };
    let [next, low, check, epoch, state, batch] = [0, 8, 16, 24, STATE, 56].map(with);
    assert_eq!(is_whole(&next), (false, true, true, true));
    assert_eq!(is_whole(&low), (true, false, false, true));
    assert_eq!(is_whole(&check), (true, false, false, true));
    assert_eq!(is_whole(&epoch), (true, true, false, true));
    assert_eq!(is_whole(&state), (true, true, false, true));
    assert_eq!(is_whole(&batch), (true, true, true, false));
}

#[test]
fn a_cell_of_zeros_that_was_in_use_is_named() {
    let index = filled(200);
    let sound = first_bytes(&index);
    assert!(!LeafBytes::new(0, &sound).next().unwrap().is_null(), "a split has set the link");
    let used = u16::from_le_bytes([sound[STATE + 2], sound[STATE + 3]]);
    let cells = cells_of_first(&index, &sound);
    assert!(used.count_ones() > 3);
    for number in (0..15).filter(|number| used >> number & 1 == 1) {
        let line = 64 * (1 + number)..64 * (2 + number);
        let mut bytes = sound;
        bytes[line].fill(0);
        let found = cells_of_first(&index, &bytes);
        let damage = found[number].damage.unwrap();
        assert_eq!(
            (damage.at, damage.what),
            (index.first.offset() + 64 + 64 * number as u64, ZEROED)
        );
        assert!(found[number].entries.is_empty());
        assert_eq!(found.iter().filter(|cell| cell.damage.is_some()).count(), 1);
        assert_eq!(found.len(), cells.len());
    }
}

/// A crash keeps the sums of an update and not its value, or the other way round.
#[test]
fn a_torn_update_gives_the_value_before() {
    let index = filled(30);
    for i in 0..30u32 {
        let key = format!("{:04}", i * 7 % 30);
        if i % 3 == 0 {
            continue;
        }
        let before = first_bytes(&index);
        // Another length, and so another encoding.
        put_short(&index, key.as_bytes(), &u64::from(i + 100).to_le_bytes());
        let after = first_bytes(&index);
        let changed: Vec<_> = (0..128)
            .map(|word| 8 * word)
            .filter(|&at| before[at..at + 8] != after[at..at + 8])
            .collect();
        let value = *changed.iter().find(|&&at| at % 64 != 0 && at % 64 != 56).unwrap();
        let mut torn = after;
        torn[value..value + 8].copy_from_slice(&before[value..value + 8]);
        assert_ne!(torn, before);
        let found = cells_of_first(&index, &torn);
        assert_eq!(found, cells_of_first(&index, &before), "{key}");
        store(&index, index.first, &torn);
        let found: Vec<_> = found.into_iter().map(|cell| Some(cell.entries)).collect();
        assert_eq!(found, settled_cells(&index));
        // Damage beside it is no torn update.
        torn[value] ^= 1;
        let found = cells_of_first(&index, &torn);
        assert_eq!(found.iter().filter(|cell| cell.damage.is_some()).count(), 1);
        store(&index, index.first, &after);
    }
}

fn read_all(leaf: &LeafBytes, committed: u64) {
    let _ = (leaf.at(), leaf.low(), leaf.next(), leaf.batch().is_ok(), leaf.verify_header());
    let _ = leaf.has_entries();
    assert_eq!(leaf.cells(committed).count(), 15);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(prop_oneof![Just(0), Just(u8::MAX), any::<u8>()], 1024),
        (at, committed) in (0..1u64 << 53, any::<u64>()),
    ) {
        read_all(&LeafBytes::new(1024 * at, bytes.first_chunk().unwrap()), committed);
    }

    /// Each cell with a changed byte has the entries of before, or is named, and no other cell is.
    #[test]
    fn changed_bytes_are_named_or_have_no_meaning(
        changes in prop::collection::vec((64usize..1024, 1..=u8::MAX), 1..6),
    ) {
        let index = filled(30);
        let sound = first_bytes(&index);
        let cells = cells_of_first(&index, &sound);
        let mut bytes = sound;
        for &(at, change) in &changes {
            bytes[at] ^= change;
        }
        let found = cells_of_first(&index, &bytes);
        for (number, (found, cell)) in found.iter().zip(&cells).enumerate() {
            let line = 64 * (1 + number)..64 * (2 + number);
            if sound[line.clone()] == bytes[line] {
                prop_assert_eq!(found, cell);
            } else {
                prop_assert!(found.damage.is_some() || found.entries == cell.entries);
            }
        }
        read_all(&LeafBytes::new(index.first.offset(), &bytes), 0);
    }
}
