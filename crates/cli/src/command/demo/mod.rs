//! `demo`: a child process loads English words with several threads and is killed again and again.
//! After each kill the store is opened and compared with what the child had acknowledged.

mod args;
mod expect;
mod job;
mod kill;
mod report;
mod speed;

pub(crate) use args::Args;

use anyhow::Context;
use bristlecone_console::exit::Answer;
use bristlecone_console::leftovers::Folder;
use bristlecone_console::output::Output;
use bristlecone_console::values::seed_from_clock;
use job::Job;
use report::Report;
use std::time::Instant;

/// Loads, kills and verifies until all words are there; then measures the speed.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let seed = args.seed.unwrap_or_else(seed_from_clock);
    let folder = Folder::create("demo", args.folder.as_deref());
    let folder = folder.context("make a temporary folder")?;
    let mut job = Job::new(args, folder.path(), seed);
    job.load()?;
    let words = job.shuffled();
    let (pool, options) = (folder.path().join("speed.pool"), args.durability.options());
    let speed = speed::measure(&pool, &words, args.threads as usize, options)?;
    let (lines_per_insert, fences_per_insert) = speed::mean_cost(&words);
    let outcome = job.finish();
    let report = Report {
        outcome,
        speed,
        lines_per_insert,
        fences_per_insert,
        seconds: start.elapsed().as_secs_f64(),
        seed,
        threads: args.threads,
    };
    if output.json {
        report.print_json(output)?;
    } else {
        report.print(output)?;
    }
    Ok(Answer::from_bool(report.outcome.verdict.is_right()))
}
