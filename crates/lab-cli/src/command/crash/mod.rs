//! `crash`: explores every crash image that an operation can leave.

mod catalogue;
mod faults;
mod hardware;
mod progress;
mod row;

use crate::command::page_file::PageFile;
use crate::table::{self, table};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, grouped};
use bristlecone_console::values;
use bristlecone_crash::{
    Campaign, CrashOptions, CrashPage, Modes, Mutant, MutationScore, Outcome, Request,
    ScheduleOptions, Subject, Summary, run as explore, run_mutants,
};
use core::sync::atomic::{AtomicBool, Ordering};
use progress::SharedProgress;
use row::Row;
use std::io::{self, Write};
use std::path::PathBuf;

/// Enumerate every image that a crash of every operation can leave, recover from each, and check
/// the result. The exit code is 1 if a promise is violated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone-lab crash --design fptree
  bristlecone-lab crash --design all --json
  bristlecone-lab crash --design fptree --sequences 4 --depth 3
  bristlecone-lab crash --design wb-tree --mode disk
  bristlecone-lab crash --design wb-tree --mutants
  bristlecone-lab crash --design fast-fair --threads 3 --schedules 20k
  bristlecone-lab crash --design fptree --report report
  bristlecone-lab crash --design all --faults
  bristlecone-lab crash --design all --witness
  bristlecone-lab crash --catalogue
  bristlecone-lab crash --design fast-fair --as-printed

`pool` is the pool without an index, `store` the store through its public methods; `kv-isle-tree`
and `kv-wb-tree` are key-value stores over a design. In mode px86 the stores to one line persist in
order; in mode word every word persists by itself; auto runs both if they apply to the design. In
mode disk a journal has the lines that were flushed, as they were at their fence, up to any point in
the order of the fences.
One recovery stands for all images that it cannot tell apart: `images` and --budget count those
images. A scenario that exceeds --budget is sampled from there on and reported as incomplete, which
is no pass.

A scenario whose name ends in @N has N threads, and a seed determines each schedule. A violation
prints its seed: the same scenario with --threads N --schedules 1 --seed SEED runs it again.

--catalogue injects published defects of persistent indexes, one at a time: the exit code is 1 if
one is not detected. --as-printed explores a design as its paper or its authors' code has it: a loss
is a violation, printed with its shortest trace, and the exit code is 1. Both inject defects only
into the explorer's build of the design.

--witness tests the explorer's recorder: it traces a process and compares each store, flush and
fence that the processor executes with the recorded ones. It needs Linux on x86-64 and is skipped
elsewhere.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Designs, as `bristlecone-lab designs` lists them; also `pool`, `store`, `kv-isle-tree`,
    /// `kv-wb-tree`; or `all`.
    #[arg(long, value_delimiter = ',', required_unless_present = "catalogue")]
    design: Vec<String>,
    /// Persistence model: px86, word, disk or auto.
    #[arg(long, default_value = "auto", value_parser = modes)]
    mode: Modes,
    /// Images to cover in each scenario and mode. Beyond them the explorer samples, and the
    /// scenario is incomplete [default: all].
    #[arg(long, value_name = "IMAGES", value_parser = values::count)]
    budget: Option<u64>,
    /// Recoveries of each scenario and mode from first crashes, and from second ones. Beyond them
    /// the explorer samples, and the scenario is incomplete [default: 20M].
    #[arg(long, value_name = "COUNT", value_parser = values::count)]
    recoveries: Option<u64>,
    /// Number of crashes in a row: 2 also crashes each recovery, exhaustively; 3 also crashes the
    /// recovery from that crash, for a sample.
    #[arg(long, value_name = "D", default_value_t = CrashOptions::default().depth,
          value_parser = clap::value_parser!(u32).range(1..=3))]
    depth: u32,
    /// Explore every sequence of inserts, updates and removes of five keys up to this length; 0
    /// explores none.
    #[arg(long, value_name = "LENGTH", default_value_t = CrashOptions::default().sequences,
          value_parser = clap::value_parser!(u32).range(0..=4))]
    sequences: u32,
    /// Number of long random sequences for each design and kind of key.
    #[arg(long, value_name = "COUNT", default_value_t = CrashOptions::default().random)]
    random: u64,
    /// Mutation testing instead of exploration: remove each flush, fence and version check, and
    /// swap ordered stores, one at a time. List the mutants that no scenario detects.
    #[arg(long)]
    mutants: bool,
    /// Inject every published defect of the catalogue, one at a time, instead of exploring; with
    /// --design, the defects of that design.
    #[arg(long, conflicts_with_all = ["mutants", "faults", "as_printed"])]
    catalogue: bool,
    /// Explore the designs as printed: inject each published defect and print its shortest trace.
    #[arg(long, conflicts_with_all = ["mutants", "faults"])]
    as_printed: bool,
    /// Run only scenarios whose name contains TEXT.
    #[arg(long, value_name = "TEXT", default_value = "")]
    scenario: String,
    /// Run only scenarios with N threads: 2, 3 or 4 [default: one thread and all of these].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=4))]
    threads: Option<u8>,
    /// Schedules of each scenario with several threads [default: 400].
    #[arg(long, value_name = "COUNT", value_parser = values::count)]
    schedules: Option<u64>,
    /// Check only the results of the threads, and explore no crash of the schedules.
    #[arg(long, requires = "threads")]
    no_crashes: bool,
    /// Seed of the first random sequence and of the first schedule. Each further one has the next
    /// seed.
    #[arg(long, value_name = "SEED", value_parser = seed)]
    seed: Option<u64>,
    /// Try faults instead of crashes: refuse each allocation in turn, and damage the contents at
    /// every place in every way.
    #[arg(long)]
    faults: bool,
    /// Number of images of random bytes among the faults.
    #[arg(
        long,
        value_name = "N",
        default_value = "1M",
        value_parser = values::count,
        requires = "faults",
    )]
    garbage: u64,
    /// Trace a process that runs a script of each design, and compare its stores, flushes and
    /// fences with the recorded ones.
    #[arg(long, conflicts_with_all = ["mutants", "faults", "as_printed", "catalogue"])]
    witness: bool,
    /// Inject an access that is not in the script, which --witness must detect.
    #[arg(
        long,
        alias = "plant",
        hide = true,
        requires = "design",
        value_parser = hardware::injection,
    )]
    inject: Option<bristlecone_crash::hardware_trace::Injection>,
    /// Run as the traced process, on this pool.
    #[arg(long, hide = true, value_name = "POOL", requires = "design")]
    watched: Option<PathBuf>,
    /// Also write an HTML page into this folder, with a drawing of each violation.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a number, such as 0xb215".to_owned())
}

fn modes(text: &str) -> Result<Modes, String> {
    Modes::from_name(text).ok_or_else(|| "expected one of px86, word, disk, auto".to_owned())
}

/// The sum of all outcomes of one design in one mode.
#[derive(Default)]
struct Line {
    design: String,
    mode: &'static str,
    scenarios: u64,
    /// The number of schedules of scenarios with several threads.
    schedules: u64,
    images: u128,
    recoveries: u64,
    incomplete: u64,
    violations: usize,
}

/// Explores, and reports each outcome when it is known.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    if let Some(pool) = &args.watched {
        return hardware::act(&args.design[0], pool, args.inject);
    }
    let all = args.design.iter().any(|design| design == "all");
    let designs = if all { Vec::new() } else { args.design.clone() };
    if args.witness {
        return hardware::run(designs, args.inject, output);
    }
    let options = CrashOptions {
        budget: args.budget.map_or(u128::MAX, u128::from),
        recoveries: args.recoveries.unwrap_or(CrashOptions::default().recoveries),
        depth: args.depth,
        sequences: args.sequences,
        random: args.random,
        seed: args.seed.unwrap_or(CrashOptions::default().seed),
        ..CrashOptions::default()
    };
    let request = Request {
        modes: args.mode,
        filter: args.scenario.clone(),
        notice: Some(notice_first),
        ..Request::new(Campaign::Crashes(options))
    };
    let schedules = ScheduleOptions {
        threads: args.threads.map_or(0, usize::from),
        schedules: args.schedules.unwrap_or(ScheduleOptions::default().schedules),
        seed: args.seed.unwrap_or(ScheduleOptions::default().seed),
        crashes: !args.no_crashes,
        recoveries: args.recoveries.unwrap_or(ScheduleOptions::default().recoveries),
        ..ScheduleOptions::default()
    };
    // Before the exploration, so that a folder which cannot be written costs no run.
    let file = args.report.as_deref().map(PageFile::open).transpose()?;
    let mut page = file.as_ref().map(|_| CrashPage::default());
    let answer = if args.faults {
        faults::run(&Subject::named(&designs)?, &request, args.garbage, output, page.as_mut())?
    } else if args.mutants {
        mutate(&Subject::named(&designs)?, &request, options.depth, output, page.as_mut())?
    } else if args.catalogue || args.as_printed {
        catalogue::run(&designs, &request, args.as_printed, output, page.as_mut())?
    } else {
        let answer =
            crashes(&Subject::named(&designs)?, &request, schedules, output, page.as_mut())?;
        // A run over everything also proves that the explorer detects the published defects.
        let is_whole = all && args.threads.is_none() && args.scenario.is_empty();
        if is_whole && args.mode == Modes::Auto {
            let caught = catalogue::run(&[], &Request::default(), false, output, None)?;
            if answer == Answer::Yes { caught } else { answer }
        } else {
            answer
        }
    };
    if let Some((page, file)) = page.zip(file) {
        let path = file.write(&page.html())?;
        if !output.json {
            writeln!(output, "\nreport: {}", path.display())?;
            output.flush()?;
        }
    }
    Ok(answer)
}

/// Prints the first violation of this process when it is found. Outcomes are reported in the order
/// of their scenarios, so its own report may be minutes away.
fn notice_first(outcome: &Outcome) {
    static SEEN: AtomicBool = AtomicBool::new(false);
    if let Some(violation) = outcome.violations.first()
        && !SEEN.swap(true, Ordering::Relaxed)
    {
        let Outcome { subject, scenario, .. } = outcome;
        let mode = outcome.mode().name();
        eprintln!("first violation: {subject}, {scenario}, {mode}: {violation}");
    }
}

/// Explores the crashes of scenarios with one thread and with several.
fn crashes(
    subjects: &[Subject],
    request: &Request,
    schedules: ScheduleOptions,
    output: &mut Output,
    mut page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let progress = SharedProgress::default();
    let request = &progress.watching(request);
    let mut lines: Vec<Line> = Vec::new();
    let mut written: io::Result<()> = Ok(());
    let mut see = |outcome: &Outcome| {
        progress.say(format!("{} {}", outcome.subject, outcome.scenario));
        add(&mut lines, outcome);
        if let Some(page) = &mut page {
            page.outcome(outcome);
        }
        let now =
            if output.json { output.object(&Row::new(outcome)) } else { print(outcome, output) };
        if written.is_ok() {
            written = now;
        }
    };
    let one = match schedules.threads {
        0 => explore(subjects, request, &mut see),
        _ => Summary::default(),
    };
    let refusals = Request { campaign: Campaign::AllocFaults, ..request.clone() };
    // A scenario has its row already: without a violation there is nothing more to say.
    let refused = match schedules.threads {
        0 => explore(subjects, &refusals, &mut |outcome: &Outcome| {
            if outcome.violations.is_empty() {
                progress.say(format!("{} {}, refusals", outcome.subject, outcome.scenario));
            } else {
                see(outcome);
            }
        }),
        _ => Summary::default(),
    };
    let threaded = Request { campaign: Campaign::Schedules(schedules), ..request.clone() };
    let several = explore(subjects, &threaded, &mut see);
    drop(progress);
    written?;
    if one.scenarios + several.scenarios == 0 {
        return Err(UsageError(
            "no scenario has this name, so none was explored; change --scenario".into(),
        )
        .into());
    }
    if !output.json {
        summarise(&lines, output)?;
    }
    Ok(Answer::from_bool(one.violated + refused.violated + several.violated == 0))
}

/// Tries the mutants of each design and prints a row for each design, with the survivors.
fn mutate(
    subjects: &[Subject],
    request: &Request,
    depth: u32,
    output: &mut Output,
    mut page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let mut scores: Vec<(String, MutationScore, Vec<String>)> = Vec::new();
    let progress = SharedProgress::default();
    let request = &progress.watching(request);
    run_mutants(subjects, request, &mut |mutant: &Mutant| {
        progress.say(format!("mutants of {}", mutant.subject));
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
        return Err(UsageError(
            "no scenario has this name, so no mutant was tried; change --scenario".into(),
        )
        .into());
    }
    for (design, score, survivors) in scores {
        if output.json {
            let mode = request.modes.name();
            output.object(&Row::of_mutants(&design, mode, depth, score, survivors))?;
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

/// Prints the violations of an outcome, if it has any.
fn print(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
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
            |_| format!("{:.2e}", line.images as f64), // More than 64 bits.
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
    table::print(&shown, output)
}
