//! Damages designs by name and writes what comes of it: `damage [--thin N] [--garbage N] [DESIGN..]`.

use bristlecone_crash::{Damages, run_media};
use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut damages = Damages::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--filter" => damages.filter = arguments.next().unwrap_or_default(),
            "--thin" => damages.thin = arguments.next().unwrap_or_default().parse()?,
            "--garbage" => damages.garbage = arguments.next().unwrap_or_default().parse()?,
            _ => damages.designs.push(argument),
        }
    }
    let start = Instant::now();
    let mut out = std::io::stdout().lock();
    let mut told = Ok(());
    run_media(&damages, &mut |harm| {
        let Harm { cases, runs, right, named, wrong, unseen, .. } = harm;
        let name = format!("{} {}", harm.design, harm.scenario);
        let line = writeln!(
            out,
            "{name:<46} {cases:>8} cases {runs:>8} runs {right:>8} right {named:>8} named {wrong:>6} wrong {unseen:>6} unseen {}",
            harm.example.as_deref().unwrap_or_default().chars().take(300).collect::<String>()
        );
        let more = harm.violations.iter().try_for_each(|violation| writeln!(out, "{violation}"));
        told = core::mem::replace(&mut told, Ok(())).and(line).and(more);
    })?;
    told?;
    writeln!(out, "{:.1} s", start.elapsed().as_secs_f64())?;
    Ok(())
}

use bristlecone_crash::Harm;
