//! The answers and errors of a command, and their exit codes.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | the command did what it was asked |
//! | 1 | the answer is no: a key is absent, a write was lost, a claim does not hold |
//! | 2 | wrong use: an option, a key or a line of input is not valid |
//! | 3 | the pool is damaged, or holds something else |
//! | 4 | the system refused: no space, no permission, no such file |

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit code of a command whose answer is no.
pub const NO: u8 = 1;
/// The exit code for a wrong use.
pub const USAGE: u8 = 2;
/// The exit code for a pool that is damaged or holds something else.
pub const DAMAGED: u8 = 3;
/// The exit code where the system refused, and for every error without a code of its own.
pub const SYSTEM: u8 = 4;

/// The list of exit codes at the end of each command's `--help`.
pub const HELP: &str = "Exit codes: 0 done, 1 the answer is no, 2 wrong use, \
     3 the pool is damaged or foreign, 4 the system refused.";

/// The answer of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command did its work, or found what it was asked for: exit code 0.
    Yes,
    /// The key is absent, or a promise does not hold: exit code 1.
    No,
}

impl Answer {
    /// Returns `Yes` for `true` and `No` for `false`.
    pub fn from_bool(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// An error for a wrong use that the parser of the command line cannot detect.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UsageError {}

/// Ends the command `name`: reports an error on standard error and returns the exit code.
///
/// `code_of` returns the exit code of one error in the chain of causes, or `None`. A command passes
/// [`code_of`] or a function that knows more errors.
pub fn finish(
    name: &str,
    result: anyhow::Result<Answer>,
    code_of: fn(&(dyn Error + 'static)) -> Option<u8>,
) -> ExitCode {
    match result {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(NO),
        // The program that reads the answer has closed the pipe, as `head` does: no failure.
        Err(error) if reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report(name, &message(&error));
            ExitCode::from(exit_code(&error, code_of))
        }
    }
}

/// Ends the command `name` for a wrong use that `reason` explains in one line.
pub fn refuse(name: &str, reason: &str) -> ExitCode {
    report(name, reason);
    ExitCode::from(USAGE)
}

/// Returns the texts of `error` and of its causes, with colons between them. Leaves out a cause
/// whose text is part of what stands before it: many errors of the store repeat their cause.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn report(name: &str, reason: &str) {
    // If standard error is closed, only the exit code reports the failure.
    let _ = writeln!(io::stderr(), "{name}: {reason}");
}

/// Returns `true` if `error` says that the program that reads standard output has closed it.
pub fn reader_left(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns the exit code of the first cause of `error` that has one, and [`SYSTEM`] if none has.
fn exit_code(error: &anyhow::Error, code_of: fn(&(dyn Error + 'static)) -> Option<u8>) -> u8 {
    error.chain().find_map(code_of).unwrap_or(SYSTEM)
}

/// Returns the exit code of `cause` alone, or `None` if it is no error of the store, of the system
/// or of the command line.
pub fn code_of(cause: &(dyn Error + 'static)) -> Option<u8> {
    if cause.is::<UsageError>() {
        return Some(USAGE);
    }
    if let Some(error) = cause.downcast_ref::<bristlecone::Error>() {
        return Some(error.kind().exit_code());
    }
    cause.is::<io::Error>().then_some(SYSTEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_keeps_its_code_under_context() {
        let usage = anyhow::Error::new(UsageError("no".into())).context("while reading");
        assert_eq!(exit_code(&usage, code_of), USAGE);
        let path = std::path::PathBuf::from("trees.pool");
        let damaged = anyhow::Error::new(bristlecone::Error::Superblocks { path });
        assert_eq!(exit_code(&damaged.context("cycle 3"), code_of), DAMAGED);
        let full = anyhow::Error::new(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(exit_code(&full, code_of), SYSTEM);
        assert_eq!(exit_code(&anyhow::anyhow!("something"), code_of), SYSTEM);
    }

    #[test]
    fn a_cause_is_printed_once() {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        let reason = source.to_string();
        let path = std::path::PathBuf::from("trees.pool");
        let error = bristlecone::Error::System { path, action: "grow the file", source };
        let error = anyhow::Error::new(error).context("line 7");
        assert_eq!(message(&error), format!("line 7: trees.pool: cannot grow the file: {reason}"));
        assert_eq!(message(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }

    #[test]
    fn only_a_closed_pipe_counts_as_a_reader_that_left() {
        let kind = |kind| anyhow::Error::new(io::Error::from(kind));
        assert!(reader_left(&kind(io::ErrorKind::BrokenPipe)));
        assert!(!reader_left(&kind(io::ErrorKind::NotFound)));
    }
}
