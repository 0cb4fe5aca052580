//! The file of `--report`.

use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The page of the report, opened before the work and written after it.
pub(crate) struct PageFile {
    path: PathBuf,
    file: File,
}

impl PageFile {
    /// Opens `index.html` in `folder` for writing, and creates the folder. An older page stays as
    /// it is until [`write`](Self::write).
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("index.html");
        let open = || {
            std::fs::create_dir_all(folder)?;
            OpenOptions::new().write(true).create(true).truncate(false).open(&path)
        };
        let file = open().with_context(|| {
            format!("cannot write the report {}; name another folder with --report", path.display())
        })?;
        Ok(Self { path, file })
    }

    /// Writes the page in place of an older one, and returns its path.
    pub(crate) fn write(mut self, html: &str) -> anyhow::Result<PathBuf> {
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| self.file.write_all(html.as_bytes()));
        written.with_context(|| format!("cannot write the report {}", self.path.display()))?;
        Ok(self.path)
    }
}
