//! Byte strings with an inline prefix: the entry's key word is the first 8 B of the key, and its
//! value word is the block of a record that holds key and value together. So most comparisons
//! need no access beyond the node, one access brings key and value, and one store of 8 B replaces
//! a value of any length.
//!
//! The record has the layout of [`Text`](super::Text)'s; the value follows the key.

use super::{Entry, Key, PmPtr, Text, text};
use bristlecone_pmem::{Corrupt, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;

/// Values up to this length are joined with their key, so that no line is flushed twice; for longer
/// ones the copy would cost more than the line that both share.
const SHORT_BYTES: usize = 4096;

/// Byte-string keys with an inline prefix; value words are blocks of records made with
/// [`Record::write`].
#[derive(Debug)]
pub struct Record;

impl Record {
    /// Writes a record of `key` and `value`, durable after the next fence, and gives the value word
    /// that names it.
    ///
    /// # Errors
    /// The pool is full.
    pub fn write<M: Medium>(pool: &Pool<M>, key: &[u8], value: &[u8]) -> Result<u64, PoolError> {
        assert!(key.len() <= text::KEY_BYTES_MAX && u32::try_from(value.len()).is_ok());
        let at = pool.reserve(record_bytes(key.len(), value.len()))?;
        let key_words = 1 + key.len().div_ceil(8);
        let words = pool.words(at, key_words + value.len().div_ceil(8))?;
        let is_short = value.len() <= SHORT_BYTES;
        let mut head = Vec::with_capacity(key_words * 8 + if is_short { value.len() } else { 0 });
        head.extend_from_slice(&(key.len() as u32).to_le_bytes());
        head.extend_from_slice(&(value.len() as u32).to_le_bytes());
        head.extend_from_slice(key);
        if is_short {
            head.resize(key_words * 8, 0);
            head.extend_from_slice(value);
            pool.medium().fill(words, &head);
        } else {
            pool.medium().fill(&words[..key_words], &head);
            pool.medium().fill(&words[key_words..], value);
        }
        Ok(at.offset())
    }

    /// The words of the value in the record that `value` names, and its length in bytes.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn value<M: Medium>(pool: &Pool<M>, value: u64) -> Result<(&[PmWord], usize), Corrupt> {
        let (_, key_bytes) = text::key_words(pool, value)?;
        let at = PmPtr::new(value);
        let length = (pool.medium().load(&pool.words(at, 1)?[0]) >> 32) as usize;
        let start = 1 + key_bytes.div_ceil(8);
        let words = pool.words(at, start + length.div_ceil(8))?;
        Ok((&words[start..], length))
    }

    /// The block of the record that `value` names and its bytes.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn extent<M: Medium>(pool: &Pool<M>, value: u64) -> Result<(PmPtr, u64), Corrupt> {
        let (_, key_bytes) = text::key_words(pool, value)?;
        let (_, value_bytes) = Self::value(pool, value)?;
        Ok((PmPtr::new(value), record_bytes(key_bytes, value_bytes)))
    }
}

fn record_bytes(key_bytes: usize, value_bytes: usize) -> u64 {
    (8 + key_bytes.next_multiple_of(8) + value_bytes.next_multiple_of(8)) as u64
}

impl Key for Record {
    type Ref<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const NAME: &'static str = "record";
    const EXACT: bool = false;

    fn least() -> Vec<u8> {
        Vec::new()
    }
    fn borrow(key: &Vec<u8>) -> &[u8] {
        key
    }
    fn to_owned(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
    #[inline]
    fn prefix(key: &[u8]) -> u64 {
        text::prefix(key)
    }
    #[inline]
    fn hash(key: &[u8]) -> u64 {
        text::hash(key)
    }
    fn plant<M: Medium>(pool: &Pool<M>, key: &[u8]) -> Result<u64, PoolError> {
        Text::plant(pool, key)
    }
    fn order<M: Medium>(pool: &Pool<M>, word: u64, key: &[u8]) -> Result<Ordering, Corrupt> {
        Text::order(pool, word, key)
    }
    fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Vec<u8>, Corrupt> {
        Text::read(pool, word)
    }
    fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Text::block(pool, word)
    }

    #[inline]
    fn plant_entry<M: Medium>(_: &Pool<M>, key: &[u8], _: u64) -> Result<u64, PoolError> {
        Ok(text::prefix(key))
    }
    #[inline]
    fn order_entry<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
        key: &[u8],
    ) -> Result<Ordering, Corrupt> {
        match entry.key.cmp(&text::prefix(key)) {
            Ordering::Equal => text::order(pool, entry.value, key),
            different => Ok(different),
        }
    }
    #[inline(always)]
    fn entry_prefix<M: Medium>(_: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        Ok(entry.key)
    }
    #[inline(always)]
    fn prefetch_entry<M: Medium>(pool: &Pool<M>, entry: Entry) {
        if let Ok(record) = pool.words(PmPtr::new(entry.value), 1) {
            pool.medium().prefetch(record);
        }
    }
    fn read_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<Vec<u8>, Corrupt> {
        text::read(pool, entry.value)
    }
    fn entry_block<M: Medium>(_: &Pool<M>, _: Entry) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Ok(None)
    }
    fn value_block<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Self::extent(pool, entry.value).map(Some)
    }
}
