//! An embedded, ordered key-value store for persistent memory.
//!
//! A [`Store`] is one file. It maps keys of up to 4 KiB to values of up to 16 MiB, both any bytes.
//! All threads of one process may use it at once.
//!
//! # Durability
//!
//! A write is *durable* against a crash that cannot undo it. When its method has returned, a write
//! is durable against the crashes in the last column. No commit is needed for that.
//!
//! | file | [`Domain`] | [`Durability`] | a write that returned survives |
//! | --- | --- | --- | --- |
//! | on a disk | `Disk` | `Interval(100 ms)`, the default | a kill; a power cut once it is synced |
//! | on a disk | `Disk` | `Commit` | a kill of the process and a power cut |
//! | on a disk, in memory | `ProcessCrash` | `Process` | a kill; **not** a power cut |
//! | persistent memory, mounted with DAX | `Adr`, `Eadr` | no choice | a kill and a power cut |
//!
//! A write that a crash interrupts took effect completely or not at all. A crash leaks no space. It
//! does not undo a value that [`Store::get`] has returned, but for a power cut under `Interval`,
//! which takes the last writes, in order. [`Options::require`] refuses a file whose domain is
//! weaker than you need; [`Store::stats`] returns the domain in force.
//!
//! On a disk the store keeps a journal in a folder beside the file until it is closed. A power cut
//! under `Interval` loses the newest writes, and of two writes never the earlier alone;
//! [`Store::sync`] waits until none can be lost. All of the file is then in memory
//! ([`Options::memory_bytes`]). With `Process` there is no journal: if the machine restarts while
//! the store is open, an open returns [`Error::MayBeTorn`], because any page may be missing. Keep
//! there only data that you can rebuild or restore.
//!
//! On DAX the store syncs the length of a file that has grown before it relies on it. Tests emulate
//! persistent memory on DRAM; no real modules were used.
//!
//! # Example
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("trees.pool");
//! use bristlecone::Store;
//!
//! let store = Store::open_or_create(&path)?;
//! store.put("pinus longaeva", "4855 years")?; // survives a kill from here on
//! store.put("sequoia", "3266 years")?;
//! assert_eq!(store.get("sequoia")?.as_deref(), Some(&b"3266 years"[..]));
//!
//! for pair in store.prefix("pinus") {
//!     let (key, value) = pair?;
//!     println!("{}: {}", key.escape_ascii(), value.escape_ascii());
//! }
//!
//! store.delete("sequoia")?;
//! store.close()?; // optional: the next open is faster
//! # Ok::<(), bristlecone::Error>(())
//! ```
//!
//! # Damage
//!
//! Damage that a method detects is an [`Error`] with file and offset, and no panic. A record is
//! checked when its value is read. A leaf is checked by recovery, by [`Store::check`], and by the
//! first operation that reads it after an open. Some damage passes every check: an older state of a
//! line, for one, has a valid checksum.
//!
//! # Cost
//!
//! [`get`](Store::get), [`put`](Store::put) and [`delete`](Store::delete) take O(log n) for n
//! pairs, in a tree of high fan-out with its inner nodes in DRAM. A [`scan`](Store::scan) takes
//! O(log n), then O(1) a pair. An open takes O(n) after a crash, and less after
//! [`close`](Store::close). A `put` writes the pair once, in a line of the index or as a record
//! beside one, and mostly fences once; a journal gets a copy of these lines. Readers take no lock
//! and write nothing; writers of different leaves do not wait for each other.
//!
//! # Limits
//!
//! - Keys have 0 to [`KEY_BYTES_MAX`] bytes, values 0 to [`VALUE_BYTES_MAX`]; all bytes are legal.
//! - One process at a time has a file open; [`Options::wait`] waits for another. A child of `fork`
//!   gets [`Error::ForkedChild`] for a store of its parent.
//! - A write of one key can depend on its value ([`Store::compare_exchange`],
//!   [`Store::fetch_update`]), and writes of several keys can be one ([`Store::commit`]). There are
//!   no other transactions, and a scan is not a snapshot.
//! - A pair of up to 8 B + 8 B lies in a leaf; any other takes a block of at least 64 B beside it.
//! - The file grows as needed and never shrinks. Later writes use the space of deleted pairs again,
//!   most easily for records of the same size.

use bristlecone_trees::designs::CellTree;
use bristlecone_trees::{Design, Record};

mod cost;
mod error;
mod open;

// rustdoc shows the methods of `Store` in the order of these modules.
mod options;

mod durable;

mod store;

mod exchange;

mod batch;

mod queries;

mod visits;

mod close;
mod compact;

mod stats;

mod media;

mod salvage;

mod scan;

pub use batch::{Batch, Unmet};
pub use bristlecone_pmem::Domain;
pub use bristlecone_pmem::Durability;
pub use bristlecone_pmem::alloc::{ClassUsage, NodeUsage};
pub use bristlecone_pmem::journal::JournalStats;
pub use bristlecone_pmem::medium::{FAULT_EXIT_CODE, MediumError, install_fault_message};
pub use bristlecone_pmem::numa::{Placement, PlacementError};
pub use bristlecone_pmem::pool::Corrupt;
pub use bristlecone_pmem::sys::WriteBack;
pub use bristlecone_trees::{Cost, Order, TreeStats};
pub use error::{Error, ErrorKind};
pub use exchange::Mismatch;
pub use options::Options;
pub use salvage::{Salvage, salvage};
pub use scan::{Bounds, KeyRange, Pair, Scan};
pub use stats::{Report, Stats};
pub use store::Store;

pub use bristlecone_trees::key::KEY_BYTES_MAX;
/// The longest value that a store takes, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// The tree design of the index of a store in a file.
type Flagship = CellTree<1024>;
/// The index. Cells hold short pairs, and the first 8 B of other keys with pointers to records.
type Index<M, const LEAF_BYTES: usize> = <CellTree<LEAF_BYTES> as Design>::Index<M, Record>;
/// The name of the pool root that holds the index.
const ROOT: &str = "store";

/// The examples of the README of this crate, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDocTests;
