//! A loading process is killed; every pair that it acknowledged is there.

use crate::{Place, bristlecone, lines};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[test]
fn an_acknowledged_pair_survives_a_kill() {
    const PAIRS: u64 = 30_000;
    let place = Place::new();
    let key = |i: u64| format!("{:016x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let value = |i: u64| format!("value {i}");
    let text = lines(0..PAIRS, |i| format!("{}\t{}", key(i), value(i)));
    std::fs::write(place.path("pairs.tsv"), text).unwrap();
    let written: HashMap<String, String> = (0..PAIRS).map(|i| (key(i), value(i))).collect();
    let mut acknowledged: Vec<String> = Vec::new();
    // The first kill waits for no acknowledgement.
    for (round, wanted) in [0, 1, 10, 500, 3000, 12_000].into_iter().enumerate() {
        let mut child = bristlecone()
            .arg("load")
            .args([&place.pool, &place.path("pairs.tsv")])
            .args(["--ack", "--threads", if round % 2 == 0 { "2" } else { "1" }])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        for _ in 0..wanted {
            stdout.read_line(&mut text).unwrap();
        }
        child.kill().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        assert!(!child.wait().unwrap().success(), "killed in time");
        // A line that the kill cut off acknowledges nothing.
        acknowledged.extend(
            text.split_inclusive('\n').filter_map(|l| l.strip_suffix('\n')).map(Into::into),
        );

        let dumped = place.run(&["dump", "--format", "tsv"]);
        if round == 0 && dumped.code != Some(0) {
            // The kill came before the store was complete: the next load creates it.
            assert!(acknowledged.is_empty() && [Some(3), Some(4)].contains(&dumped.code));
            continue;
        }
        let dumped = dumped.expect(0);
        let pairs: Vec<(&str, &str)> =
            dumped.lines().map(|line| line.split_once('\t').unwrap()).collect();
        assert!(pairs.is_sorted_by(|a, b| a.0 < b.0), "in key order, each once");
        for (key, value) in &pairs {
            assert_eq!(written.get(*key).map(String::as_str), Some(*value), "{key}");
        }
        let found: HashMap<&str, &str> = pairs.into_iter().collect();
        let lost = acknowledged.iter().filter(|key| !found.contains_key(key.as_str()));
        assert_eq!(lost.count(), 0, "round {round}");
        place.run(&["check"]).expect(0);
    }
    assert!(acknowledged.len() >= 15_511);
}

/// Starts `command` with `--folder`, sends a signal to it, or to its group as a terminal does, when
/// its folder is there, and waits until its output is closed: by all of its processes.
#[track_caller]
fn leaves_nothing(command: &[&str], kind: &str, signal: &str, to_group: bool) {
    let folder = tempfile::tempdir().unwrap();
    let child = bristlecone()
        .args(command)
        .arg("--folder")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    while names().is_empty() {
        std::thread::yield_now();
    }
    let prefix = format!("bristlecone-{kind}-{}-", child.id());
    assert!(names()[0].to_str().unwrap().starts_with(&prefix), "{:?}", names());
    let target = format!("{}{}", if to_group { "-" } else { "" }, child.id());
    assert!(Command::new("kill").args([signal, "--", &target]).status().unwrap().success());
    let done = child.wait_with_output().unwrap();
    assert!(done.status.code().is_none(), "killed in time");
    assert!(names().is_empty(), "{:?}", names());
}

#[test]
fn a_demo_that_is_killed_leaves_no_folder() {
    leaves_nothing(&["demo", "--kills", "10000"], "demo", "-KILL", false);
}

#[test]
fn a_demo_that_is_interrupted_leaves_no_folder() {
    if !ignores_interrupts() {
        leaves_nothing(&["demo", "--kills", "10000"], "demo", "-INT", true);
    }
    leaves_nothing(&["demo", "--kills", "10000"], "demo", "-TERM", false);
}

/// Returns `true` if this process ignores SIGINT, as jobs in the background of a shell do, and so
/// do the processes that it starts.
fn ignores_interrupts() -> bool {
    const INT_BIT: u64 = 1 << 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & INT_BIT != 0
}

#[test]
fn a_torture_that_is_killed_leaves_no_folder() {
    leaves_nothing(&["torture", "--cycles", "1M"], "torture", "-KILL", false);
}
