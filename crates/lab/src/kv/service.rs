//! A store by the name of its design, and the execution of requests.
//!
//! A value lies in the store behind its flags, which have 4 bytes, least significant first.

use super::reply;
use super::request::{FLAGS_BYTES, Request, StoreMode, words};
use crate::bench::{Delays, Flushing};
use crate::error::{LabError, Result};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Domain, Mapped, Pool, PoolError};
use bristlecone_registry::{DesignEntry, Memory};
use bristlecone_trees::TreeError;
use bristlecone_trees::erased::ErasedDesign;
use bristlecone_trees::kv::{KvError, KvKey, KvStore};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The pool root of the store.
const ROOT: &str = "kv";

/// The place of a store, and how its memory behaves.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path of the pool file.
    pub pool: PathBuf,
    /// The size of the file when it is created, in bytes. It grows beyond that.
    pub bytes: u64,
    /// The domain whose flushes and fences are executed.
    pub domain: Domain,
    /// The instructions of these.
    pub flushing: Flushing,
    /// Latencies that are added.
    pub delays: Delays,
}

/// The counters of `stats`.
#[derive(Debug, Default)]
struct Counters {
    connections: AtomicI64,
    all_connections: AtomicU64,
    gets: AtomicU64,
    get_hits: AtomicU64,
    sets: AtomicU64,
    deletes: AtomicU64,
    delete_hits: AtomicU64,
    /// The nanoseconds that requests have spent in the store.
    store_ns: AtomicU64,
}

/// A store that answers requests of any number of threads.
#[derive(Debug)]
pub struct Service {
    store: KvStore<Memory>,
    design: &'static str,
    started: Instant,
    counters: Counters,
}

/// The fate of a connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Close,
}

/// Checks that this build has a store whose index is of `design`.
///
/// # Errors
/// No design has this name, or the build lacks its form for a store.
pub(super) fn check_design(design: &str) -> Result<()> {
    form_of(bristlecone_registry::default_size(design)?).map(|_| ())
}

/// Returns the form of a design for the index of a store.
fn form_of(entry: &DesignEntry) -> Result<ErasedDesign<Memory, KvKey>> {
    entry.memory.records.ok_or_else(|| {
        LabError::Asked(format!(
            "{} is not built in as the index of a key-value store; `cargo lab` builds and runs the \
             laboratory with all designs so",
            entry.spec.name
        ))
    })
}

impl Service {
    /// Opens the store at `place`, whose index is of `design`, or creates it if there is no file.
    ///
    /// # Errors
    /// No design has this name, the file cannot be used, or it holds something else.
    pub fn open(design: &str, place: &Place) -> Result<Self> {
        let entry = bristlecone_registry::default_size(design)?;
        let form = form_of(entry)?;
        let path = &place.pool;
        let failed = |source| LabError::PoolFile { path: path.clone(), source };
        let options = FileOptions { prefault: true, ..FileOptions::default() };
        let is_present = path.exists();
        let medium = if is_present {
            Mapped::open(path, &options)
        } else {
            Mapped::create(path, place.bytes, &options)
        };
        let medium = place.flushing.emulate(medium.map_err(failed)?, place.domain)?;
        let medium = place.delays.on(medium);
        let store = if is_present {
            let (pool, opened) = Pool::open(medium)?;
            KvStore::open(&form, Arc::new(pool), ROOT, opened)?
        } else {
            KvStore::create(&form, Arc::new(Pool::create(medium)?), ROOT)?
        };
        let (design, counters) = (entry.spec.name, Counters::default());
        Ok(Self { store, design, started: Instant::now(), counters })
    }

    /// Returns the store.
    pub fn store(&self) -> &KvStore<Memory> {
        &self.store
    }

    /// Closes the store and its pool, so that the next open is a clean one.
    ///
    /// # Errors
    /// The store or its pool failed.
    pub fn close(self) -> Result<()> {
        let pool = self.store.close()?;
        Ok(Arc::into_inner(pool).expect("a service is the only user of its pool").close()?)
    }

    pub(super) fn count_connection(&self, change: i64) {
        self.counters.connections.fetch_add(change, Ordering::Relaxed);
        add(&self.counters.all_connections, u64::from(change > 0));
    }

    /// Executes `request` and writes its reply to `out`. `buffer` holds values on their way.
    pub(super) fn execute(
        &self,
        request: &Request<'_>,
        buffer: &mut Vec<u8>,
        out: &mut impl Write,
    ) -> io::Result<Flow> {
        let (reply, is_quiet) = match *request {
            Request::Get { keys, is_unique } => {
                self.get(keys, is_unique, buffer, out)?;
                return Ok(Flow::Next);
            }
            Request::Stats => {
                self.stats(out)?;
                return Ok(Flow::Next);
            }
            Request::Quit => return Ok(Flow::Close),
            Request::Version => (Ok(concat!("VERSION ", env!("CARGO_PKG_VERSION"))), false),
            Request::Verbosity { is_quiet } => (Ok(reply::OK), is_quiet),
            Request::Delete { key, is_quiet } => (self.delete(key), is_quiet),
            Request::Store { mode, key, flags, data, is_quiet } => {
                (self.put(mode, key, flags, data, buffer), is_quiet)
            }
        };
        if !is_quiet {
            match reply {
                Ok(reply) => write!(out, "{reply}\r\n")?,
                Err(error) => refuse(&error, out)?,
            }
        }
        Ok(Flow::Next)
    }

    /// Runs `call` and adds its time to the counters.
    fn timed<T>(&self, call: impl FnOnce(&KvStore<Memory>) -> T) -> T {
        let start = Instant::now();
        let result = call(&self.store);
        add(&self.counters.store_ns, start.elapsed().as_nanos() as u64);
        result
    }

    fn get(
        &self,
        keys: &[u8],
        is_unique: bool,
        buffer: &mut Vec<u8>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for key in words(keys) {
            add(&self.counters.gets, 1);
            match self.timed(|store| store.get(key, buffer)) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(error) => return refuse(&error, out),
            }
            add(&self.counters.get_hits, 1);
            let Some((flags, data)) = buffer.split_first_chunk() else {
                return write!(out, "SERVER_ERROR the value has no flags\r\n");
            };
            let flags = u32::from_le_bytes(*flags);
            out.write_all(b"VALUE ")?;
            out.write_all(key)?;
            write!(out, " {flags} {}", data.len())?;
            if is_unique {
                write!(out, " {}", unique(buffer))?;
            }
            out.write_all(b"\r\n")?;
            out.write_all(data)?;
            out.write_all(b"\r\n")?;
        }
        write!(out, "{}\r\n", reply::END)
    }

    fn put(
        &self,
        mode: StoreMode,
        key: &[u8],
        flags: u32,
        data: &[u8],
        buffer: &mut Vec<u8>,
    ) -> core::result::Result<&'static str, KvError> {
        add(&self.counters.sets, 1);
        buffer.clear();
        buffer.extend_from_slice(&flags.to_le_bytes());
        buffer.extend_from_slice(data);
        let value = buffer.as_slice();
        let is_stored = self.timed(|store| match mode {
            StoreMode::Set => store.put(key, value).map(|()| true),
            StoreMode::Add => store.insert(key, value),
            StoreMode::Replace => store.replace(key, value),
            StoreMode::Patch(at) => store.update_field(key, at.saturating_add(FLAGS_BYTES), data),
        })?;
        Ok(if is_stored { reply::STORED } else { reply::NOT_STORED })
    }

    fn delete(&self, key: &[u8]) -> core::result::Result<&'static str, KvError> {
        add(&self.counters.deletes, 1);
        let is_deleted = self.timed(|store| store.delete(key))?;
        add(&self.counters.delete_hits, u64::from(is_deleted));
        Ok(if is_deleted { reply::DELETED } else { reply::NOT_FOUND })
    }

    fn stats(&self, out: &mut impl Write) -> io::Result<()> {
        let Counters { connections, .. } = &self.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let (gets, hits) = (count(&counters.gets), count(&counters.get_hits));
        writeln!(out, "STAT pid {}\r", std::process::id())?;
        writeln!(out, "STAT uptime {}\r", self.started.elapsed().as_secs())?;
        writeln!(out, "STAT version {}\r", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "STAT design {}\r", self.design)?;
        writeln!(out, "STAT curr_connections {}\r", connections.load(Ordering::Relaxed))?;
        let rest = [
            ("total_connections", count(&counters.all_connections)),
            ("cmd_get", gets),
            ("cmd_set", count(&counters.sets)),
            ("get_hits", hits),
            ("get_misses", gets.saturating_sub(hits)),
            ("cmd_delete", count(&counters.deletes)),
            ("delete_hits", count(&counters.delete_hits)),
            ("store_ns", count(&counters.store_ns)),
        ];
        for (name, value) in rest {
            writeln!(out, "STAT {name} {value}\r")?;
        }
        write!(out, "{}\r\n", reply::END)
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Writes the reply to a request that failed.
fn refuse(error: &KvError, out: &mut impl Write) -> io::Result<()> {
    match error {
        KvError::Tree(TreeError::Pool(PoolError::Full { .. })) => {
            write!(out, "{}\r\n", reply::FULL)
        }
        KvError::NoField { .. } => write!(out, "{}\r\n", reply::NO_FIELD),
        KvError::ValueTooLong { .. } => write!(out, "{}\r\n", reply::TOO_LARGE),
        KvError::KeyTooLong { .. } => write!(out, "{}\r\n", reply::BAD_FORMAT),
        // The texts of errors are single lines.
        error => write!(out, "SERVER_ERROR {error}\r\n"),
    }
}

/// Returns the number of `gets`, which differs between values that differ: a hash of `value`
/// (FNV-1a), because a record holds no number of its own.
fn unique(value: &[u8]) -> u64 {
    value.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
