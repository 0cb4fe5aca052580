//! A tree's own write-ahead log: a redo log that holds the changed words line by line. A
//! transaction commits there before it changes any word in place. Slots are those of
//! [`NodeWal`](super::NodeWal), too.
//!
//! The log is part of the root block. It has [`SLOTS`] slots, one for each transaction in progress.
//! A slot fits the largest transaction and begins at a line boundary:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | state | commit | number of record words, their checksum (32 bits each); 0: none |
//! | 1 | 8 | latch | transient | version; held by the transaction in the slot |
//! | 2.. | - | records | data | one for each line that changes |
//!
//! A record is one header word and the new values of the line's changed words. The header is the
//! line's offset; its bits from 48 on say which of the eight words change.
//!
//! 1. The state is stored only after the records are durable, and cleared before they are
//!    overwritten. So the log does not rely on the order in which the words of a line persist.
//! 2. A thread that changes logged words holds the latches of their nodes until it has cleared the
//!    state. So a replay never overwrites a later change, and no two slots log the same word.
//! 3. A thread may wait for a slot while it holds node latches. A thread that has a slot waits for
//!    no latch. So no deadlock is possible.

use super::{Protocol, Words};
use crate::node::{Changes, Writer};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::pool::HEADER_BYTES;
use bristlecone_pmem::sync::{Exclusive, Latch, OnMedium};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord, Pool};

/// The most transactions in progress at once.
const SLOTS: usize = 8;
const STATE: usize = 0;
const LATCH: usize = 1;
const RECORDS: usize = 2;
/// The bit of a record's header that stands for the first word of the line.
const MASK_SHIFT: u64 = 48;

/// Returns the number of words of a slot. It fits two nodes that change completely, a few words of
/// a third, and one header word for each line.
pub(super) const fn slot_words(node_bytes: usize) -> usize {
    let spare = LINE_WORDS;
    (RECORDS + 2 * (node_bytes / 8 + node_bytes / LINE_BYTES) + spare).next_multiple_of(LINE_WORDS)
}

/// A redo transaction through the tree's own log.
#[derive(Debug)]
pub struct Wal {
    at: PmPtr,
    slot_words: usize,
}

impl Protocol for Wal {
    fn log_bytes(node_bytes: u64) -> u64 {
        (8 * SLOTS * slot_words(node_bytes as usize)) as u64
    }

    /// ```text
    /// replay                   for each slot
    /// ```
    fn open<M: Medium>(pool: &Pool<M>, at: PmPtr, node_bytes: u64) -> Result<Self, Corrupt> {
        let wal = Self { at, slot_words: slot_words(node_bytes as usize) };
        let log = pool.words(at, SLOTS * wal.slot_words)?;
        let mut ends = Vec::new();
        for slot in log.chunks_exact(wal.slot_words) {
            latch(pool, slot).reset();
            ends.push((slot, read(pool, slot, log)?));
        }
        for (slot, lines) in ends {
            replay(pool, slot, lines);
        }
        Ok(wal)
    }

    /// Gathers all of `changes`, then commits as [`Words::end`] does. Stores every word itself.
    fn transact<M: Medium>(
        &self,
        pool: &Pool<M>,
        _log: PmPtr,
        _fresh: &Changes<'_>,
        changes: &Changes<'_>,
        _store_in_place: impl FnOnce(),
    ) {
        let mut transaction = self.begin(pool);
        for &(word, value) in changes {
            transaction.record_change(word, value);
        }
        transaction.commit();
    }

    /// Does nothing: the transaction has already stored the word.
    fn apply<M: Medium>(_: &Pool<M>, _: (&PmWord, u64)) {}
}

impl Wal {
    /// Waits for a free slot and latches it. The search starts at a slot that depends on `line`, so
    /// that threads rarely try the same one.
    fn acquire_slot<'p, M: Medium>(
        &self,
        pool: &'p Pool<M>,
        line: u64,
    ) -> (&'p [PmWord], Exclusive<OnMedium<'p, M>>) {
        let log = pool
            .words(self.at, SLOTS * self.slot_words)
            .expect("the log lies in the pool: open has read it");
        let line = line / LINE_BYTES as u64;
        let first = (line ^ line >> 3 ^ line >> 6) as usize % SLOTS;
        let slots = || log.chunks_exact(self.slot_words).cycle().skip(first).take(SLOTS);
        loop {
            for slot in slots() {
                if let Some(held) = latch(pool, slot).try_lock() {
                    return (slot, held);
                }
            }
            for slot in slots().take(1) {
                if let Some(held) = latch(pool, slot).lock() {
                    return (slot, held);
                }
            }
        }
    }
}

/// Returns the lines that the transaction in a slot changes; none if the slot is empty. `log` are
/// the words that no transaction changes: those of the log.
///
/// # Errors
/// The log is damaged, or a record names a line outside the pool, in its header or in this log.
pub(super) fn read<'p, M: Medium>(
    pool: &'p Pool<M>,
    slot: &[PmWord],
    log: &[PmWord],
) -> Result<Lines<'p>, Corrupt> {
    let load = |index: usize| pool.medium().load(&slot[index]);
    let corrupt = |index: usize, what, expected, found| {
        let at = pool.offset_of(&slot[index]).offset();
        Corrupt { at, what, expected, found }
    };
    let (state, most) = (load(STATE), slot.len() - RECORDS);
    let count = (state & u64::from(u32::MAX)) as usize;
    if count > most {
        return Err(corrupt(STATE, "length of a write-ahead log", most as u64, count as u64));
    }
    let records: Vec<_> = (RECORDS..RECORDS + count).map(load).collect();
    if state != 0 && state != state_of(&records) {
        return Err(corrupt(STATE, "checksum of a write-ahead log", state_of(&records), state));
    }
    let first = pool.offset_of(&log[0]).offset();
    let own = first..first + 8 * log.len() as u64;
    let mut lines = Vec::new();
    let mut left = records.iter();
    while let Some(&record) = left.next() {
        let index = RECORDS + count - left.len() - 1;
        let at = record & ((1 << MASK_SHIFT) - 1);
        let values: Values = (0..LINE_WORDS)
            .filter(|word| record >> MASK_SHIFT >> word & 1 == 1)
            .zip(left.by_ref().copied())
            .collect();
        let is_line = at.is_multiple_of(LINE_BYTES as u64) && at >= HEADER_BYTES;
        if !is_line || own.contains(&at) || values.is_empty() {
            return Err(corrupt(index, "line of a write-ahead log", HEADER_BYTES, record));
        }
        lines.push((pool.words(PmPtr::new(at), LINE_WORDS)?, values));
    }
    Ok(lines)
}

/// Makes the changes of a slot's transaction, if it has one.
///
/// ```text
/// W words                crash: the slot is as it was, the next open does the same
/// F their lines |
/// W state = 0, F |       -> durable
/// ```
pub(super) fn replay<M: Medium>(pool: &Pool<M>, slot: &[PmWord], lines: Lines<'_>) {
    if lines.is_empty() {
        return;
    }
    for (line, values) in lines {
        apply(pool, line, values);
    }
    end(pool, slot);
}

/// Empties the slot of a fresh log. Durable after the next fence.
///
/// ```text
/// W state = 0
/// F its line                budget: 1 line
/// ```
pub(super) fn clear<M: Medium>(pool: &Pool<M>, slot: &[PmWord]) {
    pool.medium().store(&slot[STATE], 0);
    pool.medium().flush(&slot[STATE..=STATE]);
}

/// The changed words of one line: the index of each in the line, and its new value.
type Values = Vec<(usize, u64)>;

/// Lines of the pool, each with its changed words.
pub(super) type Lines<'p> = Vec<(&'p [PmWord], Values)>;

/// A transaction that gathers its changes until it commits.
#[derive(Debug)]
pub struct WalTransaction<'p, M: Medium> {
    wal: &'p Wal,
    pool: &'p Pool<M>,
    /// Offsets of the changed words, each at most once, with the new values.
    changes: Vec<(u64, u64)>,
}

impl<M: Medium> WalTransaction<'_, M> {
    fn record_change(&mut self, word: &PmWord, value: u64) {
        self.changes.push((self.pool.offset_of(word).offset(), value));
    }

    /// Makes all changes in a free slot: see [`commit`].
    fn commit(mut self) {
        let &(first, _) = self.changes.first().expect("a transaction has at least one change");
        let (slot, _slot_guard) = self.wal.acquire_slot(self.pool, first);
        commit(self.pool, slot, &mut self.changes);
    }
}

/// Makes all of `changes` or, after a crash, none. They are offsets of words, each at most once,
/// with the new values.
///
/// ```text
/// W records; F their lines |   covers new nodes and placed entries, too
/// C state; F |                 crash before C: nothing has changed
/// W words, F their lines |     crash from here on: the log is replayed
/// W state = 0, F |             -> done
///                              budget: lines of the records, those of the words, 2; 4 fences
/// ```
pub(super) fn commit<M: Medium>(pool: &Pool<M>, slot: &[PmWord], changes: &mut [(u64, u64)]) {
    let medium = pool.medium();
    changes.sort_unstable_by_key(|&(at, _)| at);
    debug_assert!(
        changes.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "a word changes twice in one transaction"
    );
    let records = records(changes);
    let words = &slot[..RECORDS + records.len()];
    for (word, &value) in words[RECORDS..].iter().zip(&records) {
        medium.store(word, value);
    }
    medium.flush(words);
    let logged = if M::INJECTS_DEFECTS && medium.injects(Defect::StateWithRecords) {
        Fenced::after_fence() // Wrong: the state may become durable before the records.
    } else {
        medium.fence()
    };
    medium.commit(&slot[STATE], state_of(&records), logged);
    let _ = medium.persist(&slot[STATE..=STATE]);
    for group in changes.chunk_by(|a, b| line_of(a.0) == line_of(b.0)) {
        let line = pool.words(PmPtr::new(line_of(group[0].0)), LINE_WORDS);
        let values = group.iter().map(|&(at, value)| (index_of(at), value));
        apply(pool, line.expect("every changed word lies in the pool"), values);
    }
    end(pool, slot);
}

impl<M: Medium> Writer for WalTransaction<'_, M> {
    /// Logs the word if its value changes.
    fn write_visible(&mut self, word: &PmWord, value: u64) {
        if self.pool.medium().load(word) != value {
            self.record_change(word, value);
        }
    }

    /// Stores and flushes the word. It needs no log: no reader sees it, and the fence before the
    /// commit makes it durable.
    fn write_hidden(&mut self, word: &PmWord, value: u64) {
        self.pool.medium().store(word, value);
        self.pool.medium().flush(core::slice::from_ref(word));
    }
}

/// Each insert and each remove is one transaction of its own; its persist order is that of the
/// protocol's `transact`.
impl Words for Wal {
    type Change<'p, M: Medium> = WalTransaction<'p, M>;

    fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> WalTransaction<'p, M> {
        WalTransaction { wal: self, pool, changes: Vec::new() }
    }

    fn end<M: Medium>(mut change: WalTransaction<'_, M>, (word, value): (&PmWord, u64)) {
        change.write_visible(word, value);
        change.commit();
    }
}

fn latch<'p, M: Medium>(pool: &'p Pool<M>, slot: &'p [PmWord]) -> Latch<OnMedium<'p, M>> {
    OnMedium::latch(pool.medium(), &slot[LATCH], pool.nonce())
}

/// Stores the changed words of a line and flushes it.
fn apply<M: Medium>(
    pool: &Pool<M>,
    line: &[PmWord],
    values: impl IntoIterator<Item = (usize, u64)>,
) {
    for (word, value) in values {
        pool.medium().store(&line[word], value);
    }
    pool.medium().flush(line);
}

/// Ends the transaction in a slot. The caller has flushed all words that it changes.
fn end<M: Medium>(pool: &Pool<M>, slot: &[PmWord]) {
    let applied = if M::INJECTS_DEFECTS && pool.medium().injects(Defect::StateEndsEarly) {
        Fenced::after_fence() // Wrong: the end of the log may become durable before the words.
    } else {
        pool.medium().fence()
    };
    pool.medium().commit(&slot[STATE], 0, applied);
    let _ = pool.medium().persist(&slot[STATE..=STATE]);
}

/// Returns the offset of the line that contains the word at `at`.
const fn line_of(at: u64) -> u64 {
    at & !(LINE_BYTES as u64 - 1)
}

/// Returns the index of the word at `at` in its line.
const fn index_of(at: u64) -> usize {
    (at % LINE_BYTES as u64 / 8) as usize
}

/// Returns the records of `changes`, which are sorted by offset.
fn records(changes: &[(u64, u64)]) -> Vec<u64> {
    let mut records = Vec::with_capacity(2 * changes.len());
    for line in changes.chunk_by(|a, b| line_of(a.0) == line_of(b.0)) {
        let mask = |&(at, _): &(u64, u64)| 1 << (MASK_SHIFT + index_of(at) as u64);
        records.push(line.iter().map(mask).fold(line_of(line[0].0), |record, bit| record | bit));
        records.extend(line.iter().map(|&(_, value)| value));
    }
    records
}

fn state_of(records: &[u64]) -> u64 {
    let bytes: Vec<u8> = records.iter().flat_map(|word| word.to_le_bytes()).collect();
    (u64::from(bristlecone_pmem::checksum(&bytes)) << 32) | records.len() as u64
}
