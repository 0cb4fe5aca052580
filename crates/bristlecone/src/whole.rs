//! Files that need their journal, before they are opened without one.

use crate::error::Error;
use bristlecone_pmem::Journaled;
use std::path::Path;
use std::time::Duration;

/// Returns `true` if the file at `path` is a pool that needs its journal. What is no file is not
/// opened.
pub(crate) fn needs_journal(path: &Path) -> Result<bool, Error> {
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(false);
    }
    Journaled::is_needed(path).map_err(|e| Error::from_journal(path, e))
}

/// Makes the file at `path` whole, so that it needs no journal. While the file is open elsewhere,
/// this waits up to `wait`.
pub(crate) fn make_whole(path: &Path, wait: Duration) -> Result<(), Error> {
    if !needs_journal(path)? {
        return Ok(());
    }
    Journaled::make_whole(path, wait).map_err(|e| Error::from_journal(path, e))
}
