//! The operations of a workload: by a name, as a mix, from a file, or from a trace.

use super::dist::Dist;
use super::error::WorkloadError;
use super::file::Custom;
use super::operation::OpKind;
use super::shares::{self, Mix};
use super::trace::Trace;
use core::str::FromStr;
use rand::rngs::SmallRng;
use serde::{Serialize, Serializer};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// The operations of a workload. A clone is cheap: it copies at most a reference count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Inserts of new keys.
    Insert,
    /// Lookups of keys that are present.
    Get,
    /// Lookups of keys that are present, in batches of 16.
    Multiget,
    /// Updates of keys that are present.
    Update,
    /// Removes of keys that are present, each once.
    Delete,
    /// Scans that begin at a key that is present.
    Scan,
    /// YCSB a: 50 % reads, 50 % updates.
    A,
    /// YCSB b: 95 % reads, 5 % updates.
    B,
    /// YCSB c: reads only.
    C,
    /// YCSB d: 95 % reads of the latest records, 5 % inserts.
    D,
    /// YCSB e: 95 % scans, 5 % inserts.
    E,
    /// YCSB f: 50 % reads, 50 % read-modify-writes.
    F,
    /// Opening the pool after a crash, once in each repetition.
    ReopenCrash,
    /// Opening the pool after a clean close, once in each repetition.
    ReopenClean,
    /// A mix that a text or a file defines.
    Custom(Arc<Custom>),
    /// The operations of a trace.
    Replay(Arc<Trace>),
}

/// The workloads with a fixed name.
const NAMED: [(&str, Workload); 14] = [
    ("insert", Workload::Insert),
    ("get", Workload::Get),
    ("multiget", Workload::Multiget),
    ("update", Workload::Update),
    ("delete", Workload::Delete),
    ("scan", Workload::Scan),
    ("a", Workload::A),
    ("b", Workload::B),
    ("c", Workload::C),
    ("d", Workload::D),
    ("e", Workload::E),
    ("f", Workload::F),
    ("reopen-crash", Workload::ReopenCrash),
    ("reopen-clean", Workload::ReopenClean),
];

impl Workload {
    /// Returns all workloads with a fixed name.
    pub fn named() -> impl Iterator<Item = Self> {
        NAMED.into_iter().map(|(_, workload)| workload)
    }

    /// Returns the name in results: that on the command line, that of a file, or the text of a mix.
    pub fn name(&self) -> &str {
        match self {
            Self::Custom(custom) => &custom.name,
            Self::Replay(trace) => trace.name(),
            Self::Insert => "insert",
            Self::Get => "get",
            Self::Multiget => "multiget",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Scan => "scan",
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::D => "d",
            Self::E => "e",
            Self::F => "f",
            Self::ReopenCrash => "reopen-crash",
            Self::ReopenClean => "reopen-clean",
        }
    }

    /// Returns the distribution that YCSB or the file gives to the workload; uniform if neither
    /// does.
    pub fn dist(&self) -> Dist {
        match self {
            Self::D => Dist::Latest,
            Self::A | Self::B | Self::C | Self::E | Self::F => Dist::Zipfian,
            Self::Custom(custom) => custom.dist.unwrap_or(Dist::Uniform),
            _ => Dist::Uniform,
        }
    }

    /// Returns the mix and the other fields of a workload from a text or a file.
    pub fn custom(&self) -> Option<&Custom> {
        match self {
            Self::Custom(custom) => Some(custom),
            _ => None,
        }
    }

    /// Returns the trace of a recorded workload.
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Self::Replay(trace) => Some(trace),
            _ => None,
        }
    }

    /// Returns the number of operations, at most `wanted`, that are possible on `records` records.
    /// A record is deleted once, and a trace has an end.
    pub fn ops(&self, wanted: u64, records: u64) -> u64 {
        match self {
            Self::Delete => wanted.min(records),
            Self::ReopenCrash | Self::ReopenClean => 0,
            Self::Replay(trace) => wanted.min(trace.ops()),
            _ => wanted,
        }
    }

    /// Returns `Some` if the workload opens the pool again: `Some(true)` after a clean close.
    pub fn reopens(&self) -> Option<bool> {
        match self {
            Self::ReopenCrash => Some(false),
            Self::ReopenClean => Some(true),
            _ => None,
        }
    }

    /// Returns `true` if the workload can begin without records: it only inserts, or is a trace.
    pub fn begins_empty(&self) -> bool {
        self.shares().iter().all(|&(kind, _)| kind == OpKind::Insert)
    }

    /// Returns the kinds of operations and their percentages.
    pub(crate) fn shares(&self) -> &[(OpKind, u32)] {
        match self {
            Self::Insert => &[(OpKind::Insert, shares::WHOLE)],
            Self::Get | Self::Multiget | Self::C | Self::ReopenCrash | Self::ReopenClean => {
                &[(OpKind::Get, shares::WHOLE)]
            }
            Self::Update => &[(OpKind::Update, shares::WHOLE)],
            Self::Delete => &[(OpKind::Remove, shares::WHOLE)],
            Self::Scan => &[(OpKind::Scan, shares::WHOLE)],
            Self::A => &[(OpKind::Get, 50), (OpKind::Update, 50)],
            Self::B => &[(OpKind::Get, 95), (OpKind::Update, 5)],
            Self::D => &[(OpKind::Get, 95), (OpKind::Insert, 5)],
            Self::E => &[(OpKind::Scan, 95), (OpKind::Insert, 5)],
            Self::F => &[(OpKind::Get, 50), (OpKind::ReadModifyWrite, 50)],
            Self::Custom(custom) => custom.mix.shares(),
            // No operation of a trace is drawn.
            Self::Replay(_) => &[],
        }
    }

    /// Returns the percentage of operations of `kind`.
    pub(crate) fn percent(&self, kind: OpKind) -> u32 {
        self.shares().iter().find(|share| share.0 == kind).map_or(0, |share| share.1)
    }

    /// Draws the kind of an operation.
    pub(super) fn draw(&self, rng: &mut SmallRng) -> OpKind {
        shares::draw(self.shares(), rng)
    }

    /// Returns an upper bound of the records that a thread adds in `ops` operations.
    pub(crate) fn inserts_max(&self, ops: u64) -> u64 {
        /// The margin above the mean. The standard deviation of `n` draws is at most half the root
        /// of `n`.
        const DEVIATIONS: u64 = 16;
        match u64::from(self.percent(OpKind::Insert)) {
            0 if self.trace().is_some() => ops,
            0 => 0,
            percent => {
                let mean = (u128::from(ops) * u128::from(percent) / 100) as u64;
                ops.min(mean + DEVIATIONS * (ops.isqrt() / 2 + 1))
            }
        }
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;

    /// Parses a name, a mix, or a path that ends in `.toml` or `.trace`.
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        if let Some((_, named)) = NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(named);
        }
        let path = Path::new(text);
        match path.extension().and_then(OsStr::to_str) {
            Some("toml") => return Ok(Self::Custom(Arc::new(Custom::read(path)?))),
            Some("trace") => return Ok(Self::Replay(Arc::new(Trace::read(path)?))),
            _ => {}
        }
        if text.contains(':') {
            return Ok(text.parse::<Mix>()?.into());
        }
        let known = NAMED.map(|(name, _)| name).join(", ");
        Err(WorkloadError::Unknown { name: text.to_owned(), known })
    }
}

impl From<Mix> for Workload {
    fn from(mix: Mix) -> Self {
        Self::Custom(Arc::new(Custom::of(mix)))
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for workload in Workload::named() {
            assert_eq!(workload.name().parse::<Workload>().unwrap(), workload);
        }
        let mix: Workload = "get:30+insert:70".parse().unwrap();
        assert_eq!((mix.name(), mix.dist()), ("get:30+insert:70", Dist::Uniform));
    }

    #[test]
    fn what_is_no_workload_is_refused_with_those_there_are() {
        let refusal = |text: &str| text.parse::<Workload>().unwrap_err().to_string();
        assert!(refusal("sweep").contains("multiget"));
        assert!(refusal("sweep:100").contains("rmw"));
        assert!(refusal("no/such/file.trace").contains("no/such/file.trace"));
        assert!(refusal("no/such/file.toml").contains("no/such/file.toml"));
    }

    #[test]
    fn what_begins_empty_only_inserts() {
        let begins = |text: &str| text.parse::<Workload>().unwrap().begins_empty();
        assert!(begins("insert") && begins("insert:100"));
        assert!(!begins("get") && !begins("d") && !begins("insert:99+get:1"));
    }
}
