//! Paths of files, and how their names come to survive a power cut.

use super::lock::is_same;
use rustix::fs::syncfs;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of `file`, to which `path` leads, without links. In the root folder of another
/// process (`/proc/PID/root`) that may lead to another file: then the last name alone is no link.
pub(crate) fn without_links(path: &Path, file: &File) -> PathBuf {
    let leads_there = |found: &PathBuf| {
        let both = (file.metadata(), fs::metadata(found));
        matches!(both, (Ok(here), Ok(there)) if is_same(&here, &there))
    };
    let found = fs::canonicalize(path).ok().filter(leads_there);
    found.unwrap_or_else(|| past_links(path))
}

/// Follows the links that the last name of `path` is.
fn past_links(path: &Path) -> PathBuf {
    /// The number of links after which the system refuses a path.
    const LINKS_MAX: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or_else(PathBuf::new, Path::to_owned).join(target);
    }
    path
}

/// Syncs `folder`. One that this user may enter and not read cannot be opened for that: then this
/// syncs all of the file system of `file`, which lies there.
pub(crate) fn sync_folder(folder: &Path, file: &File) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(syncfs(file)?),
        opened => opened?.sync_all(),
    }
}

/// Makes the name of the file at `path`, which is synced, survive a power cut.
///
/// # Errors
/// The system refuses a call.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let path = without_links(path, &file);
    match sync_folder(path.parent().unwrap_or(&path), &file) {
        // Not every file system syncs a folder. Those that keep a journal wrote the name with the
        // file.
        Err(error) if is_unsupported(error.kind()) => Ok(()),
        done => done,
    }
}

/// Returns `true` if the system syncs no folder there.
fn is_unsupported(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_last_name_is_followed_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let [file, first, second] =
            ["file", "first", "second"].map(|name| folder.path().join(name));
        fs::write(&file, "").unwrap();
        symlink("file", &first).unwrap();
        symlink(&first, &second).unwrap();
        for path in [&file, &first, &second] {
            assert_eq!(past_links(path), file);
        }
        // One that leads in a circle ends.
        let circle = folder.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert_eq!(past_links(&circle), circle);
        assert_eq!(past_links(Path::new("no such file")), Path::new("no such file"));
    }
}
