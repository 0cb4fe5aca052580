//! Byte strings with an inline prefix: the entry's key word is the first 8 B of the key, so most
//! comparisons need no access beyond the node. What its value word is, its shape says:
//!
//! | shape | key | value word |
//! | --- | --- | --- |
//! | 1 + 9 k + v | k bytes, 0 to 8 | the value's v bytes, 0 to 8, and zeros |
//! | 81 + n | of any length | block of a record of n lines, 1 to 174, that holds key and value |
//! | [`PLAIN`] | of any length | block of a record that holds key and value; its header says how long it is |
//!
//! A separator word is 0 for the empty key; for a key of up to 7 B the key from the highest byte on, and
//! its length in the lowest; for any other the block of a key record, a multiple of 64.
//!
//! 1. A record has the layout of [`Text`](super::Text)'s; the value follows the key. One access
//!    brings both.
//! 2. A pair of short strings needs no record. Unused bytes of its words are zero, so equal pairs are
//!    equal words.
//! 3. What block a record of up to 174 lines has, its entry says: recovery reads none of these to mark it.

use super::text::RecordHeader;
use super::{Entry, Key, PLAIN, PmPtr, Text, Value, text};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::{Corrupt, Medium, PmWord, Pool, PoolError};
use core::cmp::Ordering;
use smallvec::{SmallVec, smallvec};

/// The longest key, and the longest value, that an entry holds without a record, in bytes.
pub const INLINE_BYTES_MAX: usize = 8;
/// Lengths that an inline string may have.
const LENGTHS: u8 = 9;
/// The greatest shape of a pair without a record.
const INLINE_SHAPE_MAX: u8 = LENGTHS * LENGTHS;
/// Lines of the longest record whose entry says how long it is.
const RECORD_LINES_MAX: u64 = (u8::MAX - INLINE_SHAPE_MAX) as u64;

/// The longest separator that needs no record, in bytes.
const SEPARATOR_BYTES_MAX: usize = 7;
/// What offsets of blocks are multiples of.
const BLOCK_ALIGNMENT: u64 = LINE_BYTES as u64;

/// Records up to this length are put together on the stack.
const STACK_BYTES: usize = 512;
/// Values up to this length are joined with their key, so that no line is flushed twice; for longer
/// ones the copy would cost more than the line that both share.
const SHORT_BYTES: usize = 4096;

/// Byte-string keys with an inline prefix; see the module.
#[derive(Debug)]
pub struct Record;

/// A key in DRAM: those of up to 24 B need no allocation.
pub type Bytes = SmallVec<[u8; 24]>;

/// A value where it lies.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'p> {
    /// In the entry: the bytes, and how many they are.
    Inline([u8; INLINE_BYTES_MAX], usize),
    /// In a record.
    Record {
        /// Offset of the record.
        at: u64,
        /// The words of the value.
        words: &'p [PmWord],
        /// Its length in bytes.
        bytes: usize,
        /// The record's header.
        header: u64,
    },
}

impl Stored<'_> {
    /// Length of the value in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        match *self {
            Self::Inline(_, bytes) | Self::Record { bytes, .. } => bytes,
        }
    }

    /// Whether the value is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the value, which belongs to `key`, to `target`, of its length.
    ///
    /// # Errors
    /// The record's check does not fit its content.
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
                RecordHeader::from_word(header).verify(at, key, target)?;
            }
        }
        Ok(())
    }
}

impl Record {
    /// The value side of an entry for `key`, if both are short enough to need no record.
    #[inline]
    pub fn inline(key: &[u8], value: &[u8]) -> Option<Value> {
        if key.len() > INLINE_BYTES_MAX || value.len() > INLINE_BYTES_MAX {
            return None;
        }
        let shape = 1 + LENGTHS * key.len() as u8 + value.len() as u8;
        Some(Value { word: text::word(value), shape })
    }

    /// Writes a record of `key` and `value`, durable after the next fence, and gives the value side
    /// of an entry that names it. An index must not store it before that fence.
    ///
    /// # Errors
    /// The pool is full.
    pub fn write<M: Medium>(pool: &Pool<M>, key: &[u8], value: &[u8]) -> Result<Value, PoolError> {
        let bytes = RecordHeader::unchecked(key, value).record_bytes() as usize;
        let at = pool.reserve(bytes as u64)?;
        let words = pool.words(at, bytes / 8)?;
        let header = RecordHeader::of(at.offset(), key, value);
        let value_at = 8 + key.len().next_multiple_of(8);
        let compose = |record: &mut [u8]| {
            record[..8].copy_from_slice(&header.word().to_le_bytes());
            record[8..8 + key.len()].copy_from_slice(key);
        };
        if bytes <= STACK_BYTES {
            let mut record = [0; STACK_BYTES];
            compose(&mut record);
            record[value_at..value_at + value.len()].copy_from_slice(value);
            pool.medium().fill(words, &record[..bytes]);
        } else if value.len() <= SHORT_BYTES {
            let mut record = vec![0; bytes];
            compose(&mut record);
            record[value_at..value_at + value.len()].copy_from_slice(value);
            pool.medium().fill(words, &record);
        } else {
            let mut head = vec![0; value_at];
            compose(&mut head);
            pool.medium().fill(&words[..value_at / 8], &head);
            pool.medium().fill(&words[value_at / 8..], value);
        }
        Ok(Value { word: at.offset(), shape: record_shape(bytes as u64) })
    }

    /// The value of an entry.
    ///
    /// # Errors
    /// The entry is damaged, or it is of another length than its record.
    #[inline]
    pub fn stored<M: Medium>(pool: &Pool<M>, value: Value) -> Result<Stored<'_>, Corrupt> {
        if is_inline(value.shape) {
            return Ok(Stored::Inline(value.word.to_le_bytes(), lengths(value.shape).1));
        }
        let header = RecordHeader::load(pool, value.word)?;
        if value.shape != PLAIN && value.shape != record_shape(header.record_bytes()) {
            return Err(other_length(value, header));
        }
        let words = pool.words(PmPtr::new(value.word), header.record_bytes() as usize / 8)?;
        let words = &words[1 + header.key_bytes().div_ceil(8)..];
        let (at, bytes, header) = (value.word, header.value_bytes(), header.word());
        Ok(Stored::Record { at, words, bytes, header })
    }

    /// The block of the record of an entry and its bytes, in whole lines, if it has one. Of a record of up to
    /// 174 lines nothing is read.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn extent<M: Medium>(
        pool: &Pool<M>,
        value: Value,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        if is_inline(value.shape) {
            return Ok(None);
        }
        let bytes = match record_lines(value.shape) {
            Some(lines) => lines * LINE_BYTES as u64,
            None => RecordHeader::load(pool, value.word)?
                .record_bytes()
                .next_multiple_of(LINE_BYTES as u64),
        };
        Ok(Some((PmPtr::new(value.word), bytes)))
    }
}

/// What a separator word is.
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

/// Whether entries of this shape hold their key and value.
#[inline(always)]
const fn is_inline(shape: u8) -> bool {
    shape != PLAIN && shape <= INLINE_SHAPE_MAX
}

/// Lengths of the key and of the value of an inline pair.
#[inline(always)]
fn lengths(shape: u8) -> (usize, usize) {
    let lengths = shape - 1;
    (usize::from(lengths / LENGTHS), usize::from(lengths % LENGTHS))
}

/// The bytes of an inline key, zeros behind it, and its length.
#[inline(always)]
fn inline_key(entry: Entry) -> Result<([u8; INLINE_BYTES_MAX], usize), Corrupt> {
    let (bytes, (length, _)) = (entry.key.to_be_bytes(), lengths(entry.shape));
    if text::prefix(&bytes[..length]) == entry.key {
        Ok((bytes, length))
    } else {
        Err(behind_key(entry))
    }
}

/// An entry does not know where it is: the leaf that checks its entries says so.
#[cold]
fn behind_key(entry: Entry) -> Corrupt {
    let what = "key of an entry, longer than its shape says";
    Corrupt { at: 0, what, expected: u64::from(entry.shape), found: entry.key }
}

/// The shape of an entry whose record is so long.
#[inline(always)]
const fn record_shape(bytes: u64) -> u8 {
    let lines = bytes.div_ceil(LINE_BYTES as u64);
    if lines > RECORD_LINES_MAX { PLAIN } else { INLINE_SHAPE_MAX + lines as u8 }
}

/// Lines of the record of an entry of this shape, if the shape says it.
#[inline(always)]
fn record_lines(shape: u8) -> Option<u64> {
    shape.checked_sub(INLINE_SHAPE_MAX).filter(|&lines| lines > 0).map(u64::from)
}

#[cold]
fn other_length(value: Value, header: RecordHeader) -> Corrupt {
    let what = "lines of a record, and those that its entry says";
    let expected = record_lines(value.shape).unwrap_or(0);
    let found = header.record_bytes().div_ceil(LINE_BYTES as u64);
    Corrupt { at: value.word, what, expected, found }
}

impl Key for Record {
    type Ref<'a> = &'a [u8];
    type Owned = Bytes;
    const NAME: &'static str = "record";
    const EXACT: bool = false;

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
    /// The shortest key that parts them.
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
            // Equal prefixes: of two keys up to 8 B the shorter is less, and either is less than a
            // longer one, for what it lacks to 8 B is zeros there.
            Ordering::Equal if is_inline(entry.shape) => Ok(lengths(entry.shape).0.cmp(&key.len())),
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
        if !is_inline(entry.shape)
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
    /// Prefixes say how all compare but those that begin as the last one does.
    #[inline]
    fn prefetch_last<M: Medium>(pool: &Pool<M>, entries: impl Iterator<Item = Entry> + Clone) {
        let last = entries.clone().map(|entry| entry.key).max();
        entries
            .filter(|entry| Some(entry.key) == last)
            .for_each(|entry| Self::prefetch_entry(pool, entry));
    }
    #[cold]
    fn verify_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<(), Corrupt> {
        if is_inline(entry.shape) {
            return Ok(());
        }
        let key: Bytes = text::read_pair_to(pool, entry.value, |bytes| smallvec![0; bytes])?;
        let stored = Self::stored(pool, entry.held_value())?;
        stored.copy_out(pool, &key, &mut vec![0; stored.len()])
    }
    fn read_entry<M: Medium>(pool: &Pool<M>, entry: Entry) -> Result<Bytes, Corrupt> {
        if !is_inline(entry.shape) {
            let key: Bytes = text::read_pair_to(pool, entry.value, |bytes| smallvec![0; bytes])?;
            if text::prefix(&key) == entry.key {
                return Ok(key);
            }
            let (what, found) = ("first bytes of a record's key", text::prefix(&key));
            return Err(Corrupt { at: entry.value, what, expected: entry.key, found });
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
        if is_inline(entry.shape) {
            let (bytes, length) = inline_key(entry)?;
            return Ok(read(&bytes[..length]));
        }
        Ok(read(&Self::read_entry(pool, entry)?))
    }
    fn entry_block<M: Medium>(_: &Pool<M>, _: Entry) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Ok(None)
    }
    fn value_block<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        Self::extent(pool, entry.held_value())
    }
}

#[cfg(test)]
mod tests;
