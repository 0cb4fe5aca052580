//! Explores the schedules of designs and writes the results:
//! `threads [DESIGN..] [--filter PART] [--threads N] [--schedules K] [--seed S] [--recoveries R]`.

use bristlecone_crash::{Campaign, Request, ScheduleOptions, Subject, run};
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut options, mut filter, mut names) =
        (ScheduleOptions::default(), String::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--filter" => filter = value(),
            "--threads" => options.threads = value().parse()?,
            "--schedules" => options.schedules = value().parse()?,
            "--recoveries" => options.recoveries = value().parse()?,
            "--seed" => options.seed = value().parse()?,
            _ => names.push(argument),
        }
    }
    let subjects = Subject::named(&names)?;
    let request = Request { filter, ..Request::new(Campaign::Schedules(options)) };
    let start = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut written = Ok(());
    let mut schedules = 0;
    let summary = run(&subjects, &request, &mut |outcome| {
        schedules += outcome.schedules();
        let name = format!("{} {} {}", outcome.subject, outcome.scenario, outcome.mode().name());
        let line = writeln!(
            out,
            "{name:<50} {:>7} schedules {:>12.3e} images {:>9} recoveries {:>6.1} s{}",
            outcome.schedules(),
            outcome.images() as f64,
            outcome.recoveries(),
            start.elapsed().as_secs_f64(),
            if outcome.incomplete { " INCOMPLETE" } else { "" }
        );
        let more = outcome.violations.iter().try_for_each(|violation| writeln!(out, "{violation}"));
        written = core::mem::replace(&mut written, Ok(())).and(line).and(more);
    });
    written?;
    let seconds = start.elapsed().as_secs_f64();
    writeln!(out, "{schedules} schedules, {summary:?} in {seconds:.2} s")?;
    Ok(())
}
