//! The errors of the laboratory.

use crate::device::ProfileError;
use crate::kv::ClientError;
use crate::workload::WorkloadError;
use bristlecone_pmem::PoolError;
use bristlecone_pmem::journal::JournalError;
use bristlecone_pmem::medium::MediumError;
use bristlecone_trees::TreeError;
use bristlecone_trees::kv::KvError;
use bristlecone_trees::names::UnknownDesign;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The error type of the laboratory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// No design has the name, or none at the node size.
    #[error(transparent)]
    Design(#[from] UnknownDesign),
    /// No device has the name, or its profile is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The workload, its keys or its file are invalid.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A design failed: its pool is full or damaged.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The store failed: its file is full or damaged.
    #[error(transparent)]
    Store(#[from] bristlecone::Error),
    /// The key-value store over a design failed.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// A request of a client failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A server cannot use its address.
    #[error("{address}: {source}")]
    Address {
        /// The address.
        address: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A server failed; the text says how.
    #[error("{0}")]
    Server(String),
    /// A pool cannot be created, opened or closed.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The journal of a pool cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The system refuses the memory of a pool.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file of a pool cannot be used.
    #[error("{}: {source}", path.display())]
    PoolFile {
        /// The path of the file.
        path: PathBuf,
        /// The error of the mapping.
        source: MediumError,
    },
    /// No peer has this name.
    #[error("no peer is called {name:?}; there are: {known}, or the path of a library")]
    UnknownPeer {
        /// The name that was given.
        name: String,
        /// The names of peers.
        known: String,
    },
    /// The peer is one that this program was built without.
    #[error(
        "peer:{name} is not built in; rebuild with \
         `cargo build --release -p bristlecone-lab-cli --features {feature}`"
    )]
    PeerNotBuilt {
        /// The name that was given.
        name: String,
        /// The feature that builds the peer in.
        feature: &'static str,
    },
    /// A peer failed in a call, or cannot be created.
    #[error("peer:{name}: {source}")]
    Peer {
        /// The name of the peer.
        name: String,
        /// The error of the peer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The measurement is not possible; the text says why.
    #[error("{0}")]
    Asked(String),
    /// Some answers were wrong, so the measurement has no figure.
    #[error("{wrong} of {ops} operations gave a wrong answer")]
    Wrong {
        /// The number of operations with a wrong answer.
        wrong: u64,
        /// The number of operations.
        ops: u64,
    },
}

/// The result type of the laboratory.
pub type Result<T> = core::result::Result<T, LabError>;
