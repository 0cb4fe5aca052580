//! What btree-ls costs a device, by what its report leaves to whoever runs it: how many logs there are, how
//! much of a log may be garbage, how long chains get.

use crate::bench::{Model, models_of};
use crate::device::Profile;
use crate::error::{LabError, Result};
use crate::workload::Recipe;
use bristlecone_trees::TreeStats;
use bristlecone_trees::designs::BTreeLs;
use bristlecone_trees::designs::btree_ls::{Standard, Tuned, Tuning};

/// A choice; one of the three is not the registry's, at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Logs.
    pub logs: usize,
    /// A log is collected where at most so many in a hundred of its lines are live.
    pub live_percent: usize,
    /// The most deltas of a chain.
    pub deltas: usize,
}

impl Choice {
    /// The registry's.
    pub const STANDARD: Self = Self {
        logs: Standard::LOGS,
        live_percent: Standard::LIVE_PERCENT,
        deltas: Standard::DELTAS,
    };
    /// Numbers of logs that can be tried.
    pub const LOGS: [usize; 6] = [1, 2, 4, 8, 16, 48];
    /// Shares of live lines that can be tried.
    pub const LIVE_PERCENTS: [usize; 4] = [25, 50, 75, 90];
    /// Lengths of chains that can be tried.
    pub const DELTAS: [usize; 4] = [1, 2, 4, 8];
}

/// What came of a choice.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tried {
    /// A model for each recipe.
    pub models: Vec<Model>,
    /// The tree after the last.
    pub census: TreeStats,
}

/// Does `recipes`, one after the other, with a tree of that `choice`, on a device of `profile`; see
/// [`models`](crate::bench::models).
///
/// # Errors
/// The choice cannot be tried, or the tree refused.
pub fn models(
    choice: Choice,
    recipes: &[Recipe],
    profile: &Profile,
    threads: u32,
) -> Result<Tried> {
    let Choice { logs, live_percent, deltas } = choice;
    let tried = match (logs, live_percent, deltas) {
        (8, 50, 8) => tried::<Standard>,
        (1, 50, 8) => tried::<Tuned<1, 50, 8>>,
        (2, 50, 8) => tried::<Tuned<2, 50, 8>>,
        (4, 50, 8) => tried::<Tuned<4, 50, 8>>,
        (16, 50, 8) => tried::<Tuned<16, 50, 8>>,
        (48, 50, 8) => tried::<Tuned<48, 50, 8>>,
        (8, 25, 8) => tried::<Tuned<8, 25, 8>>,
        (8, 75, 8) => tried::<Tuned<8, 75, 8>>,
        (8, 90, 8) => tried::<Tuned<8, 90, 8>>,
        (8, 50, 1) => tried::<Tuned<8, 50, 1>>,
        (8, 50, 2) => tried::<Tuned<8, 50, 2>>,
        (8, 50, 4) => tried::<Tuned<8, 50, 4>>,
        _ => return Err(LabError::Asked(format!("btree-ls is not there as {choice:?}"))),
    };
    tried(recipes, profile, threads)
}

fn tried<T: Tuning>(recipes: &[Recipe], profile: &Profile, threads: u32) -> Result<Tried> {
    let (models, census) = models_of::<BTreeLs<512, T>>(recipes, profile, threads)?;
    Ok(Tried { models, census })
}
