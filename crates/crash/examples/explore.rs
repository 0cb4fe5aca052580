//! Explores designs by name and writes what it finds: `explore [DESIGN..] [--filter PART]`.
//! With `--mutants` it leaves out each flush and each fence in turn, and writes which are missed by
//! nobody.

use bristlecone_crash::{Request, Toll, run, run_mutants};
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut request = Request::default();
    let mut mutants = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--filter" => request.filter = arguments.next().unwrap_or_default(),
            "--mutants" => mutants = true,
            "--sequences" => request.sequences = arguments.next().unwrap_or_default().parse()?,
            "--random" => request.random = arguments.next().unwrap_or_default().parse()?,
            "--seed" => request.seed = arguments.next().unwrap_or_default().parse()?,
            "--depth" => request.depth = arguments.next().unwrap_or_default().parse()?,
            "--threads" => request.threads = arguments.next().unwrap_or_default().parse()?,
            _ => request.designs.push(argument),
        }
    }
    if mutants {
        return survivors(&request);
    }
    let start = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut failed = Ok(());
    let summary = run(&request, &mut |outcome| {
        let name = format!("{} {} {}", outcome.design, outcome.scenario, outcome.mode.name());
        let line = writeln!(
            out,
            "{name:<50} {:>12.3e} images {:>9} recoveries{}",
            outcome.images as f64,
            outcome.recoveries,
            if outcome.incomplete { " INCOMPLETE" } else { "" }
        );
        let told = outcome.violations.iter().try_for_each(|violation| writeln!(out, "{violation}"));
        failed = core::mem::replace(&mut failed, Ok(())).and(line).and(told);
    })?;
    failed?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = summary.recoveries as f64 / seconds;
    writeln!(out, "{summary:?} in {seconds:.2} s, {rate:.0} recoveries a second")?;
    Ok(())
}

fn survivors(request: &Request) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let (mut toll, mut written) = (Toll::default(), Ok(()));
    run_mutants(request, &mut |mutant| {
        toll.add(mutant);
        let (design, sabotage, tried) = (&mutant.design, &mutant.sabotage, mutant.tried);
        let line = match &mutant.killed {
            Some((scenario, violation)) => {
                writeln!(out, "{design} {sabotage}: {scenario}: {}", violation.what)
            }
            None => writeln!(out, "{design} {sabotage} SURVIVES {tried} scenarios"),
        };
        written = core::mem::replace(&mut written, Ok(())).and(line);
    })?;
    written?;
    writeln!(out, "{toll:?}")?;
    Ok(())
}
