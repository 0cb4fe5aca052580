//! Count words: the field that decides if the first pair of a line is valid while the second is
//! not. One word commits the change, and no key or value is reserved for it.
//!
//! | count word | form | location | operation |
//! | --- | --- | --- | --- |
//! | [`InLine`] | a mark | the line itself | 1 line, 1 fence |
//! | [`Counters`] | one byte for each line, as published | the header | 2 lines, 2 fences |

use super::COUNT_WORD;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Fenced, Medium, PmWord};

/// The form of a leaf's count words. The parameter `line` is the index of a line in the leaf.
pub trait CountWord: Send + Sync + 'static {
    /// The number of words at the start of the leaf that hold no pairs.
    const HEADER_WORDS: usize;

    /// Returns `true` if a line without a second pair has a first one.
    fn has_first_pair<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> bool;

    /// Keeps the first pair of a line valid when its second pair goes, which must exist still. Only
    /// stores, and only to the same line.
    fn keep_first_pair<M: Medium>(medium: &M, words: &[PmWord], line: usize);

    /// Commits the new counts of the changed lines, given as pairs of line and count. Durable on
    /// return, with the lines themselves.
    fn commit_counts<M: Medium>(medium: &M, words: &[PmWord], changed: &[(usize, usize)])
    -> Fenced;

    /// Returns the number of pairs of a line that no operation is changing and that recovery has
    /// repaired, from its count word if that tells; `scan` counts the pairs in the line.
    fn settled_count<M: Medium>(
        medium: &M,
        words: &[PmWord],
        line: usize,
        scan: impl FnOnce() -> usize,
    ) -> usize;

    /// Returns `true` if the count word is the one for a line of `count` pairs.
    fn matches_count<M: Medium>(medium: &M, words: &[PmWord], line: usize, count: usize) -> bool;

    /// Writes the count word of a line of `count` pairs into the `image` of a fresh leaf, whose
    /// count words are 0.
    fn encode_count(image: &mut [u64], line: usize, count: usize);
}

/// A mark in the line: the value word of its last position, which is vacant whenever the mark is
/// read. Line 0 has two positions, and its mark lies in the header.
///
/// 1. In a line without a second pair the mark is 1 if the first pair is valid, else 0. In any
///    other line the word has no meaning and may be a value.
#[derive(Debug)]
pub struct InLine;

impl InLine {
    #[inline(always)]
    const fn mark(line: usize) -> usize {
        if line == 0 { COUNT_WORD } else { (line + 1) * LINE_WORDS - 1 }
    }
}

impl CountWord for InLine {
    const HEADER_WORDS: usize = COUNT_WORD + 1;

    #[inline(always)]
    fn has_first_pair<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> bool {
        medium.load(&words[Self::mark(line)]) == 1
    }

    #[inline(always)]
    fn keep_first_pair<M: Medium>(medium: &M, words: &[PmWord], line: usize) {
        if !Self::has_first_pair(medium, words, line) {
            medium.store(&words[Self::mark(line)], 1);
        }
    }

    /// ```text
    /// C mark           8 B, in lines with at most one pair, if it is not right already
    /// F the lines |         -> durable  budget: one line each, 1 fence
    /// ```
    #[inline(always)]
    fn commit_counts<M: Medium>(
        medium: &M,
        words: &[PmWord],
        changed: &[(usize, usize)],
    ) -> Fenced {
        for &(line, count) in changed {
            let mark = &words[Self::mark(line)];
            if !Self::matches_count(medium, words, line, count) {
                medium.store(mark, count as u64);
            }
            medium.flush(core::slice::from_ref(mark));
        }
        medium.fence()
    }

    /// Scans: the mark does not count the pairs of a line with two or more.
    #[inline(always)]
    fn settled_count<M: Medium>(
        _: &M,
        _: &[PmWord],
        _line: usize,
        scan: impl FnOnce() -> usize,
    ) -> usize {
        scan()
    }

    #[inline(always)]
    fn matches_count<M: Medium>(medium: &M, words: &[PmWord], line: usize, count: usize) -> bool {
        count >= 2 || medium.load(&words[Self::mark(line)]) == count as u64
    }

    fn encode_count(image: &mut [u64], line: usize, count: usize) {
        if count < 2 {
            image[Self::mark(line)] = count as u64;
        }
    }
}

/// Counters of one byte for each line, in the header, which is a line of its own.
///
/// 1. In a line without a second pair the counter is 0 if and only if the first pair is invalid.
/// 2. When an operation returns, each counter is the number of pairs in its line.
#[derive(Debug)]
pub struct Counters;

impl Counters {
    /// Returns the word of a line's counter, and the counter's lowest bit there.
    #[inline(always)]
    const fn counter_position(line: usize) -> (usize, usize) {
        (COUNT_WORD + (line - 1) / 8, 8 * ((line - 1) % 8))
    }

    #[inline(always)]
    fn load<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> u8 {
        let (word, shift) = Self::counter_position(line);
        (medium.load(&words[word]) >> shift) as u8
    }
}

impl CountWord for Counters {
    const HEADER_WORDS: usize = LINE_WORDS;

    #[inline(always)]
    fn has_first_pair<M: Medium>(medium: &M, words: &[PmWord], line: usize) -> bool {
        Self::load(medium, words, line) != 0
    }

    /// Does nothing: the counter of a line with two pairs is not 0.
    #[inline(always)]
    fn keep_first_pair<M: Medium>(_: &M, _: &[PmWord], _line: usize) {}

    /// ```text
    /// F the lines |         crash before C: a line that was empty still is
    /// C counters       8 B  of lines with at most one pair; those of other lines are hints
    /// F header |            -> durable  budget: one line each and 1 more, 2 fences
    /// ```
    #[inline(always)]
    fn commit_counts<M: Medium>(
        medium: &M,
        words: &[PmWord],
        changed: &[(usize, usize)],
    ) -> Fenced {
        for &(line, _) in changed {
            medium.flush(&words[line * LINE_WORDS..=line * LINE_WORDS]);
        }
        let _ = medium.fence();
        for &(line, count) in changed {
            let (word, shift) = Self::counter_position(line);
            let others = medium.load(&words[word]) & !(0xff << shift);
            medium.store(&words[word], others | (count as u64) << shift);
        }
        medium.persist(&words[COUNT_WORD..=COUNT_WORD])
    }

    /// Reads the counter alone, as published.
    #[inline(always)]
    fn settled_count<M: Medium>(
        medium: &M,
        words: &[PmWord],
        line: usize,
        _: impl FnOnce() -> usize,
    ) -> usize {
        Self::load(medium, words, line).into()
    }

    #[inline(always)]
    fn matches_count<M: Medium>(medium: &M, words: &[PmWord], line: usize, count: usize) -> bool {
        usize::from(Self::load(medium, words, line)) == count
    }

    fn encode_count(image: &mut [u64], line: usize, count: usize) {
        let (word, shift) = Self::counter_position(line);
        image[word] |= (count as u64) << shift;
    }
}
