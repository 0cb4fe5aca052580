//! `crash --catalogue` and `crash --as-printed`: published defects, injected one at a time.

use super::row::{Catalogue, Row};
use crate::table::{self, table};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, grouped};
use bristlecone_console::progress::Progress;
use bristlecone_crash::{Outcome, Page, Request, Tried, run_as_printed, run_catalogue};
use std::io::{self, Write};

/// Tries the defects of the designs that `request` names, or of all designs if it names none.
///
/// With `as_printed` the answer is no if a defect is detected; else it is no if one is not.
pub(super) fn run(
    request: &Request,
    as_printed: bool,
    output: &mut Output,
    mut page: Option<&mut Page>,
) -> anyhow::Result<Answer> {
    let mut progress = Progress::new(0);
    let mut all = Vec::new();
    let mut written: io::Result<()> = Ok(());
    let mut see = |tried: &Tried| {
        progress.say(tried.defect.about().name.to_owned());
        progress.advance(1);
        if let Some(page) = page.as_mut().filter(|_| as_printed) {
            page.outcome(&named(tried));
        }
        let now = if output.json {
            output.object(&row(&named(tried), as_printed))
        } else if as_printed {
            print(tried, output)
        } else {
            Ok(())
        };
        if written.is_ok() {
            written = now;
        }
        all.push(tried.clone());
    };
    if as_printed {
        run_as_printed(request, &mut see)?;
    } else {
        run_catalogue(request, &mut see)?;
    }
    drop(progress);
    written?;
    if all.is_empty() {
        let what = "the catalogue has no published defect of these designs; run \
                    `bristlecone-lab crash --catalogue` for all that it has";
        return Err(UsageError(what.into()).into());
    }
    let total = all.len() as u64;
    let caught = all.iter().filter(|tried| tried.caught().is_some()).count() as u64;
    if output.json {
        let design = if as_printed { "as-printed" } else { "catalogue" };
        output.object(&Row::of_defects(&sum(&all, design), Catalogue { total, caught }))?;
    } else {
        summarise(&all, output)?;
        writeln!(output, "\n{caught} of {total} caught")?;
    }
    Ok(Answer::from_bool(if as_printed { caught == 0 } else { caught == total }))
}

/// Returns the outcome of all defects together, under the name `design`.
fn sum(all: &[Tried], design: &str) -> Outcome {
    let mut sum = Outcome { design: design.into(), ..all[0].outcome.clone() };
    (sum.scenario, sum.violations) = ("all".into(), Vec::new());
    (sum.images, sum.recoveries) = all.iter().fold((0, 0), |(images, recoveries), tried| {
        (tried.outcome.images.saturating_add(images), tried.outcome.recoveries + recoveries)
    });
    sum
}

/// Returns the outcome with the defect's name before that of the scenario that detected it.
fn named(tried: &Tried) -> Outcome {
    let about = tried.defect.about();
    let scenario = format!("{} {}", about.name, tried.outcome.scenario);
    Outcome { scenario: scenario.trim_end().into(), ..tried.outcome.clone() }
}

fn row(outcome: &Outcome, as_printed: bool) -> Row<'_> {
    let caught = u64::from(!outcome.violations.is_empty());
    let row = Row::of_defects(outcome, Catalogue { total: 1, caught });
    if as_printed { row } else { row.without_violations() }
}

/// Prints a defect, where it was published, and the trace that detects it.
fn print(tried: &Tried, output: &mut Output) -> io::Result<()> {
    let about = tried.defect.about();
    writeln!(output, "{}: {}\n  {}", about.design, about.what, about.published)?;
    let outcome = &tried.outcome;
    match tried.caught() {
        Some(violation) => {
            writeln!(output, "{}, {}: {violation}", outcome.scenario, outcome.mode.name())?;
        }
        None => writeln!(output, "no scenario detects it\n")?,
    }
    output.flush()
}

fn summarise(all: &[Tried], output: &mut Output) -> io::Result<()> {
    let mut shown = table(&["defect", "design", "caught by", "recoveries", "as"], 3..4);
    for Tried { defect, outcome } in all {
        let about = defect.about();
        let how = outcome.violations.first();
        shown.add_row([
            about.name.to_owned(),
            about.design.to_owned(),
            how.map_or("nothing".to_owned(), |_| outcome.scenario.clone()),
            grouped(outcome.recoveries),
            how.map_or("NOT CAUGHT".to_owned(), |violation| violation.what.clone()),
        ]);
    }
    table::print(&shown, output)
}
