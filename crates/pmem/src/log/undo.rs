//! The undo-redo log: a transaction changes words in place, one by one. After a crash before the
//! commit, recovery restores all of them.
//!
//! The interface is the one of the mini-transactions of Chen and Jin (*Persistent B+-Trees in
//! Non-Volatile Main Memory*, VLDB 2015): `WriteUndoRedo`, `NewRedo`, `CommitNewRedo`.
//!
//! The first line of a slot holds the state, each other line two records. A slot in the pool's
//! header has eight lines. The number for a slot of [`UndoLogs`](super::UndoLogs) depends on the
//! records.
//!
//! | line | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- | --- |
//! | 0 | 56 | 8 | state | commit | number (48 bits), records (8; 0: active), check (8) |
//! | 1.. | 0 | 24 | record | data | offset, old value, new value |
//! | 1.. | 24 | 24 | record | data | as before |
//! | 1.. | 48 | 8 | checks | data | CRC-32C of each record, its kind, and its index in the line |
//! | 1.. | 56 | 8 | seal | commit | number (48 bits), line (8), kind of each record (3), 2 spare |
//!
//! A state of 0 means that the slot has no transaction.
//!
//! 1. A record is durable before its word is stored. A record of fresh space, which no committed
//!    pointer reaches, needs to be durable only at the commit, because a crash before that has
//!    nothing to restore there.
//! 2. The state decides: a line counts only if it has the number in the state.
//! 3. A seal is stored after the records of its line. So if a check of a sealed line fails, that is
//!    damage, never a torn write.
//! 4. The state of a commit contains the number of records. If fewer are there, the transaction is
//!    not committed.

use super::apply::{apply, flush_lines, truncate};
use super::slots::{self, Lease, SEAL, SLOT_LINES, SlotState};
use crate::checksum::checksum_words;
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::line::LINE_WORDS;
use crate::medium::{Medium, offset_of};
use crate::word::PmWord;

const LINE_RECORDS: usize = 2;
const RECORD_WORDS: usize = 3;
const CHECKS: usize = LINE_WORDS - 2;

/// The largest number of words that a transaction in the pool's header changes.
pub const RECORDS_MAX: usize = records_of(SLOT_LINES);

/// Returns the number of records in a slot of `lines` lines.
pub(super) const fn records_of(lines: usize) -> usize {
    LINE_RECORDS * (lines - 1)
}

/// Returns the number of lines of a slot for `records` records.
pub(super) const fn lines_of(records: usize) -> usize {
    1 + records.div_ceil(LINE_RECORDS)
}

/// A transaction that changes words in place. Dropping it without a commit restores them.
#[derive(Debug)]
#[must_use = "dropping an uncommitted transaction undoes it"]
pub struct UndoLog<'p, M: Medium> {
    medium: &'p M,
    slot: &'p [PmWord],
    lease: Lease<'p>,
    txid: u64,
    records: Vec<Record>,
    /// A bit for each line with records that are not flushed yet.
    dirty: u128,
    phase: Phase,
}

/// The state of a transaction, as its state word has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The state word is 0: no word of used space has been changed.
    Fresh,
    /// The state word has no records: a crash undoes the transaction.
    Active,
    /// The state word has the number of records: a crash redoes the transaction.
    Committed,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    kind: Kind,
    offset: u64,
    old: u64,
    new: u64,
}

impl Record {
    /// Returns the checksum of the record, its kind, and its index in the line of `seal`.
    fn check(&self, seal: Seal, place: usize) -> u64 {
        let alone = Seal { kinds: [Some(self.kind), None], ..seal }.encode() | place as u64;
        let words = [self.offset, self.old, self.new, alone];
        checksum_words(words)
    }
}

/// The kind of the word that a record changes. Any two codes, 0 included, differ in two bits, so
/// one flipped bit turns none into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The word is in use: its old value counts.
    Used = 0b011,
    /// The word belongs to fresh space: its old value does not count.
    Fresh = 0b101,
}

impl<'p, M: Medium> UndoLog<'p, M> {
    /// Leases a slot of `slots`, which are in the header of the pool on `medium`.
    pub(crate) fn lease(medium: &'p M, slots: &'p SlotState) -> Self {
        let lease = slots.lease(slots::UNDO);
        Self::begin(medium, slots.next_txid(), slots::words(medium, lease.index()), lease)
    }

    /// Begins transaction `txid` in `slot`, which `lease` reserves.
    pub(super) fn begin(medium: &'p M, txid: u64, slot: &'p [PmWord], lease: Lease<'p>) -> Self {
        debug_assert_eq!(medium.load(&slot[SEAL]), 0, "the last holder has truncated the slot");
        let phase = Phase::Fresh;
        Self { medium, slot, lease, txid, records: Vec::new(), dirty: 0, phase }
    }

    /// Changes `word`, which may hold committed data. The old value is durable in the log before.
    ///
    /// ```text
    /// W state = active, F state       the first time only
    /// W record, seal; F line |        crash from here on: the old value is restored
    /// W word                          budget: 1 line, 1 fence; the first: 2 lines, 1 fence
    /// ```
    ///
    /// # Panics
    /// The log is full: a log in the pool's header holds [`RECORDS_MAX`] records.
    pub fn write_undo_redo(&mut self, word: &PmWord, value: u64) {
        let medium = self.medium;
        if self.phase == Phase::Fresh {
            medium.store(&self.slot[SEAL], state(self.txid, 0));
            medium.flush(&self.slot[SEAL..=SEAL]);
            self.phase = Phase::Active;
        }
        let index = self.append(Kind::Used, word, value);
        medium.flush(&self.slot[index * LINE_WORDS..][..LINE_WORDS]);
        self.dirty &= !(1 << index);
        let _ = medium.fence();
        medium.store(word, value);
    }

    /// Changes `word` of fresh space. No committed pointer reaches it, so nothing is flushed before
    /// the commit.
    ///
    /// ```text
    /// W record, seal
    /// W word             crash at any point: the space is free again    budget: nothing
    /// ```
    ///
    /// # Panics
    /// The log is full: a log in the pool's header holds [`RECORDS_MAX`] records.
    pub fn new_redo(&mut self, word: &PmWord, value: u64) {
        let index = self.append(Kind::Fresh, word, value);
        self.dirty |= 1 << index;
        self.medium.store(word, value);
    }

    /// Commits the transaction. Durable on return: the log has all that recovery needs.
    /// [`Redoable::finish`] then writes the words back.
    ///
    /// ```text
    /// F lines with fresh records
    /// W state = committed, number of records
    /// F state |            crash before: undone, or redone if the state and all records persisted
    ///                      -> durable   budget: log lines with fresh records + 1 lines, 1 fence
    /// ```
    pub fn commit_new_redo(mut self) -> Redoable<'p, M> {
        let medium = self.medium;
        if !self.records.is_empty() {
            for (index, line) in self.slot.chunks_exact(LINE_WORDS).enumerate() {
                if self.dirty & 1 << index != 0 {
                    medium.flush(line);
                }
            }
            medium.store(&self.slot[SEAL], state(self.txid, self.records.len()));
            let _ = medium.persist(&self.slot[SEAL..=SEAL]);
        }
        self.phase = Phase::Committed;
        Redoable(self)
    }

    /// Appends a record of `word` and returns the index of its line.
    fn append(&mut self, kind: Kind, word: &PmWord, new: u64) -> usize {
        let count = self.records.len();
        let full = records_of(self.slot.len() / LINE_WORDS);
        assert!(count < full, "an undo log of this size holds {full} records");
        let medium = self.medium;
        let (index, place) = (1 + count / LINE_RECORDS, count % LINE_RECORDS);
        let offset = offset_of(medium, word).offset();
        let record = Record { kind, offset, old: medium.load(word), new };
        self.records.push(record);
        let line = &self.slot[index * LINE_WORDS..][..LINE_WORDS];
        let mut seal = Seal { txid: self.txid, line: index, kinds: [Some(kind), None] };
        let mut checks = record.check(seal, place);
        if place == 0 {
            medium.store(&line[SEAL], 0);
        } else {
            let first = self.records[count - 1];
            seal.kinds = [Some(first.kind), Some(kind)];
            checks = checks << 32 | first.check(seal, 0);
        }
        let words = &line[place * RECORD_WORDS..][..RECORD_WORDS];
        for (word, value) in words.iter().zip([record.offset, record.old, record.new]) {
            medium.store(word, value);
        }
        medium.store(&line[CHECKS], checks);
        medium.store(&line[SEAL], seal.encode());
        index
    }

    fn flush_words(&self) -> Result<(), Corrupt> {
        let offsets: Vec<_> = self.records.iter().map(|record| record.offset).collect();
        flush_lines(self.medium, &offsets)?;
        let _ = self.medium.fence();
        Ok(())
    }
}

impl<M: Medium> Drop for UndoLog<'_, M> {
    /// Restores the words if the transaction is not committed, else writes them back; then
    /// truncates.
    ///
    /// ```text
    /// W words, the last first   if not committed
    /// F their lines |           crash before |: a replay does the same
    /// W state = 0
    /// F state |
    /// ```
    fn drop(&mut self) {
        if self.records.is_empty() || self.phase == Phase::Fresh {
            return; // No record in the log counts.
        }
        if std::thread::panicking() {
            self.lease.keep();
            return;
        }
        let done = if self.phase == Phase::Committed {
            self.flush_words()
        } else {
            apply(self.medium, &old_values(self.medium, &self.records)).map(|_| ())
        };
        done.expect("logged words lie in the pool");
        let _ = truncate(self.medium, self.slot);
    }
}

/// A committed transaction whose words are still to be written back. Dropping it finishes it. If a
/// thread panics, the drop leaves the log to the next open.
#[derive(Debug)]
#[must_use = "the log is leased until the transaction is finished"]
pub struct Redoable<'p, M: Medium>(UndoLog<'p, M>);

impl<M: Medium> Redoable<'_, M> {
    /// Writes the changed words back and truncates the log. Latches may be released after this.
    ///
    /// ```text
    /// F lines of the words |   crash before: redone
    /// W state = 0
    /// F state |                budget: distinct lines of the words + 1 lines, 2 fences
    /// ```
    pub fn finish(self) {
        drop(self.0);
    }
}

/// Returns the old values of the words in use, the last change first.
fn old_values<M: Medium>(medium: &M, records: &[Record]) -> Vec<(u64, u64)> {
    let used = records.iter().rev().filter(|record| record.kind == Kind::Used);
    let mut old: Vec<_> = used.map(|record| (record.offset, record.old)).collect();
    if M::INJECTS_DEFECTS && medium.injects(Defect::UndoForward) {
        old.reverse();
    }
    old
}

/// Returns the state word. `count` is 0 while the transaction is active.
fn state(txid: u64, count: usize) -> u64 {
    let state = txid << 16 | (count as u64) << 8;
    state | parity(state)
}

/// Returns the exclusive or of the seven upper bytes and a constant, so that 0 is no valid state.
fn parity(state: u64) -> u64 {
    u64::from(state.to_le_bytes()[1..].iter().fold(0x5a, |parity, byte| parity ^ byte))
}

/// The fields of a seal.
#[derive(Clone, Copy, Debug)]
struct Seal {
    txid: u64,
    line: usize,
    kinds: [Option<Kind>; LINE_RECORDS],
}

impl Seal {
    fn encode(self) -> u64 {
        let [first, second] = self.kinds.map(|kind| kind.map_or(0, |kind| kind as u64));
        self.txid << 16 | (self.line as u64) << 8 | first << 5 | second << 2
    }

    /// Decodes the seal of line `line`, or returns `None` if no writer stores such a word there.
    fn decode(word: u64, line: usize) -> Option<Self> {
        let kind = |bits| match bits & 7 {
            0 => Some(None),
            0b011 => Some(Some(Kind::Used)),
            0b101 => Some(Some(Kind::Fresh)),
            _ => None,
        };
        let seal = Self { txid: word >> 16, line, kinds: [kind(word >> 5)?, kind(word >> 2)?] };
        (seal.encode() == word && seal.txid != 0 && seal.kinds[0].is_some()).then_some(seal)
    }
}

/// Returns the words and values that end the transaction in a slot: the new values if it is
/// committed, else the old ones. `None` if the slot has no transaction.
///
/// # Errors
/// A line that may belong to the transaction is damaged.
pub(super) fn read<M: Medium>(
    medium: &M,
    slot: &[PmWord],
) -> Result<Option<Vec<(u64, u64)>>, Corrupt> {
    let word = medium.load(&slot[SEAL]);
    if word == 0 {
        return Ok(None);
    }
    let corrupt = |what, expected, found| {
        let at = offset_of(medium, &slot[SEAL]).offset();
        Corrupt { at, what, expected, found }
    };
    if word & 0xff != parity(word) || word >> 16 == 0 {
        return Err(corrupt("state of an undo log", parity(word), word));
    }
    let (txid, count) = (word >> 16, (word >> 8 & 0xff) as usize);
    let mut records = Vec::new();
    for (index, line) in slot.chunks_exact(LINE_WORDS).enumerate().skip(1) {
        records.extend(read_line(medium, line, index, txid)?);
    }
    if count > 0 && records.len() > count {
        return Err(corrupt("records of a committed log", count as u64, records.len() as u64));
    }
    Ok(Some(if count > 0 && records.len() == count {
        records.iter().map(|record| (record.offset, record.new)).collect()
    } else {
        old_values(medium, &records)
    }))
}

/// Returns the records of a line, or none if the line has no seal or another number than `txid`.
fn read_line<M: Medium>(
    medium: &M,
    line: &[PmWord],
    index: usize,
    txid: u64,
) -> Result<Vec<Record>, Corrupt> {
    let load = |index: usize| medium.load(&line[index]);
    if load(SEAL) == 0 {
        return Ok(Vec::new());
    }
    let at = offset_of(medium, &line[0]).offset();
    let Some(seal) = Seal::decode(load(SEAL), index) else {
        let (what, expected) = ("seal of an undo log's line", index as u64);
        return Err(Corrupt { at: at + 56, what, expected, found: load(SEAL) });
    };
    let mut records = Vec::new();
    for (place, kind) in seal.kinds.iter().enumerate() {
        let Some(kind) = *kind else { break };
        let first = place * RECORD_WORDS;
        let record =
            Record { kind, offset: load(first), old: load(first + 1), new: load(first + 2) };
        let expected = record.check(seal, place);
        let found = load(CHECKS) >> (32 * place) & 0xffff_ffff;
        if expected != found {
            return Err(Corrupt { at, what: "checksum of an undo record", expected, found });
        }
        records.push(record);
    }
    Ok(if seal.txid == txid { records } else { Vec::new() })
}

#[cfg(test)]
mod tests;
