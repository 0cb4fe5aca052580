//! Why something could not be measured.

use crate::device::ProfileError;
use crate::workload::WorkloadError;
use bristlecone_pmem::PoolError;
use bristlecone_pmem::medium::MediumError;
use bristlecone_trees::TreeError;
use bristlecone_trees::names::UnknownDesign;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What is measured, or what the laboratory needs for it, does not work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// There is no such design, or not at that node size.
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    /// No device is like that.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The workload makes no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A design refused.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] bristlecone::Error),
    /// A pool refused.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The memory for a pool cannot be had.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file for a pool cannot be used.
    #[error("{}: {source}", path.display())]
    PoolFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: MediumError,
    },
    /// No peer has that name.
    #[error("no peer is called {name:?}; there are: {known}, or the path of a library")]
    UnknownPeer {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The peer is one that this program was built without.
    #[error(
        "peer:{name} is not built in; rebuild with \
         `cargo build --release -p bristlecone-lab-cli --features {feature}`"
    )]
    PeerNotBuilt {
        /// What was asked for.
        name: String,
        /// The feature that it is behind.
        feature: &'static str,
    },
    /// A peer refused.
    #[error("peer:{name}: {source}")]
    Peer {
        /// Its name.
        name: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is asked for makes no sense; the text says why.
    #[error("{0}")]
    Asked(String),
    /// Answers were wrong, so what was measured is worth nothing.
    #[error("{wrong} of {ops} operations gave a wrong answer")]
    Wrong {
        /// Operations whose answer was not what it must be.
        wrong: u64,
        /// Operations in all.
        ops: u64,
    },
}

/// What the laboratory's functions return.
pub type Result<T> = core::result::Result<T, LabError>;
