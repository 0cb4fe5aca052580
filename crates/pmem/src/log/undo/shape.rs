//! The lines of a slot.

use super::{LINE_RECORDS, fresh};
use crate::line::LINE_WORDS;
use crate::word::PmWord;

/// The numbers of lines of a slot.
#[derive(Clone, Copy, Debug)]
pub(in crate::log) struct Shape {
    /// The end, and the records of words in use.
    sealed_lines: usize,
    /// The records of fresh words.
    fresh_lines: usize,
}

impl Shape {
    /// Returns the shape of a slot for `records` words in use and `fresh` fresh words.
    pub(in crate::log) const fn of(records: usize, fresh: usize) -> Self {
        Self {
            sealed_lines: 1 + records.div_ceil(LINE_RECORDS),
            fresh_lines: fresh.div_ceil(fresh::LINE_RECORDS),
        }
    }

    /// Returns the number of lines of a slot.
    pub(in crate::log) const fn lines(self) -> usize {
        self.sealed_lines + self.fresh_lines
    }

    /// Returns the lines of `slot` with an end or seals.
    pub(in crate::log) fn sealed(self, slot: &[PmWord]) -> &[PmWord] {
        &slot[..self.sealed_lines * LINE_WORDS]
    }

    /// Returns the lines of `slot` with the records of fresh words.
    pub(in crate::log) fn fresh(self, slot: &[PmWord]) -> &[PmWord] {
        &slot[self.sealed_lines * LINE_WORDS..]
    }
}
