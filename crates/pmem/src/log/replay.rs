//! Replay: an open ends every transaction that the logs contain.
//!
//! 1. All logs are read and checked before the pool is marked as open, so a damaged pool stays
//!    unchanged.
//! 2. A log is truncated only after its values are durable in place. So a crash during a replay is
//!    followed by the same replay.

use super::apply::{apply, check_offset, clear_seals, newest_txid, truncate};
use super::redo;
use super::slots::{self, SlotState, TXID_RESTART};
use super::undo::{self, HEADER_SHAPE};
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::medium::Medium;
use crate::word::PmWord;

/// The transactions that the logs of a pool contain, read and checked (I1).
#[derive(Debug)]
pub(crate) struct Replay<'p> {
    ends: Vec<End<'p>>,
    newest: u64,
}

/// The slot of a transaction, the pairs that end it, and the last word of line 0 after it.
type End<'p> = (&'p [PmWord], Vec<(u64, u64)>, u64);

impl<'p> Replay<'p> {
    /// Reads all logs of the pool on `medium`.
    ///
    /// # Errors
    /// A log is damaged, or contains a word that no log may change.
    pub(crate) fn read<M: Medium>(medium: &'p M, pool_bytes: u64) -> Result<Self, Corrupt> {
        let mut ends = Vec::new();
        let mut newest = 0;
        for index in slots::ALL {
            let slot = slots::words(medium, index);
            let (sealed, seals) = sealed(slot, index);
            newest = newest.max(newest_txid(medium, sealed, seals));
            let interrupted = if slots::REDO.contains(&index) {
                redo::read(medium, slot)?.map(|pairs| (pairs, 0))
            } else {
                undo::read(medium, slot, HEADER_SHAPE)?.map(|found| (found.pairs, found.end))
            };
            if let Some((pairs, end)) = interrupted {
                for &(offset, _) in &pairs {
                    check_offset(offset, slots::offset(index), pool_bytes)?;
                }
                ends.push((slot, pairs, end));
            }
        }
        Ok(Self { ends, newest })
    }

    /// Ends every transaction, before anything else reads the pool: applies those that are
    /// committed and undoes the others. Durable on return. Call it once the pool is marked as open:
    /// before that a power cut could leave a plain file whose log has ended and whose values are
    /// lost, and which counts as whole.
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
    /// As [`read`](Self::read), which finds them before.
    pub(crate) fn end<M: Medium>(self, medium: &M, state: &SlotState) -> Result<(), Corrupt> {
        let Self { ends, mut newest } = self;
        for (slot, pairs, end) in ends {
            let _ = apply(medium, &pairs)?;
            if !(M::INJECTS_DEFECTS && medium.injects(Defect::ReplayKept)) {
                let _ = truncate(medium, slot, end);
            }
        }
        if newest >= TXID_RESTART {
            if !(M::INJECTS_DEFECTS && medium.injects(Defect::NumbersRestart)) {
                let slots = slots::ALL.map(|index| sealed(slots::words(medium, index), index));
                clear_seals(medium, slots);
            }
            newest = 0;
        }
        state.resume_above(newest);
        Ok(())
    }
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
