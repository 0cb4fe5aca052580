//! `demo`, with fewer kills than the default.

use crate::{objects, run};

#[test]
fn nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let arguments = ["demo", "--kills", "4", "--seed", "11", "--folder", path, "--json"];
    let report = &objects(&run(&arguments, b"").expect(0))[0];
    assert_eq!(report["keys"], 104_334);
    assert_eq!(report["kills"], 4);
    assert_eq!((&report["lost"], &report["wrong"]), (&0.into(), &0.into()));
    // All writes are acknowledged but the few that were in flight at a kill.
    assert!(report["acknowledged"].as_u64() > Some(104_000));
    for field in ["ops_per_second", "lines_per_insert", "fences_per_insert", "reopen_ms_p99"] {
        assert!(report[field].as_f64() > Some(0.0), "{field} of {report}");
    }
    // A word of up to 8 B and its value lie in a cell: 1 line, 1 fence. Each of the 48 520 longer
    // ones needs a record of one line, and one more fence.
    let expected = 1.0 + 48_520.0 / 104_334.0;
    for field in ["lines_per_insert", "fences_per_insert"] {
        let mean = report[field].as_f64().unwrap();
        assert!((mean - expected).abs() < 1e-3, "{field} of {report}, not {expected}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
