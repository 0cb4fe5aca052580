//! Chores: `cargo xtask ci` runs the steps of CI, `cargo xtask tidy` the checks that no compiler
//! makes.

mod ci;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask ci | tidy

  ci     every check that a change must pass, with the time of each
  tidy   layers, file and function lengths, design pages, stray text";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let passed = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => ci::run(&root()),
        ["tidy"] => tidy::run(&root()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    ExitCode::from(u8::from(!passed))
}

/// Returns the folder of the workspace.
fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
