//! Leaves of hybrid indexes: one published layout in each file.
//!
//! A leaf is a view of the words of one block. The engine latches a leaf before a change and
//! validates the latch's version after an optimistic read. The layout decides everything else:
//! where the fields lie, which store commits a change, and the persist order.
//!
//! All layouts keep these invariants, because the engine relies on them:
//!
//! 1. `NEXT` names the right neighbour; 0 (encoded, see [`Leaf::encode_next`]) ends the chain.
//!    `LOW` holds the separator word of the low key and never changes. `LATCH` is transient.
//! 2. The content of a leaf is its valid entries below the low key of its right neighbour. A split
//!    or a merge that a crash interrupts can leave entries at or above that key. Recovery drops
//!    them ([`Leaf::retain`]) before any operation reads the leaf.

pub mod append;
pub mod circular;
pub mod fingerprint_bitmap;
pub mod isle;
pub(crate) mod link;
pub mod pairs;
pub mod slot_cache;
mod slotted;
pub mod sorted_shift;

use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};

/// An entry together with the fingerprint of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaggedEntry {
    /// The key word and the value word, with their encoding.
    pub entry: Entry,
    /// The fingerprint of the key, so that a split or a merge need not read the key again; 0 in
    /// layouts without fingerprints.
    pub fingerprint: u8,
}

/// The result of [`Leaf::insert`].
#[derive(Debug)]
pub enum InsertResult {
    /// The entry is in the leaf and durable.
    Done(Fenced),
    /// The leaf has no free slot and is unchanged: the engine must split or replace it first.
    Full,
}

/// Yields the indices of the set bits, from the lowest.
#[inline(always)]
pub(crate) fn slots(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let slot = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (slot < 64).then_some(slot)
    })
}

/// The layout of a leaf, with its persist orders.
pub trait Leaf: Send + Sync + 'static {
    /// The size of a leaf in words of 8 B.
    const WORDS: usize;
    /// The maximum number of entries in a leaf.
    const CAPACITY: usize;
    /// The index of the word that names the right neighbour.
    const NEXT: usize;
    /// The index of the word that holds the separator word of the low key.
    const LOW: usize;
    /// The index of the latch word.
    const LATCH: usize;

    /// The index of the word that holds the bitmap of the valid entries, in layouts that
    /// micro-logged splits can divide: bit i is entry i, and all bits below
    /// [`CAPACITY`](Self::CAPACITY) are set in a full leaf.
    const BITMAP: Option<usize> = None;

    /// `true` if [`verify`](Self::verify) can detect damage. The first thread that reaches such a
    /// leaf after an open verifies it.
    const HAS_CHECKSUM: bool = false;

    /// `true` if the first line of a leaf tells which entries a lookup reads.
    const HAS_DIRECTORY: bool = false;

    /// `true` if writes only append entries. A full leaf may then hold few live pairs, so the
    /// engine replaces it with fresh leaves and never splits it.
    const IS_APPEND_ONLY: bool = false;

    /// `true` if recovery leaves work to the first writer that latches a leaf after an open: see
    /// [`mend`](Self::mend).
    const IS_MENDED_BY_WRITERS: bool = false;

    /// The number of free slots that an [`update`](Self::update) may take.
    const UPDATE_SLOTS: usize = 1;

    /// Returns the word to store at [`NEXT`](Self::NEXT) to name the leaf at offset `next`.
    #[inline(always)]
    fn encode_next(next: u64) -> u64 {
        next
    }
    /// Returns the offset of the leaf that `word`, read at [`NEXT`](Self::NEXT), names. A layout
    /// that checks the word returns an offset outside every pool if the word is damaged.
    #[inline(always)]
    fn decode_next(word: u64) -> u64 {
        word
    }

    /// Flushes the word at [`NEXT`](Self::NEXT) after a store to it. Durable after the next fence.
    #[inline(always)]
    fn flush_link<M: Medium>(medium: &M, link: &[PmWord]) {
        medium.flush(link);
    }

    /// Fills the fresh block `words` with a leaf of `entries`, which are in any order and at most
    /// [`CAPACITY`](Self::CAPACITY). Durable after the next fence.
    ///
    /// # Errors
    /// An entry is damaged.
    fn format<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        low: u64,
        next: u64,
        entries: &[TaggedEntry],
    ) -> Result<(), Corrupt>;

    /// Returns the slot and the value of `key`, or `None` if the key is absent. A writer may run
    /// concurrently, so the result counts only after the caller has validated the latch's version.
    ///
    /// # Errors
    /// An entry is damaged, or torn by a concurrent writer.
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt>;

    /// Appends all valid entries to `entries`, in any order. A writer may run concurrently: see
    /// [`find`](Self::find).
    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>);

    /// Prefetches the entries that [`find`](Self::find) will read for `key`, if the leaf has a
    /// [directory](Self::HAS_DIRECTORY). Returns `true` if one may name a record.
    #[inline(always)]
    fn prefetch_entries<K: Key, M: Medium>(_: &Pool<M>, _: &[PmWord], _key: K::Ref<'_>) -> bool {
        !K::EXACT
    }
    /// Prefetches the records outside the leaf that [`find`](Self::find) will read for `key`.
    #[inline(always)]
    fn prefetch_records<K: Key, M: Medium>(_: &Pool<M>, _: &[PmWord], _key: K::Ref<'_>) {}

    /// Returns the number of valid entries.
    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize;

    /// Returns the number of entries that the leaf can still take.
    fn free_slots<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::CAPACITY - Self::count(medium, words)
    }

    /// Inserts `key`, which must be absent. Durable on return.
    ///
    /// # Errors
    /// The pool has no space for the record of the key, or is damaged.
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError>;

    /// Replaces the value of the entry in `slot`. Durable on return. Returns `None`, with the leaf
    /// unchanged, if the layout needs a free slot for this and none is left.
    fn update<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced>;

    /// Removes the entry in `slot` and returns it. Durable on return.
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry;

    /// Drops all entries for which `keep` returns `false`. Invariant 2 must already hide them, so
    /// that a crash in between changes no content. Durable on return; writes nothing if `keep`
    /// accepts all.
    ///
    /// # Errors
    /// The error of `keep`.
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt>;

    /// Adds `entries`, which must fit and lie at or above the low key of the right neighbour, so
    /// that invariant 2 hides them. Durable on return.
    ///
    /// # Errors
    /// An entry is damaged.
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt>;

    /// Compares the content of the leaf with its checksum, if the layout has one. Writes nothing.
    /// `at` is the offset of the leaf, for the error.
    ///
    /// # Errors
    /// The leaf is damaged.
    #[inline(always)]
    fn verify<M: Medium>(_: &M, _at: u64, _: &[PmWord]) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Compares the content of the leaf with its checksum, like [`verify`](Self::verify), and
    /// accepts a leaf whose newest write a crash has torn. Writes nothing. Another thread may
    /// settle the leaf meanwhile.
    ///
    /// # Errors
    /// The leaf is damaged.
    #[inline(always)]
    fn verify_torn<M: Medium>(medium: &M, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        Self::verify(medium, at, words)
    }

    /// Verifies the leaf after a crash, like [`verify`](Self::verify), and takes its newest write
    /// back if the crash has torn it. Durable on return.
    ///
    /// # Errors
    /// The leaf is damaged.
    #[inline(always)]
    fn settle<M: Medium>(medium: &M, at: u64, words: &[PmWord]) -> Result<(), Corrupt> {
        Self::verify(medium, at, words)
    }

    /// Removes what a crash has left in the leaf and readers ignore. The caller holds the latch, as
    /// the first thread since the open. Durable on return; writes nothing if nothing is left.
    fn mend<M: Medium>(_: &Pool<M>, _: &[PmWord]) {}

    /// Recomputes, after a crash, the fields that the layout derives from its entries. The leaf has
    /// passed [`settle`](Self::settle). `at` is the offset of the leaf, for the error.
    ///
    /// # Errors
    /// The leaf is damaged.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt>;
}
