//! Commands in a process that gets no threads, or too few.
#![expect(unsafe_code, reason = "the standard library sets no limits")]

use crate::{Place, bristlecone};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs a command to its end. Asserts that the system refused it something, and that it said so.
#[track_caller]
fn is_refused(command: &mut Command) {
    let done = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    assert!(said.contains("cannot start a thread") && !said.contains("panicked"), "{said}");
}

/// Returns the command without threads: no address space has room for such a stack.
fn without_threads() -> Command {
    let mut command = bristlecone();
    command.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
    command
}

/// They panicked, with exit code 101.
#[test]
fn demo_and_torture_without_threads_are_refused() {
    let place = Place::new();
    let folder = place.folder.path();
    for (command, durability) in [
        (&["demo", "--kills", "1"][..], "process"),
        (&["torture", "--cycles", "1"], "process"),
        (&["torture", "--power-cut", "1"], "process"),
        (&["torture", "--power-cut", "1"], "commit"),
    ] {
        let more = ["--durability", durability, "--folder"];
        is_refused(without_threads().args(command).args(more).arg(folder));
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "nothing is left behind");
    }
    let victim = ["torture", "--victim", "1", "--seed", "1", "--durability", "process", "--pool"];
    is_refused(without_threads().args(victim).arg(&place.pool));
}

/// Such a command needs no thread but to say that it waits.
#[test]
fn a_command_without_threads_answers() {
    let place = Place::with(&[("sequoia", "3266 years")]);
    let arguments = ["get", "--durability", "process"];
    let done = without_threads().args(arguments).arg(&place.pool).arg("sequoia").output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b"3266 years"[..]), "{said}");
}

/// The threads that had started would have worked for ever.
#[test]
fn a_child_of_torture_with_too_few_threads_ends() {
    const NOBODY: u32 = 65534;
    const THREADS: u64 = 5;
    // SAFETY: the call returns a number.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: the limit counts all that this user runs");
    }
    let place = Place::new();
    std::fs::set_permissions(place.folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let arguments = ["torture", "--victim", "1", "--seed", "1", "--durability", "process"];
    let mut command = bristlecone();
    command.args(arguments).args(["--threads", "64", "--pool"]).arg(&place.pool);
    command.uid(NOBODY).gid(NOBODY);
    let limit = || {
        let limit = libc::rlimit { rlim_cur: THREADS, rlim_max: THREADS };
        // SAFETY: the structure lives as long as the call.
        match unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the function makes a system call that a child of `fork` may make.
    unsafe { command.pre_exec(limit) };
    is_refused(&mut command);
}
