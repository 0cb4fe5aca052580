//! The file of a pool that lives as long as a measurement.

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
    }
}

/// Returns a path in shared memory, or in the folder for temporary files if there is no shared
/// memory.
pub(crate) fn default_path() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("bristlecone-bench-{}.pool", std::process::id()))
}
