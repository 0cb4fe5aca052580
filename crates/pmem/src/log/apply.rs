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
    write_back(medium, pairs.iter().map(|&(offset, _)| offset))
}

/// Makes the words at `offsets` durable. Flushes each of their lines once.
///
/// # Errors
/// As [`apply`].
pub(super) fn write_back<M: Medium>(
    medium: &M,
    offsets: impl Iterator<Item = u64>,
) -> Result<Fenced, Corrupt> {
    let mut lines: Vec<_> = offsets.map(|offset| line_of(offset as usize) as u64).collect();
    lines.sort_unstable();
    lines.dedup();
    for line in lines {
        medium.flush(words_at(medium, PmPtr::new(line), 1)?);
    }
    if M::INJECTS_DEFECTS && medium.injects(Defect::UndoEndsEarly) {
        return Ok(Fenced::after_fence()); // Wrong: the log may end before the words are durable.
    }
    Ok(medium.fence())
}

/// Returns the greatest transaction number in a slot, valid or not. `seals` are the words of a line
/// that hold one.
pub(super) fn newest_txid<M: Medium>(medium: &M, slot: &[PmWord], seals: &[usize]) -> u64 {
    let lines = slot.chunks_exact(LINE_WORDS);
    let numbers = lines.flat_map(|line| seals.iter().map(|&seal| medium.load(&line[seal]) >> 16));
    numbers.max().unwrap_or(0)
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

/// Clears every number of some slots, so that transaction numbers may begin again. Each slot comes
/// with the words of a line that hold a number. Durable on return.
///
/// ```text
/// W seals of the lines after the first, F |    crash: the first line still tells what has ended
/// W seals of the first lines, F |              before a thread takes small numbers, which a great
///                                              one in an undo-redo log would hide
/// ```
pub(super) fn clear_seals<'p, M: Medium>(
    medium: &M,
    slots: impl Iterator<Item = (&'p [PmWord], &'p [usize])> + Clone,
) {
    let clear = |line: &[PmWord], seals: &[usize]| {
        let held = || seals.iter().filter(|&&seal| medium.load(&line[seal]) != 0);
        if held().next().is_some() {
            held().for_each(|&seal| medium.store(&line[seal], 0));
            medium.flush(line);
        }
    };
    for (slot, seals) in slots.clone() {
        slot.chunks_exact(LINE_WORDS).skip(1).for_each(|line| clear(line, seals));
    }
    let _ = medium.fence();
    for (slot, seals) in slots {
        clear(&slot[..LINE_WORDS], seals);
    }
    let _ = medium.fence();
}

/// Ends the transaction of a slot: stores `end`, which is 0 in a redo log, to the last word of its
/// first line. Durable on return.
pub(super) fn truncate<M: Medium>(medium: &M, slot: &[PmWord], end: u64) -> Fenced {
    medium.store(&slot[SEAL], end);
    medium.persist(&slot[SEAL..=SEAL])
}
