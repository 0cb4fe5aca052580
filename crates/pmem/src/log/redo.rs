//! The redo log, with a seal in each line: several words change together, and one fence commits.
//!
//! A line of a slot:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 48 | three pairs | data | offset of a word, and its new value |
//! | 48 | 8 | check | data | CRC-32C of the pairs in use and of the seal |
//! | 56 | 8 | seal | commit | number (48 bits), line (6), lines (6), pairs (4); 0: nothing |
//!
//! 1. The seal is stored last in its line, and cleared before any other word of the line changes. A
//!    line persists in order, so if a crash leaves the seal, it leaves the whole line.
//! 2. A transaction is committed if all its lines have their seals with the same number.
//! 3. So a seal with a wrong checksum is damage, never a torn write.

use super::apply::{self, apply};
use super::slots::{self, Lease, SEAL, SLOT_LINES, SlotState};
use crate::checksum::checksum_words;
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::line::LINE_WORDS;
use crate::medium::{Fenced, Medium, offset_of};
use crate::word::PmWord;

const LINE_PAIRS: usize = 3;
const CHECK: usize = LINE_WORDS - 2;

/// The largest number of words that one transaction changes.
pub const PAIRS_MAX: usize = LINE_PAIRS * SLOT_LINES;

/// A leased redo log, for one transaction.
#[derive(Debug)]
pub struct RedoLog<'p, M: Medium> {
    medium: &'p M,
    slots: &'p SlotState,
    lease: Lease<'p>,
}

impl<'p, M: Medium> RedoLog<'p, M> {
    /// Leases a slot of `slots`, which are in the header of the pool on `medium`.
    pub(crate) fn lease(medium: &'p M, slots: &'p SlotState) -> Self {
        Self { medium, slots, lease: slots.lease(slots::REDO) }
    }

    /// Commits `changes`: words of this pool, each with its new value. Durable on return: after any
    /// later crash, recovery stores all of them. The call does not store the words themselves; the
    /// caller does, or [`Committed::finish`]. `_published` shows that everything that the new
    /// values point to is durable.
    ///
    /// ```text
    /// for each line
    ///   W seal = 0, pairs, check       crash before |: the log has no effect unless
    ///   W seal                         all of its lines are there
    ///   F line
    /// |                -> durable      budget: ceil(pairs / 3) lines, 1 fence
    /// ```
    ///
    /// # Panics
    /// There are no changes, or more than [`PAIRS_MAX`].
    pub fn commit(self, changes: &[(&PmWord, u64)], _published: Fenced) -> Committed<'p, M> {
        assert!((1..=PAIRS_MAX).contains(&changes.len()), "a redo log holds 1 to 24 changes");
        let Self { medium, slots, lease } = self;
        let mut pairs = [(0, 0); PAIRS_MAX];
        for (pair, (word, value)) in pairs.iter_mut().zip(changes) {
            *pair = (offset_of(medium, word).offset(), *value);
        }
        let committed = Committed { medium, lease, pairs, count: changes.len(), open: true };
        committed.write(slots.next_txid());
        let _ = medium.fence();
        committed
    }
}

/// A committed transaction whose words are still to be stored in place.
///
/// Dropping it finishes it. If a thread panics, the drop leaves the log to the next open.
#[derive(Debug)]
#[must_use = "store the words, fence and truncate, or call `finish`"]
pub struct Committed<'p, M: Medium> {
    medium: &'p M,
    lease: Lease<'p>,
    /// Offsets of words, each with its new value.
    pairs: [(u64, u64); PAIRS_MAX],
    /// The number of pairs in use.
    count: usize,
    open: bool,
}

impl<M: Medium> Committed<'_, M> {
    fn pairs(&self) -> &[(u64, u64)] {
        &self.pairs[..self.count]
    }

    fn write(&self, txid: u64) {
        let lines = self.count.div_ceil(LINE_PAIRS);
        for (index, pairs) in self.pairs().chunks(LINE_PAIRS).enumerate() {
            self.write_line(Seal { txid, line: index, lines, pairs: pairs.len() }, pairs);
        }
    }

    fn write_line(&self, seal: Seal, pairs: &[(u64, u64)]) {
        let medium = self.medium;
        let at = seal.line * LINE_WORDS;
        let line = &slots::words(medium, self.lease.index())[at..at + LINE_WORDS];
        medium.store(&line[SEAL], 0);
        if M::INJECTS_DEFECTS && medium.injects(Defect::LogUnmarked) {
            medium.store(&line[SEAL], seal.encode());
        }
        for (target, &(offset, value)) in line.chunks_exact(2).zip(pairs) {
            medium.store(&target[0], offset);
            medium.store(&target[1], value);
        }
        medium.store(&line[CHECK], line_checksum(pairs, seal));
        medium.store(&line[SEAL], seal.encode());
        medium.flush(line);
    }

    /// Stores the logged values in place. Durable on return.
    ///
    /// ```text
    /// W words           crash at any point: the log is replayed, to the same end
    /// F their lines |   -> durable in place   budget: distinct lines of the words, 1 fence
    /// ```
    pub fn apply(&self) -> Fenced {
        apply(self.medium, self.pairs()).expect("logged words lie in the pool")
    }

    /// Ends the transaction. `_applied` shows that every logged word is durable in place, and
    /// everything else that the caller changed with them. Latches may be released after this.
    ///
    /// ```text
    /// W seal of line 0 = 0   8 B    crash before: the replay stores the logged values again,
    /// F line 0 |                    also over later values that the caller has stored there
    ///                               budget: 1 line, 1 fence
    /// ```
    pub fn truncate(mut self, _applied: Fenced) -> Fenced {
        self.clear()
    }

    /// Calls [`apply`](Self::apply), then [`truncate`](Self::truncate).
    pub fn finish(self) {
        let applied = self.apply();
        let _ = self.truncate(applied);
    }

    fn clear(&mut self) -> Fenced {
        self.open = false;
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::LogKept) {
            return Fenced::after_fence();
        }
        apply::truncate(self.medium, slots::words(self.medium, self.lease.index()), 0)
    }
}

impl<M: Medium> Drop for Committed<'_, M> {
    fn drop(&mut self) {
        if self.open && std::thread::panicking() {
            self.lease.keep();
        } else if self.open {
            let _ = self.apply();
            let _ = self.clear();
        }
    }
}

/// The fields of a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seal {
    txid: u64,
    line: usize,
    lines: usize,
    pairs: usize,
}

impl Seal {
    fn encode(self) -> u64 {
        debug_assert!(self.txid != 0 && self.line < self.lines && self.lines <= SLOT_LINES);
        self.txid << 16 | (self.line << 10 | self.lines << 4 | self.pairs) as u64
    }

    /// Decodes the seal of line `line`, or returns `None` if no writer stores such a word there.
    fn decode(word: u64, line: usize) -> Option<Self> {
        let seal = Self {
            txid: word >> 16,
            line: (word >> 10 & 0x3f) as usize,
            lines: (word >> 4 & 0x3f) as usize,
            pairs: (word & 0xf) as usize,
        };
        let fits = seal.line == line && line < seal.lines && seal.lines <= SLOT_LINES;
        let has_pairs = (1..=LINE_PAIRS).contains(&seal.pairs);
        (seal.txid != 0 && fits && has_pairs).then_some(seal)
    }
}

fn line_checksum(pairs: &[(u64, u64)], seal: Seal) -> u64 {
    let words = pairs.iter().flat_map(|&(offset, value)| [offset, value]).chain([seal.encode()]);
    checksum_words(words)
}

/// Returns the pairs of the committed transaction in a slot, or `None` if it has none.
///
/// # Errors
/// A line that may belong to the transaction is damaged.
pub(super) fn read<M: Medium>(
    medium: &M,
    slot: &[PmWord],
) -> Result<Option<Vec<(u64, u64)>>, Corrupt> {
    let mut all = Vec::new();
    let mut first = None;
    for (index, line) in slot.chunks_exact(LINE_WORDS).enumerate() {
        let Some((seal, pairs)) = read_line(medium, line, index)? else { return Ok(None) };
        let Seal { txid, lines, .. } = *first.get_or_insert(seal);
        if (seal.txid, seal.lines) != (txid, lines) {
            return Ok(None);
        }
        all.extend(pairs);
        if index + 1 == lines {
            break;
        }
    }
    Ok(Some(all))
}

type Line = (Seal, Vec<(u64, u64)>);

/// Returns the contents of a line, or `None` if it has no seal.
fn read_line<M: Medium>(
    medium: &M,
    line: &[PmWord],
    index: usize,
) -> Result<Option<Line>, Corrupt> {
    let word = medium.load(&line[SEAL]);
    if word == 0 {
        return Ok(None);
    }
    let at = offset_of(medium, &line[0]).offset();
    let Some(seal) = Seal::decode(word, index) else {
        let (what, expected) = ("seal of a log line", index as u64);
        return Err(Corrupt { at: at + 56, what, expected, found: word });
    };
    let pairs: Vec<_> = line
        .chunks_exact(2)
        .take(seal.pairs)
        .map(|pair| (medium.load(&pair[0]), medium.load(&pair[1])))
        .collect();
    let (expected, found) = (line_checksum(&pairs, seal), medium.load(&line[CHECK]));
    if expected != found && !(M::INJECTS_DEFECTS && medium.injects(Defect::LogUnmarked)) {
        return Err(Corrupt { at, what: "checksum of a log line", expected, found });
    }
    Ok(Some((seal, pairs)))
}

#[cfg(test)]
mod tests;
