//! Chores: `cargo xtask ci` runs the steps of CI, `cargo xtask tidy` the checks that no compiler
//! makes, `cargo xtask cut-disk` a guest on a disk whose power is cut.

mod ci;
mod cut_disk;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask ci | tidy | cut-disk

  ci     every check that a change must pass, with the time of each
  tidy   layers, file and function lengths, design pages, stray text
  cut-disk   a guest on a disk whose power is cut (scripts/dax-guest.sh)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let passed = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => ci::run(&root()),
        ["tidy"] => tidy::run(&root()),
        ["cut-disk", ref words @ ..] => match cut_disk::run(words) {
            Some(passed) => passed,
            None => return wrong(cut_disk::USAGE),
        },
        _ => return wrong(USAGE),
    };
    ExitCode::from(u8::from(!passed))
}

fn wrong(usage: &str) -> ExitCode {
    eprintln!("{usage}");
    ExitCode::from(2)
}

/// Returns the folder of the workspace.
fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
