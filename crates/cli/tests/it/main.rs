//! The built command, run as users and programs run it.

mod bad_input;
mod calls;
mod corpus;
mod demo;
mod documents;
mod kill;
mod load;
mod moved;
mod open;
mod salvage;
mod store;
mod threads;
mod torture;

use bristlecone_console::testing::{self, Done, lines, objects};
use bristlecone_pmem::medium::{LockedFile, Storage};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The path of the built command.
const COMMAND: &str = env!("CARGO_BIN_EXE_bristlecone");

/// A temporary folder for one test, and the path of a pool in it.
struct Place {
    folder: TempDir,
    pool: PathBuf,
}

impl Place {
    /// Makes an empty folder.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("test.pool");
        Self { folder, pool }
    }

    /// Makes a folder with a store that holds `pairs`.
    fn with(pairs: &[(&str, &str)]) -> Self {
        let place = Self::new();
        let text = lines(0..pairs.len() as u64, |i| {
            let (key, value) = pairs[i as usize];
            format!("{key}\t{value}")
        });
        place.run_with(&["load"], text.as_bytes()).expect(0);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `command` with the path of the pool behind the first word.
    fn run(&self, command: &[&str]) -> Done {
        self.run_with(command, b"")
    }

    fn run_with(&self, command: &[&str], input: &[u8]) -> Done {
        let pool = self.pool.as_os_str();
        let mut arguments = vec![OsStr::new(command[0]), pool];
        arguments.extend(command[1..].iter().map(OsStr::new));
        run(&arguments, input)
    }
}

/// Returns the domain that a store has by default in the folder of a test, which may be in memory.
fn domain_here() -> &'static str {
    let place = Place::new();
    let storage = LockedFile::create(&place.pool).and_then(|file| file.storage()).unwrap();
    if storage == Storage::Disk { "disk" } else { "process" }
}

/// Returns the command, ready to be started.
fn bristlecone() -> Command {
    Command::new(COMMAND)
}

/// Runs the command to its end.
fn run<A: AsRef<OsStr>>(arguments: &[A], input: &[u8]) -> Done {
    testing::run(COMMAND, arguments, input)
}
