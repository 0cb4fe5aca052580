//! A segment of a log's circular buffer: one header line, then lines of records.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | head | data | magic number and lines of the segment |
//! | 1 | 8 | next | commit | the next segment of the same log, or 0 |
//! | 2 | 48 | | | zero |
//! | 8 | | records | | see `record` |
//!
//! 1. A new block is filled with zeros, durably before any pointer names it. So no line of it
//!    counts.
//! 2. Each time that the tail of the log enters a segment, it begins a *lap*, one more than the one
//!    before it. The position of a line is the lap times the lines of a segment, plus its place. So
//!    the seals give the order of the segments; the order of the links means nothing.
//! 3. A record lies in one segment.

use super::record::{self, LineSeal, RecordHeader};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The lines of a segment in all but small pools, unless records are long: 2 KiB.
const LINES_USUAL: usize = 32;
/// A segment is at most 1/512 of the pool in which the index is created.
const POOL_SHARE_SHIFT: u32 = 9;
/// `LScirc` in ASCII and two zero bytes, to be combined with the number of lines.
const MAGIC: u64 = 0x4C53_6369_7263_0000;
const LINES_MAX: usize = 0xff;

const HEAD: usize = 0;
const NEXT: usize = 1;

/// Returns the lines of a segment in a pool of `pool_bytes` bytes, for records of up to
/// `max_record_lines` lines.
pub(super) fn lines(pool_bytes: u64, max_record_lines: usize) -> usize {
    let least = (2 * max_record_lines).next_power_of_two();
    let share = (pool_bytes >> POOL_SHARE_SHIFT) / LINE_BYTES as u64;
    let share = share.clamp(least as u64, LINES_USUAL.max(least) as u64) as usize;
    1 << share.ilog2()
}

/// Returns `true` if `lines` is a possible size of a segment for records of up to
/// `max_record_lines` lines.
pub(super) fn is_size(lines: u64, max_record_lines: usize) -> bool {
    lines >= 2 * max_record_lines as u64 && lines <= LINES_MAX as u64
}

/// Returns the bytes of a segment of `lines` lines.
pub(super) const fn bytes(lines: usize) -> u64 {
    (lines * LINE_BYTES) as u64
}

/// A segment of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
}

/// A record that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRecord<'a> {
    pub(super) at: PmPtr,
    pub(super) words: &'a [PmWord],
    pub(super) head: RecordHeader,
}

impl<'a> Segment<'a> {
    /// Turns a newly reserved block into an empty segment that links to `next`. Durable after the
    /// next fence.
    pub(super) fn make<M: Medium>(
        pool: &Pool<M>,
        at: PmPtr,
        lines: usize,
        next: PmPtr,
    ) -> Result<(), Corrupt> {
        let words = pool.words(at, lines * LINE_WORDS)?;
        let head = [MAGIC | lines as u64, next.offset()].map(u64::to_le_bytes).concat();
        let mut image = vec![0; bytes(lines) as usize];
        image[..head.len()].copy_from_slice(&head);
        pool.medium().fill(words, &image);
        Ok(())
    }

    /// Opens the segment of `lines` lines at `at`, a pointer read from the pool.
    pub(super) fn open<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        lines: usize,
    ) -> Result<Self, Corrupt> {
        let words = pool.words(at, lines * LINE_WORDS)?;
        let (found, expected) = (pool.medium().load(&words[HEAD]), MAGIC | lines as u64);
        if found != expected {
            let what = "head of a segment of the log";
            return Err(Corrupt { at: at.offset(), what, expected, found });
        }
        Ok(Self { at, words })
    }

    pub(super) fn next_word(&self) -> &'a PmWord {
        &self.words[NEXT]
    }

    /// Returns the number of lines, including the header line.
    pub(super) fn lines(&self) -> usize {
        self.words.len() / LINE_WORDS
    }

    fn line_words(&self, line: usize, lines: usize) -> &'a [PmWord] {
        &self.words[line * LINE_WORDS..(line + lines) * LINE_WORDS]
    }

    fn seal<M: Medium>(&self, medium: &M, line: usize) -> LineSeal {
        record::read_seal(medium, self.line_words(line, 1))
    }

    /// Returns the lap of a line, if its seal fits its place.
    pub(super) fn lap_of<M: Medium>(&self, medium: &M, line: usize) -> Option<u64> {
        let (position, lines) = (self.seal(medium, line).position, self.lines() as u64);
        (position % lines == line as u64).then_some(position / lines)
    }

    /// Returns the record of lap `lap` that begins at `line`, if all of its lines count.
    pub(super) fn record<M: Medium>(
        &self,
        pool: &Pool<M>,
        lap: u64,
        line: usize,
    ) -> Result<Option<SegmentRecord<'a>>, Corrupt> {
        let medium = pool.medium();
        let position = lap * self.lines() as u64 + line as u64;
        let LineSeal { lines, .. } = self.seal(medium, line);
        let of = |more| LineSeal { position: position + more as u64, lines, line: more };
        if self.seal(medium, line) != of(0) {
            return Ok(None);
        }
        let at = PmPtr::new(self.at.offset() + bytes(line));
        if lines == 0 || line + lines > self.lines() {
            let (expected, found) = ((self.lines() - line) as u64, lines as u64);
            let what = "lines of a record of the log";
            return Err(Corrupt { at: at.offset(), what, expected, found });
        }
        if (1..lines).any(|more| self.seal(medium, line + more) != of(more)) {
            return Ok(None);
        }
        let words = self.line_words(line, lines);
        Ok(Some(SegmentRecord { at, words, head: RecordHeader::load(pool, words, lines)? }))
    }
}
