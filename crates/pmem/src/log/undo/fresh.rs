//! The records of fresh words: `NewRedo`, two words each, and `CommitNewRedo`.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0, 16, 32, 48 | 8 | address | data | kind (3 bits), offset of a word (48), check (16) |
//! | 8, 24, 40, 56 | 8 | value | data | new value |
//!
//! 1. A transaction writes all of its records at once, from the first line on, and fences them
//!    before its first record of a word in use. The last one has the kind `Last`.
//! 2. They are read only if a commit says that they are there. By then they are durable, so they
//!    need no seal, and no crash image differs by a part of them.

use super::{Kind, OFFSET_MASK, checked};
use crate::error::Corrupt;
use crate::line::LINE_WORDS;
use crate::medium::{Medium, offset_of};
use crate::word::PmWord;

const RECORD_WORDS: usize = 2;
pub(super) const LINE_RECORDS: usize = LINE_WORDS / RECORD_WORDS;

/// Writes the records of `fresh`, offsets and values, for transaction `txid`.
///
/// ```text
/// W records
/// F them |     -> durable    budget: a line for four records, 1 fence
/// ```
pub(super) fn write<M: Medium>(medium: &M, lines: &[PmWord], txid: u64, fresh: &[(u64, u64)]) {
    let full = lines.len() / RECORD_WORDS;
    assert!(fresh.len() <= full, "an undo log of this size holds {full} records of fresh words");
    let words = &lines[..fresh.len() * RECORD_WORDS];
    for (index, (record, &(offset, value))) in
        words.chunks_exact(RECORD_WORDS).zip(fresh).enumerate()
    {
        let kind = if index + 1 == fresh.len() { Kind::Last } else { Kind::Inner };
        medium.store(&record[0], address(kind, offset, value, txid, index));
        medium.store(&record[1], value);
    }
    let _ = medium.persist(words);
}

/// Returns the offsets and values in the records of transaction `txid`; nothing if `lines` is
/// empty.
///
/// # Errors
/// A record is damaged.
pub(super) fn read<M: Medium>(
    medium: &M,
    lines: &[PmWord],
    txid: u64,
) -> Result<Vec<(u64, u64)>, Corrupt> {
    let mut pairs = Vec::new();
    for (index, record) in lines.chunks_exact(RECORD_WORDS).enumerate() {
        let (found, value) = (medium.load(&record[0]), medium.load(&record[1]));
        let (kind, offset) = (Kind::of(found).unwrap_or(Kind::Inner), found & OFFSET_MASK);
        let is_last = kind == Kind::Last;
        let expected = address(kind, offset, value, txid, index);
        if found != expected || (!is_last && (index + 1) * RECORD_WORDS == lines.len()) {
            let at = offset_of(medium, &record[0]).offset();
            return Err(Corrupt { at, what: "check of a record of a fresh word", expected, found });
        }
        pairs.push((offset, value));
        if is_last {
            break;
        }
    }
    Ok(pairs)
}

/// Returns the first word of the record at `index` of transaction `txid`.
fn address(kind: Kind, offset: u64, value: u64, txid: u64, index: usize) -> u64 {
    checked(offset | kind as u64, [value, txid, index as u64])
}
