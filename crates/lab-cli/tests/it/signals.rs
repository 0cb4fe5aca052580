//! Benchmarks that a signal ends leave no file behind.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the names in the folders of a benchmark's files that begin with `prefix`.
fn names(prefix: &str) -> Vec<String> {
    let folders = ["/dev/shm".into(), "/var/tmp".into(), std::env::temp_dir()];
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// Starts `bench`, sends its group the signal as a terminal does, once a file of its own is there
/// whose name ends with `awaited`, and waits until its output is closed: by all of its processes.
#[track_caller]
fn leaves_nothing(arguments: &[&str], awaited: &str, signal: (&str, i32)) {
    let child = Command::new(env!("CARGO_BIN_EXE_bristlecone-lab"))
        .args(["bench", "--design", "fptree", "--workload", "reopen-crash", "--reps", "1000"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let prefix = format!("bristlecone-bench-{}-", child.id());
    while !names(&prefix).iter().any(|name| name.ends_with(awaited)) {
        assert!(Path::new(&format!("/proc/{}/exe", child.id())).exists(), "ended too soon");
        std::thread::yield_now();
    }
    let sent = Command::new("kill").args([signal.0, "--", &format!("-{}", child.id())]).status();
    assert!(sent.unwrap().success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.signal(), Some(signal.1), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(names(&prefix), Vec::<String>::new());
}

const SIGNALS: [(&str, i32); 3] = [("-INT", 2), ("-TERM", 15), ("-KILL", 9)];

#[test]
fn a_benchmark_in_shared_memory_that_is_interrupted_leaves_no_pool() {
    for signal in SIGNALS {
        leaves_nothing(&["--records", "200k"], ".pool", signal);
    }
}

#[test]
fn a_benchmark_on_a_disk_that_is_interrupted_leaves_neither_pool_nor_journal() {
    for signal in SIGNALS {
        leaves_nothing(&["--records", "200k", "--domain", "disk"], ".pool.journal", signal);
    }
}
