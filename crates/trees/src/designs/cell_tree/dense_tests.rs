//! Tests of leaves of dense cells.

use super::*;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::{Count, FileOptions};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use word::{CellKind, DenseCells, KEPT_RANGE};

type Index<M> = CellTreeIndex<M, u64, 1024>;
type SmallIndex<M> = CellTreeIndex<M, u64, 256>;

/// Returns the kinds of the leaves, in key order.
fn kinds<M: Medium, const BYTES: usize>(index: &CellTreeIndex<M, u64, BYTES>) -> Vec<CellKind> {
    let mut kinds = Vec::new();
    recover::walk::<u64, M>(&index.pool, index.first, BYTES, &mut |leaf, _, _| {
        kinds.push(leaf.header(index.pool.medium())?.1);
        Ok(())
    })
    .unwrap();
    kinds
}

fn dense_count<M: Medium, const BYTES: usize>(index: &CellTreeIndex<M, u64, BYTES>) -> usize {
    kinds(index).into_iter().filter(|kind| *kind == CellKind::Dense).count()
}

/// Returns an index with dense leaves, and its greatest key. `step` is the distance of keys.
fn grown(step: u64) -> (Index<Count<Mapped>>, u64) {
    let index = counted::<Index<_>>();
    for key in 0..400 {
        index.insert(key * 37 % 400 * step, key).unwrap();
    }
    assert!(dense_count(&index) > 2 && kinds(&index)[0] == CellKind::Wide);
    (index, 399 * step)
}

#[test]
fn an_operation_in_a_dense_leaf_costs_one_line_and_one_fence() {
    let (index, last) = grown(1 << 20);
    let leaves = index.check().unwrap().leaves;
    for key in (1..60).map(|part| (part * (last / 60)) | 1) {
        let lines = cost(&index, |index| assert_eq!(index.insert(key, 1).unwrap(), None));
        if index.check().unwrap().leaves == leaves {
            assert_eq!(lines, (1, 1), "insert of {key}");
        }
        let update = |index: &Index<_>| assert_eq!(index.update(key, 2).unwrap(), Some(1));
        assert_eq!(cost(&index, update), (1, 1), "update of {key}");
        let remove = |index: &Index<_>| assert_eq!(index.remove(key).unwrap(), Some(2));
        assert_eq!(cost(&index, remove), (1, 1), "remove of {key}");
        assert_eq!(index.get(key).unwrap(), None);
    }
    assert_eq!(index.check().unwrap().keys, 400);
}

/// Random inserts of keys as close as those of ten million of all keys, of which the first ones
/// are far from each other.
#[test]
fn random_inserts_of_close_keys_average_what_the_page_says() {
    let index = counted::<Index<_>>();
    let (mut state, count) = (7, 156_000);
    let (lines, fences) = cost(&index, |index| {
        for step in 0..count {
            let key = (random(&mut state) << 27) | (random(&mut state) >> 4);
            index.insert(key, step).unwrap();
        }
    });
    let [lines, fences] = [lines, fences].map(|sum| sum as f64 / count as f64);
    let stats = index.check().unwrap();
    let bytes = (stats.leaves * 1024) as f64 / count as f64;
    eprintln!("{lines} lines, {fences} fences, {bytes} B a pair");
    assert!(lines <= 1.34 && fences <= 1.04, "{lines} lines, {fences} fences");
    assert!(bytes <= 28.5, "{bytes}");
}

/// A range is dense if the low bits of its keys differ.
#[test]
fn a_range_is_dense_up_to_its_greatest_width() {
    let kind = |low: u64, high: Option<u64>| leaf::kind_of::<u64>(&low, high.as_ref());
    let low = (5 << 60) | 7;
    assert_eq!(kind(low, Some(low + KEPT_RANGE)), CellKind::Dense);
    assert_eq!(kind(low, Some(low + KEPT_RANGE + 1)), CellKind::Wide);
    assert_eq!(kind(low, Some(low + 1)), CellKind::Dense);
    assert_eq!((kind(0, None), kind(1, None)), (CellKind::Wide, CellKind::Wide));
    let last = u64::MAX - KEPT_RANGE + 1;
    assert_eq!((kind(last, None), kind(last - 1, None)), (CellKind::Dense, CellKind::Wide));
    assert_eq!(leaf::kind_of::<crate::Text>(&b"a".to_vec(), Some(&b"b".to_vec())), CellKind::Wide);
}

/// A merge links a new leaf to the one before a dense leaf, so the first leaf cannot be dense.
#[test]
fn a_first_leaf_of_dense_cells_is_refused() {
    let (index, _) = grown(1 << 20);
    let medium = index.pool.medium();
    let first = leaf::CellLeaf::new(&index.pool, index.first, 1024).unwrap();
    let cells = vec![cell::NewCell::<DenseCells>::default(); first.cells()];
    first.format(medium, (0, first.next(medium).unwrap()), &cells);
    let opened = Index::open(Arc::clone(&index.pool), "t", Opened::Clean);
    assert!(opened.and_then(|index| index.check()).is_err());
}

/// A header that says dense beside a range that is too wide is damage.
#[test]
fn a_dense_leaf_with_a_wide_range_is_refused() {
    let index = counted::<Index<_>>();
    for key in 0..46 {
        index.insert(key << 50, key).unwrap();
    }
    let medium = index.pool.medium();
    assert_eq!(kinds(&index), [CellKind::Wide; 2]);
    let first = leaf::CellLeaf::new(&index.pool, index.first, 1024).unwrap();
    let right = leaf::CellLeaf::new(&index.pool, first.next(medium).unwrap(), 1024).unwrap();
    let low = right.low(medium).unwrap();
    let cells = vec![cell::NewCell::<DenseCells>::default(); right.cells()];
    right.format(medium, (low, PmPtr::new(0)), &cells);
    assert!(matches!(index.check(), Err(TreeError::Pool(_))));
    let opened = Index::open(Arc::clone(&index.pool), "t", Opened::Clean);
    assert!(opened.and_then(|index| index.check()).is_err());
    // Without the checksum, another kind is damage by itself.
    let word = &index.pool.words(right.at, 8).unwrap()[4];
    for kind in [0, 2, 1 << 63] {
        medium.store(word, kind);
        assert!(right.low(medium).is_err(), "{kind}");
    }
}

fn key_of(shape: u64, number: u64) -> u64 {
    match shape {
        0 => number,
        1 => u64::MAX - number,
        2 => number << 40,
        3 => number << 43,
        4 => (number << 47).wrapping_add(number % 3).wrapping_sub(1),
        5 => ((number % 8) << 61) | (number / 8),
        _ => number.wrapping_mul(u64::MAX / 599),
    }
}

/// Sessions of growth and of shrinking with keys of one shape, each ended by a crash or a close.
fn survives<const BYTES: usize>(path: &Path, shape: u64, count: u64, steps: u64) {
    type Of<const BYTES: usize> = CellTreeIndex<Mapped, u64, BYTES>;
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(path, 1 << 20, &options).unwrap()).unwrap();
    let mut index = Of::<BYTES>::create(Arc::new(pool), "t").unwrap();
    let (mut model, mut state, mut dense) = (BTreeMap::new(), shape, 0);
    for session in 0..8 {
        let grows = session % 4 < 2;
        for step in 0..steps {
            let key = key_of(shape, random(&mut state) % count);
            let act = random(&mut state) % 8;
            if act < if grows { 5 } else { 3 } {
                assert_eq!(index.upsert(key, step).unwrap(), model.insert(key, step));
            } else if act == 5 {
                let old = model.get(&key).copied();
                assert_eq!(index.update(key, step).unwrap(), old);
                old.map(|_| model.insert(key, step));
            } else if act > 5 || !grows {
                assert_eq!(index.remove(key).unwrap(), model.remove(&key));
            }
            if !grows && let Some((&next, _)) = model.range(key..).next() {
                assert_eq!(index.remove(next).unwrap(), model.remove(&next));
            }
            assert_eq!(index.get(key).unwrap(), model.get(&key).copied(), "{key}");
        }
        dense += dense_count(&index);
        if session % 2 == 0 {
            drop(index);
        } else {
            Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
        }
        let (pool, opened) = Pool::open(Mapped::open(path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, session % 2 == 1);
        index = Of::<BYTES>::open(Arc::new(pool), "t", opened).unwrap();
        let stats = index.check().unwrap();
        // The pool itself has one block.
        assert_eq!(index.pool().usage().blocks, stats.blocks + 1, "session {session}");
        assert!(pairs(&index) == model, "session {session}");
    }
    // Most keys of these two shapes are too far from each other.
    assert!(dense > 0 || matches!(shape, 4 | 6), "shape {shape}");
    let all: Vec<_> = model.keys().copied().collect();
    for keys in [all.iter().collect::<Vec<_>>(), all.iter().rev().collect()] {
        for &key in &keys {
            assert_eq!(index.remove(*key).unwrap(), model.get(key).copied());
        }
        let stats = index.check().unwrap();
        assert_eq!((stats.keys, stats.leaves), (0, 1), "shape {shape}");
        for &key in &keys {
            assert_eq!(index.insert(*key, model[key]).unwrap(), None);
        }
    }
    assert!(pairs(&index) == model);
}

#[test]
fn pairs_of_any_width_survive_crashes_and_closes() {
    let dir = tempfile::tempdir().unwrap();
    for shape in 0..7 {
        survives::<256>(&dir.path().join(format!("small {shape}")), shape, 600, 3000);
        survives::<1024>(&dir.path().join(format!("large {shape}")), shape, 6000, 6000);
    }
}

/// Returns the notes of the leaves with hidden entries, in key order.
fn bounded(index: &Index<Count<Mapped>>) -> Vec<rows::Notes> {
    let mut found = Vec::new();
    recover::walk::<u64, _>(&index.pool, index.first, 1024, &mut |leaf, _, _| {
        let (medium, notes) =
            (index.pool.medium(), index.rows.row::<u64>(leaf.at, 1024).notes::<Count<Mapped>>());
        if notes.kind::<u64>() == CellKind::Dense && notes.bound().is_some() {
            let hidden =
                (0..leaf.cells()).map(|cell| leaf.hidden_in::<DenseCells, _>(medium, notes, cell));
            assert!(hidden.map(u64::count_ones).sum::<u32>() > 0);
            found.push(notes);
        }
        Ok(())
    })
    .unwrap();
    found
}

#[test]
fn moved_entries_of_a_dense_leaf_stay_hidden() {
    let (index, _) = grown(1 << 20);
    let mut key = 200 << 20;
    while bounded(&index).is_empty() {
        key += 1;
        assert_eq!(index.insert(key, key).unwrap(), None);
    }
    let before = pairs(&index);
    let opened = Index::open(Arc::clone(&index.pool), "t", Opened::Clean).unwrap();
    opened.visit_all().unwrap();
    assert_eq!(bounded(&opened), bounded(&index));
    assert!(pairs(&opened) == before);
    assert_eq!(opened.check().unwrap().keys, before.len() as u64);
    // An insert that takes the place of hidden entries costs what any other does.
    let free = before.keys().rev().find(|&&key| key < 200 << 20).unwrap() + 1;
    for key in free..free + 3 {
        let insert = |index: &Index<_>| assert_eq!(index.insert(key, 5).unwrap(), None);
        assert_eq!(cost(&opened, insert), (1, 1), "{key}");
    }
    assert_eq!(opened.check().unwrap().keys, before.len() as u64 + 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Keys within a range of a dense leaf, about as far from each other as its width, and the
    /// least and the greatest ones.
    #[test]
    fn close_and_far_keys_are_as_in_a_map(
        ops in prop::collection::vec((0..4_u8, 0..6_u8, 0..40_u64), 0..900),
    ) {
        let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
        let mut index = SmallIndex::create(Arc::new(pool), "t").unwrap();
        let mut model = BTreeMap::new();
        for (value, (act, cluster, number)) in (0..).zip(ops) {
            let key = match cluster {
                0 => number,
                1 => u64::MAX - number,
                2 => (1 << 63) + number,
                3 => number << 46,
                4 => (number << 48).wrapping_sub(1),
                _ => (1 << 62) + (number << 41),
            };
            match act {
                0..2 => {
                    let old = model.insert(key, value);
                    prop_assert_eq!(index.upsert(key, value).unwrap(), old);
                }
                2 => prop_assert_eq!(index.remove(key).unwrap(), model.remove(&key)),
                _ => {
                    let old = model.get(&key).copied();
                    prop_assert_eq!(index.update(key, value).unwrap(), old);
                    old.map(|_| model.insert(key, value));
                }
            }
            if value % 100 == 99 {
                index = SmallIndex::open(Arc::clone(&index.pool), "t", Opened::Clean).unwrap();
            }
        }
        prop_assert_eq!(index.check().unwrap().keys, model.len() as u64);
        prop_assert!(pairs(&index) == model);
    }
}
