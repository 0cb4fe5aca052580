//! Plain files after a power cut: each page is as it was when the system last wrote it, or newer.
//! The tests mix the pages of two moments by hand, and change the boot in the superblocks.

use crate::image::{leaves, restart, word};
use crate::{Place, mapped, place};
use bristlecone::{Error, ErrorKind, Store};
use std::collections::BTreeMap;
use std::fs;

const PAGE_BYTES: usize = 4096;
const KEYS: u32 = 400;

type Model = BTreeMap<String, String>;

fn key(number: u32) -> String {
    format!("key{:07}/{number}", number.wrapping_mul(2_654_435_761) % 10_000_000)
}

fn value(number: u32, session: u32) -> String {
    format!("{number} in session {session} {}", "x".repeat(number as usize % 60))
}

/// The file of a store at three moments, and its pairs at the last.
struct History {
    place: Place,
    /// A clean close, the first one.
    closed: Vec<u8>,
    /// A second session, directly after its open.
    opened: Vec<u8>,
    /// The second session, after some changes.
    changed: Vec<u8>,
    /// A clean close after that.
    closed_again: Vec<u8>,
    pairs: Model,
}

fn history() -> History {
    let place = place();
    let path = &place.path;
    let store = mapped().create(path).unwrap();
    (0..KEYS).for_each(|number| store.put(key(number), value(number, 1)).unwrap());
    store.close().unwrap();
    let closed = fs::read(path).unwrap();
    let store = mapped().open(path).unwrap();
    let opened = fs::read(path).unwrap();
    let mut pairs: Model = (0..KEYS).map(|number| (key(number), value(number, 1))).collect();
    for number in (0..KEYS).step_by(7) {
        match number % 3 {
            0 => {
                store.put(key(number), value(number, 2)).unwrap();
                pairs.insert(key(number), value(number, 2));
            }
            1 => {
                assert!(store.delete(key(number)).unwrap());
                pairs.remove(&key(number));
            }
            _ => {
                store.put(key(KEYS + number), value(number, 2)).unwrap();
                pairs.insert(key(KEYS + number), value(number, 2));
            }
        }
    }
    let changed = fs::read(path).unwrap();
    store.close().unwrap();
    let closed_again = fs::read(path).unwrap();
    assert!(closed.len() == changed.len() && closed.len() == closed_again.len());
    History { place, closed, opened, changed, closed_again, pairs }
}

/// Returns `new` with some of its pages from `old`; not those of the superblocks, which the open
/// has synced.
fn mix(old: &[u8], new: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut image = new.to_vec();
    for (target, source) in image.chunks_mut(PAGE_BYTES).zip(old.chunks(PAGE_BYTES)).skip(2) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state % 10 <= seed % 10 {
            target.copy_from_slice(source);
        }
    }
    image
}

fn check_pairs(store: &Store, pairs: &Model) {
    let found: Vec<_> = store.iter().collect::<Result<_, _>>().unwrap();
    let expected = pairs.iter().map(|(k, v)| (k.clone().into_bytes(), v.clone().into_bytes()));
    assert!(found.into_iter().eq(expected));
}

/// Before version 2 of the format, most such images opened, and many of them answered wrong.
#[test]
fn a_store_that_was_open_at_a_restart_is_refused_whatever_its_pages() {
    let History { place, closed, changed, pairs, .. } = history();
    let path = &place.path;
    for seed in 0..100 {
        let mut image = mix(&closed, &changed, seed);
        restart(&mut image);
        fs::write(path, &image).unwrap();
        for error in [mapped().open(path).unwrap_err(), mapped().open_or_create(path).unwrap_err()]
        {
            assert!(matches!(error, Error::MayBeTorn { .. }), "seed {seed}: {error}");
            assert_eq!((error.kind(), error.path()), (ErrorKind::Damaged, Some(path.as_path())));
            assert!(error.to_string().contains("bristlecone salvage"), "{error}");
        }
        assert!(fs::read(path).unwrap() == image, "a refusal changes nothing");
    }
    // The system may have written every page.
    let mut image = changed;
    restart(&mut image);
    fs::write(path, &image).unwrap();
    assert!(matches!(mapped().open(path), Err(Error::MayBeTorn { .. })));
    let store = mapped().open_torn(true).open(path).unwrap();
    assert!(store.was_recovered());
    check_pairs(&store, &pairs);
    drop(store);
    // Accepted once, the file is whole for every later open.
    check_pairs(&mapped().open(path).unwrap(), &pairs);
}

/// The caller who accepts a torn file gets answers or typed errors, and no panic.
#[test]
fn a_torn_store_that_is_opened_all_the_same_causes_no_panic() {
    let History { place, closed, changed, .. } = history();
    let path = &place.path;
    for seed in 0..60 {
        let mut image = mix(&closed, &changed, seed);
        restart(&mut image);
        fs::write(path, &image).unwrap();
        let Ok(mut store) = mapped().open_torn(true).open(path) else { continue };
        for number in 0..2 * KEYS {
            let _ = store.get(key(number));
            let _ = store.put(key(number), "later");
        }
        let _ = store.iter().count();
        let _ = store.check();
    }
}

/// A close syncs everything before its mark and the mark after that, and an open syncs its own mark
/// before it changes anything. So these are all the images that a cut can leave around a close.
#[test]
fn a_closed_store_is_whole_after_a_restart_at_any_moment_around_the_close() {
    let History { place, opened, changed, closed_again, pairs, closed } = history();
    let path = &place.path;
    let first: Model = (0..KEYS).map(|number| (key(number), value(number, 1))).collect();
    let superblocks = |header: [&[u8]; 2], rest: &[u8]| {
        let mut image = rest.to_vec();
        for (page, header) in header.into_iter().enumerate() {
            let page = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
            image[page.clone()].copy_from_slice(&header[page]);
        }
        restart(&mut image);
        image
    };
    let newer = usize::from(word(&closed_again, 32) < word(&closed_again, 0x1000 + 32));
    let older = [&closed_again, &changed];
    let mut half = [older[0], older[0]];
    half[1 - newer] = older[1];
    // After the close of the first session, and in the open of the second.
    for header in [[&closed, &closed], [&opened, &closed], [&closed, &opened]] {
        let image = superblocks(header.map(Vec::as_slice), &closed);
        fs::write(path, &image).unwrap();
        match mapped().open(path) {
            Ok(store) => check_pairs(&store, &first),
            Err(error) => {
                assert!(matches!(error, Error::MayBeTorn { .. }), "{error}");
                assert_ne!(header, [&closed, &closed], "closed, and not opened again");
            }
        }
    }
    // After the close of the second.
    for header in [[&closed_again, &closed_again], half] {
        let image = superblocks(header.map(Vec::as_slice), &closed_again);
        fs::write(path, &image).unwrap();
        let store = mapped().open(path).unwrap();
        assert!(!store.was_recovered());
        check_pairs(&store, &pairs);
    }
    // Before its mark is on the device.
    fs::write(path, superblocks([&changed, &changed], &closed_again)).unwrap();
    assert!(matches!(mapped().open(path), Err(Error::MayBeTorn { .. })));
}

/// The page of a leaf from the next session in the file of a clean close: the superblocks are older
/// than the page.
#[test]
fn a_page_from_a_later_session_lets_no_thread_wait() {
    let History { place, closed, changed, .. } = history();
    let leaves = leaves(&closed);
    assert!(leaves.len() > 10, "too few leaves for the test");
    for at in leaves {
        let page = at / PAGE_BYTES * PAGE_BYTES..at / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
        let mut image = closed.clone();
        image[page.clone()].copy_from_slice(&changed[page]);
        fs::write(&place.path, &image).unwrap();
        let store = mapped().open(&place.path).unwrap();
        for number in 0..KEYS {
            if let Err(error) = store.get(key(number)) {
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
            }
        }
    }
}
