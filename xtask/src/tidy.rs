//! Checks that no compiler makes: layers, lengths, design pages, links, stray text.
//!
//! Each check returns findings. An error fails the run, a remark does not.

mod designs;
mod layers;
mod lengths;
mod links;
mod modules;
mod names;
mod sources;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A broken rule, or a remark.
pub(crate) struct Finding {
    is_error: bool,
    text: String,
}

impl Finding {
    pub(crate) fn error(text: String) -> Self {
        Self { is_error: true, text }
    }
    pub(crate) fn remark(text: String) -> Self {
        Self { is_error: false, text }
    }
}

/// Runs all checks. Returns `true` if there was no error.
pub(crate) fn run(root: &Path) -> bool {
    let files = tracked_files(root);
    if files.is_empty() {
        eprintln!("tidy: git lists no files here");
        return false;
    }
    let mut findings = layers::check(root);
    findings.extend(designs::check(root));
    findings.extend(sources::check(root, &files));
    findings.extend(links::check(root, &files));
    findings.extend(modules::check(root, &files));
    findings.extend(names::check(root, &files));
    findings.extend(words::check(root, &files));
    findings.extend(lengths::check(root, &files));
    for finding in &findings {
        eprintln!("tidy: {}{}", if finding.is_error { "error: " } else { "" }, finding.text);
    }
    let errors = findings.iter().filter(|finding| finding.is_error).count();
    eprintln!("tidy: {} files, {errors} errors, {} remarks", files.len(), findings.len() - errors);
    errors == 0
}

/// Returns the files of the project, relative to its root: those that git tracks, or will once
/// added.
fn tracked_files(root: &Path) -> Vec<PathBuf> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let Ok(output) = output else { return Vec::new() };
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    list.lines().map(PathBuf::from).filter(|path| root.join(path).is_file()).collect()
}
