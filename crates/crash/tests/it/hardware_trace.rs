//! Traced processes that do not run their script. Tests of the command trace processes that do.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use bristlecone_crash::hardware_trace::{Finish, HardwareTraceRequest, run_hardware_trace};
use bristlecone_crash::{POOL, ProgressFn};
use std::path::PathBuf;
use std::process::Command;

/// Returns the result for the pool when a line of shell replaces the process.
fn finish(line: &'static str) -> Finish {
    let name = format!("bristlecone-hardware-trace-{}-{}", std::process::id(), line.len());
    let folder: PathBuf = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).unwrap();
    let process = |_: &str, _: &std::path::Path| {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        Ok(command)
    };
    let request = HardwareTraceRequest {
        designs: vec![POOL.into()],
        folder: folder.clone(),
        process: &process,
        threads: 1,
        progress: ProgressFn::default(),
    };
    let mut all = Vec::new();
    run_hardware_trace(&request, &mut |result| all.push(result.finish.clone())).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn a_system_that_refuses_is_named_and_is_no_failure() {
    let Finish::Skipped(reason) = finish("echo 'refused: not today'") else {
        panic!("not skipped")
    };
    assert!(reason.ends_with("not today"), "{reason}");
}

#[test]
fn a_process_that_ends_before_it_begins_has_failed_in_its_own_words() {
    let Finish::Failed(reason) = finish("echo no such pool >&2; exit 3") else {
        panic!("not failed")
    };
    assert!(reason.contains("no such pool"), "{reason}");
}

#[test]
fn volatile_designs_are_left_out_and_unknown_ones_are_errors() {
    let process = |_: &str, _: &std::path::Path| Ok(Command::new("false"));
    let folder = std::env::temp_dir();
    let run = |design: &str| {
        let designs = vec![design.to_owned()];
        let request = HardwareTraceRequest {
            designs,
            folder: folder.clone(),
            process: &process,
            threads: 1,
            progress: ProgressFn::default(),
        };
        run_hardware_trace(&request, &mut |result| panic!("{}", result.design))
    };
    assert!(run("btree").is_ok());
    assert!(run("no such tree").is_err());
}
