//! The leaf of Isle-Tree: pairs are sorted within each line, and lines are in no order.
//!
//! For `L` lines of 64 B, of which line 0 is, or begins with, the header:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | next | commit | the leaf to the right |
//! | 1 | 8 | low | data | separator word of the low key |
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

mod line;
pub mod tally;

use crate::key::{Entry, Key, Value};
use crate::leaf::{Held, Leaf, Room};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;
use core::marker::PhantomData;
use line::Line;
use tally::Tally;

const NEXT: usize = 0;
const LOW: usize = 1;
const LATCH: usize = 2;
/// The first word of the tally.
const TALLY: usize = 3;

/// The leaf of `NODE` bytes with the tally `T`. The words of its entries' keys must differ where
/// keys do: it serves layers whose [`plant_entry`](Key::plant_entry) is their [`plant`](Key::plant).
#[derive(Debug)]
pub struct Isle<T, const NODE: usize>(PhantomData<fn() -> T>);

impl<T: Tally, const NODE: usize> Isle<T, NODE> {
    const LINES: usize = NODE / (8 * LINE_WORDS);
    const GEOMETRY: () = assert!(
        NODE.is_multiple_of(8 * LINE_WORDS)
            && T::HEADER_WORDS.is_multiple_of(2)
            && T::HEADER_WORDS <= LINE_WORDS
            && Self::LINES > 1
            && Self::LINES <= 32
    );

    /// The lines that hold pairs.
    #[inline(always)]
    fn lines<'p, M: Medium>(
        medium: &'p M,
        words: &'p [PmWord],
    ) -> impl Iterator<Item = Line<'p, M, T>> {
        let first = usize::from(T::HEADER_WORDS == LINE_WORDS);
        (first..Self::LINES).map(move |index| Line::new(medium, words, index))
    }

    /// `entries` in key order.
    fn sorted<K: Key, M: Medium>(pool: &Pool<M>, entries: &[Held]) -> Result<Vec<Entry>, Corrupt> {
        let mut sorted = Vec::with_capacity(entries.len());
        for &Held { entry, .. } in entries {
            sorted.push((K::read(pool, entry.key)?, entry));
        }
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(sorted.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Checks that the keys of a line increase.
    fn check_order<K: Key, M: Medium>(
        pool: &Pool<M>,
        at: u64,
        line: &Line<'_, M, T>,
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

impl<T: Tally, const NODE: usize> Leaf for Isle<T, NODE> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = (Self::WORDS - T::HEADER_WORDS) / 2;
    const NEXT: usize = NEXT;
    const LOW: usize = LOW;
    const LATCH: usize = LATCH;

    /// All of the block is written, for one that was used before may hold anything. Lines are filled
    /// one after the other, so that the next split finds whole lines on either side.
    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[Held],
    ) -> Result<(), Corrupt> {
        const { Self::GEOMETRY };
        let mut image = vec![0u64; Self::WORDS];
        image[NEXT] = next;
        image[LOW] = low;
        let mut left = &Self::sorted::<K, M>(pool, entries)?[..];
        for line in Self::lines(pool.medium(), words) {
            let (here, others) = left.split_at(left.len().min(line.places()));
            for (place, entry) in here.iter().enumerate() {
                image[line.word(place)] = entry.key;
                image[line.word(place) + 1] = entry.value;
            }
            T::imprint(&mut image, line.index(), here.len());
            left = others;
        }
        let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        pool.medium().fill(words, &bytes);
        Ok(())
    }

    /// A greater key ends the search of a line, not of the leaf: the paper's hop.
    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        for line in Self::lines(pool.medium(), words) {
            if !line.has_first() {
                continue;
            }
            for place in 0..line.places() {
                let word = line.key(place);
                if word == 0 && place > 0 {
                    break;
                }
                match K::order(pool, word, key)? {
                    Ordering::Less => {}
                    Ordering::Equal => {
                        return Ok(Some((line.word(place), Value::plain(line.value(place)))));
                    }
                    Ordering::Greater => break,
                }
            }
        }
        Ok(None)
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<Held>) {
        for line in Self::lines(medium, words) {
            let held = |place| Held { entry: line.entry(place), print: 0 };
            entries.extend((0..line.count()).map(held));
        }
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::lines(medium, words).map(|line| line.count()).sum()
    }

    /// ```text
    /// N key's record |          only if the layer has records; crash: free again
    /// W a line: [`Line::insert`] its last store is C, but in an empty line
    /// A tally: [`Tally::publish`]   -> durable
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<Room, PoolError> {
        let medium = pool.medium();
        let roomy = |line: Line<'_, M, T>| match line.count() {
            count if count < line.places() => Some((line.index(), count)),
            _ => None,
        };
        let Some((index, count)) = Self::lines(medium, words).find_map(roomy) else {
            return Ok(Room::Full);
        };
        let line = Line::<M, T>::new(medium, words, index);
        let mut place = 0;
        while place < count && K::order(pool, line.key(place), key)?.is_lt() {
            place += 1;
        }
        let entry = Entry::plain(K::plant(pool, key)?, value.word);
        if !K::EXACT {
            // The line may be written back, the new key word with it, before it is flushed.
            let _ = medium.fence();
        }
        line.insert(place, count, entry);
        Ok(Room::Done(T::publish(medium, words, &[(index, count + 1)])))
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

    /// ```text
    /// W a line: [`Line::remove`]    its first store is C, but of the only pair
    /// A tally: [`Tally::publish`]   -> durable
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let medium = pool.medium();
        let line = Line::<M, T>::new(medium, words, slot / LINE_WORDS);
        let (place, count) = (line.place(slot), line.count());
        let entry = line.entry(place);
        line.remove(place, count);
        let _ = T::publish(medium, words, &[(line.index(), count - 1)]);
        entry
    }

    /// What is hidden is above all that is not: in each line it is the end.
    ///
    /// ```text
    /// W lines: [`Line::truncate`]   what it drops was hidden already
    /// A tally: [`Tally::publish`]   -> durable
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
    /// W lines: [`Line::insert`] at their ends   crash: hidden by the neighbour's low key
    /// A tally: [`Tally::publish`]               -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[Held],
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

    /// ```text
    /// W lines: [`Line::remove`]     of the left one of two with one key: it did not count
    /// A tally: [`Tally::publish`]   -> durable, and only where something is wrong
    /// ```
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let medium = pool.medium();
        let mut changed = Vec::new();
        for line in Self::lines(medium, words) {
            let found = line.count();
            let mut count = found;
            while M::SEEDED && medium.seeded(Defect::ValuesEqual) {
                let Some(place) = line.repeats_value(count) else { break };
                line.remove(place, count);
                count -= 1;
            }
            while let Some(place) = line.repeated(count) {
                line.remove(place, count);
                count -= 1;
            }
            Self::check_order::<K, M>(pool, at, &line, count)?;
            if count != found || !T::agrees(medium, words, line.index(), count) {
                changed.push((line.index(), count));
            }
        }
        if !changed.is_empty() {
            let _ = T::publish(medium, words, &changed);
        }
        Ok(())
    }
}
