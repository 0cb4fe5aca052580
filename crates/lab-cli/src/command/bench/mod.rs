//! `bench`: runs workloads on several designs in one run, so that their speeds can be compared.

mod args;
mod tables;

pub(crate) use args::{Args, delay, device, dist, flushing, keys, workload};

use anyhow::Context;
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::Output;
use bristlecone_console::progress::Progress;
use bristlecone_lab::bench::{Comparison, ComparisonEvent};
use bristlecone_lab::system::{Target, parse};
use bristlecone_lab::workload::Recipe;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs each workload on each design and prints a row for each.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let mut targets = parse(&args.names()?, args.node_bytes)?;
    if args.workload.iter().any(|workload| workload.reopens().is_some()) {
        if args.design.iter().any(|design| design == "all") {
            targets.retain(Target::is_persistent);
        }
        if let Some(volatile) = targets.iter().find(|target| !target.is_persistent()) {
            let what = "is volatile: leave it out of the workloads reopen-crash and reopen-clean";
            return Err(UsageError(format!("{volatile} {what}")).into());
        }
    }
    let recipes = args
        .workload
        .iter()
        .map(|workload| args.recipe(workload))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if let Some((path, recipe)) = args.record.as_ref().zip(recipes.first()) {
        record(path, recipe)?;
    }
    let mut comparison =
        Comparison::new(args.bench()?, targets, args.reps).on(args.device()?, args.sim_threads);
    let mut progress = Progress::new(recipes.len() as u64 * comparison.steps());
    let mut rows = Vec::new();
    for recipe in &recipes {
        let found = comparison.run(recipe, &mut |step| match step {
            ComparisonEvent::Doing(what) => progress.say(what),
            ComparisonEvent::Done => progress.advance(1),
        })?;
        for row in found {
            if output.json {
                output.object(&row)?;
            }
            rows.push(row);
        }
    }
    drop(progress);
    if !output.json {
        tables::print(&rows, output)?;
        tables::print_models(&rows, args.sim_threads, output)?;
    }
    Ok(Answer::Yes)
}

/// Writes the operations of `recipe` as a trace to a new file at `path`.
fn record(path: &Path, recipe: &Recipe) -> anyhow::Result<()> {
    if recipe.workload.reopens().is_some() {
        return Err(UsageError(
            "--record cannot write the workloads reopen-crash and reopen-clean".into(),
        )
        .into());
    }
    let place = || format!("write the trace {}", path.display());
    let plans = recipe.plans().map_err(|error| UsageError(error.to_string()))?;
    let mut out = BufWriter::new(File::create_new(path).with_context(place)?);
    recipe.write_trace(&plans, &mut out).and_then(|()| out.flush()).with_context(place)
}
