//! Explores the schedules of designs by name and writes what it finds:
//! `threads [DESIGN..] [--filter PART] [--threads N] [--schedules K] [--seed S]`.

use bristlecone_crash::{Drawn, Request, run_threads};
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut request, mut drawn) = (Request::default(), Drawn::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--filter" => request.filter = value(),
            "--threads" => drawn.threads = value().parse()?,
            "--schedules" => drawn.schedules = value().parse()?,
            "--seed" => drawn.seed = value().parse()?,
            _ => request.designs.push(argument),
        }
    }
    let start = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut failed = Ok(());
    let mut schedules = 0;
    let summary = run_threads(&request, drawn, &mut |outcome| {
        schedules += outcome.schedules;
        let name = format!("{} {} {}", outcome.design, outcome.scenario, outcome.mode.name());
        let line = writeln!(
            out,
            "{name:<50} {:>7} schedules {:>12.3e} images {:>9} recoveries {:>6.1} s{}",
            outcome.schedules,
            outcome.images as f64,
            outcome.recoveries,
            start.elapsed().as_secs_f64(),
            if outcome.incomplete { " INCOMPLETE" } else { "" }
        );
        let told = outcome.violations.iter().try_for_each(|violation| writeln!(out, "{violation}"));
        failed = core::mem::replace(&mut failed, Ok(())).and(line).and(told);
    })?;
    failed?;
    let seconds = start.elapsed().as_secs_f64();
    writeln!(out, "{schedules} schedules, {summary:?} in {seconds:.2} s")?;
    Ok(())
}
