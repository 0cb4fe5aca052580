//! Steps that both logs and their replay share: apply, truncate, check.

use super::slots::{AREA, SEAL};
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::layout::HEADER_BYTES;
use crate::line::{LINE_WORDS, line_of};
use crate::medium::{Fenced, Medium, words_at};
use crate::word::{PmPtr, PmWord};

/// The end of the superblocks, as an offset.
const SUPERBLOCKS_END: u64 = 0x2000;

/// Stores each value at its offset, in order. Durable on return.
///
/// # Errors
/// An offset is outside the medium, or unaligned.
pub(super) fn apply<M: Medium>(medium: &M, pairs: &[(u64, u64)]) -> Result<Fenced, Corrupt> {
    let first_wins = M::INJECTS_DEFECTS && medium.injects(Defect::RedoFirst);
    for (index, &(offset, value)) in pairs.iter().enumerate() {
        if first_wins && pairs[..index].iter().any(|&(other, _)| other == offset) {
            continue;
        }
        medium.store(&words_at(medium, PmPtr::new(offset), 1)?[0], value);
    }
    let offsets: Vec<_> = pairs.iter().map(|&(offset, _)| offset).collect();
    flush_lines(medium, &offsets)?;
    Ok(medium.fence())
}

/// Flushes each line that holds a word of `offsets`, once.
pub(super) fn flush_lines<M: Medium>(medium: &M, offsets: &[u64]) -> Result<(), Corrupt> {
    for (index, &offset) in offsets.iter().enumerate() {
        let line = |offset| line_of(offset as usize);
        if !offsets[..index].iter().any(|&other| line(other) == line(offset)) {
            medium.flush(words_at(medium, PmPtr::new(offset), 1)?);
        }
    }
    Ok(())
}

/// Returns the greatest transaction number in the seals of a slot, valid or not.
pub(super) fn newest_txid<M: Medium>(medium: &M, slot: &[PmWord]) -> u64 {
    let seals = slot.chunks_exact(LINE_WORDS).map(|line| medium.load(&line[SEAL]) >> 16);
    seals.max().unwrap_or(0)
}

/// Checks that the log at `at` may change the word at `offset`: no superblock, and no log slot.
pub(super) fn check_offset(offset: u64, at: u64, pool_bytes: u64) -> Result<(), Corrupt> {
    let inside = offset.is_multiple_of(8) && offset < pool_bytes;
    if !inside || offset < SUPERBLOCKS_END || (AREA..HEADER_BYTES).contains(&offset) {
        let what = "word that a log may not change";
        return Err(Corrupt { at, what, expected: pool_bytes, found: offset });
    }
    Ok(())
}

/// Clears every seal of a slot. Durable after the next fence.
pub(super) fn clear_seals<M: Medium>(medium: &M, slot: &[PmWord]) {
    for line in slot.chunks_exact(LINE_WORDS) {
        let seal = &line[SEAL..];
        if medium.load(&seal[0]) != 0 {
            medium.store(&seal[0], 0);
            medium.flush(seal);
        }
    }
}

/// Truncates the log: clears the seal of the slot's first line. Durable on return.
pub(super) fn truncate<M: Medium>(medium: &M, slot: &[PmWord]) -> Fenced {
    medium.store(&slot[SEAL], 0);
    medium.persist(&slot[SEAL..=SEAL])
}
