//! `bench` with workloads of the user: mixes, files, distributions, keys, traces.

use crate::{lines, objects, run};
use serde_json::Value;

/// Returns the rows of `bench` on a design and on std's map.
#[track_caller]
fn bench(arguments: &[&str]) -> Vec<Value> {
    let designs = ["bench", "--json", "--design", "fptree,btreemap"];
    objects(&run(&[&designs, arguments].concat(), b"").expect(0))
}

/// Returns standard error of a `bench` with wrong arguments.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    run(&[&["bench", "--design", "fptree,btreemap"], arguments].concat(), b"").refused(2)
}

#[test]
fn mixes_run_under_every_distribution_and_number_of_threads() {
    let mix = "get:20+insert:20+update:10+upsert:10+rmw:10+delete:20+scan:10";
    for dist in ["uniform", "zipfian", "latest", "sequential", "hotspot", "hotspot:95/2"] {
        for threads in ["1", "3"] {
            let numbers = ["--records", "3000", "--ops", "2000", "--threads", threads];
            let rows = bench(&[&["--workload", mix, "--dist", dist], &numbers[..]].concat());
            assert_eq!(rows.len(), 2);
            for row in rows {
                assert_eq!((&row["workload"], &row["dist"]), (&mix.into(), &dist.into()));
                assert_eq!((&row["records"], &row["ops"]), (&3000.into(), &2000.into()));
            }
        }
    }
    assert!(refused(&["--workload", "get:30+insert:60"]).contains("sum to 90"));
    assert!(refused(&["--workload", "get:30+fly:70"]).contains("upsert"));
    assert!(refused(&["--workload", "get", "--dist", "normal"]).contains("hotspot"));
    let all = ["--workload", "get:1+delete:99", "--records", "100", "--ops", "200"];
    assert!(refused(&all).contains("--records"));
}

#[test]
fn a_file_describes_a_workload_and_the_command_line_overrides_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.toml");
    let text = "name = \"sessions\"\nmix = \"get:60+insert:20+delete:20\"\ndist = \"latest\"\n\
                records = 2000\nops = 1000\nscan_length = 7\n";
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    for row in bench(&["--workload", path]) {
        assert_eq!((&row["workload"], &row["dist"]), (&"sessions".into(), &"latest".into()));
        assert_eq!((&row["records"], &row["ops"]), (&2000.into(), &1000.into()));
    }
    for row in bench(&["--workload", path, "--dist", "uniform", "--records", "900"]) {
        assert_eq!((&row["dist"], &row["records"]), (&"uniform".into(), &900.into()));
    }
    std::fs::write(path, format!("{text}threads = 2\n")).unwrap();
    assert!(refused(&["--workload", path]).contains("line 7"));
}

#[test]
fn keys_of_every_kind_run_on_designs_maps_and_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let words = folder.path().join("words.txt");
    std::fs::write(&words, lines(0..3000, |i| format!("word-{}", i * i))).unwrap();
    let numbers = folder.path().join("numbers.txt");
    std::fs::write(&numbers, lines(0..3000, |i| (i * i).to_string())).unwrap();
    let (words, numbers) = (words.to_str().unwrap(), numbers.to_str().unwrap());
    let workloads = "insert,get,multiget,delete,scan,f,get:50+insert:30+delete:20";
    for (keys, name, key_bytes) in [
        ("u64", "u64", Some(8.0)),
        ("16", "16", Some(16.0)),
        ("20", "20", Some(20.0)),
        ("64", "64", Some(64.0)),
        ("var", "var", Some(54.0)),
        (words, "words", None),
        (numbers, "numbers", Some(8.0)),
    ] {
        for threads in ["1", "2"] {
            let designs = ["bench", "--json", "--design", "fptree,btreemap,bristlecone"];
            let how = ["--workload", workloads, "--keys", keys, "--threads", threads];
            let numbers = ["--records", "1500", "--ops", "1000"];
            let command = [&designs[..], &how[..], &numbers[..]].concat();
            let rows = objects(&run(&command, b"").expect(0));
            assert_eq!(rows.len(), 21);
            for row in rows {
                assert_eq!(row["keys"], name);
                let mean = row["key_bytes"].as_f64().unwrap();
                assert!(key_bytes.is_none_or(|bytes| (mean - bytes).abs() < 1e-9), "{row}");
                let durable = row["design"] != "btreemap" && row["workload"] == "insert";
                assert!(!durable || row["per_op"]["fences"].as_f64() >= Some(1.0), "{row}");
            }
        }
    }
    let few = ["--keys", words, "--workload", "insert", "--records", "2001", "--ops", "1000"];
    assert!(refused(&few).contains("has 3000 keys"));
}

#[test]
fn byte_string_keys_are_refused_where_they_cannot_be_used() {
    let with = |more: &[&str]| {
        let keys = ["bench", "--design", "fptree", "--keys", "16", "--records", "100"];
        run(&[&keys, more].concat(), b"").refused(2)
    };
    assert!(with(&["--workload", "get", "--node-bytes", "256"]).contains("512 B only"));
    assert!(with(&["--workload", "reopen-crash"]).contains("--keys"));
    assert!(with(&["--workload", "get", "--device", "pcm"]).contains("keys of 8 B"));
    assert!(refused(&["--workload", "get", "--keys", "no-such-file"]).contains("key-sets.sh"));
    if !cfg!(feature = "all-sizes") {
        let few = ["bench", "--design", "lb-tree", "--keys", "16", "--workload", "get"];
        assert!(run(&few, b"").refused(2).contains("`cargo lab` builds all designs with them"));
    }
}

#[test]
fn a_recorded_trace_is_replayed_with_every_answer_checked() {
    let folder = tempfile::tempdir().unwrap();
    let mix = "get:30+insert:20+update:10+rmw:10+delete:20+scan:10";
    for keys in ["u64", "var"] {
        let path = folder.path().join(format!("{keys}.trace"));
        let path = path.to_str().unwrap();
        let numbers = ["--records", "1000", "--ops", "700", "--threads", "2", "--keys", keys];
        let recorded = bench(&[&["--workload", mix, "--record", path], &numbers[..]].concat());
        assert_eq!(recorded[0]["keys"], keys);
        let again = ["bench", "--design", "btreemap", "--workload", mix, "--record", path];
        assert!(run(&again, b"").refused(4).contains(path), "no file is written over");
        for threads in ["1", "2"] {
            for row in bench(&["--workload", path, "--threads", threads]) {
                assert_eq!((&row["workload"], &row["records"]), (&keys.into(), &1000.into()));
                assert!(row["ops"].as_u64() > Some(700), "a read-modify-write is two: {row}");
            }
        }
        assert_eq!(bench(&["--workload", path, "--ops", "50"])[0]["ops"], 50);
        assert!(refused(&["--workload", path, "--records", "10"]).contains("--records"));
    }
}

#[test]
fn the_text_of_memcached_is_replayed_on_the_store_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.trace");
    let text =
        "set a 0 0 5\r\nhello\r\nget a b\r\nset b 0 60 2\r\n17\r\nget b\r\ndelete a\r\nget a\r\n";
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let designs = ["bench", "--json", "--design", "fptree,bristlecone", "--workload", path];
    for row in objects(&run(&designs, b"").expect(0)) {
        assert_eq!(
            (&row["ops"], &row["records"], &row["workload"]),
            (&7.into(), &0.into(), &"cache".into())
        );
    }
    std::fs::write(path, format!("{text}incr b 1\r\n")).unwrap();
    assert!(refused(&["--workload", path]).contains("line 9"));
}

#[test]
fn maintenance_threads_serve_the_designs_that_defer_work() {
    let designs = ["bench", "--json", "--design", "btree-ls-r,ccl-btree,fptree,btreemap"];
    let numbers = ["--records", "1000", "--ops", "20000", "--warm-up", "100"];
    let numbers = [&numbers[..], &["--maintenance-threads", "2"]].concat();
    let arguments = [&designs[..], &["--workload", "update"], &numbers[..]].concat();
    let rows = objects(&run(&arguments, b"").expect(0));
    let collectors: Vec<_> = rows.iter().map(|row| row.get("collectors").cloned()).collect();
    assert_eq!(collectors, [Some(2.into()), Some(2.into()), None, None]);
    assert!(rows.iter().all(|row| row["ops"] == 20_000));
    let opens = ["bench", "--design", "btree-ls-r", "--workload", "reopen-crash"];
    // The old name of the option is still accepted.
    let opens = [&opens[..], &["--collectors", "1"]].concat();
    assert!(run(&opens, b"").refused(2).contains("--maintenance-threads"));
}

#[test]
fn the_floor_is_measured_beside_designs_and_relates_them_to_it() {
    let numbers = ["--records", "2000", "--ops", "3000"];
    let floor = |more: &[&str]| {
        let designs = ["bench", "--json", "--design", "floor,fptree", "--workload"];
        run(&[&designs[..], more, &numbers[..]].concat(), b"")
    };
    let kinds = ["get", "insert", "update", "delete", "scan", "multiget", "f"];
    for row in objects(&floor(&[&kinds.join(",")]).expect(0)) {
        let (name, kind) = (row["design"].as_str().unwrap(), row["workload"].as_str().unwrap());
        let ratio = |floor: &str| row["times_floor"][floor].as_f64().unwrap();
        assert!(ratio("serial") > 0.0 && ratio("pipelined") > 0.0, "{row}");
        let is_one = |ratio: f64| (ratio - 1.0).abs() < 1e-9;
        assert_eq!(is_one(ratio("serial")), name == "floor-serial", "{row}");
        assert_eq!(is_one(ratio("pipelined")), name == "floor-pipelined", "{row}");
        if name != "fptree" {
            let writes = ["insert", "update", "delete"].contains(&kind);
            let expected = if kind == "f" { 0.5 } else { f64::from(u8::from(writes)) };
            let counted = |count: &str| row["per_op"][count].as_f64().unwrap();
            assert!((counted("lines") - expected).abs() < 0.05, "{row}");
            assert!((counted("fences") - expected).abs() < 0.05, "{row}");
        }
    }
    for row in bench(&[&["--workload", "get"], &numbers[..]].concat()) {
        assert_eq!(row.get("times_floor"), None, "a run without the floor");
    }
    assert!(floor(&["get", "--keys", "16"]).refused(2).contains("keys of 8 B"));
    assert!(floor(&["reopen-crash"]).refused(2).contains("volatile"));
    let shown = ["bench", "--design", "floor,fptree", "--workload", "get"];
    let shown = run(&[&shown[..], &numbers[..]].concat(), b"").expect(0);
    assert!(shown.lines().next().is_some_and(|titles| titles.contains("x pipelined")));
}

#[test]
fn operations_start_at_a_rate_behind_a_warm_up() {
    let numbers = ["--records", "1000", "--ops", "600", "--threads", "2", "--warm-up", "100"];
    for workload in ["a", "get:40+insert:30+delete:30"] {
        let arguments = [&["--workload", workload, "--rate", "200000"], &numbers[..]].concat();
        for row in bench(&arguments) {
            assert_eq!((&row["ops"], &row["offered"]), (&600.into(), &200_000.0.into()));
            assert_eq!(row["achieved"], row["ops_per_second"]);
            assert!(row["pinned"].is_boolean() && row["warm_up"] == 100);
            assert!(row["latency_ns"]["p50"].as_u64() > Some(0));
        }
    }
    for row in bench(&[&["--workload", "multiget,delete"], &numbers[..]].concat()) {
        assert!(row["ops"] == 600 && row.get("offered").is_none());
    }
    // The run deletes all records, 100 of them in the warm-up.
    let all = ["--workload", "delete", "--records", "1000", "--warm-up", "100"];
    assert_eq!(bench(&all)[0]["ops"], 900);
    assert!(refused(&["--workload", "multiget", "--rate", "1000"]).contains("--rate"));
    assert!(refused(&["--workload", "get", "--rate", "0"]).contains("0.001"));
    assert!(refused(&["--workload", "get", "--rate", "nan"]).contains("0.001"));
    let opens = ["bench", "--design", "fptree", "--workload", "reopen-crash", "--rate", "9"];
    assert!(run(&opens, b"").refused(2).contains("--warm-up"));
    let early = ["--workload", "delete", "--records", "10", "--warm-up", "10"];
    assert!(refused(&early).contains("--warm-up"));
}
