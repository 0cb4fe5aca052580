//! Leaves of hybrid indexes: one published layout a file.
//!
//! A leaf is a view of the words of a block. The engine gives it exclusive access for changes and
//! validates a version after optimistic reads; the leaf owns everything else: its layout, its commit word,
//! and the order in which it persists.
//!
//! What all leaves share, because the engine works with it:
//!
//! 1. `NEXT` holds the leaf to the right, or 0. `LOW` holds the separator word of the low key; it
//!    never changes. `LATCH` is transient.
//! 2. The content of a leaf is its valid entries below the low key of its right neighbour. Entries at
//!    or above it are leftovers of a split or of a merge that a crash cut off; recovery drops them
//!    ([`Leaf::retain`]) before anything else looks.

pub mod append;
pub mod circular;
pub mod fingerprint_bitmap;
pub mod isle;
pub mod pairs;
pub mod slot_cache;
pub mod slot_log;
mod slotted;
pub mod sorted_shift;

use crate::key::{Entry, Key, Value};
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord, Pool, PoolError};

/// An entry as a leaf holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaggedEntry {
    /// Key word and value word.
    pub entry: Entry,
    /// The key's fingerprint, so that it moves along without the key being read again; 0 in leaves
    /// that keep none.
    pub fingerprint: u8,
}

/// What a leaf says to an insert.
#[derive(Debug)]
pub enum InsertResult {
    /// Inserted and durable.
    Done(Fenced),
    /// There is no room: split first.
    Full,
}

/// The slots whose bits are set, from the lowest.
#[inline(always)]
fn slots(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let slot = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (slot < 64).then_some(slot)
    })
}

/// A leaf layout.
pub trait Leaf: Send + Sync + 'static {
    /// Words of a leaf.
    const WORDS: usize;
    /// The most entries that a leaf holds.
    const CAPACITY: usize;
    /// Index of the word that names the right neighbour.
    const NEXT: usize;
    /// Index of the word of the low key.
    const LOW: usize;
    /// Index of the latch word.
    const LATCH: usize;

    /// Whether [`verify`](Self::verify) can find damage: then a leaf is verified by whoever is the first
    /// to come to it after an open.
    const HAS_CHECKSUM: bool = false;

    /// Whether entries are only ever appended, so that a leaf that has no room may hold few that count:
    /// then it is replaced by fresh leaves, never split.
    const IS_APPEND_ONLY: bool = false;

    /// The word at [`NEXT`](Self::NEXT) that names the leaf at `next`.
    #[inline(always)]
    fn encode_next(next: u64) -> u64 {
        next
    }
    /// The leaf that the word at [`NEXT`](Self::NEXT) names; an offset that no pool has if the word
    /// is damaged, where the layout can tell.
    #[inline(always)]
    fn decode_next(word: u64) -> u64 {
        word
    }

    /// Fills the fresh block `words` with a leaf; durable after the next fence. `entries` are in any
    /// order, at most [`CAPACITY`](Self::CAPACITY).
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

    /// The slot and value of `key`. May run while a writer writes: the caller validates.
    ///
    /// # Errors
    /// An entry is damaged, or torn by a writer.
    fn find<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Value)>, Corrupt>;

    /// Appends all valid entries to `entries`, in any order. May run while a writer writes.
    fn collect<M: Medium>(medium: &M, words: &[PmWord], entries: &mut Vec<TaggedEntry>);

    /// Asks for what [`find`](Self::find) will read beyond the leaf to be brought near.
    #[inline(always)]
    fn prefetch_candidates<K: Key, M: Medium>(_: &Pool<M>, _: &[PmWord], _key: K::Ref<'_>) {}

    /// How many entries are valid.
    fn count<M: Medium>(medium: &M, words: &[PmWord]) -> usize;

    /// How many entries can be added.
    fn free_slots<M: Medium>(medium: &M, words: &[PmWord]) -> usize {
        Self::CAPACITY - Self::count(medium, words)
    }

    /// Adds a key that is absent. Durable at return.
    ///
    /// # Errors
    /// The pool has no room for the key's record, or is damaged.
    fn insert<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        key: K::Ref<'_>,
        value: Value,
    ) -> Result<InsertResult, PoolError>;

    /// Changes the value of the entry in `slot`. Durable at return. `None` if it takes room that
    /// there is not, and nothing was changed.
    fn update<M: Medium>(medium: &M, words: &[PmWord], slot: usize, value: Value)
    -> Option<Fenced>;

    /// Removes the entry in `slot` and gives it. Durable at return.
    fn remove<M: Medium>(pool: &Pool<M>, words: &[PmWord], slot: usize) -> Entry;

    /// Drops all entries that `keep` refuses. Durable at return; nothing is written if it keeps all.
    /// The entries that it refuses must be hidden by invariant 2.
    ///
    /// # Errors
    /// What `keep` says.
    fn retain<M: Medium>(
        medium: &M,
        words: &[PmWord],
        keep: &mut dyn FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<(), Corrupt>;

    /// Takes in entries, all at or above the low key of the right neighbour and so hidden by
    /// invariant 2, which fit. Durable at return.
    ///
    /// # Errors
    /// An entry is damaged.
    fn absorb<K: Key, M: Medium>(
        pool: &Pool<M>,
        words: &[PmWord],
        entries: &[TaggedEntry],
    ) -> Result<Fenced, Corrupt>;

    /// Compares what the leaf holds with what it says of it, where the layout does. Writes nothing.
    ///
    /// # Errors
    /// The leaf is damaged. `at` is its offset, for the report.
    #[inline(always)]
    fn verify<M: Medium>(_: &M, _at: u64, _: &[PmWord]) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Makes good whatever a leaf holds that it can compute again, after a crash; the leaf is
    /// [verified](Self::verify) already.
    ///
    /// # Errors
    /// The leaf is damaged. `at` is its offset, for the report.
    fn repair<K: Key, M: Medium>(pool: &Pool<M>, at: u64, words: &[PmWord]) -> Result<(), Corrupt>;
}
