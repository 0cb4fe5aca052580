//! A command's use of a store: opened, used, closed.

use bristlecone::{Domain, Error, Options, Store};
use bristlecone_console::progress::waiting;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Uses the store at `path`, and closes it whatever comes of that.
pub(crate) fn with<R>(
    path: &Path,
    run: impl FnOnce(&Store) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    with_options(&Store::options(), path, run)
}

/// As [`with`], with options that are not the default ones.
pub(crate) fn with_options<R>(
    options: &Options,
    path: &Path,
    run: impl FnOnce(&Store) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let store = waiting("opening the store", || options.open(path))?;
    let result = run(&store);
    close(store);
    result
}

/// Closes `store`. Where that fails nothing is lost, so it is said, and is no failure: what the
/// command did is durable.
pub(crate) fn close(store: Store) {
    if let Err(error) = store.close() {
        let _ = writeln!(
            std::io::stderr(),
            "bristlecone: not closed cleanly, so the next open takes longer: {error}"
        );
    }
}

/// A key or value as the command line gives it, byte for byte.
pub(crate) fn bytes(argument: &OsStr) -> &[u8] {
    argument.as_bytes()
}

/// What a domain survives, in words.
pub(crate) fn survives(domain: Domain) -> &'static str {
    match domain {
        Domain::Adr => "a power cut (lines are flushed)",
        Domain::Eadr => "a power cut (caches are safe)",
        Domain::ProcessCrash => "the death of the process, not a power cut",
        Domain::Volatile => "nothing",
    }
}

/// Whether `error` says that the store itself is damaged.
pub(crate) fn is_damage(error: &Error) -> bool {
    error.kind() == bristlecone::ErrorKind::Damaged
}
