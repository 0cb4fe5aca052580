//! Replay: an open ends every transaction that the logs contain.
//!
//! 1. The replay reads and checks everything before it writes, so it leaves a damaged pool
//!    unchanged.
//! 2. A log is truncated only after its values are durable in place. So a crash during a replay is
//!    followed by the same replay.

use super::apply::{apply, check_offset, clear_seals, newest_txid, truncate};
use super::redo;
use super::redo_list::PAIR_BYTES;
use super::slots::{self, SlotState, TXID_RESTART};
use super::undo::{self, HEADER_SHAPE};
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::medium::Medium;
use crate::word::PmWord;

/// Ends every transaction, before anything else reads the pool: applies those that are committed
/// and undoes the others. Durable on return.
///
/// ```text
/// for each slot with a transaction
///   W words                crash: the slot is as it was, the next open does the same
///   F their lines |
///   W last word of line 0: that of a log without a transaction
///   F line 0 |             -> durable
/// ```
///
/// # Errors
/// A log is damaged, or contains a word that no log may change. Nothing has changed then.
pub(crate) fn replay<M: Medium>(
    medium: &M,
    state: &SlotState,
    pool_bytes: u64,
) -> Result<(), Corrupt> {
    let mut ends = Vec::new();
    let mut newest = 0;
    // Lists of several logs do not overlap, so all of them take no more memory than the pool.
    let mut list_pairs_max = pool_bytes / PAIR_BYTES;
    for index in slots::ALL {
        let slot = slots::words(medium, index);
        let (sealed, seals) = sealed(slot, index);
        newest = newest.max(newest_txid(medium, sealed, seals));
        let interrupted = if slots::REDO.contains(&index) {
            redo::read(medium, slot, list_pairs_max)?.map(|pairs| (pairs, 0))
        } else {
            undo::read(medium, slot, HEADER_SHAPE)?.map(|found| (found.pairs, found.end))
        };
        if let Some((pairs, end)) = interrupted {
            for &(offset, _) in &pairs {
                check_offset(offset, slots::offset(index), pool_bytes)?;
            }
            list_pairs_max = list_pairs_max.saturating_sub(pairs.len() as u64);
            ends.push((slot, pairs, end));
        }
    }
    for (slot, pairs, end) in ends {
        let _ = apply(medium, &pairs)?;
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::ReplayKept)) {
            let _ = truncate(medium, slot, end);
        }
    }
    if newest >= TXID_RESTART {
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::NumbersRestart)) {
            clear_seals(medium, slots::ALL.map(|index| sealed(slots::words(medium, index), index)));
        }
        newest = 0;
    }
    state.resume_above(newest);
    Ok(())
}

/// Returns the lines of `slot`, that of `index`, with transaction numbers, and the words of a line
/// that hold one.
fn sealed(slot: &[PmWord], index: usize) -> (&[PmWord], &'static [usize]) {
    if slots::REDO.contains(&index) {
        (slot, &[slots::SEAL])
    } else {
        (HEADER_SHAPE.sealed(slot), &undo::SEALS)
    }
}
