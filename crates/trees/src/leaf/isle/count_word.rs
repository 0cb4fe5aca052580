//! What says that the first pair of a line is there, where the second is not: one word decides, and no
//! key or value is lost for it.
//!
//! | tally | is | in | operation |
//! | --- | --- | --- | --- |
//! | [`InLine`] | a mark | the line itself | 1 line, 1 fence |
//! | [`Counters`] | a byte a line, as published | the header | 2 lines, 2 fences |

use super::TALLY;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Fenced, Medium, PmWord};

/// How a leaf tells an empty line from a line of one pair. Lines are given by their index in the leaf.
pub trait CountWord: Send + Sync + 'static {
    /// Words at the beginning of the leaf that hold no pairs.
    const HEADER_WORDS: usize;

    /// Whether a line without a second pair has a first one.
    fn shows_first<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> bool;

    /// Sees to it that the first pair of a line, which has a second one, stays when that goes. Stores
    /// alone, and to the same line.
    fn show_first<M: Medium>(medium: &M, words: &[PmWord], line: usize);

    /// Lines were changed, and have that many pairs now. Durable at return.
    fn publish<M: Medium>(medium: &M, words: &[PmWord], changed: &[(usize, usize)]) -> Fenced;

    /// Whether the tally says what it should of a line with `count` pairs.
    fn agrees<M: Medium>(medium: &M, words: &[PmWord], line: usize, count: usize) -> bool;

    /// Says in the `image` of a fresh leaf, which is zero elsewhere, that a line has `count` pairs.
    fn imprint(image: &mut [u64], line: usize, count: usize);
}

/// A mark in the line: the value word of its last place, which is vacant whenever the mark is looked
/// at. Line 0, of two places, has its mark in the header.
///
/// 1. The mark of a line without a second pair is 1 if the first is there, else 0. Of any other line it
///    is nothing, and may be a value.
#[derive(Debug)]
pub struct InLine;

impl InLine {
    #[inline(always)]
    const fn mark(line: usize) -> usize {
        if line == 0 { TALLY } else { (line + 1) * LINE_WORDS - 1 }
    }
}

impl CountWord for InLine {
    const HEADER_WORDS: usize = TALLY + 1;

    #[inline(always)]
    fn shows_first<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> bool {
        medium.load(&words[Self::mark(line)]) == 1
    }

    #[inline(always)]
    fn show_first<M: Medium>(medium: &M, words: &[PmWord], line: usize) {
        if !Self::shows_first(medium, words, line) {
            medium.store(&words[Self::mark(line)], 1);
        }
    }

    /// ```text
    /// C mark           8 B, in the lines that have one pair or none now, if it is not right already
    /// F the lines |         -> durable  budget: a line each, 1 fence
    /// ```
    #[inline(always)]
    fn publish<M: Medium>(medium: &M, words: &[PmWord], changed: &[(usize, usize)]) -> Fenced {
        for &(line, count) in changed {
            let mark = &words[Self::mark(line)];
            if !Self::agrees(medium, words, line, count) {
                medium.store(mark, count as u64);
            }
            medium.flush(core::slice::from_ref(mark));
        }
        medium.fence()
    }

    #[inline(always)]
    fn agrees<M: Medium>(medium: &M, words: &[PmWord], line: usize, count: usize) -> bool {
        count >= 2 || medium.load(&words[Self::mark(line)]) == count as u64
    }

    fn imprint(image: &mut [u64], line: usize, count: usize) {
        if count < 2 {
            image[Self::mark(line)] = count as u64;
        }
    }
}

/// Counters of a byte each in the header, which is a line of its own.
///
/// 1. The counter of a line without a second pair is 0 if there is no first one, else it is not.
/// 2. When an operation returns, each counter is the number of its line's pairs.
#[derive(Debug)]
pub struct Counters;

impl Counters {
    /// The word of a line's counter, and its lowest bit there.
    #[inline(always)]
    const fn place(line: usize) -> (usize, usize) {
        (TALLY + (line - 1) / 8, 8 * ((line - 1) % 8))
    }

    #[inline(always)]
    fn load<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> u8 {
        let (word, shift) = Self::place(line);
        (medium.load(&words[word]) >> shift) as u8
    }
}

impl CountWord for Counters {
    const HEADER_WORDS: usize = LINE_WORDS;

    #[inline(always)]
    fn shows_first<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> bool {
        Self::load(medium, words, line) != 0
    }

    /// Nothing: the counter of a line with two pairs is not 0.
    #[inline(always)]
    fn show_first<M: Medium>(_: &M, _: &[PmWord], _line: usize) {}

    /// ```text
    /// F the lines |         crash before C: a line that was empty still is
    /// C counters       8 B  of lines that have one pair or none now; of others they are hints
    /// F header |            -> durable  budget: a line each and 1 more, 2 fences
    /// ```
    #[inline(always)]
    fn publish<M: Medium>(medium: &M, words: &[PmWord], changed: &[(usize, usize)]) -> Fenced {
        for &(line, _) in changed {
            medium.flush(&words[line * LINE_WORDS..=line * LINE_WORDS]);
        }
        let _ = medium.fence();
        for &(line, count) in changed {
            let (word, shift) = Self::place(line);
            let others = medium.load(&words[word]) & !(0xff << shift);
            medium.store(&words[word], others | (count as u64) << shift);
        }
        medium.persist(&words[TALLY..=TALLY])
    }

    #[inline(always)]
    fn agrees<M: Medium>(medium: &M, words: &[PmWord], line: usize, count: usize) -> bool {
        usize::from(Self::load(medium, words, line)) == count
    }

    fn imprint(image: &mut [u64], line: usize, count: usize) {
        let (word, shift) = Self::place(line);
        image[word] |= (count as u64) << shift;
    }
}
