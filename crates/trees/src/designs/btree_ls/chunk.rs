//! A chunk of a log: a line that says what it is, then lines of records.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | head | data | magic number and lines of the chunk |
//! | 1 | 8 | use | commit | one more than the greatest of its log when it was begun; at least 1 |
//! | 2 | 8 | next | commit | the next chunk of the same log, or 0 |
//! | 3 | 40 | | | zero |
//! | 8 | | records | | see `record` |
//!
//! 1. A block that the pool gives is filled with zeros, durably before anything leads to it. A chunk that is
//!    begun anew has a use that it never had. So nothing of what was there before counts.
//! 2. No two chunks of a log have the same use: uses say in which order they were begun. The order in which
//!    chunks are linked says nothing.
//! 3. A record lies in one chunk.

use super::record::{self, RecordHead, USE_MAX};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// Lines of a chunk in all but small pools: 4 KiB.
pub(super) const LINES_USUAL: usize = 64;
/// A chunk is so small a part of the pool in which the index is made.
const POOL_SHARE_SHIFT: u32 = 9;
/// `LSring` and two zeros, over the number of lines.
const MAGIC: u64 = 0x4C53_7269_6E67_0000;
const LINES_MAX: usize = 0xff;

const HEAD: usize = 0;
const USE: usize = 1;
const NEXT: usize = 2;

/// Lines of a chunk in a pool of that many bytes, with records of up to `widest` lines.
pub(super) fn lines(pool_bytes: u64, widest: usize) -> usize {
    let least = (widest + 2).next_power_of_two();
    let share = (pool_bytes >> POOL_SHARE_SHIFT) / LINE_BYTES as u64;
    let most = LINES_USUAL.max(least) as u64;
    let share = share.clamp(least as u64, most) as usize;
    1 << share.ilog2()
}

/// Bytes of a chunk of that many lines.
pub(super) const fn bytes(lines: usize) -> u64 {
    (lines * LINE_BYTES) as u64
}

/// A chunk: its place, its words, its use.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogChunk<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
    pub(super) uses: u64,
}

/// A record of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRecord<'a> {
    pub(super) at: PmPtr,
    pub(super) words: &'a [PmWord],
    pub(super) head: RecordHead,
}

impl<'a> LogChunk<'a> {
    /// Makes a chunk of `lines` lines of a block that the pool has just given, to be linked before the one
    /// at `next`. Durable after the next fence.
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

    /// Begins the chunk anew, in whose records nothing counts that is not durable elsewhere. Durable at
    /// return.
    ///
    /// ```text
    /// C use    8 B      crash before C: the chunk is what it was
    /// F its line |      -> durable: no record of it counts
    /// ```
    pub(super) fn renew<M: Medium>(&self, medium: &M, uses: u64) {
        let word = &self.words[USE];
        medium.store(word, uses);
        let _ = medium.persist(core::slice::from_ref(word));
    }

    /// The chunk of `lines` lines at `at`, which something in the pool names.
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
            let (at, what) = (at.offset() + 8, "use of a chunk of the log");
            return Err(Corrupt { at, what, expected: USE_MAX, found: uses });
        }
        Ok(Self { at, words, uses })
    }

    /// Lines of it, its own among them.
    pub(super) fn lines(&self) -> usize {
        self.words.len() / LINE_WORDS
    }

    pub(super) fn next_word(&self) -> &'a PmWord {
        &self.words[NEXT]
    }

    /// The place of a line.
    pub(super) fn line_at(&self, line: usize) -> PmPtr {
        PmPtr::new(self.at.offset() + (line * LINE_BYTES) as u64)
    }

    /// The words of so many lines.
    pub(super) fn line_words(&self, line: usize, lines: usize) -> &'a [PmWord] {
        &self.words[line * LINE_WORDS..(line + lines) * LINE_WORDS]
    }

    /// Whether a line is sealed.
    pub(super) fn is_sealed<M: Medium>(&self, medium: &M, line: usize) -> bool {
        record::sealed(medium, self.line_words(line, 1), self.uses).is_some()
    }

    /// The record that begins at a line, if one does and all of it is there.
    pub(super) fn record<M: Medium>(
        &self,
        pool: &Pool<M>,
        line: usize,
    ) -> Result<Option<ChunkRecord<'a>>, Corrupt> {
        let medium = pool.medium();
        let seal_of = |line| record::sealed(medium, self.line_words(line, 1), self.uses);
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

/// Whether an index can have chunks of so many lines, with records of up to `widest`.
pub(super) fn is_size(lines: u64, widest: usize) -> bool {
    lines > widest as u64 + 1 && lines <= LINES_MAX as u64
}
