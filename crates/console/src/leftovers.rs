//! Temporary files that are gone when the process is, also where a signal ended it.
//!
//! A process that is killed removes nothing. So a second process of the same program waits for the
//! end of the first, whatever the cause, and removes its files. It needs no signal handler.
//!
//! The names of the files say whose they are: `bristlecone-KIND-PID-...`, with the number of the
//! process that made them.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The argument that makes a process remove files. It stands alone in the place of a command.
const REMOVE: &str = "--remove-leftovers";

/// Returns the first part of the names of this process's files of the kind `kind`.
pub fn prefix(kind: &str) -> String {
    format!("bristlecone-{kind}-{}-", std::process::id())
}

/// A process that removes files as soon as this process has ended, or this value is dropped.
#[derive(Debug)]
pub struct Remover(Child);

impl Remover {
    /// Starts the process. It removes each file and folder in `folders` whose name begins with
    /// [`prefix`] of `kind`.
    ///
    /// Returns `None` if it cannot be started: then a signal leaves files behind.
    pub fn start(kind: &str, folders: &[&Path]) -> Option<Self> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.arg(REMOVE).arg(prefix(kind)).args(folders);
        // The pipe says when this process ends. Ctrl-C reaches a whole group of processes.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        command.spawn().ok().map(Self)
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        // `wait` closes the pipe first. It fails only if there is no such process.
        let _ = self.0.wait();
    }
}

/// A temporary folder that is removed with all that is in it.
#[derive(Debug)]
pub struct Folder {
    // Dropped before the remover, which then finds nothing.
    folder: TempDir,
    _remover: Option<Remover>,
}

impl Folder {
    /// Creates a folder for files of the kind `kind` in `within`, or in the system's folder for
    /// temporary files.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(kind: &str, within: Option<&Path>) -> io::Result<Self> {
        let within = within.map_or_else(std::env::temp_dir, Path::to_owned);
        let remover = Remover::start(kind, &[&within]);
        let folder = tempfile::Builder::new().prefix(&prefix(kind)).tempdir_in(within)?;
        Ok(Self { folder, _remover: remover })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Runs as the process that removes files, if `arguments`, those behind the program's name, say so.
/// Call it before anything else.
pub fn remove(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    /// A child of the process that was killed may still write for a moment.
    const TRIES: u32 = 100;
    const PAUSE: Duration = Duration::from_millis(50);
    if arguments.next()? != REMOVE {
        return None;
    }
    let prefix = arguments.next()?.into_string().ok()?;
    let folders: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    // The end of the pipe, or an error, says that the other process has ended.
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    for _ in 0..TRIES {
        if folders.iter().all(|folder| remove_in(folder, &prefix)) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Some(ExitCode::SUCCESS)
}

/// Removes what begins with `prefix`. Returns `true` if nothing is left of it.
fn remove_in(folder: &Path, prefix: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return true };
    let mut is_empty = true;
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_folder {
                std::fs::remove_dir_all(entry.path())
            } else {
                std::fs::remove_file(entry.path())
            };
            is_empty &= removed.is_ok();
        }
    }
    is_empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_process_are_removed() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("kind-1-pool"), "").unwrap();
        std::fs::create_dir_all(place.path().join("kind-1-x/y")).unwrap();
        std::fs::write(place.path().join("kind-12-pool"), "").unwrap();
        assert!(remove_in(place.path(), "kind-1-"));
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "kind-12-pool");
        assert!(remove_in(&place.path().join("nowhere"), "kind-1-"));
    }

    #[test]
    fn other_arguments_are_left_alone() {
        let arguments = |line: &'static str| line.split(' ').map(OsString::from);
        assert!(remove(arguments("demo --kills 3")).is_none());
        assert!(remove([].into_iter()).is_none());
    }
}
