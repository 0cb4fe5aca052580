//! The time from opening a pool to an index that can be used.
//!
//! The time includes mapping the file, reading the pool, and recovering or loading the index. The
//! pages of the file are in memory, as they are after the death of a process. The new mapping has
//! none of them yet.

use super::options::Bench;
use super::run::{self, Measured, expect_none};
use crate::error::Result;
use crate::system::{AnySystem, OnMedium, Session, System, Target};
use crate::workload::{KeyBuffer, Recipe, Render, belongs};
use bristlecone_registry::Memory;
use std::time::Instant;

/// Loads the records of `recipe`, closes the pool if `clean`, leaves it as a crash does if not, and
/// times opening it.
pub(super) fn time(
    bench: &Bench,
    target: &Target,
    recipe: &Recipe,
    clean: bool,
) -> Result<Measured> {
    let opener = target.opener::<Memory, u64>(recipe.keys())?;
    let (medium, file) = bench.medium(target, recipe)?;
    match opener.create(bench.delays.on(medium))? {
        AnySystem::Design(tree) => load_and_leave(tree, recipe, clean)?,
        AnySystem::Store(store) => load_and_leave(store, recipe, clean)?,
        AnySystem::Floor(lines) => load_and_leave(lines, recipe, clean)?,
    }
    let start = Instant::now();
    let system = opener.open(bench.delays.on(bench.reopened(&file)?))?;
    let elapsed = start.elapsed();
    match system {
        AnySystem::Design(mut tree) => verify(&mut tree, recipe)?,
        AnySystem::Store(mut store) => verify(&mut store, recipe)?,
        AnySystem::Floor(mut lines) => verify(&mut lines, recipe)?,
    }
    let nanoseconds = u32::try_from(elapsed.as_nanos()).unwrap_or(u32::MAX);
    Ok(Measured {
        ops: 1,
        seconds: elapsed.as_secs_f64().max(1e-9),
        samples: vec![nanoseconds],
        open: None,
        maintenance_threads: 0,
        pinned: false,
    })
}

fn load_and_leave<S: System<u64> + OnMedium>(
    mut system: S,
    recipe: &Recipe,
    clean: bool,
) -> Result<()> {
    run::load(&mut system, recipe)?;
    if clean { system.close() } else { Ok(()) }
}

/// Looks up some of the records.
fn verify<S: System<u64>>(system: &mut S, recipe: &Recipe) -> Result<()> {
    const LOOKUPS: u64 = 1000;
    let (mut wrong, mut done, mut buffer) = (0, 0, KeyBuffer::default());
    for session in &mut system.sessions(1) {
        for index in (0..recipe.records).step_by((recipe.records / LOOKUPS).max(1) as usize) {
            let token = recipe.token(index);
            let key = u64::render(recipe.keys(), token, &mut buffer);
            wrong += u64::from(!session.get(key)?.is_some_and(|value| belongs(token, value)));
            done += 1;
        }
    }
    expect_none(wrong, done)
}
