//! The file of a pool that lives as long as a measurement.

use core::sync::atomic::{AtomicU64, Ordering};
use std::path::{Path, PathBuf};

/// A file that is removed when this value is dropped. The file need not exist.
#[derive(Debug)]
pub(crate) struct PoolFile(PathBuf);

impl PoolFile {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PoolFile {
    fn drop(&mut self) {
        // The file is absent if it was never created: then there is nothing to remove.
        let _ = std::fs::remove_file(&self.0);
        // So is its journal, in every domain but that of a disk.
        let mut journal = self.0.clone().into_os_string();
        journal.push(".journal");
        let _ = std::fs::remove_dir_all(journal);
    }
}

/// Returns a path in shared memory, or in the folder for temporary files if there is no shared
/// memory. The name begins with `leftover_prefix`.
pub(crate) fn default_path() -> PathBuf {
    default_folder().join(leftover_prefix() + "run.pool")
}

/// Returns a path like that on a disk.
pub(crate) fn disk_path() -> PathBuf {
    Path::new(DISK_FOLDER).join(leftover_prefix() + "run.pool")
}

/// Returns a path as [`default_path`], another one in each call, with this extension.
pub(crate) fn temporary_path(extension: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    default_folder().join(leftover_prefix() + &format!("{number}.{extension}"))
}

/// Returns the path of a pool that lives as long as this process.
pub fn temporary_pool() -> PathBuf {
    temporary_path("pool")
}

/// The folder for files that must survive a restart, and so are not in memory.
pub(crate) const DISK_FOLDER: &str = "/var/tmp";

/// Returns the folders that may hold files whose names begin with `leftover_prefix`.
pub fn temporary_folders() -> [PathBuf; 3] {
    [default_folder(), DISK_FOLDER.into(), std::env::temp_dir()]
}

/// Returns the folder of [`default_path`].
fn default_folder() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}

/// The kind of the files, a part of their names.
pub const LEFTOVER_KIND: &str = "bench";

/// Returns the first part of the names of this process's temporary files. A command may run a
/// process that removes them after a kill, which knows them by this part.
pub(crate) fn leftover_prefix() -> String {
    format!("bristlecone-{LEFTOVER_KIND}-{}-", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_pool_is_where_leftovers_are_removed() {
        let path = default_path();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(&leftover_prefix()), "{name}");
        assert!(temporary_folders().contains(&path.parent().unwrap().to_owned()));
    }
}
