//! The format of a record: a key, or a pair of key and value, in a block of its own.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | header | data | lengths, flags and the sum of the key |
//! | 8 | | key | data | padded with zeros to whole words |
//! | | | value | data | directly followed by the next field; absent in a key record |
//! | | 4 | sum | data | of header, key and value; zeros to a whole word follow |
//!
//! A key record ends with the key. The bits of the header:
//!
//! | bits | field |
//! | --- | --- |
//! | 0..13 | length of the key in bytes, up to 4096 |
//! | 13..38 | length of the value in bytes; 0 in a key record |
//! | 38, 39 | flags, 0: a record with a flag has fields that this release does not know |
//! | 40..64 | sum of the key |
//!
//! 1. A record never changes, and nothing reaches it before it is fenced.
//! 2. The sum of the key covers both lengths, the flags and the key. So a thread that compares keys
//!    reads header and key alone, however long the value is.
//! 3. The sum behind the value covers header, key and value.
//! 4. Both sums are mixed with a hash of the record's offset. So a copy of another record passes
//!    neither check.
//! 5. Padding is covered by no sum, and no reader uses it.

use super::PmPtr;
use bristlecone_pmem::{Corrupt, Medium, PmWord, Pool, checksum, checksum_append};

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 4096;
/// The size of the header in bytes.
pub(super) const HEADER_BYTES: usize = 8;
/// The size of the sum behind a value, in bytes.
const SUM_BYTES: usize = 4;

/// Returns the offset of the value in a record whose key has `key_bytes` bytes.
#[inline(always)]
pub(super) const fn value_offset(key_bytes: usize) -> usize {
    HEADER_BYTES + key_bytes.next_multiple_of(8)
}

/// Returns the size, in bytes, of the record of a pair of these lengths, without the zeros behind
/// its last sum.
pub const fn pair_record_bytes(key_bytes: usize, value_bytes: usize) -> usize {
    value_offset(key_bytes) + value_bytes + SUM_BYTES
}

/// The header word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header(u64);

impl Header {
    const KEY_BITS: u32 = 13;
    const VALUE_BITS: u32 = 25;
    const FLAGS: u64 = 0b11 << (Self::KEY_BITS + Self::VALUE_BITS);
    const SUM_SHIFT: u32 = 40;
    /// The longest value, in bytes, whose length fits into a header.
    const VALUE_BYTES_MAX: usize = (1 << Self::VALUE_BITS) - 1;

    /// Returns the header of the record at offset `at`, of `key` and of a value of `value_bytes`
    /// bytes.
    #[inline]
    pub(super) fn of(at: u64, key: &[u8], value_bytes: usize) -> Self {
        assert!(
            key.len() <= KEY_BYTES_MAX && value_bytes <= Self::VALUE_BYTES_MAX,
            "key and value must be no longer than their fields can say"
        );
        let lengths = key.len() as u64 | (value_bytes as u64) << Self::KEY_BITS;
        Self(lengths | Self::key_sum(lengths, at, key) << Self::SUM_SHIFT)
    }

    /// Returns the sum of a key, in 24 bits. `lengths` is the header without its sum.
    #[inline]
    fn key_sum(lengths: u64, at: u64, key: &[u8]) -> u64 {
        let sum = u64::from(checksum_append(checksum(&lengths.to_le_bytes()), key));
        (sum << Self::SUM_SHIFT ^ location_hash(at)) >> Self::SUM_SHIFT
    }

    /// Returns the header `word` of the record at `at`, whose sum is not verified yet.
    ///
    /// # Errors
    /// The key's length is over [`KEY_BYTES_MAX`], or a flag is set.
    #[inline(always)]
    pub(super) fn decode(at: u64, word: u64) -> Result<Self, Corrupt> {
        let header = Self(word);
        if header.key_bytes() > KEY_BYTES_MAX || word & Self::FLAGS != 0 {
            return Err(header.refusal(at));
        }
        Ok(header)
    }

    #[cold]
    fn refusal(self, at: u64) -> Corrupt {
        let Self(word) = self;
        if word & Self::FLAGS != 0 {
            let what = "flags of a record, which say that it has fields unknown to this release";
            return Corrupt { at, what, expected: word & !Self::FLAGS, found: word };
        }
        let (expected, found) = (KEY_BYTES_MAX as u64, self.key_bytes() as u64);
        Corrupt { at, what: "length of a key", expected, found }
    }

    /// Loads the header of the record at `at`; see [`decode`](Self::decode).
    #[inline(always)]
    pub(super) fn load<M: Medium>(pool: &Pool<M>, at: u64) -> Result<Self, Corrupt> {
        Self::decode(at, pool.medium().load(&pool.words(PmPtr::new(at), 1)?[0]))
    }

    /// Loads the header of the key record at `at`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), or the record says that it has a value.
    #[inline]
    pub(super) fn load_of_key<M: Medium>(pool: &Pool<M>, at: u64) -> Result<Self, Corrupt> {
        let header = Self::load(pool, at)?;
        header.require_no_value(at).map(|()| header)
    }

    #[inline]
    fn require_no_value(self, at: u64) -> Result<(), Corrupt> {
        match self.value_bytes() as u64 {
            0 => Ok(()),
            found => {
                let what = "value length of a key record";
                Err(Corrupt { at, what, expected: 0, found })
            }
        }
    }

    #[inline(always)]
    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// Returns the header that [`word`](Self::word) returned.
    #[inline(always)]
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

    /// Returns the size of the record in bytes, if it is a key record.
    #[inline(always)]
    pub(super) const fn key_record_bytes(self) -> u64 {
        value_offset(self.key_bytes()) as u64
    }

    /// Returns the size of the record in whole words, in bytes, if it is the record of a pair.
    #[inline(always)]
    pub(super) const fn pair_record_bytes(self) -> u64 {
        pair_record_bytes(self.key_bytes(), self.value_bytes()).next_multiple_of(8) as u64
    }

    /// Compares the sum of `key`, the key of the record at `at`, with the one in this header.
    ///
    /// # Errors
    /// The sums differ: header or key is damaged.
    #[inline]
    pub(super) fn verify_key(self, at: u64, key: &[u8]) -> Result<(), Corrupt> {
        let lengths = self.0 & (u64::MAX >> (64 - Self::SUM_SHIFT));
        let expected = lengths | Self::key_sum(lengths, at, key) << Self::SUM_SHIFT;
        if expected == self.0 {
            return Ok(());
        }
        Err(Corrupt { at, what: "checksum of the key of a record", expected, found: self.0 })
    }

    /// Returns the sum of the whole record at `at`, which follows its value.
    #[inline]
    pub(super) fn pair_sum(self, at: u64, key: &[u8], value: &[u8]) -> u32 {
        let sum = checksum_append(checksum(&self.0.to_le_bytes()), key);
        checksum_append(sum, value) ^ (location_hash(at) >> 32) as u32
    }

    /// Compares the sum of the whole record at `at` with `found`, the one behind its value.
    ///
    /// # Errors
    /// The sums differ: header, key, value or sum is damaged.
    #[inline]
    pub(super) fn verify_pair(
        self,
        at: u64,
        key: &[u8],
        value: &[u8],
        found: u32,
    ) -> Result<(), Corrupt> {
        let expected = self.pair_sum(at, key, value);
        if expected == found {
            return Ok(());
        }
        let (expected, found) = (expected.into(), found.into());
        Err(Corrupt { at, what: "checksum of a record", expected, found })
    }
}

/// Returns a hash of a record's offset, whose highest bits are mixed into the record's sums.
#[inline(always)]
const fn location_hash(at: u64) -> u64 {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the sum that follows a value of `bytes` bytes. `words` begin with the value.
#[inline(always)]
pub(super) fn load_pair_sum<M: Medium>(medium: &M, words: &[PmWord], bytes: usize) -> u32 {
    let (at, shift) = (bytes / 8, 8 * (bytes % 8) as u32);
    let low = medium.load(&words[at]) >> shift;
    // Behind 5 to 7 B of value the sum continues in the next word.
    let high = if shift > 32 { medium.load(&words[at + 1]) << (64 - shift) } else { 0 };
    (low | high) as u32
}

/// A reader of records in the bytes of a file, which may be damaged: for tools that must not map a
/// pool.
///
/// All functions are total: any bytes give a result or an error.
#[derive(Clone, Copy, Debug)]
pub struct RecordBytes {
    header: Header,
    at: u64,
}

impl RecordBytes {
    /// The number of bytes at the beginning of a record that [`begin`](Self::begin) needs.
    pub const HEADER_BYTES: usize = HEADER_BYTES;

    /// Reads the header of the record of a pair at offset `at`.
    ///
    /// # Errors
    /// The header's fields are out of range. The sums are not verified yet.
    pub fn begin(at: u64, header: [u8; HEADER_BYTES]) -> Result<Self, Corrupt> {
        let header = Header::decode(at, u64::from_le_bytes(header))?;
        Ok(Self { header, at })
    }

    /// Returns the size of the record of a pair in bytes.
    pub const fn bytes(self) -> u64 {
        self.header.pair_record_bytes()
    }

    /// Returns the size of a key record in bytes.
    pub const fn key_record_bytes(self) -> u64 {
        self.header.key_record_bytes()
    }

    /// Returns the key of the key record whose bytes are `record`.
    ///
    /// # Errors
    /// The sum does not match, the record has a value, or `record` is shorter than the record.
    pub fn key(self, record: &[u8]) -> Result<&[u8], Corrupt> {
        let Self { header, at } = self;
        header.require_no_value(at)?;
        let Some(key) = record.get(HEADER_BYTES..HEADER_BYTES + header.key_bytes()) else {
            return Err(self.too_short(self.key_record_bytes(), record));
        };
        header.verify_key(at, key)?;
        Ok(key)
    }

    /// Returns the key and the value of the record whose bytes are `record`.
    ///
    /// # Errors
    /// A sum does not match, or `record` is shorter than the record.
    pub fn pair(self, record: &[u8]) -> Result<(&[u8], &[u8]), Corrupt> {
        let Self { header, at } = self;
        let (key_bytes, value_bytes) = (header.key_bytes(), header.value_bytes());
        let value_at = value_offset(key_bytes);
        let parts = (
            record.get(HEADER_BYTES..HEADER_BYTES + key_bytes),
            record.get(value_at..value_at + value_bytes),
            record.get(value_at + value_bytes..).and_then(|rest| rest.first_chunk()),
        );
        let (Some(key), Some(value), Some(sum)) = parts else {
            return Err(self.too_short(self.bytes(), record));
        };
        header.verify_key(at, key)?;
        header.verify_pair(at, key, value, u32::from_le_bytes(*sum))?;
        Ok((key, value))
    }

    const fn too_short(self, expected: u64, record: &[u8]) -> Corrupt {
        Corrupt { at: self.at, what: "length of a record", expected, found: record.len() as u64 }
    }
}
