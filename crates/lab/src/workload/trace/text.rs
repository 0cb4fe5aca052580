//! The contents of a trace file, before the answers are known.

use crate::workload::set::canonical;
use bristlecone_pmem::checksum;

/// What a text says, its keys as indices of `keys`.
#[derive(Debug, Default)]
pub(super) struct TraceText {
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) loads: Vec<(usize, u64)>,
    pub(super) steps: Vec<(usize, TraceStep)>,
}

/// An operation as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceStep {
    Get,
    Put(u64),
    Delete,
    Scan(u16),
}

/// The word that stands for a value.
pub(super) fn word(value: &[u8]) -> u64 {
    canonical(value).unwrap_or_else(|| (value.len() as u64) << 32 | u64::from(checksum(value)))
}
