//! The traced process, from its start to its end. It asks to be traced and stops, runs its script,
//! stops again, and exits.

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

/// The prefix of the reason that a process prints if it may not be traced.
const REFUSED: &str = "refused: ";

/// Asks the parent to trace this process, and stops until it does. Reports a refusal to the parent.
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

/// Stops this process after the script.
///
/// # Errors
/// The system does not stop it.
pub(crate) fn end() -> io::Result<()> {
    Ok(raise(Signal::SIGSTOP)?)
}

/// Runs `command`, which [`offer`]s itself, and returns its events on the file at `pool`.
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
    watched.map_err(|error| early_end(&mut child, error))
}

/// Returns the reason for which a process ended early, in its own words if it printed any.
fn early_end(child: &mut Child, otherwise: Finish) -> Finish {
    let pid = Pid::from_raw(child.id().cast_signed());
    let flags = WaitPidFlag::__WALL;
    // A process that was waited for already cannot be killed.
    let now = waitpid(pid, Some(flags | WaitPidFlag::WNOHANG));
    if matches!(now, Ok(WaitStatus::StillAlive | WaitStatus::Stopped(..))) {
        let _ = child.kill();
        while waitpid(pid, Some(flags)).is_ok() {}
    }
    let read = |pipe: &mut dyn Read| {
        let mut text = String::new();
        let _ = pipe.read_to_string(&mut text); // An unreadable pipe gives no reason.
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

/// Binds this thread and its children to one processor, another for each thread. A stop is then a
/// context switch without an interrupt to another processor, which takes several times as long.
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

/// Lets the process run to its end.
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
