//! Traces: recorded operations, whose answers are all known before the replay.
//!
//! 1. Reading a trace runs it once on std's map. The answers of that run are those that a replay
//!    must give.
//! 2. With several threads, all operations of a key belong to one thread, in their order. So the
//!    value of a key does not depend on other threads. The number of pairs of a scan does, and is
//!    not checked then.
//! 3. A value is a word of 8 B, as in the designs. A number stands for itself; any other text
//!    becomes its length and its CRC-32C.

mod parse;
mod text;
mod write;

use super::error::WorkloadError;
use super::hash::mix64;
use super::keys::Keys;
use super::operation::{Plan, Replayed};
use super::set::{KeySet, canonical};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use text::{TraceStep, TraceText};

/// A recorded sequence of operations with their answers.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    name: String,
    keys: Keys,
    /// Token and value of each record that is loaded first.
    loads: Vec<(u64, u64)>,
    steps: Vec<Replayed>,
}

impl Trace {
    /// Reads the trace in the file at `path`. The trace has the name of the file.
    ///
    /// # Errors
    /// The file cannot be read, has no operation, or has a line that is not an operation.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        let text = std::fs::read(path)
            .map_err(|source| WorkloadError::File { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Parses `text`, the contents of the file at `path`. The trace has the name of the file.
    ///
    /// # Errors
    /// The text has no operation, or has a line that is not an operation.
    pub fn parse(text: &[u8], path: &Path) -> Result<Self, WorkloadError> {
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let text = parse::parse(text).map_err(|(line, what)| WorkloadError::TraceLine {
            path: path.to_owned(),
            line,
            what,
        })?;
        Ok(Self::new(name, &text))
    }

    /// Returns the trace of `text`, with the answers of std's map.
    fn new(name: String, text: &TraceText) -> Self {
        let bytes: Vec<&[u8]> = text.keys.iter().map(Vec::as_slice).collect();
        let keys = Keys::Set(Arc::new(KeySet::new(name.clone(), &bytes)));
        // The tokens of keys that a file gives do not depend on a seed.
        let token = |key: usize| keys.token(0, key as u64);
        // The order in which a system has the keys.
        let number = |key: usize| canonical(bytes[key]).filter(|_| !keys.are_bytes());
        let place = |key: usize| (number(key).unwrap_or(0), bytes[key]);
        let mut map: BTreeMap<(u64, &[u8]), u64> = BTreeMap::new();
        for &(key, value) in &text.loads {
            map.insert(place(key), value);
        }
        let mut steps = Vec::with_capacity(text.steps.len());
        for &(key, step) in &text.steps {
            let (place, token) = (place(key), token(key));
            steps.push(match step {
                TraceStep::Get => Replayed::Get { token, value: map.get(&place).copied() },
                TraceStep::Put(value) => {
                    map.insert(place, value);
                    Replayed::Put { token, value }
                }
                TraceStep::Delete => {
                    Replayed::Delete { token, present: map.remove(&place).is_some() }
                }
                TraceStep::Scan(length) => {
                    let count = map.range(place..).take(usize::from(length)).count() as u16;
                    Replayed::Scan { token, length, count: Some(count) }
                }
            });
        }
        let loads = text.loads.iter().map(|&(key, value)| (token(key), value)).collect();
        Self { name, keys, loads, steps }
    }

    /// Returns the name in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the keys of the trace.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the number of records that are loaded first.
    pub fn records(&self) -> u64 {
        self.loads.len() as u64
    }

    /// Returns the number of operations.
    pub fn ops(&self) -> u64 {
        self.steps.len() as u64
    }

    /// Returns token and value of the record that is loaded at `index`.
    pub(super) fn record(&self, index: u64) -> (u64, u64) {
        self.loads[index as usize]
    }

    /// Returns the number of keys that are present after the first `ops` operations.
    pub(super) fn left(&self, ops: u64) -> u64 {
        let mut there: HashSet<u64> = self.loads.iter().map(|&(token, _)| token).collect();
        for step in &self.steps[..ops.min(self.ops()) as usize] {
            match *step {
                Replayed::Put { token, .. } => there.insert(token),
                Replayed::Delete { token, .. } => there.remove(&token),
                Replayed::Get { .. } | Replayed::Scan { .. } => false,
            };
        }
        there.len() as u64
    }

    /// Divides the first `ops` operations among `threads` threads.
    pub(super) fn plans(&self, threads: u64, ops: u64) -> Vec<Plan> {
        let steps = &self.steps[..ops.min(self.ops()) as usize];
        if threads == 1 {
            return vec![Plan::Replay(steps.to_vec())];
        }
        let mut parts: Vec<Vec<Replayed>> = (0..threads).map(|_| Vec::new()).collect();
        for &step in steps {
            let part = &mut parts[(mix64(step.token()) % threads) as usize];
            part.push(match step {
                Replayed::Scan { token, length, .. } => {
                    Replayed::Scan { token, length, count: None }
                }
                other => other,
            });
        }
        parts.into_iter().map(Plan::Replay).collect()
    }
}

#[cfg(test)]
mod tests;
