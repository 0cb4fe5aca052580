//! The list of a redo log with more changes than fit its slot: a block of the pool.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 16 each | pairs | data | offset of a word, and its new value |
//!
//! Only the line of a slot leads to a list. So after a crash its block is free, once the replay has
//! read it.

use crate::checksum::checksum_words;
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::medium::{Medium, offset_of, words_at};
use crate::word::{PmPtr, PmWord};

/// The bytes of a change in a list.
const PAIR_BYTES: u64 = 16;

/// The changes of a redo log, and the block that holds them.
#[derive(Debug)]
pub struct RedoList {
    block: PmPtr,
    pairs: Vec<(u64, u64)>,
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
        let pairs: Vec<_> = changes
            .iter()
            .map(|&(word, value)| (offset_of(medium, word).offset(), value))
            .collect();
        let bytes: Vec<_> = words_of(&pairs).flat_map(u64::to_le_bytes).collect();
        medium.fill(words_at(medium, block, 2 * pairs.len())?, &bytes);
        Ok(Self { block, pairs })
    }

    pub(super) fn pairs(&self) -> &[(u64, u64)] {
        &self.pairs
    }

    /// Returns the pairs of the line that leads to the list.
    pub(super) fn place(&self) -> [(u64, u64); 2] {
        let count = self.pairs.len() as u64;
        [(self.block.offset(), count), (checksum_words(words_of(&self.pairs)), 0)]
    }
}

fn words_of(pairs: &[(u64, u64)]) -> impl Iterator<Item = u64> {
    pairs.iter().flat_map(|&(offset, value)| [offset, value])
}

/// Returns the changes of the list that the pairs `place` of the line at `at` lead to.
///
/// # Errors
/// The list is damaged, or not in the pool.
pub(super) fn read<M: Medium>(
    medium: &M,
    place: &[(u64, u64)],
    at: u64,
) -> Result<Vec<(u64, u64)>, Corrupt> {
    let &[(block, count), (expected, 0)] = place else {
        return Err(Corrupt { at, what: "place of a list of changes", expected: 2, found: 0 });
    };
    let fits = count <= medium.len() / PAIR_BYTES;
    let words = if fits { 2 * count as usize } else { usize::MAX };
    let words = words_at(medium, PmPtr::new(block), words)?;
    let pairs: Vec<_> =
        words.chunks_exact(2).map(|pair| (medium.load(&pair[0]), medium.load(&pair[1]))).collect();
    let found = checksum_words(words_of(&pairs));
    if M::INJECTS_DEFECTS && medium.injects(Defect::ListShort) {
        return Ok(pairs[..1.min(pairs.len())].to_vec());
    }
    if found == expected {
        return Ok(pairs);
    }
    Err(Corrupt { at: block, what: "checksum of a list of changes", expected, found })
}
