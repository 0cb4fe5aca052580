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
        store.put(format!("s{i:05}"), i.to_le_bytes()).unwrap();
        store.put(format!("a key of some length {i:05}"), vec![i as u8; i as usize % 200]).unwrap();
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

/// The offsets of fields of a leaf of 512 B.
const NEXT: usize = 64;
const LOW: usize = 72;

/// Returns the offset of an entry of the leaf that holds the short pair of `number`: the key word,
/// from the highest byte of the key on, and the value word.
fn entry_of(pool: &[u8], number: u32) -> usize {
    let key = format!("s{number:05}");
    let key: Vec<u8> = key.bytes().rev().collect();
    let entry = [&[0; 2], &key[..], &u64::from(number).to_le_bytes()[..]].concat();
    pool.windows(entry.len()).position(|bytes| bytes == entry).unwrap()
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

/// A damaged leaf hides the pairs that it holds. Its records have checksums of their own.
#[test]
fn a_damaged_leaf_hides_its_short_pairs_alone() {
    let place = place();
    let all = filled(&place.path);
    let sound = fs::read(&place.path).unwrap();
    let (found, lost) = salvaged_without(&place.path, &sound, &all, &[entry_of(&sound, 400)]);
    assert!((1..=24).contains(&(all.len() - found.len())));
    assert_eq!(lost, 1);
    // The leaf that names record 123: the entry's value word is the offset of the record.
    let record = (record_of(&sound, 123) - 8) as u64;
    let named: Vec<_> = (0x8000..sound.len())
        .step_by(8)
        .filter(|&at| sound[at..at + 8] == record.to_le_bytes())
        .collect();
    let leaf = named[0] / 512 * 512;
    let (found, lost) = salvaged_without(&place.path, &sound, &all, &[leaf + LOW]);
    assert_eq!((found, lost), (all, 1));
}

/// Where a link is damaged, or the root, a search finds the leaves behind it.
#[test]
fn a_broken_chain_hides_no_pair() {
    let place = place();
    let all = filled(&place.path);
    let sound = fs::read(&place.path).unwrap();
    let leaf_of = |number| entry_of(&sound, number) / 512 * 512;
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
        assert_eq!(found.len(), all.len(), "{places:?}");
        assert!(lost >= places.len(), "{places:?}");
    }
}

/// A merge leaves the bytes of the merged leaf behind. They bring back no deleted pair where a
/// newer leaf covers the key.
#[test]
fn a_merged_leaf_brings_no_deleted_pair_back() {
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
    // Deleted pairs are still there.
    let deleted = entry_of(&sound, 45);
    assert!(!all.contains_key(&b"s00045"[..]) && deleted > 0x8000);
    let link_of = |number| entry_of(&sound, number) / 512 * 512 + NEXT;
    for places in [&[0x2000 + 20][..], &[link_of(480)], &[link_of(480), link_of(1200)]] {
        let (found, lost) = salvaged_without(path, &sound, &all, places);
        assert_eq!(found, all, "{places:?}");
        assert!(lost >= places.len(), "{places:?}");
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
