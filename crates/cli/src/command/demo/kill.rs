//! A child that loads, until it is killed.

use anyhow::{Context, bail};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// When to kill: after so many acknowledgements, and then some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) acknowledgements: usize,
    pub(super) then: Duration,
}

/// What came of a child.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The keys that it acknowledged, a line each.
    pub(super) acknowledged: Vec<u8>,
    /// Whether it was killed; else it had finished.
    pub(super) killed: bool,
}

/// Loads `pairs` into `pool` in a child process of its own, with `threads` threads, and kills it
/// with SIGKILL at `moment`, or lets it finish.
///
/// # Errors
/// The child could not be started, or ended with a failure of its own.
pub(super) fn load(
    pool: &Path,
    pairs: &Path,
    threads: u64,
    moment: Option<Moment>,
) -> anyhow::Result<Outcome> {
    const SIGKILL: i32 = 9;
    let program = std::env::current_exe().context("this program's own file")?;
    let mut child = Command::new(program)
        .arg("load")
        .args([pool, pairs])
        .args(["--format", "tsv", "--ack", "--threads", &threads.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start the loading process")?;
    let Some(mut pipe) = child.stdout.take() else { bail!("the child has no output") };
    let (reached, wait) = channel();
    let acknowledged = std::thread::scope(|scope| -> io::Result<Vec<u8>> {
        // The pipe is drained all the time, so that the child is never held up by it.
        let reader = scope.spawn(move || {
            let mut lines = 0;
            let mut text = Vec::new();
            let mut part = vec![0; 64 << 10];
            let mut reached = moment.map(|moment| (moment.acknowledgements, reached));
            loop {
                if reached.as_ref().is_some_and(|(wanted, _)| lines >= *wanted)
                    && let Some((_, reached)) = reached.take()
                {
                    let _ = reached.send(()); // Nobody waits any more only if the child is dead.
                }
                let length = pipe.read(&mut part)?;
                if length == 0 {
                    return Ok(text);
                }
                lines += part[..length].split(|&byte| byte == b'\n').count() - 1;
                text.extend_from_slice(&part[..length]);
            }
        });
        if wait.recv().is_ok() {
            std::thread::sleep(moment.map_or(Duration::ZERO, |moment| moment.then));
            child.kill()?;
        }
        reader.join().expect("the reading thread panicked")
    })
    .context("read what the child acknowledges")?;
    let status = child.wait().context("wait for the child")?;
    let killed = status.signal() == Some(SIGKILL);
    if !killed && !status.success() {
        bail!("the loading process failed: {status}");
    }
    Ok(Outcome { acknowledged, killed })
}
