//! All that is asked for, compared: workload by workload, the repetitions interleaved.

use super::model;
use super::options::Args;
use super::report::{self, Bytes, Latency, Row};
use super::run::Measured;
use super::target::{self, Bench, Target};
use super::workload::Recipe;
use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress};
use bristlecone_lab::device::Profile;

/// Runs everything that `args` ask for.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let mut targets = target::parse(&args.design, args.node_bytes)?;
    if args.workload.iter().any(|workload| workload.reopens().is_some()) {
        if args.design.iter().any(|design| design == "all") {
            targets.retain(Target::is_persistent);
        }
        if let Some(volatile) = targets.iter().find(|target| !target.is_persistent()) {
            return Err(Usage(format!("{volatile} cannot be opened again")).into());
        }
    }
    let recipes =
        args.workload.iter().map(|&w| args.recipe(w)).collect::<anyhow::Result<Vec<_>>>()?;
    let device = args.device()?;
    let device = device.as_ref();
    let phases = recipes.len() as u64 * targets.len() as u64 * (args.reps + 1);
    let mut progress = Progress::new(phases);
    let bench = Bench { pool: args.pool.clone(), domain: args.domain, delays: args.delay_ns };
    let mut rows = Vec::new();
    let mut memory = vec![None; targets.len()];
    for recipe in &recipes {
        for row in one_workload(args, &bench, &targets, recipe, &mut memory, device, &mut progress)?
        {
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

fn one_workload(
    args: &Args,
    bench: &Bench,
    targets: &[Target],
    recipe: &Recipe,
    memory: &mut [Option<Bytes>],
    device: Option<&Profile>,
    progress: &mut Progress,
) -> anyhow::Result<Vec<Row>> {
    let plans = recipe.plans();
    let mut repetitions: Vec<Vec<Measured>> = targets.iter().map(|_| Vec::new()).collect();
    for _ in 0..args.reps {
        for (index, target) in targets.iter().enumerate() {
            progress.say(format!("{target}, {}", recipe.workload.name()));
            let once = bench.time(target, recipe, &plans, memory[index].is_none())?;
            repetitions[index].push(once.measured);
            memory[index] = memory[index].or(once.memory);
            progress.advance(1);
        }
    }
    drop(plans);
    let mut rows = Vec::new();
    for ((target, repetitions), memory) in targets.iter().zip(repetitions).zip(memory) {
        progress.say(format!("{target}, {}: counting", recipe.workload.name()));
        let counts = recipe.workload.reopens().is_none();
        let per_op = counts.then(|| target::count(target, recipe)).transpose()?;
        progress.advance(1);
        let model = match device {
            Some(profile) if counts => {
                progress.say(format!("{target}, {}: {}", recipe.workload.name(), profile.name));
                model::model(target, recipe, profile, args.sim_threads)?
            }
            _ => None,
        };
        let Some((middle, ops_per_second_range)) = report::median(repetitions) else { continue };
        rows.push(Row {
            design: target.to_string(),
            workload: recipe.workload,
            threads: recipe.threads,
            records: recipe.records,
            ops: middle.ops,
            seconds: middle.seconds,
            ops_per_second: middle.ops_per_second(),
            latency_ns: Latency::of(&middle.samples),
            per_op,
            bytes_per_key: memory.unwrap_or_default(),
            node_bytes: target.node_bytes(),
            dist: recipe.dist,
            domain: args.domain.name(),
            delay_ns: args.delay_ns.flush.as_nanos() as u64,
            reps: args.reps as usize,
            seed: args.seed,
            ops_per_second_range,
            model,
        });
    }
    Ok(rows)
}
