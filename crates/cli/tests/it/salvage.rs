//! Damaged stores: what is whole is copied or printed, what is not is named.

use crate::{Place, bristlecone, objects, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn salvage(place: &Place, into: &Path, options: &[&str]) -> crate::Done {
    let into = into.to_str().unwrap();
    place.run(&[&["salvage", into], options].concat())
}

/// Returns a store of 500 pairs, each with a record of its own, and the lines of its dump.
fn filled() -> (Place, BTreeSet<String>) {
    let place = Place::new();
    let text = crate::lines(0..500, |i| format!("key {i:04}\t{}", "v".repeat(60)));
    place.run_with(&["load"], text.as_bytes()).expect(0);
    (place, text.lines().map(str::to_owned).collect())
}

fn dumped(place: &Place) -> BTreeSet<String> {
    place.run(&["dump"]).expect(0).lines().map(str::to_owned).collect()
}

fn flip(pool: &Path, text: &[u8]) {
    let mut bytes = fs::read(pool).unwrap();
    let at = bytes.windows(text.len()).position(|bytes| bytes == text).unwrap();
    bytes[at] ^= 1;
    fs::write(pool, bytes).unwrap();
}

#[test]
fn a_sound_store_is_copied_whole() {
    let (place, all) = filled();
    let whole = Place::new();
    let answer = salvage(&place, &whole.pool, &["--json"]).expect(0);
    let answer = &objects(&answer)[0];
    assert_eq!((&answer["pairs"], &answer["damaged"]), (&500.into(), &serde_json::json!([])));
    assert_eq!(dumped(&whole), all);
    let lines = place.run(&["dump", "--skip-damaged"]).expect(0);
    assert_eq!(lines.lines().map(str::to_owned).collect::<BTreeSet<_>>(), all);
    let empty = Place::with(&[]);
    let into = empty.path("into");
    assert!(salvage(&empty, &into, &[]).expect(0).contains(": 0 pairs; 0 damaged places in "));
}

#[test]
fn what_is_damaged_is_named_and_the_rest_is_copied() {
    let (place, all) = filled();
    flip(&place.pool, b"key 0123");
    let before = fs::read(&place.pool).unwrap();
    let whole = Place::new();
    let done = salvage(&place, &whole.pool, &["--json"]);
    assert!(done.complaint.contains("damaged at offset 0x"), "{}", done.complaint);
    let answer = &objects(&done.expect(1))[0];
    let pairs = answer["pairs"].as_u64().unwrap();
    assert!((400..500).contains(&pairs), "{answer}");
    let damaged = answer["damaged"].as_array().unwrap();
    assert!(damaged.iter().all(|at| at["offset"].is_u64() && at["what"].is_string()));
    assert!(!damaged.is_empty());
    let copied = dumped(&whole);
    assert!(copied.len() as u64 == pairs && copied.is_subset(&all));
    let done = place.run(&["dump", "--skip-damaged"]);
    assert!(done.complaint.contains("damaged at offset 0x"), "{}", done.complaint);
    let lines = done.expect(1);
    assert_eq!(lines.lines().map(str::to_owned).collect::<BTreeSet<_>>(), copied);
    assert!(fs::read(&place.pool).unwrap() == before, "the damaged file is only read");
}

#[test]
fn nothing_to_salvage_leaves_no_store_behind() {
    let place = Place::new();
    let into = place.path("into");
    salvage(&place, &into, &[]).refused(4);
    fs::write(&place.pool, vec![7; 1 << 20]).unwrap();
    let complaint = salvage(&place, &into, &[]).refused(3);
    assert!(complaint.contains("test.pool"), "{complaint}");
    place.run(&["dump", "--skip-damaged"]).refused(3);
    assert!(!into.exists());
    let (place, _) = filled();
    fs::write(place.path("into"), "mine").unwrap();
    assert!(salvage(&place, &place.path("into"), &[]).refused(4).contains("exists"));
    assert_eq!(fs::read(place.path("into")).unwrap(), b"mine");
    run(&["salvage", "one"], b"").refused(2);
    place.run(&["dump", "--skip-damaged", "--wait", "1"]).refused(2);
}

#[test]
fn the_error_of_a_damaged_store_says_how_to_save_its_pairs() {
    let (place, _) = filled();
    flip(&place.pool, b"key 0123");
    let complaint = place.run(&["check"]).refused(3);
    for advice in ["copy it again with the store closed", "bristlecone salvage DAMAGED INTO"] {
        assert!(complaint.contains(advice), "{complaint}");
    }
}

#[test]
fn a_closed_standard_error_ends_no_salvage() {
    let (place, all) = filled();
    flip(&place.pool, b"key 0123");
    let into = place.path("into");
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    let done =
        bristlecone().arg("salvage").args([&place.pool, &into]).stderr(closed()).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let mut copy = Place::new();
    copy.pool = into;
    let copied = dumped(&copy);
    assert!((400..500).contains(&copied.len()) && copied.is_subset(&all), "{}", copied.len());
    let done = bristlecone()
        .args(["dump", "--skip-damaged"])
        .arg(&place.pool)
        .stderr(closed())
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(String::from_utf8(done.stdout).unwrap().lines().count(), copied.len());
}
