//! Bulk data in and out.

use crate::{Place, bristlecone, lines, objects};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// Lines of text with every byte that is escaped, in no order, in the spelling of tsv.
fn awkward() -> String {
    lines([3, 1, 4, 5, 9, 2, 6], |i| format!("key\\t{i}\\n\\\\n\tvalue\\\\\\t{i}"))
        + "\tthe empty key\nno value\t\n"
}

fn sorted(text: &str) -> Vec<&str> {
    let mut sorted: Vec<_> = text.lines().collect();
    sorted.sort_unstable();
    sorted
}

#[test]
fn escapes_come_back_as_they_were() {
    let place = Place::new();
    place.run_with(&["load", "--format", "tsv"], awkward().as_bytes()).expect(0);
    assert_eq!(place.run(&["get", "key\t1\n\\n"]).expect(0), "value\\\t1");
    let dumped = place.run(&["dump", "--format", "tsv"]).expect(0);
    assert_eq!(sorted(&dumped), sorted(&awkward()));
    assert!(dumped.starts_with("\tthe empty key\nkey\\t1"), "in key order: {dumped}");
    assert_eq!(place.run(&["dump"]).expect(0), dumped);

    let again = Place::new();
    again.run_with(&["load"], dumped.as_bytes()).expect(0);
    assert_eq!(again.run(&["dump"]).expect(0), dumped);
}

#[test]
fn json_lines_come_back_as_they_were() {
    let place = Place::with(&[]);
    place.run_with(&["load"], awkward().as_bytes()).expect(0);
    place.run_with(&["load", "--format", "lines"], b"\xff\xfe\n").expect(0);
    let dumped = place.run(&["dump", "--format", "jsonl"]).expect(0);
    assert_eq!(objects(&dumped).len(), 10);
    assert_eq!(place.run(&["dump", "--json"]).expect(0), dumped);
    let again = Place::new();
    again.run_with(&["load", "--format", "jsonl", "--threads", "2"], dumped.as_bytes()).expect(0);
    assert_eq!(again.run(&["dump", "--format", "jsonl"]).expect(0), dumped);
}

#[test]
fn lines_are_keys() {
    let place = Place::new();
    let load = ["load", "-", "--format", "lines", "--ack"];
    let acknowledged = place.run_with(&load, b"b\tx\\y\na\n\nc").expect(0);
    assert_eq!(acknowledged, "b\tx\\y\na\n\nc\n");
    assert_eq!(place.run(&["dump", "--format", "lines"]).expect(0), "\na\nb\tx\\y\nc\n");
}

#[test]
fn a_summary_tells_how_many() {
    let place = Place::new();
    let summary = &objects(&place.run_with(&["load", "--json"], awkward().as_bytes()).expect(0))[0];
    assert_eq!(summary["pairs"], 9);
    assert!(summary["seconds"].is_f64() && summary["pairs_per_second"].is_f64());
}

#[test]
fn acknowledgements_are_the_keys_as_they_are_spelled() {
    let place = Place::new();
    let spelled: Vec<String> =
        awkward().lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    let acknowledged = place.run_with(&["load", "--ack"], awkward().as_bytes()).expect(0);
    assert_eq!(acknowledged.lines().collect::<Vec<_>>(), spelled);
    let load = ["load", "--ack", "--threads", "3"];
    let acknowledged = place.run_with(&load, awkward().as_bytes()).expect(0);
    assert_eq!(sorted(&acknowledged), sorted(&(spelled.join("\n") + "\n")));
}

#[test]
fn the_last_of_equal_keys_stays_whatever_the_threads() {
    let place = Place::new();
    let mut last = BTreeMap::new();
    let text = lines(0..20_000, |i| {
        let key = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54).to_string();
        last.insert(key.clone(), i);
        format!("{key}\t{i}")
    });
    place.run_with(&["load", "--threads", "4"], text.as_bytes()).expect(0);
    let dumped = place.run(&["dump"]).expect(0);
    let last: Vec<String> = last.iter().map(|(key, i)| format!("{key}\t{i}")).collect();
    assert_eq!(dumped.lines().collect::<Vec<_>>(), last);
}

#[test]
fn a_program_that_waits_for_an_acknowledgement_gets_it() {
    for threads in ["1", "3"] {
        let place = Place::new();
        let mut child = bristlecone()
            .arg("load")
            .arg(&place.pool)
            .args(["-", "--ack", "--threads", threads])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for i in 0..20 {
            writeln!(stdin, "key {i}\tvalue").unwrap();
            let mut acknowledged = String::new();
            stdout.read_line(&mut acknowledged).unwrap();
            assert_eq!(acknowledged, format!("key {i}\n"));
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}
