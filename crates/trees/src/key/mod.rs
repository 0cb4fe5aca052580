//! The key layer: how a key becomes the word of 8 B that a node stores.
//!
//! A design stores words and calls the layer to compare a word with a key. Words occur in two
//! places:
//!
//! * as a **separator**, a word that represents a key alone: in inner nodes, and as the low key of
//!   a leaf. Word 0 is the least key.
//! * in an **entry** of a leaf, as a key word beside a value word.
//!
//! | layer | separator word | entry key word |
//! | --- | --- | --- |
//! | `u64` | the key | the key |
//! | [`Text`] | block of the key record | block of the key record |
//! | [`Record`] | key of up to 7 B and its length, or block of its record | first 8 B of the key |
//!
//! Comparing a `u64` reads only the word. Comparing a [`Text`] key reads its record, too. Comparing
//! a [`Record`] key reads the record only if the word does not decide and the entry's encoding says
//! that the value word names one.
//!
//! 1. A node owns the separators that it stores: their records are written for it and retired with
//!    it.
//! 2. `store_separator` flushes the record that it writes. The record is durable after the next
//!    fence of the thread.
//! 3. No key is special: 0, `u64::MAX` and the empty string are keys like any other.

pub(crate) mod bounds;
pub mod format;
mod integer;
mod record;
mod text;

pub use format::KEY_BYTES_MAX;
pub use record::{Bytes, INLINE_BYTES_MAX, InlinePair, Record, Stored};
pub use text::Text;

use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, Pool, PoolError};
use core::cmp::Ordering;
use core::fmt::Debug;

/// A kind of key, and the way in which a node stores it.
pub trait Key: Send + Sync + 'static {
    /// A key as callers pass it.
    type Ref<'a>: Copy + Debug;
    /// A key that owns its bytes.
    type Owned: Ord + Clone + Send + Sync + Debug + 'static;

    /// The name of the layer. It is part of [`Spec::kind`](crate::Spec::kind), which the pool
    /// stores.
    const NAME: &'static str;
    /// `true` if [`prefix`](Self::prefix) is the whole key, so that equal prefixes mean equal keys.
    const EXACT: bool;
    /// `true` if [`entry_prefix`](Self::entry_prefix) reads nothing but the entry.
    const PREFIX_IN_ENTRY: bool = false;
    /// `true` if entries have an [encoding](Entry::encoding), which a leaf then stores.
    const HAS_ENCODINGS: bool = false;
    /// Returns the least key; its separator word is 0.
    fn least() -> Self::Owned;
    /// Returns the borrowed form of `key`.
    fn borrow(key: &Self::Owned) -> Self::Ref<'_>;
    /// Returns the owned form of `key`.
    fn to_owned(key: Self::Ref<'_>) -> Self::Owned;
    /// Compares two keys in the order of the index.
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering;
    /// Calls `read` with the key as bytes, whose order is the order of the keys.
    fn with_bytes<R>(key: Self::Ref<'_>, read: impl FnOnce(&[u8]) -> R) -> R;
    /// Returns the key that [`with_bytes`](Self::with_bytes) would pass as `bytes`, if there is
    /// one.
    fn of_bytes(bytes: &[u8]) -> Option<Self::Owned>;
    /// Returns the first 8 B of the key as a number. A greater key never has a smaller prefix.
    fn prefix(key: Self::Ref<'_>) -> u64;
    /// Returns a hash of the whole key. Its highest byte, the
    /// fingerprint, depends on every byte of the key.
    fn hash(key: Self::Ref<'_>) -> u64;

    /// Returns a separator between the entry `below` and the greater key `above`: a key that is
    /// greater than that of the entry, and at most `above`. This is `above` itself unless the layer
    /// gains from a shorter one.
    ///
    /// # Errors
    /// The entry is damaged.
    fn between<M: Medium>(
        _: &Pool<M>,
        _below: Entry,
        above: Self::Ref<'_>,
    ) -> Result<Self::Owned, Corrupt> {
        Ok(Self::to_owned(above))
    }
    /// Returns a separator word for `key` and writes the record that it needs, if any. Durable
    /// after the next fence.
    ///
    /// # Errors
    /// The pool is full.
    fn store_separator<M: Medium>(pool: &Pool<M>, key: Self::Ref<'_>) -> Result<u64, PoolError>;
    /// Compares the separator `word` with `key`.
    ///
    /// # Errors
    /// The word is damaged.
    fn order<M: Medium>(pool: &Pool<M>, word: u64, key: Self::Ref<'_>)
    -> Result<Ordering, Corrupt>;
    /// Returns the key of the separator `word`.
    ///
    /// # Errors
    /// The word is damaged.
    fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Self::Owned, Corrupt>;
    /// Prefetches the record that reading the separator `word` needs, if any.
    #[inline(always)]
    fn prefetch<M: Medium>(_pool: &Pool<M>, _word: u64) {}
    /// Returns the block that the separator `word` owns, and the block's bytes, if it owns one.
    ///
    /// # Errors
    /// The word is damaged.
    fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt>;

    /// Returns the key word of an entry for `key` whose value word is `value`, and writes the
    /// record that it needs, if any. Durable after the next fence.
    ///
    /// # Errors
    /// The pool is full.
    fn store_entry_key<M: Medium>(
        pool: &Pool<M>,
        key: Self::Ref<'_>,
        _value: u64,
    ) -> Result<u64, PoolError> {
        Self::store_separator(pool, key)
    }
    /// Compares the key of an entry with `key`.
    ///
    /// # Errors
    /// The entry is damaged.
    #[inline(always)]
    fn order_entry<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
        key: Self::Ref<'_>,
    ) -> Result<Ordering, Corrupt> {
        Self::order(pool, entry.key, key)
    }
    /// Returns the [`prefix`](Self::prefix) of an entry's key. Reads nothing but the entry if the
    /// layer keeps the prefix there.
    ///
    /// # Errors
    /// The entry is damaged.
    #[inline]
    fn entry_prefix<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        Ok(Self::prefix(Self::borrow(&Self::read_entry(pool, entry)?)))
    }
    /// Prefetches what comparing the entry with a key reads beyond the entry.
    #[inline(always)]
    fn prefetch_entry<M: Medium>(pool: &Pool<M>, entry: Entry) {
        Self::prefetch(pool, entry.key);
    }
    /// Prefetches what comparing all entries of a leaf with the low key of the next leaf reads
    /// beyond the entries.
    #[inline]
    fn prefetch_bound_comparison<M: Medium>(
        pool: &Pool<M>,
        entries: impl Iterator<Item = Entry> + Clone,
    ) {
        entries.for_each(|entry| Self::prefetch_entry(pool, entry));
    }
    /// Verifies what the comparison of an entry with `different` has read outside the entry, if the
    /// layer has checksums there. The two keys differ; damage may be the reason. Reads no value.
    ///
    /// # Errors
    /// The key of the entry is damaged.
    #[inline(always)]
    fn verify_mismatch<M: Medium>(
        _pool: &Pool<M>,
        _entry: Entry,
        _different: Self::Ref<'_>,
    ) -> Result<(), Corrupt> {
        Ok(())
    }
    /// Returns the key of an entry.
    ///
    /// # Errors
    /// The entry is damaged.
    fn read_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<Self::Owned, Corrupt> {
        Self::read(pool, entry.key)
    }
    /// Calls `read` with the key of an entry and returns its result.
    ///
    /// # Errors
    /// The entry is damaged.
    #[inline(always)]
    fn with_entry<M: Medium, R>(
        pool: &Pool<M>,
        entry: Entry,
        read: impl FnOnce(Self::Ref<'_>) -> R,
    ) -> Result<R, Corrupt> {
        Ok(read(Self::borrow(&Self::read_entry(pool, entry)?)))
    }
    /// Returns the [`hash`](Self::hash) of the key of an entry.
    ///
    /// # Errors
    /// The entry is damaged.
    #[inline(always)]
    fn hash_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        Self::with_entry(pool, entry, Self::hash)
    }
    /// Returns the block that an entry owns for its key, and the block's bytes, if it owns one. The
    /// index retires the block when it removes the entry.
    ///
    /// # Errors
    /// The entry is damaged.
    fn entry_block<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Self::block(pool, entry.key)
    }
    /// Returns `true` if entries of this encoding name no block, so that each is whole by itself.
    #[inline(always)]
    fn stands_alone(_encoding: u8) -> bool {
        false
    }
    /// Returns the block that an entry keeps alive through its value word, if the layer's value
    /// words are pointers. The index does not own the block, but recovery must mark it.
    ///
    /// # Errors
    /// The entry is damaged.
    fn value_block<M: Medium>(
        _pool: &Pool<M>,
        _entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Ok(None)
    }
}

pub use bristlecone_pmem::PmPtr;

/// An entry of a leaf: a key word, a value word and their encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The key word: the key, its prefix or the block of its record, as the layer defines.
    pub key: u64,
    /// The value word: the value, or the block of a record that holds it.
    pub value: u64,
    /// The encoding that the layer has chosen. It is [`PLAIN`] in layers with one encoding, and in
    /// leaves that do not store it.
    pub encoding: u8,
}

/// The encoding of entries in layers that have only one.
pub const PLAIN: u8 = 0;

impl Entry {
    /// The number of words of a pair: a key word, then a value word.
    pub const WORDS: usize = 2;
    /// The number of words of a pair of 16 B + 16 B, as a report has them: key word, value word,
    /// and as much padding, which nothing reads.
    pub const WIDE_WORDS: usize = 4;

    /// Returns an entry of the encoding that every layer has.
    #[inline(always)]
    pub const fn plain(key: u64, value: u64) -> Self {
        Self { key, value, encoding: PLAIN }
    }

    /// Returns the value part of the entry: its value word and its encoding.
    #[inline(always)]
    pub const fn held_value(self) -> Value {
        Value { word: self.value, encoding: self.encoding }
    }
}

/// The value part of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// The value word: the value, or the block of a record that holds it.
    pub word: u64,
    /// The encoding of the entry.
    pub encoding: u8,
}

impl Value {
    /// Returns a value of the encoding that every layer has.
    #[inline(always)]
    pub const fn plain(word: u64) -> Self {
        Self { word, encoding: PLAIN }
    }
}

/// Retires the block of a separator that no node stores any more.
///
/// # Errors
/// The word is damaged.
pub fn retire<K: Key, M: Medium>(pool: &Pool<M>, word: u64, guard: &Guard) -> Result<(), Corrupt> {
    if let Some((block, bytes)) = K::block(pool, word)? {
        pool.retire(block, bytes, guard);
    }
    Ok(())
}

/// Retires the block that a removed entry owned for its key.
///
/// # Errors
/// The entry is damaged.
pub fn retire_entry<K: Key, M: Medium>(
    pool: &Pool<M>,
    entry: Entry,
    guard: &Guard,
) -> Result<(), Corrupt> {
    if let Some((block, bytes)) = K::entry_block(pool, entry)? {
        pool.retire(block, bytes, guard);
    }
    Ok(())
}

/// Releases the block of a separator that was never published.
#[cold]
pub(crate) fn free_separator<K: Key, M: Medium>(pool: &Pool<M>, word: u64) {
    if let Ok(Some((block, bytes))) = K::block(pool, word) {
        pool.release(block, bytes);
    }
}

/// Releases the block that an entry owns for its key, if the entry was never published.
#[cold]
pub(crate) fn free_entry_key<K: Key, M: Medium>(pool: &Pool<M>, entry: Entry) {
    if let Ok(Some((block, bytes))) = K::entry_block(pool, entry) {
        pool.release(block, bytes);
    }
}

/// Marks the block of a separator during recovery.
///
/// # Errors
/// The word is damaged.
pub fn mark<K: Key, M: Medium>(pool: &Pool<M>, word: u64) -> Result<(), Corrupt> {
    match K::block(pool, word)? {
        Some((block, bytes)) => pool.mark(block, bytes),
        None => Ok(()),
    }
}

/// Marks the blocks that an entry owns or keeps alive, during recovery.
///
/// # Errors
/// The entry is damaged.
pub fn mark_entry<K: Key, M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<(), Corrupt> {
    let blocks = [K::entry_block(pool, entry)?, K::value_block(pool, entry)?];
    blocks.into_iter().flatten().try_for_each(|(block, bytes)| pool.mark(block, bytes))
}
