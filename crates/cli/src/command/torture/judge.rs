//! The process that opens an image of a power cut and looks everything up. The parent ends it if it
//! does not answer in time: an image may make an open or a lookup wait for ever.

use super::args;
use super::ledger::{Done, Ledger, Verdict};
use super::prefix::Promised;
use crate::child;
use crate::session::Promise;
use anyhow::{Context, bail};
use bristlecone::{Error, ErrorKind, Options, Store};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The result of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The open failed with a typed error; its name.
    Refused(String),
    /// The open succeeded, and a later call or the check failed with a typed error.
    Damaged,
    /// Every answer was right, and the check passed.
    Right,
    /// An answer was wrong, and no error said so.
    Wrong,
    /// The process did not end in time.
    Hung,
    /// The process ended by a panic or a signal.
    Crashed,
}

/// Opens the image of a plain file at `pool` and prints what it found, for [`read`] to parse.
pub(super) fn run(pool: &Path, state: &Path, options: &Options) -> anyhow::Result<()> {
    let state = std::fs::read(state).context("read the expected state")?;
    let (mut ledger, done) = Ledger::read(&state).context("the expected state is cut off")?;
    print(&judge(pool, &mut ledger, &done, options)?)
}

/// Opens the image of a store with a journal, with this promise, and prints what it found.
pub(super) fn run_prefix(pool: &Path, state: &Path, promise: Promise) -> anyhow::Result<()> {
    let state = std::fs::read(state).context("read the expected state")?;
    let promised = Promised::read(&state).context("the expected state is cut off")?;
    print(&judge_prefix(args::options(promise).open(pool), &promised)?)
}

fn judge_prefix(opened: Result<Store, Error>, promised: &Promised) -> anyhow::Result<Finding> {
    let mut store = match opened {
        Ok(store) => store,
        Err(error) if error.kind() == ErrorKind::Damaged => {
            return Ok(Finding::Refused(name_of(&error)));
        }
        Err(error) => bail!(error),
    };
    Ok(match Ledger::find(&mut store, promised.keys()) {
        Ok((found, 0)) if promised.allows(found.versions()) => Finding::Right,
        Ok(_) => Finding::Wrong,
        Err(error) if error.kind() == ErrorKind::Damaged => Finding::Damaged,
        Err(error) => bail!(error),
    })
}

fn print(finding: &Finding) -> anyhow::Result<()> {
    let name = match finding {
        Finding::Refused(name) => name,
        Finding::Damaged => DAMAGED,
        Finding::Wrong => WRONG,
        _ => RIGHT,
    };
    writeln!(std::io::stdout(), "{name}").context("print the finding")
}

const DAMAGED: &str = "damaged";
const WRONG: &str = "wrong";
const RIGHT: &str = "right";

/// Returns the finding that a judging process printed, or `None` if it printed none.
pub(super) fn read(text: &str) -> Option<Finding> {
    Some(match text.trim_end() {
        "" => return None,
        DAMAGED => Finding::Damaged,
        WRONG => Finding::Wrong,
        RIGHT => Finding::Right,
        name => Finding::Refused(name.to_owned()),
    })
}

fn judge(
    pool: &Path,
    ledger: &mut Ledger,
    done: &Done,
    options: &Options,
) -> anyhow::Result<Finding> {
    let mut store = match options.open_or_create(pool) {
        Ok(store) => store,
        Err(error) if error.kind() == ErrorKind::Damaged => {
            return Ok(Finding::Refused(name_of(&error)));
        }
        Err(error) => bail!(error),
    };
    let wrong = ledger.wrong_lookups(&store, done);
    Ok(match ledger.compare(&mut store, done) {
        _ if wrong > 0 => Finding::Wrong,
        Ok(verdict) if verdict == Verdict::default() => Finding::Right,
        Ok(_) => Finding::Wrong,
        Err(error) if error.kind() == ErrorKind::Damaged => Finding::Damaged,
        Err(error) => bail!(error),
    })
}

/// Returns the name of the error's variant.
fn name_of(error: &Error) -> String {
    let text = format!("{error:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// The time after which a judging process counts as hung. It needs some hundredths of a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a judging process, and kills it if it takes too long.
pub(super) fn run_judge(command: &mut Command) -> anyhow::Result<Finding> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = command.spawn().context("start the judging process")?;
    let mut pipe = process.stdout.take().context("the judging process has no output")?;
    let (ended, end) = channel();
    let (text, hung) = std::thread::scope(|scope| {
        let reader = child::start(scope, move || {
            let mut text = String::new();
            let read = pipe.read_to_string(&mut text);
            let _ = ended.send(()); // Fails only if the other thread is dead.
            read.map(|_| text)
        });
        let reader = reader.or_else(|error| child::end(&mut process).and(Err(error)))?;
        let hung = end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        if hung {
            process.kill()?;
        }
        let text = reader.join().expect("the reading thread panicked")?;
        anyhow::Ok((text, hung))
    })?;
    let status = process.wait().context("wait for the judging process")?;
    Ok(match read(&text).filter(|_| status.success()) {
        Some(finding) => finding,
        None if hung => Finding::Hung,
        None => Finding::Crashed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_name_of_its_variant() {
        let error = bristlecone::Store::open("/no such folder/a.pool").unwrap_err();
        assert_eq!(name_of(&error), "NotFound");
        assert_eq!(read("NotFound\n"), Some(Finding::Refused("NotFound".into())));
        assert_eq!((read("right\n"), read("")), (Some(Finding::Right), None));
    }
}
