//! The parameters beside the leaf size. The registry has one choice; the lab measures others.

use super::table::DELTAS_MAX;

/// A choice of parameters. The budgets in `SPEC` and `MAINTENANCE` hold for [`Standard`] only.
pub trait Tuning: Send + Sync + 'static {
    /// The number of logs of an index.
    const LOGS: usize;
    /// The threshold of log GC: a log is due when at most this percentage of the lines in its full
    /// chunks is live. It is not stored in the pool, so an index may be opened with another value.
    const LIVE_PERCENT: usize;
    /// The most deltas of a chain.
    const DELTAS: usize;

    /// The parameters that the pool's contents depend on, as a number: 0 for [`Standard`], another
    /// for each other choice.
    const LAYOUT: u64 =
        (Self::LOGS ^ Standard::LOGS) as u64 | ((Self::DELTAS ^ Standard::DELTAS) as u64) << 32;

    /// Returns the log that holds the records of leaf `leaf`.
    #[inline(always)]
    fn log_of(leaf: u64) -> usize {
        (leaf % Self::LOGS as u64) as usize
    }
}

/// A choice of `LOGS` logs, log GC at `LIVE_PERCENT` percent, and chains of up to `DELTAS` deltas.
#[derive(Debug)]
pub struct Tuned<const LOGS: usize, const LIVE_PERCENT: usize, const DELTAS: usize>;

/// The choice of the registry's `btree-ls-r`.
pub type Standard = Tuned<8, 50, 8>;

impl<const LOGS: usize, const LIVE_PERCENT: usize, const DELTAS: usize> Tuning
    for Tuned<LOGS, LIVE_PERCENT, DELTAS>
{
    const LOGS: usize = {
        assert!(0 < LOGS && LOGS <= 256, "an index has 1 to 256 logs");
        LOGS
    };
    const LIVE_PERCENT: usize = {
        assert!(LIVE_PERCENT < 100, "at 100 percent live lines, a collection frees nothing");
        LIVE_PERCENT
    };
    const DELTAS: usize = {
        assert!(DELTAS <= DELTAS_MAX, "a chain has at most DELTAS_MAX deltas");
        DELTAS
    };
}
