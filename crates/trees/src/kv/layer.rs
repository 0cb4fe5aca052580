//! The key layer of the store: [`Text`], whose value words are offsets of value records.

use super::value_record;
use crate::key::{Entry, Key, Text};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;

/// The key layer of a [`KvStore`](super::KvStore): the keys of [`Text`], with values that name
/// value records.
///
/// Recovery of any design so marks the value records of the entries that count, and `check` counts
/// them. Its name is part of the root's kind: an index that did not know the value records, and
/// would free them, cannot open the pool.
#[derive(Debug)]
pub struct KvKey;

impl Key for KvKey {
    type Ref<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const NAME: &'static str = "kv";
    const EXACT: bool = Text::EXACT;

    fn least() -> Vec<u8> {
        Text::least()
    }
    fn borrow(key: &Vec<u8>) -> &[u8] {
        Text::borrow(key)
    }
    fn to_owned(key: &[u8]) -> Vec<u8> {
        Text::to_owned(key)
    }
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        Text::compare(a, b)
    }
    fn with_bytes<R>(key: &[u8], read: impl FnOnce(&[u8]) -> R) -> R {
        Text::with_bytes(key, read)
    }
    fn of_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Text::of_bytes(bytes)
    }
    #[inline]
    fn prefix(key: &[u8]) -> u64 {
        Text::prefix(key)
    }
    #[inline]
    fn hash(key: &[u8]) -> u64 {
        Text::hash(key)
    }
    fn store_separator<M: Medium>(pool: &Pool<M>, key: &[u8]) -> Result<u64, PoolError> {
        Text::store_separator(pool, key)
    }
    #[inline]
    fn order<M: Medium>(pool: &Pool<M>, word: u64, key: &[u8]) -> Result<Ordering, Corrupt> {
        Text::order(pool, word, key)
    }
    fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Vec<u8>, Corrupt> {
        Text::read(pool, word)
    }
    #[inline(always)]
    fn prefetch<M: Medium>(pool: &Pool<M>, word: u64) {
        Text::prefetch(pool, word);
    }
    fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Text::block(pool, word)
    }
    fn verify_mismatch<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
        different: &[u8],
    ) -> Result<(), Corrupt> {
        Text::verify_mismatch(pool, entry, different)
    }
    #[inline]
    fn entry_prefix<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        Text::entry_prefix(pool, entry)
    }
    fn value_block<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        let injects = M::INJECTS_DEFECTS && pool.medium().injects(Defect::ValuesUnmarked);
        if injects && pool.is_recovering() {
            return Ok(None);
        }
        value_record::block(pool, PmPtr::new(entry.value)).map(Some)
    }
}
