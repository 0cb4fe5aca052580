//! The claims of the papers, and advice.

use crate::{objects, run};
use serde_json::Value;

/// The few records and operations that a test has time for.
const SMALL: [&str; 4] = ["--ops-max", "2000", "--modelled", "2000"];

fn claims(names: &[&str]) -> Vec<Value> {
    let command = [&["reproduce", "--json", "--quick"], &SMALL[..], names].concat();
    objects(&run(&command, b"").expect(0))
}

#[test]
fn a_claim_is_a_row_for_each_of_its_numbers() {
    let rows =
        claims(&["gap-device", "isle-flush-insert", "wb-table3", "isle-lines", "gap-stalls"]);
    let of = |claim: &str| rows.iter().filter(|row| row["claim"] == claim).count();
    assert_eq!((of("gap-device"), of("isle-flush-insert"), of("isle-lines")), (8, 5, 3));
    assert_eq!(of("wb-table3"), 9 * 9, "nine structures, three operations, three units");
    for row in &rows {
        let words =
            ["claim", "doc", "figure", "system", "baseline", "kind", "note", "status", "agreement"];
        for field in words {
            assert!(row[field].is_string(), "{field} of {row}");
        }
        assert!(row["paper"].is_number() && row["agrees"].is_boolean(), "{row}");
        assert_eq!(row["agrees"], row["agreement"] == "yes", "{row}");
        if row["status"] == "not run" {
            assert!(row["measured"].is_null() && row["repetitions"] == 0, "{row}");
        } else {
            // Counts and models are the same in each run.
            assert!(row["measured"].is_number() && row["repetitions"] == 1, "{row}");
            assert_eq!((&row["low"], &row["high"]), (&row["measured"], &row["measured"]), "{row}");
        }
        let is_described = row["status"] == "as described";
        assert!(is_described || row["agrees"] == false, "{row}");
    }
    let agreeing = |claim: &str| {
        rows.iter().filter(|row| row["claim"] == claim && row["agrees"] == true).count()
    };
    assert_eq!(agreeing("gap-device"), 2, "random bandwidths follow from the unit");
    assert_eq!(agreeing("isle-lines"), 3, "each tree flushes what the paper says of it");
    assert_eq!(of("gap-stalls"), 3, "what is not run is in the denominator");
}

#[test]
fn a_timed_row_has_an_interval_and_too_few_repetitions_to_agree() {
    for row in claims(&["isle-latency-gap"]) {
        let number = |field: &str| row[field].as_f64().unwrap();
        assert!(number("low") <= number("measured") && number("measured") <= number("high"));
        assert_eq!((&row["repetitions"], &row["agrees"]), (&3.into(), &false.into()), "{row}");
        assert!(row["note"].as_str().unwrap().contains("3 repetitions"), "{row}");
        assert_eq!(row["status"], "scaled", "{row}");
    }
}

#[test]
fn counts_are_the_same_in_each_run() {
    let names = ["isle-flush-insert", "ccl-xbi", "gap-group-flush"];
    assert_eq!(claims(&names), claims(&names));
}

#[test]
fn claims_that_need_other_node_sizes_or_variants_say_how_to_build_them() {
    for claim in ["isle-node-size", "ccl-formula", "wb-strings", "isle-ycsb-p99", "gap-table2"] {
        let command = [&["reproduce", "--json", "--quick", claim], &SMALL[..]].concat();
        let done = run(&command, b"");
        if cfg!(feature = "all-sizes") {
            done.expect(0);
        } else {
            let answer = done.refused(2);
            assert!(answer.contains("`cargo lab`"), "{answer}");
        }
    }
    if !cfg!(feature = "all-sizes") {
        let answer = run(&["reproduce", "--quick"], b"").refused(2);
        assert!(answer.contains("`cargo lab`"), "{answer}");
    }
}

#[test]
fn the_report_is_one_file_with_a_section_for_each_claim() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er");
    let path = path.to_str().unwrap();
    let command =
        [&["reproduce", "--quick", "gap-group-flush", "isle-lines", "--report", path], &SMALL[..]]
            .concat();
    let done = run(&command, b"");
    assert!(
        done.complaint.contains("isle-lines: "),
        "standard error has each claim when it is done"
    );
    let answer = done.expect(0);
    assert!(answer.contains("index.html") && answer.contains("of 6 numbers agree ("), "{answer}");
    let html = std::fs::read_to_string(folder.path().join("deep/er/index.html")).unwrap();
    let rows = std::fs::read_to_string(folder.path().join("deep/er/claims.jsonl")).unwrap();
    assert_eq!(objects(&rows).len(), 6, "three numbers each");
    for part in ["gap-group-flush", "isle-lines", "<svg", "prefers-color-scheme"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<script") && !html.contains("src=\"http"), "nothing is loaded");
}

#[test]
fn an_unknown_claim_is_a_wrong_use_that_names_those_there_are() {
    let answer = run(&["reproduce", "no-such-claim"], b"").refused(2);
    assert!(answer.contains("no-such-claim") && answer.contains("ccl-formula"), "{answer}");
    run(&["reproduce", "gap-device", "--modelled", "1"], b"").refused(2);
}

#[test]
fn advice_names_a_design_its_nodes_and_the_reason() {
    let small = ["--records", "2000", "--ops", "500", "--device", "optane-100"];
    let command =
        [&["advise", "--json", "--workload", "get:50+insert:50", "--top", "3"], &small[..]];
    let rows = objects(&run(&command.concat(), b"").expect(0));
    assert_eq!(rows.len(), 3);
    assert!(rows[0]["why"].is_string() && rows[1]["why"].is_null());
    for row in &rows {
        assert!(row["design"].is_string() && row["node_bytes"].is_number(), "{row}");
        assert!(row["predicted"].as_f64().unwrap() > 0.0, "{row}");
    }
    let speed = |row: &Value| row["ops_per_second"].as_f64().unwrap();
    assert!(speed(&rows[0]) >= speed(&rows[1]) && speed(&rows[1]) >= speed(&rows[2]));
    let many = [&["advise", "--json", "--threads", "48", "--workload", "insert"], &small[..]];
    let many = objects(&run(&many.concat(), b"").expect(0));
    assert!(speed(&many[0]) > speed(&rows[0]), "more threads do more");
}
