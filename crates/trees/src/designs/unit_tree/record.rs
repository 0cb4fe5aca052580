//! A chunk of a log: one header line, then lines of three records.
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | magic | data | magic number |
//! | 1 | next | commit | [link](crate::leaf::link) to the chunk that was added before it |
//! | 2 | base | data | what the offsets of versions in this chunk are added to |
//! | 3 | lines | data | lines of the chunk |
//! | 4..8 | | | zero |
//!
//! A line of records:
//!
//! | word | bits | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0, 2, 4 | 0..64 | key | data | of record 0, 1, 2 |
//! | 1, 3, 5 | 0..64 | value | data | of a remove: the last one |
//! | 6 | 0..32, 32..64 | version | data | of record 0, 1: an offset from the base |
//! | 7 | 0..32 | version | commit | of record 2 |
//! | 7 | 32..34 | count | commit | the records that are valid |
//! | 7 | 34..37 | removed | commit | the records that are removes, as bits |
//! | 7 | 37..64 | check | commit | checksum of the valid records and of the offset of the line |
//!
//! 1. A line that is used again is first made empty, by its last word. Each record is stored before
//!    the last word that counts it. A line persists in order, so its check always fits.
//! 2. Records go to three lines in turn, so that no line is flushed twice within two writes.
//! 3. A chunk is used again when no row refers to a record in it. Its records then count no more,
//!    as the stamps of their units are no lower. So their order, and that of the chunks, says
//!    nothing.
//! 4. A base stays until the offsets of versions from it are too great. Then all lines are made
//!    empty first.

use crate::key::Entry;
use crate::leaf::link;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, checksum};

/// The records of a line.
const LINE_RECORDS: usize = 3;
/// The lines that records go to in turn.
const STRIPE: usize = 3;
const STRIPE_RECORDS: usize = STRIPE * LINE_RECORDS;
/// The bits of a record's number in a position; the rest is the number of its chunk.
pub(super) const NUMBER_BITS: u32 = 12;
/// The greatest number of a chunk.
pub(super) const CHUNK_MAX: usize = (1 << (u32::BITS - NUMBER_BITS)) - 1;

/// `UnitLog1` in ASCII.
const MAGIC: u64 = 0x556E_6974_4C6F_6731;
/// The numbers of lines that a chunk can have.
const SIZES: [usize; 3] = [4, 64, LINES_MAX];
const LINES_MAX: usize = 1 << 10;
const _: () = assert!(records_of(LINES_MAX) < 1 << NUMBER_BITS);

const HEAD: usize = 0;
const NEXT: usize = 1;
const BASE: usize = 2;
const LINES: usize = 3;

const VERSIONS: usize = 6;
const LAST: usize = 7;
const VERSION_BITS: u32 = u32::BITS;
const COUNT_SHIFT: u32 = 32;
const COUNT: u64 = 3 << COUNT_SHIFT;
const REMOVED_SHIFT: u32 = 34;
const CHECK_SHIFT: u32 = 37;

/// Returns the lines of a chunk in a pool of `pool_bytes` bytes: 64 KiB in one of 64 MiB, 4 KiB in
/// one of a MiB, else 256 B.
pub(super) const fn lines(pool_bytes: u64) -> usize {
    let [small, middle, large] = SIZES;
    match pool_bytes {
        0..0x10_0000 => small,
        0x10_0000..0x400_0000 => middle,
        _ => large,
    }
}

/// Returns the bytes of a chunk of `lines` lines.
pub(super) const fn bytes_of(lines: usize) -> u64 {
    (lines * LINE_BYTES) as u64
}

/// Returns the number of records of a chunk of `lines` lines, which are one more than a multiple of
/// the lines that records go to in turn.
pub(super) const fn records_of(lines: usize) -> usize {
    (lines - 1) * LINE_RECORDS
}

/// The position of a record: its chunk, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) chunk: usize,
    pub(super) number: usize,
}

impl Position {
    pub(super) const fn of_word(word: u32) -> Self {
        let number = word & ((1 << NUMBER_BITS) - 1);
        Self { chunk: (word >> NUMBER_BITS) as usize, number: number as usize }
    }

    pub(super) const fn word(self) -> u32 {
        (self.chunk << NUMBER_BITS | self.number) as u32
    }
}

/// Returns the line and the place there of the record with this number.
#[inline(always)]
const fn place_of(number: usize) -> (usize, usize) {
    let (stripe, within) = (number / STRIPE_RECORDS, number % STRIPE_RECORDS);
    (1 + stripe * STRIPE + within % STRIPE, within / STRIPE)
}

/// Returns the number of the record in this place of a line.
#[inline(always)]
const fn number_of(line: usize, place: usize) -> usize {
    let (stripe, within) = ((line - 1) / STRIPE, (line - 1) % STRIPE);
    stripe * STRIPE_RECORDS + place * STRIPE + within
}

/// A chunk of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordChunk<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
}

/// A record: a change, and the version of the leaf that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionedChange {
    pub(super) change: EntryChange,
    pub(super) version: u64,
}

impl<'a> RecordChunk<'a> {
    /// Makes a newly reserved block an empty chunk, before the chunk at `next`. Durable after the
    /// next fence.
    pub(super) fn begin<M: Medium>(
        pool: &'a Pool<M>,
        (at, lines): (PmPtr, usize),
        next: PmPtr,
        base: u64,
    ) -> Result<Self, Corrupt> {
        let chunk = Self::at(pool, at, lines)?;
        let head = [MAGIC, link::encode(next.offset()), base, lines as u64];
        let mut image = head.map(u64::to_le_bytes).concat();
        image.resize(lines * LINE_BYTES, 0);
        pool.medium().fill(chunk.words, &image);
        Ok(chunk)
    }

    /// Returns the chunk of `lines` lines at `at`, which this open has met.
    #[inline(always)]
    pub(super) fn at<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        lines: usize,
    ) -> Result<Self, Corrupt> {
        Ok(Self { at, words: pool.words(at, lines * LINE_WORDS)? })
    }

    /// Returns the lines of the chunk at `at`, a pointer read from the pool.
    ///
    /// # Errors
    /// No chunk has so many lines.
    pub(super) fn lines<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<usize, Corrupt> {
        let found = pool.medium().load(&pool.words(at, LINE_WORDS)?[LINES]);
        let lines = SIZES.into_iter().find(|&lines| lines as u64 == found);
        let (at, what, expected) = (at.offset(), "lines of a chunk of the log", LINES_MAX as u64);
        lines.ok_or(Corrupt { at, what, expected, found })
    }

    /// Checks the header of the chunk at `at`, a pointer read from the pool, and returns the next
    /// one.
    ///
    /// # Errors
    /// There is no chunk of `lines` lines there.
    pub(super) fn open<M: Medium>(
        pool: &Pool<M>,
        at: PmPtr,
        lines: usize,
    ) -> Result<PmPtr, Corrupt> {
        let chunk = RecordChunk::at(pool, at, lines)?;
        let load = |word: usize| pool.medium().load(&chunk.words[word]);
        for (word, expected) in [(HEAD, MAGIC), (LINES, lines as u64)] {
            let found = load(word);
            if found != expected {
                let what = "head of a chunk of the log";
                return Err(Corrupt { at: at.offset(), what, expected, found });
            }
        }
        super::unit::check_stamp(at, load(BASE))?;
        link::checked(at.offset(), load(NEXT))
    }

    /// Returns what the offsets of versions are added to.
    #[inline(always)]
    pub(super) fn base<M: Medium>(self, medium: &M) -> u64 {
        medium.load(&self.words[BASE])
    }

    /// Sets the next chunk of the list. Durable on return.
    pub(super) fn set_next<M: Medium>(self, medium: &M, next: PmPtr) {
        medium.store(&self.words[NEXT], link::encode(next.offset()));
        let _ = medium.persist(&self.words[NEXT..=NEXT]);
    }

    #[inline(always)]
    fn line(self, line: usize) -> &'a [PmWord] {
        &self.words[line * LINE_WORDS..(line + 1) * LINE_WORDS]
    }

    /// Makes the chunk empty and sets its base. Durable on return.
    ///
    /// ```text
    /// W all records = 0, F |        they count no more
    /// W base, F its line |
    /// ```
    #[cold]
    pub(super) fn renew<M: Medium>(self, medium: &M, base: u64) {
        let records = &self.words[LINE_WORDS..];
        medium.fill(records, &vec![0; 8 * records.len()]);
        let _ = medium.fence();
        medium.store(&self.words[BASE], base);
        let _ = medium.persist(&self.words[BASE..=BASE]);
    }

    /// Writes the record with this number, whose version is at most 2^32 - 1 above the base.
    /// Durable after the next fence.
    ///
    /// ```text
    /// W last word = 0            in a line that is used again: its records count no more
    /// W key, value, version
    /// C last word     8 B        crash before C: no record
    /// F line
    /// ```
    pub(super) fn write<M: Medium>(self, medium: &M, number: usize, record: &VersionedChange) {
        let (line, place) = place_of(number);
        let words = self.line(line);
        let offset = record.version - self.base(medium);
        let mut last = medium.load(&words[LAST]);
        if place == 0 {
            if last != 0 {
                medium.store(&words[LAST], 0);
            }
            last = 0;
        }
        medium.store(&words[2 * place], record.change.entry.key);
        medium.store(&words[2 * place + 1], record.change.entry.value);
        match place {
            0 => medium.store(&words[VERSIONS], offset),
            1 => {
                let first = medium.load(&words[VERSIONS]) & u64::from(u32::MAX);
                medium.store(&words[VERSIONS], first | offset << VERSION_BITS);
            }
            _ => last |= offset,
        }
        let removed = u64::from(record.change.is_removed) << (REMOVED_SHIFT as usize + place);
        let last =
            last & !COUNT & ((1 << CHECK_SHIFT) - 1) | (place as u64 + 1) << COUNT_SHIFT | removed;
        let check = check_of(medium, self.offset_of(line), words, last);
        medium.store(&words[LAST], last | check << CHECK_SHIFT);
        medium.flush(words);
    }

    fn offset_of(self, line: usize) -> u64 {
        self.at.offset() + (line * LINE_BYTES) as u64
    }

    /// Returns the change of the record with this number. A writer may run at the same time; the
    /// caller validates.
    #[inline(always)]
    pub(super) fn change<M: Medium>(self, medium: &M, number: usize) -> EntryChange {
        self.change_at(medium, place_of(number))
    }

    #[inline(always)]
    fn change_at<M: Medium>(self, medium: &M, (line, place): (usize, usize)) -> EntryChange {
        let words = self.line(line);
        let is_removed = medium.load(&words[LAST]) >> (REMOVED_SHIFT as usize + place) & 1 == 1;
        let (key, value) = (medium.load(&words[2 * place]), medium.load(&words[2 * place + 1]));
        EntryChange { entry: Entry::plain(key, value), is_removed }
    }

    /// Returns the record with this number; `None` if there is none.
    pub(super) fn record<M: Medium>(self, medium: &M, number: usize) -> Option<VersionedChange> {
        self.record_at(medium, place_of(number))
    }

    #[inline(always)]
    fn record_at<M: Medium>(
        self,
        medium: &M,
        (line, place): (usize, usize),
    ) -> Option<VersionedChange> {
        let words = self.line(line);
        let last = medium.load(&words[LAST]);
        if (last & COUNT) >> COUNT_SHIFT <= place as u64 {
            return None;
        }
        let offset = match place {
            0 => medium.load(&words[VERSIONS]),
            1 => medium.load(&words[VERSIONS]) >> VERSION_BITS,
            _ => last,
        } & u64::from(u32::MAX);
        let change = self.change_at(medium, (line, place));
        Some(VersionedChange { change, version: self.base(medium) + offset })
    }

    /// Calls `visit` with each record and its number.
    ///
    /// # Errors
    /// The check of a line does not fit; or an error of `visit`.
    pub(super) fn for_each<M: Medium>(
        self,
        medium: &M,
        mut visit: impl FnMut(usize, VersionedChange) -> Result<(), Corrupt>,
    ) -> Result<(), Corrupt> {
        for line in 1..self.words.len() / LINE_WORDS {
            self.verify(medium, line)?;
            for place in 0..LINE_RECORDS {
                let Some(record) = self.record_at(medium, (line, place)) else { break };
                visit(number_of(line, place), record)?;
            }
        }
        Ok(())
    }

    /// Checks a line of records.
    ///
    /// # Errors
    /// Its check does not fit.
    #[inline(always)]
    fn verify<M: Medium>(self, medium: &M, line: usize) -> Result<(), Corrupt> {
        let words = self.line(line);
        let last = medium.load(&words[LAST]);
        if last == 0 {
            return Ok(());
        }
        let (at, found) = (self.offset_of(line), last >> CHECK_SHIFT);
        let expected = check_of(medium, at, words, last & ((1 << CHECK_SHIFT) - 1));
        if last & COUNT == 0 || expected != found {
            let what = "check of a line of log records";
            return Err(Corrupt { at, what, expected, found });
        }
        Ok(())
    }
}

/// Returns the check of a line at `at` with these words, and `last` for its last one.
#[inline(always)]
fn check_of<M: Medium>(medium: &M, at: u64, words: &[PmWord], last: u64) -> u64 {
    let count = (((last & COUNT) >> COUNT_SHIFT) as usize).min(LINE_RECORDS);
    let versions = medium.load(&words[VERSIONS]);
    let versions = if count < 2 { versions & u64::from(u32::MAX) } else { versions };
    let mut bytes = [[0; 8]; LINE_WORDS + 1];
    (bytes[0], bytes[1], bytes[2]) = (at.to_le_bytes(), last.to_le_bytes(), versions.to_le_bytes());
    for (bytes, word) in bytes[3..].iter_mut().zip(&words[..2 * count]) {
        *bytes = medium.load(word).to_le_bytes();
    }
    u64::from(checksum(bytes[..3 + 2 * count].as_flattened())) >> (CHECK_SHIFT - u32::BITS)
}
