//! Log records. A record is one or more lines of 64 B, and the last word of each line seals it.
//!
//! A base holds all pairs of a leaf, in key order, up to its sequence number. Its first line:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | head | data | bits 0..48: leaf; bits 48..56: items; bits 56..64: kind, 3 |
//! | 1 | sequence | data | the number of the newest change in the base |
//! | 2 | right | data | one more than the number of the right neighbour, or 0 |
//! | 3 | low | data | separator word of the low key; it never changes |
//! | 4 | item 0 | data | key word, value word |
//! | 6 | high | data | the low word of the right neighbour, if there is one |
//! | 7 | seal | commit | bits 0..8: this line; 8..16: lines of the record; 16..64: chunk's use |
//!
//! Each further line has three items, a spare word, and its seal. A delta is one change, in one
//! line:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | head | data | bits 0..48: leaf; bits 56..64: kind, 1: put, 2: removed |
//! | 1 | sequence | data | one more than the number of the previous change |
//! | 2 | key word, value word | data | of a removed key: the last ones |
//! | 4 | | | undefined |
//! | 7 | seal | commit | as above |
//!
//! The *use* of a chunk counts how often it was begun; see `chunk`.
//!
//! 1. A line is valid if its seal names the present use of its chunk, and a record is valid if all
//!    of its lines are. The seal is stored last, so a valid seal implies complete contents.
//! 2. Within one use of a chunk, each line is written once. So adjacent valid lines whose seals
//!    match belong to one record.
//! 3. A record names its leaf and its change. So recovery recognizes an outdated record without
//!    reading its keys, whose records may be freed, and a copy means the same as its original.

use crate::key::Entry;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The greatest leaf number.
pub(super) const LEAF_MAX: u64 = (1 << 48) - 1;
/// The greatest use number that a file may contain: half of the seal's range, because a reopened
/// index counts on from it.
pub(super) const USE_MAX: u64 = (1 << 47) - 1;
/// The greatest sequence number that a file may contain. A reopened index counts on from it and
/// cannot reach the end of the range.
pub(super) const SEQUENCE_MAX: u64 = u64::MAX / 2;
/// The first sequence number in a pool that [is aged](Medium::is_aged).
pub(super) const SEQUENCE_AGED: u64 = SEQUENCE_MAX - (1 << 20);

const HEAD: usize = 0;
const SEQUENCE: usize = 1;
const RIGHT: usize = 2;
const LOW: usize = 3;
const HIGH: usize = 6;
const SEAL: usize = LINE_WORDS - 1;
const KEY: usize = 2;
const VALUE: usize = 3;
/// The number of defined words of a delta, without the seal.
const DELTA_WORDS: usize = 4;

const LINE_ITEMS: usize = 3;
/// The number of item positions that the head of a base occupies.
const HEAD_ITEMS: usize = 2;

const COUNT_SHIFT: u32 = 48;
const KIND_SHIFT: u32 = 56;
const LINES_SHIFT: u32 = 8;
const USE_SHIFT: u32 = 16;

/// Returns the number of lines of a base with `items` items.
pub(super) const fn base_lines(items: usize) -> usize {
    (items + HEAD_ITEMS - 1) / LINE_ITEMS + 1
}

/// Returns the word index of the key word of item `at` in a base. The value word follows it.
const fn item_word(at: usize) -> usize {
    let place = at + HEAD_ITEMS;
    place / LINE_ITEMS * LINE_WORDS + 2 * (place % LINE_ITEMS)
}

const _: () = assert!(item_word(0) == LOW + 1 && item_word(1) == LINE_WORDS);

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Removed,
    /// A base with this number of items.
    Base(usize),
}

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) kind: Kind,
    pub(super) leaf: u64,
    pub(super) sequence: u64,
}

impl RecordHead {
    fn word(&self) -> u64 {
        let (kind, count) = match self.kind {
            Kind::Put => (1, 0),
            Kind::Removed => (2, 0),
            Kind::Base(items) => (3, items as u64),
        };
        kind << KIND_SHIFT | count << COUNT_SHIFT | self.leaf
    }

    pub(super) fn lines(&self) -> usize {
        match self.kind {
            Kind::Put | Kind::Removed => 1,
            Kind::Base(items) => base_lines(items),
        }
    }

    /// Reads the head of the record in `words`, which has `lines` lines according to its seals.
    pub(super) fn load<M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        lines: usize,
    ) -> Result<Self, Corrupt> {
        let [head, sequence] = [HEAD, SEQUENCE].map(|at| pool.medium().load(&words[at]));
        let count = (head >> COUNT_SHIFT) as u8;
        let kind = match head >> KIND_SHIFT {
            1 => Some(Kind::Put),
            2 => Some(Kind::Removed),
            3 => Some(Kind::Base(usize::from(count))),
            _ => None,
        };
        let leaf = head & LEAF_MAX;
        if sequence > SEQUENCE_MAX {
            let (at, what) = (
                pool.offset_of(&words[SEQUENCE]).offset(),
                "sequence number of a change out of range",
            );
            return Err(Corrupt { at, what, expected: SEQUENCE_MAX, found: sequence });
        }
        let read = kind.map(|kind| Self { kind, leaf, sequence });
        read.filter(|read| read.lines() == lines && read.word() == head).ok_or_else(|| {
            let (at, what) = (pool.offset_of(&words[HEAD]).offset(), "head of a record of the log");
            Corrupt { at, what, expected: lines as u64, found: head }
        })
    }
}

/// Returns the seal of line `line` in a record of `lines` lines.
fn seal(uses: u64, lines: usize, line: usize) -> u64 {
    uses << USE_SHIFT | (lines as u64) << LINES_SHIFT | line as u64
}

/// Returns the contents of a line's seal if it is valid: the index of the line, and the lines of
/// its record.
pub(super) fn read_seal<M: Medium>(
    medium: &M,
    line: &[PmWord],
    uses: u64,
) -> Option<(usize, usize)> {
    let seal = medium.load(&line[SEAL]);
    (seal >> USE_SHIFT == uses)
        .then_some((usize::from(seal as u8), usize::from((seal >> LINES_SHIFT) as u8)))
}

/// The position of a leaf among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    /// The number of the right neighbour, if there is one.
    pub(super) right: Option<u64>,
    /// The separator word of the low key.
    pub(super) low: u64,
    /// The separator word of the right neighbour's low key.
    pub(super) high: u64,
}

/// Returns the defined words of a delta, without the seal.
pub(super) fn delta_image(leaf: u64, sequence: u64, change: EntryChange) -> [u64; DELTA_WORDS] {
    let kind = if change.is_removed { Kind::Removed } else { Kind::Put };
    let head = RecordHead { kind, leaf, sequence }.word();
    [head, sequence, change.entry.key, change.entry.value]
}

/// Returns the words of a base. Its seals are not set yet.
pub(super) fn base_image<'e>(
    leaf: u64,
    sequence: u64,
    range: Range,
    items: impl ExactSizeIterator<Item = &'e Entry>,
) -> Vec<u64> {
    let count = items.len();
    let mut image = vec![0; base_lines(count) * LINE_WORDS];
    image[HEAD] = RecordHead { kind: Kind::Base(count), leaf, sequence }.word();
    image[SEQUENCE] = sequence;
    image[RIGHT] = range.right.map_or(0, |right| right + 1);
    image[LOW] = range.low;
    image[HIGH] = range.high;
    for (at, item) in items.enumerate() {
        image[item_word(at)] = item.key;
        image[item_word(at) + 1] = item.value;
    }
    image
}

/// Returns the words of an existing record, to be written again elsewhere.
pub(super) fn image_of<M: Medium>(medium: &M, words: &[PmWord], kind: Kind) -> Vec<u64> {
    let count = if matches!(kind, Kind::Base(_)) { words.len() } else { DELTA_WORDS };
    words[..count].iter().map(|word| medium.load(word)).collect()
}

/// Returns the number of lines of an image.
pub(super) const fn lines_of(image: &[u64]) -> usize {
    image.len().div_ceil(LINE_WORDS)
}

/// Stores a record into lines that are unwritten in this use of their chunk, and flushes them.
///
/// ```text
/// for each line: W words     crash before the last C: no record
///                C seal      8 B, same line, last
/// F lines                    durable after the next fence
/// ```
pub(super) fn write<M: Medium>(medium: &M, words: &[PmWord], image: &[u64], uses: u64) {
    let lines = lines_of(image);
    debug_assert_eq!(words.len(), lines * LINE_WORDS);
    for (line, (target, source)) in
        words.chunks(LINE_WORDS).zip(image.chunks(LINE_WORDS)).enumerate()
    {
        for (word, &value) in target[..SEAL].iter().zip(source) {
            medium.store(word, value);
        }
        medium.store(&target[SEAL], seal(uses, lines, line));
    }
    medium.flush(words);
}

/// Returns the change that the delta at `at` records.
#[inline(always)]
pub(super) fn delta<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<EntryChange, Corrupt> {
    let words = pool.words(at, LINE_WORDS)?;
    let [head, key, value] = [HEAD, KEY, VALUE].map(|at| pool.medium().load(&words[at]));
    let is_removed = head >> KIND_SHIFT == 2;
    Ok(EntryChange { entry: Entry::plain(key, value), is_removed })
}

/// A base record in the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base<'a> {
    words: &'a [PmWord],
    pub(super) items: usize,
}

impl<'a> Base<'a> {
    #[inline(always)]
    pub(super) fn new<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        items: usize,
    ) -> Result<Self, Corrupt> {
        Ok(Self { words: pool.words(at, base_lines(items) * LINE_WORDS)?, items })
    }

    #[inline(always)]
    pub(super) fn prefetch<M: Medium>(&self, medium: &M) {
        medium.prefetch(self.words);
    }

    pub(super) fn range<M: Medium>(&self, medium: &M) -> Range {
        let [right, low, high] = [RIGHT, LOW, HIGH].map(|at| medium.load(&self.words[at]));
        Range { right: right.checked_sub(1), low, high }
    }

    #[inline(always)]
    pub(super) fn item<M: Medium>(&self, medium: &M, at: usize) -> Entry {
        let word = item_word(at);
        Entry::plain(medium.load(&self.words[word]), medium.load(&self.words[word + 1]))
    }

    /// Prefetches the line of an item.
    #[inline(always)]
    pub(super) fn prefetch_item<M: Medium>(&self, medium: &M, at: usize) {
        medium.prefetch(&self.words[item_word(at)..][..2]);
    }
}
