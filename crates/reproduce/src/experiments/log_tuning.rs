//! The cost of btree-ls-r on a device by three options that its report leaves open: the number of
//! logs, the share of garbage of a log, and the length of chains.

use super::form::variants_missing;
use bristlecone_lab::bench::{Model, models_of_form};
use bristlecone_lab::device::Profile;
use bristlecone_lab::system::design;
use bristlecone_lab::workload::Recipe;
use bristlecone_lab::{LabError, Result};
use bristlecone_registry::{LS_VARIANTS, LsVariant};
use bristlecone_trees::TreeStats;
use bristlecone_trees::designs::btree_ls_r::{Standard, Tuning};

/// The options of btree-ls-r. At most one differs from those of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The number of logs.
    pub logs: usize,
    /// The percentage of live lines at or below which a log is collected.
    pub live_percent: usize,
    /// The greatest number of deltas in a chain.
    pub deltas: usize,
}

impl Choice {
    /// The options of the design in the registry.
    pub const STANDARD: Self = Self {
        logs: Standard::LOGS,
        live_percent: Standard::LIVE_PERCENT,
        deltas: Standard::DELTAS,
    };
    /// The compiled numbers of logs.
    pub const LOGS: [usize; 6] = [1, 2, 4, 8, 16, 48];
    /// The compiled percentages of live lines.
    pub const LIVE_PERCENTS: [usize; 4] = [25, 50, 75, 90];
    /// The compiled lengths of chains.
    pub const DELTAS: [usize; 4] = [1, 2, 4, 8];
}

/// The result of running recipes with a choice of options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TuningResult {
    /// The model of each recipe.
    pub models: Vec<Model>,
    /// The statistics of the tree after the last recipe.
    pub stats: TreeStats,
}

/// Runs `recipes` one after the other on a tree with the options of `choice`, on a device of
/// `profile`, as [`models`](bristlecone_lab::bench::models) does.
///
/// # Errors
/// The choice is not compiled, or the tree failed.
pub fn models(
    choice: Choice,
    recipes: &[Recipe],
    profile: &Profile,
    threads: u32,
) -> Result<TuningResult> {
    if LS_VARIANTS.is_empty() {
        return Err(variants_missing("btree-ls-r"));
    }
    let Choice { logs, live_percent, deltas } = choice;
    let is_it = |variant: &&LsVariant| {
        [variant.logs, variant.live_percent, variant.deltas] == [logs, live_percent, deltas]
    };
    let asked = || {
        LabError::Asked(format!(
            "btree-ls-r is not compiled with {choice:?}; at most one option differs from the default"
        ))
    };
    let variant = LS_VARIANTS.iter().find(is_it).ok_or_else(asked)?;
    let target = design(variant.form.spec.name, None)?;
    let (models, stats) = models_of_form(&target, &variant.form, recipes, profile, threads)?;
    Ok(TuningResult { models, stats })
}
