//! The parameters beside the leaf size. The registry has one choice; the lab measures others.

/// The most pointers to records in a row.
pub(super) const RECENT_MAX: usize = 8;

/// The value of [`LsOptions::GARBAGE_KIB`] that turns log GC off.
pub const GC_OFF: usize = usize::MAX;

/// A choice of parameters. The budgets in `SPEC` and `MAINTENANCE` hold for [`LsUsual`] only.
pub trait LsOptions: Send + Sync + 'static {
    /// The number of logs of an index.
    const LOGS: usize;
    /// The threshold of log GC: a log is due when it has more KiB of garbage. 0: when it has more
    /// garbage than live records. [`GC_OFF`]: never, as long as the pool has space.
    const GARBAGE_KIB: usize;
    /// The number of newest records of a chain that a row of the mapping table points to.
    const RECENT: usize;
    /// The number of threads that replay logs; 0: up to one for each processor.
    const REPLAYERS: usize;

    /// The parameters that the pool's contents depend on, as a number: 0 for [`LsUsual`], another
    /// for each other choice.
    const LAYOUT: u64 = (Self::LOGS ^ LsUsual::LOGS) as u64;

    /// Returns the log that holds the records of leaf `leaf`: by a hash of its number.
    #[inline(always)]
    fn log_of(leaf: u64) -> usize {
        let hash = leaf.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        (hash % Self::LOGS as u64) as usize
    }
}

/// A choice of `LOGS` logs, log GC above `GARBAGE_KIB` KiB, `RECENT` pointers in a row, and
/// `REPLAYERS` threads of a replay.
#[derive(Debug)]
pub struct LsChoice<
    const LOGS: usize,
    const GARBAGE_KIB: usize,
    const RECENT: usize,
    const REPLAYERS: usize = 0,
>;

/// The choice of the registry's `btree-ls`.
pub type LsUsual = LsChoice<8, 0, 4>;

impl<const LOGS: usize, const GARBAGE_KIB: usize, const RECENT: usize, const REPLAYERS: usize>
    LsOptions for LsChoice<LOGS, GARBAGE_KIB, RECENT, REPLAYERS>
{
    const LOGS: usize = {
        assert!(0 < LOGS && LOGS <= 256, "an index has 1 to 256 logs");
        LOGS
    };
    const GARBAGE_KIB: usize = GARBAGE_KIB;
    const RECENT: usize = {
        assert!(0 < RECENT && RECENT <= RECENT_MAX, "a row has 1 to RECENT_MAX pointers");
        RECENT
    };
    const REPLAYERS: usize = REPLAYERS;
}
