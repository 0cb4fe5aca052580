//! The leaf of Circ-Tree: a sorted array in a ring. An insert or a remove shifts the shorter side
//! by one slot, word by word, so that every crash image in between reads as the old or the new
//! content.
//!
//! For `N` slots (14, 30, 62 or 126 in leaves of 256, 512, 1024 or 2048 B):
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | head | commit | slot of the first entry (8 bits), number of entries (8), side (8) |
//! | 1 | 8 | next | commit | the right neighbour |
//! | 2 | 8 | low | data | separator word of the low key |
//! | 3 | 8 | latch | transient | version |
//! | 4 | 16 N | slots | commit, data | key word, value word; slot 0 follows slot N - 1 |
//!
//! 1. Entries are numbered from the first, which the head names. Their keys increase, and key words
//!    of different keys differ. A slot outside the ring may hold anything.
//! 2. Of two neighbours with equal key words, the right one is valid if the side is 1, the left one
//!    if it is 0. The side is the end of the ring that the latest shift moves. A shift writes the
//!    two words of an entry in the order that keeps this true after each store.
//! 3. A shift makes a line durable before it stores to the next one. Stores to one line persist in
//!    their order.
//! 4. An end moves only over a slot that is durable: the head is stored after a fence.
//! 5. Neighbours with equal key words exist only while the latch is held, and after a crash, until
//!    [`Leaf::repair`] removes the invalid one.

pub(crate) mod ring;

use super::{InsertResult, Leaf, TaggedEntry};
use crate::key::{Entry, Key, Value};
use crate::sorting::sort_pairs;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};
use ring::{Ring, RingHead, Side};

const HEAD: usize = 0;
const SLOTS: usize = 4;

/// The circular leaf of `NODE` bytes.
#[derive(Debug)]
pub struct Circular<const NODE: usize>;

impl<const NODE: usize> Circular<NODE> {
    /// The maximum number of lines, and of fences, of an insert: the slot after the end, the head,
    /// and the shorter side of a ring with a free slot.
    pub(crate) const INSERT_LINES: u32 = 2 + Self::lines_of_run((Self::CAPACITY - 1) / 2);
    /// The maximum number of lines, and of fences, of a remove: the head twice, and the shorter
    /// side.
    pub(crate) const REMOVE_LINES: u32 = 2 + Self::lines_of_run((Self::CAPACITY - 1) / 2);

    /// Returns the maximum number of lines that `run` neighbouring slots span.
    const fn lines_of_run(run: usize) -> u32 {
        let (mut most, mut first) = (0, 0);
        while first < Self::CAPACITY {
            let (mut lines, mut before, mut at) = (0, usize::MAX, first);
            while at < first + run {
                let line = (SLOTS + 2 * (at % Self::CAPACITY)) / LINE_WORDS;
                if line != before {
                    lines += 1;
                }
                (before, at) = (line, at + 1);
            }
            if lines > most {
                most = lines;
            }
            first += 1;
        }
        most
    }

    #[inline(always)]
    fn ring<'p, M: Medium>(medium: &'p M, words: &'p [PmWord]) -> Ring<'p, M, NODE> {
        Ring { medium, words }
    }
}

impl<const NODE: usize> Leaf for Circular<NODE> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = (NODE / 8 - SLOTS) / 2;
    const NEXT: usize = 1;
    const LOW: usize = 2;
    const LATCH: usize = 3;

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let mut sorted = Vec::with_capacity(entries.len());
        for &TaggedEntry { entry, .. } in entries {
            sorted.push((K::read_entry(pool, entry)?, entry));
        }
        sort_pairs(&mut sorted);
        let head = RingHead { base: 0, count: entries.len(), side: Side::Right };
        let slots = sorted.iter().flat_map(|(_, entry)| [entry.key, entry.value]);
        let image: Vec<u8> = [head.encode(), next, low, 0]
            .into_iter()
            .chain(slots)
            .flat_map(u64::to_le_bytes)
            .collect();
        pool.medium().fill(&words[..SLOTS + 2 * entries.len()], &image);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let ring = Self::ring(pool.medium(), words);
        let head = ring.head();
        let (index, is_equal) = ring.search::<K>(pool, head, key)?;
        Ok(is_equal.then(|| (index, ring.entry(Ring::<M, NODE>::slot(head, index)).held_value())))
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        let ring = Self::ring(medium, words);
        let head = ring.head();
        let tagged = |index: usize| TaggedEntry {
            entry: ring.entry(Ring::<M, NODE>::slot(head, index)),
            fingerprint: 0,
        };
        entries.extend((0..head.count).map(tagged));
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::ring(medium, words).head().count
    }

    /// ```text
    /// N key's record            only if the layer has records; crash: free again
    /// ring: insert              see `Ring::insert`; its first fence covers the record
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let ring = Self::ring(pool.medium(), words);
        let head = ring.head();
        if head.count >= Self::CAPACITY {
            return Ok(InsertResult::Full);
        }
        let (index, _) = ring.search::<K>(pool, head, key)?;
        let entry = Entry::plain(K::store_entry_key(pool, key, value.word)?, value.word);
        Ok(InsertResult::Done(ring.insert(index, entry)))
    }

    /// ```text
    /// C value[i]        8 B
    /// F its line |          -> durable   budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let medium = pool.medium();
        let ring = Self::ring(medium, words);
        let word = Ring::<M, NODE>::word(Ring::<M, NODE>::slot(ring.head(), slot)) + 1;
        medium.store(&words[word], value.word);
        Some(medium.persist(&words[word..=word]))
    }

    /// Persist order: that of `Ring::remove`.
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let ring = Self::ring(pool.medium(), words);
        let entry = ring.entry(Ring::<M, NODE>::slot(ring.head(), slot));
        let _ = ring.remove(slot);
        entry
    }

    /// Hidden entries lie above all others, so the entries to drop are the end of the ring: one
    /// store of the head drops them all.
    ///
    /// ```text
    /// C head: fewer entries     8 B
    /// F head |                  -> durable  budget: 1 line, 1 fence
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let ring = Self::ring(medium, words);
        let head = ring.head();
        for index in 0..head.count {
            if !keep(ring.entry(Ring::<M, NODE>::slot(head, index)))? {
                let _ = ring.set_head(RingHead { count: index, ..head });
                break;
            }
        }
        Ok(())
    }

    /// ```text
    /// W entries after the last      crash before C: they are not in the ring
    /// F entries |
    /// C head                8 B     crash after C: hidden by the neighbour's low key
    /// F head |              -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let ring = Self::ring(pool.medium(), words);
        let head = ring.head();
        let count = head.count + entries.len();
        debug_assert!(count <= Self::CAPACITY);
        for (index, TaggedEntry { entry, .. }) in (head.count..).zip(entries) {
            let slot = Ring::<M, NODE>::slot(head, index);
            ring.set_value_first(slot, *entry);
            let next = Ring::<M, NODE>::slot(head, index + 1);
            if index + 1 == count || !Ring::<M, NODE>::are_in_one_line(slot, next) {
                let word = Ring::<M, NODE>::word(slot);
                ring.medium.flush(&words[word..=word]);
            }
        }
        let fenced = pool.medium().fence();
        Ok(ring.commit(RingHead { count, ..head }, fenced))
    }

    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let ring = Self::ring(pool.medium(), words);
        if ring.checked_head().is_none() {
            let (what, found) = ("head word of a circular leaf", pool.medium().load(&words[HEAD]));
            return Err(Corrupt { at, what, expected: Self::CAPACITY as u64, found });
        }
        ring.drop_duplicates();
        let head = ring.head();
        let keys: Vec<_> =
            (0..head.count).map(|index| ring.key(Ring::<M, NODE>::slot(head, index))).collect();
        for pair in keys.windows(2) {
            let key = K::read(pool, pair[0])?;
            if !K::order(pool, pair[1], K::borrow(&key))?.is_gt() {
                let (what, expected, found) = ("keys of a leaf out of order", pair[0], pair[1]);
                return Err(Corrupt { at, what, expected, found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
