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
    let rows = claims(&["gap-device", "wo-flush-insert", "wb-table3", "isle-flush-insert"]);
    let of = |claim: &str| rows.iter().filter(|row| row["claim"] == claim).count();
    assert_eq!((of("gap-device"), of("wo-flush-insert"), of("isle-flush-insert")), (8, 3, 5));
    assert_eq!(of("wb-table3"), 9 * 9, "nine structures, three operations, three units");
    for row in &rows {
        for field in ["claim", "doc", "figure", "system", "baseline", "kind", "note"] {
            assert!(row[field].is_string(), "{field} of {row}");
        }
        assert!(row["paper"].is_number() || row["paper"].is_array(), "{row}");
        assert!(row["measured"].is_number() && row["agrees"].is_boolean(), "{row}");
    }
    let agreeing = rows.iter().filter(|row| row["claim"] == "gap-device" && row["agrees"] == true);
    assert_eq!(agreeing.count(), 8, "the model has the measured bandwidths and latencies");
}

#[test]
fn counts_are_the_same_in_each_run() {
    let names = ["wo-flush-delete", "isle-flush-insert", "ccl-xbi", "gap-group-flush"];
    assert_eq!(claims(&names), claims(&names));
}

#[test]
fn the_report_is_one_file_with_a_section_for_each_claim() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er");
    let path = path.to_str().unwrap();
    let command = [
        &["reproduce", "--quick", "gap-consistency", "wo-flush-insert", "--report", path],
        &SMALL[..],
    ]
    .concat();
    let done = run(&command, b"");
    assert!(
        done.complaint.contains("wo-flush-insert: "),
        "standard error has each claim when it is done"
    );
    let answer = done.expect(0);
    assert!(answer.contains("index.html") && answer.contains("of 2 claims agree"), "{answer}");
    let html = std::fs::read_to_string(folder.path().join("deep/er/index.html")).unwrap();
    let rows = std::fs::read_to_string(folder.path().join("deep/er/claims.jsonl")).unwrap();
    assert_eq!(objects(&rows).len(), 6, "three numbers each");
    for part in ["gap-consistency", "wo-flush-insert", "<svg", "prefers-color-scheme"] {
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
