//! The crashes of a campaign.

use crate::config::RECOVERIES_MAX;
use crate::trace::mutation::Mutation;

/// The crashes to explore.
#[derive(Clone, Copy, Debug)]
pub struct CrashOptions {
    /// The number of images after which an outcome is sampled and reported as incomplete. The
    /// images that a recovery stands for all count, as in
    /// [`CrashCounts::images`](crate::CrashCounts), so this bounds the number of recoveries as
    /// well.
    pub budget: u128,
    /// The number of recoveries of a scenario at each depth after which an outcome is sampled and
    /// reported as incomplete.
    pub recoveries: u64,
    /// The number of crashes in a row: 1 crashes the operations, 2 also the recovery from that,
    /// both exactly; a third crash is sampled.
    pub depth: u32,
    /// The length up to which every sequence of operations is explored; 0 for none.
    pub sequences: u32,
    /// The number of long random sequences for each kind of key.
    pub random: u64,
    /// The seed of the first random sequence; each later one has the next seed.
    pub seed: u64,
    /// A mutation of the operations under test.
    pub mutation: Option<Mutation>,
}

impl Default for CrashOptions {
    fn default() -> Self {
        let budget = u128::MAX;
        let recoveries = RECOVERIES_MAX;
        Self { budget, recoveries, depth: 2, sequences: 3, random: 20, seed: 1, mutation: None }
    }
}
