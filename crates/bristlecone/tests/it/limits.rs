//! Keys and values at their greatest lengths, and full stores.

use crate::{pairs, place, small};
use bristlecone::{Error, ErrorKind, KEY_BYTES_MAX, Store, VALUE_BYTES_MAX};

/// Returns bytes that depend on their offset, so that a comparison detects a shifted or cut value.
fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * 31) ^ (i >> 8) ^ seed) as u8).collect()
}

#[test]
fn values_of_every_length_come_back() {
    let place = place();
    let lengths = [0, 1, 7, 8, 9, 63, 64, 1023, 1024, 1025, 4096, 16_384, 100_000, VALUE_BYTES_MAX];
    let store = small().create(&place.path).unwrap();
    for length in lengths {
        store.put(length.to_string(), bytes(length, 1)).unwrap();
        store.put(length.to_string(), bytes(length, 2)).unwrap();
    }
    drop(store);
    let store = small().open(&place.path).unwrap();
    for length in lengths {
        let key = length.to_string();
        let expected = bytes(length, 2);
        assert!(store.get(&key).unwrap().unwrap() == expected, "{length}");
        assert!(store.get_with(&key, |found| found == expected).unwrap().unwrap(), "{length}");
    }
    let error = store.put("long", vec![0; VALUE_BYTES_MAX + 1]).unwrap_err();
    let (found, limit) = (VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX);
    assert!(
        matches!(error, Error::ValueTooLong { bytes, maximum } if (bytes, maximum) == (found, limit))
    );
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(store.get("long").unwrap(), None);
    store.close().unwrap();
}

#[test]
fn keys_of_every_length_come_back() {
    let place = place();
    let lengths = [0, 1, 7, 8, 9, 15, 16, 17, 255, 256, 4095, KEY_BYTES_MAX];
    let mut keys: Vec<_> = lengths.iter().map(|&length| vec![b'k'; length]).collect();
    let suffixes: [&[u8]; 7] =
        [b"", b"\0", b"\0\0", b"\0\0\0\0\0\0\0\0", b"\x01", b"\xff", b"\xff\xff"];
    for stem in
        [&b"a"[..], b"1234567", b"12345678", b"a stem that is longer than a word", b"\xff", b"\0"]
    {
        keys.extend(suffixes.iter().map(|suffix| [stem, suffix].concat()));
    }
    keys.push(vec![0xff; KEY_BYTES_MAX]);
    let store = small().create(&place.path).unwrap();
    for key in &keys {
        assert!(store.insert(key, key).unwrap());
        assert!(!store.insert(key, "another").unwrap());
    }
    keys.sort();
    let expected: Vec<_> = keys.iter().map(|key| (key.clone(), key.clone())).collect();
    let whole = |store: &Store| {
        assert_eq!(pairs(store), expected);
        for key in &keys {
            assert_eq!(store.get(key).unwrap().as_ref(), Some(key));
        }
    };
    whole(&store);
    store.close().unwrap();
    let store = small().open(&place.path).unwrap();
    whole(&store);
    drop(store);
    let store = small().open(&place.path).unwrap();
    whole(&store);

    let long = vec![b'k'; KEY_BYTES_MAX + 1];
    for error in [
        store.put(&long, "").unwrap_err(),
        store.get(&long).unwrap_err(),
        store.delete(&long).map(|_| ()).unwrap_err(),
        store.multi_get(&[&long]).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::KeyTooLong { bytes: 4097, maximum: 4096 }), "{error}");
    }
    // The bound of a range may be longer than any key.
    assert_eq!(store.scan(long.clone()..).next().unwrap().unwrap().0, b"\xff");
    assert_eq!(store.scan(..=long).next_back().unwrap().unwrap().0.len(), KEY_BYTES_MAX);
    for key in &keys {
        assert!(store.delete(key).unwrap());
        assert!(!store.delete(key).unwrap());
    }
    assert!(store.is_empty().unwrap());
}

/// An emptied store uses as many bytes and blocks as a new one.
#[test]
fn an_emptied_store_leaks_nothing() {
    let place = place();
    small().create(&place.path).unwrap().close().unwrap();
    let used = |path| {
        let stats = small().open(path).unwrap().stats();
        (stats.used_bytes, stats.blocks)
    };
    let empty = used(&place.path);
    let key = |i: usize| format!("{:0width$}", i, width = 3 + i % 40);
    for clean in [true, false] {
        let store = small().open(&place.path).unwrap();
        for round in 0..3 {
            for i in 0..3000 {
                store.put(key(i), bytes(i % 700, round)).unwrap();
            }
        }
        store.put("large", bytes(1 << 20, 0)).unwrap();
        assert!(store.delete("large").unwrap());
        for i in 0..3000 {
            assert!(store.delete(key(i)).unwrap());
        }
        if clean {
            store.close().unwrap();
        } else {
            drop(store);
        }
        assert_eq!(used(&place.path), empty, "clean: {clean}");
        let report = small().open(&place.path).unwrap().check().unwrap();
        assert_eq!((report.keys, report.unreachable_blocks), (0, 0));
    }
}

#[test]
fn a_full_store_refuses_loses_nothing_and_can_be_emptied() {
    let place = place();
    let options = small().max_bytes(4 << 20);
    let store = options.create(&place.path).unwrap();
    let mut written = 0;
    for round in 0..3 {
        let mut count = 0u32;
        let error = loop {
            match store.put(count.to_be_bytes(), bytes(500, round)) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::System);
        assert!(error.to_string().contains("test.pool"), "{error}");
        assert!(count > 5000, "{count} pairs of 500 B in 4 MiB");
        assert!(round == 0 || count * 10 >= written * 9, "{count} fit, and {written} before");
        written = count;
        assert_eq!(store.len().unwrap(), u64::from(count));
        for i in 0..count {
            assert!(store.get(i.to_be_bytes()).unwrap().unwrap() == bytes(500, round));
        }
        for i in 0..count {
            assert!(store.delete(i.to_be_bytes()).unwrap());
        }
    }
    store.close().unwrap();
    let mut store = options.open(&place.path).unwrap();
    assert!(store.is_empty().unwrap());
    assert_eq!(store.check().unwrap().unreachable_blocks, 0);
}

/// The space of replaced values of 4 MiB comes free soon enough for 40 of them in 64 MiB.
#[test]
fn replaced_values_are_used_again_soon() {
    let place = place();
    let store = small().max_bytes(64 << 20).create(&place.path).unwrap();
    for seed in 0..40 {
        store.put("k", bytes(4 << 20, seed)).unwrap();
    }
    assert!(store.get("k").unwrap().unwrap() == bytes(4 << 20, 39));
}
