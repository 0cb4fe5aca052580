//! The place of a peer.

use std::path::{Path, PathBuf};

/// The place of a peer, and its number of threads.
pub(crate) struct Site<'a> {
    /// The path that the user named.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "only stores on disk use it"))]
    pub(crate) requested: Option<&'a Path>,
    /// The file of a peer that makes its own pool.
    pub(crate) pool: PathBuf,
    /// The size of that pool in bytes.
    pub(crate) pool_bytes: u64,
    /// The number of threads that will use the peer.
    pub(crate) threads: u64,
}
