//! The contents of a trace file, before the answers are known.

use crate::workload::set::canonical;
use bristlecone_pmem::checksum;

/// The contents of a trace. A key is an index of `keys`.
#[derive(Debug, Default)]
pub(super) struct TraceText {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) loads: Vec<(usize, u64)>,
    pub(super) steps: Vec<(usize, TraceStep)>,
}

/// An operation as it is written, without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceStep {
    Get,
    Put(u64),
    Delete,
    Scan(u16),
}

/// Returns the word that stands for a value: a number itself, or length and CRC-32C of a text.
pub(super) fn word(value: &[u8]) -> u64 {
    canonical(value).unwrap_or_else(|| (value.len() as u64) << 32 | u64::from(checksum(value)))
}
