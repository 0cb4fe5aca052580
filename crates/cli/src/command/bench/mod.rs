//! `bench`: workloads on the designs, all in one run, so that their ratios mean something.

mod options;
mod report;

pub(crate) use options::{Args, device};

use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress};
use anyhow::Context;
use bristlecone_lab::bench::{Comparison, Progress as Reached};
use bristlecone_lab::system::{Target, parse};
use bristlecone_lab::workload::Recipe;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs everything that `args` ask for.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let mut targets = parse(&args.names()?, args.node_bytes)?;
    if args.workload.iter().any(|workload| workload.reopens().is_some()) {
        if args.design.iter().any(|design| design == "all") {
            targets.retain(Target::is_persistent);
        }
        if let Some(volatile) = targets.iter().find(|target| !target.is_persistent()) {
            return Err(Usage(format!("{volatile} cannot be opened again")).into());
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
            Reached::Doing(what) => progress.say(what),
            Reached::Done => progress.advance(1),
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
        report::print(&rows, output)?;
        report::print_models(&rows, args.sim_threads, output)?;
    }
    Ok(Answer::Yes)
}

/// Writes what `recipe` does to a trace at `path`, which must not be there yet.
fn record(path: &Path, recipe: &Recipe) -> anyhow::Result<()> {
    if recipe.workload.reopens().is_some() {
        return Err(Usage("opening a pool again is nothing that --record can write".into()).into());
    }
    let place = || format!("cannot write the trace {}", path.display());
    let plans = recipe.plans().map_err(|error| Usage(error.to_string()))?;
    let mut out = BufWriter::new(File::create_new(path).with_context(place)?);
    recipe.write_trace(&plans, &mut out).and_then(|()| out.flush()).with_context(place)
}
