//! What btree-ls costs a device, by what its report leaves to whoever runs it: how many logs there are, how
//! much of a log may be garbage, how long chains get.

use bristlecone_lab::bench::{Model, models_of_form};
use bristlecone_lab::device::Profile;
use bristlecone_lab::system::design;
use bristlecone_lab::workload::Recipe;
use bristlecone_lab::{LabError, Result};
use bristlecone_registry::{LS_VARIANTS, LsVariant};
use bristlecone_trees::TreeStats;
use bristlecone_trees::designs::btree_ls::{Standard, Tuning};

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
pub struct TuningResult {
    /// A model for each recipe.
    pub models: Vec<Model>,
    /// The tree after the last.
    pub stats: TreeStats,
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
) -> Result<TuningResult> {
    let Choice { logs, live_percent, deltas } = choice;
    let is_it = |variant: &&LsVariant| {
        [variant.logs, variant.live_percent, variant.deltas] == [logs, live_percent, deltas]
    };
    let asked = || LabError::Asked(format!("btree-ls is not there as {choice:?}"));
    let variant = LS_VARIANTS.iter().find(is_it).ok_or_else(asked)?;
    let target = design(variant.form.spec.name, None)?;
    let (models, stats) = models_of_form(&target, &variant.form, recipes, profile, threads)?;
    Ok(TuningResult { models, stats })
}
