//! Salvage: what is left of a damaged store, read without a write.

use crate::{mapped, pairs, place};
use bristlecone::{Error, Pair, salvage};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Creates a store with short pairs, records, a long value and deleted pairs, and returns its
/// pairs.
fn filled(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let store = mapped().create(path).unwrap();
    for i in 0..600u32 {
        store.put(format!("s{i:05}"), (!i).to_le_bytes()).unwrap();
        store.put(format!("a key of some length {i:05}"), vec![i as u8; i as usize % 200]).unwrap();
    }
    // Where splits have left the pairs of before, their values are old.
    for i in 0..600u32 {
        store.put(format!("s{i:05}"), i.to_le_bytes()).unwrap();
    }
    store.put("long", vec![9; 100_000]).unwrap();
    for i in (0..600u32).step_by(3) {
        assert!(store.delete(format!("s{i:05}")).unwrap());
    }
    let all = pairs(&store);
    store.close().unwrap();
    all.into_iter().collect()
}

/// Returns the pairs of the store and the number of errors.
fn salvaged(path: &Path) -> (BTreeMap<Vec<u8>, Vec<u8>>, usize) {
    let before = fs::read(path).unwrap();
    let (found, lost): (Vec<_>, Vec<_>) = salvage(path).unwrap().partition(Result::is_ok);
    assert!(fs::read(path).unwrap() == before, "salvage must not write to the file");
    let found: Vec<Pair> = found.into_iter().map(Result::unwrap).collect();
    let count = found.len();
    let found: BTreeMap<_, _> = found.into_iter().collect();
    assert_eq!(found.len(), count, "no key comes twice");
    (found, lost.len())
}

#[test]
fn a_sound_store_is_salvaged_whole() {
    let place = place();
    let all = filled(&place.path);
    assert_eq!(salvaged(&place.path), (all.clone(), 0));
    drop(mapped().open(&place.path).unwrap()); // not closed
    assert_eq!(salvaged(&place.path), (all, 0));
}

#[test]
fn a_store_that_is_open_is_not_salvaged() {
    let place = place();
    let store = mapped().create(&place.path).unwrap();
    assert!(matches!(salvage(&place.path), Err(Error::InUse { .. })));
    drop(store);
    assert!(salvage(&place.path).unwrap().next().is_none());
}

/// The size of a leaf, and the offsets of fields of its header.
const LEAF: usize = 1024;
const NEXT: usize = 0;
const LOW: usize = 8;
const CHECK: usize = 16;
const STATE: usize = 32;

fn word_at(pool: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(pool[at..at + 8].try_into().unwrap())
}

/// Returns the offsets of the leaves, in key order.
fn leaves(pool: &[u8]) -> Vec<usize> {
    let first = word_at(pool, 0x2000) as usize - 1; // the block of the root
    let next = |leaf: &usize| {
        let next = word_at(pool, leaf + NEXT) as usize & ((1 << 48) - 1);
        (next != 0).then_some(next)
    };
    std::iter::successors(Some(first), next).collect()
}

/// Returns the offsets of the entries of the short pair of `number`, also old ones: the key word,
/// from the highest byte of the key on, and the value word.
fn copies_of(pool: &[u8], number: u32) -> Vec<usize> {
    let key = format!("s{number:05}");
    let key: Vec<u8> = key.bytes().rev().collect();
    let entry = [&[0; 2], &key[..], &u64::from(number).to_le_bytes()[..]].concat();
    (0x8000..pool.len() - 16).step_by(8).filter(|&at| pool[at..at + 16] == entry).collect()
}

/// Returns the offset of the entry of the short pair of `number`. A split leaves copies in leaves
/// before it.
fn entry_of(pool: &[u8], number: u32) -> usize {
    let copies = copies_of(pool, number);
    let in_leaf = |leaf: usize| copies.iter().find(|&&at| at / LEAF * LEAF == leaf);
    *leaves(pool).into_iter().rev().find_map(in_leaf).unwrap()
}

fn record_of(pool: &[u8], number: u32) -> usize {
    let key = format!("a key of some length {number:05}").into_bytes();
    pool.windows(key.len()).position(|bytes| bytes == key).unwrap()
}

/// Flips a bit at each of `places`, and returns what is salvaged, with the number of errors. No
/// pair has another value than in `all`.
fn salvaged_without(
    path: &Path,
    sound: &[u8],
    all: &BTreeMap<Vec<u8>, Vec<u8>>,
    places: &[usize],
) -> (BTreeMap<Vec<u8>, Vec<u8>>, usize) {
    let mut damaged = sound.to_vec();
    for &at in places {
        damaged[at] ^= 1;
    }
    fs::write(path, &damaged).unwrap();
    let (found, lost) = salvaged(path);
    for (key, value) in &found {
        assert_eq!(all.get(key), Some(value), "{}", key.escape_ascii());
    }
    (found, lost)
}

/// A damaged record hides its own pair alone.
#[test]
fn a_damaged_record_hides_one_pair() {
    let place = place();
    let all = filled(&place.path);
    let sound = fs::read(&place.path).unwrap();
    for at in [10, 40].map(|within| record_of(&sound, 123) + within) {
        let (found, lost) = salvaged_without(&place.path, &sound, &all, &[at]);
        assert_eq!((all.len() - found.len(), lost), (1, 1));
    }
}

/// A record of a store that was not closed may be torn. It is named all the same.
#[test]
fn a_damaged_record_of_a_store_that_was_not_closed_is_named() {
    let place = place();
    let store = mapped().create(&place.path).unwrap();
    for i in 0..40u32 {
        store.put(format!("a key of some length {i:05}"), vec![i as u8; 20]).unwrap();
    }
    let all: BTreeMap<_, _> = pairs(&store).into_iter().collect();
    drop(store);
    let sound = fs::read(&place.path).unwrap();
    for number in 0..40 {
        let at = record_of(&sound, number) + 40;
        let (found, lost) = salvaged_without(&place.path, &sound, &all, &[at]);
        assert_eq!((all.len() - found.len(), lost), (1, 1), "{number}");
    }
}

/// A damaged cell hides the short pairs that it holds. Its records have checksums of their own.
#[test]
fn a_damaged_cell_hides_its_short_pairs_alone() {
    let place = place();
    let all = filled(&place.path);
    let sound = fs::read(&place.path).unwrap();
    for number in [10, 301, 400, 550] {
        let entry = entry_of(&sound, number);
        for at in [entry, entry + 8, entry / 64 * 64 + 5] {
            let (found, lost) = salvaged_without(&place.path, &sound, &all, &[at]);
            assert!((1..=3).contains(&(all.len() - found.len())), "{}", found.len());
            assert_eq!(lost, 1);
            assert!(!found.contains_key(format!("s{number:05}").as_bytes()));
        }
    }
    // The entry that names record 123: the value word is the offset of the record.
    let record = (record_of(&sound, 123) - 8) as u64;
    let named = (0x8000..sound.len()).step_by(8).filter(|&at| word_at(&sound, at) == record);
    for at in named {
        let (found, lost) = salvaged_without(&place.path, &sound, &all, &[at / 64 * 64 + 5]);
        assert_eq!((found, lost), (all.clone(), 1));
    }
}

/// A damaged header is named, and hides nothing: the cells have sums of their own.
#[test]
fn a_damaged_header_hides_no_pair() {
    let place = place();
    let all = filled(&place.path);
    let sound = fs::read(&place.path).unwrap();
    let leaf_of = |at| at / LEAF * LEAF;
    let record = (record_of(&sound, 123) - 8) as u64;
    let named = (0x8000..sound.len()).step_by(8).find(|&at| word_at(&sound, at) == record);
    for leaf in [entry_of(&sound, 301), entry_of(&sound, 550), named.unwrap()].map(leaf_of) {
        for field in [LOW, CHECK, STATE] {
            let (found, lost) = salvaged_without(&place.path, &sound, &all, &[leaf + field]);
            assert_eq!((found.len(), lost), (all.len(), 1), "{leaf:#x} {field}");
        }
    }
}

/// Returns `true` if no other pair than a deleted one of [`filled`] has this key and value.
fn was_deleted(key: &[u8], value: &[u8]) -> bool {
    (0..600u32).step_by(3).any(|i| {
        let values = [i.to_le_bytes(), (!i).to_le_bytes()];
        format!("s{i:05}").as_bytes() == key && values.iter().any(|old| old == value)
    })
}

/// Damage to lines: no pair is lost unnamed or has an older value, and deleted pairs come back only
/// if a header is lost.
#[test]
fn a_lost_line_hides_what_it_holds_alone() {
    let place = place();
    let all = filled(&place.path);
    let sound = fs::read(&place.path).unwrap();
    let chain = leaves(&sound);
    assert!(chain.len() > 20);
    let zeroed = |at: usize| {
        let mut damaged = sound.clone();
        damaged[at..at + 64].fill(0);
        fs::write(&place.path, &damaged).unwrap();
        salvaged(&place.path)
    };
    for (number, leaf) in chain.iter().enumerate() {
        let (mut found, lost) = zeroed(*leaf);
        assert!(lost > 0);
        for (key, value) in &all {
            assert_eq!(found.remove(key).as_ref(), Some(value), "{}", key.escape_ascii());
        }
        assert!(found.iter().all(|(key, value)| was_deleted(key, value)), "{found:?}");
        let cell = leaf + 64 * (1 + number % 15);
        let (found, lost) = zeroed(cell);
        assert!(found.iter().all(|(key, value)| all.get(key) == Some(value)));
        // Of a cell that came into use since the leaf was linked, nothing tells that it was.
        let was_in_use = word_at(&sound, leaf + STATE) >> (16 + number % 15) & 1 == 1;
        assert_eq!(lost, usize::from(was_in_use));
        assert!(all.len() - found.len() <= 3);
    }
}

/// Where a link is damaged, or the root, a search finds the leaves behind it.
#[test]
fn a_broken_chain_hides_no_pair() {
    let place = place();
    let all = filled(&place.path);
    let sound = fs::read(&place.path).unwrap();
    let leaf_of = |number| entry_of(&sound, number) / LEAF * LEAF;
    let [early, middle, late] = [10, 301, 550].map(leaf_of);
    let root = 0x2000 + 20;
    for places in [
        &[middle + NEXT][..],
        &[early + NEXT, late + NEXT],
        &[root],
        &[root, middle + NEXT],
        &[root, early + NEXT, middle + NEXT, late + NEXT],
    ] {
        let (found, lost) = salvaged_without(&place.path, &sound, &all, places);
        assert_eq!(found, all, "{places:?}");
        assert!(lost >= places.len(), "{places:?}");
    }
}

/// A merge leaves the bytes of the merged leaf behind. They bring back no deleted pair where a
/// newer leaf covers the key. Only the range of the leaf before a damaged link is not known.
#[test]
fn a_merged_leaf_brings_deleted_pairs_back_behind_a_damaged_link_alone() {
    let place = place();
    let path = &place.path;
    let store = mapped().create(path).unwrap();
    for i in 0..2000u32 {
        store.put(format!("s{i:05}"), i.to_le_bytes()).unwrap();
    }
    for i in (0..2000u32).filter(|i| i % 24 > 2) {
        assert!(store.delete(format!("s{i:05}")).unwrap());
    }
    let all: BTreeMap<_, _> = pairs(&store).into_iter().collect();
    drop(store);
    let sound = fs::read(path).unwrap();
    // Deleted pairs are still there, also in merged leaves.
    assert!(!all.contains_key(&b"s00045"[..]));
    let chain = leaves(&sound);
    let is_merged = |at: &usize| !chain.contains(&(at / LEAF * LEAF));
    assert!(copies_of(&sound, 45).iter().any(is_merged));
    let root = 0x2000 + 20;
    let (found, lost) = salvaged_without(path, &sound, &all, &[root]);
    assert_eq!((found, lost), (all.clone(), 1));
    for numbers in [&[480][..], &[480, 1200]] {
        let leaves = numbers.iter().map(|&number| entry_of(&sound, number) / LEAF * LEAF);
        let leaves: Vec<_> = leaves.collect();
        let mut damaged = sound.clone();
        for leaf in &leaves {
            damaged[leaf + NEXT] ^= 1;
        }
        fs::write(path, &damaged).unwrap();
        let (mut found, lost) = salvaged(path);
        assert!(lost >= leaves.len(), "{numbers:?}");
        for (key, value) in &all {
            assert_eq!(found.remove(key).as_ref(), Some(value), "{}", key.escape_ascii());
        }
        let ranges: Vec<_> = leaves
            .iter()
            .map(|leaf| {
                let next = word_at(&sound, leaf + NEXT) as usize & ((1 << 48) - 1);
                let key = |leaf: usize| word_at(&sound, leaf + LOW).to_be_bytes()[..6].to_vec();
                key(*leaf)..key(next)
            })
            .collect();
        for key in found.keys() {
            let number: u32 = str::from_utf8(&key[1..]).unwrap().parse().unwrap();
            assert!(number < 2000 && number % 24 > 2, "{number}");
            assert!(ranges.iter().any(|range| range.contains(key)), "{number} {ranges:?}");
        }
    }
}

/// Replaces words all over a store by nonsense: salvage ends, and returns no wrong pair.
#[test]
fn salvage_of_any_damage_ends_without_a_wrong_pair() {
    let place = place();
    let path = &place.path;
    let all = filled(path);
    let sound = fs::read(path).unwrap();
    let used: Vec<_> = (0x2000..sound.len() - 8)
        .step_by(8)
        .filter(|&at| sound[at..at + 8].iter().any(|&byte| byte != 0))
        .collect();
    for (index, &at) in used.iter().step_by(used.len() / 100).enumerate() {
        let old = u64::from_le_bytes(sound[at..at + 8].try_into().unwrap());
        let nonsense = [0, u64::MAX, old ^ 1 << (index % 64), old.wrapping_add(64), 0x8000];
        let mut damaged = sound.clone();
        damaged[at..at + 8].copy_from_slice(&nonsense[index % nonsense.len()].to_le_bytes());
        fs::write(path, &damaged).unwrap();
        for (key, value) in salvaged(path).0 {
            assert_eq!(all.get(&key), Some(&value), "a word at {at:#x}");
        }
    }
    for length in [0, 1, 4096, sound.len() / 2, sound.len() - 100] {
        fs::write(path, &sound[..length]).unwrap();
        let (found, lost) = salvaged(path);
        assert!(found.iter().all(|(key, value)| all.get(key) == Some(value)));
        assert!(found.len() == all.len() || lost > 0);
    }
}

#[test]
fn a_store_of_another_version_is_not_salvaged() {
    let place = place();
    filled(&place.path);
    let mut pool = fs::read(&place.path).unwrap();
    for copy in [0, 0x1000] {
        pool[copy + 8] = 77;
        let sum = u64::from(bristlecone_pmem::checksum(&pool[copy..copy + 120]));
        pool[copy + 120..copy + 128].copy_from_slice(&sum.to_le_bytes());
    }
    fs::write(&place.path, &pool).unwrap();
    let refused = salvage(&place.path).unwrap_err();
    assert!(matches!(refused, Error::NewerVersion { found: 77, .. }), "{refused}");
}

/// To read holes of terabytes would take hours.
#[test]
fn a_broken_chain_in_a_file_of_terabytes_is_searched_where_the_file_has_contents() {
    let place = place();
    let all = filled(&place.path);
    let file = fs::File::options().write(true).open(&place.path).unwrap();
    file.write_all_at(&[0xA5; 8], 0x2000 + 20).unwrap(); // The root leads to the chain.
    if let Err(error) = file.set_len(8 << 40) {
        return eprintln!("skipped: the file system has no such file: {error}");
    }
    let (found, lost): (Vec<_>, Vec<_>) = salvage(&place.path).unwrap().partition(Result::is_ok);
    let found: BTreeMap<_, _> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!((found, lost.is_empty()), (all, false));
}
