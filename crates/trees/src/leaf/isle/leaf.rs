//! The isle leaf in a hybrid index, where pairs at or above the right neighbour's low key are
//! hidden.

use super::count_word::CountWord;
use super::line::LineView;
use super::{Isle, LATCH, LOW, NEXT};
use crate::key::{Entry, Key, Value};
use crate::leaf::{InsertResult, Leaf, TaggedEntry};
use crate::sorting::sort_pairs;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};

impl<T: CountWord, const NODE: usize> Isle<T, NODE> {
    /// Returns `entries` in key order.
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

    /// Checks that the keys of a line increase and that its vacant positions hold key word 0.
    fn check_order<K: Key, M: Medium>(
        pool: &Pool<M>,
        at: u64,
        line: &LineView<'_, M, T>,
        count: usize,
    ) -> Result<(), Corrupt> {
        for position in 1..count {
            let (left, right) = (line.key(position - 1), line.key(position));
            let key = K::read(pool, left)?;
            if !K::order(pool, right, K::borrow(&key))?.is_gt() {
                let at = at + 8 * line.word(position) as u64;
                let what = "keys of an isle line out of order";
                return Err(Corrupt { at, what, expected: left, found: right });
            }
        }
        match line.stray_key(count) {
            None => Ok(()),
            Some((word, found)) => {
                let (at, what) = (at + 8 * word as u64, "key after the end of an isle line");
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
            let tagged = |position| TaggedEntry { entry: line.entry(position), fingerprint: 0 };
            entries.extend((0..line.count()).map(tagged));
        }
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::pair_count(medium, words)
    }

    /// ```text
    /// N key's record |             only if the layer has records; crash: free again
    /// A pair: [`Isle::insert_pair`] -> durable
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let medium = pool.medium();
        let vacancy = Self::find_vacancy(medium, words, |_, word| K::order(pool, word, key))?;
        let Some(at) = vacancy else { return Ok(InsertResult::Full) };
        let entry = Entry::plain(K::store_separator(pool, key)?, value.word);
        if !K::EXACT {
            // The cache may write the line, with the new key word, back before its flush. So the
            // key's record must be durable before the pair is stored.
            let _ = medium.fence();
        }
        Ok(InsertResult::Done(Self::insert_pair(medium, words, at, entry)))
    }

    /// ```text
    /// C value[i]                8 B
    /// F its line |              -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let medium = pool.medium();
        medium.store(&words[slot + 1], value.word);
        Some(medium.persist(&words[slot + 1..=slot + 1]))
    }

    /// Persist order: that of `Isle::remove_pair`.
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        Self::remove_pair(pool.medium(), words, slot).0
    }

    /// Hidden pairs lie above all others, so in each line the pairs to drop are the last ones.
    ///
    /// ```text
    /// W lines: [`LineView::truncate`]             the dropped pairs were hidden already
    /// A count words: [`CountWord::commit_counts`] -> durable
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let mut changed = Vec::with_capacity(Self::LINES);
        for line in Self::lines(medium, words) {
            let count = line.count();
            for position in 0..count {
                if !keep(line.entry(position))? {
                    line.truncate(position, count);
                    changed.push((line.index(), position));
                    break;
                }
            }
        }
        if !changed.is_empty() {
            let _ = T::commit_counts(medium, words, &changed);
        }
        Ok(())
    }

    /// ```text
    /// W lines: [`LineView::insert`], at their ends  crash: hidden by the neighbour's low key
    /// A count words: [`CountWord::commit_counts`]   -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let medium = pool.medium();
        let sorted = Self::sorted::<K, M>(pool, entries)?;
        let mut remaining = sorted.into_iter().peekable();
        let mut changed = Vec::with_capacity(Self::LINES);
        for line in Self::lines(medium, words) {
            let count = line.count();
            let mut filled = count;
            while filled < line.capacity()
                && let Some(entry) = remaining.next()
            {
                line.insert(filled, filled, entry);
                filled += 1;
            }
            if filled > count {
                changed.push((line.index(), filled));
            }
        }
        debug_assert!(remaining.peek().is_none(), "the absorbed entries fit");
        Ok(T::commit_counts(medium, words, &changed))
    }

    /// Persist order: that of `Isle::repair_lines_with`. Also checks that the keys of each line
    /// increase.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        Self::repair_lines_with(pool.medium(), words, |line, count| {
            Self::check_order::<K, M>(pool, at, line, count)
        })
    }
}
