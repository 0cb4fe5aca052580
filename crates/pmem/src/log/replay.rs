//! What an open does with the logs.
//!
//! 1. Everything is read and checked before anything is written, so a damaged pool is left alone.
//! 2. A log is truncated only once what it says is durable in place. So a crash in a replay is
//!    followed by the same replay.

use super::slots::{self, TXID_RENEW};
use super::{redo, slots::AREA, undo};
use crate::line::{LINE_WORDS, line_of};
use crate::medium::{Fenced, Medium};
use crate::pool::{Corrupt, HEADER_BYTES, Pool};
use crate::word::{PmPtr, PmWord};

/// In both logs the last word of a line says whose the line is, its number in the upper 48 bits.
pub(super) const SEAL: usize = LINE_WORDS - 1;

/// First byte behind the superblocks.
const SUPERBLOCKS_END: u64 = 0x2000;

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
pub(crate) fn replay<M: Medium>(pool: &Pool<M>, pool_bytes: u64) -> Result<(), Corrupt> {
    let mut ends = Vec::new();
    let mut newest = 0;
    for index in slots::ALL {
        let slot = slots::words(pool, index);
        newest = newest.max(newest_in(pool, slot));
        let end = if slots::SEALED.contains(&index) {
            redo::read(pool, slot)?
        } else {
            undo::read(pool, slot)?
        };
        if let Some(pairs) = end {
            for &(offset, _) in &pairs {
                check_offset(offset, slots::offset(index), pool_bytes)?;
            }
            ends.push((slot, pairs));
        }
    }
    for (slot, pairs) in ends {
        let _ = apply(pool, &pairs)?;
        let _ = redo::clear(pool, slot);
    }
    if newest >= TXID_RENEW {
        wipe(pool);
        newest = 0;
    }
    pool.logs.resume_above(newest);
    Ok(())
}

/// Stores each value at its offset, in order. Durable at return.
pub(super) fn apply<M: Medium>(pool: &Pool<M>, pairs: &[(u64, u64)]) -> Result<Fenced, Corrupt> {
    let medium = pool.medium();
    for &(offset, value) in pairs {
        medium.store(&pool.words(PmPtr::new(offset), 1)?[0], value);
    }
    let offsets: Vec<_> = pairs.iter().map(|&(offset, _)| offset).collect();
    flush_lines(pool, &offsets)?;
    Ok(medium.fence())
}

/// Flushes each line that holds a word of `offsets` once.
pub(super) fn flush_lines<M: Medium>(pool: &Pool<M>, offsets: &[u64]) -> Result<(), Corrupt> {
    for (index, &offset) in offsets.iter().enumerate() {
        let line = |offset| line_of(offset as usize);
        if !offsets[..index].iter().any(|&other| line(other) == line(offset)) {
            pool.medium().flush(pool.words(PmPtr::new(offset), 1)?);
        }
    }
    Ok(())
}

/// The greatest number in the seals of a slot, whatever they are worth.
pub(super) fn newest_in<M: Medium>(pool: &Pool<M>, slot: &[PmWord]) -> u64 {
    let seals = slot.chunks_exact(LINE_WORDS).map(|line| pool.medium().load(&line[SEAL]) >> 16);
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

/// Clears every seal: nothing is committed any more, and numbers may begin again.
fn wipe<M: Medium>(pool: &Pool<M>) {
    for index in slots::ALL {
        wipe_slot(pool, slots::words(pool, index));
    }
    let _ = pool.medium().fence();
}

/// Clears every seal of a slot. Durable after the next fence.
pub(super) fn wipe_slot<M: Medium>(pool: &Pool<M>, slot: &[PmWord]) {
    for line in slot.chunks_exact(LINE_WORDS) {
        let seal = &line[SEAL..];
        if pool.medium().load(&seal[0]) != 0 {
            pool.medium().store(&seal[0], 0);
            pool.medium().flush(seal);
        }
    }
}
