//! A chunk of a log: one header line, then entries of half a line each.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | head | data | magic number and lines of the chunk |
//! | 1 | 8 | use | data | how often the chunk has been begun; at least 1 |
//! | 2 | 8 | previous | data | the chunk that was begun before it in the same log, or 0 |
//! | 3 | 40 | | | zero |
//! | 8 + 4i | 32 | entry i | | |
//!
//! An entry:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | key word | data | |
//! | 1 | value word | data | of a removed key: the last one |
//! | 2 | leaf | data | offset of the leaf; bit 0: the key was removed |
//! | 3 | seal | commit | bits 0..48: stamp; bits 48..64: use of the chunk |
//!
//! 1. An entry is valid if its seal names the present use of its chunk. The seal is stored last,
//!    and an entry lies in one line. So a valid seal implies complete contents.
//! 2. A new block is filled with zeros, and a reused chunk gets a new use number. Both are durable
//!    before any pointer names the chunk. So no old contents are valid.
//! 3. An entry names its leaf. So recovery recognizes an outdated entry without reading its key,
//!    whose record may be freed.

use super::layout::STAMP_BITS;
use crate::key::Entry;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};

/// Returns the lines of a new chunk: 4 KiB, or 256 B in a pool below 1 MiB, where larger logs would
/// take much of the pool.
pub(super) fn lines(pool_bytes: u64) -> usize {
    if pool_bytes < 1 << 20 { 4 } else { LINES_USUAL }
}

/// Returns the bytes of a chunk of `lines` lines.
pub(super) const fn bytes(lines: usize) -> u64 {
    (lines * LINE_WORDS * 8) as u64
}

/// Returns the number of entries in a chunk of `lines` lines.
pub(super) const fn entries(lines: usize) -> usize {
    (lines - 1) * ENTRIES_PER_LINE
}

/// The size of an entry in bytes.
pub(super) const ENTRY_BYTES: usize = 8 * ENTRY_WORDS;

const ENTRY_WORDS: usize = 4;
const ENTRIES_PER_LINE: usize = LINE_WORDS / ENTRY_WORDS;
/// `CCLlog2` in ASCII and a zero byte, to be combined with the number of lines.
const MAGIC: u64 = 0x4343_4C6C_6F67_3200;
const LINES_MAX: usize = 0xff;
/// The lines of a chunk in all but small pools.
pub(super) const LINES_USUAL: usize = 64;
/// The greatest use number. A chunk that has reached it is freed.
const USE_MAX: u64 = (1 << (64 - STAMP_BITS)) - 1;
const STAMP: u64 = (1 << STAMP_BITS) - 1;
const REMOVED: u64 = 1;

const HEAD: usize = 0;
const USE: usize = 1;
const PREVIOUS: usize = 2;

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
    pub(super) leaf: PmPtr,
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
        let head = [MAGIC | lines as u64, uses, previous.offset()].map(u64::to_le_bytes).concat();
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
        let lines = (head ^ MAGIC) as usize;
        if !(2..=LINES_MAX).contains(&lines) {
            let (at, what) = (at.offset(), "head of a chunk of the log");
            return Err(Corrupt { at, what, expected: MAGIC, found: head });
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
    /// W key word, value word, leaf      crash before C: no entry
    /// C seal             8 B            same line, last
    /// F entry            durable after the next fence
    /// ```
    pub(super) fn write<M: Medium>(&self, medium: &M, index: usize, logged: &LogEntry) {
        let words = self.entry(index);
        let EntryChange { entry, is_removed } = logged.change;
        debug_assert!(logged.stamp <= STAMP && logged.leaf.offset().is_multiple_of(256));
        medium.store(&words[0], entry.key);
        medium.store(&words[1], entry.value);
        medium.store(&words[2], logged.leaf.offset() | if is_removed { REMOVED } else { 0 });
        medium.store(&words[3], self.uses << STAMP_BITS | logged.stamp);
        medium.flush(words);
    }

    /// Returns the valid entries.
    pub(super) fn read<M: Medium>(&self, medium: &M) -> impl Iterator<Item = LogEntry> {
        let read = |index: usize| {
            let words = self.entry(index);
            let seal = medium.load(&words[3]);
            if seal >> STAMP_BITS != self.uses {
                return None;
            }
            let [key, value, place] = core::array::from_fn(|i| medium.load(&words[i]));
            let change =
                EntryChange { entry: Entry::plain(key, value), is_removed: place & REMOVED != 0 };
            let leaf = PmPtr::new(place & !REMOVED);
            let is_cut = M::INJECTS_DEFECTS && medium.injects(Defect::StampTruncated);
            let stamp = if is_cut { seal & u64::from(u32::MAX) } else { seal & STAMP };
            Some(LogEntry { leaf, stamp, change })
        };
        (0..entries(self.lines())).filter_map(read)
    }

    fn entry(&self, index: usize) -> &'a [PmWord] {
        let at = LINE_WORDS + ENTRY_WORDS * index;
        &self.words[at..at + ENTRY_WORDS]
    }
}
