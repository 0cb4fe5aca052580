//! A folder on disk that is removed at the end.

use crate::error::{LabError, Result};
use crate::system::{DISK_FOLDER, leftover_prefix};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A folder that is removed when it is dropped.
pub(super) struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates a folder at `requested`, where nothing must exist, or one with an unused name.
    pub(super) fn create(requested: Option<&Path>) -> Result<Self> {
        let path = requested.map_or_else(default_place, Path::to_owned);
        let made = match requested.and_then(Path::file_name) {
            Some(name) => {
                let place = path.parent().unwrap_or(Path::new(""));
                tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(place)
            }
            None => tempfile::Builder::new().prefix(&leftover_prefix()).tempdir_in(&path),
        };
        made.map(Self).map_err(|source| LabError::File { path, source })
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the bytes that its files occupy on disk.
    pub(super) fn bytes(&self) -> Result<u64> {
        let path = self.path().to_owned();
        bytes_below(&path).map_err(|source| LabError::File { path, source })
    }
}

/// Returns the default place of folders. The folder for temporary files is often in memory.
fn default_place() -> PathBuf {
    let place = PathBuf::from(DISK_FOLDER);
    if place.is_dir() { place } else { std::env::temp_dir() }
}

/// Returns the bytes of the files below `folder`. A file that a store removes meanwhile has none.
fn bytes_below(folder: &Path) -> io::Result<u64> {
    /// The unit in which the system reports blocks, on every file system.
    const BLOCK_BYTES: u64 = 512;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata().and_then(|metadata| {
            if metadata.is_dir() {
                bytes_below(&entry.path())
            } else {
                Ok(metadata.blocks() * BLOCK_BYTES)
            }
        });
        bytes += match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            found => found?,
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_weighed_and_removed() {
        let folder = Folder::create(None).unwrap();
        let path = folder.path().to_owned();
        std::fs::create_dir(path.join("below")).unwrap();
        std::fs::write(path.join("below/file"), vec![1; 100_000]).unwrap();
        assert!((100_000..200_000).contains(&folder.bytes().unwrap()));
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_is_taken_is_refused_and_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let requested = place.path().join("requested");
        let folder = Folder::create(Some(&requested)).unwrap();
        assert_eq!(folder.path(), requested);
        assert!(matches!(Folder::create(Some(&requested)), Err(LabError::File { .. })));
        drop(folder);
        assert!(!requested.exists());
        std::fs::write(&requested, "mine").unwrap();
        assert!(matches!(Folder::create(Some(&requested)), Err(LabError::File { .. })));
        assert_eq!(std::fs::read(&requested).unwrap(), b"mine");
    }
}
