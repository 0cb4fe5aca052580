//! A log of one record in a line for each thread that changes a node, for the designs that end a
//! record with a sequence number of the node.
//!
//! A line of the log block:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 32 | fields | data | as the design defines; the first names the node that changes |
//! | 32 | 8 | seq | data | the sequence number that the node gets |
//! | 40 | 8 | spare | data | zero |
//! | 48 | 8 | check | data | CRC-32C of the words before it and of the seal |
//! | 56 | 8 | seal | commit | magic number, index of the entry, operation; 0: no record |
//!
//! 1. The seal is cleared before another word of the line changes, and stored last. Lines persist
//!    in order, so a seal in an image vouches for the line; a wrong checksum is damage.
//! 2. No store ends a record. A record whose node has a higher sequence number is over.
//! 3. A thread leases a line for one operation and returns it after the last fence.
//! 4. The greatest sequence number of each line is kept in DRAM too. A fresh node begins above all
//!    of them, so no record about an earlier node in its block counts. The line in persistent
//!    memory would not do: a crash may bring back the record that a thread is replacing.

use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmPtr, PmWord, Pool, checksum, checksum_append};
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of lines: so many threads change nodes at once.
const LINES: usize = u32::BITS as usize;
/// The size of the log block in bytes.
pub(crate) const LOG_BYTES: u64 = (LINES * LINE_BYTES) as u64;
const LOG_WORDS: usize = LINES * LINE_WORDS;

const SEQ: usize = 4;
const CHECK: usize = 6;
const SEAL: usize = 7;
/// The upper half of the seal, which says that the line has a record.
const MAGIC: u64 = 0x3070_106E << 32;

/// A record as it lies in its line: an operation of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineRecord {
    /// The fields of the operation; the first is the offset of the node.
    pub(crate) fields: [u64; SEQ],
    /// The sequence number that the node gets.
    pub(crate) seq: u64,
    /// The index of an entry, at most 255.
    pub(crate) index: usize,
    /// The number of the operation, from 1 on.
    pub(crate) operation: u8,
}

impl LineRecord {
    fn encode(self) -> [u64; LINE_WORDS] {
        let [node, a, b, c] = self.fields;
        let seal = MAGIC | (self.index as u64) << 8 | u64::from(self.operation);
        let mut line = [node, a, b, c, self.seq, 0, 0, seal];
        line[CHECK] = check_sum(&line);
        line
    }

    /// Returns the record in `line`, or `None` if the line has no seal.
    fn decode(line: [u64; LINE_WORDS], at: u64) -> Result<Option<Self>, Corrupt> {
        let [node, a, b, c, seq, _, found, seal] = line;
        if seal == 0 {
            return Ok(None);
        }
        let expected = check_sum(&line);
        if expected != found {
            return Err(Corrupt { at, what: "checksum of a log record", expected, found });
        }
        if (seal ^ MAGIC) >> 16 != 0 {
            return Err(damaged_seal(at, seal));
        }
        let (index, operation) = ((seal >> 8 & 0xff) as usize, seal as u8);
        Ok(Some(Self { fields: [node, a, b, c], seq, index, operation }))
    }
}

fn damaged_seal(at: u64, found: u64) -> Corrupt {
    Corrupt { at, what: "seal of a log record", expected: MAGIC, found }
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
pub(crate) struct LineLog {
    pub(crate) at: PmPtr,
    /// The leased lines as bits in the low half, the number of leases in the high half.
    leased: AtomicU64,
    newest: [Newest; LINES],
}

impl LineLog {
    /// Fills the fresh block at `at` with an empty log. Durable after the next fence.
    pub(crate) fn create<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<(), Corrupt> {
        pool.medium().fill(pool.words(at, LOG_WORDS)?, &[0; LOG_BYTES as usize]);
        Ok(())
    }

    /// Returns the log in the block at `at`, whose lines may hold records.
    ///
    /// # Errors
    /// The block is not in the pool.
    pub(crate) fn open<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        let words = pool.block(at, LOG_WORDS)?;
        let newest = core::array::from_fn(|line| {
            Newest(AtomicU64::new(pool.medium().load(&words[line * LINE_WORDS + SEQ])))
        });
        Ok(Self { at, leased: AtomicU64::new(0), newest })
    }

    fn words<'p, M: Medium>(&self, pool: &'p Pool<M>) -> Result<&'p [PmWord], Corrupt> {
        pool.block(self.at, LOG_WORDS)
    }

    /// Returns all records, each as `decode` makes it.
    ///
    /// # Errors
    /// A line is damaged, or `decode` returns `None`: the design has no such operation.
    pub(crate) fn records<M: Medium, R>(
        &self,
        pool: &Pool<M>,
        decode: impl Fn(&LineRecord) -> Option<R>,
    ) -> Result<Vec<R>, Corrupt> {
        let mut records = Vec::new();
        for (index, words) in self.words(pool)?.chunks_exact(LINE_WORDS).enumerate() {
            let line: [u64; LINE_WORDS] = core::array::from_fn(|at| pool.medium().load(&words[at]));
            let at = self.at.offset() + (index * LINE_BYTES) as u64;
            if let Some(record) = LineRecord::decode(line, at)? {
                records.push(decode(&record).ok_or_else(|| damaged_seal(at, line[SEAL]))?);
            }
        }
        Ok(records)
    }

    /// Ends all records, one after the other.
    ///
    /// # Persist order
    /// ```text
    /// for each record
    ///   W seal = 0, F |      crash: the next recovery finds the other records done, or undoes them
    ///                        again        -> durable
    /// ```
    pub(crate) fn clear<M: Medium>(&self, pool: &Pool<M>) -> Result<(), Corrupt> {
        for line in self.words(pool)?.chunks_exact(LINE_WORDS) {
            if pool.medium().load(&line[SEAL]) != 0 {
                pool.medium().store(&line[SEAL], 0);
                let _ = pool.medium().persist(line);
            }
        }
        Ok(())
    }

    /// Returns a sequence number above that of every record.
    pub(crate) fn above_all(&self) -> u64 {
        let newest = self.newest.iter().map(|newest| newest.0.load(Ordering::Relaxed)).max();
        newest.unwrap_or(0).wrapping_add(1)
    }

    /// Leases a line, the lines in turn, and waits until one is free.
    pub(crate) fn lease<'t, M: Medium>(
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
pub(crate) struct LogLine<'t, M> {
    log: &'t LineLog,
    pub(crate) medium: &'t M,
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
    pub(crate) fn write(&self, record: LineRecord) -> Fenced {
        self.store(record);
        self.medium.persist(self.words)
    }

    /// Stores a record without a flush, which is what [`write`](Self::write) does first.
    pub(crate) fn store(&self, record: LineRecord) {
        // Only this thread has the line, and a later one acquires what is stored here.
        let newest = &self.log.newest[self.index].0;
        newest.store(newest.load(Ordering::Relaxed).max(record.seq), Ordering::Relaxed);
        self.medium.store(&self.words[SEAL], 0);
        for (word, value) in self.words.iter().zip(record.encode()) {
            self.medium.store(word, value);
        }
    }
}

impl<M> Drop for LogLine<'_, M> {
    fn drop(&mut self) {
        self.log.leased.fetch_and(!(1 << self.index), Ordering::Release);
    }
}
