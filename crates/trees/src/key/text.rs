//! Byte-string keys behind a pointer: a key's word is the offset of a record.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | header | data | lengths of key and value in bytes, and a checksum |
//! | 8 | | bytes | data | the key, then the value, each padded to whole words |
//!
//! The header has, from its lowest bit: 13 bits of key length; 25 bits of value length, 0 in a key
//! record; 26 bits of the CRC-32C of lengths, key and value, mixed with a hash of the record's
//! offset. So a copy of another record does not pass the check.
//!
//! A record never changes, and nothing reaches it before it is fenced. Every read of a whole record
//! verifies the checksum. A comparison of keys reads only a part and does not.

use super::{Entry, Key, PmPtr};
use bristlecone_pmem::{Corrupt, Medium, PmWord, Pool, PoolError, checksum, checksum_append};
use core::cmp::Ordering;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 4096;

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
    #[inline]
    fn entry_prefix<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        if entry.key == 0 {
            return Ok(0);
        }
        let (words, length) = key_words(pool, entry.key)?;
        let first = words.first().map_or(0, |first| pool.medium().load(first).swap_bytes());
        Ok(mask_padding(first, length))
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

/// Returns a hash of all bytes of `key`, computed a word at a time.
#[inline]
pub(super) fn hash(key: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |state: u64, word: u64| {
        let state = (state.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
        state ^ state >> 32
    };
    let (words, rest) = key.as_chunks();
    let mut state = key.len() as u64;
    for bytes in words {
        state = mix(state, u64::from_le_bytes(*bytes));
    }
    if rest.is_empty() { state } else { mix(state, word(rest)) }
}

/// The header word of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHeader(u64);

impl RecordHeader {
    const KEY_BITS: u32 = 13;
    const CHECK_SHIFT: u32 = 38;
    /// The longest value, in bytes, whose length fits into a header.
    pub(super) const VALUE_BYTES_MAX: usize = (1 << (Self::CHECK_SHIFT - Self::KEY_BITS)) - 1;

    /// Returns the header of a record of `key` and `value`, with a checksum of 0.
    #[inline]
    pub(super) fn unchecked(key: &[u8], value: &[u8]) -> Self {
        assert!(key.len() <= KEY_BYTES_MAX && value.len() <= Self::VALUE_BYTES_MAX);
        Self(key.len() as u64 | (value.len() as u64) << Self::KEY_BITS)
    }

    /// Returns the header of a record of `key` and `value` at offset `at`.
    #[inline]
    pub(super) fn of(at: u64, key: &[u8], value: &[u8]) -> Self {
        const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
        let Self(lengths) = Self::unchecked(key, value);
        let check = checksum_append(checksum_append(checksum(&lengths.to_le_bytes()), key), value);
        let place = at.wrapping_mul(MULTIPLIER) >> Self::CHECK_SHIFT;
        Self(lengths | (u64::from(check) ^ place) << Self::CHECK_SHIFT)
    }

    /// Loads the header of the record at `word`. Fails if the key's length is over
    /// [`KEY_BYTES_MAX`].
    #[inline]
    pub(super) fn load<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Self, Corrupt> {
        let header = Self(pool.medium().load(&pool.words(PmPtr::new(word), 1)?[0]));
        if header.key_bytes() > KEY_BYTES_MAX {
            let (expected, found) = (KEY_BYTES_MAX as u64, header.key_bytes() as u64);
            return Err(Corrupt { at: word, what: "length of a key", expected, found });
        }
        Ok(header)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    pub(super) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    #[inline(always)]
    pub(super) const fn key_bytes(self) -> usize {
        (self.0 & ((1 << Self::KEY_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub(super) const fn value_bytes(self) -> usize {
        (self.0 >> Self::KEY_BITS) as usize & Self::VALUE_BYTES_MAX
    }

    /// Returns the size of the record in bytes.
    pub(super) const fn record_bytes(self) -> u64 {
        (8 + self.key_bytes().next_multiple_of(8) + self.value_bytes().next_multiple_of(8)) as u64
    }

    /// Verifies this header, of the record at `at`, against the record's contents.
    #[inline]
    pub(super) fn verify(self, at: u64, key: &[u8], value: &[u8]) -> Result<(), Corrupt> {
        let expected = Self::of(at, key, value).0;
        if expected == self.0 {
            return Ok(());
        }
        Err(Corrupt { at, what: "checksum of a record", expected, found: self.0 })
    }
}

/// Writes a key record for `key`, except for the empty key, whose word is 0.
pub(super) fn store_separator<M: Medium>(pool: &Pool<M>, key: &[u8]) -> Result<u64, PoolError> {
    if key.is_empty() {
        return Ok(0);
    }
    let at = pool.reserve(RecordHeader::unchecked(key, &[]).record_bytes())?;
    let mut bytes = Vec::with_capacity(8 + key.len());
    bytes.extend_from_slice(&RecordHeader::of(at.offset(), key, &[]).word().to_le_bytes());
    bytes.extend_from_slice(key);
    pool.medium().fill(pool.words(at, bytes.len().div_ceil(8))?, &bytes);
    Ok(at.offset())
}

/// Returns the words of the key whose record is at `word`, and the key's length in bytes.
#[inline]
pub(super) fn key_words<M: Medium>(
    pool: &Pool<M>,
    word: u64,
) -> Result<(&[PmWord], usize), Corrupt> {
    let length = RecordHeader::load(pool, word)?.key_bytes();
    Ok((&pool.words(PmPtr::new(word), 1 + length.div_ceil(8))?[1..], length))
}

/// Compares the key whose record is at `word` with `key`.
#[inline]
pub(super) fn order<M: Medium>(pool: &Pool<M>, word: u64, key: &[u8]) -> Result<Ordering, Corrupt> {
    if word == 0 {
        return Ok(if key.is_empty() { Ordering::Equal } else { Ordering::Less });
    }
    let (words, length) = key_words(pool, word)?;
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
pub(super) fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Vec<u8>, Corrupt> {
    read_to(pool, word, |bytes| vec![0; bytes])
}

/// Returns the key whose key record is at `word`, in a buffer that `zeros` makes.
pub(super) fn read_to<M: Medium, B: AsMut<[u8]>>(
    pool: &Pool<M>,
    word: u64,
    zeros: impl FnOnce(usize) -> B,
) -> Result<B, Corrupt> {
    if word != 0 {
        let found = RecordHeader::load(pool, word)?.value_bytes() as u64;
        if found != 0 {
            return Err(Corrupt {
                at: word,
                what: "value length of a key record",
                expected: 0,
                found,
            });
        }
    }
    read_pair_to(pool, word, zeros)
}

/// Returns the key whose record is at `word`, a key record or the record of a pair. For a pair it
/// reads only the key, so it cannot verify the checksum.
pub(super) fn read_pair_to<M: Medium, B: AsMut<[u8]>>(
    pool: &Pool<M>,
    word: u64,
    zeros: impl FnOnce(usize) -> B,
) -> Result<B, Corrupt> {
    if word == 0 {
        return Ok(zeros(0));
    }
    let header = RecordHeader::load(pool, word)?;
    let (words, length) = key_words(pool, word)?;
    let mut key = zeros(length);
    pool.medium().copy_out(words, key.as_mut());
    if header.value_bytes() == 0 {
        header.verify(word, key.as_mut(), &[])?;
    }
    Ok(key)
}

/// Returns the block of the key record at `word`, and its size in bytes.
pub(super) fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
    if word == 0 {
        return Ok(None);
    }
    Ok(Some((PmPtr::new(word), RecordHeader::load(pool, word)?.record_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_pmem::Mapped;
    use proptest::prelude::*;

    proptest! {
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
