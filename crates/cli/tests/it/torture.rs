//! Kills by the dozen; the thousands are for the command line.

use crate::{objects, run};

#[test]
fn nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let arguments = ["--cycles", "25", "--threads", "3", "--keys", "700", "--seed", "11"];
    let command = [&["torture", "--folder", path, "--json"], &arguments[..]].concat();
    let report = &objects(&run(&command, b"").expect(0))[0];
    assert_eq!(report["cycles"], 25);
    assert_eq!((&report["lost"], &report["wrong"]), (&0.into(), &0.into()));
    // All but a few of the children come to do something before they are killed.
    assert!(report["acknowledged"].as_u64() > Some(1000), "{report}");
    assert!(report["keys_present"].as_u64() > Some(100), "{report}");
    let (p50, p99) = (&report["reopen_ms"]["p50"], &report["reopen_ms"]["p99"]);
    assert!(p50.as_f64() > Some(0.0) && p99.as_f64() >= p50.as_f64(), "{report}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
