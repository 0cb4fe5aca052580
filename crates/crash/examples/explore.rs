//! Explores the crashes of designs and writes the results: `explore [DESIGN..] [--filter PART]`.
//! With `--mutants` it runs every mutant instead, and writes the scenario that kills each.

use bristlecone_crash::{
    Campaign, CrashOptions, MutationScore, Request, Subject, run, run_mutants,
};
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut request, mut options) = (Request::default(), CrashOptions::default());
    let (mut names, mut mutants) = (Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--filter" => request.filter = arguments.next().unwrap_or_default(),
            "--mutants" => mutants = true,
            "--sequences" => options.sequences = arguments.next().unwrap_or_default().parse()?,
            "--random" => options.random = arguments.next().unwrap_or_default().parse()?,
            "--seed" => options.seed = arguments.next().unwrap_or_default().parse()?,
            "--depth" => options.depth = arguments.next().unwrap_or_default().parse()?,
            "--threads" => request.workers = arguments.next().unwrap_or_default().parse()?,
            _ => names.push(argument),
        }
    }
    request.campaign = Campaign::Crashes(options);
    let subjects = Subject::named(&names)?;
    if mutants {
        return score(&subjects, &request);
    }
    let start = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut written = Ok(());
    let summary = run(&subjects, &request, &mut |outcome| {
        let name = format!("{} {} {}", outcome.subject, outcome.scenario, outcome.mode().name());
        let line = writeln!(
            out,
            "{name:<50} {:>12.3e} images {:>9} recoveries{}",
            outcome.images() as f64,
            outcome.recoveries(),
            if outcome.incomplete { " INCOMPLETE" } else { "" }
        );
        let more = outcome.violations.iter().try_for_each(|violation| writeln!(out, "{violation}"));
        written = core::mem::replace(&mut written, Ok(())).and(line).and(more);
    });
    written?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = summary.recoveries as f64 / seconds;
    writeln!(out, "{summary:?} in {seconds:.2} s, {rate:.0} recoveries a second")?;
    Ok(())
}

fn score(subjects: &[Subject], request: &Request) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let (mut score, mut written) = (MutationScore::default(), Ok(()));
    run_mutants(subjects, request, &mut |mutant| {
        score.add(mutant);
        let (subject, mutation, tried) = (&mutant.subject, &mutant.mutation, mutant.tried);
        let line = match &mutant.killed {
            Some((scenario, violation)) => {
                writeln!(out, "{subject} {mutation}: {scenario}: {}", violation.what)
            }
            None => writeln!(out, "{subject} {mutation} SURVIVES {tried} scenarios"),
        };
        written = core::mem::replace(&mut written, Ok(())).and(line);
    });
    written?;
    writeln!(out, "{score:?}")?;
    Ok(())
}
