//! Folders of journals that are there already: those of moved pools, and rests of what was
//! interrupted.

use super::error::JournalError;
use super::{frame, ring};
use crate::medium::{LockedFile, MediumError};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// The first bytes of the magic numbers of rings and of frames, whatever the version. A pool, which
/// another program may keep in the folder, has `BRSTLCN1`.
const MAGICS: [&[u8]; 2] = [b"BRSTLCR", b"BRSTLCNF"];
/// The name of the ring in the folder.
pub(super) const RING: &str = "ring";

/// The end of the name of a segment. It says whose the file is, which may hold zeros.
const SEGMENT: &str = ".bristlecone";

/// Returns the name of a segment in the folder.
pub(super) fn segment_name(index: u64) -> String {
    format!("{index:04}{SEGMENT}")
}

/// Makes place for a folder: if `folder` has the journal that another pool needs, which was moved
/// away without it, renames it to `NAME.journal.left`. Removes what no pool needs: a journal
/// without a record, or that of the open with the nonce `former`, whose pool is whole.
///
/// # Errors
/// A process has the journal open, or the system refuses.
pub(super) fn clear(folder: &Path, former: Option<u64>) -> Result<(), JournalError> {
    let failed = |e| JournalError::system("make place for the journal", e);
    if let Err(MediumError::Locked) = LockedFile::open_within(&folder.join(RING), Duration::ZERO) {
        return Err(MediumError::Locked.into());
    }
    let user = user_of(folder).map_err(failed)?;
    if user.is_none() || user == former {
        return remove(folder).map_err(failed);
    }
    set_aside(folder).map_err(failed)
}

/// The longest end that [`set_aside`] gives to the name of a folder, in bytes.
pub(super) const LEFT_BYTES: usize = ".left.99".len();

/// Renames `folder` to `NAME.journal.left`, with a number behind that if the name is taken: what is
/// there may be the journal that yet another pool needs.
fn set_aside(folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    const NAMES: u32 = 100;
    for number in 0..NAMES {
        let mut left = OsString::from(folder);
        left.push(if number == 0 { ".left".to_owned() } else { format!(".left.{number}") });
        let done = fs::rename(folder, left);
        let is_taken = |kind| matches!(kind, AlreadyExists | DirectoryNotEmpty | NotADirectory);
        if !done.as_ref().is_err_and(|error| is_taken(error.kind())) {
            return done.map_err(|error| match error.kind() {
                // An overlayfs renames no folder of a lower layer.
                io::ErrorKind::CrossesDevices => {
                    let advice = "a moved store may need this folder: move it away";
                    io::Error::other(format!("{}: {error}; {advice}", folder.display()))
                }
                _ => error,
            });
        }
    }
    let what = "100 folders NAME.journal.left were set aside; remove those that no store needs";
    Err(io::Error::other(what))
}

/// Returns the nonce of the last open that used the journal in `folder`, or `None` if it has no
/// record. The ring may be lost: then that is the open that has written the first segment.
fn user_of(folder: &Path) -> io::Result<Option<u64>> {
    use io::ErrorKind::{NotFound, UnexpectedEof};
    let read = |name: &str, target: &mut [u8]| {
        // So opened, a pipe is no file to wait for.
        let file = OpenOptions::new().read(true).write(true).open(folder.join(name));
        match file.and_then(|file| file.read_exact_at(target, 0)) {
            // the rest of an interrupted creation
            Err(error) if matches!(error.kind(), NotFound | UnexpectedEof) => Ok(false),
            done => done.map(|()| true),
        }
    };
    let (mut ring, mut frame) = ([0; ring::HEADER_BYTES], [0; frame::HEADER_BYTES]);
    for (name, target) in [(RING, &mut ring[..]), (&segment_name(0), &mut frame)] {
        if !read(name, target)? {
            target.fill(0);
        }
    }
    let (nonces, head) = ring::read_header(&ring);
    let framed = frame::nonce_of(&frame);
    Ok(match nonces[0] {
        0 => framed,
        nonce => (head > 0 || framed.is_some()).then_some(nonce),
    })
}

/// Removes the files of a journal in `folder`, and the folder if it can: it may hold other files,
/// or be a mount. No process has the journal open (I2 of the folder).
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if is_named(&entry.file_name()) && is_of_journal(&entry.path())? {
            fs::remove_file(entry.path())?;
        }
    }
    // A journal can be made in a folder that stays.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// Returns `true` if a file of a journal may have this name.
fn is_named(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let number = name.strip_suffix(SEGMENT.as_bytes());
    name == RING.as_bytes()
        || number.is_some_and(|number| number.len() == 4 && number.iter().all(u8::is_ascii_digit))
}

/// Returns `true` if the file at `path` begins as a segment or a ring does, or holds nothing yet.
fn is_of_journal(path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(false);
    }
    let mut begin = [0; 8];
    match File::open(path)?.read_exact_at(&mut begin, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        done => done?,
    }
    Ok(begin == [0; 8] || MAGICS.into_iter().any(|magic| begin.starts_with(magic)))
}
