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

/// A producer that is killed leaves part of its last line.
#[test]
fn a_last_line_that_may_be_cut_is_loaded_and_named() {
    let place = Place::new();
    let done = place.run_with(&["load", "--format", "tsv"], b"a\t1\nb\t23");
    assert!(done.complaint.contains("-, line 2: no newline at the end"), "{}", done.complaint);
    done.expect(0);
    assert_eq!(place.run(&["get", "b"]).expect(0), "23");
    let whole = place.run_with(&["load", "--format", "tsv"], b"a\t1\nb\t234\n");
    assert_eq!(whole.complaint, "");
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

#[test]
fn a_load_whose_acknowledgements_have_no_reader_is_an_error() {
    const PAIRS: u64 = 30_000; // More acknowledgements than a pipe holds.
    for threads in ["1", "3"] {
        let place = Place::new();
        std::fs::write(place.path("pairs"), lines(0..PAIRS, |i| format!("{i:06}\tv"))).unwrap();
        let mut child = bristlecone()
            .arg("load")
            .args([&place.pool, &place.path("pairs")])
            .args(["--ack", "--threads", threads])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..2 {
            stdout.read_line(&mut String::new()).unwrap();
        }
        drop(stdout);
        let done = child.wait_with_output().unwrap();
        let complaint = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(4), "{complaint}");
        let stat = objects(&place.run(&["stat", "--json"]).expect(0)).remove(0);
        let keys = stat["keys"].as_u64().unwrap();
        assert!((2..PAIRS).contains(&keys), "{keys}");
        let digits = complaint.split_once(" pairs of it").expect(&complaint).0;
        let digits = digits.rsplit(';').next().unwrap().replace(' ', "");
        assert_eq!(digits.parse(), Ok(keys), "it says how many are in: {complaint}");
        assert!(complaint.contains("acknowledgement"), "{complaint}");
    }
}

#[test]
fn one_pair_is_counted_in_the_singular() {
    let place = Place::new();
    assert!(place.run_with(&["load"], b"a\t1\n").expect(0).starts_with("1 pair in "));
}

#[test]
fn a_json_line_without_a_value_is_an_error() {
    let place = Place::with(&[("a", "old"), ("b", "old")]);
    for wrong in [
        r#"{"key":"a"}"#,
        r#"{"key":"a","value":null}"#,
        r#"{"key":"a","value_hex":null}"#,
        r#"{"key":null,"value":"x"}"#,
        r#"["a","x"]"#,
        r#"["a",null,"x",null]"#,
        r#"{"key":"a","value":["x"]}"#,
        r#"{"key":"a","value":"x","time":1}"#,
        r#"{"key":"a","value":"x","value":"y"}"#,
        r#"{"key":"a","value":"x"} {"key":"b","value":"x"}"#,
        "",
    ] {
        for threads in ["1", "2"] {
            let text = format!("{{\"key\":\"b\",\"value\":\"new\"}}\n{wrong}\n");
            let load = ["load", "--format", "jsonl", "--threads", threads];
            let complaint = place.run_with(&load, text.as_bytes()).refused(2);
            assert!(complaint.contains("line 2: "), "{wrong}: {complaint}");
            assert!(complaint.contains("1 pair of it is in"), "{wrong}: {complaint}");
            assert_eq!(complaint.matches("line").count(), 1, "{complaint}");
            assert_eq!(place.run(&["dump"]).expect(0), "a\told\nb\tnew\n", "{wrong}");
        }
    }
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    for format in ["tsv", "jsonl", "lines"] {
        let place = Place::new();
        let load = ["load", "/dev/zero", "--format", format];
        let complaint = place.run(&load).refused(2);
        let reason = "/dev/zero, line 1: longer than ";
        assert!(complaint.contains(reason), "{complaint}");
        assert_eq!(place.run(&["dump"]).expect(0), "");
    }
}

#[test]
fn a_fifo_is_read_to_its_end_and_a_folder_not_at_all() {
    let place = Place::new();
    let fifo = place.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    std::thread::scope(|scope| {
        scope.spawn(|| std::fs::write(&fifo, awkward()).unwrap());
        place.run(&["load", fifo.to_str().unwrap()]).expect(0);
    });
    assert_eq!(sorted(&place.run(&["dump"]).expect(0)), sorted(&awkward()));

    let place = Place::new();
    let folder = place.folder.path().to_str().unwrap();
    let complaint = place.run(&["load", folder]).refused(4);
    assert!(complaint.contains(folder), "{complaint}");
    assert!(!place.pool.exists(), "an input that cannot be read makes no store");
}

/// The stack of a thread does not fit. The command once panicked.
#[test]
fn a_load_that_gets_no_threads_is_refused() {
    let place = Place::new();
    place.run(&["create", "--durability", "process"]).expect(0);
    let mut load = bristlecone();
    load.arg("load").arg(&place.pool).args(["--threads", "2", "--durability", "process"]);
    let done = load.env("RUST_MIN_STACK", (1_u64 << 60).to_string()).output().unwrap();
    let complaint = String::from_utf8(done.stderr).unwrap();
    assert!(complaint.contains("cannot start a thread"), "{complaint}");
    assert_eq!(done.status.code(), Some(4));
}
