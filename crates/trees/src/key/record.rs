//! Byte-string keys with an inline prefix: the key word of an entry is the first 8 B of the key, so
//! most comparisons read nothing but the node. The entry's encoding defines the value word:
//!
//! | encoding | key | value word |
//! | --- | --- | --- |
//! | 1 + 9 k + v | k bytes, 0 to 8 | the value's v bytes, 0 to 8, padded with zeros |
//! | 81 + n | of any length | block of a record of n lines, 1 to 174, that holds key and value |
//! | [`PLAIN`] | of any length | block of a record that holds key and value, and their lengths |
//!
//! A separator word is
//!
//! * 0 for the empty key;
//! * for a key of up to 7 B, its bytes from the highest byte on, and its length in the lowest byte;
//! * for a longer key, the block of a key record, a multiple of 64.
//!
//! 1. [`format`](super::format) has the layout of a record. The value follows the key, so one
//!    access brings both. The key has a checksum of its own, so only a read of the value reads it.
//! 2. A pair of short strings needs no record. Unused bytes of its words are zero, so equal pairs
//!    have equal words.
//! 3. The encoding gives the size of a record of up to 174 lines, so recovery marks such a record
//!    without reading it.

use super::format::{Header, load_pair_sum, pair_record_bytes, value_offset};
use super::{Entry, Key, PLAIN, PmPtr, Text, Value, text};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::{Corrupt, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;
use smallvec::{SmallVec, smallvec};

/// The longest key, and the longest value, in bytes, that an entry holds without a record.
pub const INLINE_BYTES_MAX: usize = 8;
/// The number of lengths that an inline string can have: 0 to 8 B.
const LENGTH_COUNT: u8 = 9;
/// The greatest encoding of a pair without a record.
const INLINE_ENCODING_MAX: u8 = LENGTH_COUNT * LENGTH_COUNT;
/// The lines of the longest record whose entry tells its size.
const RECORD_LINES_MAX: u64 = (u8::MAX - INLINE_ENCODING_MAX) as u64;

/// The longest separator, in bytes, that needs no record.
const SEPARATOR_BYTES_MAX: usize = 7;
/// The alignment of all blocks in a pool, in bytes.
const BLOCK_ALIGNMENT: u64 = LINE_BYTES as u64;

/// The longest record, in bytes, that is composed on the stack.
const STACK_BYTES_MAX: usize = 512;
/// The longest value, in bytes, of a record that is composed in one piece before it is written. Of
/// a longer one only the lines that the value shares with other fields are copied.
const JOINED_BYTES_MAX: usize = 4096;

/// The layer of byte-string keys with an inline prefix; see the table of the [key layer](super).
#[derive(Debug)]
pub struct Record;

/// A key in DRAM. Up to 24 B need no allocation.
pub type Bytes = SmallVec<[u8; 24]>;

/// A value where it is stored: in its entry or in the pool.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'p> {
    /// A value in its entry: 8 bytes, and the number of them that are the value.
    Inline([u8; INLINE_BYTES_MAX], usize),
    /// A value in a record.
    Record {
        /// The offset of the record in the pool.
        at: u64,
        /// The words of the value and of the checksum behind it.
        words: &'p [PmWord],
        /// The length of the value in bytes.
        bytes: usize,
        /// The header word of the record: lengths of key and value, and the checksum of the key.
        header: u64,
    },
}

impl Stored<'_> {
    /// Returns the length of the value in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        match *self {
            Self::Inline(_, bytes) | Self::Record { bytes, .. } => bytes,
        }
    }

    /// Returns `true` if the value is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the value to `target`, which has its length, and verifies the record's checksum.
    /// `key` is the key of the pair, which the checksum covers.
    ///
    /// # Errors
    /// The checksum of the record does not match: the record is damaged.
    #[inline]
    pub fn copy_out<M: Medium>(
        &self,
        pool: &Pool<M>,
        key: &[u8],
        target: &mut [u8],
    ) -> Result<(), Corrupt> {
        match *self {
            Self::Inline(inline, bytes) => target.copy_from_slice(&inline[..bytes]),
            Self::Record { at, words, header, .. } => {
                pool.medium().copy_out(words, target);
                let sum = load_pair_sum(pool.medium(), words, target.len());
                Header::from_word(header).verify_pair(at, key, target, sum)?;
            }
        }
        Ok(())
    }
}

impl Record {
    /// Returns the value part of an entry for `key`, or `None` if key or value is too long for an
    /// entry without a record.
    #[inline]
    pub fn inline(key: &[u8], value: &[u8]) -> Option<Value> {
        if key.len() > INLINE_BYTES_MAX || value.len() > INLINE_BYTES_MAX {
            return None;
        }
        let encoding = 1 + LENGTH_COUNT * key.len() as u8 + value.len() as u8;
        Some(Value { word: text::word(value), encoding })
    }

    /// Writes a record of `key` and `value` and returns the value part of an entry that names it.
    /// The record is durable after the next fence; an index must not commit the entry before that.
    ///
    /// # Errors
    /// The pool is full.
    pub fn write<M: Medium>(pool: &Pool<M>, key: &[u8], value: &[u8]) -> Result<Value, PoolError> {
        let bytes = pair_record_bytes(key.len(), value.len()).next_multiple_of(8);
        let at = pool.reserve(bytes as u64)?;
        let words = pool.words(at, bytes / 8)?;
        let header = Header::of(at.offset(), key, value.len());
        let sum = header.pair_sum(at.offset(), key, value).to_le_bytes();
        let value_at = value_offset(key.len());
        let sum_at = value_at + value.len();
        let write_head = |record: &mut [u8]| {
            record[..8].copy_from_slice(&header.word().to_le_bytes());
            record[8..8 + key.len()].copy_from_slice(key);
        };
        let compose = |record: &mut [u8]| {
            write_head(record);
            record[value_at..sum_at].copy_from_slice(value);
            record[sum_at..sum_at + sum.len()].copy_from_slice(&sum);
        };
        if bytes <= STACK_BYTES_MAX {
            let mut record = [0; STACK_BYTES_MAX];
            compose(&mut record);
            pool.medium().fill(words, &record[..bytes]);
        } else if value.len() <= JOINED_BYTES_MAX {
            let mut record = vec![0; bytes];
            compose(&mut record);
            pool.medium().fill(words, &record);
        } else {
            // Both cuts lie at the beginning of a line, so that each line is written back once.
            let first_cut = value_at.next_multiple_of(LINE_BYTES);
            let last_cut = sum_at / LINE_BYTES * LINE_BYTES;
            let (before, rest) = value.split_at(first_cut - value_at);
            let (whole_lines, after) = rest.split_at(last_cut - first_cut);
            let mut head = vec![0; first_cut];
            write_head(&mut head);
            head[value_at..].copy_from_slice(before);
            pool.medium().fill(&words[..first_cut / 8], &head);
            pool.medium().fill(&words[first_cut / 8..last_cut / 8], whole_lines);
            let tail = [after, &sum].concat();
            pool.medium().fill(&words[last_cut / 8..], &tail);
        }
        Ok(Value { word: at.offset(), encoding: record_encoding(bytes as u64) })
    }

    /// Returns the value of an entry. Nothing of it is verified yet but its size.
    ///
    /// # Errors
    /// The header of the record is out of range, or its size differs from the one in the entry.
    #[inline]
    pub fn stored<M: Medium>(pool: &Pool<M>, value: Value) -> Result<Stored<'_>, Corrupt> {
        if is_inline(value.encoding) {
            return Ok(Stored::Inline(value.word.to_le_bytes(), lengths(value.encoding).1));
        }
        let header = Header::load(pool, value.word)?;
        let record_bytes = header.pair_record_bytes();
        if value.encoding != PLAIN && value.encoding != record_encoding(record_bytes) {
            return Err(size_mismatch(value, header));
        }
        let words = pool.words(PmPtr::new(value.word), record_bytes as usize / 8)?;
        let words = &words[1 + header.key_bytes().div_ceil(8)..];
        let (at, bytes, header) = (value.word, header.value_bytes(), header.word());
        Ok(Stored::Record { at, words, bytes, header })
    }

    /// Returns `true` if entries of this encoding hold their pair themselves.
    #[inline(always)]
    pub const fn is_inline(encoding: u8) -> bool {
        is_inline(encoding)
    }

    /// Returns the key of the separator `word`, or `None` if `word` is the offset of a key record.
    ///
    /// # Errors
    /// The word is damaged.
    pub fn inline_separator(word: u64) -> Result<Option<Bytes>, Corrupt> {
        if word == 0 {
            return Ok(Some(Bytes::new()));
        }
        match Separator::of(word)? {
            Separator::Inline(bytes, length) => Ok(Some(Bytes::from_slice(&bytes[..length]))),
            Separator::Record => Ok(None),
        }
    }

    /// Returns the key of the record at `at`, and the value part of an entry that names it. For a
    /// block that may hold anything: only an index that has this entry proves that it is a record.
    ///
    /// # Errors
    /// The block holds no record of a pair.
    pub fn at<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<(Bytes, Value), Corrupt> {
        let key: Bytes = text::read_record_key_to(pool, at.offset(), |bytes| smallvec![0; bytes])?;
        let bytes = Header::load(pool, at.offset())?.pair_record_bytes();
        Ok((key, Value { word: at.offset(), encoding: record_encoding(bytes) }))
    }

    /// Compares the first 8 B of `key`, the key of an entry's record, with those in the entry.
    ///
    /// # Errors
    /// They differ: the entry names the record of another key.
    #[inline]
    pub fn verify_prefix(entry: Entry, key: &[u8]) -> Result<(), Corrupt> {
        let (what, found) = ("first 8 bytes of the key of a record", text::prefix(key));
        if found == entry.key {
            return Ok(());
        }
        Err(Corrupt { at: entry.value, what, expected: entry.key, found })
    }

    /// Returns the block of an entry's record and its bytes, rounded up to whole lines, or `None`
    /// for an entry without a record. Reads the record only if it is longer than 174 lines.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn extent<M: Medium>(
        pool: &Pool<M>,
        value: Value,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        if is_inline(value.encoding) {
            return Ok(None);
        }
        let bytes = match record_lines(value.encoding) {
            Some(lines) => lines * LINE_BYTES as u64,
            None => Header::load(pool, value.word)?
                .pair_record_bytes()
                .next_multiple_of(LINE_BYTES as u64),
        };
        Ok(Some((PmPtr::new(value.word), bytes)))
    }
}

enum Separator {
    Inline([u8; 8], usize),
    Record,
}

impl Separator {
    #[inline]
    fn of(word: u64) -> Result<Self, Corrupt> {
        if word.is_multiple_of(BLOCK_ALIGNMENT) {
            return Ok(Self::Record);
        }
        let [.., length] = word.to_be_bytes();
        if usize::from(length) > SEPARATOR_BYTES_MAX {
            let (expected, found) = (SEPARATOR_BYTES_MAX as u64, u64::from(length));
            return Err(Corrupt { at: word, what: "length of a separator", expected, found });
        }
        Ok(Self::Inline(word.to_be_bytes(), length.into()))
    }
}

/// A copy of a pair that an entry holds itself.
#[derive(Clone, Copy, Debug)]
pub struct InlinePair {
    key: ([u8; INLINE_BYTES_MAX], usize),
    value: ([u8; INLINE_BYTES_MAX], usize),
}

impl InlinePair {
    /// Returns the pair of an entry, or `None` if the entry names a record.
    ///
    /// # Errors
    /// The key is longer than the entry's encoding says.
    pub fn of(entry: Entry) -> Result<Option<Self>, Corrupt> {
        if !is_inline(entry.encoding) {
            return Ok(None);
        }
        let value = (entry.value.to_le_bytes(), lengths(entry.encoding).1);
        Ok(Some(Self { key: inline_key(entry)?, value }))
    }

    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        &self.key.0[..self.key.1]
    }

    /// Returns the value.
    pub fn value(&self) -> &[u8] {
        &self.value.0[..self.value.1]
    }
}

/// Returns `true` if entries of this encoding hold key and value themselves.
#[inline(always)]
const fn is_inline(encoding: u8) -> bool {
    encoding != PLAIN && encoding <= INLINE_ENCODING_MAX
}

/// Returns the lengths of key and value of an inline pair.
#[inline(always)]
fn lengths(encoding: u8) -> (usize, usize) {
    let lengths = encoding - 1;
    (usize::from(lengths / LENGTH_COUNT), usize::from(lengths % LENGTH_COUNT))
}

/// Returns the bytes of an inline key, padded with zeros, and its length.
#[inline(always)]
fn inline_key(entry: Entry) -> Result<([u8; INLINE_BYTES_MAX], usize), Corrupt> {
    let (length, _) = lengths(entry.encoding);
    let behind = entry.key.checked_shl(8 * length as u32).unwrap_or(0);
    if behind == 0 { Ok((entry.key.to_be_bytes(), length)) } else { Err(bad_inline_key(entry)) }
}

/// Returns the error for an inline key that is longer than its encoding says. An entry does not
/// know its offset, so `at` is 0.
#[cold]
fn bad_inline_key(entry: Entry) -> Corrupt {
    let what = "inline key of an entry, which is longer than its encoding says";
    Corrupt { at: 0, what, expected: u64::from(entry.encoding), found: entry.key }
}

/// Returns the encoding of an entry whose record has `bytes` bytes.
#[inline(always)]
const fn record_encoding(bytes: u64) -> u8 {
    let lines = bytes.div_ceil(LINE_BYTES as u64);
    if lines > RECORD_LINES_MAX { PLAIN } else { INLINE_ENCODING_MAX + lines as u8 }
}

/// Returns the lines of an entry's record, if the encoding gives them.
#[inline(always)]
fn record_lines(encoding: u8) -> Option<u64> {
    encoding.checked_sub(INLINE_ENCODING_MAX).filter(|&lines| lines > 0).map(u64::from)
}

/// Returns the key of an entry with a record. Reads nothing of the value.
fn read_record_key<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<Bytes, Corrupt> {
    let key: Bytes = text::read_record_key_to(pool, entry.value, |bytes| smallvec![0; bytes])?;
    Record::verify_prefix(entry, &key)?;
    Ok(key)
}

#[cold]
fn verify_record_key<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<(), Corrupt> {
    read_record_key(pool, entry).map(|_| ())
}

#[cold]
fn size_mismatch(value: Value, header: Header) -> Corrupt {
    let what = "number of lines of a record; its entry says another";
    let expected = record_lines(value.encoding).unwrap_or(0);
    let found = header.pair_record_bytes().div_ceil(LINE_BYTES as u64);
    Corrupt { at: value.word, what, expected, found }
}

impl Key for Record {
    type Ref<'a> = &'a [u8];
    type Owned = Bytes;
    const NAME: &'static str = "record";
    const EXACT: bool = false;
    const PREFIX_IN_ENTRY: bool = true;
    const HAS_ENCODINGS: bool = true;

    fn least() -> Bytes {
        Bytes::new()
    }
    #[inline(always)]
    fn borrow(key: &Bytes) -> &[u8] {
        key
    }
    fn to_owned(key: &[u8]) -> Bytes {
        Bytes::from_slice(key)
    }
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
    fn with_bytes<R>(key: &[u8], read: impl FnOnce(&[u8]) -> R) -> R {
        read(key)
    }
    fn of_bytes(bytes: &[u8]) -> Option<Bytes> {
        Some(Bytes::from_slice(bytes))
    }
    #[inline]
    fn prefix(key: &[u8]) -> u64 {
        text::prefix(key)
    }
    #[inline]
    fn hash(key: &[u8]) -> u64 {
        text::hash(key)
    }
    /// Returns the shortest separator.
    fn between<M: Medium>(pool: &Pool<M>, below: Entry, above: &[u8]) -> Result<Bytes, Corrupt> {
        let below = Self::read_entry(pool, below)?;
        let common = below.iter().zip(above).take_while(|(a, b)| a == b).count();
        Ok(Bytes::from_slice(&above[..above.len().min(common + 1)]))
    }
    fn store_separator<M: Medium>(pool: &Pool<M>, key: &[u8]) -> Result<u64, PoolError> {
        if key.is_empty() || key.len() > SEPARATOR_BYTES_MAX {
            return Text::store_separator(pool, key);
        }
        Ok(text::prefix(key) | key.len() as u64)
    }
    fn order<M: Medium>(pool: &Pool<M>, word: u64, key: &[u8]) -> Result<Ordering, Corrupt> {
        match Separator::of(word)? {
            Separator::Inline(bytes, length) => Ok(bytes[..length].cmp(key)),
            Separator::Record => Text::order(pool, word, key),
        }
    }
    fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Bytes, Corrupt> {
        match Separator::of(word)? {
            Separator::Inline(bytes, length) => Ok(Bytes::from_slice(&bytes[..length])),
            Separator::Record => text::read_to(pool, word, |bytes| smallvec![0; bytes]),
        }
    }
    fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        match Separator::of(word)? {
            Separator::Inline(..) => Ok(None),
            Separator::Record => Text::block(pool, word),
        }
    }

    #[inline]
    fn store_entry_key<M: Medium>(_: &Pool<M>, key: &[u8], _: u64) -> Result<u64, PoolError> {
        Ok(text::prefix(key))
    }
    #[inline(always)]
    fn order_entry<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
        key: &[u8],
    ) -> Result<Ordering, Corrupt> {
        match entry.key.cmp(&text::prefix(key)) {
            // Prefixes are padded with zeros. If they are equal, the shorter of the two keys is a
            // prefix of the longer one, and so less.
            Ordering::Equal if is_inline(entry.encoding) => {
                Ok(lengths(entry.encoding).0.cmp(&key.len()))
            }
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
        if !is_inline(entry.encoding)
            && let Ok(record) = pool.words(PmPtr::new(entry.value), 1)
        {
            pool.medium().prefetch(record);
        }
    }
    fn prefetch<M: Medium>(pool: &Pool<M>, word: u64) {
        if word.is_multiple_of(BLOCK_ALIGNMENT) {
            Text::prefetch(pool, word);
        }
    }
    /// The bound is rarely below the greatest entry. So only entries with the greatest prefix need
    /// their record: the prefix of any other decides.
    #[inline]
    fn prefetch_bound_comparison<M: Medium>(
        pool: &Pool<M>,
        entries: impl Iterator<Item = Entry> + Clone,
    ) {
        let last = entries.clone().map(|entry| entry.key).max();
        entries
            .filter(|entry| Some(entry.key) == last)
            .for_each(|entry| Self::prefetch_entry(pool, entry));
    }
    /// If the first 8 B of the keys differ, the comparison has read the entry alone, which the
    /// checksum of the leaf covers.
    #[inline]
    fn verify_mismatch<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
        different: &[u8],
    ) -> Result<(), Corrupt> {
        if is_inline(entry.encoding) || entry.key != text::prefix(different) {
            return Ok(());
        }
        verify_record_key(pool, entry)
    }
    fn read_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<Bytes, Corrupt> {
        if !is_inline(entry.encoding) {
            return read_record_key(pool, entry);
        }
        let (bytes, length) = inline_key(entry)?;
        Ok(Bytes::from_slice(&bytes[..length]))
    }
    #[inline(always)]
    fn with_entry<M: Medium, R>(
        pool: &Pool<M>,
        entry: Entry,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, Corrupt> {
        if is_inline(entry.encoding) {
            let (bytes, length) = inline_key(entry)?;
            return Ok(read(&bytes[..length]));
        }
        Ok(read(&Self::read_entry(pool, entry)?))
    }
    #[inline(always)]
    fn hash_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<u64, Corrupt> {
        if is_inline(entry.encoding) {
            let (_, length) = inline_key(entry)?;
            return Ok(text::hash_of_short(entry.key, length));
        }
        Self::with_entry(pool, entry, Self::hash)
    }
    #[inline(always)]
    fn stands_alone(encoding: u8) -> bool {
        is_inline(encoding)
    }
    fn entry_block<M: Medium>(_: &Pool<M>, _: Entry) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Ok(None)
    }
    #[inline(always)]
    fn value_block<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        if is_inline(entry.encoding) {
            return Ok(None);
        }
        Self::extent(pool, entry.held_value())
    }
}

#[cfg(test)]
mod tests;
