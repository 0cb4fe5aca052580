//! The leaf of WO-tree: bitmap and slot array change together, under a record of the redo log.
//!
//! The layout is that of `slotted`. One byte before the slots holds their number. Entries: 13, 28,
//! 58, 118 in leaves of 256, 512, 1024, 2048 B.
//!
//! 1. A record in the pool's redo log commits an insert or a remove. The record is truncated before
//!    the latch is released. Until then entry, bitmap and slots may persist in any order, because
//!    recovery replays entry and bitmap from the record.
//! 2. While the latch is free, the slots are the sorted permutation of the entries, durably. The
//!    record does not contain them: recovery rebuilds an array that does not match the entries.
//! 3. Splits and merges need no record, as in every leaf with a low key: recovery drops the entries
//!    that they leave hidden.

use super::slotted::{self, Array, Geometry, SlottedLeaf, insert_slot, ordered, retain_slots};
use super::{InsertResult, Leaf, TaggedEntry};
use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord, Pool, PoolError};

/// The WO-tree leaf of `NODE` bytes.
#[derive(Debug)]
pub struct SlotLog<const NODE: usize>;

/// The number of bytes that hold the number of slots.
const COUNT: usize = 1;

type View<'p, M, const NODE: usize> = SlottedLeaf<'p, M, NODE, COUNT>;

impl<const NODE: usize> SlotLog<NODE> {
    /// The number of lines of bitmap and slot array.
    pub(crate) const HEADER_LINES: u32 = Geometry::<NODE, COUNT>::HEADER_LINES;

    #[inline(always)]
    fn view<'p, M: Medium>(pool: &'p Pool<M>, words: &'p [PmWord]) -> View<'p, M, NODE> {
        View::new(pool.medium(), words)
    }

    /// Returns the number of slots, which must be the number of entries.
    #[inline(always)]
    fn count_slots<M: Medium>(pool: &Pool<M>, leaf: View<'_, M, NODE>) -> Result<usize, Corrupt> {
        let (expected, found) = (u64::from(leaf.bitmap().count_ones()), u64::from(leaf.byte(0)));
        if expected == found || M::INJECTS_DEFECTS && leaf.medium.injects(Defect::SlotsApart) {
            return Ok((found as usize).min(Self::CAPACITY));
        }
        let (at, what) = (pool.offset_of(leaf.array_word()).offset(), "number of slots");
        Err(Corrupt { at, what, expected, found })
    }

    /// Returns the stored slot array, and a copy without the indices that are not in `kept`.
    #[inline]
    fn retained_slots<M: Medium>(
        leaf: View<'_, M, NODE>,
        bitmap: u128,
        kept: u128,
    ) -> (Array, Array) {
        let old = leaf.array();
        let mut array = old;
        retain_slots(&mut array[COUNT..], bitmap.count_ones() as usize, kept);
        array[0] = kept.count_ones() as u8;
        (old, array)
    }

    /// For an injected defect: persists bitmap and slots one after the other, without the log.
    #[cold]
    fn persist_apart<M: Medium>(
        leaf: View<'_, M, NODE>,
        (word, value): (&PmWord, u64),
        old: &Array,
        array: &Array,
    ) -> Fenced {
        leaf.medium.store(word, value);
        let last = leaf.store_array(old, array, M::store);
        let _ = leaf.medium.persist(core::slice::from_ref(word));
        leaf.medium.persist(&leaf.words[slotted::BITMAP..=last])
    }
}

impl<const NODE: usize> Leaf for SlotLog<NODE> {
    const WORDS: usize = NODE / 8;
    const CAPACITY: usize = Geometry::<NODE, COUNT>::CAPACITY;
    const NEXT: usize = slotted::NEXT;
    const LOW: usize = slotted::LOW;
    const LATCH: usize = slotted::LATCH;

    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt> {
        let entries = ordered::<K, M>(pool, entries.iter().map(|tagged| (0, tagged.entry)))?;
        let mut entries: Vec<_> = entries.into_iter().map(|(_, entry)| entry).collect();
        if M::INJECTS_DEFECTS && pool.medium().injects(Defect::HalfUncounted) {
            entries.pop();
        }
        Self::view(pool, words).fill(low, next, [entries.len() as u8], &entries);
        Ok(())
    }

    #[inline(always)]
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt> {
        let leaf = Self::view(pool, words);
        let count = Self::count_slots(pool, leaf)?;
        Ok(leaf.search::<K>(pool, count, key)?.found)
    }

    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>) {
        entries.extend(View::<M, NODE>::new(medium, words).tagged_entries());
    }

    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        View::<M, NODE>::new(medium, words).bitmap().count_ones() as usize
    }

    /// ```text
    /// N key's record |          only if the layer has records; crash: free again
    /// W log: entry[i], bitmap   1 line     crash before C: nothing has changed
    /// C seal of the log, F |               crash after C: recovery replays entry and bitmap, and
    /// W entry[i], slots, bitmap            rebuilds the slots
    /// F their lines |
    /// W seal cleared, F |       -> durable  budget: 4 lines (5 at 1024 B, 6 at 2048 B, where
    ///                                       the slots have lines of their own), 3 fences
    /// ```
    #[inline]
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError> {
        let leaf = Self::view(pool, words);
        let bitmap = leaf.bitmap();
        let Some(index) = View::<M, NODE>::first_free(bitmap) else {
            return Ok(InsertResult::Full);
        };
        let count = Self::count_slots(pool, leaf)?;
        let rank = leaf.search::<K>(pool, count, key)?.rank;
        let entry = Entry::plain(K::store_entry_key(pool, key, value.word)?, value.word);
        let published = if K::EXACT { Fenced::nothing() } else { leaf.medium.fence() };
        let grown = bitmap | 1 << index;
        let ([key, value], commit_word) = (leaf.entry_words(index), leaf.bitmap_word(grown, index));
        let changes = [(key, entry.key), (value, entry.value), commit_word];
        let old = leaf.array();
        let mut array = old;
        insert_slot(&mut array[COUNT..], count, rank, index);
        array[0] = count as u8 + 1;
        if M::INJECTS_DEFECTS && leaf.medium.injects(Defect::SlotsApart) {
            leaf.store_entry(index, entry);
            let _ = leaf.medium.persist(leaf.entry_words(index));
            return Ok(InsertResult::Done(Self::persist_apart(leaf, commit_word, &old, &array)));
        }
        let log = pool.redo_log().commit(&changes, published);
        leaf.store_entry(index, entry);
        let last = leaf.store_array(&old, &array, M::store);
        leaf.medium.store(commit_word.0, commit_word.1);
        leaf.medium.flush(&words[slotted::BITMAP..=last]);
        leaf.flush_entry_unless_in_line(index, last);
        Ok(InsertResult::Done(log.truncate(leaf.medium.fence())))
    }

    /// Changes one word, so no log record is needed.
    ///
    /// ```text
    /// C value[i]         8 B
    /// F entry[i] |       -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline]
    fn update<M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        Some(View::<M, NODE>::new(medium, words).update(slot, value))
    }

    /// ```text
    /// W log: bitmap             1 line     crash before C: nothing has changed
    /// C seal of the log, F |               crash after C: recovery replays the bitmap and rebuilds
    /// W slots, bitmap                      the slots
    /// F their lines |
    /// W seal cleared, F |       -> durable  budget: 3 lines (4 at 1024 B, 5 at 2048 B), 3 fences
    /// ```
    #[inline]
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry {
        let leaf = Self::view(pool, words);
        let entry = leaf.entry(slot);
        let bitmap = leaf.bitmap();
        debug_assert!(bitmap >> slot & 1 == 1);
        let kept = bitmap & !(1 << slot);
        let commit_word = leaf.bitmap_word(kept, slot);
        let (old, array) = Self::retained_slots(leaf, bitmap, kept);
        if M::INJECTS_DEFECTS && leaf.medium.injects(Defect::SlotsApart) {
            let _ = Self::persist_apart(leaf, commit_word, &old, &array);
            return entry;
        }
        let log = pool.redo_log().commit(&[commit_word], Fenced::nothing());
        let last = leaf.store_array(&old, &array, M::store);
        leaf.medium.store(commit_word.0, commit_word.1);
        let _ = log.truncate(leaf.medium.persist(&words[slotted::BITMAP..=last]));
        entry
    }

    /// ```text
    /// W slots
    /// C bitmap           8 B, or 16    the dropped entries were hidden already; recovery
    /// F their lines |    -> durable    rebuilds the slots
    /// ```
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        let leaf = View::<M, NODE>::new(medium, words);
        let bitmap = leaf.bitmap();
        let kept = leaf.kept(bitmap, keep)?;
        if kept != bitmap {
            let (old, array) = Self::retained_slots(leaf, bitmap, kept);
            let last = leaf.store_array(&old, &array, M::store);
            let _ = leaf.drop_all(kept, last);
        }
        Ok(())
    }

    /// ```text
    /// W entries          their lines   crash before C: invisible
    /// F entries |
    /// W slots
    /// C bitmap           8 B, or 16    crash after C: hidden by the neighbour's low key
    /// F their lines |    -> durable
    /// ```
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt> {
        let leaf = Self::view(pool, words);
        let bitmap = leaf.bitmap();
        let written = leaf.write_free_slots(bitmap, entries);
        let fenced = leaf.medium.fence();
        let grown = written.iter().fold(bitmap, |bits, &(index, _)| bits | 1 << index);
        // The new entries are above all others, so their slots follow the used ones.
        let (old, mut array) = leaf.with_slots::<K>(pool, bitmap.count_ones() as usize, written)?;
        array[0] = grown.count_ones() as u8;
        let last = leaf.store_array(&old, &array, M::store);
        Ok(leaf.commit_all(grown, last, fenced))
    }

    /// ```text
    /// W slots            stored and flushed only where they are wrong
    /// F their lines |
    /// ```
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        let leaf = Self::view(pool, words);
        leaf.check_bitmap(at)?;
        if M::INJECTS_DEFECTS && leaf.medium.injects(Defect::SlotsApart) {
            return Ok(());
        }
        let bitmap = leaf.bitmap();
        let (old, mut array) = leaf.with_slots::<K>(pool, 0, leaf.entries(bitmap))?;
        array[0] = bitmap.count_ones() as u8;
        if array != old {
            let last = leaf.store_array(&old, &array, M::store);
            let _ = leaf.medium.persist(&words[slotted::BITMAP..=last]);
        }
        Ok(())
    }
}
