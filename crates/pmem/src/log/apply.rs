//! What both logs and their replay do with words: apply, truncate, check.

use super::slots::{AREA, SEAL};
use crate::error::Corrupt;
use crate::layout::HEADER_BYTES;
use crate::line::{LINE_WORDS, line_of};
use crate::medium::{Fenced, Medium, words_at};
use crate::word::{PmPtr, PmWord};

/// First byte behind the superblocks.
const SUPERBLOCKS_END: u64 = 0x2000;

/// Stores each value at its offset, in order. Durable at return.
pub(super) fn apply<M: Medium>(medium: &M, pairs: &[(u64, u64)]) -> Result<Fenced, Corrupt> {
    for &(offset, value) in pairs {
        medium.store(&words_at(medium, PmPtr::new(offset), 1)?[0], value);
    }
    let offsets: Vec<_> = pairs.iter().map(|&(offset, _)| offset).collect();
    flush_lines(medium, &offsets)?;
    Ok(medium.fence())
}

/// Flushes each line that holds a word of `offsets` once.
pub(super) fn flush_lines<M: Medium>(medium: &M, offsets: &[u64]) -> Result<(), Corrupt> {
    for (index, &offset) in offsets.iter().enumerate() {
        let line = |offset| line_of(offset as usize);
        if !offsets[..index].iter().any(|&other| line(other) == line(offset)) {
            medium.flush(words_at(medium, PmPtr::new(offset), 1)?);
        }
    }
    Ok(())
}

/// The greatest number in the seals of a slot, whatever they are worth.
pub(super) fn newest_in<M: Medium>(medium: &M, slot: &[PmWord]) -> u64 {
    let seals = slot.chunks_exact(LINE_WORDS).map(|line| medium.load(&line[SEAL]) >> 16);
    seals.max().unwrap_or(0)
}

/// Whether a log at `at` may name the word at `offset`.
pub(super) fn check_offset(offset: u64, at: u64, pool_bytes: u64) -> Result<(), Corrupt> {
    let inside = offset.is_multiple_of(8) && offset < pool_bytes;
    if !inside || offset < SUPERBLOCKS_END || (AREA..HEADER_BYTES).contains(&offset) {
        let what = "log names a word that it cannot change";
        return Err(Corrupt { at, what, expected: pool_bytes, found: offset });
    }
    Ok(())
}

/// Clears every seal of a slot. Durable after the next fence.
pub(super) fn wipe_slot<M: Medium>(medium: &M, slot: &[PmWord]) {
    for line in slot.chunks_exact(LINE_WORDS) {
        let seal = &line[SEAL..];
        if medium.load(&seal[0]) != 0 {
            medium.store(&seal[0], 0);
            medium.flush(seal);
        }
    }
}

/// Clears the seal of the slot's first line. Durable at return.
pub(super) fn clear<M: Medium>(medium: &M, slot: &[PmWord]) -> Fenced {
    medium.store(&slot[SEAL], 0);
    medium.persist(&slot[SEAL..=SEAL])
}
