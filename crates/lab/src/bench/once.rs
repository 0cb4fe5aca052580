//! One repetition: load, weigh, measure.

use super::run::{self, Measured};
use crate::error::Result;
use crate::system::{BytesPerKey, System, used_bytes, weigh};
use crate::workload::{Plan, Recipe, Render};

/// The result of one repetition.
#[derive(Debug)]
#[non_exhaustive]
pub struct Once {
    /// Times and counts of the operations.
    pub measured: Measured,
    /// The memory for each key, if the repetition weighed the system.
    pub memory: Option<BytesPerKey>,
}

/// Loads `system`, weighs it if `weighs`, and measures it.
pub(super) fn once<K: Render, S: System<K>>(
    mut system: S,
    recipe: &Recipe,
    plans: &[Plan],
    weighs: bool,
) -> Result<Once> {
    let before = used_bytes();
    run::load(&mut system, recipe)?;
    // Without records to load, the keys that the run inserts are weighed.
    let early = weighs && recipe.records > 0;
    let mut memory = early.then(|| weigh(&mut system, recipe.records, before)).transpose()?;
    let measured = run::measure(&mut system, recipe, plans)?;
    if weighs && !early {
        memory = Some(weigh(&mut system, recipe.keys_left(), before)?);
    }
    Ok(Once { measured, memory })
}
