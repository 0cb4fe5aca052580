//! The errors of workloads: what is wrong, where, and which value would be right.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The error type of workloads, their keys and their files.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No workload has this name.
    #[error(
        "no workload is called {name:?}; there are {known}, a mix such as get:30+insert:70, FILE.toml \
         and FILE.trace"
    )]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names of workloads.
        known: String,
    },
    /// A part of a mix is not a kind of operation and a percentage.
    #[error("{part:?} in the mix is not KIND:PERCENT; kinds are {known}, percentages 1 to 100")]
    Part {
        /// The text of the part.
        part: String,
        /// The names of kinds of operations.
        known: String,
    },
    /// A kind occurs in a mix more than once.
    #[error("{kind} is in the mix twice; give it once, with the sum of both percentages")]
    Twice {
        /// The name of the kind.
        kind: &'static str,
    },
    /// The percentages of a mix do not sum to 100.
    #[error("the percentages of the mix sum to {sum}; they must sum to 100")]
    Sum {
        /// The sum of the percentages.
        sum: u64,
    },
    /// No distribution has this name.
    #[error(
        "{text:?} is no distribution; there are uniform, zipfian, latest, sequential, hotspot, and \
         hotspot:OPS/RECORDS with percentages from 1 to 99"
    )]
    Dist {
        /// The text that was given.
        text: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is not the TOML of a workload.
    #[error("{}: {source}", path.display())]
    Toml {
        /// The path of the file.
        path: PathBuf,
        /// The error of the parser, with the line.
        source: Box<toml::de::Error>,
    },
    /// A field of a file has an invalid value.
    #[error("{}, field {field}: {source}", path.display())]
    Field {
        /// The path of the file.
        path: PathBuf,
        /// The name of the field.
        field: &'static str,
        /// The error of its value.
        source: Box<WorkloadError>,
    },
    /// The workload needs records, and there are none.
    #[error("{workload} needs records that are there; only inserts can begin without --records")]
    NoRecords {
        /// The name of the workload.
        workload: String,
    },
    /// The workload deletes more records than there are, or leaves none for its other operations.
    #[error(
        "{workload} deletes {deletes} of {records} records, each once, and its other operations \
         need one that stays; ask for more --records or fewer --ops"
    )]
    Deletes {
        /// The name of the workload.
        workload: String,
        /// The number of deletes.
        deletes: u64,
        /// The number of records.
        records: u64,
    },
    /// No kind of keys and no file has this name.
    #[error(
        "no keys and no file are called {}; there are {known}, FILE with a key a line, and the sets \
         {sets}, which scripts/key-sets.sh key-sets fetches", path.display()
    )]
    Keys {
        /// The path at which the file would be.
        path: PathBuf,
        /// The names of kinds of keys.
        known: String,
        /// The names of key sets.
        sets: String,
    },
    /// A line of a file is not a key.
    #[error("{}, line {line}: the line {what}; a file of keys has one a line", path.display())]
    KeyLine {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1 on.
        line: usize,
        /// The rule that the line breaks.
        what: &'static str,
    },
    /// A file has too few keys.
    #[error(
        "{keys} has {count} keys; {records} records and room for {inserts} inserts are more: ask for \
         fewer --records or --ops"
    )]
    FewKeys {
        /// The name of the keys.
        keys: String,
        /// The number of keys.
        count: u64,
        /// The number of records to load.
        records: u64,
        /// The room for new records.
        inserts: u64,
    },
    /// A line of a trace is not an operation.
    #[error("{}, line {line}: the line {what}", path.display())]
    TraceLine {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1 on.
        line: usize,
        /// The rule that the line breaks.
        what: &'static str,
    },
    /// The number of records differs from that of the trace.
    #[error(
        "a trace loads what it says, which is {needed} records and not {given}: leave out --records"
    )]
    TraceRecords {
        /// The number that was given.
        given: u64,
        /// The number of records that the trace loads.
        needed: u64,
    },
    /// A workload in batches does not go with a rate.
    #[error("{workload} is in batches; --rate is for operations that start one by one")]
    Rate {
        /// The name of the workload.
        workload: String,
    },
    /// A number is 0 and must not be.
    #[error("it must be at least 1")]
    Zero,
}
