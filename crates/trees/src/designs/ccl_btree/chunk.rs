//! A chunk of a log: one header line, then dense entries of 24 B.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | magic | data | magic number |
//! | 1 | 8 | use | data | how often the chunk has been begun; at least 1 |
//! | 2 | 8 | previous | data | the chunk that was begun before it in the same log, or 0 |
//! | 3 | 8 | lines | data | lines of the chunk |
//! | 4 | 32 | | | zero |
//! | 8 + 3i | 24 | entry i | | |
//!
//! An entry:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | key word | data | |
//! | 1 | value word | data | of a removed key: the last one |
//! | 2 | seal | commit | bits 0..47: stamp; 47: the key was removed; 48..64: use of the chunk |
//!
//! 1. An entry is valid if its seal names the present use of its chunk. The seal is stored last. Of
//!    eight entries two cross the end of a line: what they have in the first line is fenced before
//!    the rest is stored. So a valid seal implies complete contents.
//! 2. A new block is filled with zeros, and a reused chunk gets a new use number. Both are durable
//!    before any pointer names the chunk. So no old contents are valid.
//! 3. The leaf of an entry is the one whose range contains the key. So the record of a removed key
//!    is kept until no log can contain an entry that names it.

use super::layout::STAMP_BITS;
use crate::key::Entry;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};

/// Returns the lines of a new chunk: 4 MiB in a pool of 4 GiB, as much less in a smaller one, and
/// at least 4 KiB. In a pool below 1 MiB, of which that would be much, it has 256 B.
pub(super) fn lines(pool_bytes: u64) -> usize {
    const SHARE: u64 = 1 << 10;
    if pool_bytes < 1 << 20 {
        return 4;
    }
    let lines = (pool_bytes / SHARE / LINE_BYTES as u64) as usize;
    (1 << lines.max(1).ilog2()).clamp(LINES_MIN, LINES_MAX)
}

/// Returns the bytes of a chunk of `lines` lines.
pub(super) const fn bytes(lines: usize) -> u64 {
    (lines * LINE_WORDS * 8) as u64
}

/// Returns the number of entries in a chunk of `lines` lines.
pub(super) const fn entries(lines: usize) -> usize {
    (lines - 1) * LINE_WORDS / ENTRY_WORDS
}

/// Returns the number of words of entry `index` that lie in its first line.
const fn words_in_first_line(index: usize) -> usize {
    let left = LINE_WORDS - ENTRY_WORDS * index % LINE_WORDS;
    if left < ENTRY_WORDS { left } else { ENTRY_WORDS }
}

/// Returns the most of `entries` consecutive entries that cross the end of a line.
pub(super) const fn crossing(entries: usize) -> usize {
    let mut most = 0;
    let mut first = 0;
    while first < LINE_WORDS {
        let (mut found, mut at) = (0, 0);
        while at < entries {
            found += (words_in_first_line(first + at) < ENTRY_WORDS) as usize;
            at += 1;
        }
        most = if found > most { found } else { most };
        first += 1;
    }
    most
}

/// The size of an entry in bytes.
pub(super) const ENTRY_BYTES: usize = 8 * ENTRY_WORDS;

const ENTRY_WORDS: usize = 3;
/// `CCLlog3` in ASCII and a zero byte.
const MAGIC: u64 = 0x4343_4C6C_6F67_3300;
/// The lines of a chunk of 4 MiB.
const LINES_MAX: usize = 1 << 16;
/// The least lines of a chunk in all but small pools.
pub(super) const LINES_MIN: usize = 64;
/// The greatest use number. A chunk that has reached it is freed.
const USE_MAX: u64 = (1 << (64 - USE_SHIFT)) - 1;
const STAMP: u64 = (1 << STAMP_BITS) - 1;
const REMOVED: u64 = 1 << STAMP_BITS;
const USE_SHIFT: u32 = STAMP_BITS + 1;

const HEAD: usize = 0;
const USE: usize = 1;
const PREVIOUS: usize = 2;
const LINES: usize = 3;

/// A chunk of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalChunk<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
    uses: u64,
}

/// The contents of a log entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogEntry {
    pub(super) stamp: u64,
    pub(super) change: EntryChange,
}

impl<'a> WalChunk<'a> {
    /// Turns a newly reserved block into an empty chunk. Durable after the next fence.
    pub(super) fn begin<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        previous: PmPtr,
        lines: usize,
    ) -> Result<Self, Corrupt> {
        let words = pool.words(at, lines * LINE_WORDS)?;
        let uses = if M::is_aged() { USE_MAX - 1 } else { 1 };
        let head = [MAGIC, uses, previous.offset(), lines as u64].map(u64::to_le_bytes).concat();
        let mut image = vec![0; bytes(lines) as usize];
        image[..head.len()].copy_from_slice(&head);
        pool.medium().fill(words, &image);
        Ok(Self { at, words, uses })
    }

    /// Starts a new use of a chunk, which makes all its entries invalid. Durable after the next
    /// fence.
    pub(super) fn reuse<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        previous: PmPtr,
    ) -> Result<Self, Corrupt> {
        let chunk = Self { uses: Self::open(pool, at)?.uses + 1, ..Self::open(pool, at)? };
        let medium = pool.medium();
        medium.store(&chunk.words[USE], chunk.uses);
        medium.store(&chunk.words[PREVIOUS], previous.offset());
        medium.flush(&chunk.words[..=PREVIOUS]);
        Ok(chunk)
    }

    /// Opens the chunk at `at`, a pointer read from the pool.
    pub(super) fn open<M: Medium>(pool: &'a Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        let header = pool.words(at, LINE_WORDS)?;
        let head = pool.medium().load(&header[HEAD]);
        if head != MAGIC {
            let (at, what) = (at.offset(), "head of a chunk of the log");
            return Err(Corrupt { at, what, expected: MAGIC, found: head });
        }
        let found = pool.medium().load(&header[LINES]);
        let lines = usize::try_from(found).unwrap_or(usize::MAX);
        if !(2..=LINES_MAX).contains(&lines) {
            let (at, what) = (at.offset() + 8 * LINES as u64, "lines of a log chunk out of range");
            return Err(Corrupt { at, what, expected: LINES_MAX as u64, found });
        }
        let uses = pool.medium().load(&header[USE]);
        if uses == 0 || uses > USE_MAX {
            let (at, what) = (at.offset() + 8, "use number of a log chunk out of range");
            return Err(Corrupt { at, what, expected: USE_MAX, found: uses });
        }
        Ok(Self { at, words: pool.words(at, lines * LINE_WORDS)?, uses })
    }

    pub(super) fn bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }

    fn lines(&self) -> usize {
        self.words.len() / LINE_WORDS
    }

    /// Returns the number of entries that the chunk can hold.
    pub(super) fn entries(&self) -> usize {
        entries(self.lines())
    }

    pub(super) fn previous<M: Medium>(&self, medium: &M) -> PmPtr {
        PmPtr::new(medium.load(&self.words[PREVIOUS]))
    }

    /// Returns `true` if the chunk can be reused as one of `lines` lines.
    pub(super) fn is_reusable(&self, lines: usize) -> bool {
        self.uses < USE_MAX && self.lines() == lines
    }

    /// Stores entry `index` and flushes it.
    ///
    /// ```text
    /// W key word, value word         crash before C: no entry
    /// F their first line |           only if the entry crosses the end of a line; what lies in the
    ///                                second line is stored after it
    /// C seal             8 B         last
    /// F entry            durable after the next fence
    /// ```
    pub(super) fn write<M: Medium>(&self, medium: &M, index: usize, logged: &LogEntry) {
        let words = self.entry(index);
        let EntryChange { entry, is_removed } = logged.change;
        debug_assert!(logged.stamp <= STAMP);
        let kind = if is_removed { REMOVED } else { 0 };
        let contents = [entry.key, entry.value, self.uses << USE_SHIFT | kind | logged.stamp];
        let is_torn = M::INJECTS_DEFECTS && medium.injects(Defect::EntryTorn);
        let first = if is_torn { ENTRY_WORDS } else { words_in_first_line(index) };
        for (word, content) in words[..first].iter().zip(contents) {
            medium.store(word, content);
        }
        medium.flush(&words[..first]);
        if first < ENTRY_WORDS {
            let _ = medium.fence();
            for (word, content) in words.iter().zip(contents).skip(first) {
                medium.store(word, content);
            }
            medium.flush(&words[first..]);
        }
    }

    /// Returns the valid entries.
    pub(super) fn read<M: Medium>(&self, medium: &M) -> impl Iterator<Item = LogEntry> {
        let accepts_all = M::INJECTS_DEFECTS && medium.injects(Defect::EntryRecycled);
        let read = move |index: usize| {
            let words = self.entry(index);
            let seal = medium.load(&words[2]);
            if seal >> USE_SHIFT != self.uses && !(accepts_all && seal != 0) {
                return None;
            }
            let entry = Entry::plain(medium.load(&words[0]), medium.load(&words[1]));
            let change = EntryChange { entry, is_removed: seal & REMOVED != 0 };
            let is_cut = M::INJECTS_DEFECTS && medium.injects(Defect::StampTruncated);
            let stamp = if is_cut { seal & u64::from(u32::MAX) } else { seal & STAMP };
            Some(LogEntry { stamp, change })
        };
        (0..self.entries()).filter_map(read)
    }

    fn entry(&self, index: usize) -> &'a [PmWord] {
        let at = LINE_WORDS + ENTRY_WORDS * index;
        &self.words[at..at + ENTRY_WORDS]
    }
}
