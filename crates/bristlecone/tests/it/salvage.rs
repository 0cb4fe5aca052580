//! Salvage: what is left of a damaged store, read without a write.

use crate::{pairs, place, small};
use bristlecone::{Error, Pair, salvage};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Creates a store with short pairs, records, a long value and deleted pairs, and returns its
/// pairs.
fn filled(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let store = small().create(path).unwrap();
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
    drop(small().open(&place.path).unwrap()); // not closed
    assert_eq!(salvaged(&place.path), (all, 0));
}

#[test]
fn a_store_that_is_open_is_not_salvaged() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    assert!(matches!(salvage(&place.path), Err(Error::InUse { .. })));
    drop(store);
    assert!(salvage(&place.path).unwrap().next().is_none());
}

/// A damaged record hides its own pair alone, a damaged leaf the pairs of that leaf.
#[test]
fn damage_hides_the_pairs_of_one_record_or_leaf() {
    let place = place();
    let path = &place.path;
    let all = filled(path);
    let sound = fs::read(path).unwrap();
    let find = |text: &[u8]| sound.windows(text.len()).position(|bytes| bytes == text).unwrap();
    let record = find(b"a key of some length 00123") + 40;
    // The two words of an entry: the key from the highest byte on, and the value.
    let leaf = find(&[b"00400s", &400u64.to_le_bytes()[..]].concat());
    for (at, hidden_max) in [(record, 1), (leaf, 24)] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        fs::write(path, &damaged).unwrap();
        let (found, lost) = salvaged(path);
        assert!(found.iter().all(|(key, value)| all.get(key) == Some(value)));
        let hidden = all.len() - found.len();
        assert!((1..=hidden_max).contains(&hidden), "{hidden} pairs are hidden");
        assert_eq!(lost, 1);
    }
}
