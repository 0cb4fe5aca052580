//! The undo-redo log: a transaction changes words in place, one by one. After a crash before the
//! commit, recovery restores all of them.
//!
//! The interface is the one of the mini-transactions of Chen and Jin (*Persistent B+-Trees in
//! Non-Volatile Main Memory*, VLDB 2015): `WriteUndoRedo`, `NewRedo`, `CommitNewRedo`. The paper
//! prints no commit mark and no end of the log.
//!
//! The first line of a slot holds the end, each other line two records; the last lines hold four
//! [records of fresh words](fresh) each. A slot in the pool's header has 1, 6 and 1 lines. Those of
//! a slot of [`UndoLogs`](super::UndoLogs) depend on the records.
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
//! 1. A record is durable before its word is stored. Those of fresh words, which no committed
//!    pointer reaches, are durable before the first other record.
//! 2. A record counts only if its number is greater than that of the end. A slot has one
//!    transaction at a time, so all records that count have the same number.
//! 3. A seal is stored after the other words of its record, in the same line. So if the check of a
//!    record that counts fails, that is damage, never a torn write; a wrong check of a number, too.
//! 4. The kind of the last record is the commit. The transaction is committed if that record and
//!    all before it are there. The kind also says if there are records of fresh words.

pub(super) mod allocated;
mod fresh;
mod shape;

use super::apply::{apply, truncate, write_back};
use super::slots::{self, Lease, SEAL, SLOT_LINES, SlotState};
use crate::checksum::checksum_words;
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::line::LINE_WORDS;
use crate::medium::{Fenced, Medium, offset_of};
use crate::word::{PmPtr, PmWord};
pub(super) use shape::Shape;

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

/// The largest number of words in use that a transaction in the pool's header changes.
pub const RECORDS_MAX: usize = 12;
/// The shape of a slot in the pool's header.
pub(super) const HEADER_SHAPE: Shape = Shape::of(RECORDS_MAX, 4);

const _: () = assert!(HEADER_SHAPE.lines() == SLOT_LINES);

/// A transaction that changes words in place. Dropping it without a commit restores them.
#[derive(Debug)]
#[must_use = "dropping an uncommitted transaction undoes it"]
pub struct UndoLog<'p, M: Medium> {
    medium: &'p M,
    /// The lines of the slot with an end or seals, and those with records of fresh words.
    sealed: &'p [PmWord],
    fresh_lines: &'p [PmWord],
    lease: Lease<'p>,
    txid: u64,
    records: Vec<Record>,
    /// The offsets of the fresh words, and their values.
    fresh: Vec<(u64, u64)>,
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
        checked(self.offset | self.kind as u64, [self.old, self.new, txid, index as u64])
    }
}

/// The kind of the word that a record changes. Any two codes, 0 included, differ in two bits, so
/// one flipped bit turns none into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Another record follows.
    Inner = 0b011,
    /// The record is the last one of a transaction without fresh words, or of a fresh word.
    Last = 0b110,
    /// The record is the last one of a transaction with fresh words.
    LastWithFresh = 0b101,
}

impl Kind {
    /// Returns the kind in the low bits of an address.
    fn of(address: u64) -> Option<Self> {
        [Self::Inner, Self::Last, Self::LastWithFresh]
            .into_iter()
            .find(|&kind| kind as u64 == address & KIND_MASK)
    }
}

impl<'p, M: Medium> UndoLog<'p, M> {
    /// Leases a slot of `slots`, which are in the header of the pool on `medium`.
    pub(crate) fn lease(medium: &'p M, slots: &'p SlotState) -> Self {
        let lease = slots.lease(slots::UNDO);
        let slot = slots::words(medium, lease.index());
        Self::begin(medium, slots.next_txid(), slot, HEADER_SHAPE, lease)
    }

    /// Begins transaction `txid` in `slot`, which `lease` reserves.
    pub(super) fn begin(
        medium: &'p M,
        txid: u64,
        slot: &'p [PmWord],
        shape: Shape,
        lease: Lease<'p>,
    ) -> Self {
        debug_assert!(medium.load(&slot[SEAL]) >> 16 < txid, "numbers never repeat");
        let (sealed, fresh_lines) = (shape.sealed(slot), shape.fresh(slot));
        let (records, fresh) = (Vec::new(), Vec::new());
        Self { medium, sealed, fresh_lines, lease, txid, records, fresh, is_committed: false }
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
        self.commit_new_redo();
        let is_early = M::INJECTS_DEFECTS && self.medium.injects(Defect::CommitBitEarly);
        self.append(if is_early { Kind::Last } else { Kind::Inner }, word, value);
    }

    /// Changes `word` of fresh space. No committed pointer reaches it. All of these come before the
    /// first word in use.
    ///
    /// ```text
    /// W word             crash at any point: the space is free again    budget: nothing
    /// ```
    ///
    /// # Panics
    /// As [`write_undo_redo`](Self::write_undo_redo): a log in the pool's header holds four of
    /// these records.
    pub fn new_redo(&mut self, word: &PmWord, value: u64) {
        assert!(self.records.is_empty(), "fresh words come before those in use");
        self.fresh.push((offset_of(self.medium, word).offset(), value));
        self.medium.store(word, value);
    }

    /// Records the blocks of the new nodes of one level, two at the most (`AllocNode`), in place of
    /// records of fresh words. The caller fences. A log of a transaction without words is never
    /// ended, so the records stay until others take their place.
    ///
    /// ```text
    /// W blocks
    /// F line        crash: recovery checks what it finds    budget: 1 line
    /// ```
    ///
    /// # Panics
    /// The transaction has fresh words.
    pub fn alloc_node(&mut self, level: usize, blocks: &[PmPtr]) {
        assert!(self.fresh.is_empty(), "records of blocks and of fresh words share their lines");
        allocated::write(self.medium, self.fresh_lines, level, blocks);
    }

    /// Makes the records of fresh words durable, before the first record of a word in use.
    ///
    /// ```text
    /// W records
    /// F them |           crash: nothing reads them    budget: a line for four records, 1 fence
    /// ```
    fn commit_new_redo(&self) {
        if self.records.is_empty() && !self.fresh.is_empty() {
            fresh::write(self.medium, self.fresh_lines, self.txid, &self.fresh);
        }
    }

    /// Changes `word`, which may hold committed data, as the last word, and commits the
    /// transaction. Durable on return: the log has all that recovery needs. [`Redoable::finish`]
    /// then writes the words back.
    ///
    /// ```text
    /// W record with the commit, seal
    /// F line |             crash before: undone, or redone if the record persisted
    /// W word               -> durable   budget: 1 line, 1 fence
    /// ```
    ///
    /// # Panics
    /// As [`write_undo_redo`](Self::write_undo_redo).
    pub fn commit(mut self, word: &PmWord, value: u64) -> Redoable<'p, M> {
        self.commit_new_redo();
        let kind = if self.fresh.is_empty() { Kind::Last } else { Kind::LastWithFresh };
        self.append(kind, word, value);
        self.is_committed = true;
        Redoable(self)
    }

    /// Appends a record of `word`. Stores the word when the record is durable.
    fn append(&mut self, kind: Kind, word: &PmWord, new: u64) {
        let index = self.records.len();
        let full = LINE_RECORDS * (self.sealed.len() / LINE_WORDS - 1);
        assert!(index < full, "an undo log of this size holds {full} records");
        let medium = self.medium;
        let offset = offset_of(medium, word).offset();
        let record = Record { kind, offset, old: medium.load(word), new };
        self.records.push(record);
        let words = &self.sealed[LINE_WORDS + index * RECORD_WORDS..][..RECORD_WORDS];
        let address = record.address(self.txid, index);
        let values = [address, record.old, record.new, numbered(self.txid)];
        for (word, value) in words.iter().zip(values) {
            medium.store(word, value);
        }
        let _ = medium.persist(words);
        medium.store(word, new);
    }

    fn write_back(&self) -> Result<Fenced, Corrupt> {
        let fresh = self.fresh.iter().map(|&(offset, _)| offset);
        write_back(self.medium, fresh.chain(self.records.iter().map(|record| record.offset)))
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
            self.write_back()
        } else {
            apply(self.medium, &old_values(self.medium, &self.records))
        };
        let _ = done.expect("logged words lie in the pool");
        let _ = truncate(self.medium, self.sealed, numbered(self.txid));
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
    let records = records.iter().rev();
    let mut old: Vec<_> = records.map(|record| (record.offset, record.old)).collect();
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

/// Returns `address` with the check of its record, whose other words are `others`.
fn checked<const N: usize>(address: u64, others: [u64; N]) -> u64 {
    debug_assert_eq!(address >> CHECK_SHIFT, 0, "a word lies in the first 256 TiB");
    check([address].into_iter().chain(others)) << CHECK_SHIFT | address
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
pub(super) fn read<M: Medium>(
    medium: &M,
    slot: &[PmWord],
    shape: Shape,
) -> Result<Option<Interrupted>, Corrupt> {
    let sealed = shape.sealed(slot);
    let ended = number(medium, &sealed[SEAL])?;
    let (mut txid, mut records) = (0, Vec::new());
    let mut end = None; // The number of records and the kind of the last, if that is there.
    for (index, words) in sealed[LINE_WORDS..].chunks_exact(RECORD_WORDS).enumerate() {
        let seal = number(medium, &words[RECORD_SEAL])?;
        if seal <= ended {
            continue;
        }
        if txid == 0 {
            txid = seal;
        }
        let [address, old, new] = [0, 1, 2].map(|word| medium.load(&words[word]));
        let kind = Kind::of(address).unwrap_or(Kind::Inner);
        let record = Record { kind, offset: address & OFFSET_MASK, old, new };
        let expected = record.address(txid, index);
        if seal != txid || address != expected {
            let at = offset_of(medium, &words[0]).offset();
            return Err(Corrupt { at, what: "check of an undo record", expected, found: address });
        }
        records.push(record);
        if kind != Kind::Inner && end.is_none() {
            end = Some((index + 1, kind));
        }
    }
    if records.is_empty() {
        return Ok(None);
    }
    let pairs = match end {
        Some((length, kind)) if length == records.len() => {
            let has_fresh = kind == Kind::LastWithFresh;
            let fresh = if has_fresh { shape.fresh(slot) } else { &[] };
            let mut pairs = fresh::read(medium, fresh, txid)?;
            pairs.extend(records.iter().map(|record| (record.offset, record.new)));
            pairs
        }
        _ => old_values(medium, &records),
    };
    Ok(Some(Interrupted { pairs, end: numbered(txid) }))
}

#[cfg(test)]
mod tests;
