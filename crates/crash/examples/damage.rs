//! Corrupts the pools of designs and writes the results:
//! `damage [--thin N] [--garbage N] [--filter PART] [DESIGN..]`.

use bristlecone_crash::{Campaign, MediaOptions, OutcomeCounts, Request, Subject, run};
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut options, mut filter, mut names) = (MediaOptions::default(), String::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--filter" => filter = arguments.next().unwrap_or_default(),
            "--thin" => options.thin = arguments.next().unwrap_or_default().parse()?,
            "--garbage" => options.garbage = arguments.next().unwrap_or_default().parse()?,
            _ => names.push(argument),
        }
    }
    let subjects = Subject::named(&names)?;
    let request = Request { filter, ..Request::new(Campaign::MediaFaults(options)) };
    let start = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut written = Ok(());
    run(&subjects, &request, &mut |outcome| {
        let OutcomeCounts::MediaFaults(counts) = &outcome.counts else { return };
        let name = format!("{} {}", outcome.subject, outcome.scenario);
        let example = counts.example.as_deref().unwrap_or_default();
        let line = writeln!(
            out,
            "{name:<46} {:>8} cases {:>8} runs {:>8} right {:>8} named {:>6} wrong {:>6} unseen {}",
            counts.cases,
            counts.runs,
            counts.right,
            counts.named,
            counts.wrong,
            counts.unseen,
            example.chars().take(300).collect::<String>()
        );
        let more = outcome.violations.iter().try_for_each(|violation| writeln!(out, "{violation}"));
        written = core::mem::replace(&mut written, Ok(())).and(line).and(more);
    });
    written?;
    writeln!(out, "{:.1} s", start.elapsed().as_secs_f64())?;
    Ok(())
}
