//! The log of the leaves: one record in a line for each thread that changes a leaf.
//!
//! A line of the log block:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | leaf | data | the leaf that changes |
//! | 8 | 8 | key or node | data | insert: key word; split: the new leaf; unlink: the unlinked one |
//! | 16 | 8 | value | data | insert: value word |
//! | 24 | 8 | bitmap | data | insert, remove: the new bitmap word |
//! | 32 | 8 | seq | data | the sequence number that the leaf gets |
//! | 40 | 8 | spare | data | zero |
//! | 48 | 8 | check | data | CRC-32C of the words before it and of the seal |
//! | 56 | 8 | seal | commit | magic number, index of the entry, operation; 0: no record |
//!
//! 1. The seal is cleared before another word of the line changes, and stored last. Lines persist
//!    in order, so a seal in an image vouches for the line; a wrong checksum is damage.
//! 2. No store ends a record. A record whose leaf has a higher sequence number is over.
//! 3. A thread leases a line for one operation and returns it after the last fence. A thread that
//!    waits for a line holds latches of leaves alone, and one that has a line waits for latches of
//!    inner nodes alone. So no deadlock is possible.
//! 4. The greatest sequence number of each line is kept in DRAM too. A fresh leaf begins above all
//!    of them, so no record about an earlier leaf in its block counts. The line in persistent
//!    memory would not do: a crash may bring back the record that a thread is replacing.

use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{
    Corrupt, Defect, Fenced, Medium, PmPtr, PmWord, Pool, checksum, checksum_append,
};
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of lines: so many threads change leaves at once.
pub(super) const LINES: usize = u32::BITS as usize;
pub(super) const LOG_BYTES: u64 = (LINES * LINE_BYTES) as u64;
const LOG_WORDS: usize = LINES * LINE_WORDS;

const SEQ: usize = 4;
const CHECK: usize = 6;
const SEAL: usize = 7;
const MAGIC: u64 = 0x3070_106E << 32;

/// The operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// An insert of a pair at an index.
    Insert { index: usize, key: u64, value: u64, bitmap: u64 },
    /// A removal of the entry at an index.
    Remove { index: usize, bitmap: u64 },
    /// A split, with the new leaf.
    Split { right: PmPtr },
    /// An unlink of the next leaf.
    Unlink { right: PmPtr },
}

/// A record: an operation on a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRecord {
    pub(super) op: Op,
    pub(super) leaf: PmPtr,
    pub(super) seq: u64,
}

impl LogRecord {
    fn encode(self) -> [u64; LINE_WORDS] {
        let (kind, index, words) = match self.op {
            Op::Insert { index, key, value, bitmap } => (1, index, [key, value, bitmap]),
            Op::Remove { index, bitmap } => (2, index, [0, 0, bitmap]),
            Op::Split { right } => (3, 0, [right.offset(), 0, 0]),
            Op::Unlink { right } => (4, 0, [right.offset(), 0, 0]),
        };
        let [a, b, bitmap] = words;
        let seal = MAGIC | (index as u64) << 8 | kind;
        let mut line = [self.leaf.offset(), a, b, bitmap, self.seq, 0, 0, seal];
        line[CHECK] = check_sum(&line);
        line
    }

    /// Returns the record in `line`, or `None` if the line has no seal.
    fn decode(line: [u64; LINE_WORDS], at: u64) -> Result<Option<Self>, Corrupt> {
        let [leaf, a, value, bitmap, seq, _, found, seal] = line;
        if seal == 0 {
            return Ok(None);
        }
        let expected = check_sum(&line);
        if expected != found {
            return Err(Corrupt { at, what: "checksum of a log record", expected, found });
        }
        let index = (seal >> 8 & 0xff) as usize;
        let op = match seal ^ MAGIC ^ (index as u64) << 8 {
            1 => Op::Insert { index, key: a, value, bitmap },
            2 => Op::Remove { index, bitmap },
            3 => Op::Split { right: PmPtr::new(a) },
            4 => Op::Unlink { right: PmPtr::new(a) },
            _ => {
                let what = "seal of a log record";
                return Err(Corrupt { at, what, expected: MAGIC, found: seal });
            }
        };
        Ok(Some(Self { op, leaf: PmPtr::new(leaf), seq }))
    }
}

fn check_sum(line: &[u64; LINE_WORDS]) -> u64 {
    let words = line[..CHECK].iter().chain([&line[SEAL]]);
    u64::from(words.fold(checksum(&[]), |sum, word| checksum_append(sum, &word.to_le_bytes())))
}

/// The greatest sequence number that a line has held, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Newest(AtomicU64);

/// The log of an index: its block, and the volatile state of the lines.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) at: PmPtr,
    /// The leased lines as bits in the low half, the number of leases in the high half.
    leased: AtomicU64,
    newest: [Newest; LINES],
}

impl Log {
    /// Returns the log in the block at `at`, whose lines may hold records.
    ///
    /// # Errors
    /// The block is not in the pool.
    pub(super) fn open<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        let words = pool.block(at, LOG_WORDS)?;
        let newest = core::array::from_fn(|line| {
            Newest(AtomicU64::new(pool.medium().load(&words[line * LINE_WORDS + SEQ])))
        });
        Ok(Self { at, leased: AtomicU64::new(0), newest })
    }

    fn words<'p, M: Medium>(&self, pool: &'p Pool<M>) -> Result<&'p [PmWord], Corrupt> {
        pool.block(self.at, LOG_WORDS)
    }

    /// Returns all records.
    ///
    /// # Errors
    /// A line is damaged.
    pub(super) fn records<M: Medium>(&self, pool: &Pool<M>) -> Result<Vec<LogRecord>, Corrupt> {
        let mut records = Vec::new();
        for (index, words) in self.words(pool)?.chunks_exact(LINE_WORDS).enumerate() {
            let line = core::array::from_fn(|at| pool.medium().load(&words[at]));
            let at = self.at.offset() + (index * LINE_BYTES) as u64;
            records.extend(LogRecord::decode(line, at)?);
        }
        Ok(records)
    }

    /// Ends all records, one after the other. Recovery does so last: an undone split's record would
    /// match a later sequence number.
    ///
    /// # Persist order
    /// ```text
    /// for each record
    ///   W seal = 0, F |      crash: the next recovery finds the other records done, or undoes them
    ///                        again        -> durable
    /// ```
    pub(super) fn clear<M: Medium>(&self, pool: &Pool<M>) -> Result<(), Corrupt> {
        for line in self.words(pool)?.chunks_exact(LINE_WORDS) {
            if pool.medium().load(&line[SEAL]) != 0 {
                pool.medium().store(&line[SEAL], 0);
                let _ = pool.medium().persist(line);
            }
        }
        Ok(())
    }

    /// Returns a sequence number above that of every record.
    pub(super) fn above_all(&self) -> u64 {
        let newest = self.newest.iter().map(|newest| newest.0.load(Ordering::Relaxed)).max();
        newest.unwrap_or(0).wrapping_add(1)
    }

    /// Leases a line, the lines in turn, and waits until one is free.
    pub(super) fn lease<'t, M: Medium>(
        &'t self,
        pool: &'t Pool<M>,
    ) -> Result<LogLine<'t, M>, Corrupt> {
        let words = self.words(pool)?;
        loop {
            let seen = self.leased.load(Ordering::Relaxed);
            let (lines, turn) = (seen as u32, (seen >> LINES) as u32);
            let after = turn % LINES as u32;
            let index = ((!lines).rotate_right(after).trailing_zeros() + after) as usize % LINES;
            let taken = u64::from(lines | 1 << index) | u64::from(turn.wrapping_add(1)) << LINES;
            if lines == u32::MAX {
                if !M::spin_hint() {
                    std::thread::yield_now();
                }
            } else if self
                .leased
                .compare_exchange_weak(seen, taken, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                let words = &words[index * LINE_WORDS..(index + 1) * LINE_WORDS];
                return Ok(LogLine { log: self, medium: pool.medium(), index, words });
            }
        }
    }
}

/// A leased line of the log.
#[derive(Debug)]
pub(super) struct LogLine<'t, M> {
    log: &'t Log,
    medium: &'t M,
    index: usize,
    words: &'t [PmWord],
}

impl<M: Medium> LogLine<'_, M> {
    /// Writes a record over the one of an earlier operation. Durable on return.
    ///
    /// # Persist order
    /// ```text
    /// W seal = 0, then the record    crash: no record
    /// C seal                         8 B
    /// F line |                       -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn write(&self, record: LogRecord) -> Fenced {
        // Only this thread has the line, and a later one acquires what is stored here.
        let newest = &self.log.newest[self.index].0;
        newest.store(newest.load(Ordering::Relaxed).max(record.seq), Ordering::Relaxed);
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::SlotsApart) {
            return Fenced::nothing();
        }
        let line = record.encode();
        self.medium.store(&self.words[SEAL], 0);
        for (word, value) in self.words.iter().zip(line) {
            self.medium.store(word, value);
        }
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::RecordUnfenced) {
            return Fenced::nothing();
        }
        self.medium.persist(self.words)
    }
}

impl<M> Drop for LogLine<'_, M> {
    fn drop(&mut self) {
        self.log.leased.fetch_and(!(1 << self.index), Ordering::Release);
    }
}
