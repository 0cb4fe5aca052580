//! `torture` with a few dozen kills.

use crate::{objects, run};
use serde_json::Value;

/// Returns the report of a short run. Asserts that no write is lost and no file is left behind.
fn torture(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let command = [&["torture", "--folder", path, "--seed", "11", "--json"], arguments].concat();
    let report = objects(&run(&command, b"").expect(0)).remove(0);
    assert_eq!((&report["lost"], &report["wrong"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    report
}

#[test]
fn nothing_acknowledged_is_lost() {
    let report = torture(&["--cycles", "25", "--threads", "3", "--keys", "700"]);
    assert_eq!(report["cycles"], 25);
    // All but a few of the children do some steps before they are killed.
    assert!(report["acknowledged"].as_u64() > Some(1000), "{report}");
    assert!(report["keys_present"].as_u64() > Some(100), "{report}");
    let (p50, p99) = (&report["reopen_ms"]["p50"], &report["reopen_ms"]["p99"]);
    assert!(p50.as_f64() > Some(0.0) && p99.as_f64() >= p50.as_f64(), "{report}");
}

#[test]
fn keys_loaded_before_the_kills_are_there_after_them() {
    // The steps of one child cannot remove this many.
    let report = torture(&["--cycles", "3", "--keys", "40k", "--load", "30k"]);
    assert_eq!(report["loaded"], 30_000);
    assert!(report["keys_present"].as_u64() > Some(25_000), "{report}");
}

#[test]
fn every_image_of_a_power_cut_without_a_journal_is_refused_or_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let command =
        ["torture", "--power-cut", "60", "--keys", "700", "--seed", "5", "--folder", path];
    let more = ["--json", "--durability", "process"];
    let report = objects(&run(&[&command[..], &more].concat(), b"").expect(0)).remove(0);
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(number("images"), 60, "{report}");
    for bad in ["wrong", "hung", "crashed", "lost_by_kills", "wrong_by_kills"] {
        assert_eq!(number(bad), 0, "{bad} of {report}");
    }
    assert!(number("refused") > 0 && number("right") > 0 && number("stale_pages") > 0, "{report}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    run(&["torture", "--power-cut", "0"], b"").refused(2);
    run(&["torture", "--power-cut", "9", "--cycles", "9"], b"").refused(2);
}

#[test]
fn a_kill_loses_nothing_whatever_the_durability() {
    for durability in ["commit", "interval", "process"] {
        let report = torture(&["--cycles", "8", "--keys", "300", "--durability", durability]);
        assert!(report["acknowledged"].as_u64() > Some(100), "{report}");
    }
}

/// Returns the report of a short run of power cuts of a store with a journal.
fn journal_cuts(durability: &str, more: &[&str], code: i32) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let command = ["torture", "--power-cut", "60", "--keys", "500", "--seed", "5", "--json"];
    let command = [&command, &["--folder", path, "--durability", durability][..], more].concat();
    let report = objects(&run(&command, b"").expect(code)).remove(0);
    assert_eq!(report["images"], 60, "{report}");
    report
}

#[test]
fn every_image_of_a_power_cut_of_a_store_with_a_journal_is_right() {
    for durability in ["commit", "interval"] {
        let report = journal_cuts(durability, &[], 0);
        assert_eq!((&report["right"], &report["durability"]), (&60.into(), &durability.into()));
        let number = |name: &str| report[name].as_u64().unwrap();
        // How many sectors are open at the cuts depends on the machine: 41 in one run.
        assert!(number("acknowledged") > 1000 && number("open_sectors") > 0, "{report}");
        assert!(number("with_promise") > 10, "{report}");
        assert_eq!(number("with_window") > 10, durability == "interval", "{report}");
    }
    run(&["torture", "--power-cut", "9", "--open-torn", "--durability", "commit"], b"").refused(2);
}

#[test]
fn what_a_disk_that_lies_has_lost_is_found() {
    for durability in ["commit", "interval"] {
        let report = journal_cuts(durability, &["--lying-disk"], 1);
        assert!(report["right"].as_u64() < Some(60), "{report}");
    }
}
