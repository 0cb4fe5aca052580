//! Why a workload cannot be had: what is wrong, where, and what would be right.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A workload, or what it is made of, makes no sense.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No workload is called so.
    #[error(
        "no workload is called {name:?}; there are {known}, a mix such as get:30+insert:70, FILE.toml \
         and FILE.trace"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A part of a mix is not a kind of operation and a percentage.
    #[error("{part:?} in the mix is not KIND:PERCENT; kinds are {known}, percentages 1 to 100")]
    Part {
        /// The part.
        part: String,
        /// The kinds there are.
        known: String,
    },
    /// A kind is in a mix more than once.
    #[error("{kind} is in the mix twice; give it once, with the sum of both percentages")]
    Twice {
        /// The kind.
        kind: &'static str,
    },
    /// The percentages of a mix are not 100.
    #[error("the percentages of the mix sum to {sum}; they must sum to 100")]
    Sum {
        /// Their sum.
        sum: u64,
    },
    /// No distribution is called so.
    #[error(
        "{text:?} is no distribution; there are uniform, zipfian, latest, sequential, hotspot, and \
         hotspot:OPS/RECORDS with percentages from 1 to 99"
    )]
    Dist {
        /// What was asked for.
        text: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not the TOML of a workload.
    #[error("{}: {source}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and in which line.
        source: Box<toml::de::Error>,
    },
    /// A field of a file has a value that makes no sense.
    #[error("{}, field {field}: {source}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        source: Box<WorkloadError>,
    },
    /// There is nothing for an operation to be about.
    #[error("{workload} needs records that are there; only inserts can begin without --records")]
    NoRecords {
        /// The workload.
        workload: String,
    },
    /// More records are deleted than are there, or so many that none is left for the others.
    #[error(
        "{workload} deletes {deletes} of {records} records, each once, and its other operations \
         need one that stays; ask for more --records or fewer --ops"
    )]
    Deletes {
        /// The workload.
        workload: String,
        /// Removals.
        deletes: u64,
        /// Records to remove.
        records: u64,
    },
    /// No keys are called so, and no file is.
    #[error(
        "no keys and no file are called {}; there are {known}, FILE with a key a line, and the sets \
         {sets}, which scripts/key-sets.sh key-sets fetches", path.display()
    )]
    Keys {
        /// Where they would be.
        path: PathBuf,
        /// The names there are.
        known: String,
        /// The names of the sets.
        sets: String,
    },
    /// A line of a file is no key.
    #[error("{}, line {line}: the line {what}; a file of keys has one a line", path.display())]
    KeyLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A file has too few keys.
    #[error(
        "{keys} has {count} keys; {records} records and room for {inserts} inserts are more: ask for \
         fewer --records or --ops"
    )]
    FewKeys {
        /// The keys.
        keys: String,
        /// How many there are.
        count: u64,
        /// Records to load.
        records: u64,
        /// Room for new ones.
        inserts: u64,
    },
    /// A line of a trace is none.
    #[error("{}, line {line}: the line {what}", path.display())]
    TraceLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A trace says itself what is loaded.
    #[error(
        "a trace loads what it says, which is {needed} records and not {given}: leave out --records"
    )]
    TraceRecords {
        /// What was asked for.
        given: u64,
        /// What the trace loads.
        needed: u64,
    },
    /// Batches have no time at which they are to start.
    #[error("{workload} is in batches; --rate is for operations that start one by one")]
    Rate {
        /// The workload.
        workload: String,
    },
    /// A number is zero where there must be one.
    #[error("it must be at least 1")]
    Zero,
}
