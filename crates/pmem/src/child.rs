//! Support for tests that need a process of their own: the test binary runs itself again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FOLDER: &str = "BRISTLECONE_TEST_FOLDER";

/// Returns the folder that this process may use if it is a child, else `None`.
pub(crate) fn is_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Runs the test called `name` in a child process that may use `folder`, and waits for it.
pub(crate) fn run(name: &str, folder: &Path) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(FOLDER, folder)
        .output()
        .unwrap()
}
