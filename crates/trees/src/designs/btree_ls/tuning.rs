//! What may be chosen beside the size of leaves. The registry has one choice; laboratories try others.

use super::table::DELTAS_MAX;

/// A choice. What is said of costs, in `SPEC` and in `MAINTENANCE`, is said of [`Standard`].
pub trait Tuning: Send + Sync + 'static {
    /// Logs of an index.
    const LOGS: usize;
    /// A log is collected where at most so many in a hundred lines of its full chunks are live. Nothing on
    /// the medium says so: an index may be opened with another one.
    const LIVE_PERCENT: usize;
    /// The most deltas of a chain.
    const DELTAS: usize;

    /// What of it the medium depends on: 0 for the choice of the registry, and for each other one another.
    const LAYOUT: u64 =
        (Self::LOGS ^ Standard::LOGS) as u64 | ((Self::DELTAS ^ Standard::DELTAS) as u64) << 32;

    /// The log that has the records of the leaf of that number.
    #[inline(always)]
    fn log_of(leaf: u64) -> usize {
        (leaf % Self::LOGS as u64) as usize
    }
}

/// So many logs, collected where at most so many percent are live, and chains of so many deltas.
#[derive(Debug)]
pub struct Tuned<const LOGS: usize, const LIVE_PERCENT: usize, const DELTAS: usize>;

/// The choice of the registry's `btree-ls`.
pub type Standard = Tuned<8, 50, 8>;

impl<const LOGS: usize, const LIVE_PERCENT: usize, const DELTAS: usize> Tuning
    for Tuned<LOGS, LIVE_PERCENT, DELTAS>
{
    const LOGS: usize = {
        assert!(0 < LOGS && LOGS <= 256, "each log takes a word of the root block");
        LOGS
    };
    const LIVE_PERCENT: usize = {
        assert!(LIVE_PERCENT < 100, "where all is live, a collection gains nothing");
        LIVE_PERCENT
    };
    const DELTAS: usize = {
        assert!(DELTAS <= DELTAS_MAX, "the table has room for them");
        DELTAS
    };
}
