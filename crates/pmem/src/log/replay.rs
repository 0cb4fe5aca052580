//! What an open does with the logs.
//!
//! 1. Everything is read and checked before anything is written, so a damaged pool is left alone.
//! 2. A log is truncated only once what it says is durable in place. So a crash in a replay is
//!    followed by the same replay.

use super::apply::{apply, check_offset, clear, newest_in, wipe_slot};
use super::slots::{self, Slots, TXID_RENEW};
use super::{redo, undo};
use crate::error::Corrupt;
use crate::medium::Medium;

/// Brings every transaction to its end, before anything else reads the pool: those that are
/// committed forward, those of undo logs that are not back. Durable at return.
///
/// ```text
/// for each slot with a transaction
///   W words                crash: the slot is as it was, the next open does the same
///   F their lines |
///   W seal of line 0 = 0
///   F line 0 |             -> durable
/// ```
///
/// # Errors
/// A log is damaged, or names a word that no log can name. Nothing has changed then.
pub(crate) fn replay<M: Medium>(
    medium: &M,
    numbers: &Slots,
    pool_bytes: u64,
) -> Result<(), Corrupt> {
    let mut ends = Vec::new();
    let mut newest = 0;
    for index in slots::ALL {
        let slot = slots::words(medium, index);
        newest = newest.max(newest_in(medium, slot));
        let end = if slots::REDO.contains(&index) {
            redo::read(medium, slot)?
        } else {
            undo::read(medium, slot)?
        };
        if let Some(pairs) = end {
            for &(offset, _) in &pairs {
                check_offset(offset, slots::offset(index), pool_bytes)?;
            }
            ends.push((slot, pairs));
        }
    }
    for (slot, pairs) in ends {
        let _ = apply(medium, &pairs)?;
        let _ = clear(medium, slot);
    }
    if newest >= TXID_RENEW {
        wipe(medium);
        newest = 0;
    }
    numbers.resume_above(newest);
    Ok(())
}

/// Clears every seal: nothing is committed any more, and numbers may begin again.
fn wipe<M: Medium>(medium: &M) {
    for index in slots::ALL {
        wipe_slot(medium, slots::words(medium, index));
    }
    let _ = medium.fence();
}
