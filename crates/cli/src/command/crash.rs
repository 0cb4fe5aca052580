//! `crash`: the explorer, over every crash image that an operation can leave.

use crate::args;
use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress, grouped, table};
use bristlecone_crash::{Modes, Mutant, Outcome, Request, Toll, run as explore, run_mutants};
use serde::Serialize;
use std::io::{self, Write};

/// Enumerate every image that a crash can leave of every operation, recover each, and check it.
/// The exit code is 1 if anything is violated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone crash --design fptree
  bristlecone crash --design all --json
  bristlecone crash --design fptree --sequences 4 --depth 3
  bristlecone crash --design wb-tree --mutants

`pool` is the pool by itself. Mode px86 lets the stores to one line persist in order, mode word
lets every word persist by itself; auto is every mode that applies to the design. One recovery
stands for every image that it cannot tell apart: `images` counts these, and so does --budget. A
scenario that its budget ends is sampled from there on and reported as incomplete: it is no pass.")]
pub(crate) struct Args {
    /// Designs, as `bristlecone designs` lists them; also `pool`; or `all`.
    #[arg(long, value_delimiter = ',', required = true)]
    design: Vec<String>,
    /// How stores persist: px86, word or auto.
    #[arg(long, default_value = "auto", value_parser = modes)]
    mode: Modes,
    /// Images to cover a scenario and mode: once the recoveries that were run stand for so many,
    /// the rest is sampled, and the scenario is incomplete [default: all].
    #[arg(long, value_name = "IMAGES", value_parser = args::count)]
    budget: Option<u64>,
    /// Crashes one after the other: 2 crashes each recovery as well, wholly; 3 crashes the recovery
    /// from that, for a sample.
    #[arg(long, value_name = "D", default_value_t = Request::default().depth,
          value_parser = clap::value_parser!(u32).range(1..=3))]
    depth: u32,
    /// Explore every sequence of inserts, updates and removes of five keys up to this length; 0 for
    /// none.
    #[arg(long, value_name = "LENGTH", default_value_t = Request::default().sequences,
          value_parser = clap::value_parser!(u32).range(0..=4))]
    sequences: u32,
    /// Explore so many long sequences drawn at random, for each design and kind of key.
    #[arg(long, value_name = "COUNT", default_value_t = Request::default().random)]
    random: u64,
    /// The seed of the first random sequence; each later one has the next number.
    #[arg(long, value_name = "SEED", default_value_t = Request::default().seed)]
    seed: u64,
    /// Leave out each flush and each fence of the designs in turn, let each ordered store come
    /// early, and list what no scenario misses, instead of exploring.
    #[arg(long)]
    mutants: bool,
    /// Only scenarios whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    scenario: String,
}

fn modes(text: &str) -> Result<Modes, String> {
    Modes::from_name(text).ok_or_else(|| "one of px86, word, auto".to_owned())
}

/// An outcome, as programs read it.
#[derive(Serialize)]
struct Row<'a> {
    design: &'a str,
    scenario: &'a str,
    mode: &'static str,
    depth: u32,
    images: u128,
    recoveries: u64,
    incomplete: bool,
    violations: usize,
    traces: Vec<String>,
    mutants: Mutants,
}

/// What became of mutants; zeros where none were tried.
#[derive(Serialize)]
struct Mutants {
    total: u64,
    killed: u64,
    survived: u64,
}

impl From<Toll> for Mutants {
    fn from(toll: Toll) -> Self {
        let Toll { total, killed, survived } = toll;
        Self { total, killed, survived }
    }
}

impl<'a> Row<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        Self {
            design: &outcome.design,
            scenario: &outcome.scenario,
            mode: outcome.mode.name(),
            depth: outcome.depth,
            images: outcome.images,
            recoveries: outcome.recoveries,
            incomplete: outcome.incomplete,
            violations: outcome.violations.len(),
            traces: outcome.violations.iter().map(ToString::to_string).collect(),
            mutants: Toll::default().into(),
        }
    }
}

/// The outcomes of one design in one mode, together.
struct Line {
    design: String,
    mode: &'static str,
    scenarios: u64,
    images: u128,
    recoveries: u64,
    incomplete: u64,
    violations: usize,
}

/// Explores, and reports each outcome as it comes.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let all = args.design.iter().any(|design| design == "all");
    let request = Request {
        designs: if all { Vec::new() } else { args.design.clone() },
        modes: args.mode,
        budget: args.budget.map_or(u128::MAX, u128::from),
        depth: args.depth,
        sequences: args.sequences,
        random: args.random,
        seed: args.seed,
        filter: args.scenario.clone(),
        ..Request::default()
    };
    if args.mutants {
        return mutate(&request, output);
    }
    let mut progress = Progress::new(0);
    let mut lines: Vec<Line> = Vec::new();
    let mut told: io::Result<()> = Ok(());
    let summary = explore(&request, &mut |outcome| {
        progress.say(format!("{} {}", outcome.design, outcome.scenario));
        progress.advance(1);
        add(&mut lines, outcome);
        let now =
            if output.json { output.object(&Row::new(outcome)) } else { tell(outcome, output) };
        if told.is_ok() {
            told = now;
        }
    })?;
    drop(progress);
    told?;
    if summary.scenarios == 0 {
        return Err(Usage("no scenario is called so: nothing was explored".into()).into());
    }
    if !output.json {
        summarise(&lines, output)?;
    }
    Ok(Answer::from_bool(summary.violated == 0))
}

/// Tries the mutants of each design: a row each, with the survivors.
fn mutate(request: &Request, output: &mut Output) -> anyhow::Result<Answer> {
    let mut tolls: Vec<(String, Toll, Vec<String>)> = Vec::new();
    run_mutants(request, &mut |mutant: &Mutant| {
        if tolls.last().is_none_or(|(design, ..)| *design != mutant.design) {
            tolls.push((mutant.design.clone(), Toll::default(), Vec::new()));
        }
        if let Some((_, toll, survivors)) = tolls.last_mut() {
            toll.add(mutant);
            if mutant.killed.is_none() {
                survivors.push(mutant.sabotage.to_string());
            }
        }
    })?;
    if tolls.is_empty() {
        return Err(Usage("no scenario is called so: nothing was tried".into()).into());
    }
    for (design, toll, survivors) in tolls {
        if output.json {
            output.object(&Row {
                design: &design,
                scenario: "mutants",
                mode: request.modes.name(),
                depth: request.depth,
                images: 0,
                recoveries: 0,
                incomplete: false,
                violations: 0,
                traces: survivors,
                mutants: toll.into(),
            })?;
            continue;
        }
        let Toll { total, killed, survived } = toll;
        writeln!(output, "{design}: {total} mutants, {killed} killed, {survived} survive")?;
        for survivor in survivors {
            writeln!(output, "  {survivor}")?;
        }
    }
    Ok(Answer::from_bool(true))
}

/// Tells people what went wrong, if anything did.
fn tell(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
    let Outcome { design, scenario, mode, .. } = outcome;
    for violation in &outcome.violations {
        writeln!(output, "{design}, {scenario}, {}: {violation}", mode.name())?;
    }
    if outcome.incomplete {
        writeln!(output, "{design}, {scenario}, {}: incomplete", mode.name())?;
    }
    output.flush()
}

fn add(lines: &mut Vec<Line>, outcome: &Outcome) {
    let mode = outcome.mode.name();
    let is_line = |line: &Line| line.design == outcome.design && line.mode == mode;
    let index = lines.iter().position(is_line).unwrap_or_else(|| {
        let design = outcome.design.clone();
        let (scenarios, images, recoveries, incomplete, violations) = Default::default();
        lines.push(Line { design, mode, scenarios, images, recoveries, incomplete, violations });
        lines.len() - 1
    });
    let line = &mut lines[index];
    line.scenarios += 1;
    line.images = line.images.saturating_add(outcome.images);
    line.recoveries += outcome.recoveries;
    line.incomplete += u64::from(outcome.incomplete);
    line.violations += outcome.violations.len();
}

fn summarise(lines: &[Line], output: &mut Output) -> io::Result<()> {
    let titles =
        ["design", "mode", "scenarios", "images", "recoveries", "incomplete", "violations"];
    let mut shown = table(&titles, 2..7);
    for line in lines {
        let images = u64::try_from(line.images).map_or_else(
            |_| format!("{:.2e}", line.images as f64), // More than 64 bits can count.
            grouped,
        );
        shown.add_row([
            line.design.clone(),
            line.mode.to_owned(),
            line.scenarios.to_string(),
            images,
            grouped(line.recoveries),
            line.incomplete.to_string(),
            line.violations.to_string(),
        ]);
    }
    output.table(&shown)
}
