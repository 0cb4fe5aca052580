//! The undo-redo log: a transaction changes words in place, one by one. After a crash before the
//! commit, recovery restores all of them.
//!
//! The interface is the one of the mini-transactions of Chen and Jin (*Persistent B+-Trees in
//! Non-Volatile Main Memory*, VLDB 2015): `WriteUndoRedo`, `NewRedo`, `CommitNewRedo`. The paper
//! prints no commit mark and no end of the log.
//!
//! The first line of a slot holds the end, each other line two records. A slot in the pool's header
//! has eight lines. The number for a slot of [`UndoLogs`](super::UndoLogs) depends on the records.
//!
//! | line | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- | --- |
//! | 0 | 56 | 8 | end | commit | number of the last transaction that ended; 0: none has |
//! | 1.. | 0, 32 | 8 | address | data | kind (3 bits), offset of a word (48), check (16) |
//! | 1.. | 8, 40 | 16 | values | data | old value, new value |
//! | 1.. | 24, 56 | 8 | seal | commit | number of the transaction; 0: no record |
//!
//! The offset is a multiple of 8, so its low bits hold the kind. The check is that of the record. A
//! number is in the upper 48 bits of its word and has its own check in the lower 16.
//!
//! 1. A record is durable before its word is stored. A record of fresh space, which no committed
//!    pointer reaches, needs to be durable only at the commit, because a crash before that has
//!    nothing to restore there.
//! 2. A record counts only if its number is greater than that of the end. A slot has one
//!    transaction at a time, so all records that count have the same number.
//! 3. A seal is stored after the other words of its record, in the same line. So if the check of a
//!    record that counts fails, that is damage, never a torn write. So is a wrong check of a
//!    number.
//! 4. The kind of the last record is the commit. The transaction is committed if that record and
//!    all before it are there.

use super::apply::{apply, flush_lines, truncate};
use super::slots::{self, Lease, SEAL, SLOT_LINES, SlotState};
use crate::checksum::checksum_words;
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::line::LINE_WORDS;
use crate::medium::{Medium, offset_of};
use crate::word::PmWord;

const RECORD_WORDS: usize = 4;
const LINE_RECORDS: usize = LINE_WORDS / RECORD_WORDS;
/// The last word of a record: the one with its number.
const RECORD_SEAL: usize = RECORD_WORDS - 1;
/// The words of a line that hold a number, in an undo-redo log.
pub(super) const SEALS: [usize; LINE_RECORDS] = [RECORD_SEAL, SEAL];
/// The bits of an address that hold the kind. They are free because words lie at multiples of 8.
const KIND_MASK: u64 = 7;
/// The lowest of the bits of an address that hold the check of its record.
const CHECK_SHIFT: u32 = 48;
/// The bits of an address that hold the offset of a word.
const OFFSET_MASK: u64 = (1 << CHECK_SHIFT) - 1 - KIND_MASK;

/// The largest number of words that a transaction in the pool's header changes.
pub const RECORDS_MAX: usize = records_of(SLOT_LINES);

/// Returns the number of records in a slot of `lines` lines.
const fn records_of(lines: usize) -> usize {
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
    /// The lines with records that are not flushed yet, in ascending order.
    dirty: Vec<usize>,
    is_committed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    kind: Kind,
    offset: u64,
    old: u64,
    new: u64,
}

impl Record {
    /// Returns the first word of the record at `index` of transaction `txid`.
    fn address(&self, txid: u64, index: usize) -> u64 {
        debug_assert_eq!(self.offset & !OFFSET_MASK, 0, "a word lies in the first 256 TiB");
        let address = self.offset | self.kind as u64;
        check([address, self.old, self.new, txid, index as u64]) << CHECK_SHIFT | address
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
    /// The word is in use, and the record is the last one: it commits the transaction.
    Last = 0b110,
}

impl Kind {
    /// Returns the kind in the low bits of an address.
    fn of(address: u64) -> Option<Self> {
        [Self::Used, Self::Fresh, Self::Last]
            .into_iter()
            .find(|&kind| kind as u64 == address & KIND_MASK)
    }
}

impl<'p, M: Medium> UndoLog<'p, M> {
    /// Leases a slot of `slots`, which are in the header of the pool on `medium`.
    pub(crate) fn lease(medium: &'p M, slots: &'p SlotState) -> Self {
        let lease = slots.lease(slots::UNDO);
        Self::begin(medium, slots.next_txid(), slots::words(medium, lease.index()), lease)
    }

    /// Begins transaction `txid` in `slot`, which `lease` reserves.
    pub(super) fn begin(medium: &'p M, txid: u64, slot: &'p [PmWord], lease: Lease<'p>) -> Self {
        debug_assert!(medium.load(&slot[SEAL]) >> 16 < txid, "numbers never repeat");
        let (records, dirty) = (Vec::new(), Vec::new());
        Self { medium, slot, lease, txid, records, dirty, is_committed: false }
    }

    /// Changes `word`, which may hold committed data. The old value is durable in the log before.
    ///
    /// ```text
    /// W record, seal; F line |        crash from here on: the old value is restored
    /// W word                          budget: 1 line, 1 fence
    /// ```
    ///
    /// # Panics
    /// The log is full: a log in the pool's header holds [`RECORDS_MAX`] records.
    pub fn write_undo_redo(&mut self, word: &PmWord, value: u64) {
        let is_early = M::INJECTS_DEFECTS && self.medium.injects(Defect::CommitBitEarly);
        let index = self.append(if is_early { Kind::Last } else { Kind::Used }, word, value);
        self.flush_line(index);
        let _ = self.medium.fence();
        self.medium.store(word, value);
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
    /// As [`write_undo_redo`](Self::write_undo_redo).
    pub fn new_redo(&mut self, word: &PmWord, value: u64) {
        let index = self.append(Kind::Fresh, word, value);
        if self.dirty.last() != Some(&index) {
            self.dirty.push(index);
        }
        self.medium.store(word, value);
    }

    /// Changes `word`, which may hold committed data, as the last word, and commits the
    /// transaction. Durable on return: the log has all that recovery needs. [`Redoable::finish`]
    /// then writes the words back.
    ///
    /// ```text
    /// F lines with fresh records
    /// W record with the commit, seal
    /// F line |             crash before: undone, or redone if all records persisted
    /// W word               -> durable   budget: log lines with fresh records and 1, 1 fence
    /// ```
    ///
    /// # Panics
    /// As [`write_undo_redo`](Self::write_undo_redo).
    pub fn commit(mut self, word: &PmWord, value: u64) -> Redoable<'p, M> {
        let index = self.append(Kind::Last, word, value);
        for dirty in core::mem::take(&mut self.dirty) {
            if dirty != index {
                self.flush_line(dirty);
            }
        }
        self.flush_line(index);
        let _ = self.medium.fence();
        self.medium.store(word, value);
        self.is_committed = true;
        Redoable(self)
    }

    /// Appends a record of `word` and returns the index of its line.
    fn append(&mut self, kind: Kind, word: &PmWord, new: u64) -> usize {
        let index = self.records.len();
        let full = records_of(self.slot.len() / LINE_WORDS);
        assert!(index < full, "an undo log of this size holds {full} records");
        let medium = self.medium;
        let offset = offset_of(medium, word).offset();
        let record = Record { kind, offset, old: medium.load(word), new };
        self.records.push(record);
        let words = &self.slot[LINE_WORDS + index * RECORD_WORDS..][..RECORD_WORDS];
        let address = record.address(self.txid, index);
        let values = [address, record.old, record.new, numbered(self.txid)];
        for (word, value) in words.iter().zip(values) {
            medium.store(word, value);
        }
        1 + index / LINE_RECORDS
    }

    /// Flushes line `index` of the log.
    fn flush_line(&mut self, index: usize) {
        self.medium.flush(&self.slot[index * LINE_WORDS..][..LINE_WORDS]);
        self.dirty.retain(|&dirty| dirty != index);
    }

    fn flush_words(&self) -> Result<(), Corrupt> {
        let offsets: Vec<_> = self.records.iter().map(|record| record.offset).collect();
        flush_lines(self.medium, &offsets)?;
        if !(M::INJECTS_DEFECTS && self.medium.injects(Defect::UndoEndsEarly)) {
            let _ = self.medium.fence();
        }
        Ok(())
    }
}

impl<M: Medium> Drop for UndoLog<'_, M> {
    /// Restores the words if the transaction is not committed, else writes them back; then ends it.
    ///
    /// ```text
    /// W words, the last first   if not committed
    /// F their lines |           crash before |: a replay does the same
    /// W end
    /// F end |
    /// ```
    fn drop(&mut self) {
        if self.records.is_empty() {
            return;
        }
        if std::thread::panicking() {
            self.lease.keep();
            return;
        }
        let done = if self.is_committed {
            self.flush_words()
        } else {
            apply(self.medium, &old_values(self.medium, &self.records)).map(|_| ())
        };
        done.expect("logged words lie in the pool");
        let _ = truncate(self.medium, self.slot, numbered(self.txid));
    }
}

/// A committed transaction whose words are still to be written back. Dropping it finishes it. If a
/// thread panics, the drop leaves the log to the next open.
#[derive(Debug)]
#[must_use = "the log is leased until the transaction is finished"]
pub struct Redoable<'p, M: Medium>(UndoLog<'p, M>);

impl<M: Medium> Redoable<'_, M> {
    /// Writes the changed words back and ends the transaction. Latches may be released after this.
    ///
    /// ```text
    /// F lines of the words |   crash before: redone
    /// W end
    /// F end |                  budget: distinct lines of the words + 1 lines, 2 fences
    /// ```
    pub fn finish(self) {
        drop(self.0);
    }
}

/// Returns the old values of the words in use, the last change first.
fn old_values<M: Medium>(medium: &M, records: &[Record]) -> Vec<(u64, u64)> {
    let used = records.iter().rev().filter(|record| record.kind != Kind::Fresh);
    let mut old: Vec<_> = used.map(|record| (record.offset, record.old)).collect();
    if M::INJECTS_DEFECTS && medium.injects(Defect::UndoForward) {
        old.reverse();
    }
    old
}

/// Returns the word that holds the number `txid`.
fn numbered(txid: u64) -> u64 {
    txid << 16 | check([txid])
}

/// Returns the number in `word`, 0 if there is none.
///
/// # Errors
/// The word is damaged.
fn number<M: Medium>(medium: &M, word: &PmWord) -> Result<u64, Corrupt> {
    let found = medium.load(word);
    let expected = numbered(found >> 16);
    if found == 0 || found == expected {
        return Ok(found >> 16);
    }
    let at = offset_of(medium, word).offset();
    Err(Corrupt { at, what: "number in an undo log", expected, found })
}

/// Returns a check of 16 bits of `words`.
fn check(words: impl IntoIterator<Item = u64>) -> u64 {
    let checksum = checksum_words(words);
    (checksum >> 16 ^ checksum) & 0xffff
}

/// The end of an interrupted transaction, for a replay.
pub(super) struct Interrupted {
    /// The words and values that end it: the new values if it is committed, else the old ones.
    pub(super) pairs: Vec<(u64, u64)>,
    /// The end word of its slot.
    pub(super) end: u64,
}

/// Returns the interrupted transaction of a slot; `None` if there is none.
///
/// # Errors
/// A record that counts is damaged, or a number is.
pub(super) fn read<M: Medium>(medium: &M, slot: &[PmWord]) -> Result<Option<Interrupted>, Corrupt> {
    let ended = number(medium, &slot[SEAL])?;
    let (mut txid, mut records) = (0, Vec::new());
    let mut length = 0; // The number of records, if the last one is there.
    for (index, words) in slot[LINE_WORDS..].chunks_exact(RECORD_WORDS).enumerate() {
        let seal = number(medium, &words[RECORD_SEAL])?;
        if seal <= ended {
            continue;
        }
        if txid == 0 {
            txid = seal;
        }
        let [address, old, new] = [0, 1, 2].map(|word| medium.load(&words[word]));
        let kind = Kind::of(address).unwrap_or(Kind::Used);
        let record = Record { kind, offset: address & OFFSET_MASK, old, new };
        let expected = record.address(txid, index);
        if seal != txid || address != expected {
            let at = offset_of(medium, &words[0]).offset();
            return Err(Corrupt { at, what: "check of an undo record", expected, found: address });
        }
        records.push(record);
        if kind == Kind::Last && length == 0 {
            length = index + 1;
        }
    }
    if records.is_empty() {
        return Ok(None);
    }
    let pairs = if records.len() == length {
        records.iter().map(|record| (record.offset, record.new)).collect()
    } else {
        old_values(medium, &records)
    };
    Ok(Some(Interrupted { pairs, end: numbered(txid) }))
}

#[cfg(test)]
mod tests;
