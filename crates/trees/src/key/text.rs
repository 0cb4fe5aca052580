//! Byte-string keys behind a pointer: a key's word is the offset of a key record, 0 for the empty
//! key. [`format`](super::format) has the record's layout.
//!
//! Every read of a key verifies its checksum. A comparison that finds the probe equal does not need
//! to; one that finds it different verifies the checksum only if the design asks for it
//! ([`Key::verify_mismatch`]).

use super::format::{HEADER_BYTES, Header};
use super::{Entry, Key, PmPtr};
use bristlecone_pmem::{Corrupt, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;

/// The layer of byte-string keys behind a pointer, as the papers store them.
#[derive(Debug)]
pub struct Text;

impl Key for Text {
    type Ref<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const NAME: &'static str = "text";
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
    fn with_bytes<R>(key: &[u8], read: impl FnOnce(&[u8]) -> R) -> R {
        read(key)
    }
    fn of_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
    #[inline]
    fn prefix(key: &[u8]) -> u64 {
        prefix(key)
    }
    #[inline]
    fn hash(key: &[u8]) -> u64 {
        hash(key)
    }
    fn store_separator<M: Medium>(pool: &Pool<M>, key: &[u8]) -> Result<u64, PoolError> {
        store_separator(pool, key)
    }
    fn order<M: Medium>(pool: &Pool<M>, word: u64, key: &[u8]) -> Result<Ordering, Corrupt> {
        order(pool, word, key)
    }
    fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Vec<u8>, Corrupt> {
        read(pool, word)
    }
    #[inline(always)]
    fn prefetch<M: Medium>(pool: &Pool<M>, word: u64) {
        if let Ok(record) = pool.words(PmPtr::new(word), 1) {
            pool.medium().prefetch(record);
        }
    }
    fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        block(pool, word)
    }
    #[cold]
    fn verify_mismatch<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
        _different: &[u8],
    ) -> Result<(), Corrupt> {
        read(pool, entry.key).map(|_| ())
    }
    #[inline]
    fn entry_prefix<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        if entry.key == 0 {
            return Ok(0);
        }
        let (words, header) = key_words(pool, entry.key)?;
        let first = words.first().map_or(0, |first| pool.medium().load(first).swap_bytes());
        Ok(mask_padding(first, header.key_bytes()))
    }
}

/// Returns `word`, up to 8 B of a key in big-endian order, with zeros behind the last `length`
/// bytes of the key. The checksum does not cover the padding, which may be damaged.
#[inline(always)]
const fn mask_padding(word: u64, length: usize) -> u64 {
    if length < 8 { word & !(u64::MAX >> (8 * length)) } else { word }
}

/// Returns the first 8 B of `key` as a big-endian number, padded with zeros.
#[inline(always)]
pub(super) fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => word(key).swap_bytes(),
    }
}

/// Returns up to 8 B as a little-endian number. The loop avoids the function call that a copy of
/// unknown length compiles to.
#[inline(always)]
pub(super) fn word(bytes: &[u8]) -> u64 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_le_bytes(bytes);
    }
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Returns a hash of all bytes of `key`, computed a word at a time. Fingerprints are the highest
/// byte of it, so the last step makes that byte depend on every bit of the key: keys often differ
/// in their last bytes alone.
#[inline]
pub(super) fn hash(key: &[u8]) -> u64 {
    let (words, rest) = key.as_chunks();
    let mut state = key.len() as u64;
    for bytes in words {
        state = mix(state, u64::from_le_bytes(*bytes));
    }
    if !rest.is_empty() {
        state = mix(state, word(rest));
    }
    finish(state)
}

/// Returns the [`hash`] of a key of `length` bytes, at most 8, with this [`prefix`].
#[inline(always)]
pub(super) fn hash_of_short(prefix: u64, length: usize) -> u64 {
    let state = length as u64;
    finish(if length == 0 { state } else { mix(state, prefix.swap_bytes()) })
}

/// Adds a word to the state of a hash.
#[inline(always)]
fn mix(state: u64, word: u64) -> u64 {
    let state = (state.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state ^ state >> 32
}

/// Returns the hash with this state.
#[inline(always)]
fn finish(state: u64) -> u64 {
    (state ^ state >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Writes a key record for `key`, except for the empty key, whose word is 0.
pub(super) fn store_separator<M: Medium>(pool: &Pool<M>, key: &[u8]) -> Result<u64, PoolError> {
    if key.is_empty() {
        return Ok(0);
    }
    let at = pool.reserve((HEADER_BYTES + key.len().next_multiple_of(8)) as u64)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + key.len());
    bytes.extend_from_slice(&Header::of(at.offset(), key, 0).word().to_le_bytes());
    bytes.extend_from_slice(key);
    pool.medium().fill(pool.words(at, bytes.len().div_ceil(8))?, &bytes);
    Ok(at.offset())
}

/// Returns the header of the record at `word`, a key record or the record of a pair, and the words
/// of its key.
#[inline]
pub(super) fn key_words<M: Medium>(
    pool: &Pool<M>,
    word: u64,
) -> Result<(&[PmWord], Header), Corrupt> {
    let header = Header::load(pool, word)?;
    Ok((&pool.words(PmPtr::new(word), 1 + header.key_bytes().div_ceil(8))?[1..], header))
}

/// Compares the key whose record is at `word` with `key`.
#[inline]
pub(super) fn order<M: Medium>(pool: &Pool<M>, word: u64, key: &[u8]) -> Result<Ordering, Corrupt> {
    if word == 0 {
        return Ok(if key.is_empty() { Ordering::Equal } else { Ordering::Less });
    }
    let (words, header) = key_words(pool, word)?;
    let length = header.key_bytes();
    for (at, (stored, chunk)) in words.iter().zip(key.chunks(8)).enumerate() {
        let stored = pool.medium().load(stored).swap_bytes();
        let probe = prefix(chunk);
        if stored != probe {
            // Padding behind the stored key may make the last words differ; compare again without
            // it.
            let stored = mask_padding(stored, length - 8 * at);
            return Ok(stored.cmp(&probe).then(length.cmp(&key.len())));
        }
    }
    Ok(length.cmp(&key.len()))
}

/// Returns the key whose key record is at `word`.
#[expect(
    clippy::slow_vector_initialization,
    reason = "most C libraries cache small blocks for `malloc`, not for the `calloc` of `vec![0; n]`"
)]
pub(super) fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Vec<u8>, Corrupt> {
    read_to(pool, word, |bytes| {
        let mut key = Vec::with_capacity(bytes);
        key.resize(bytes, 0);
        key
    })
}

/// Returns the key whose key record is at `word`, in a buffer that `zeros` makes.
pub(super) fn read_to<M: Medium, B: AsMut<[u8]>>(
    pool: &Pool<M>,
    word: u64,
    zeros: impl FnOnce(usize) -> B,
) -> Result<B, Corrupt> {
    if word == 0 {
        return Ok(zeros(0));
    }
    Header::load_of_key(pool, word)?;
    read_record_key_to(pool, word, zeros)
}

/// Returns the key of the record at `word`, a key record or the record of a pair, and verifies its
/// checksum. Reads nothing of a value.
pub(super) fn read_record_key_to<M: Medium, B: AsMut<[u8]>>(
    pool: &Pool<M>,
    word: u64,
    zeros: impl FnOnce(usize) -> B,
) -> Result<B, Corrupt> {
    let (words, header) = key_words(pool, word)?;
    let mut key = zeros(header.key_bytes());
    pool.medium().copy_out(words, key.as_mut());
    header.verify_key(word, key.as_mut())?;
    Ok(key)
}

/// Returns the block of the key record at `word`, and its size in bytes.
pub(super) fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
    if word == 0 {
        return Ok(None);
    }
    Ok(Some((PmPtr::new(word), Header::load_of_key(pool, word)?.key_record_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_pmem::Mapped;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_hash_of_a_short_key_follows_from_its_prefix(
            key in prop::collection::vec(any::<u8>(), 0..=8),
        ) {
            prop_assert_eq!(hash_of_short(prefix(&key), key.len()), hash(&key));
        }

        #[test]
        fn stored_keys_compare_as_their_bytes(
            a in prop::collection::vec(0u8..3, 0..20),
            b in prop::collection::vec(0u8..3, 0..20),
        ) {
            let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
            let word = Text::store_separator(&pool, &a).unwrap();
            prop_assert_eq!(Text::order(&pool, word, &b).unwrap(), a.cmp(&b));
            prop_assert_eq!(Text::read(&pool, word).unwrap(), a.clone());
            prop_assert!(a > b || Text::prefix(&a) <= Text::prefix(&b));
            let entry = Entry::plain(word, 0);
            prop_assert_eq!(Text::entry_prefix(&pool, entry).unwrap(), Text::prefix(&a));
            if !a.len().is_multiple_of(8) {
                let last = &pool.words(PmPtr::new(word), 1 + a.len().div_ceil(8)).unwrap()[a.len().div_ceil(8)];
                pool.medium().store(last, pool.medium().load(last) | 0xff << 56);
                prop_assert_eq!(Text::entry_prefix(&pool, entry).unwrap(), Text::prefix(&a));
                prop_assert_eq!(Text::order(&pool, word, &b).unwrap(), a.cmp(&b));
                prop_assert_eq!(Text::order(&pool, word, &a).unwrap(), Ordering::Equal);
            }
        }
    }
}
