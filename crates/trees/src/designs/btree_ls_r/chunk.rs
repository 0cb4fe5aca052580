//! A chunk of a log: one header line, then lines of records.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | head | data | magic number and lines of the chunk |
//! | 1 | 8 | use | commit | greater than every use of its log when it was begun; at least 1 |
//! | 2 | 8 | next | commit | the next chunk of the same log, or 0 |
//! | 3 | 40 | | | zero |
//! | 8 | | records | | see `record` |
//!
//! 1. A new block is filled with zeros, durably before any pointer names it. A reused chunk gets a
//!    use number that it never had. So no old contents are valid.
//! 2. No two chunks of a log have the same use number. The use numbers give the order in which
//!    chunks were begun; the order of the links means nothing.
//! 3. A record lies in one chunk.

use super::record::{self, RecordHead, USE_MAX};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The lines of a chunk in all but small pools: 4 KiB.
pub(super) const LINES_USUAL: usize = 64;
/// A chunk is at most 1/512 of the pool in which the index is created.
const POOL_SHARE_SHIFT: u32 = 9;
/// `LSring` in ASCII and two zero bytes, to be combined with the number of lines.
const MAGIC: u64 = 0x4C53_7269_6E67_0000;
const LINES_MAX: usize = 0xff;

const HEAD: usize = 0;
const USE: usize = 1;
const NEXT: usize = 2;

/// Returns the lines of a chunk in a pool of `pool_bytes` bytes, for records of up to
/// `max_record_lines` lines.
pub(super) fn lines(pool_bytes: u64, max_record_lines: usize) -> usize {
    let least = (max_record_lines + 2).next_power_of_two();
    let share = (pool_bytes >> POOL_SHARE_SHIFT) / LINE_BYTES as u64;
    let most = LINES_USUAL.max(least) as u64;
    let share = share.clamp(least as u64, most) as usize;
    1 << share.ilog2()
}

/// Returns the bytes of a chunk of `lines` lines.
pub(super) const fn bytes(lines: usize) -> u64 {
    (lines * LINE_BYTES) as u64
}

/// A chunk of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogChunk<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
    pub(super) uses: u64,
}

/// A valid record in a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRecord<'a> {
    pub(super) at: PmPtr,
    pub(super) words: &'a [PmWord],
    pub(super) head: RecordHead,
}

impl<'a> LogChunk<'a> {
    /// Turns a newly reserved block into an empty chunk of `lines` lines that links to `next`.
    /// Durable after the next fence.
    pub(super) fn make<M: Medium>(
        pool: &Pool<M>,
        at: PmPtr,
        lines: usize,
        uses: u64,
        next: PmPtr,
    ) -> Result<(), Corrupt> {
        let words = pool.words(at, lines * LINE_WORDS)?;
        let head = [MAGIC | lines as u64, uses, next.offset()].map(u64::to_le_bytes).concat();
        let mut image = vec![0; bytes(lines) as usize];
        image[..head.len()].copy_from_slice(&head);
        pool.medium().fill(words, &image);
        Ok(())
    }

    /// Starts a new use of the chunk, which makes all its records invalid. Every record still
    /// needed is durable elsewhere. Durable on return.
    ///
    /// ```text
    /// C use    8 B      crash before C: the chunk is unchanged
    /// F its line |      -> durable: no record of it counts
    /// ```
    pub(super) fn begin_use<M: Medium>(&self, medium: &M, uses: u64) {
        let word = &self.words[USE];
        medium.store(word, uses);
        let _ = medium.persist(core::slice::from_ref(word));
    }

    /// Opens the chunk of `lines` lines at `at`, a pointer read from the pool.
    pub(super) fn open<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        lines: usize,
    ) -> Result<Self, Corrupt> {
        let words = pool.words(at, lines * LINE_WORDS)?;
        let [head, uses] = [HEAD, USE].map(|at| pool.medium().load(&words[at]));
        let expected = MAGIC | lines as u64;
        if head != expected {
            let what = "head of a chunk of the log";
            return Err(Corrupt { at: at.offset(), what, expected, found: head });
        }
        if uses == 0 || uses > USE_MAX {
            let (at, what) = (at.offset() + 8, "use number of a log chunk out of range");
            return Err(Corrupt { at, what, expected: USE_MAX, found: uses });
        }
        Ok(Self { at, words, uses })
    }

    /// Returns the number of lines, including the header line.
    pub(super) fn lines(&self) -> usize {
        self.words.len() / LINE_WORDS
    }

    pub(super) fn next_word(&self) -> &'a PmWord {
        &self.words[NEXT]
    }

    /// Returns the offset of a line.
    pub(super) fn line_at(&self, line: usize) -> PmPtr {
        PmPtr::new(self.at.offset() + (line * LINE_BYTES) as u64)
    }

    /// Returns the words of `lines` lines.
    pub(super) fn line_words(&self, line: usize, lines: usize) -> &'a [PmWord] {
        &self.words[line * LINE_WORDS..(line + lines) * LINE_WORDS]
    }

    /// Returns `true` if the line has a valid seal.
    pub(super) fn is_sealed<M: Medium>(&self, medium: &M, line: usize) -> bool {
        record::read_seal(medium, self.line_words(line, 1), self.uses).is_some()
    }

    /// Returns the record that begins at `line`, if all of its lines are valid.
    pub(super) fn record<M: Medium>(
        &self,
        pool: &Pool<M>,
        line: usize,
    ) -> Result<Option<ChunkRecord<'a>>, Corrupt> {
        let medium = pool.medium();
        let seal_of = |line| record::read_seal(medium, self.line_words(line, 1), self.uses);
        let Some((0, lines)) = seal_of(line) else { return Ok(None) };
        let at = self.line_at(line);
        if lines == 0 || line + lines > self.lines() {
            let (expected, found) = ((self.lines() - line) as u64, lines as u64);
            let what = "lines of a record of the log";
            return Err(Corrupt { at: at.offset(), what, expected, found });
        }
        if (1..lines).any(|more| seal_of(line + more) != Some((more, lines))) {
            return Ok(None);
        }
        let words = self.line_words(line, lines);
        Ok(Some(ChunkRecord { at, words, head: RecordHead::load(pool, words, lines)? }))
    }
}

/// Returns `true` if `lines` is a possible chunk size for records of up to `max_record_lines`
/// lines.
pub(super) fn is_size(lines: u64, max_record_lines: usize) -> bool {
    lines > max_record_lines as u64 + 1 && lines <= LINES_MAX as u64
}
