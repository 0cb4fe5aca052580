//! A process that is watched, from its start to its end.
//!
//! It asks to be traced and stops, does what it was started for, stops again, and ends by itself.

use super::finish::{Finish, Watched, failed};
use super::tracer::attach;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::cell::OnceCell;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a process prints that may not be traced, before the reason.
const REFUSED: &str = "refused: ";

/// In the process: asks the parent to trace it, and stops until it does. If the system does not allow
/// it, says so to the parent.
///
/// # Errors
/// The system does not allow it.
#[expect(clippy::print_stdout, reason = "standard output is a pipe to the parent")]
pub(crate) fn offer() -> io::Result<()> {
    if let Err(refusal) = ptrace::traceme() {
        println!("{REFUSED}{}", refusal.desc());
        return Err(refusal.into());
    }
    end()
}

/// In the process: stops, for what the parent wants to see is over.
///
/// # Errors
/// The system does not stop it.
pub(crate) fn end() -> io::Result<()> {
    Ok(raise(Signal::SIGSTOP)?)
}

/// Runs `command`, which [`offer`]s itself, and gives all that it does to the file at `pool`.
pub(crate) fn trace(command: &mut Command, pool: &Path) -> Result<Watched, Finish> {
    stay_on_one_processor();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let pool = pool.canonicalize().map_err(failed)?;
    let mut child = command.spawn().map_err(failed)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let watched = attach(pid, pool).and_then(|tracer| match tracer {
        Some(tracer) => tracer.run().and_then(|watched| finish(pid).map(|()| watched)),
        None => Err(Finish::Failed("it ended before it began".into())),
    });
    watched.map_err(|error| told(&mut child, error))
}

/// Why a process has ended early, in its own words if it has any.
fn told(child: &mut Child, otherwise: Finish) -> Finish {
    let pid = Pid::from_raw(child.id().cast_signed());
    let flags = WaitPidFlag::__WALL;
    // If it has been waited for already, nothing is there to be killed.
    let now = waitpid(pid, Some(flags | WaitPidFlag::WNOHANG));
    if matches!(now, Ok(WaitStatus::StillAlive | WaitStatus::Stopped(..))) {
        let _ = child.kill();
        while waitpid(pid, Some(flags)).is_ok() {}
    }
    let read = |pipe: &mut dyn Read| {
        let mut text = String::new();
        let _ = pipe.read_to_string(&mut text); // What cannot be read tells nothing.
        text
    };
    let output = child.stdout.take().map(|mut pipe| read(&mut pipe)).unwrap_or_default();
    if let Some(reason) = output.trim().strip_prefix(REFUSED) {
        return Finish::Skipped(format!("the system does not allow tracing (ptrace): {reason}"));
    }
    let complaint = child.stderr.take().map(|mut pipe| read(&mut pipe)).unwrap_or_default();
    match otherwise {
        Finish::Failed(reason) => Finish::Failed(format!("{reason} {}", complaint.trim())),
        other => other,
    }
}

/// Keeps this thread, and what it starts, on one processor, another for each thread: a stop is then a
/// change of context and no message between processors, which takes several times as long.
fn stay_on_one_processor() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static DONE: OnceCell<()> = const { OnceCell::new() };
    }
    let this = Pid::from_raw(0);
    DONE.with(|done| {
        done.get_or_init(|| {
            let Ok(allowed) = sched_getaffinity(this) else { return };
            let all = (0..CpuSet::count()).filter(|&number| allowed.is_set(number) == Ok(true));
            let all: Vec<usize> = all.collect();
            let number = NEXT.fetch_add(1, Ordering::Relaxed) % all.len().max(1);
            let mut one = CpuSet::new();
            if let Some(&number) = all.get(number)
                && one.set(number).is_ok()
            {
                let _ = sched_setaffinity(this, &one); // It is only slower without.
            }
        });
    });
}

/// Lets the process go on by itself to its end.
fn finish(pid: Pid) -> Result<(), Finish> {
    let mut signal = None;
    loop {
        ptrace::cont(pid, signal).map_err(failed)?;
        match waitpid(pid, Some(WaitPidFlag::__WALL)).map_err(failed)? {
            WaitStatus::Exited(_, 0) => return Ok(()),
            WaitStatus::Stopped(_, other) => signal = Some(other),
            status => return Err(Finish::Failed(format!("it ended with {status:?}"))),
        }
    }
}
