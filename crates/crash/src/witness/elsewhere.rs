//! Where processes cannot be stepped: the answer is that, and nothing else.

use super::run::{Finish, Stepped};
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

pub(crate) fn trace(_: &mut Command, _: &Path) -> Result<Stepped, Finish> {
    Err(Finish::Skipped(refusal()))
}
