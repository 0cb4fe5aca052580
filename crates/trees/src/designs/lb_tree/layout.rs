//! The layout of a leaf: 256 B, unsorted entries, and two sibling words of which one is in use.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | header | commit | bits 0..14: valid entries; 14: zero; 15: `alt`; fingerprints 0..6 |
//! | 1 | 8 | fingerprints | data | fingerprints 6..14, one byte for each entry |
//! | 2 | 224 | 14 entries | data | key word, value word |
//! | 30 | 16 | two siblings | data | sibling `alt` is the right neighbour; the other is unused |
//!
//! Line 0 holds the header and entries 0..3; lines 1, 2 and 3 hold entries 3..7, 7..11 and 11..14,
//! and line 3 the siblings.
//!
//! 1. One store of the header decides which entries and which sibling count.
//! 2. What the header makes valid was fenced before it, or stored before it in its own line.
//! 3. A store changes no entry, fingerprint or sibling that the header counts, except the value of
//!    an update.

use crate::fingerprint;
use crate::key::{Entry, Key};
use crate::leaf::{TaggedEntry, slots};
use crate::leaf_table::KeyedEntries;
use crate::sorting::sort_pairs;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};

/// The number of words of a leaf.
pub(super) const WORDS: usize = 32;
/// The number of bytes of a leaf.
pub(super) const BYTES: u64 = 8 * WORDS as u64;
/// The most entries of a leaf.
pub(super) const CAPACITY: usize = 14;
/// The number of entries that a split leaves in the left leaf.
pub(super) const SPLIT: usize = CAPACITY / 2;

const HEADER: usize = 0;
const ENTRIES: usize = 2;
const SIBLINGS: usize = 30;

const ALL: u64 = (1 << CAPACITY) - 1;
/// The lock bit of the authors' code. It is zero: latches are in DRAM.
const LOCK: u64 = 1 << 14;
const ALT: u64 = 1 << 15;
/// The number of bytes before the fingerprints.
const FINGERPRINT_OFFSET: usize = 2;

const _: () = assert!(FINGERPRINT_OFFSET + CAPACITY == 8 * ENTRIES);
const _: () = assert!(ENTRIES + 2 * CAPACITY == SIBLINGS && SIBLINGS + 2 == WORDS);

/// Returns the index of the line that contains entry `slot`.
const fn line_of(slot: usize) -> usize {
    (ENTRIES + 2 * slot) / LINE_WORDS
}

/// The first two words of a leaf: valid bits, `alt` and fingerprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeafHeader([u64; 2]);

impl LeafHeader {
    /// Returns the valid entries as a bit mask.
    #[inline(always)]
    pub(super) fn valid(self) -> u64 {
        self.0[0] & ALL
    }

    /// Returns the index of the sibling word that counts.
    fn alt(self) -> usize {
        usize::from(self.0[0] & ALT != 0)
    }

    /// Returns the valid entries with this fingerprint, as a bit mask.
    #[inline(always)]
    fn matching(self, fingerprint: u8) -> u64 {
        fingerprint::matches::<2>(self.0, fingerprint) >> FINGERPRINT_OFFSET & self.valid()
    }

    fn fingerprint(self, slot: usize) -> u8 {
        let byte = FINGERPRINT_OFFSET + slot;
        (self.0[byte / 8] >> (8 * (byte % 8))) as u8
    }

    /// Returns the header in which entry `slot` is valid.
    fn with(mut self, slot: usize, fingerprint: u8) -> Self {
        let byte = FINGERPRINT_OFFSET + slot;
        let shift = 8 * (byte % 8);
        let word = &mut self.0[byte / 8];
        *word = *word & !(0xff << shift) | u64::from(fingerprint) << shift;
        self.0[0] |= 1 << slot;
        self
    }

    /// Returns the header in which entry `slot` is not valid.
    fn without(mut self, slot: usize) -> Self {
        self.0[0] &= !(1 << slot);
        self
    }

    /// Returns the header in which the other sibling word counts.
    fn flipped(mut self) -> Self {
        self.0[0] ^= ALT;
        self
    }
}

/// A view of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct LbLeaf<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
}

impl<'a> LbLeaf<'a> {
    #[inline(always)]
    pub(super) fn new<M: Medium>(pool: &'a Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        Ok(Self { at, words: pool.block(at, WORDS)? })
    }

    #[inline(always)]
    pub(super) fn prefetch<M: Medium>(self, medium: &M) {
        medium.prefetch(self.words);
    }

    #[inline(always)]
    fn header<M: Medium>(self, medium: &M) -> LeafHeader {
        let header = LeafHeader([medium.load(&self.words[0]), medium.load(&self.words[1])]);
        if M::INJECTS_DEFECTS && medium.injects(Defect::LockBitKept) {
            return LeafHeader([header.0[0] & !LOCK, header.0[1]]);
        }
        header
    }

    /// Returns the number of valid entries.
    pub(super) fn count<M: Medium>(self, medium: &M) -> usize {
        self.header(medium).valid().count_ones() as usize
    }

    pub(super) fn next<M: Medium>(self, medium: &M) -> PmPtr {
        PmPtr::new(medium.load(&self.words[SIBLINGS + self.header(medium).alt()]))
    }

    #[inline(always)]
    fn entry<M: Medium>(self, medium: &M, slot: usize) -> Entry {
        let [key, value] = self.entry_words(slot);
        Entry::plain(medium.load(key), medium.load(value))
    }

    #[inline(always)]
    fn entry_words(self, slot: usize) -> [&'a PmWord; 2] {
        let at = ENTRIES + 2 * slot;
        [&self.words[at], &self.words[at + 1]]
    }

    fn set_entry<M: Medium>(self, medium: &M, slot: usize, entry: Entry) {
        let [key, value] = self.entry_words(slot);
        medium.store(key, entry.key);
        medium.store(value, entry.value);
    }

    /// Returns the words of a line.
    fn line(self, line: usize) -> &'a [PmWord] {
        &self.words[line * LINE_WORDS..(line + 1) * LINE_WORDS]
    }

    /// Returns the slot and the entry of `key`. A writer may run at the same time; the caller
    /// validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Entry)>, Corrupt> {
        let medium = pool.medium();
        let fingerprint = fingerprint::of(K::hash(key));
        for slot in slots(self.header(medium).matching(fingerprint)) {
            let entry = self.entry(medium, slot);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some((slot, entry)));
            }
        }
        Ok(None)
    }

    /// Prefetches the key records that [`find`](Self::find) will read.
    pub(super) fn prefetch_candidates<K: Key, M: Medium>(self, pool: &Pool<M>, key: K::Ref<'_>) {
        let medium = pool.medium();
        let fingerprint = fingerprint::of(K::hash(key));
        for slot in slots(self.header(medium).matching(fingerprint)) {
            K::prefetch_entry(pool, self.entry(medium, slot));
        }
    }

    /// Returns the valid entries, in any order.
    pub(super) fn entries<M: Medium>(self, medium: &M) -> impl Iterator<Item = Entry> {
        slots(self.header(medium).valid()).map(move |slot| self.entry(medium, slot))
    }

    /// Returns the valid entries with their keys, in key order. A writer may run at the same time.
    pub(super) fn sorted<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
    ) -> Result<KeyedEntries<K>, Corrupt> {
        let medium = pool.medium();
        let mut pairs = Vec::with_capacity(CAPACITY);
        for entry in self.entries(medium) {
            pairs.push((K::read_entry(pool, entry)?, entry));
        }
        sort_pairs(&mut pairs);
        Ok(pairs)
    }

    /// Stores the header word and persists line 0. The caller has fenced what it makes valid.
    fn commit<M: Medium>(self, medium: &M, header: LeafHeader) {
        medium.store(&self.words[HEADER], header.0[0]);
        if M::INJECTS_DEFECTS && medium.injects(Defect::LatchEarly) {
            return; // The caller persists the line after it has released the latch.
        }
        let _ = medium.persist(self.line(0));
    }

    /// Adds an entry to a leaf that has space. Durable on return. `is_stored` tells whether the
    /// entry's key has a new record, which must be durable before the entry is valid.
    ///
    /// ```text
    /// slot i in line 0
    ///   W entry[i]                           in the line of C, before it
    ///   C header                8 B          crash before C: the entry is invisible
    ///   F line 0 |              -> durable   budget: 1 line, 1 fence
    ///
    /// slot i in line L, line 0 being full
    ///   W entry[i]
    ///   W entry[t] = entry[f]                for each other free t in L, and f = 0, 1, 2 in turn
    ///   F line L |
    ///   W fingerprints 6..14                 in the line of C, before it; of invalid slots alone
    ///   C header                8 B          crash before C: the leaf as it was; with C all slots
    ///                                        t are valid and all slots f free
    ///   F line 0 |              -> durable   budget: 2 lines, 2 fences
    /// ```
    pub(super) fn insert<M: Medium>(self, medium: &M, new: TaggedEntry, is_stored: bool) {
        let mut header = self.header(medium);
        let slot = header.valid().trailing_ones() as usize;
        debug_assert!(slot < CAPACITY, "the leaf has space");
        self.set_entry(medium, slot, new.entry);
        let line = line_of(slot);
        if line == 0 {
            if is_stored {
                let _ = medium.fence();
            }
            return self.commit(medium, header.with(slot, new.fingerprint));
        }
        let free = !header.valid() & ALL & !(1 << slot);
        let moves = slots(free).filter(|&to| line_of(to) == line).zip(0..);
        header = header.with(slot, new.fingerprint);
        for (to, from) in moves {
            self.set_entry(medium, to, self.entry(medium, from));
            header = header.with(to, header.fingerprint(from)).without(from);
        }
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        if !injects(Defect::MovedUnfenced) {
            medium.flush(self.line(line));
        }
        let _ = medium.fence();
        let is_late = injects(Defect::FingerprintsLate);
        if is_late {
            medium.store(&self.words[HEADER], header.0[0]);
        }
        medium.store(&self.words[HEADER + 1], header.0[1]);
        self.commit(medium, header);
    }

    /// Replaces the value of entry `slot`. Durable on return.
    ///
    /// ```text
    /// C value[i]                8 B
    /// F its line |              -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn update<M: Medium>(self, medium: &M, slot: usize, value: u64) {
        medium.store(self.entry_words(slot)[1], value);
        let _ = medium.persist(self.line(line_of(slot)));
    }

    /// Removes entry `slot`. Durable on return.
    ///
    /// ```text
    /// C header                  8 B
    /// F line 0 |                -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn remove<M: Medium>(self, medium: &M, slot: usize) {
        self.commit(medium, self.header(medium).without(slot));
    }

    /// Sets the right neighbour. Durable on return.
    ///
    /// ```text
    /// C sibling alt             8 B
    /// F line 3 |                -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn set_next<M: Medium>(self, medium: &M, next: PmPtr) {
        medium.store(&self.words[SIBLINGS + self.header(medium).alt()], next.offset());
        let _ = medium.persist(self.line(line_of(CAPACITY)));
    }

    /// Cuts a leaf at the split: the entries `moved`, which the new leaf `right` holds too, become
    /// invalid, and `right` becomes the right neighbour. Durable on return.
    ///
    /// ```text
    /// N right leaf              4 lines      crash before C: unreachable, free
    /// W sibling 1 - alt         8 B          unused until C
    /// F line 3 |
    /// C header                  8 B          the lower entries, alt flipped
    /// F line 0 |                -> durable   budget: 6 lines, 2 fences
    /// ```
    pub(super) fn cut<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        moved: &KeyedEntries<K>,
        right: PmPtr,
    ) -> Result<(), Corrupt> {
        let medium = pool.medium();
        let header = self.header(medium);
        let mut kept = header.flipped();
        for (key, entry) in moved {
            let found = self.find::<K, M>(pool, K::borrow(key))?;
            let Some((slot, _)) = found else { return Err(unfindable(self.at, *entry)) };
            kept = kept.without(slot);
        }
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        let alt = if injects(Defect::SiblingInUse) { header.alt() } else { kept.alt() };
        medium.store(&self.words[SIBLINGS + alt], right.offset());
        if !injects(Defect::SiblingUnfenced) {
            medium.flush(self.line(line_of(CAPACITY)));
        }
        let fenced = medium.fence();
        if injects(Defect::SiblingInUse) {
            kept = kept.flipped();
        }
        medium.commit(&self.words[HEADER], kept.0[0], fenced);
        let _ = medium.persist(self.line(0));
        Ok(())
    }

    /// Sets the lock bit as the authors' code does, and waits while a crash has left it set. For
    /// the defect [`Defect::LockBitKept`] alone.
    pub(super) fn set_lock_bit<M: Medium>(self, medium: &M) {
        let header = &self.words[HEADER];
        while medium.load(header) & LOCK != 0 {
            let _ = M::spin_hint();
        }
        medium.store(header, medium.load(header) | LOCK);
    }

    /// Persists line 0, for the defect [`Defect::LatchEarly`] alone.
    pub(super) fn persist_late<M: Medium>(self, medium: &M) {
        let _ = medium.persist(self.line(0));
    }
}

/// Returns the error for an entry that a lookup of its key does not find.
#[cold]
pub(super) fn unfindable(at: PmPtr, entry: Entry) -> Corrupt {
    let what = "entry that a lookup does not find";
    Corrupt { at: at.offset(), what, expected: 0, found: entry.key }
}

/// Returns the bytes of a leaf with the right neighbour `next`. Its entries lie in the last slots,
/// so that line 0 has space.
pub(super) fn image(next: PmPtr, entries: &[TaggedEntry]) -> Vec<u8> {
    let mut words = [0u64; WORDS];
    let mut header = LeafHeader::default();
    for (slot, &TaggedEntry { entry, fingerprint }) in (CAPACITY - entries.len()..).zip(entries) {
        header = header.with(slot, fingerprint);
        words[ENTRIES + 2 * slot] = entry.key;
        words[ENTRIES + 2 * slot + 1] = entry.value;
    }
    words[..ENTRIES].copy_from_slice(&header.0);
    words[SIBLINGS] = next.offset();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
