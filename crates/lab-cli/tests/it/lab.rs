//! The roster, the benchmarks and the explorer.

use crate::{objects, run};
use serde_json::Value;

fn roster() -> Vec<Value> {
    objects(&run(&["designs", "--json"], b"").expect(0))
}

fn names() -> Vec<String> {
    roster().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn numbers(object: &Value, fields: &[&str]) {
    for field in fields {
        assert!(object[field].is_number(), "{field} of {object}");
    }
}

#[test]
fn the_roster_has_the_promised_fields() {
    let roster = objects(&run(&["designs", "--json"], b"").expect(0));
    assert!(roster.iter().any(|row| row["name"] == "fptree"));
    for row in &roster {
        assert!(row["name"].is_string() && row["source"].is_string());
        assert!(row["persistent"].is_boolean());
        numbers(row, &["node_bytes"]);
        for operation in ["insert", "update", "remove"] {
            numbers(&row["budget"][operation], &["lines", "fences"]);
        }
        assert!(row["features"].as_array().unwrap().iter().all(Value::is_string));
        assert!(row["node_bytes_all"].as_array().unwrap().contains(&row["node_bytes"]));
    }
    let table = run(&["designs"], b"").expect(0);
    assert!(names().iter().all(|name| table.contains(&name[..])));
}

#[test]
fn the_roster_counts_the_mechanisms_of_each_page() {
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/designs");
    let table = run(&["designs"], b"").expect(0);
    for row in roster() {
        let name = row["name"].as_str().unwrap();
        let is_ours =
            name.ends_with("-r") || ["bristlecone", "cell-tree", "unit-tree"].contains(&name);
        let kind = if is_ours { "ours" } else { "published" };
        assert_eq!(row["kind"], kind, "{name}");
        let page = std::fs::read_to_string(format!("{pages}/{name}.md")).unwrap();
        let count = |status: &str| page.matches(&format!(" | {status} | ")).count();
        let (described, repaired) = (count("as described"), count("repaired"));
        let departed = count("departed") + count("absent");
        let counts = [("as_described", described), ("repaired", repaired), ("departed", departed)];
        for (field, count) in counts {
            assert_eq!(row["mechanisms"][field], count, "{field} of {name}");
        }
        let has_table = described + repaired + departed > 0;
        assert!(is_ours || has_table, "{name}");
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        let cells: Vec<_> = line.split_whitespace().skip(1).take(4).collect();
        let cell = |count: usize| if has_table { count.to_string() } else { "-".to_owned() };
        let counts = counts.map(|(_, count)| cell(count));
        assert_eq!(cells, [kind, &counts[0], &counts[1], &counts[2]], "{name}");
    }
}

fn bench(arguments: &[&str]) -> Vec<Value> {
    let command = [&["bench", "--json", "--records", "3000", "--ops", "2000"], arguments].concat();
    let rows = objects(&run(&command, b"").expect(0));
    for row in &rows {
        assert!(row["design"].is_string() && row["workload"].is_string());
        numbers(row, &["threads", "records", "ops", "seconds", "ops_per_second"]);
        numbers(&row["latency_ns"], &["p50", "p90", "p99", "p999"]);
        numbers(&row["per_op"], &["lines", "fences", "words", "units256"]);
        numbers(&row["bytes_per_key"], &["pm", "dram"]);
        let (seconds, ops) = (row["seconds"].as_f64().unwrap(), row["ops"].as_f64().unwrap());
        let speed = row["ops_per_second"].as_f64().unwrap();
        assert!((speed * seconds / ops - 1.0).abs() < 1e-6);
    }
    rows
}

#[test]
fn every_design_runs_every_workload() {
    let workloads = "insert,get,multiget,update,delete,scan,a,b,c,d,e,f";
    let roster = roster();
    let is_volatile = |row: &Value| {
        let of = roster.iter().find(|design| design["name"] == row["design"]);
        of.is_none_or(|design| design["persistent"] == false) && row["design"] != "bristlecone"
    };
    // `fast-fair-wide` and `wb-tree-words` are not in every build.
    let all = roster.len() + 2 * usize::from(cfg!(feature = "all-sizes"));
    for (designs, count, threads) in [("fptree,wb-tree", 2, "1"), ("all", all, "2")] {
        let rows = bench(&["--design", designs, "--workload", workloads, "--threads", threads]);
        assert_eq!(rows.len(), count * 12);
        for row in rows {
            assert_eq!((&row["records"], &row["ops"]), (&3000.into(), &2000.into()));
            let is = |field: &str, names: &[&str]| names.iter().any(|name| row[field] == *name);
            let fences = row["per_op"]["fences"].as_f64().unwrap();
            if is_volatile(&row) || is("workload", &["get", "multiget", "scan", "c"]) {
                assert!(fences == 0.0, "a read or a volatile design fences nothing: {row}");
            } else if is("workload", &["insert", "update", "delete"]) {
                assert!(fences >= 1.0, "every operation is durable: {row}");
            } else {
                assert!(fences > 0.0, "some operations are durable: {row}");
            }
        }
    }
}

#[test]
fn opening_again_is_timed() {
    let arguments = ["--design", "fptree,bristlecone", "--workload", "reopen-crash,reopen-clean"];
    let command = [&["bench", "--json", "--records", "3000", "--reps", "2"], &arguments[..]];
    let rows = objects(&run(&command.concat(), b"").expect(0));
    let workloads: Vec<_> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    assert_eq!(workloads, ["reopen-crash", "reopen-crash", "reopen-clean", "reopen-clean"]);
    for row in rows {
        assert_eq!(row["ops"], 1);
        assert!(row["per_op"].is_null());
        assert!(row["seconds"].as_f64() > Some(0.0));
    }
    let volatile = ["bench", "--design", "btreemap", "--workload", "reopen-crash"];
    assert!(run(&volatile, b"").refused(2).contains("btreemap"));
}

#[test]
fn counts_are_exact_and_do_not_depend_on_the_clock() {
    let arguments = ["--design", "fptree-r", "--workload", "update", "--seed", "3"];
    for rows in [bench(&arguments), bench(&arguments)] {
        let per_op = &rows[0]["per_op"];
        for field in ["lines", "fences", "words", "units256"] {
            assert_eq!(per_op[field].as_f64(), Some(1.0), "{field}");
        }
    }
}

#[test]
fn a_device_is_modelled_and_the_same_on_every_run() {
    let model = |arguments: &[&str]| {
        let device = ["--workload", "update,multiget", "--device", "pcm", "--sim-threads", "5"];
        let rows = bench(&[&device[..], arguments].concat());
        let mut models: Vec<Value> = rows.iter().map(|row| row["model"].clone()).collect();
        for model in &mut models {
            model.as_object_mut().unwrap().remove("host_ops_per_second").unwrap();
        }
        models
    };
    let small = ["--design", "fptree,bristlecone", "--sim-cache", "16K"];
    let models = model(&small);
    assert_eq!((models.len(), &models), (4, &model(&small)));
    assert_ne!(models, model(&["--design", "fptree,bristlecone", "--sim-cache", "8K"]));
    for (index, model) in models.iter().enumerate() {
        assert_eq!((&model["device"], &model["ops"]), (&"pcm".into(), &2000.into()));
        numbers(model, &["seconds", "media_bytes_per_op", "energy_nj_per_op"]);
        numbers(model, &["wear_max", "wear_mean"]);
        let threads = model["projections"].as_array().unwrap();
        assert!(threads.iter().any(|projection| projection["threads"] == 5));
        if index < 2 {
            // An update of 16 B writes a line of 64 B, which is the write unit of this device.
            numbers(model, &["cli", "xbi", "write_amplification"]);
            assert!(model["cli"].as_f64() >= Some(4.0) && model["cli"] == model["xbi"], "{model}");
        } else {
            assert!(
                model["cli"].is_null() && model["media_read_bytes_per_op"].as_f64() > Some(0.0)
            );
        }
    }
    let table = ["bench", "--design", "fptree,btreemap", "--workload", "insert", "--records", "0"];
    let table = [&table[..], &["--ops", "1000", "--device", "optane-100"]].concat();
    assert!(run(&table, b"").expect(0).contains("optane-100"));
}

#[test]
fn a_run_may_load_in_bulk_and_flush_serially() {
    let asked = ["--design", "fptree,lb-tree", "--workload", "get"];
    let rows = bench(&[&asked[..], &["--fill", "70", "--flush", "serial"]].concat());
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["fill"] == 70 && row["flush"] == "serial"));
    let full = bench(&[&asked[..], &["--fill", "100"]].concat());
    for (full, some) in full.iter().zip(&rows) {
        assert_eq!(full["flush"], "fastest");
        let pm = |row: &Value| row["bytes_per_key"]["pm"].as_f64();
        assert!(pm(full) < pm(some), "{full} {some}");
    }
    let peer = ["bench", "--design", "btreemap", "--workload", "get", "--fill", "70"];
    assert!(run(&peer, b"").expect(2).is_empty());
}

#[test]
fn options_reach_the_run() {
    let pool = tempfile::tempdir().unwrap();
    let path = pool.path().join("bench.pool");
    let path = path.to_str().unwrap();
    let rows = bench(&[
        "--design",
        "fptree,btreemap",
        "--workload",
        "get",
        "--node-bytes",
        "512",
        "--dist",
        "zipfian",
        "--delay-ns",
        "10",
        "--domain",
        "eadr",
        "--reps",
        "3",
        "--pool",
        path,
    ]);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["node_bytes"], 512);
    assert_eq!(rows[0]["dist"], "zipfian");
    assert_eq!(rows[0]["domain"], "eadr");
    assert_eq!(rows[0]["reps"], 3);
    assert_eq!(std::fs::read_dir(pool.path()).unwrap().count(), 0, "the pool is removed");
    let speeds: Vec<f64> = rows[0]["ops_per_second_range"]
        .as_array()
        .unwrap()
        .iter()
        .map(|speed| speed.as_f64().unwrap())
        .collect();
    let median = rows[0]["ops_per_second"].as_f64().unwrap();
    assert!(speeds[0] <= median && median <= speeds[1]);
}

#[test]
fn a_benchmark_does_not_overwrite_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let done = run(
        &["bench", "--design", "fptree", "--workload", "get", "--records", "10", "--pool", path],
        b"",
    );
    assert!(done.refused(4).contains(path));
    assert!(file.path().exists());
}

#[test]
fn the_explorer_prints_a_row_for_each_scenario() {
    let arguments =
        ["crash", "--design", "fptree", "--mode", "px86", "--scenario", "update", "--json"];
    let rows = objects(&run(&arguments, b"").expect(0));
    assert!(!rows.is_empty());
    for row in &rows {
        assert_eq!((&row["design"], &row["mode"]), (&"fptree".into(), &"px86".into()));
        assert!(row["scenario"].as_str().unwrap().contains("update"));
        numbers(row, &["images", "recoveries", "violations"]);
        assert_eq!((&row["incomplete"], &row["violations"]), (&false.into(), &0.into()));
        // The number of images may need more than 64 bits.
        assert!(row["images"].as_f64() > Some(1.0));
        assert!((1..=2).contains(&row["depth"].as_u64().unwrap()));
        assert_eq!(row["mutants"]["total"], 0);
    }
    let nothing = ["crash", "--design", "fptree", "--scenario", "no such scenario"];
    let few = ["--scenario", "u64/update", "--mode", "px86", "--mutants", "--json"];
    let mutants = [&["crash", "--design", "fptree"], &few[..]].concat();
    let row = &objects(&run(&mutants, b"").expect(0))[0]["mutants"];
    let count = |field: &str| row[field].as_u64().unwrap();
    assert!(count("killed") >= 2, "the flush and the fence of an update are needed: {row}");
    assert_eq!(count("total"), count("killed") + count("survived"));
    run(&nothing, b"").refused(2);
}

#[test]
fn published_defects_are_caught_and_printed() {
    let catalogue = ["crash", "--catalogue", "--design", "toy-summed", "--json"];
    let rows = objects(&run(&catalogue, b"").expect(0));
    let last = rows.last().unwrap();
    assert_eq!((&last["design"], &last["violations"]), (&"catalogue".into(), &0.into()));
    assert_eq!((&last["catalogue"]["total"], &last["catalogue"]["caught"]), (&1.into(), &1.into()));
    let printed = ["crash", "--as-printed", "--design", "fast-fair", "--json"];
    let few = ["--scenario", "u64/remove-front"];
    let rows = objects(&run(&[&printed[..], &few[..]].concat(), b"").expect(1));
    let flush = rows.iter().find(|row| row["scenario"].as_str().unwrap().contains("delete-flush"));
    assert!(flush.unwrap()["traces"][0].as_str().unwrap().contains("LOST"));
    run(&["crash", "--as-printed", "--design", "btree"], b"").refused(2);
}

#[test]
fn the_explorer_writes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let path = report.to_str().unwrap();
    let scenario = ["--mode", "px86", "--scenario", "u64/update"];
    let command = [&["crash", "--design", "fptree", "--report", path], &scenario[..]].concat();
    assert!(run(&command, b"").expect(0).contains("index.html"));
    let page = std::fs::read_to_string(report.join("index.html")).unwrap();
    assert!(
        page.contains("Pass: no promise is violated.") && page.contains("<td>u64/update</td>"),
        "{page}"
    );
    assert!(!page.contains("mutants were killed") && !page.contains("<figure>"), "{page}");
    let command = [&command[..], &["--mutants"]].concat();
    assert!(run(&command, b"").expect(0).contains("index.html"));
    let page = std::fs::read_to_string(report.join("index.html")).unwrap();
    assert!(page.contains("mutants were killed"), "{page}");
}

#[test]
fn a_report_that_cannot_be_written_fails_before_the_exploration() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("report");
    // Every scenario of every design takes minutes; the test would not wait for them.
    let command = ["crash", "--design", "all", "--report", path.to_str().unwrap()];
    let output = run(&command, b"");
    assert!(output.refused(4).contains("--report"));
}

#[test]
fn faults_are_rows_too() {
    let filter = ["--scenario", "units", "--garbage", "10", "--json"];
    let command = [&["crash", "--faults", "--design", "store"], &filter[..]].concat();
    let rows = objects(&run(&command, b"").expect(0));
    assert_eq!(rows.len(), 6, "zeroed, garbage, poisoned; closed and killed");
    for row in &rows {
        assert_eq!((&row["fault"], &row["design"]), (&"media".into(), &"store".into()));
        numbers(row, &["cases", "runs", "right", "named", "wrong", "unseen", "violations"]);
        assert!(row["runs"].as_u64() > Some(0) && row["violations"] == 0, "{row}");
    }
    let filter = ["--scenario", "u64/split-leaf", "--garbage", "0", "--json"];
    let command = [&["crash", "--faults", "--design", "fptree"], &filter[..]].concat();
    let rows = objects(&run(&command, b"").expect(0));
    assert!(rows.iter().any(|row| row["fault"] == "space" && row["named"].as_u64() > Some(0)));
}
