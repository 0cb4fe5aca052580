//! Records: what a log holds. A record is one line or more of 64 B, each sealed by its last word.
//!
//! The first line of a base, which is all that a leaf holds up to its sequence number, in key order:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | head | data | bits 0..48: leaf; bits 48..56: items; bits 56..64: kind, 3 |
//! | 1 | sequence | data | the newest change of the leaf that is in it |
//! | 2 | right | data | one more than the leaf to the right, or 0 |
//! | 3 | low | data | separator word of the low key; it never changes |
//! | 4 | item 0 | data | key word, value word |
//! | 6 | high | data | the low word of the leaf to the right, if there is one |
//! | 7 | seal | commit | bits 0..8: line of the record; bits 8..16: its lines; bits 16..64: use of the chunk |
//!
//! Each further line has three items, a spare word, and its seal. A delta, which is one change, is a line:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | head | data | bits 0..48: leaf; bits 56..64: kind, 1: put, 2: removed |
//! | 1 | sequence | data | one more than that of the change before it |
//! | 2 | key word, value word | data | of a key that was removed: the last one |
//! | 4 | | | whatever was there |
//! | 7 | seal | commit | as above |
//!
//! 1. A line counts if its seal has the use of its chunk; a record counts if all of its lines do. The seal
//!    is stored last, so a seal that counts stands on whole content.
//! 2. Within one use of a chunk each line is written once. So lines that count and lie side by side as
//!    their seals say belong together.
//! 3. A record says which leaf it is about, and which change: so one that counts no more is known without
//!    its keys being read, for their records may be gone; and a copy says what its original says.

use crate::key::Entry;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The greatest number of a leaf.
pub(super) const LEAF_MAX: u64 = (1 << 48) - 1;
/// The greatest number of times that a chunk is begun: half of what a seal has room for, since the largest
/// one that a file may name is counted on from.
pub(super) const USE_MAX: u64 = (1 << 47) - 1;
/// The greatest sequence number of a change that a file may name. Changes are counted on from it, and no leaf
/// lives through so many.
pub(super) const SEQUENCE_MAX: u64 = u64::MAX / 2;

const HEAD: usize = 0;
const SEQUENCE: usize = 1;
const RIGHT: usize = 2;
const LOW: usize = 3;
const HIGH: usize = 6;
const SEAL: usize = LINE_WORDS - 1;
const KEY: usize = 2;
const VALUE: usize = 3;
/// Words of a delta that mean something, the seal apart.
const DELTA_WORDS: usize = 4;

const LINE_ITEMS: usize = 3;
/// Places of items that the head of a base takes.
const HEAD_ITEMS: usize = 2;

const COUNT_SHIFT: u32 = 48;
const KIND_SHIFT: u32 = 56;
const LINES_SHIFT: u32 = 8;
const USE_SHIFT: u32 = 16;

/// Lines of a base of so many items.
pub(super) const fn base_lines(items: usize) -> usize {
    (items + HEAD_ITEMS - 1) / LINE_ITEMS + 1
}

/// The place of the key word of item `at` of a base; its value word is the next.
const fn item_word(at: usize) -> usize {
    let place = at + HEAD_ITEMS;
    place / LINE_ITEMS * LINE_WORDS + 2 * (place % LINE_ITEMS)
}

const _: () = assert!(item_word(0) == LOW + 1 && item_word(1) == LINE_WORDS);

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Removed,
    /// So many items.
    Base(usize),
}

/// What a record says of itself.
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

    /// The head of the record of `words`, which its seals say is of so many lines.
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
            let (at, what) =
                (pool.offset_of(&words[SEQUENCE]).offset(), "sequence number of a change");
            return Err(Corrupt { at, what, expected: SEQUENCE_MAX, found: sequence });
        }
        let read = kind.map(|kind| Self { kind, leaf, sequence });
        read.filter(|read| read.lines() == lines && read.word() == head).ok_or_else(|| {
            let (at, what) = (pool.offset_of(&words[HEAD]).offset(), "head of a record of the log");
            Corrupt { at, what, expected: lines as u64, found: head }
        })
    }
}

/// The seal of line `line` of a record of so many lines.
fn seal(uses: u64, lines: usize, line: usize) -> u64 {
    uses << USE_SHIFT | (lines as u64) << LINES_SHIFT | line as u64
}

/// What a seal says, if it counts: the line of the record, and the lines of the record.
pub(super) fn sealed<M: Medium>(medium: &M, line: &[PmWord], uses: u64) -> Option<(usize, usize)> {
    let seal = medium.load(&line[SEAL]);
    (seal >> USE_SHIFT == uses)
        .then_some((usize::from(seal as u8), usize::from((seal >> LINES_SHIFT) as u8)))
}

/// Where a leaf is among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    /// The leaf to the right.
    pub(super) right: Option<u64>,
    /// Separator word of the low key.
    pub(super) low: u64,
    /// Separator word of the low key of the leaf to the right.
    pub(super) high: u64,
}

/// The words of a delta, but for its seal and what follows the last word that means something.
pub(super) fn delta_image(leaf: u64, sequence: u64, change: EntryChange) -> [u64; DELTA_WORDS] {
    let kind = if change.is_removed { Kind::Removed } else { Kind::Put };
    let head = RecordHead { kind, leaf, sequence }.word();
    [head, sequence, change.entry.key, change.entry.value]
}

/// The words of a base, but for its seals.
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

/// The image of a record that is there, to be written once more.
pub(super) fn image_of<M: Medium>(medium: &M, words: &[PmWord], kind: Kind) -> Vec<u64> {
    let count = if matches!(kind, Kind::Base(_)) { words.len() } else { DELTA_WORDS };
    words[..count].iter().map(|word| medium.load(word)).collect()
}

/// Lines of an image.
pub(super) const fn lines_of(image: &[u64]) -> usize {
    image.len().div_ceil(LINE_WORDS)
}

/// Stores a record into lines that nobody has written in this use of their chunk, and flushes them.
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

/// The change that the delta at `at` is.
#[inline(always)]
pub(super) fn delta<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<EntryChange, Corrupt> {
    let words = pool.words(at, LINE_WORDS)?;
    let [head, key, value] = [HEAD, KEY, VALUE].map(|at| pool.medium().load(&words[at]));
    let is_removed = head >> KIND_SHIFT == 2;
    Ok(EntryChange { entry: Entry::plain(key, value), is_removed })
}

/// A base: its place, its words, its items.
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

    /// Asks for the line of an item to be brought near.
    #[inline(always)]
    pub(super) fn prefetch_item<M: Medium>(&self, medium: &M, at: usize) {
        medium.prefetch(&self.words[item_word(at)..][..2]);
    }
}
