//! The failure-atomic shifting node (FAST & FAIR): a sorted array in which an insert or a remove
//! shifts the entries after it by one slot. The shift stores one word at a time, in an order in
//! which every crash image reads as the old or the new content.
//!
//! Leaves and inner nodes have the same layout. In a leaf the entries are keys and values. In an
//! inner node they are separators and children; entry 0, with key word 0, is the leftmost child.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | live | commit | 1: entry 0 is valid; 0: the node is empty |
//! | 8 | 8 | sibling | commit | the right neighbour on the level; 0: none |
//! | 16 | 8 | low | data | separator word of the low key; never changes |
//! | 24 | 8 | tag | data | a magic number, and the level in the low half; never changes |
//! | 32 | 8 | latch | transient | version and holder |
//! | 40 | 8 | shifts | transient | direction in which entries move, for readers without a latch |
//! | 48 | 16 each | entries | commit, data | key word, value word |
//!
//! A [`Wide`] node has entries of 32 B, each in one line: 16 B of padding, then key word and value
//! word. Nothing reads or writes the padding; that of entry 0 holds the transient words. FAST is
//! assumed to store a key of 16 B at once, so a word stands for it.
//!
//! 1. Keys increase, and key words of different keys differ. So key word 0, the least key, can be a
//!    key only at entry 0; at a later entry it is the terminator. A full node has none.
//! 2. Of adjacent entries with equal key words the rightmost is valid. A shift writes the two words
//!    of an entry in the order that keeps this true after each store.
//! 3. A shift makes a line durable before it stores to the next one. Stores to one line persist in
//!    their order.
//! 4. Entries at or above the sibling's low key are hidden. So linking a sibling removes them, and
//!    unlinking it adds the entries that were appended before.
//! 5. Equal key words and hidden entries exist only while the latch is held, and after a crash,
//!    until [`ShiftNode::mend`] removes them. A reader checks the latch or reads as `unlatched.rs`
//!    says. Hidden entries are in order, and the sibling has the same: a split copies them there
//!    before, a merge shows its first copy after the others are durable.
//! 6. After the terminator, if a key word starts a line and reads as 0, it is 0 in the medium too:
//!    the stores that made it 0 were fenced before the latch was released.

mod leaf;
mod unlatched;

pub use leaf::SortedShift;
pub use unlatched::Unlatched;

use crate::key::{Entry, Key};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Latch, OnMedium, ShiftCounter};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord, Pool};
use core::cmp::Ordering;
use core::marker::PhantomData;

const LIVE: usize = 0;
const SIBLING: usize = 1;
const LOW: usize = 2;
const TAG: usize = 3;
const LATCH: usize = 4;
const SHIFTS: usize = 5;
const ENTRIES: usize = 6;
/// The upper half of every tag, less the number of words of an entry.
const MAGIC: u64 = 0xFA57_FA10;
/// The highest level: a tree that fits an address space has fewer levels.
const LEVEL_MAX: u32 = 40;

/// The form of a node: its entries, and the fences around a flush of stores to it. One always
/// follows it. Where an order says `F .. |`, the flush has all of them; a budget counts them as
/// those of so many flushes.
pub trait ShiftForm: Send + Sync + 'static {
    /// The number of words of an entry.
    const ENTRY_WORDS: usize = Entry::WORDS;
    /// The number of fences of a flush.
    const FENCES: u32;

    /// Fences before the flush, if the order says so.
    fn before_flush<M: Medium>(medium: &M);
}

/// A fence before each flush and one after it, as the authors' code has them.
#[derive(Debug)]
pub struct FencedAround;

impl ShiftForm for FencedAround {
    const FENCES: u32 = 2;

    #[inline(always)]
    fn before_flush<M: Medium>(medium: &M) {
        let _ = medium.fence();
    }
}

/// A fence after each flush. A line's stores persist in their order, so none is needed before.
#[derive(Debug)]
pub struct FencedAfter;

impl ShiftForm for FencedAfter {
    const FENCES: u32 = 1;

    #[inline(always)]
    fn before_flush<M: Medium>(_: &M) {}
}

/// Entries of 32 B, with the fences of `F`.
#[derive(Debug)]
pub struct Wide<F>(PhantomData<F>);

impl<F: ShiftForm> ShiftForm for Wide<F> {
    const ENTRY_WORDS: usize = Entry::WIDE_WORDS;
    const FENCES: u32 = F::FENCES;

    #[inline(always)]
    fn before_flush<M: Medium>(medium: &M) {
        F::before_flush(medium);
    }
}

/// A view of the node of `NODE` bytes at some offset of a pool.
#[derive(Debug)]
pub struct ShiftNode<'p, M, F, const NODE: usize> {
    medium: &'p M,
    words: &'p [PmWord],
    fences: PhantomData<F>,
}

impl<M, F, const NODE: usize> Clone for ShiftNode<'_, M, F, NODE> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, F, const NODE: usize> Copy for ShiftNode<'_, M, F, NODE> {}

/// The position of a key in a node, whether it is present or absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShiftPos {
    /// The index of the first entry whose key is not less; the number of entries if there is none.
    pub index: usize,
    /// `true` if that entry has the key.
    pub equal: bool,
    /// `true` if there is no such entry, so that the key may belong to a node further right.
    pub end: bool,
}

/// The fields of a node besides its entries.
#[derive(Clone, Copy, Debug)]
pub struct NodeHeader {
    /// The right neighbour on the level; null if none.
    pub sibling: PmPtr,
    /// The separator word of the low key, which the node owns.
    pub low: u64,
    /// The level of the node; 0 for a leaf.
    pub level: u32,
}

impl<'p, M: Medium, F: ShiftForm, const NODE: usize> ShiftNode<'p, M, F, NODE> {
    /// The maximum number of entries.
    pub const CAPACITY: usize = {
        assert!(
            NODE.is_power_of_two() && NODE >= 128,
            "a node has a power of two of bytes, at least two lines"
        );
        (NODE / 8 - ENTRIES - Entry::WORDS) / F::ENTRY_WORDS + 1
    };
    /// The upper half of the tag.
    const MAGIC: u64 = MAGIC | F::ENTRY_WORDS as u64;
    /// The number of lines of a node, which is the most that an insert or a remove flushes.
    pub const LINES: u32 = (NODE / 64) as u32;

    /// Returns a view of the node at `at`.
    ///
    /// # Errors
    /// `at` is not a block of the pool, or the block holds no node.
    #[inline(always)]
    pub fn view(pool: &'p Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        let node = Self::view_unchecked(pool, at)?;
        node.check_tag()?;
        Ok(node)
    }

    /// Returns a view of the block at `at` without reading it, so that it can be prefetched. Call
    /// [`check_tag`](Self::check_tag) before any other use.
    ///
    /// # Errors
    /// `at` is not a block of the pool.
    #[inline(always)]
    pub fn view_unchecked(pool: &'p Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        Ok(Self { medium: pool.medium(), words: pool.block(at, NODE / 8)?, fences: PhantomData })
    }

    /// Checks that the block holds a node, by its tag and alignment.
    ///
    /// # Errors
    /// It does not.
    #[inline(always)]
    pub fn check_tag(&self) -> Result<(), Corrupt> {
        let tag = self.load(TAG);
        let is_aligned = self.words.as_ptr().addr().is_multiple_of(64);
        if tag >> 32 != Self::MAGIC || !is_aligned || tag as u32 > LEVEL_MAX {
            return Err(not_a_node(self.at(), Self::MAGIC, tag));
        }
        Ok(())
    }

    /// Writes a node into the fresh block `at`, and returns it. Durable after the next fence. The
    /// fill covers the whole block, because a reused block may hold anything.
    ///
    /// # Errors
    /// `at` is not a block of the pool.
    ///
    /// # Panics
    /// If `entries` do not fit.
    pub fn create(
        pool: &'p Pool<M>,
        at: PmPtr,
        header: NodeHeader,
        entries: &[Entry],
    ) -> Result<Self, Corrupt> {
        Self::fill(pool.medium(), pool.words(at, NODE / 8)?, header, entries);
        Self::view(pool, at)
    }

    fn fill(medium: &M, target: &[PmWord], header: NodeHeader, entries: &[Entry]) {
        assert!(entries.len() <= Self::CAPACITY, "the entries fit the node");
        let mut words = vec![0; NODE / 8];
        words[LIVE] = u64::from(!entries.is_empty());
        words[SIBLING] = header.sibling.offset();
        words[LOW] = header.low;
        words[TAG] = Self::MAGIC << 32 | u64::from(header.level);
        for (index, entry) in entries.iter().enumerate() {
            let at = Self::key_word(index);
            words[at..at + Entry::WORDS].copy_from_slice(&[entry.key, entry.value]);
        }
        if M::INJECTS_DEFECTS && medium.injects(Defect::NoTerminator) {
            words.truncate(Self::key_word(entries.len()));
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        F::before_flush(medium);
        medium.fill(target, &bytes);
    }

    /// Returns the index of the key word of entry `index`. The value word is the next one.
    #[inline(always)]
    const fn key_word(index: usize) -> usize {
        ENTRIES + F::ENTRY_WORDS * index
    }
    /// Returns `true` if entry `index` is the first of its line.
    #[inline(always)]
    const fn starts_line(index: usize) -> bool {
        Self::key_word(index) % LINE_WORDS < F::ENTRY_WORDS
    }
    #[inline(always)]
    fn load(&self, index: usize) -> u64 {
        self.medium.load(&self.words[index])
    }
    #[inline(always)]
    fn store(&self, index: usize, value: u64) {
        self.medium.store(&self.words[index], value);
    }
    /// Makes the line of the word at `index` durable.
    #[inline(always)]
    fn persist(&self, index: usize) -> Fenced {
        F::before_flush(self.medium);
        self.medium.persist(&self.words[index..=index])
    }

    /// Returns the offset of the node in the pool.
    #[inline(always)]
    pub fn at(&self) -> PmPtr {
        let offset = self.words.as_ptr() as usize - self.medium.base().as_ptr() as usize;
        PmPtr::new(offset as u64)
    }
    /// Returns all words of the node, for a prefetch.
    #[inline(always)]
    pub fn words(&self) -> &'p [PmWord] {
        self.words
    }
    /// Returns the latch; `nonce` is that of the pool.
    #[inline(always)]
    pub fn latch(&self, nonce: u64) -> Latch<OnMedium<'p, M>> {
        OnMedium::latch(self.medium, &self.words[LATCH], nonce)
    }
    /// Returns the shift counter; `nonce` is that of the pool.
    #[inline(always)]
    pub fn shifts(&self, nonce: u64) -> ShiftCounter<OnMedium<'p, M>> {
        OnMedium::shift_counter(self.medium, &self.words[SHIFTS], nonce)
    }
    /// Returns the level of the node; 0 for a leaf.
    #[inline(always)]
    pub fn level(&self) -> u32 {
        self.load(TAG) as u32
    }
    /// Returns the right neighbour on the level; null if none.
    #[inline(always)]
    pub fn sibling(&self) -> PmPtr {
        PmPtr::new(self.load(SIBLING))
    }
    /// Returns the separator word of the low key.
    #[inline(always)]
    pub fn low(&self) -> u64 {
        self.load(LOW)
    }
    /// Returns the key word of entry `index`.
    #[inline(always)]
    pub fn key(&self, index: usize) -> u64 {
        self.load(Self::key_word(index))
    }
    /// Returns the value word of entry `index`.
    #[inline(always)]
    pub fn value(&self, index: usize) -> u64 {
        self.load(Self::key_word(index) + 1)
    }
    /// Returns both words of entry `index`.
    #[inline(always)]
    pub fn entry(&self, index: usize) -> Entry {
        Entry::plain(self.key(index), self.value(index))
    }
    /// Returns `true` if the node has no entries.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.load(LIVE) == 0
    }

    /// Returns the number of entries.
    #[inline]
    pub fn count(&self) -> usize {
        self.count_from(0)
    }

    /// Returns the number of entries, given that those before `index` exist.
    #[inline]
    pub fn count_from(&self, index: usize) -> usize {
        if index == 0 && self.is_empty() {
            return 0;
        }
        (index.max(1)..Self::CAPACITY).find(|&i| self.key(i) == 0).unwrap_or(Self::CAPACITY)
    }

    /// Returns the position of `key`.
    ///
    /// # Errors
    /// A key word is damaged.
    #[inline(always)]
    pub fn search<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<ShiftPos, Corrupt> {
        // If key words are keys, a forward scan of the node is fast. Otherwise each comparison
        // misses the cache in a record, and bisection compares fewest.
        if K::EXACT {
            self.search_linear::<K>(pool, key)
        } else {
            self.search_binary::<K>(pool, key)
        }
    }

    #[inline(always)]
    fn search_linear<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<ShiftPos, Corrupt> {
        if self.is_empty() {
            return Ok(ShiftPos { index: 0, equal: false, end: true });
        }
        for index in 0..Self::CAPACITY {
            let word = self.key(index);
            if word == 0 && index > 0 {
                return Ok(ShiftPos { index, equal: false, end: true });
            }
            match K::order(pool, word, key)? {
                Ordering::Less => {}
                order => return Ok(ShiftPos { index, equal: order.is_eq(), end: false }),
            }
        }
        Ok(ShiftPos { index: Self::CAPACITY, equal: false, end: true })
    }

    fn search_binary<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<ShiftPos, Corrupt> {
        let count = self.count();
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match K::order(pool, self.key(middle), key)? {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(ShiftPos { index: middle, equal: true, end: false }),
                Ordering::Greater => high = middle,
            }
        }
        Ok(ShiftPos { index: low, equal: false, end: low == count })
    }

    /// Returns the last index, from `index` on, of an entry with the key word of entry `index`. A
    /// crash can leave two, of which the right one is valid (I2).
    #[inline(always)]
    pub fn last_of_equal(&self, index: usize) -> usize {
        let (word, mut last) = (self.key(index), index);
        // A word 0 behind the least key is the terminator.
        while word != 0 && last + 1 < Self::CAPACITY && self.key(last + 1) == word {
            last += 1;
        }
        last
    }

    /// Replaces the value of entry `index`. Durable on return.
    ///
    /// ```text
    /// C value[i]        8 B
    /// F its line |          -> durable   budget: 1 line, 1 flush
    /// ```
    #[inline]
    pub fn update(&self, index: usize, value: u64) -> Fenced {
        debug_assert!(index < self.count(), "the entry to update exists");
        let word = Self::key_word(index) + 1;
        self.store(word, value);
        self.persist(word)
    }

    #[inline(always)]
    fn set_entry(&self, index: usize, entry: Entry) {
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::KeyBeforeValue) {
            self.store(Self::key_word(index), entry.key);
        }
        self.store(Self::key_word(index) + 1, entry.value);
        self.store(Self::key_word(index), entry.key);
    }

    /// Inserts `entry` before entry `p = index` of a node of `n = count` entries. Durable on
    /// return.
    ///
    /// ```text
    /// W key[n+1] = 0            only if it is not 0; F its line | if it starts one
    /// for i = n-1 down to p:    crash: e[i] and e[i+1] have one key, the right one is valid (I2)
    ///   W value[i+1], key[i+1]
    ///   F line of i+1 |         if it starts there (I3)
    /// W value[p]                the key there is still that of e[p+1], which is valid
    /// C key[p]                  8 B; in an empty node: W key[0], C live
    /// F line of p |             -> durable   budget: the lines from p to n, as many flushes;
    ///                              one more of each if the terminator starts a line
    /// ```
    #[inline]
    pub fn insert(&self, index: usize, count: usize, entry: Entry) -> Fenced {
        debug_assert!(index <= count && count < Self::CAPACITY, "the node has a free slot");
        debug_assert!(entry.key != 0 || index == 0, "only the first key word can be 0 (I1)");
        if count + 1 < Self::CAPACITY && self.key(count + 1) != 0 {
            self.set_terminator(count + 1);
            if Self::starts_line(count + 1) {
                let _ = self.persist(Self::key_word(count + 1));
            }
        }
        for moved in (index..count).rev() {
            self.set_entry(moved + 1, self.entry(moved));
            if Self::starts_line(moved + 1) {
                let _ = self.persist(Self::key_word(moved + 1));
            }
        }
        self.set_entry(index, entry);
        if count == 0 {
            self.store(LIVE, 1);
        }
        self.persist(Self::key_word(index))
    }

    /// Removes entry `d = index` of a node of `n = count` entries. Durable on return.
    ///
    /// ```text
    /// for i = d to n-2:         crash: e[i] and e[i+1] have one key, the right one is valid (I2)
    ///   W key[i], value[i]      the first key is C
    ///   F line of i |           if it ends there (I3)
    /// W key[n-1] = 0            C if d = n-1; if n = 1: C live = 0 instead
    /// F its line |              -> durable   budget: the lines from d to n-1, as many flushes
    /// ```
    #[inline]
    pub fn remove(&self, index: usize, count: usize) -> Fenced {
        debug_assert!(index < count && count <= Self::CAPACITY, "the entry to remove exists");
        if count == 1 {
            self.store(LIVE, 0);
            return self.persist(LIVE);
        }
        let hides_front =
            M::INJECTS_DEFECTS && index == 0 && self.medium.injects(Defect::DeleteFront);
        if hides_front {
            self.store(LIVE, 0);
        }
        for target in index..count - 1 {
            let Entry { key, value, .. } = self.entry(target + 1);
            self.store(Self::key_word(target), key);
            self.store(Self::key_word(target) + 1, value);
            let mut ends_line = Self::starts_line(target + 1);
            if M::INJECTS_DEFECTS && self.medium.injects(Defect::DeleteFlush) {
                ends_line = Self::starts_line(target);
            }
            if ends_line {
                let _ = self.persist(Self::key_word(target));
            }
        }
        self.set_terminator(count - 1);
        if hides_front {
            self.store(LIVE, 1);
            let _ = self.persist(LIVE);
        }
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::DeleteFlush) {
            return self.medium.fence();
        }
        self.persist(Self::key_word(count - 1))
    }

    #[inline(always)]
    fn set_terminator(&self, index: usize) {
        self.store(Self::key_word(index), 0);
    }

    /// Removes all entries from `i = index` on. Durable on return.
    ///
    /// ```text
    /// C key[i] = 0      8 B; live = 0 if i = 0
    /// F its line |          -> durable   budget: 1 line, 1 flush
    /// ```
    pub fn truncate(&self, index: usize) -> Fenced {
        let word = if index == 0 { LIVE } else { Self::key_word(index) };
        self.store(word, 0);
        self.persist(word)
    }

    /// Appends the sibling's `entries` after the `count` entries of this node. They stay hidden
    /// until the sibling is unlinked (I4). The last store shows them, all of them durable, to
    /// readers without a latch, which so never pass the end, and to recovery. Durable on return.
    ///
    /// ```text
    /// W terminator, entries         crash before C: the terminator at `count` hides them
    /// F their lines |
    /// C key of the first, or live   8 B     crash: it is at or above the sibling's low key
    /// F its line |                  -> durable   budget: their lines + 1, 2 flushes
    /// ```
    ///
    /// # Panics
    /// If `entries` do not fit.
    pub fn append(&self, count: usize, entries: &[Entry]) -> Fenced {
        let end = count + entries.len();
        assert!(end <= Self::CAPACITY, "the appended entries fit");
        let Some(first) = entries.first() else { return self.medium.fence() };
        if end < Self::CAPACITY {
            self.set_terminator(end);
        }
        for (index, &entry) in entries.iter().enumerate().skip(1).rev() {
            self.set_entry(count + index, entry);
        }
        let word = Self::key_word(count);
        self.store(word + 1, first.value);
        let shown = if count == 0 { LIVE } else { word };
        if count == 0 {
            self.store(word, first.key);
        }
        let lines = &self.words[word..(Self::key_word(end) + 1).min(NODE / 8)];
        F::before_flush(self.medium);
        let _ = self.medium.persist(lines);
        self.store(shown, if count == 0 { 1 } else { first.key });
        self.persist(shown)
    }

    /// Makes `sibling` the right neighbour. Durable on return.
    ///
    /// ```text
    /// C sibling         8 B     from now on the entries at or above its low key are hidden (I4)
    /// F header |            -> durable   budget: 1 line, 1 flush
    /// ```
    pub fn link(&self, sibling: PmPtr, published: Fenced) -> Fenced {
        self.medium.commit(&self.words[SIBLING], sibling.offset(), published);
        self.persist(SIBLING)
    }

    /// Links like [`link`](Self::link), but leaves the flush to the caller: for an injected defect.
    #[cold]
    pub(crate) fn link_unflushed(&self, sibling: PmPtr) {
        self.store(SIBLING, sibling.offset());
    }

    /// Removes the entries that are hidden or invalid since a crash. `limit` is the sibling's low
    /// key. The caller holds the latch, the first to do so since the open. A crash meanwhile leaves
    /// a state that the next call mends. Durable on return.
    ///
    /// ```text
    /// truncate              only if entries are at or above `limit`
    /// drop duplicates       only if a shift was interrupted
    /// ```
    ///
    /// # Errors
    /// A word is damaged.
    #[cold]
    pub fn mend<K: Key>(&self, pool: &Pool<M>, limit: Option<K::Ref<'_>>) -> Result<(), Corrupt> {
        if let Some(limit) = limit
            && !(M::INJECTS_DEFECTS && self.medium.injects(Defect::SplitUnrepaired))
        {
            // Entry 0 of an inner node stands for the low key, which is below any limit.
            let first = usize::from(self.level() > 0);
            self.truncate_rejected(first, &mut |entry| {
                Ok(K::order(pool, entry.key, limit)?.is_lt())
            })?;
        }
        self.drop_duplicates(pool.nonce());
        Ok(())
    }

    /// Truncates the node at the first entry, from `first` on, for which `keep` returns `false`.
    fn truncate_rejected(
        &self,
        first: usize,
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt> {
        for index in first..self.count() {
            if !keep(self.entry(index))? {
                let _ = self.truncate(index);
                break;
            }
        }
        Ok(())
    }

    /// Completes the shift that a crash interrupted: a remove forwards, an insert backwards. Both
    /// times the left one of two equal entries is removed (I2).
    ///
    /// ```text
    /// R shifts              entries move to the left, for readers
    /// remove                for each key word that the next entry has too   -> durable
    /// ```
    fn drop_duplicates(&self, nonce: u64) {
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::DuplicateLeft) {
            return;
        }
        let mut count = self.count();
        let mut index = 0;
        while index + 1 < count {
            if self.key(index) == self.key(index + 1) {
                self.shifts(nonce).turn(true);
                let _ = self.remove(index, count);
                count -= 1;
            } else {
                index += 1;
            }
        }
    }
}

#[cold]
fn not_a_node(at: PmPtr, magic: u64, found: u64) -> Corrupt {
    let what = "tag of a shifting node";
    Corrupt { at: at.offset() + 8 * TAG as u64, what, expected: magic << 32, found }
}

#[cfg(test)]
mod tests;
