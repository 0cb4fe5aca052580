//! The cost of btree-ls on a device by options that its report varies: the number of logs, log GC,
//! and the number of records to which the mapping table points.

use super::form::variants_missing;
use bristlecone_lab::bench::{Model, models_of_form};
use bristlecone_lab::device::Profile;
use bristlecone_lab::system::design;
use bristlecone_lab::workload::Recipe;
use bristlecone_lab::{LabError, Result};
use bristlecone_registry::{LS_VARIANTS, LsVariant};
use bristlecone_trees::TreeStats;
use bristlecone_trees::designs::btree_ls::{LsOptions, LsUsual};

/// The options of btree-ls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The number of logs.
    pub logs: usize,
    /// `true` if log GC runs.
    pub collects: bool,
    /// The number of records that a row of the mapping table points to.
    pub recent: usize,
}

impl Choice {
    /// The options of the design in the registry.
    pub const STANDARD: Self =
        Self { logs: LsUsual::LOGS, collects: true, recent: LsUsual::RECENT };
    /// The options of the report: 48 logs, without log GC.
    pub const REPORT: Self = Self { logs: 48, collects: false, recent: 4 };
    /// The compiled numbers of logs, without log GC.
    pub const LOGS: [usize; 6] = [1, 2, 4, 8, 16, 48];
    /// The compiled numbers of pointers in a row, with the logs of the report.
    pub const RECENT: [usize; 4] = [1, 2, 4, 8];
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
        return Err(variants_missing("btree-ls"));
    }
    let of = |variant: &LsVariant| {
        let &LsVariant { logs, collects, recent, .. } = variant;
        Choice { logs, collects, recent }
    };
    let asked = || LabError::Asked(format!("btree-ls is not compiled with {choice:?}"));
    let variant = LS_VARIANTS.iter().find(|&variant| of(variant) == choice).ok_or_else(asked)?;
    let target = design(variant.form.spec.name, None)?;
    let (models, stats) = models_of_form(&target, &variant.form, recipes, profile, threads)?;
    Ok(TuningResult { models, stats })
}
