//! The leaf of Isle-Tree: pairs are sorted within each line, and the lines are in no order.
//!
//! For `L` lines of 64 B, of which line 0 is, or begins with, the header:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | next | commit | the right neighbour |
//! | 1 | 8 | low | data | separator word of the low key; mark of a [node](crate::node::Layout) |
//! | 2 | 8 | latch | transient | version; unused if the parent has the lock |
//! | 3.. | | count words | commit | see [`count_word`] |
//! | | 16 each | pairs | commit | key word, value word; four to a line |
//!
//! 1. Key words of different keys differ, and word 0 is that of the least key. A line is sorted, so
//!    key word 0 can be a key only at position 0. At any other position it marks a vacancy, and all
//!    later positions are vacant too.
//! 2. The first pair of a line is valid if the second is, or if the count word says so.
//! 3. Of two neighbours with equal key words the right one is valid. Only a crash leaves such two,
//!    and recovery removes the left one. Values may repeat.
//! 4. Each store of a shift leaves a line that reads as before the operation or as after it, and
//!    stores to one line persist in their order. So one flush makes a whole shift durable.

pub mod count_word;
mod leaf;
mod line;

use crate::key::Entry;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord};
use core::cmp::Ordering;
use core::convert::Infallible;
use core::marker::PhantomData;
use core::ops::Range;
use count_word::CountWord;
use line::LineView;

pub(crate) const NEXT: usize = 0;
/// The index of the word of the low key, or of a node's mark.
pub(crate) const LOW: usize = 1;
pub(crate) const LATCH: usize = 2;
/// The index of the first count word in the header.
pub(crate) const COUNT_WORD: usize = 3;
/// The maximum number of lines of a leaf.
pub(crate) const LINES_MAX: usize = 32;

/// The isle leaf of `NODE` bytes with the count word `T`. Key words of different keys must differ,
/// so it stores layers as [`UniqueWords`](crate::unique_words::UniqueWords).
///
/// This block holds the parts that the leaf of a hybrid index and the layout of a node share.
#[derive(Debug)]
pub struct Isle<T, const NODE: usize>(PhantomData<fn() -> T>);

impl<T: CountWord, const NODE: usize> Isle<T, NODE> {
    /// The size of the block in words of 8 B.
    pub(crate) const BLOCK_WORDS: usize = NODE / 8;
    /// The maximum number of pairs.
    pub(crate) const PAIRS: usize = (Self::BLOCK_WORDS - T::HEADER_WORDS) / 2;
    const LINES: usize = NODE / (8 * LINE_WORDS);
    const GEOMETRY: () = assert!(
        NODE.is_multiple_of(8 * LINE_WORDS)
            && T::HEADER_WORDS.is_multiple_of(2)
            && T::HEADER_WORDS <= LINE_WORDS
            && Self::LINES > 1
            && Self::LINES <= LINES_MAX
    );
    const FIRST_LINE: usize = T::HEADER_WORDS / LINE_WORDS;

    /// Yields views of the lines that hold pairs.
    #[inline(always)]
    fn lines<'p, M: Medium>(
        medium: &'p M,
        words: &'p [PmWord],
    ) -> impl Iterator<Item = LineView<'p, M, T>> {
        (Self::FIRST_LINE..Self::LINES).map(move |index| LineView::new(medium, words, index))
    }

    /// Yields the index of each line that holds pairs, with the indices of its pairs. Pair `i`
    /// begins at the word `HEADER_WORDS + 2 * i`.
    pub(crate) fn line_ranges() -> impl Iterator<Item = (usize, Range<usize>)> {
        let pairs_before = |word: usize| word.saturating_sub(T::HEADER_WORDS) / 2;
        (Self::FIRST_LINE..Self::LINES).map(move |line| {
            (line, pairs_before(LINE_WORDS * line)..pairs_before(LINE_WORDS * (line + 1)))
        })
    }

    /// Returns the words of a fresh leaf with `entries`, which are in key order. It fills one line
    /// after the other, so that the next split finds whole lines on either side. The words cover
    /// the whole block, because a reused block may hold anything, and a vacancy must be 0.
    pub(crate) fn image(entries: &[Entry]) -> Vec<u64> {
        const { Self::GEOMETRY };
        let mut image = vec![0; Self::BLOCK_WORDS];
        let (places, _) = image[T::HEADER_WORDS..].as_chunks_mut();
        for (position, entry) in places.iter_mut().zip(entries) {
            *position = [entry.key, entry.value];
        }
        for (line, pairs) in Self::line_ranges() {
            T::encode_count(
                &mut image,
                line,
                entries.len().clamp(pairs.start, pairs.end) - pairs.start,
            );
        }
        image
    }

    /// Returns the word at which the pair begins that `order` finds equal. `order` gets the index
    /// of a key word and its content. A greater key ends the search of a line, not of the leaf: the
    /// paper's hop.
    #[inline(always)]
    pub(crate) fn search<M: Medium>(
        medium: &M,
        words: &[PmWord],
        mut order: impl FnMut(usize, u64) -> Result<Ordering, Corrupt>,
    ) -> Result<Option<usize>, Corrupt> {
        for line in Self::lines(medium, words) {
            if !line.is_nonempty() {
                continue;
            }
            for position in 0..line.capacity() {
                let key = line.key(position);
                if key == 0 && position > 0 {
                    break;
                }
                match order(line.word(position), key)? {
                    Ordering::Less => {}
                    Ordering::Equal => return Ok(Some(line.word(position))),
                    Ordering::Greater => break,
                }
            }
        }
        Ok(None)
    }

    /// Returns the word at which the pair of an absent key must begin, in the first line with a
    /// vacancy; `None` if the leaf is full.
    #[inline(always)]
    pub(crate) fn find_vacancy<M: Medium>(
        medium: &M,
        words: &[PmWord],
        mut order: impl FnMut(usize, u64) -> Result<Ordering, Corrupt>,
    ) -> Result<Option<usize>, Corrupt> {
        let with_vacancy = |line: LineView<'_, M, T>| match line.settled_count() {
            count if count < line.capacity() => Some((line.index(), count)),
            _ => None,
        };
        let Some((index, count)) = Self::lines(medium, words).find_map(with_vacancy) else {
            return Ok(None);
        };
        let line = LineView::<M, T>::new(medium, words, index);
        let mut position = 0;
        while position < count && order(line.word(position), line.key(position))?.is_lt() {
            position += 1;
        }
        Ok(Some(line.word(position)))
    }

    /// Returns the number of pairs in the leaf.
    pub(crate) fn pair_count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::lines(medium, words).map(|line| line.settled_count()).sum()
    }

    /// Inserts `entry` at a word that [`find_vacancy`](Self::find_vacancy) returned.
    ///
    /// ```text
    /// W a line: [`LineView::insert`]              its last store is C, unless the line was empty
    /// A count word: [`CountWord::commit_counts`]  -> durable
    /// ```
    #[inline(always)]
    pub(crate) fn insert_pair<M: Medium>(
        medium: &M,
        words: &[PmWord],
        at: usize,
        entry: Entry,
    ) -> Fenced {
        let line = LineView::<M, T>::new(medium, words, at / LINE_WORDS);
        let (position, count) = (line.position(at), line.settled_count());
        assert!(
            position <= count && count < line.capacity(),
            "the line has a vacancy at the word that find_vacancy returned"
        );
        line.insert(position, count, entry);
        T::commit_counts(medium, words, &[(line.index(), count + 1)])
    }

    /// Removes the pair that begins at word `at` and returns it.
    ///
    /// ```text
    /// W a line: [`LineView::remove`]              its first store is C, unless it is the only pair
    /// A count word: [`CountWord::commit_counts`]  -> durable
    /// ```
    #[inline(always)]
    pub(crate) fn remove_pair<M: Medium>(
        medium: &M,
        words: &[PmWord],
        at: usize,
    ) -> (Entry, Fenced) {
        let line = LineView::<M, T>::new(medium, words, at / LINE_WORDS);
        let (position, count) = (line.position(at), line.count());
        let entry = line.entry(position);
        line.remove(position, count);
        (entry, T::commit_counts(medium, words, &[(line.index(), count - 1)]))
    }

    /// Repairs, after a crash, the lines that [`lines_need_repair`](Self::lines_need_repair)
    /// reports. Calls `check` with each line and its number of pairs before it writes the count
    /// word.
    ///
    /// ```text
    /// W lines: [`LineView::remove`]               of the left one of two equal keys (invalid)
    /// A count words: [`CountWord::commit_counts`] -> durable; only if a line needs repair
    /// ```
    ///
    /// # Errors
    /// The error of `check`.
    fn repair_lines_with<M: Medium, E>(
        medium: &M,
        words: &[PmWord],
        mut check: impl FnMut(&LineView<'_, M, T>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut changed = Vec::new();
        for line in Self::lines(medium, words) {
            let found = line.count();
            let mut count = found;
            while M::INJECTS_DEFECTS && medium.injects(Defect::ValuesEqual) {
                let Some(position) = line.duplicate_value(count) else { break };
                line.remove(position, count);
                count -= 1;
            }
            while let Some(position) = line.duplicate_key(count) {
                line.remove(position, count);
                count -= 1;
            }
            check(&line, count)?;
            if count != found || !T::matches_count(medium, words, line.index(), count) {
                changed.push((line.index(), count));
            }
        }
        if !changed.is_empty() {
            let _ = T::commit_counts(medium, words, &changed);
        }
        Ok(())
    }

    /// Repairs the lines that [`lines_need_repair`](Self::lines_need_repair) reports. Durable on
    /// return.
    pub(crate) fn repair_lines<M: Medium>(medium: &M, words: &[PmWord]) {
        let Ok(()) = Self::repair_lines_with(medium, words, |_, _| Ok::<(), Infallible>(()));
    }

    /// Returns `true` if a crash has left two equal keys in a line, or a count word that does not
    /// match its line.
    pub(crate) fn lines_need_repair<M: Medium>(medium: &M, words: &[PmWord]) -> bool {
        Self::lines(medium, words).any(|line| {
            let count = line.count();
            let agrees = || T::matches_count(medium, words, line.index(), count);
            line.duplicate_key(count).is_some() || !agrees()
        })
    }

    /// Returns the words at which valid pairs begin: of two equal keys, the right one.
    ///
    /// # Errors
    /// The word, and its content, of a nonzero key after the end of its line.
    pub(crate) fn valid_pair_words<M: Medium>(
        medium: &M,
        words: &[PmWord],
    ) -> Result<Vec<usize>, (usize, u64)> {
        let mut begins = Vec::with_capacity(Self::PAIRS);
        for line in Self::lines(medium, words) {
            let count = line.count();
            if let Some(stray) = line.stray_key(count) {
                return Err(stray);
            }
            let is_valid = |&position: &usize| {
                position + 1 == count || line.key(position) != line.key(position + 1)
            };
            begins.extend((0..count).filter(is_valid).map(|position| line.word(position)));
        }
        Ok(begins)
    }
}
