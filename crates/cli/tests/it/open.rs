//! The options of an open, and files that change under an open store.

use crate::{Place, bristlecone};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};

/// Starts a load that has put `mine` and waits for more.
fn holder(place: &Place) -> (Child, ChildStdin) {
    let mut child = bristlecone()
        .arg("load")
        .arg(&place.pool)
        .arg("--ack")
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
