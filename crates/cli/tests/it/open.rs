//! The options of an open, and files that change under an open store.

use crate::{Place, bristlecone, domain_here};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};

/// Starts a load that has put `mine` and waits for more.
pub(crate) fn holder(place: &Place) -> (Child, ChildStdin) {
    holder_with(place, &[])
}

/// Starts such a load with more options.
pub(crate) fn holder_with(place: &Place, options: &[&str]) -> (Child, ChildStdin) {
    let mut child = bristlecone()
        .arg("load")
        .arg(&place.pool)
        .arg("--ack")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"mine\t1\n").unwrap();
    let mut acknowledged = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut acknowledged).unwrap();
    assert_eq!(acknowledged, "mine\n");
    (child, stdin)
}

#[test]
fn a_command_waits_for_a_store_that_is_open_elsewhere() {
    let place = Place::with(&[("k", "v")]);
    let (mut child, stdin) = holder(&place);
    for wait in [&[][..], &["--wait", "0.05"]] {
        let complaint = place.run(&[&["get", "mine"], wait].concat()).refused(4);
        assert!(complaint.contains("open elsewhere"), "{complaint}");
    }
    let waiting = bristlecone()
        .arg("get")
        .arg(&place.pool)
        .args(["mine", "--wait", "600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    let done = waiting.wait_with_output().unwrap();
    assert_eq!((done.status.code(), &done.stdout[..]), (Some(0), &b"1"[..]));
    for command in
        [&["put", "k", "v"][..], &["del", "k"], &["scan"], &["stat"], &["check"], &["dump"]]
    {
        place.run(&[command, &["--wait", "1"]].concat()).expect(0);
    }
    place.run_with(&["load", "--wait", "1"], b"a\t1\n").expect(0);
    place.run(&["get", "k", "--wait", "-1"]).refused(2);
}

/// The stack of a thread does not fit.
#[test]
fn a_creation_that_gets_no_thread_leaves_no_journal() {
    let place = Place::new();
    let mut create = bristlecone();
    create.arg("create").arg(&place.pool).env("RUST_MIN_STACK", (1_u64 << 60).to_string());
    let done = create.output().unwrap();
    if domain_here() != "disk" {
        return eprintln!("skipped: a store in memory needs no thread");
    }
    let complaint = String::from_utf8(done.stderr).unwrap();
    assert!(complaint.contains("cannot start a thread"), "{complaint}");
    assert_eq!(fs::read_dir(place.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_removed_under_an_open_store_is_an_error() {
    let place = Place::with(&[("k", "v")]);
    let (child, stdin) = holder(&place);
    fs::remove_file(&place.pool).unwrap();
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    let complaint = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(4), "{complaint}");
    assert!(complaint.contains("removed"), "{complaint}");
}

#[test]
fn a_file_that_is_moved_under_an_open_store_is_an_error() {
    let place = Place::with(&[("k", "v")]);
    let (child, stdin) = holder(&place);
    fs::rename(&place.pool, place.path("elsewhere")).unwrap();
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    let complaint = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(4), "{complaint}");
    assert!(!complaint.contains("takes longer"), "{complaint}");
}

/// Returns the file of a store without a journal that was open when the machine went down: it has
/// the mark of an open, and another boot id.
fn cut_off(place: &Place) -> Vec<u8> {
    let (mut child, stdin) = holder_with(place, &["--durability", "process"]);
    let mut bytes = fs::read(&place.pool).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    for at in [0, 0x1000] {
        bytes[at + 96..at + 112].iter_mut().for_each(|byte| *byte ^= 0x5A);
        let sum = u64::from(bristlecone_pmem::checksum(&bytes[at..at + 120]));
        bytes[at + 120..at + 128].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

#[test]
fn a_store_that_may_be_torn_is_refused_unless_it_is_asked_for() {
    let place = Place::with(&[("k", "v")]);
    let bytes = cut_off(&place);
    for command in [&["get", "k"][..], &["check"], &["dump"], &["put", "k", "w"], &["load"]] {
        fs::write(&place.pool, &bytes).unwrap();
        let complaint = place.run(command).refused(3);
        assert!(complaint.contains("test.pool"), "{complaint}");
        assert!(fs::read(&place.pool).unwrap() == bytes, "{command:?} changed the file");
    }
    assert!(place.run(&["get", "k"]).refused(3).contains("--open-torn"));
    let whole = place.path("whole");
    place.run(&["salvage", whole.to_str().unwrap()]).expect(0);
    assert_eq!(place.run(&["get", "k", "--open-torn"]).expect(0), "v");
    assert_eq!(place.run(&["get", "mine"]).expect(0), "1", "it was closed, in this boot");
}
