//! Clients as a system under test: each session is a connection, or calls the store in process.
//!
//! A value has the word of its operation in its first 8 bytes. An insert is a `set`, an update a
//! `patch` of the value's first field.

use super::address::Address;
use super::client::Client;
use super::service::Service;
use crate::bench::Latency;
use crate::error::{LabError, Result};
use crate::system::{MemoryUse, Session, System};
use bristlecone_trees::Text;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::time::Instant;

/// The bytes of the word that a value begins with: the least length of a value.
pub(super) const WORD_BYTES: usize = 8;
/// The length of a field of YCSB, which an update replaces.
const FIELD_BYTES: usize = 100;
/// The byte that fills a value.
const FILL: u8 = b'v';

/// The latencies of operations at their clients, by kind, in nanoseconds.
#[derive(Clone, Debug)]
pub struct OpLatencies {
    /// The latencies of inserts.
    pub(super) insert: Histogram<u64>,
    /// The latencies of searches.
    pub(super) search: Histogram<u64>,
    /// The latencies of updates.
    pub(super) update: Histogram<u64>,
}

impl Default for OpLatencies {
    fn default() -> Self {
        /// The longest latency that is told apart from longer ones: a minute.
        const NS_MAX: u64 = 60_000_000_000;
        let none = Histogram::new_with_max(NS_MAX, 3).expect("the bounds are in order");
        Self { insert: none.clone(), search: none.clone(), update: none }
    }
}

impl OpLatencies {
    /// Returns the percentiles of inserts, searches and updates; `None` of a kind without any.
    pub fn percentiles(&self) -> [Option<Latency>; 3] {
        [&self.insert, &self.search, &self.update]
            .map(|all| (!all.is_empty()).then(|| Latency::in_histogram(all)))
    }

    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.insert, &other.insert),
            (&mut self.search, &other.search),
            (&mut self.update, &other.update),
        ];
        for (sum, more) in pairs {
            sum.add(more).expect("all of them have the same bounds");
        }
    }
}

/// The way of a client to the store.
#[derive(Debug)]
enum Way {
    Socket(Client),
    Call { service: Arc<Service>, buffer: Vec<u8> },
}

/// A client with its latencies.
#[derive(Debug)]
pub(crate) struct Caller {
    way: Way,
    /// The value that the next insert stores.
    value: Vec<u8>,
    latencies: OpLatencies,
}

/// A number of clients.
#[derive(Debug)]
pub(super) struct Clients(Vec<Caller>);

impl Clients {
    /// Connects `count` clients, whose values have `value_bytes` bytes, to the server at `address`.
    pub(super) fn connect(address: &Address, count: u64, value_bytes: usize) -> Result<Self> {
        let connect = |_| Ok(Caller::new(Way::Socket(Client::connect(address)?), value_bytes));
        (0..count).map(connect).collect::<Result<_>>().map(Self)
    }

    /// Returns `count` clients, whose values have `value_bytes` bytes, that call `service`.
    pub(super) fn call(service: &Arc<Service>, count: u64, value_bytes: usize) -> Self {
        let call = || Way::Call { service: Arc::clone(service), buffer: Vec::new() };
        Self((0..count).map(|_| Caller::new(call(), value_bytes)).collect())
    }

    /// Returns the latencies of all clients since the last call.
    pub(super) fn take_latencies(&mut self) -> OpLatencies {
        let mut all = OpLatencies::default();
        for caller in &mut self.0 {
            all.add(&core::mem::take(&mut caller.latencies));
        }
        all
    }
}

impl System<Text> for Clients {
    type Session<'a> = &'a mut Caller;

    fn sessions(&mut self, threads: u64) -> Vec<&mut Caller> {
        self.0.iter_mut().take(threads as usize).collect()
    }
    /// The server does not tell what its store takes.
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        Ok(None)
    }
}

impl Caller {
    fn new(way: Way, value_bytes: usize) -> Self {
        let value = vec![FILL; value_bytes.max(WORD_BYTES)];
        Self { way, value, latencies: OpLatencies::default() }
    }

    /// Puts `word` at the begin of the value.
    fn prepare(&mut self, word: u64) {
        self.value[..WORD_BYTES].copy_from_slice(&word.to_le_bytes());
    }

    fn set(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.way {
            Way::Socket(client) => Ok(client.set(key, &self.value)?),
            Way::Call { service, .. } => Ok(service.store().put(key, &self.value)?),
        }
    }
}

/// Returns the word that `value` begins with, or 0 if it is shorter.
fn word_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

fn record(latencies: &mut Histogram<u64>, start: Instant) {
    latencies.saturating_record(start.elapsed().as_nanos() as u64);
}

impl Session<Text> for &mut Caller {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let start = Instant::now();
        let mut word = None;
        match &mut self.way {
            Way::Socket(client) => {
                client.get_many(&[key], |_, value| word = Some(word_of(value)))?;
            }
            Way::Call { service, buffer } => {
                let is_found = service.store().get(key, buffer)?;
                word = is_found.then(|| word_of(buffer));
            }
        }
        record(&mut self.latencies.search, start);
        Ok(word)
    }

    fn multi_get(&mut self, keys: &[&[u8]], values: &mut [Option<u64>]) -> Result<()> {
        let start = Instant::now();
        match &mut self.way {
            Way::Socket(client) => {
                client.get_many(keys, |at, value| values[at] = Some(word_of(value)))?;
            }
            Way::Call { service, buffer } => {
                for (key, value) in keys.iter().zip(values) {
                    let is_found = service.store().get(key, buffer)?;
                    *value = is_found.then(|| word_of(buffer));
                }
            }
        }
        record(&mut self.latencies.search, start);
        Ok(())
    }

    fn insert(&mut self, key: &[u8], value: u64) -> Result<bool> {
        let start = Instant::now();
        self.prepare(value);
        self.set(key)?;
        record(&mut self.latencies.insert, start);
        Ok(true)
    }

    fn update(&mut self, key: &[u8], value: u64) -> Result<bool> {
        let start = Instant::now();
        self.prepare(value);
        let field = &self.value[..self.value.len().min(FIELD_BYTES)];
        let is_present = match &mut self.way {
            Way::Socket(client) => client.patch(key, 0, field)?,
            Way::Call { service, .. } => service.store().update_field(key, 0, field)?,
        };
        record(&mut self.latencies.update, start);
        Ok(is_present)
    }

    fn upsert(&mut self, key: &[u8], value: u64) -> Result<()> {
        self.insert(key, value).map(|_| ())
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        match &mut self.way {
            Way::Socket(client) => Ok(client.delete(key)?),
            Way::Call { service, .. } => Ok(service.store().delete(key)?),
        }
    }

    fn scan(&mut self, _: &[u8], _: usize) -> Result<usize> {
        Err(LabError::Asked("memcached's protocol has no scan".into()))
    }
}
