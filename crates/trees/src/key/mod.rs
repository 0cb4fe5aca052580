//! The key layer: how a key becomes the word of 8 B that a node stores.
//!
//! A design stores words and asks the layer how a word compares. It meets a key in two places:
//!
//! * as a **separator**, a word that stands for the key by itself: in inner nodes, and as the low
//!   key of a leaf. Word 0 is the least key there is.
//! * as an **entry** of a leaf, a key word beside a value word.
//!
//! | layer | separator word | entry key word | key found |
//! | --- | --- | --- | --- |
//! | `u64` | the key | the key | in the word |
//! | [`Text`] | block of the key record | block of the key record | one more access a comparison |
//! | [`Record`] | up to 7 B of key and their number, or block of the key record | first 8 B of the key | in the word, or in the record that the value word names; the entry's shape says which |
//!
//! 1. A separator is owned by the node that stores it: it is planted for it and retired with it.
//! 2. `store_separator` leaves its record durable after the next fence of the thread, and flushes by itself.
//! 3. No key is special: 0, `u64::MAX`, the empty string are keys like any other.

pub(crate) mod bounds;
mod integer;
mod record;
mod text;

pub use record::{Bytes, INLINE_BYTES_MAX, Record, Stored};
pub use text::{KEY_BYTES_MAX, Text};

use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, Pool, PoolError};
use core::cmp::Ordering;
use core::fmt::Debug;

/// A kind of key, and how a node stores it.
pub trait Key: Send + Sync + 'static {
    /// A key as callers pass it.
    type Ref<'a>: Copy + Debug;
    /// A key that owns its bytes.
    type Owned: Ord + Clone + Send + Sync + Debug + 'static;

    /// The layer's name, part of what a pool records of an index.
    const NAME: &'static str;
    /// Whether [`prefix`](Self::prefix) is the whole key, so that equal prefixes are equal keys.
    const EXACT: bool;
    /// The least key; its separator word is 0.
    fn least() -> Self::Owned;
    /// The borrowed form of `key`.
    fn borrow(key: &Self::Owned) -> Self::Ref<'_>;
    /// The owned form of `key`.
    fn to_owned(key: Self::Ref<'_>) -> Self::Owned;
    /// How two keys compare.
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering;
    /// Shows `read` the key as bytes, which are in order as keys are.
    fn with_bytes<R>(key: Self::Ref<'_>, read: impl FnOnce(&[u8]) -> R) -> R;
    /// The key that [`with_bytes`](Self::with_bytes) shows as `bytes`, if there is one.
    fn of_bytes(bytes: &[u8]) -> Option<Self::Owned>;
    /// The first 8 B of the key as a number: never decreasing as keys increase.
    fn prefix(key: Self::Ref<'_>) -> u64;
    /// A hash of the whole key; its bits are all equally good.
    fn hash(key: Self::Ref<'_>) -> u64;

    /// A key above that of the entry `below` and not above `above`, which it is below: what parts them
    /// in an inner node. `above` itself, unless the layer gains from a shorter one.
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
    /// A separator word for `key`, with whatever block it needs; durable after the next fence.
    ///
    /// # Errors
    /// The pool is full.
    fn store_separator<M: Medium>(pool: &Pool<M>, key: Self::Ref<'_>) -> Result<u64, PoolError>;
    /// How the separator `word` compares to `key`.
    ///
    /// # Errors
    /// The word is damaged.
    fn order<M: Medium>(pool: &Pool<M>, word: u64, key: Self::Ref<'_>)
    -> Result<Ordering, Corrupt>;
    /// The key of the separator `word`.
    ///
    /// # Errors
    /// The word is damaged.
    fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Self::Owned, Corrupt>;
    /// Asks for what reading the separator `word` needs beyond it to be brought near.
    #[inline(always)]
    fn prefetch<M: Medium>(_pool: &Pool<M>, _word: u64) {}
    /// The block that the separator `word` owns and its bytes, if it owns one.
    ///
    /// # Errors
    /// The word is damaged.
    fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt>;

    /// The key word of an entry whose value word is `value`; durable after the next fence.
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
    /// How the key of an entry compares to `key`.
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
    /// [`prefix`](Self::prefix) of an entry's key; without an access beyond the entry where the layer
    /// keeps it there.
    ///
    /// # Errors
    /// The entry is damaged.
    #[inline]
    fn entry_prefix<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        Ok(Self::prefix(Self::borrow(&Self::read_entry(pool, entry)?)))
    }
    /// Asks for what comparing an entry reads beyond it to be brought near.
    #[inline(always)]
    fn prefetch_entry<M: Medium>(pool: &Pool<M>, entry: Entry) {
        Self::prefetch(pool, entry.key);
    }
    /// Asks for what comparing the entries of a leaf with the low key of the next one reads beyond them to
    /// be brought near.
    #[inline]
    fn prefetch_last<M: Medium>(pool: &Pool<M>, entries: impl Iterator<Item = Entry> + Clone) {
        entries.for_each(|entry| Self::prefetch_entry(pool, entry));
    }
    /// Compares the record of an entry with its check, where the layer has checks.
    ///
    /// # Errors
    /// The entry is damaged.
    #[inline(always)]
    fn verify_entry<M: Medium>(_pool: &Pool<M>, _entry: Entry) -> Result<(), Corrupt> {
        Ok(())
    }
    /// The key of an entry.
    ///
    /// # Errors
    /// The entry is damaged.
    fn read_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<Self::Owned, Corrupt> {
        Self::read(pool, entry.key)
    }
    /// Shows `read` the key of an entry.
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
    /// The block that an entry owns on behalf of its key and its bytes, if it owns one. The index
    /// retires it when the entry is removed.
    ///
    /// # Errors
    /// The entry is damaged.
    fn entry_block<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Self::block(pool, entry.key)
    }
    /// The block that an entry keeps alive through its value word, which recovery must mark though
    /// the index does not own it; for layers whose value words are pointers.
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

/// The two words of an entry, and what they mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Key word.
    pub key: u64,
    /// Value word.
    pub value: u64,
    /// Which of its forms the layer has used; [`PLAIN`] in layers with one form, and in leaves that
    /// have no room to say.
    pub shape: u8,
}

/// The shape of entries that have only one.
pub const PLAIN: u8 = 0;

impl Entry {
    /// An entry of the one form that every layer has.
    #[inline(always)]
    pub const fn plain(key: u64, value: u64) -> Self {
        Self { key, value, shape: PLAIN }
    }

    /// What the entry holds for its key.
    #[inline(always)]
    pub const fn held_value(self) -> Value {
        Value { word: self.value, shape: self.shape }
    }
}

/// What an entry holds for its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// Value word.
    pub word: u64,
    /// The entry's shape.
    pub shape: u8,
}

impl Value {
    /// A value of the one form that every layer has.
    #[inline(always)]
    pub const fn plain(word: u64) -> Self {
        Self { word, shape: PLAIN }
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

/// Retires the block that an entry, now removed, owned on behalf of its key.
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

/// Gives back the block of a separator that nothing durable names.
#[cold]
pub(crate) fn free_separator<K: Key, M: Medium>(pool: &Pool<M>, word: u64) {
    if let Ok(Some((block, bytes))) = K::block(pool, word) {
        pool.release(block, bytes);
    }
}

/// Gives back the block of an entry, as [`free_separator`] that of a separator.
#[cold]
pub(crate) fn free_entry_key<K: Key, M: Medium>(pool: &Pool<M>, entry: Entry) {
    if let Ok(Some((block, bytes))) = K::entry_block(pool, entry) {
        pool.release(block, bytes);
    }
}

/// While recovering: marks the block of a separator.
///
/// # Errors
/// The word is damaged.
pub fn mark<K: Key, M: Medium>(pool: &Pool<M>, word: u64) -> Result<(), Corrupt> {
    match K::block(pool, word)? {
        Some((block, bytes)) => pool.mark(block, bytes),
        None => Ok(()),
    }
}

/// While recovering: marks the blocks that an entry owns or keeps alive.
///
/// # Errors
/// The entry is damaged.
pub fn mark_entry<K: Key, M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<(), Corrupt> {
    let blocks = [K::entry_block(pool, entry)?, K::value_block(pool, entry)?];
    blocks.into_iter().flatten().try_for_each(|(block, bytes)| pool.mark(block, bytes))
}
