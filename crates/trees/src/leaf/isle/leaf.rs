//! The isle leaf in a hybrid index: what is at or above the right neighbour's low key does not count.

use super::count_word::CountWord;
use super::line::LineView;
use super::{Isle, LATCH, LOW, NEXT};
use crate::key::{Entry, Key, Value};
use crate::leaf::{InsertResult, Leaf, TaggedEntry};
use crate::sorting::sort_pairs;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};

impl<T: CountWord, const NODE: usize> Isle<T, NODE> {
    /// `entries` in key order.
    fn sorted<K: Key, M: Medium>(
        pool: &Pool<M>,
        entries: &[TaggedEntry],
    ) -> Result<Vec<Entry>, Corrupt> {
        let mut sorted = Vec::with_capacity(entries.len());
        for &TaggedEntry { entry, .. } in entries {
            sorted.push((K::read(pool, entry.key)?, entry));
        }
        sort_pairs(&mut sorted);
        Ok(sorted.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Checks that the keys of a line increase.
    fn check_order<K: Key, M: Medium>(
        pool: &Pool<M>,
        at: u64,
        line: &LineView<'_, M, T>,
        count: usize,
    ) -> Result<(), Corrupt> {
        for place in 1..count {
            let (left, right) = (line.key(place - 1), line.key(place));
            let key = K::read(pool, left)?;
            if !K::order(pool, right, K::borrow(&key))?.is_gt() {
                let at = at + 8 * line.word(place) as u64;
                let what = "keys of a line out of order";
                return Err(Corrupt { at, what, expected: left, found: right });
            }
        }
        match line.behind(count) {
            None => Ok(()),
            Some((word, found)) => {
                let (at, what) = (at + 8 * word as u64, "a key behind the end of a line");
                Err(Corrupt { at, what, expected: 0, found })
            }
        }
    }
}

impl<T: CountWord, const NODE: usize> Leaf for Isle<T, NODE> {
    const WORDS: usize = Self::BLOCK_WORDS;
    const CAPACITY: usize = Self::PAIRS;
    const NEXT: usize = NEXT;
    const LOW: usize = LOW;
    const LATCH: usize = LATCH;

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let mut image = Self::image(&Self::sorted::<K, M>(pool, entries)?);
        image[NEXT] = next;
        image[LOW] = low;
        let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        pool.medium().fill(words, &bytes);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let medium = pool.medium();
        let found = Self::search(medium, words, |_, word| K::order(pool, word, key))?;
        Ok(found.map(|at| (at, Value::plain(medium.load(&words[at + 1])))))
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        for line in Self::lines(medium, words) {
            let held = |place| TaggedEntry { entry: line.entry(place), fingerprint: 0 };
            entries.extend((0..line.count()).map(held));
        }
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::pairs(medium, words)
    }

    /// ```text
    /// N key's record |          only if the layer has records; crash: free again
    /// A pair: [`Isle::add`]     -> durable
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let medium = pool.medium();
        let room = Self::vacancy(medium, words, |_, word| K::order(pool, word, key))?;
        let Some(at) = room else { return Ok(InsertResult::Full) };
        let entry = Entry::plain(K::store_separator(pool, key)?, value.word);
        if !K::EXACT {
            // The line may be written back, the new key word with it, before it is flushed.
            let _ = medium.fence();
        }
        Ok(InsertResult::Done(Self::add(medium, words, at, entry)))
    }

    /// ```text
    /// C value[i]                8 B
    /// F its line |              -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn update<M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        medium.store(&words[slot + 1], value.word);
        Some(medium.persist(&words[slot + 1..=slot + 1]))
    }

    /// As `Isle::take`.
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        Self::take(pool.medium(), words, slot).0
    }

    /// What is hidden is above all that is not: in each line it is the end.
    ///
    /// ```text
    /// W lines: [`LineView::truncate`]   what it drops was hidden already
    /// A tally: [`CountWord::publish`]   -> durable
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let mut changed = Vec::with_capacity(Self::LINES);
        for line in Self::lines(medium, words) {
            let count = line.count();
            for place in 0..count {
                if !keep(line.entry(place))? {
                    line.truncate(place, count);
                    changed.push((line.index(), place));
                    break;
                }
            }
        }
        if !changed.is_empty() {
            let _ = T::publish(medium, words, &changed);
        }
        Ok(())
    }

    /// ```text
    /// W lines: [`LineView::insert`] at their ends   crash: hidden by the neighbour's low key
    /// A tally: [`CountWord::publish`]               -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let medium = pool.medium();
        let sorted = Self::sorted::<K, M>(pool, entries)?;
        let mut left = sorted.into_iter().peekable();
        let mut changed = Vec::with_capacity(Self::LINES);
        for line in Self::lines(medium, words) {
            let count = line.count();
            let mut filled = count;
            while filled < line.places()
                && let Some(entry) = left.next()
            {
                line.insert(filled, filled, entry);
                filled += 1;
            }
            if filled > count {
                changed.push((line.index(), filled));
            }
        }
        debug_assert!(left.peek().is_none(), "what is absorbed fits");
        Ok(T::publish(medium, words, &changed))
    }

    /// As `Isle::mend`, which checks that the keys of each line increase.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        Self::mend(pool.medium(), words, |line, count| {
            Self::check_order::<K, M>(pool, at, line, count)
        })
    }
}
