//! An ordered, embedded key-value store for persistent memory, and for plain files where there is
//! none. Every change is durable when the call that makes it returns: no commit, no sync.
//!
//! ```
//! use bristlecone::Store;
//!
//! # fn main() -> Result<(), bristlecone::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("trees.pool");
//! let store = Store::open_or_create(&path)?;
//! store.put("pinus longaeva", "4855 years")?; // durable from here on
//! store.put("sequoia", "3266 years")?;
//! assert_eq!(store.get("sequoia")?.as_deref(), Some(&b"3266 years"[..]));
//!
//! for pair in store.prefix("pinus") {
//!     let (key, value) = pair?;
//!     println!("{}: {}", key.escape_ascii(), value.escape_ascii());
//! }
//! let eldest_name = store.scan("a".."q").next_back();
//! assert_eq!(eldest_name.unwrap()?.0, b"pinus longaeva");
//!
//! store.delete("sequoia")?;
//! store.close()?; // optional: the next open is faster
//! # Ok(()) }
//! ```
//!
//! # What is promised
//!
//! 1. When a method returns, nothing that the file's *domain* covers undoes what it did.
//! 2. A value that some thread has read is never followed by an older one, crash or no crash.
//! 3. A change in flight at a crash has happened wholly or not at all, and nothing else changes.
//! 4. Nothing leaks: what a crash leaves unreachable is free again after the next open.
//! 5. Damage is named, by file and offset, as an [`Error`]; it is no panic. A record is checked
//!    whenever its value is read, a leaf by recovery, by [`Store::check`], and by whoever comes to
//!    it first after an open. Not all damage shows there: an earlier state of a line looks whole.
//!
//! # Domains
//!
//! What a store survives depends on its file, and [`Stats::domain`] says what was got:
//!
//! | [`Domain`] | file | survives |
//! | --- | --- | --- |
//! | `Adr` | persistent memory, on a file system mounted with DAX | a power cut |
//! | `Eadr` | the same where caches are inside the domain | a power cut |
//! | `ProcessCrash` | any other file | the death of the process, however sudden; **not** a power cut |
//!
//! In `ProcessCrash` the page cache holds the data until the system writes it, and store order
//! alone keeps it consistent. [`Options::require`] makes it an error to get less than one needs.
//!
//! # Cost
//!
//! With n pairs: [`get`](Store::get), [`put`](Store::put) and [`delete`](Store::delete) are
//! O(log n), the log of small base and in DRAM; a [`scan`](Store::scan) is O(log n) and then O(1) a
//! pair. Opening is quick after [`close`](Store::close), and O(n) after a crash, when inner nodes
//! are rebuilt. A `put` writes the pair once, beside a few words of the index; there is no log and
//! no compaction. A reader takes no lock and writes nothing; writers of different leaves do not
//! meet.
//!
//! # Limits
//!
//! Keys of 0 to [`KEY_BYTES_MAX`] bytes, values of 0 to [`VALUE_BYTES_MAX`] bytes, all byte
//! strings legal. One process at a time has a file open, with any number of threads. A pair whose key
//! and value have 8 B at most each lives in a leaf; any other takes a block of at least 64 B beside it.
//! The file grows by itself and never shrinks; what was deleted is used again.

use bristlecone_trees::designs::Bristlecone;
use bristlecone_trees::{Design, Record};

mod cost;
mod error;
mod options;
mod scan;
mod stats;
mod store;

pub use bristlecone_pmem::Domain;
pub use bristlecone_pmem::alloc::NodeUsage;
pub use bristlecone_pmem::medium::MediumError;
pub use bristlecone_pmem::numa::{Placement, PlacementError};
pub use bristlecone_pmem::pool::Corrupt;
pub use bristlecone_pmem::sys::WriteBack;
pub use bristlecone_trees::{Cost, Order, TreeStats};
pub use error::{Error, ErrorKind};
pub use options::Options;
pub use scan::{Bounds, KeyRange, Pair, Scan};
pub use stats::{Report, Stats};
pub use store::Store;

pub use bristlecone_trees::key::KEY_BYTES_MAX;
/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// The design of the index.
type Flagship = Bristlecone;
/// The index: keys by their first 8 B; short pairs in its leaves, others in records.
type Index<M> = <Flagship as Design>::Index<M, Record>;
/// The name of the root that a store's index has.
const ROOT: &str = "store";

/// The examples of the README of this crate, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDocTests;
