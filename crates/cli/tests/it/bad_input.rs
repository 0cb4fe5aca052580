//! Damaged files and wrong arguments: the right exit code, a reason on standard error that names
//! the file, nothing on standard output, and no change of the file.

use crate::open::{holder, holder_with};
use crate::{Place, domain_here, lines, run};
use std::fs;
use std::io::Write;

const COMMANDS: [&[&str]; 8] = [
    &["put", "k", "v"],
    &["get", "k"],
    &["del", "k"],
    &["scan"],
    &["stat"],
    &["check"],
    &["dump"],
    &["load"],
];

/// Asserts that every command refuses the file with `code`, names it, and does not change it.
#[track_caller]
fn all_refuse(place: &Place, code: i32, because: &str) {
    let before = fs::read(&place.pool).unwrap();
    for command in COMMANDS {
        let complaint = place.run(command).refused(code);
        assert!(complaint.contains("test.pool"), "{command:?}: {complaint}");
        assert!(complaint.contains(because), "{command:?}: {complaint}");
        assert!(fs::read(&place.pool).unwrap() == before, "{command:?} changed the file");
    }
}

#[test]
fn a_file_that_is_no_pool() {
    let place = Place::new();
    fs::write(&place.pool, b"hello".repeat(1 << 18)).unwrap();
    all_refuse(&place, 3, "not a Bristlecone pool");
    fs::write(&place.pool, b"hello").unwrap();
    all_refuse(&place, 3, "not a Bristlecone pool");
}

#[test]
fn a_pool_that_is_cut_short() {
    let place = Place::with(&[("k", "v")]);
    let whole = fs::read(&place.pool).unwrap();
    fs::write(&place.pool, &whole[..whole.len() / 2]).unwrap();
    all_refuse(&place, 3, "cut short");
    fs::write(&place.pool, &whole).unwrap();
    assert_eq!(place.run(&["get", "k"]).expect(0), "v");
}

#[test]
fn superblocks_with_flipped_bits() {
    let place = Place::with(&[("k", "v")]);
    let whole = fs::read(&place.pool).unwrap();
    for bit in [8 * 16, 8 * 33, 8 * 50, 8 * 121] {
        let flipped = |copies: &[usize]| {
            let mut bytes = whole.clone();
            for copy in copies {
                bytes[copy + bit / 8] ^= 1;
            }
            fs::write(&place.pool, bytes).unwrap();
        };
        flipped(&[0, 0x1000]);
        all_refuse(&place, 3, "superblock");
        for copy in [0, 0x1000] {
            flipped(&[copy]);
            assert_eq!(place.run(&["get", "k"]).expect(0), "v", "one copy is enough");
        }
    }
}

#[test]
fn a_newer_version_and_an_older_one() {
    let place = Place::with(&[("k", "v")]);
    let mut bytes = fs::read(&place.pool).unwrap();
    for (version, because) in [(1_u64, "dump"), (2, "dump"), (4, "newer")] {
        for copy in [0, 0x1000] {
            bytes[copy + 8..copy + 16].copy_from_slice(&version.to_le_bytes());
            let checksum = u64::from(crc32c(&bytes[copy..copy + 120]));
            bytes[copy + 120..copy + 128].copy_from_slice(&checksum.to_le_bytes());
        }
        fs::write(&place.pool, &bytes).unwrap();
        all_refuse(&place, 3, because);
    }
}

/// Returns the CRC-32C of `bytes`, computed bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn damage_inside_is_found_by_check() {
    let pairs: Vec<(String, String)> =
        (0..500).map(|i| (format!("key {i:04}"), "v".repeat(60))).collect();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    let place = Place::with(&pairs);
    let mut bytes = fs::read(&place.pool).unwrap();
    let at = bytes.windows(8).position(|bytes| bytes == b"key 0123").unwrap();
    bytes[at..at + 8].copy_from_slice(b"key 9999");
    fs::write(&place.pool, &bytes).unwrap();
    let complaint = place.run(&["check"]).refused(3);
    assert!(complaint.contains("test.pool") && complaint.contains("offset"), "{complaint}");
    let done = place.run(&["check", "--json"]);
    assert_eq!(done.code, Some(3));
    let answer: serde_json::Value = serde_json::from_slice(&done.output).unwrap();
    assert_eq!(answer["ok"], false);
    assert!(answer["damage"].as_str().unwrap().contains("offset"));
}

#[test]
fn a_pool_that_another_process_has_open() {
    let place = Place::with(&[("k", "v")]);
    let (mut holder, stdin) = holder(&place);
    all_refuse(&place, 4, "open elsewhere");
    drop(stdin);
    assert!(holder.wait().unwrap().success());
    assert_eq!(place.run(&["get", "mine"]).expect(0), "1");
}

#[test]
fn a_file_that_is_cut_while_it_is_open() {
    // A fault where it is mapped, and found at the close where it has a journal.
    for options in [&["--durability", "process"][..], &[]] {
        let place = Place::with(&[("k", "v")]);
        let (holder, mut stdin) = holder_with(&place, options);
        fs::OpenOptions::new().write(true).open(&place.pool).unwrap().set_len(4096).unwrap();
        let _ = stdin.write_all(b"more\t2\n");
        drop(stdin);
        let done = holder.wait_with_output().unwrap();
        let complaint = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(4), "{complaint}");
        assert!(complaint.contains("test.pool"), "{complaint}");
    }
}

#[test]
fn a_file_that_may_not_be_written() {
    let place = Place::with(&[("k", "v")]);
    let mut permissions = fs::metadata(&place.pool).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&place.pool, permissions).unwrap();
    if fs::OpenOptions::new().write(true).open(&place.pool).is_ok() {
        return; // This user may write any file.
    }
    all_refuse(&place, 4, "permission");
}

#[test]
fn a_path_that_leads_nowhere_or_to_a_folder() {
    let place = Place::new();
    for command in COMMANDS.iter().filter(|command| command[0] != "load") {
        let complaint = place.run(command).refused(4);
        assert!(complaint.contains("test.pool"), "{complaint}");
        assert!(!place.pool.exists(), "{command:?} made a file");
    }
    fs::create_dir(&place.pool).unwrap();
    for command in COMMANDS {
        assert!(place.run(command).refused(4).contains("test.pool"));
    }
}

#[test]
fn creating_what_exists_or_is_too_small() {
    let place = Place::with(&[("k", "v")]);
    assert!(place.run(&["create"]).refused(4).contains("exists"));
    assert_eq!(place.run(&["get", "k"]).expect(0), "v");
    let place = Place::new();
    let complaint = place.run(&["create", "--size", "4K"]).refused(2);
    assert!(complaint.contains("too small"), "{complaint}");
    assert!(!place.pool.exists());
}

#[test]
fn keys_and_values_that_are_too_long() {
    let place = Place::with(&[("k", "v")]);
    let longest = "k".repeat(4096);
    place.run(&["put", &longest, "v"]).expect(0);
    assert_eq!(place.run(&["get", &longest]).expect(0), "v");
    let longer = "k".repeat(4097);
    for command in [&["put", &longer, "v"][..], &["get", &longer], &["del", &longer]] {
        assert!(place.run(command).refused(2).contains("4097"));
    }
    let value = vec![7; (16 << 20) + 1];
    place.run_with(&["put", "k"], &value).refused(2);
    place.run_with(&["put", "big"], &value[1..]).expect(0);
    assert_eq!(place.run(&["get", "big"]).output, value[1..]);
    assert_eq!(place.run(&["get", "k"]).expect(0), "v");
}

#[test]
fn a_device_that_is_full() {
    let place = Place::new();
    place.run(&["create", "--size", "1M"]).expect(0);
    let text = lines(0..100_000, |i| format!("{i:06}\t{}", "v".repeat(100)));
    fs::write(place.path("pairs"), text).unwrap();
    // The shell limits files to some blocks of 512 B and ignores the signal SIGXFSZ, so that a
    // write beyond the limit fails with an error: with 2100 of them, the first one for a journal.
    let cases = [
        ("", 2100, "no space for a journal"),
        ("", 4096, "full"),
        ("--durability process", 4096, "full"),
    ];
    for (options, blocks, words) in cases {
        let limited =
            format!(r#"trap '' XFSZ; ulimit -f {blocks}; exec "$0" load "$1" "$2" {options}"#);
        let done = std::process::Command::new("sh")
            .args(["-c", &limited])
            .arg(crate::COMMAND)
            .args([&place.pool, &place.path("pairs")])
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(4), "{complaint}");
        assert!(complaint.contains("test.pool") && complaint.contains(words), "{complaint}");
    }
    assert_eq!(place.run(&["get", "000000"]).expect(0), "v".repeat(100));
    place.run(&["check"]).expect(0);
}

#[test]
fn words_that_mean_nothing() {
    let nothing: [&[&str]; 7] = [
        &[],
        &["frobnicate"],
        &["get"],
        &["create", "p", "--size", "many"],
        &["torture", "--cycles", "1.5"],
        &["torture", "--cycles", "0"],
        &["stat", "p", "--stripe", "64K"],
    ];
    for arguments in nothing {
        run(arguments, b"").refused(2);
    }
}

#[test]
fn lines_that_are_no_pairs() {
    let place = Place::with(&[]);
    for (format, lines) in [
        ("tsv", &b"good\t1\nbad\n"[..]),
        ("tsv", b"good\t1\nbad\\x\t1\n"),
        ("jsonl", b"{\"key\":\"good\",\"value\":\"1\"}\n{\"value\":\"1\"}\n"),
    ] {
        let complaint = place.run_with(&["load", "--format", format], lines).refused(2);
        assert!(complaint.contains("line 2"), "{complaint}");
        assert_eq!(place.run(&["get", "good"]).expect(0), "1", "the lines before stay");
        place.run(&["del", "good"]).expect(0);
    }
    let long = format!("good\t1\n{}\t1\n", "k".repeat(5000));
    for threads in ["1", "2"] {
        let load = ["load", "--threads", threads];
        let complaint = place.run_with(&load, long.as_bytes()).refused(2);
        assert!(complaint.contains("line 2: ") && complaint.contains("too long"), "{complaint}");
    }
}

#[test]
fn what_is_no_file_is_refused_and_nothing_waits() {
    let place = Place::new();
    let fifo = place.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let fifo = fifo.to_str().unwrap();
    for path in ["/dev/zero", "/dev/null", fifo] {
        for command in COMMANDS {
            let arguments = [&[command[0], path], &command[1..]].concat();
            let complaint = run(&arguments, b"k\tv\n").refused(4);
            assert!(complaint.contains(path), "{command:?}: {complaint}");
        }
        run(&["create", path], b"").refused(4);
        for command in [&["salvage", path, "into"][..], &["dump", path, "--skip-damaged"]] {
            let complaint = run(command, b"").refused(4);
            assert!(complaint.contains(path), "{command:?}: {complaint}");
        }
    }
    // Nor does a store whose journal would lie there.
    let place = Place::with(&[("k", "v")]);
    let fifo = place.path("test.pool.journal");
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    if domain_here() == "disk" {
        all_refuse(&place, 4, "the journal");
    }
    assert_eq!(place.run(&["get", "k", "--durability", "process"]).expect(0), "v");
}

#[test]
fn a_file_of_zeros_and_an_empty_file_are_no_stores() {
    let place = Place::new();
    fs::write(&place.pool, vec![0; 1 << 20]).unwrap();
    all_refuse(&place, 3, "zeros");
    fs::write(&place.pool, "").unwrap();
    for command in COMMANDS.iter().filter(|command| command[0] != "load") {
        assert!(place.run(command).refused(3).contains("empty file"), "{command:?}");
    }
    // The advice of the message helps.
    place.run_with(&["load"], b"k\tv\n").expect(0);
    assert_eq!(place.run(&["get", "k"]).expect(0), "v");
}
