//! Benchmarks that a signal ends leave no file behind.
#![expect(unsafe_code, reason = "the standard library sets no actions of signals")]

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
    let mut command = Command::new(env!("CARGO_BIN_EXE_bristlecone-lab"));
    let act_by_default = || {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: the action is the default, which is no function of this process.
            if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // These tests may run in the background of a shell, which ignores such signals for all of its
    // children.
    // SAFETY: the function makes system calls that a child of `fork` may make.
    unsafe { command.pre_exec(act_by_default) };
    let child = command
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
