//! The list of a redo log with more changes than fit its slot: a block of the pool.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 16 each | pairs | data | offset of a word, and its new value |
//!
//! Only the line of a slot leads to a list. So after a crash its block is free, once the replay has
//! read it.

use crate::checksum::{checksum, checksum_words};
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::line::line_of;
use crate::medium::{Fenced, Medium, offset_of, words_at};
use crate::word::{PmPtr, PmWord};

/// The bytes of a change in a list.
pub(super) const PAIR_BYTES: u64 = 16;

/// The changes of a redo log, and the block that holds them.
#[derive(Debug)]
pub struct RedoList {
    block: PmPtr,
    bytes: Vec<u8>,
    sum: u64,
}

impl RedoList {
    /// Returns the bytes of a block for `count` changes.
    pub const fn bytes(count: usize) -> u64 {
        PAIR_BYTES * count as u64
    }

    /// Writes `changes`, words of the pool on `medium`, each with its new value, to `block`. It has
    /// [`bytes`](Self::bytes) for them, and the caller releases it after the transaction. Durable
    /// after the next fence.
    ///
    /// ```text
    /// N pairs          ceil(16 n / 64) lines    crash: unreachable, free again
    /// ```
    ///
    /// # Errors
    /// The block is not in the pool.
    pub fn write<M: Medium>(
        medium: &M,
        block: PmPtr,
        changes: &[(&PmWord, u64)],
    ) -> Result<Self, Corrupt> {
        let mut bytes = Vec::with_capacity(Self::bytes(changes.len()) as usize);
        for &(word, value) in changes {
            let offset = offset_of(medium, word).offset();
            bytes.extend_from_slice(&(u128::from(value) << 64 | u128::from(offset)).to_le_bytes());
        }
        medium.fill(words_at(medium, block, 2 * changes.len())?, &bytes);
        let sum = checksum(&bytes).into();
        Ok(Self { block, bytes, sum })
    }

    /// Stores the changes in place. Durable on return.
    ///
    /// ```text
    /// W words           crash at any point: the log is replayed, to the same end
    /// F their lines |   -> durable in place   budget: a line for words of it that lie one behind
    ///                                         the other in the list, 1 fence
    /// ```
    pub(super) fn apply<M: Medium>(&self, medium: &M) -> Result<Fenced, Corrupt> {
        let mut pairs = self.bytes.as_chunks().0.iter().map(|pair| u128::from_le_bytes(*pair));
        let mut next = pairs.next();
        while let Some(pair) = next {
            let at = pair as u64;
            let word = words_at(medium, PmPtr::new(at), 1)?;
            medium.store(&word[0], (pair >> 64) as u64);
            next = pairs.next();
            let is_last = next.is_none_or(|next| line_of(next as usize) != line_of(at as usize));
            if is_last {
                medium.flush(word);
            }
        }
        Ok(medium.fence())
    }

    /// Returns the pairs of the line that leads to the list.
    pub(super) fn place(&self) -> [(u64, u64); 2] {
        let count = self.bytes.len() as u64 / PAIR_BYTES;
        [(self.block.offset(), count), (self.sum, 0)]
    }
}

/// Returns the changes of the list that the pairs `place` of the line at `at` lead to. They are at
/// most `pairs_max`, which is what the pool can hold beside the lists of other logs.
///
/// # Errors
/// The list is damaged, too long, or not in the pool.
pub(super) fn read<M: Medium>(
    medium: &M,
    place: &[(u64, u64)],
    at: u64,
    pairs_max: u64,
) -> Result<Vec<(u64, u64)>, Corrupt> {
    let &[(block, count), (expected, 0)] = place else {
        return Err(Corrupt { at, what: "place of a list of changes", expected: 2, found: 0 });
    };
    if count > pairs_max {
        let what = "length of a list of changes";
        return Err(Corrupt { at, what, expected: pairs_max, found: count });
    }
    let words = words_at(medium, PmPtr::new(block), 2 * count as usize)?;
    // The checksum comes first, so that damage to the length takes no memory.
    let found = checksum_words(words.iter().map(|word| medium.load(word)));
    if found != expected {
        return Err(Corrupt { at: block, what: "checksum of a list of changes", expected, found });
    }
    let is_cut = M::INJECTS_DEFECTS && medium.injects(Defect::ListShort);
    let pairs = words.chunks_exact(2).take(if is_cut { 1 } else { words.len() });
    Ok(pairs.map(|pair| (medium.load(&pair[0]), medium.load(&pair[1]))).collect())
}
