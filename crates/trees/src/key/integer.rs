//! Integer keys of 8 B: a key is its own separator word and its own entry key word.

use super::{Entry, Key, PmPtr};
use bristlecone_pmem::{Corrupt, Medium, Pool, PoolError};
use core::cmp::Ordering;

impl Key for u64 {
    type Ref<'a> = u64;
    type Owned = u64;
    const NAME: &'static str = "u64";
    const EXACT: bool = true;
    const PREFIX_IN_ENTRY: bool = true;

    fn least() -> u64 {
        0
    }
    #[inline(always)]
    fn borrow(key: &u64) -> u64 {
        *key
    }
    #[inline(always)]
    fn to_owned(key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn compare(a: u64, b: u64) -> Ordering {
        a.cmp(&b)
    }
    fn with_bytes<R>(key: u64, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&key.to_be_bytes())
    }
    fn of_bytes(bytes: &[u8]) -> Option<u64> {
        bytes.try_into().ok().map(u64::from_be_bytes)
    }
    #[inline(always)]
    fn prefix(key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn hash(key: u64) -> u64 {
        // Fibonacci hashing: the highest byte, the fingerprint, depends on all bits of the key. It
        // is folded so that the low bits do, too.
        let product = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ (product >> 32)
    }
    #[inline(always)]
    fn stands_alone(_: u8) -> bool {
        true
    }
    #[inline(always)]
    fn store_separator<M: Medium>(_: &Pool<M>, key: u64) -> Result<u64, PoolError> {
        Ok(key)
    }
    #[inline(always)]
    fn order<M: Medium>(_: &Pool<M>, word: u64, key: u64) -> Result<Ordering, Corrupt> {
        Ok(word.cmp(&key))
    }
    #[inline(always)]
    fn entry_prefix<M: Medium>(_: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        Ok(entry.key)
    }
    #[inline(always)]
    fn read<M: Medium>(_: &Pool<M>, word: u64) -> Result<u64, Corrupt> {
        Ok(word)
    }
    #[inline(always)]
    fn block<M: Medium>(_: &Pool<M>, _: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Ok(None)
    }
}
