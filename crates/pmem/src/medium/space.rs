//! The space of a file on the device.

use super::MediumError;
use super::lock::metadata;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstatfs, seek};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// Checks that this process may make a file of `bytes` bytes. If it tried all the same, the system
/// would end it with a signal (`SIGXFSZ`).
pub(crate) fn check_length(bytes: u64) -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| bytes > limit) { Err(Errno::FBIG) } else { Ok(()) }
}

/// Allocates space for `old..new` of `file`, which is then at least `new` bytes long. Where the
/// file system cannot, this sets the length alone.
pub(crate) fn allocate(file: &File, old: u64, new: u64) -> std::io::Result<()> {
    match check_length(new).and_then(|()| allocate_part(file, old..new)) {
        Err(Errno::OPNOTSUPP) => file.set_len(new),
        other => other.map_err(Into::into),
    }
}

/// Allocates the first `bytes` of `file` in one piece, and leaves its length as it is.
pub(super) fn allocate_ahead(file: &File, bytes: u64) -> Result<(), MediumError> {
    if bytes == 0 {
        return Ok(());
    }
    let keep = FallocateFlags::KEEP_SIZE;
    let allocated =
        check_length(bytes).and_then(|()| retry_on_intr(|| fallocate(file, keep, 0, bytes)));
    match allocated {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(MediumError::system("allocate space for the file", error)),
    }
}

/// Allocates space for the holes in the first `bytes` of `file`, which a copy of the file may have.
/// A store to a hole would end the process if the device were full.
pub(crate) fn fill_holes(file: &File, bytes: u64) -> Result<(), MediumError> {
    /// The unit in which the system counts the space of a file, in bytes.
    const BLOCK_BYTES: u64 = 512;
    // The least that is missing: the system counts its own blocks too, and those past `bytes`.
    let missing = bytes.saturating_sub(metadata(file)?.blocks() * BLOCK_BYTES);
    let system =
        fstatfs(file).map_err(|e| MediumError::system("read the space of the file system", e))?;
    let block = u64::try_from(system.f_bsize).unwrap_or(1);
    // A file system without a limit reports no blocks at all. On others, an attempt that must
    // fail would use up all space before it does.
    if system.f_blocks > 0 && missing > system.f_bavail.saturating_mul(block) {
        return Err(MediumError::Holes { missing, source: Errno::NOSPC.into() });
    }
    let done = match missing {
        0 => allocate_holes(file, bytes),
        _ => allocate_part(file, 0..bytes),
    };
    match done {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => {
            let missing = missing.max(block);
            Err(MediumError::Holes { missing, source: error.into() })
        }
    }
}

/// Allocates space for each hole in the first `bytes` of `file`, if the file system says where
/// holes are. It may also name space without contents, which is allocated already.
fn allocate_holes(file: &File, bytes: u64) -> rustix::io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let begin = match seek(file, SeekFrom::Hole(at)) {
            Ok(begin) => begin.min(bytes),
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        };
        at = match seek(file, SeekFrom::Data(begin)) {
            Ok(end) => end.min(bytes),
            Err(Errno::NXIO) => bytes, // There is no more data.
            Err(error) => return Err(error),
        };
        if begin < at {
            allocate_part(file, begin..at)?;
        }
    }
    // A caller copies a file that was removed from its beginning.
    seek(file, SeekFrom::Start(0)).map(|_| ())
}

fn allocate_part(file: &File, part: core::ops::Range<u64>) -> rustix::io::Result<()> {
    let (begin, bytes) = (part.start, part.end - part.start);
    retry_on_intr(|| fallocate(file, FallocateFlags::empty(), begin, bytes))
}
