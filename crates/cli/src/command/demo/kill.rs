//! The child process that loads until it is killed.

use crate::child::{self, KilledChild, Moment};
use crate::session::Promise;
use std::path::Path;

/// Loads the file `pairs` into `pool` in a child process with `threads` threads. Kills the child
/// with SIGKILL at `moment`; without a moment it finishes. The child acknowledges each key on a
/// line.
///
/// # Errors
/// The child cannot be started, or ends with an error.
pub(super) fn load(
    pool: &Path,
    pairs: &Path,
    threads: u64,
    durability: Option<Promise>,
    moment: Option<Moment>,
) -> anyhow::Result<KilledChild> {
    let mut command = child::command()?;
    command.arg("load").args([pool, pairs]).args([
        "--format",
        "tsv",
        "--ack",
        "--threads",
        &threads.to_string(),
    ]);
    if let Some(promise) = durability {
        command.args(["--durability", promise.name()]);
    }
    child::run(&mut command, moment, |part| part.split(|&byte| byte == b'\n').count() - 1)
}
