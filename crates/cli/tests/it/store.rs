//! The commands that open a store.

use crate::{Place, domain_here, lines, objects, run};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn pairs_are_put_got_and_deleted() {
    let place = Place::new();
    assert!(place.run(&["create", "--size", "1M"]).expect(0).contains(domain_here()));
    assert_eq!(place.run(&["put", "sequoia", "3266 years"]).expect(0), "");
    assert_eq!(place.run(&["get", "sequoia"]).expect(0), "3266 years");
    assert_eq!(place.run(&["put", "sequoia", "3267 years"]).expect(0), "");
    assert_eq!(place.run(&["get", "sequoia"]).expect(0), "3267 years");
    assert_eq!(place.run(&["del", "sequoia"]).expect(0), "");
    assert_eq!(place.run(&["get", "sequoia"]).expect(1), "");
    assert_eq!(place.run(&["del", "sequoia"]).expect(1), "");
}

#[test]
fn a_value_from_standard_input_is_any_bytes() {
    let place = Place::with(&[]);
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    place.run_with(&["put", "all bytes"], &value).expect(0);
    assert_eq!(place.run(&["get", "all bytes"]).output, value);
    place.run_with(&["put", "nothing"], b"").expect(0);
    assert_eq!(place.run(&["get", "nothing"]).expect(0), "");
}

#[test]
fn answers_in_json_are_objects() {
    let place = Place::with(&[("a", "1")]);
    let answer = |command: &[&str], code| objects(&place.run(command).expect(code));
    assert_eq!(answer(&["get", "a", "--json"], 0), [json!({"key": "a", "value": "1"})]);
    assert_eq!(answer(&["get", "b", "--json"], 1), [json!({"key": "b", "value": null})]);
    assert_eq!(answer(&["put", "b", "22", "--json"], 0), [json!({"key": "b", "value_bytes": 2})]);
    assert_eq!(answer(&["del", "b", "--json"], 0), [json!({"key": "b", "deleted": true})]);
    assert_eq!(answer(&["del", "b", "--json"], 1), [json!({"key": "b", "deleted": false})]);
    let created =
        run(&[OsStr::new("create"), place.path("b").as_os_str(), OsStr::new("--json")], b"");
    let created = &objects(&created.expect(0))[0];
    assert_eq!(created["domain"], domain_here());
    assert_eq!(created["pool_bytes"], 16 << 20);
}

#[test]
fn bytes_that_are_no_text_are_hexadecimal_in_json() {
    let place = Place::with(&[]);
    let arguments =
        [OsStr::new("put"), place.pool.as_os_str(), OsStr::from_bytes(b"\xff\x00".split_at(1).0)];
    run(&arguments, b"\xfe").expect(0);
    let pairs = objects(&place.run(&["scan", "--json"]).expect(0));
    assert_eq!(pairs, [json!({"key_hex": "ff", "value_hex": "fe"})]);
}

#[test]
fn scans_have_bounds_directions_and_limits() {
    let place = Place::with(&[("a", "1"), ("ab", "2"), ("b", "3"), ("c", "4")]);
    let keys = |arguments: &[&str]| {
        let command = [&["scan"], arguments].concat();
        let lines = place.run(&command).expect(0);
        lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(place.run(&["scan", "--limit", "2"]).expect(0), "a\t1\nab\t2\n");
    assert_eq!(keys(&[]), ["a", "ab", "b", "c"]);
    assert_eq!(keys(&["--reverse"]), ["c", "b", "ab", "a"]);
    assert_eq!(keys(&["--prefix", "a"]), ["a", "ab"]);
    assert_eq!(keys(&["--prefix", "a", "--reverse", "--limit", "1"]), ["ab"]);
    assert_eq!(keys(&["--from", "ab"]), ["ab", "b", "c"]);
    assert_eq!(keys(&["--from", "ab", "--to", "c"]), ["ab", "b"]);
    assert_eq!(keys(&["--to", "b", "--reverse"]), ["ab", "a"]);
    assert_eq!(keys(&["--from", "c", "--to", "a"]), [""; 0]);
    assert_eq!(keys(&["--limit", "0"]), [""; 0]);
    place.run(&["scan", "--prefix", "a", "--from", "b"]).refused(2);
}

#[test]
fn stat_and_check_print_the_properties_of_a_store() {
    let place = Place::with(&[("a", "1"), ("bb", "22"), ("ccc", "")]);
    let stat = &objects(&place.run(&["stat", "--json"]).expect(0))[0];
    assert_eq!(stat["keys"], 3);
    assert_eq!(stat["domain"], domain_here());
    assert_eq!(stat["design"], "cell-tree");
    assert_eq!(stat["format_version"], 3);
    assert_eq!(stat["was_recovered"], false);
    let bytes = |name: &str| stat[name].as_u64().unwrap();
    let parts = ["used", "free", "partial", "free_page", "rest", "kept"];
    let sum: u64 = parts.iter().map(|part| bytes(&format!("{part}_bytes"))).sum();
    assert_eq!(sum, bytes("pool_bytes"));
    assert_eq!(bytes("header_bytes"), 32 << 10);
    assert!(stat["classes"].as_array().unwrap().iter().any(|class| class["blocks"] != 0));
    let check = &objects(&place.run(&["check", "--json"]).expect(0))[0];
    assert_eq!(check["ok"], true);
    assert_eq!(check["keys"], 3);
    assert_eq!((&check["key_bytes"], &check["value_bytes"]), (&json!(6), &json!(3)));
    assert_eq!(check["unreachable_blocks"], 0);
    for command in ["stat", "check"] {
        assert!(place.run(&[command]).expect(0).contains("keys"));
    }
}

#[test]
fn a_block_that_no_pair_needs_is_told_in_a_sentence() {
    use bristlecone_pmem::medium::FileOptions;
    use bristlecone_pmem::{Mapped, Pool};
    let place = Place::with(&[("a", "1")]);
    let medium = Mapped::open(&place.pool, &FileOptions::default()).unwrap();
    let (pool, _) = Pool::open(medium).unwrap();
    pool.reserve(64).unwrap();
    pool.close().unwrap();
    let done = place.run(&["check", "--json"]);
    let complaint = done.complaint.clone();
    let check = &objects(&done.expect(1))[0];
    let blocks = check["unreachable_blocks"].as_u64().unwrap();
    assert!(check["ok"] == false && blocks > 0, "{check}");
    assert!(complaint.contains(&format!("no pair needs {blocks} block")), "{complaint}");
    let done = place.run(&["check"]);
    assert!(done.complaint.contains("test.pool: no pair needs"), "{}", done.complaint);
    assert!(done.expect(1).contains("unreachable blocks"));
}

#[test]
fn stat_prints_the_state_of_a_journal() {
    let place = Place::with(&[("a", "1"), ("bb", "22")]);
    let stat = &objects(&place.run(&["stat", "--json", "--durability", "process"]).expect(0))[0];
    assert!(stat.get("journal").is_none() && stat["domain"] == "process", "{stat}");
    let done = place.run(&["stat", "--json", "--durability", "interval"]);
    if done.code == Some(4) {
        let complaint = done.refused(4);
        assert!(complaint.contains("tmpfs"), "{complaint}");
        return; // The folder of the tests is in memory.
    }
    let stat = objects(&done.expect(0)).remove(0);
    assert_eq!((&stat["domain"], &stat["keys"]), (&json!("disk"), &json!(2)));
    let journal = &stat["journal"];
    assert_eq!(
        (&journal["durability"], &journal["interval_ms"]),
        (&json!("interval"), &json!(100))
    );
    assert_eq!((&journal["segments"], &journal["segment_bytes"]), (&json!(64), &json!(1 << 20)));
    // The open has written the superblocks, and its checkpoint has synced them.
    let number = |name: &str| journal[name].as_u64().unwrap();
    assert!(number("position") > 0 && number("checkpoint") > 0 && number("pool_syncs") > 0);
    assert!(number("journal_bytes_written").is_multiple_of(512));
    assert_eq!(number("memory_bytes"), stat["pool_bytes"]);
    let text = place.run(&["stat", "--durability", "commit"]).expect(0);
    for part in ["commit: each write is synced", "segments", "private memory"] {
        assert!(text.contains(part), "{text}");
    }
    let stat = objects(&place.run(&["stat", "--json"]).expect(0)).remove(0);
    assert_eq!(stat["was_recovered"], false, "each stat has closed the store");
    place.run(&["stat", "--durability", "never"]).refused(2);
}

#[test]
fn stat_prints_the_bytes_of_each_numa_node() {
    let place = Place::with(&[("a", "1"), ("bb", "22")]);
    let stat = |arguments: &[&str]| {
        let command = [&["stat", "--json"], arguments].concat();
        objects(&place.run(&command).expect(0)).remove(0)
    };
    assert!(stat(&[]).get("nodes").is_none());
    let stat = stat(&["--nodes", "3,0", "--stripe", "64K"]);
    let nodes = stat["nodes"].as_array().unwrap();
    assert_eq!(nodes.iter().map(|of| of["node"].clone()).collect::<Vec<_>>(), [3, 0]);
    for field in ["pool_bytes", "used_bytes", "free_bytes"] {
        let sum = nodes.iter().map(|of| of[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(stat[field], sum, "{field}");
    }
    assert!(place.run(&["stat", "--nodes", "0"]).expect(0).contains("node 0"));
    for wrong in [&["--nodes", "0,0"][..], &["--nodes", "5000"], &["--nodes", "0", "--stripe", "3"]]
    {
        place.run(&[&["stat"], wrong].concat()).refused(2);
    }
    place.run(&["stat", "--stripe", "64K"]).refused(2);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let place = Place::new();
    let text = lines(0..100_000, |i| format!("{i:06}\tvalue"));
    place.run_with(&["load"], text.as_bytes()).expect(0);
    let mut child = crate::bristlecone()
        .arg("dump")
        .arg(&place.pool)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), &done.stderr[..]), (Some(0), &b""[..]));
}
