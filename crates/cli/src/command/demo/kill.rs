//! A child that loads, until it is killed.

use crate::child::{self, Moment, Outcome};
use std::path::Path;

/// Loads `pairs` into `pool` in a child process of its own, with `threads` threads, and kills it
/// with SIGKILL at `moment`, or lets it finish. Acknowledgements are keys, a line each.
///
/// # Errors
/// The child could not be started, or ended with a failure of its own.
pub(super) fn load(
    pool: &Path,
    pairs: &Path,
    threads: u64,
    moment: Option<Moment>,
) -> anyhow::Result<Outcome> {
    let mut command = child::command()?;
    command.arg("load").args([pool, pairs]).args([
        "--format",
        "tsv",
        "--ack",
        "--threads",
        &threads.to_string(),
    ]);
    child::run(&mut command, moment, |part| part.split(|&byte| byte == b'\n').count() - 1)
}
