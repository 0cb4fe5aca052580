//! The system calls of a load, traced by `strace`: each acknowledgement follows its sync, and a
//! call that the system refuses loses nothing that was acknowledged. Skipped without `strace`, or
//! where temporary files are not on a disk.

use crate::{COMMAND, Place, domain_here, lines};
use bristlecone_console::testing::{self, Done};
use std::collections::HashMap;

/// The number of pairs of a load.
const PAIRS: u64 = 100;

/// Loads the pairs into `place` under a trace of `calls`, with more options of `strace`. Returns
/// the trace, or `None` if there can be none.
fn trace(place: &Place, durability: &str, calls: &str, more: &[&str]) -> Option<(Done, String)> {
    if domain_here() != "disk" {
        eprintln!("skipped: temporary files are not on a disk");
        return None;
    }
    let (file, pool) = (place.path("trace"), place.pool.to_str().unwrap());
    let events = format!("trace={calls}");
    let options = ["-f", "-qq", "-y", "-o", file.to_str().unwrap(), "-e", &events];
    let load = [COMMAND, "load", pool, "-", "--ack", "--durability", durability];
    if let Err(error) = std::process::Command::new("strace").arg("-V").output() {
        eprintln!("skipped: strace: {error}");
        return None;
    }
    let done = testing::run("strace", &[&options, more, &load].concat(), pairs().as_bytes());
    if done.complaint.contains("ptrace") {
        eprintln!("skipped: {}", done.complaint);
        return None;
    }
    Some((done, std::fs::read_to_string(file).unwrap()))
}

fn pairs() -> String {
    lines(0..PAIRS, |i| format!("key {i:03}\tvalue {i}"))
}

/// Returns for each acknowledgement in a trace whether a sync has ended since the one before, and
/// every frame written before it was synced.
fn acknowledgements(trace: &str) -> Vec<bool> {
    let (mut open, mut unsynced, mut has_synced) = (HashMap::new(), HashMap::new(), false);
    let mut found = Vec::new();
    for (now, line) in trace.lines().enumerate() {
        let (thread, text) = line.split_once(' ').unwrap();
        let text = text.trim_start();
        let begins = !text.starts_with("<...");
        let ends = !text.ends_with("<unfinished ...>");
        let (name, file, begun) = if begins {
            let (name, rest) = text.split_once('(').unwrap();
            let file = rest.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
            (name, file.unwrap().0, now)
        } else {
            open.remove(thread).unwrap()
        };
        match name {
            "write" if begins && text.starts_with("write(1<") => {
                found.push(has_synced && unsynced.is_empty());
                has_synced = false;
            }
            // A sync covers what was written before it began.
            "pwrite64" if file.contains(".journal/") => {
                unsynced.insert(file, if ends { now } else { usize::MAX });
            }
            "fsync" | "fdatasync" if ends && text.ends_with("= 0") => {
                has_synced |= unsynced.get(file).is_some_and(|&written| written < begun);
                unsynced.retain(|&other, written| other != file || *written > begun);
            }
            _ => {}
        }
        if !ends {
            open.insert(thread, (name, file, begun));
        }
    }
    found
}

#[test]
fn no_acknowledgement_of_a_commit_precedes_its_sync() {
    for durability in ["commit", "interval"] {
        let place = Place::new();
        let calls = "write,pwrite64,fsync,fdatasync";
        let Some((done, trace)) = trace(&place, durability, calls, &[]) else { return };
        done.expect(0);
        let found = acknowledgements(&trace);
        assert_eq!(found.len() as u64, PAIRS, "{trace}");
        let is_synced = found.iter().all(|&is_synced| is_synced);
        assert_eq!(is_synced, durability == "commit", "{durability}: {trace}");
    }
}

/// Lets every third call of a kind fail, each in a load of its own.
fn refuse(call: &str, error: &str) {
    for number in (1..).step_by(3) {
        let place = Place::new();
        let fault = format!("inject={call}:error={error}:when={number}");
        let Some((load, trace)) = trace(&place, "interval", call, &["-e", &fault]) else { return };
        if !trace.contains("INJECTED") {
            load.expect(0);
            assert!(number > 1, "no {call}");
            break;
        }
        // A system that refuses: exit code 4.
        assert_eq!(load.code, Some(4), "{fault}: {}", load.complaint);
        let acknowledged = String::from_utf8(load.output).unwrap();
        let dump = place.run(&["dump"]);
        if acknowledged.is_empty() && dump.code != Some(0) {
            // The store is not complete: the next load creates it.
            place.run_with(&["load"], pairs().as_bytes()).expect(0);
            continue;
        }
        let found = dump.expect(0);
        assert!(pairs().starts_with(&found), "{fault}: {found}");
        assert!(found.lines().count() >= acknowledged.lines().count(), "{fault}: {found}");
    }
}

#[test]
fn a_call_that_the_system_refuses_loses_nothing_acknowledged() {
    for (call, error) in [
        ("pwrite64", "EIO"),
        ("pwrite64", "ENOSPC"),
        ("fdatasync", "EIO"),
        ("fdatasync", "EROFS"),
        ("fsync", "EIO"),
        ("msync", "EIO"),
        ("mkdir", "ENOSPC"),
        ("fallocate", "ENOSPC"),
    ] {
        refuse(call, error);
    }
}
