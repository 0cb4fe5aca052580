//! The leaf of Isle-Tree: pairs are sorted within each line, and lines are in no order.
//!
//! For `L` lines of 64 B, of which line 0 is, or begins with, the header:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | next | commit | the leaf to the right |
//! | 1 | 8 | low | data | separator word of the low key; the [layout of a node](crate::node::Layout) has its mark here |
//! | 2 | 8 | latch | transient | version |
//! | 3.. | | tally | commit | see [`tally`]: what says that the first pair of a line is there |
//! | | 16 each | pairs | commit | key word, value word; four to a line |
//!
//! 1. Key words differ where keys do, and word 0 is that of the least key. So in a line, which is
//!    sorted, it can be live at the first place only: at any other place it marks a vacancy, and
//!    all places behind a vacancy are vacant.
//! 2. The first pair of a line is there if the second is, or if the tally says so.
//! 3. Of two neighbours with the same key word the right one counts. Only a crash leaves such two,
//!    and recovery takes the left one away. Any value may be in any number of pairs.
//! 4. So each store of a shift leaves a line that reads as before the operation, or as after it, and
//!    stores to one line persist in order: one flush makes all of a shift durable.

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
/// The low key, or the mark.
pub(crate) const LOW: usize = 1;
pub(crate) const LATCH: usize = 2;
/// The first word of the tally.
pub(crate) const TALLY: usize = 3;
/// The most lines that a leaf can have.
pub(crate) const LINES_MAX: usize = 32;

/// The leaf of `NODE` bytes with the tally `T`. The words of its entries' keys must differ where keys
/// do, so it stores layers as [`UniqueWords`](crate::unique_words::UniqueWords).
///
/// What is here is what the leaf of a hybrid index and the layout of a node have in common.
#[derive(Debug)]
pub struct Isle<T, const NODE: usize>(PhantomData<fn() -> T>);

impl<T: CountWord, const NODE: usize> Isle<T, NODE> {
    /// Words of the block.
    pub(crate) const BLOCK_WORDS: usize = NODE / 8;
    /// Pairs that there is room for.
    pub(crate) const PAIRS: usize = (Self::BLOCK_WORDS - T::HEADER_WORDS) / 2;
    const LINES: usize = NODE / (8 * LINE_WORDS);
    const GEOMETRY: () = assert!(
        NODE.is_multiple_of(8 * LINE_WORDS)
            && T::HEADER_WORDS.is_multiple_of(2)
            && T::HEADER_WORDS <= LINE_WORDS
            && Self::LINES > 1
            && Self::LINES <= LINES_MAX
    );
    /// The first line that holds pairs.
    const FIRST_LINE: usize = T::HEADER_WORDS / LINE_WORDS;

    /// The lines that hold pairs.
    #[inline(always)]
    fn lines<'p, M: Medium>(
        medium: &'p M,
        words: &'p [PmWord],
    ) -> impl Iterator<Item = LineView<'p, M, T>> {
        (Self::FIRST_LINE..Self::LINES).map(move |index| LineView::new(medium, words, index))
    }

    /// The indices of these lines, each with the pairs that have their places there. Pair `i` begins
    /// at the word `HEADER_WORDS + 2 * i`.
    pub(crate) fn spans() -> impl Iterator<Item = (usize, Range<usize>)> {
        let pairs_before = |word: usize| word.saturating_sub(T::HEADER_WORDS) / 2;
        (Self::FIRST_LINE..Self::LINES).map(move |line| {
            (line, pairs_before(LINE_WORDS * line)..pairs_before(LINE_WORDS * (line + 1)))
        })
    }

    /// The words of a fresh leaf with `entries`, in key order. Lines are filled one after the other,
    /// so that the next split finds whole lines on either side. All of the block is written, for one
    /// that was used before may hold anything.
    pub(crate) fn image(entries: &[Entry]) -> Vec<u64> {
        const { Self::GEOMETRY };
        let mut image = vec![0; Self::BLOCK_WORDS];
        let (places, _) = image[T::HEADER_WORDS..].as_chunks_mut();
        for (place, entry) in places.iter_mut().zip(entries) {
            *place = [entry.key, entry.value];
        }
        for (line, pairs) in Self::spans() {
            T::imprint(&mut image, line, entries.len().clamp(pairs.start, pairs.end) - pairs.start);
        }
        image
    }

    /// The word at which the pair begins that `order` finds equal; `order` gets that word and its
    /// content. A greater key ends the search of a line, not of the leaf: the paper's hop.
    #[inline(always)]
    pub(crate) fn search<M: Medium>(
        medium: &M,
        words: &[PmWord],
        mut order: impl FnMut(usize, u64) -> Result<Ordering, Corrupt>,
    ) -> Result<Option<usize>, Corrupt> {
        for line in Self::lines(medium, words) {
            if !line.has_first() {
                continue;
            }
            for place in 0..line.places() {
                let key = line.key(place);
                if key == 0 && place > 0 {
                    break;
                }
                match order(line.word(place), key)? {
                    Ordering::Less => {}
                    Ordering::Equal => return Ok(Some(line.word(place))),
                    Ordering::Greater => break,
                }
            }
        }
        Ok(None)
    }

    /// The word at which the pair of an absent key is to begin, in the first line with a vacancy.
    #[inline(always)]
    pub(crate) fn vacancy<M: Medium>(
        medium: &M,
        words: &[PmWord],
        mut order: impl FnMut(usize, u64) -> Result<Ordering, Corrupt>,
    ) -> Result<Option<usize>, Corrupt> {
        let roomy = |line: LineView<'_, M, T>| match line.count() {
            count if count < line.places() => Some((line.index(), count)),
            _ => None,
        };
        let Some((index, count)) = Self::lines(medium, words).find_map(roomy) else {
            return Ok(None);
        };
        let line = LineView::<M, T>::new(medium, words, index);
        let mut place = 0;
        while place < count && order(line.word(place), line.key(place))?.is_lt() {
            place += 1;
        }
        Ok(Some(line.word(place)))
    }

    /// How many pairs there are.
    pub(crate) fn pairs<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::lines(medium, words).map(|line| line.count()).sum()
    }

    /// Inserts `entry` at a word that [`vacancy`](Self::vacancy) gave.
    ///
    /// ```text
    /// W a line: [`LineView::insert`] its last store is C, but in an empty line
    /// A tally: [`CountWord::publish`]   -> durable
    /// ```
    #[inline(always)]
    pub(crate) fn add<M: Medium>(medium: &M, words: &[PmWord], at: usize, entry: Entry) -> Fenced {
        let line = LineView::<M, T>::new(medium, words, at / LINE_WORDS);
        let (place, count) = (line.place(at), line.count());
        assert!(place <= count && count < line.places(), "the caller has seen room");
        line.insert(place, count, entry);
        T::publish(medium, words, &[(line.index(), count + 1)])
    }

    /// Takes out the pair that begins at that word, and gives it.
    ///
    /// ```text
    /// W a line: [`LineView::remove`]    its first store is C, but of the only pair
    /// A tally: [`CountWord::publish`]   -> durable
    /// ```
    #[inline(always)]
    pub(crate) fn take<M: Medium>(medium: &M, words: &[PmWord], at: usize) -> (Entry, Fenced) {
        let line = LineView::<M, T>::new(medium, words, at / LINE_WORDS);
        let (place, count) = (line.place(at), line.count());
        let entry = line.entry(place);
        line.remove(place, count);
        (entry, T::publish(medium, words, &[(line.index(), count - 1)]))
    }

    /// After a crash: makes good what [`is_hurt`](Self::is_hurt) finds. `check` is shown each line
    /// and the number of its pairs before its tally is.
    ///
    /// ```text
    /// W lines: [`LineView::remove`]     of the left one of two with one key: it did not count
    /// A tally: [`CountWord::publish`]   -> durable, and only where something is wrong
    /// ```
    ///
    /// # Errors
    /// What `check` says.
    fn mend<M: Medium, E>(
        medium: &M,
        words: &[PmWord],
        mut check: impl FnMut(&LineView<'_, M, T>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut changed = Vec::new();
        for line in Self::lines(medium, words) {
            let found = line.count();
            let mut count = found;
            while M::INJECTS_DEFECTS && medium.injects(Defect::ValuesEqual) {
                let Some(place) = line.repeats_value(count) else { break };
                line.remove(place, count);
                count -= 1;
            }
            while let Some(place) = line.repeated(count) {
                line.remove(place, count);
                count -= 1;
            }
            check(&line, count)?;
            if count != found || !T::agrees(medium, words, line.index(), count) {
                changed.push((line.index(), count));
            }
        }
        if !changed.is_empty() {
            let _ = T::publish(medium, words, &changed);
        }
        Ok(())
    }

    /// Makes good what [`is_hurt`](Self::is_hurt) finds. Durable at return.
    pub(crate) fn heal<M: Medium>(medium: &M, words: &[PmWord]) {
        let Ok(()) = Self::mend(medium, words, |_, _| Ok::<(), Infallible>(()));
    }

    /// Whether a crash has left a pair twice, or a tally that is not of its line.
    pub(crate) fn is_hurt<M: Medium>(medium: &M, words: &[PmWord]) -> bool {
        Self::lines(medium, words).any(|line| {
            let count = line.count();
            let agrees = || T::agrees(medium, words, line.index(), count);
            line.repeated(count).is_some() || !agrees()
        })
    }

    /// The words at which pairs begin that count: of two with one key the right one.
    ///
    /// # Errors
    /// The word, and what it holds, of a key behind the end of its line.
    pub(crate) fn begins<M: Medium>(
        medium: &M,
        words: &[PmWord],
    ) -> Result<Vec<usize>, (usize, u64)> {
        let mut begins = Vec::with_capacity(Self::PAIRS);
        for line in Self::lines(medium, words) {
            let count = line.count();
            if let Some(stray) = line.behind(count) {
                return Err(stray);
            }
            let counts =
                |&place: &usize| place + 1 == count || line.key(place) != line.key(place + 1);
            begins.extend((0..count).filter(counts).map(|place| line.word(place)));
        }
        Ok(begins)
    }
}
