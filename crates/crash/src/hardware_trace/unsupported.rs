//! The refusal on systems where processes cannot be traced.

use super::finish::{Finish, Watched};
use std::io;
use std::path::Path;
use std::process::Command;

fn refusal() -> String {
    "instructions are decoded on x86-64 Linux alone".to_owned()
}

pub(crate) fn offer() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, refusal()))
}

pub(crate) fn end() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, refusal()))
}

pub(crate) fn trace(_: &mut Command, _: &Path) -> Result<Watched, Finish> {
    Err(Finish::Skipped(refusal()))
}
