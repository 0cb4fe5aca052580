//! Log records. A record is one or more lines of 64 B, and the last word of each line seals it.
//!
//! A base holds all pairs of a leaf, in key order. Its first line:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | head | data | bits 0..48: leaf; bits 48..56: items; bits 56..64: kind, 3 |
//! | 1 | previous | data | bits 0..63: the record before, or 0; bit 63: there is a high key |
//! | 2 | after | data | one more than the leaf whose end this base waits for, or 0 |
//! | 3 | low | data | separator word of the low key; it never changes |
//! | 4 | undefined | | |
//! | 6 | high | data | the low word of the right neighbour, if there is one |
//! | 7 | seal | commit | bits 0..8: this line; 8..16: lines of the record; 16..64: the position |
//!
//! Each further line has seven words of items and its seal. An item is a pair of 16 B + 16 B: key
//! word, value word, two words of padding; it may continue in the next line. A delta is one change,
//! in one line; an end record says that a leaf is no more:
//!
//! | word | of a delta | of an end record | class |
//! | --- | --- | --- | --- |
//! | 0 | head: kind 1: put, 2: removed | head: kind 4 | data |
//! | 1 | previous record of the leaf | one more than the first successor | data |
//! | 2 | key word | one more than the second successor, or 0 | data |
//! | 3 | value word | undefined | data |
//! | 4 | undefined: padding and a spare word | undefined | |
//! | 7 | seal | seal | commit |
//!
//! 1. The *position* of a line counts all lines of its log, so no two lines of a log have the same
//!    one. A line counts if its position is not before the head of its log, and fits its place. The
//!    seal is stored last, so a line that counts is complete.
//! 2. A base that waits for the end of a leaf counts only if the end record of that leaf names the
//!    base's leaf as a successor, or if a later record of the leaf exists.
//! 3. An end record lies in the log of the leaf that it ends, behind all records of that leaf.

use crate::key::Entry;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The greatest leaf number.
pub(super) const LEAF_MAX: u64 = (1 << 48) - 1;
/// The greatest position that a file may contain: half of the seal's range, because a reopened
/// index counts on from it.
pub(super) const POSITION_MAX: u64 = (1 << 47) - 1;

const HEAD: usize = 0;
const PREVIOUS: usize = 1;
const AFTER: usize = 2;
const LOW: usize = 3;
const HIGH: usize = 6;
const SEAL: usize = LINE_WORDS - 1;
const KEY: usize = 2;
const VALUE: usize = 3;
const SUCCESSORS: [usize; 2] = [1, 2];
/// The number of defined words of a delta, without the seal.
const DELTA_WORDS: usize = 4;
/// The number of defined words of an end record, without the seal.
const END_WORDS: usize = 3;

/// Returns the number of lines of a base with `items` items.
pub(super) const fn base_lines(items: usize) -> usize {
    1 + (Entry::WIDE_WORDS * items).div_ceil(SEAL)
}

/// Returns the indices of the key word and of the value word of item `at` of a base.
#[inline(always)]
const fn item_words(at: usize) -> [usize; 2] {
    // The items lie in the words before the seals, from the second line on.
    let (key, value) = (Entry::WIDE_WORDS * at, Entry::WIDE_WORDS * at + 1);
    [(1 + key / SEAL) * LINE_WORDS + key % SEAL, (1 + value / SEAL) * LINE_WORDS + value % SEAL]
}

const COUNT_SHIFT: u32 = 48;
const KIND_SHIFT: u32 = 56;
const LINES_SHIFT: u32 = 8;
const POSITION_SHIFT: u32 = 16;
const HAS_HIGH: u64 = 1 << 63;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Put,
    Removed,
    /// A base with this number of items.
    Base(usize),
    End,
}

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) kind: RecordKind,
    pub(super) leaf: u64,
}

impl RecordHeader {
    fn word(self) -> u64 {
        let (kind, count) = match self.kind {
            RecordKind::Put => (1, 0),
            RecordKind::Removed => (2, 0),
            RecordKind::Base(items) => (3, items as u64),
            RecordKind::End => (4, 0),
        };
        kind << KIND_SHIFT | count << COUNT_SHIFT | self.leaf
    }

    fn of(word: u64) -> Option<Self> {
        let kind = match word >> KIND_SHIFT {
            1 => RecordKind::Put,
            2 => RecordKind::Removed,
            3 => RecordKind::Base(usize::from((word >> COUNT_SHIFT) as u8)),
            4 => RecordKind::End,
            _ => return None,
        };
        let head = Self { kind, leaf: word & LEAF_MAX };
        (head.word() == word).then_some(head)
    }

    pub(super) fn lines(self) -> usize {
        match self.kind {
            RecordKind::Put | RecordKind::Removed | RecordKind::End => 1,
            RecordKind::Base(items) => base_lines(items),
        }
    }

    /// Reads the head of the record at `at`.
    #[inline(always)]
    pub(super) fn read<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        let word = pool.medium().load(&pool.words(at, LINE_WORDS)?[HEAD]);
        Self::of(word).ok_or_else(|| unknown_head(at, word))
    }

    /// Reads the head of the record in `words`, which has `lines` lines according to its seals.
    pub(super) fn load<M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        lines: usize,
    ) -> Result<Self, Corrupt> {
        let word = pool.medium().load(&words[HEAD]);
        let head = Self::of(word).filter(|head| head.lines() == lines);
        head.ok_or_else(|| unknown_head(pool.offset_of(&words[HEAD]), word))
    }
}

#[cold]
fn unknown_head(at: PmPtr, found: u64) -> Corrupt {
    Corrupt { at: at.offset(), what: "head of a record of the log", expected: 3, found }
}

/// Returns the seal of line `line` of a record of `lines` lines that begins at `position`.
fn seal(position: u64, lines: usize, line: usize) -> u64 {
    (position + line as u64) << POSITION_SHIFT | (lines as u64) << LINES_SHIFT | line as u64
}

/// The contents of a line's seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineSeal {
    pub(super) position: u64,
    pub(super) lines: usize,
    pub(super) line: usize,
}

/// Returns the contents of a line's seal.
pub(super) fn read_seal<M: Medium>(medium: &M, line: &[PmWord]) -> LineSeal {
    let seal = medium.load(&line[SEAL]);
    let lines = usize::from((seal >> LINES_SHIFT) as u8);
    LineSeal { position: seal >> POSITION_SHIFT, lines, line: usize::from(seal as u8) }
}

/// The position of a leaf among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeafRange {
    /// The separator word of the low key.
    pub(super) low: u64,
    /// The separator word of the right neighbour's low key, if there is a neighbour.
    pub(super) high: Option<u64>,
}

/// The record and the leaf that a base depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BaseOrigin {
    /// The newest record of the leaf before this base, for a base that may not count.
    pub(super) previous: PmPtr,
    /// The leaf whose end makes the base count.
    pub(super) after: Option<u64>,
}

impl BaseOrigin {
    /// The origin of a base that counts once it is complete.
    pub(super) const COUNTS: Self = Self { previous: PmPtr::NULL, after: None };
}

/// Returns the defined words of a delta, without the seal.
pub(super) fn delta_image(leaf: u64, previous: PmPtr, change: EntryChange) -> [u64; DELTA_WORDS] {
    let kind = if change.is_removed { RecordKind::Removed } else { RecordKind::Put };
    let head = RecordHeader { kind, leaf }.word();
    [head, previous.offset(), change.entry.key, change.entry.value]
}

/// Returns the defined words of an end record, without the seal.
pub(super) fn end_image(leaf: u64, successors: [Option<u64>; 2]) -> [u64; END_WORDS] {
    let [first, second] = successors.map(|leaf| leaf.map_or(0, |leaf| leaf + 1));
    [RecordHeader { kind: RecordKind::End, leaf }.word(), first, second]
}

/// Returns the successors that the end record in `words` names.
pub(super) fn successors<M: Medium>(medium: &M, words: &[PmWord]) -> [Option<u64>; 2] {
    SUCCESSORS.map(|at| medium.load(&words[at]).checked_sub(1))
}

/// Returns the words of a base. Its seals are not set yet.
pub(super) fn base_image<'e>(
    leaf: u64,
    origin: BaseOrigin,
    range: LeafRange,
    items: impl ExactSizeIterator<Item = &'e Entry>,
) -> Vec<u64> {
    let count = items.len();
    let mut image = vec![0; base_lines(count) * LINE_WORDS];
    image[HEAD] = RecordHeader { kind: RecordKind::Base(count), leaf }.word();
    image[PREVIOUS] = origin.previous.offset() | if range.high.is_some() { HAS_HIGH } else { 0 };
    image[AFTER] = origin.after.map_or(0, |leaf| leaf + 1);
    image[LOW] = range.low;
    image[HIGH] = range.high.unwrap_or(0);
    for (at, item) in items.enumerate() {
        let [key, value] = item_words(at);
        (image[key], image[value]) = (item.key, item.value);
    }
    image
}

/// Returns the number of lines of an image.
pub(super) const fn lines_of(image: &[u64]) -> usize {
    image.len().div_ceil(LINE_WORDS)
}

/// Stores a record into lines that no record with these positions has used, and flushes them.
///
/// ```text
/// for each line: W words     crash before the last C: no record
///                C seal      8 B, same line, last
/// F lines                    durable after the next fence
/// ```
pub(super) fn write<M: Medium>(medium: &M, words: &[PmWord], image: &[u64], position: u64) {
    let lines = lines_of(image);
    debug_assert_eq!(words.len(), lines * LINE_WORDS);
    for (line, (target, source)) in
        words.chunks(LINE_WORDS).zip(image.chunks(LINE_WORDS)).enumerate()
    {
        for (word, &value) in target[..SEAL].iter().zip(source) {
            medium.store(word, value);
        }
        medium.store(&target[SEAL], seal(position, lines, line));
    }
    medium.flush(words);
}

/// A delta: a change, and the record before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeltaRecord {
    pub(super) change: EntryChange,
    pub(super) previous: PmPtr,
}

/// Returns the delta at `at`.
#[inline(always)]
pub(super) fn delta<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<DeltaRecord, Corrupt> {
    let words = pool.words(at, LINE_WORDS)?;
    let [head, previous, key, value] =
        [HEAD, PREVIOUS, KEY, VALUE].map(|at| pool.medium().load(&words[at]));
    let is_removed = head >> KIND_SHIFT == 2;
    let change = EntryChange { entry: Entry::plain(key, value), is_removed };
    Ok(DeltaRecord { change, previous: PmPtr::new(previous) })
}

/// A base record in the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseRecord<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
    pub(super) items: usize,
}

impl<'a> BaseRecord<'a> {
    #[inline(always)]
    pub(super) fn new<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        items: usize,
    ) -> Result<Self, Corrupt> {
        Ok(Self { at, words: pool.words(at, base_lines(items) * LINE_WORDS)?, items })
    }

    #[inline(always)]
    pub(super) fn prefetch<M: Medium>(&self, medium: &M) {
        medium.prefetch(self.words);
    }

    pub(super) fn range<M: Medium>(&self, medium: &M) -> LeafRange {
        let [previous, low, high] = [PREVIOUS, LOW, HIGH].map(|at| medium.load(&self.words[at]));
        LeafRange { low, high: (previous & HAS_HIGH != 0).then_some(high) }
    }

    pub(super) fn origin<M: Medium>(&self, medium: &M) -> BaseOrigin {
        let [previous, after] = [PREVIOUS, AFTER].map(|at| medium.load(&self.words[at]));
        BaseOrigin { previous: PmPtr::new(previous & !HAS_HIGH), after: after.checked_sub(1) }
    }

    #[inline(always)]
    pub(super) fn item<M: Medium>(&self, medium: &M, at: usize) -> Entry {
        let [key, value] = item_words(at).map(|word| medium.load(&self.words[word]));
        Entry::plain(key, value)
    }
}
