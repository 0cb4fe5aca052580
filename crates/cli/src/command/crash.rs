//! `crash`: the explorer, over every crash image that an operation can leave.

use crate::args;
use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress, grouped, table};
use anyhow::Context;
use bristlecone_crash::{Modes, Outcome, Page, Request, run as explore, run_mutants};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Enumerate every image that a crash can leave of every operation, recover each, and check it.
/// The exit code is 1 if anything is violated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone crash --design fptree
  bristlecone crash --design all --json
  bristlecone crash --design fptree --report report
  bristlecone crash --design all --faults

`pool` is the pool by itself. Mode px86 lets the stores to one line persist in order, mode word
lets every word persist by itself; auto is every mode that applies to the design. A scenario that
its budget ends is sampled from there on and reported as incomplete: it is no pass.")]
pub(crate) struct Args {
    /// Designs, as `bristlecone designs` lists them; also `pool`; or `all`.
    #[arg(long, value_delimiter = ',', required = true)]
    design: Vec<String>,
    /// How stores persist: px86, word or auto.
    #[arg(long, default_value = "auto", value_parser = modes)]
    mode: Modes,
    /// Recoveries a scenario may take [default: 20000000].
    #[arg(long, value_name = "IMAGES", value_parser = args::count)]
    budget: Option<u64>,
    /// Only scenarios whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    scenario: String,
    /// Try faults instead of crashes: every reservation refused, and every kind of damage to the
    /// contents at every place; `store` is the store by itself.
    #[arg(long)]
    faults: bool,
    /// Garbage images to try among the faults.
    #[arg(long, value_name = "N", default_value = "1M", value_parser = args::count, requires = "faults")]
    garbage: u64,
    /// Also write a page of HTML into this folder, with a drawing of each violation.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
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
    images: u128,
    recoveries: u64,
    incomplete: bool,
    violations: usize,
    traces: Vec<String>,
}

impl<'a> Row<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        Self {
            design: &outcome.design,
            scenario: &outcome.scenario,
            mode: outcome.mode.name(),
            images: outcome.images,
            recoveries: outcome.recoveries,
            incomplete: outcome.incomplete,
            violations: outcome.violations.len(),
            traces: outcome.violations.iter().map(ToString::to_string).collect(),
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
        budget: args.budget.unwrap_or(Request::default().budget),
        filter: args.scenario.clone(),
        ..Request::default()
    };
    let mut page = args.report.as_ref().map(|_| Page::default());
    let answer = if args.faults {
        super::faults::run(&request, args.garbage, output, page.as_mut())?
    } else {
        crashes(&request, output, page.as_mut())?
    };
    if let Some((page, folder)) = page.zip(args.report.as_ref()) {
        let path = folder.join("index.html");
        let written =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, page.html()));
        written.with_context(|| path.display().to_string())?;
        if !output.json {
            writeln!(output, "\nThe page is {}.", path.display())?;
            output.flush()?;
        }
    }
    Ok(answer)
}

/// Explores crashes; for a page, also what leaving out a flush or a fence does.
fn crashes(
    request: &Request,
    output: &mut Output,
    mut page: Option<&mut Page>,
) -> anyhow::Result<Answer> {
    let mut progress = Progress::new(0);
    let mut lines: Vec<Line> = Vec::new();
    let mut told: io::Result<()> = Ok(());
    let summary = explore(request, &mut |outcome| {
        progress.say(format!("{} {}", outcome.design, outcome.scenario));
        progress.advance(1);
        add(&mut lines, outcome);
        if let Some(page) = &mut page {
            page.outcome(outcome);
        }
        let now =
            if output.json { output.object(&Row::new(outcome)) } else { tell(outcome, output) };
        if told.is_ok() {
            told = now;
        }
    })?;
    if let Some(page) = page.filter(|_| summary.scenarios > 0) {
        run_mutants(request, &mut |mutant| {
            progress.say(format!("mutants of {}", mutant.design));
            progress.advance(1);
            page.mutant(&mutant.design, mutant.killed.is_some());
        })?;
    }
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
