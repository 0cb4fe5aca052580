//! A command's session with a store: open, use, close.

use bristlecone::{Domain, Error, Options, Store};
use bristlecone_console::progress::waiting;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Opens the store at `path`, calls `run`, and closes the store, also after an error.
pub(crate) fn with<R>(
    path: &Path,
    run: impl FnOnce(&Store) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    with_options(&Store::options(), path, run)
}

/// Does the same as [`with`] with other options than the default.
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

/// Closes `store`. Reports an error but does not fail: all writes of the command are durable, and
/// the next open recovers.
pub(crate) fn close(store: Store) {
    if let Err(error) = store.close() {
        let _ = writeln!(
            std::io::stderr(),
            "bristlecone: cannot close the store cleanly, so the next open takes longer: {error}"
        );
    }
}

/// Returns a key or value of the command line, byte for byte.
pub(crate) fn bytes(argument: &OsStr) -> &[u8] {
    argument.as_bytes()
}

/// Returns the crashes that a domain survives, in words.
pub(crate) fn survives(domain: Domain) -> &'static str {
    match domain {
        Domain::Adr => "a power cut (lines are flushed)",
        Domain::Eadr => "a power cut (caches are safe)",
        Domain::ProcessCrash => "a kill of the process, not a power cut",
        Domain::Volatile => "nothing",
    }
}

/// Returns `true` if `error` says that the store itself is damaged.
pub(crate) fn is_damage(error: &Error) -> bool {
    error.kind() == bristlecone::ErrorKind::Damaged
}
