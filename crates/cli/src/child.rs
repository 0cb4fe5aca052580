//! A child process that is killed: this program, which acknowledges its work on standard output.

use anyhow::{Context, bail};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

/// The moment of the kill: a time after a number of acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The number of acknowledgements, as the caller counts them.
    pub(crate) acknowledgements: usize,
    /// The time from then to the kill.
    pub(crate) then: Duration,
}

/// The result of a child.
#[derive(Debug)]
pub(crate) struct KilledChild {
    /// All bytes that the child wrote. The kill may have cut off the last acknowledgement.
    pub(crate) acknowledged: Vec<u8>,
    /// `true` if the child was killed, `false` if it had finished.
    pub(crate) killed: bool,
}

/// Returns this program, to be run as a child.
///
/// # Errors
/// The system does not know the path of the program.
pub(crate) fn command() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("find this program's file")?;
    Ok(Command::new(program))
}

/// Starts a thread of `scope`.
///
/// # Errors
/// The system has no thread for this process, as `ulimit -u` or a control group may say.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> anyhow::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).context("cannot start a thread")
}

/// Runs `command`. Kills it with SIGKILL at `moment`; without a moment it finishes. `count` returns
/// the number of acknowledgements in a part of its output.
///
/// # Errors
/// The child cannot be started, or ends with an error.
pub(crate) fn run(
    command: &mut Command,
    moment: Option<Moment>,
    count: fn(&[u8]) -> usize,
) -> anyhow::Result<KilledChild> {
    const SIGKILL: i32 = 9;
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("start the child process")?;
    let Some(mut pipe) = child.stdout.take() else { bail!("the child has no output") };
    let (reached, wait) = channel();
    let acknowledged = std::thread::scope(|scope| -> anyhow::Result<Vec<u8>> {
        // This thread always drains the pipe, so the child never waits for room in it.
        let reader = start(scope, move || -> io::Result<Vec<u8>> {
            let mut counted = 0;
            let mut text = Vec::new();
            let mut part = vec![0; 64 << 10];
            let mut reached = moment.map(|moment| (moment.acknowledgements, reached));
            loop {
                if reached.as_ref().is_some_and(|(wanted, _)| counted >= *wanted)
                    && let Some((_, reached)) = reached.take()
                {
                    let _ = reached.send(()); // Fails only if the other thread is dead.
                }
                let length = pipe.read(&mut part)?;
                if length == 0 {
                    return Ok(text);
                }
                counted += count(&part[..length]);
                text.extend_from_slice(&part[..length]);
            }
        });
        let reader = reader.or_else(|error| end(&mut child).and(Err(error)))?;
        if wait.recv().is_ok() {
            // A sleep, not a synchronisation: the kill may come at any moment of the work.
            std::thread::sleep(moment.map_or(Duration::ZERO, |moment| moment.then));
            child.kill()?;
        }
        let read = reader.join().expect("the reading thread panicked");
        read.context("read the acknowledgements of the child")
    })?;
    let status = child.wait().context("wait for the child")?;
    let killed = status.signal() == Some(SIGKILL);
    if !killed && !status.success() {
        bail!("the child process failed: {status}");
    }
    Ok(KilledChild { acknowledged, killed })
}

/// Kills `child`, for which this process has no thread.
pub(crate) fn end(child: &mut Child) -> anyhow::Result<()> {
    child.kill().and_then(|()| child.wait()).context("end the child process")?;
    Ok(())
}
