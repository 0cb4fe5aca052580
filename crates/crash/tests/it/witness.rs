//! What the witness makes of processes that are not what it asks for. What it makes of those that are is
//! tested where they are: `crates/lab-cli/tests/it/witness.rs`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use bristlecone_crash::POOL;
use bristlecone_crash::witness::{Finish, Subjects, run_witness};
use std::path::PathBuf;
use std::process::Command;

/// How it goes with the pool when a line of shell stands in for the process.
fn finish(line: &'static str) -> Finish {
    let name = format!("bristlecone-witness-{}-{}", std::process::id(), line.len());
    let folder: PathBuf = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).unwrap();
    let process = |_: &str, _: &std::path::Path| {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        Ok(command)
    };
    let subjects = Subjects {
        designs: vec![POOL.into()],
        folder: folder.clone(),
        process: &process,
        threads: 1,
    };
    let mut all = Vec::new();
    run_witness(&subjects, &mut |witnessed| all.push(witnessed.finish.clone())).unwrap();
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
        let subjects = Subjects { designs, folder: folder.clone(), process: &process, threads: 1 };
        run_witness(&subjects, &mut |witnessed| panic!("{}", witnessed.design))
    };
    assert!(run("btree").is_ok());
    assert!(run("no such tree").is_err());
}
