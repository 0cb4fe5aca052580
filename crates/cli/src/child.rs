//! A child process that is killed: this program itself, doing what it acknowledges on its standard
//! output, until it is stopped in the middle of it.

use anyhow::{Context, bail};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// When to kill: after so much was acknowledged, and then some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Acknowledgements, as the caller counts them.
    pub(crate) acknowledgements: usize,
    /// How long after that.
    pub(crate) then: Duration,
}

/// What came of a child.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// All that it wrote, the last of it perhaps cut off.
    pub(crate) acknowledged: Vec<u8>,
    /// Whether it was killed; else it had finished.
    pub(crate) killed: bool,
}

/// This program, to be run as a child.
///
/// # Errors
/// The system does not tell where its file is.
pub(crate) fn command() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("this program's own file")?;
    Ok(Command::new(program))
}

/// Runs `command` and kills it with SIGKILL at `moment`, or lets it finish. `count` says how many
/// acknowledgements there are in a part of what it writes.
///
/// # Errors
/// The child could not be started, or ended with a failure of its own.
pub(crate) fn run(
    command: &mut Command,
    moment: Option<Moment>,
    count: fn(&[u8]) -> usize,
) -> anyhow::Result<Outcome> {
    const SIGKILL: i32 = 9;
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("start the child process")?;
    let Some(mut pipe) = child.stdout.take() else { bail!("the child has no output") };
    let (reached, wait) = channel();
    let acknowledged = std::thread::scope(|scope| -> io::Result<Vec<u8>> {
        // The pipe is drained all the time, so that the child is never held up by it.
        let reader = scope.spawn(move || {
            let mut counted = 0;
            let mut text = Vec::new();
            let mut part = vec![0; 64 << 10];
            let mut reached = moment.map(|moment| (moment.acknowledgements, reached));
            loop {
                if reached.as_ref().is_some_and(|(wanted, _)| counted >= *wanted)
                    && let Some((_, reached)) = reached.take()
                {
                    let _ = reached.send(()); // Nobody waits any more only if the child is dead.
                }
                let length = pipe.read(&mut part)?;
                if length == 0 {
                    return Ok(text);
                }
                counted += count(&part[..length]);
                text.extend_from_slice(&part[..length]);
            }
        });
        if wait.recv().is_ok() {
            // No synchronisation: this is the moment of the kill, which is to be any.
            std::thread::sleep(moment.map_or(Duration::ZERO, |moment| moment.then));
            child.kill()?;
        }
        reader.join().expect("the reading thread panicked")
    })
    .context("read what the child acknowledges")?;
    let status = child.wait().context("wait for the child")?;
    let killed = status.signal() == Some(SIGKILL);
    if !killed && !status.success() {
        bail!("the child process failed: {status}");
    }
    Ok(Outcome { acknowledged, killed })
}
