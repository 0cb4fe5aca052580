//! The value record: a value in a block of its own.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | length | data | length of the value in bytes, at most [`VALUE_BYTES_MAX`] |
//! | 8 | | value | data | padded with zeros to whole words |
//!
//! The block begins a line. The record is valid if an entry of the index names it.

use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};

/// The longest value, in bytes: that of memcached.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// The size of the length, in bytes.
const HEADER_BYTES: usize = 8;

/// Returns the size of the record of a value of `value_bytes` bytes.
const fn record_bytes(value_bytes: usize) -> u64 {
    HEADER_BYTES as u64 + value_bytes.next_multiple_of(8) as u64
}

/// Writes a record of `value` into a fresh block and flushes it: durable after the next fence.
///
/// # Errors
/// The pool is full.
///
/// # Persist order
/// ```text
/// W length, value     their lines
/// F length, value
/// ```
pub(super) fn write<M: Medium>(pool: &Pool<M>, value: &[u8]) -> Result<PmPtr, PoolError> {
    debug_assert!(value.len() <= VALUE_BYTES_MAX, "the store checks the length of a value");
    let bytes = record_bytes(value.len());
    let at = pool.reserve(bytes)?;
    debug_assert!(at.offset().is_multiple_of(LINE_BYTES as u64), "a block begins a line");
    let words = pool.words(at, bytes as usize / 8)?;
    pool.medium().store(&words[0], value.len() as u64);
    for (word, chunk) in words[1..].iter().zip(value.chunks(8)) {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        pool.medium().store(word, u64::from_le_bytes(padded));
    }
    pool.medium().flush(words);
    Ok(at)
}

/// Returns the words of the value of the record at `at`, and its length in bytes.
///
/// # Errors
/// The length is over [`VALUE_BYTES_MAX`], or the record is not inside the pool.
fn value_words<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<(&[PmWord], usize), Corrupt> {
    let length = pool.medium().load(&pool.words(at, 1)?[0]);
    let expected = VALUE_BYTES_MAX as u64;
    if length > expected {
        let (at, what) = (at.offset(), "length of a value record");
        return Err(Corrupt { at, what, expected, found: length });
    }
    let bytes = length as usize;
    Ok((&pool.words(at, record_bytes(bytes) as usize / 8)?[1..], bytes))
}

/// Replaces the contents of `value` by the value of the record at `at`.
///
/// # Errors
/// The record is damaged.
pub(super) fn read<M: Medium>(
    pool: &Pool<M>,
    at: PmPtr,
    value: &mut Vec<u8>,
) -> Result<(), Corrupt> {
    let (words, bytes) = value_words(pool, at)?;
    value.clear();
    value.resize(bytes, 0);
    pool.medium().copy_out(words, value);
    Ok(())
}

/// Returns the block of the record at `at` and its size in bytes.
///
/// # Errors
/// The record is damaged.
pub(super) fn block<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<(PmPtr, u64), Corrupt> {
    Ok((at, record_bytes(value_words(pool, at)?.1)))
}
