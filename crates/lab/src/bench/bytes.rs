//! Byte-string keys: on the designs, through the key layer as the papers store such keys, on the
//! store, and on std's map.
//!
//! Designs are run at their default node size, and not on a model of a device: each of these would
//! be another compilation of every tree. What is asked for beyond that is refused.

use super::count::{self, PerOp};
use super::subject::Tree;
use super::target::{Bench, Once, Target, counted, form, once};
use crate::error::{LabError, Result};
use crate::peers::{Alone, Locked};
use crate::workload::{Plan, Recipe};
use bristlecone::Store;
use bristlecone_registry::DesignEntry;
use bristlecone_trees::Text;

/// One timed repetition on `target`.
pub(super) fn time(
    bench: &Bench,
    target: &Target,
    recipe: &Recipe,
    plans: &[Plan],
    weigh: bool,
) -> Result<Once> {
    if recipe.workload.reopens().is_some() {
        return Err(asked(recipe, "opening again is timed with keys of 8 B: leave out --keys"));
    }
    match target {
        Target::Peer(peer) if peer.is_std_map() && recipe.threads == 1 => {
            once(Alone::<Text>::default(), recipe, plans, weigh)
        }
        Target::Peer(peer) if peer.is_std_map() => {
            once::<Text, _>(Locked::<Text>::default(), recipe, plans, weigh)
        }
        Target::Peer(peer) => Err(asked(recipe, &format!("{peer} is run with keys of 8 B"))),
        Target::Store => {
            let (medium, file) = bench.medium(target, recipe)?;
            drop(file);
            once::<Text, _>(Store::create_on(bench.delays.on(medium))?, recipe, plans, weigh)
        }
        Target::Design { name, node_bytes, .. } => {
            let entry = expect_default(name, *node_bytes, recipe)?;
            let design = form::<_, Text>(&entry.memory, &entry.spec)?;
            let (medium, file) = bench.medium(target, recipe)?;
            drop(file);
            once(Tree::create(&design, bench.delays.on(medium))?, recipe, plans, weigh)
        }
    }
}

/// What an operation of `part` does to the medium of `target`.
pub(super) fn count(target: &Target, part: &Recipe) -> Result<PerOp> {
    match target {
        Target::Peer(peer) if peer.is_std_map() => Ok(PerOp::default()),
        Target::Peer(peer) => Err(asked(part, &format!("{peer} is run with keys of 8 B"))),
        Target::Store => count::count::<Text, _>(Store::create_on(counted()?)?, part),
        Target::Design { name, node_bytes, .. } => {
            let entry = expect_default(name, *node_bytes, part)?;
            let design = form::<_, Text>(&entry.simulated, &entry.spec)?;
            count::count(Tree::create(&design, counted()?)?, part)
        }
    }
}

/// # Errors
/// Always: `recipe` has keys for which something cannot be done.
pub(super) fn asked(recipe: &Recipe, what: &str) -> LabError {
    LabError::Asked(format!("keys {} are byte strings; {what}", recipe.keys()))
}

/// # Errors
/// `node_bytes` is not the default node size of the design called `name`.
fn expect_default(name: &str, node_bytes: usize, recipe: &Recipe) -> Result<&'static DesignEntry> {
    let entry = bristlecone_registry::default_size(name)?;
    let default = entry.spec.node_bytes;
    if node_bytes == default {
        return Ok(entry);
    }
    let only = format!("{name} takes them in nodes of {default} B only, not of {node_bytes} B");
    Err(asked(recipe, &only))
}
