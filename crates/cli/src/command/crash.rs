//! `crash`: the explorer, over every crash image that an operation can leave.

use crate::args;
use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress, grouped, table};
use anyhow::Context;
use bristlecone_crash::{
    Campaign, CrashOptions, CrashPage, Modes, Mutant, MutationScore, Outcome, Request,
    ScheduleOptions, Subject, Summary, run as explore, run_mutants,
};
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
  bristlecone crash --design fptree --sequences 4 --depth 3
  bristlecone crash --design wb-tree --mutants
  bristlecone crash --design fast-fair --threads 3 --schedules 20k
  bristlecone crash --design fptree --report report
  bristlecone crash --design all --faults
  bristlecone crash --design all --witness
  bristlecone crash --catalogue
  bristlecone crash --design fast-fair --as-printed

`pool` is the pool by itself, `store` the store by its own methods. Mode px86 lets the stores to
one line persist in order, mode word lets every word persist by itself; auto is every mode that
applies to the design. One recovery stands for every image that it cannot tell apart: `images`
counts these, and so does --budget. A scenario that its budget ends is sampled from there on and
reported as incomplete: it is no pass.

Scenarios whose name ends in @N are of N threads, in schedules that are drawn from a seed. A
violation names its seed: the same scenario with --threads N --schedules 1 --seed SEED plays it
again.

--catalogue puts published defects of persistent indexes back, one at a time, and looks for them:
the exit code is 1 if one is not caught. --as-printed explores a design as its paper, or its
authors' code, has it: what that loses is a violation, shown with its least trace, so that the exit
code is 1. Both put the defects into the explorer's own build of the design alone.

--witness tries the recorder instead of the designs: what a processor executes, watched in a process
of its own, must be what is recorded, store by store, flush by flush, fence by fence. It needs Linux
on x86-64, and is skipped elsewhere.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Designs, as `bristlecone designs` lists them; also `pool`, `store`; or `all`.
    #[arg(long, value_delimiter = ',', required_unless_present = "catalogue")]
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
    #[arg(long, value_name = "D", default_value_t = CrashOptions::default().depth,
          value_parser = clap::value_parser!(u32).range(1..=3))]
    depth: u32,
    /// Explore every sequence of inserts, updates and removes of five keys up to this length; 0 for
    /// none.
    #[arg(long, value_name = "LENGTH", default_value_t = CrashOptions::default().sequences,
          value_parser = clap::value_parser!(u32).range(0..=4))]
    sequences: u32,
    /// Explore so many long sequences drawn at random, for each design and kind of key.
    #[arg(long, value_name = "COUNT", default_value_t = CrashOptions::default().random)]
    random: u64,
    /// Leave out each flush and each fence of the designs in turn, let each ordered store come
    /// early and each check of a version pass, and list what no scenario misses, instead of
    /// exploring.
    #[arg(long)]
    mutants: bool,
    /// Put every published defect of the catalogue back in turn, and look for it, instead of
    /// exploring; with --design, those of the design alone.
    #[arg(long, conflicts_with_all = ["mutants", "faults", "as_printed"])]
    catalogue: bool,
    /// Explore the designs as they are printed: each published defect in turn, for its least trace.
    #[arg(long, conflicts_with_all = ["mutants", "faults"])]
    as_printed: bool,
    /// Only scenarios whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    scenario: String,
    /// Only scenarios of so many threads: 2, 3 or 4 [default: all, and those of one thread].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=4))]
    threads: Option<u8>,
    /// Schedules of each scenario with several threads [default: 400].
    #[arg(long, value_name = "COUNT", value_parser = args::count)]
    schedules: Option<u64>,
    /// Do not explore the crashes of the schedules: judge what the threads see alone.
    #[arg(long, requires = "threads")]
    no_crashes: bool,
    /// Seed of the first random sequence, and of the first schedule; each other one has the next.
    #[arg(long, value_name = "SEED", value_parser = seed)]
    seed: Option<u64>,
    /// Try faults instead of crashes: every reservation refused, and every kind of damage to the
    /// contents at every place; `store` is the store by itself.
    #[arg(long)]
    faults: bool,
    /// Garbage images to try among the faults.
    #[arg(long, value_name = "N", default_value = "1M", value_parser = args::count, requires = "faults")]
    garbage: u64,
    /// Run a script of each design under watch, and compare what the processor stores, flushes and
    /// fences with what is recorded of the same script.
    #[arg(long, conflicts_with_all = ["mutants", "faults", "as_printed", "catalogue"])]
    witness: bool,
    /// Do something to the pool that is not in the script, which the witness must notice.
    #[arg(long, hide = true, requires = "design", value_parser = super::witness::injection)]
    plant: Option<bristlecone_crash::hardware_trace::Injection>,
    /// Be the process that is watched, on this pool.
    #[arg(long, hide = true, value_name = "POOL", requires = "design")]
    watched: Option<PathBuf>,
    /// Also write a page of HTML into this folder, with a drawing of each violation.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "a seed is a number, such as 0xb215".to_owned())
}

fn modes(text: &str) -> Result<Modes, String> {
    Modes::from_name(text).ok_or_else(|| "one of px86, word, auto".to_owned())
}

/// An outcome, as programs read it.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    design: &'a str,
    scenario: &'a str,
    mode: &'static str,
    depth: u32,
    pub(super) images: u128,
    pub(super) recoveries: u64,
    incomplete: bool,
    pub(super) violations: usize,
    traces: Vec<String>,
    threads: usize,
    schedules: u64,
    mutants: Mutants,
    pub(super) catalogue: Catalogue,
}

/// What became of published defects; zeros where none was seeded.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Catalogue {
    pub(super) total: u64,
    pub(super) caught: u64,
}

/// What became of mutants; zeros where none were tried.
#[derive(Serialize)]
struct Mutants {
    total: u64,
    killed: u64,
    survived: u64,
}

impl From<MutationScore> for Mutants {
    fn from(score: MutationScore) -> Self {
        let MutationScore { total, killed, survived } = score;
        Self { total, killed, survived }
    }
}

impl<'a> Row<'a> {
    pub(super) fn new(outcome: &'a Outcome) -> Self {
        Self {
            design: &outcome.subject,
            scenario: &outcome.scenario,
            mode: outcome.mode().name(),
            depth: outcome.depth(),
            images: outcome.images(),
            recoveries: outcome.recoveries(),
            incomplete: outcome.incomplete,
            violations: outcome.violations.len(),
            traces: outcome.violations.iter().map(ToString::to_string).collect(),
            threads: outcome.threads(),
            schedules: outcome.schedules(),
            mutants: MutationScore::default().into(),
            catalogue: Catalogue::default(),
        }
    }
}

/// The outcomes of one design in one mode, together.
#[derive(Default)]
struct Line {
    design: String,
    mode: &'static str,
    scenarios: u64,
    /// Of several threads.
    schedules: u64,
    images: u128,
    recoveries: u64,
    incomplete: u64,
    violations: usize,
}

/// Explores, and reports each outcome as it comes.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    if let Some(pool) = &args.watched {
        return super::witness::act(&args.design[0], pool, args.plant);
    }
    let all = args.design.iter().any(|design| design == "all");
    if args.witness {
        let designs = if all { Vec::new() } else { args.design.clone() };
        return super::witness::run(designs, args.plant, output);
    }
    let designs = if all { Vec::new() } else { args.design.clone() };
    let options = CrashOptions {
        budget: args.budget.map_or(u128::MAX, u128::from),
        depth: args.depth,
        sequences: args.sequences,
        random: args.random,
        seed: args.seed.unwrap_or(CrashOptions::default().seed),
        ..CrashOptions::default()
    };
    let request = Request {
        modes: args.mode,
        filter: args.scenario.clone(),
        ..Request::new(Campaign::Crashes(options))
    };
    let schedules = ScheduleOptions {
        threads: args.threads.map_or(0, usize::from),
        schedules: args.schedules.unwrap_or(ScheduleOptions::default().schedules),
        seed: args.seed.unwrap_or(ScheduleOptions::default().seed),
        crashes: !args.no_crashes,
        ..ScheduleOptions::default()
    };
    let mut page = args.report.as_ref().map(|_| CrashPage::default());
    let answer = if args.faults {
        super::faults::run(
            &Subject::named(&designs)?,
            &request,
            args.garbage,
            output,
            page.as_mut(),
        )?
    } else if args.mutants {
        mutate(&Subject::named(&designs)?, &request, options.depth, output, page.as_mut())?
    } else if args.catalogue || args.as_printed {
        super::catalogue::run(&designs, &request, args.as_printed, output, page.as_mut())?
    } else {
        let answer =
            crashes(&Subject::named(&designs)?, &request, schedules, output, page.as_mut())?;
        // A request for everything is one for the proof that it can fail, too.
        let is_whole = all && args.threads.is_none() && args.scenario.is_empty();
        if is_whole && args.mode == Modes::Auto {
            let caught = super::catalogue::run(&[], &Request::default(), false, output, None)?;
            if answer == Answer::Yes { caught } else { answer }
        } else {
            answer
        }
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

/// Explores crashes.
fn crashes(
    subjects: &[Subject],
    request: &Request,
    schedules: ScheduleOptions,
    output: &mut Output,
    mut page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let mut progress = Progress::new(0);
    let mut lines: Vec<Line> = Vec::new();
    let mut told: io::Result<()> = Ok(());
    let mut see = |outcome: &Outcome| {
        progress.say(format!("{} {}", outcome.subject, outcome.scenario));
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
    };
    let one = match schedules.threads {
        0 => explore(subjects, request, &mut see),
        _ => Summary::default(),
    };
    let threaded = Request { campaign: Campaign::Schedules(schedules), ..request.clone() };
    let several = explore(subjects, &threaded, &mut see);
    drop(progress);
    told?;
    if one.scenarios + several.scenarios == 0 {
        return Err(Usage("no scenario is called so: nothing was explored".into()).into());
    }
    if !output.json {
        summarise(&lines, output)?;
    }
    Ok(Answer::from_bool(one.violated + several.violated == 0))
}

/// Tries the mutants of each design: a row each, with the survivors.
fn mutate(
    subjects: &[Subject],
    request: &Request,
    depth: u32,
    output: &mut Output,
    mut page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let mut scores: Vec<(String, MutationScore, Vec<String>)> = Vec::new();
    let mut progress = Progress::new(0);
    run_mutants(subjects, request, &mut |mutant: &Mutant| {
        progress.say(format!("mutants of {}", mutant.subject));
        progress.advance(1);
        if let Some(page) = &mut page {
            page.mutant(&mutant.subject, mutant.killed.is_some());
        }
        if scores.last().is_none_or(|(design, ..)| *design != mutant.subject) {
            scores.push((mutant.subject.clone(), MutationScore::default(), Vec::new()));
        }
        if let Some((_, score, survivors)) = scores.last_mut() {
            score.add(mutant);
            if mutant.killed.is_none() {
                survivors.push(mutant.mutation.to_string());
            }
        }
    });
    drop(progress);
    if scores.is_empty() {
        return Err(Usage("no scenario is called so: nothing was tried".into()).into());
    }
    for (design, score, survivors) in scores {
        if output.json {
            output.object(&Row {
                design: &design,
                scenario: "mutants",
                mode: request.modes.name(),
                depth,
                images: 0,
                recoveries: 0,
                incomplete: false,
                violations: 0,
                traces: survivors,
                threads: 1,
                schedules: 1,
                mutants: score.into(),
                catalogue: Catalogue::default(),
            })?;
            continue;
        }
        let MutationScore { total, killed, survived } = score;
        writeln!(output, "{design}: {total} mutants, {killed} killed, {survived} survive")?;
        for survivor in survivors {
            writeln!(output, "  {survivor}")?;
        }
    }
    Ok(Answer::from_bool(true))
}

/// Tells people what went wrong, if anything did.
fn tell(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
    let Outcome { subject, scenario, .. } = outcome;
    let mode = outcome.mode().name();
    for violation in &outcome.violations {
        writeln!(output, "{subject}, {scenario}, {mode}: {violation}")?;
    }
    if outcome.incomplete {
        writeln!(output, "{subject}, {scenario}, {mode}: incomplete")?;
    }
    output.flush()
}

fn add(lines: &mut Vec<Line>, outcome: &Outcome) {
    let mode = outcome.mode().name();
    let is_line = |line: &Line| line.design == outcome.subject && line.mode == mode;
    let index = lines.iter().position(is_line).unwrap_or_else(|| {
        let design = outcome.subject.clone();
        lines.push(Line { design, mode, ..Line::default() });
        lines.len() - 1
    });
    let line = &mut lines[index];
    line.scenarios += 1;
    line.schedules += if outcome.threads() > 1 { outcome.schedules() } else { 0 };
    line.images = line.images.saturating_add(outcome.images());
    line.recoveries += outcome.recoveries();
    line.incomplete += u64::from(outcome.incomplete);
    line.violations += outcome.violations.len();
}

fn summarise(lines: &[Line], output: &mut Output) -> io::Result<()> {
    let titles = [
        "design",
        "mode",
        "scenarios",
        "schedules",
        "images",
        "recoveries",
        "incomplete",
        "violations",
    ];
    let mut shown = table(&titles, 2..8);
    for line in lines {
        let images = u64::try_from(line.images).map_or_else(
            |_| format!("{:.2e}", line.images as f64), // More than 64 bits can count.
            grouped,
        );
        shown.add_row([
            line.design.clone(),
            line.mode.to_owned(),
            line.scenarios.to_string(),
            grouped(line.schedules),
            images,
            grouped(line.recoveries),
            line.incomplete.to_string(),
            line.violations.to_string(),
        ]);
    }
    output.table(&shown)
}
