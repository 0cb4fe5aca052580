//! `crash --catalogue` and `crash --as-printed`: published defects, injected one at a time.

use super::progress::SharedProgress;
use super::row::{Catalogue, Row};
use crate::table::{self, table};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, grouped};
use bristlecone_crash::{
    CatalogueResult, CrashPage, Outcome, Request, run_as_printed, run_catalogue,
};
use std::io::{self, Write};

/// Tries the defects of `designs`, or of all designs if there are none.
///
/// With `as_printed` the answer is no if a defect is detected; else it is no if one is not.
pub(super) fn run(
    designs: &[String],
    request: &Request,
    as_printed: bool,
    output: &mut Output,
    mut page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let progress = SharedProgress::default();
    let request = &progress.watching(request);
    let mut all = Vec::new();
    let mut written: io::Result<()> = Ok(());
    let mut see = |result: &CatalogueResult| {
        progress.say(result.defect.about().name.to_owned());
        if let Some(page) = page.as_mut() {
            page.defect(result.defect, &result.outcome);
        }
        let now = if output.json {
            output.object(&row(&named(result), as_printed))
        } else if as_printed {
            print(result, output)
        } else {
            Ok(())
        };
        if written.is_ok() {
            written = now;
        }
        all.push(result.clone());
    };
    if as_printed {
        run_as_printed(designs, request, &mut see)?;
    } else {
        run_catalogue(designs, request, &mut see)?;
    }
    drop(progress);
    written?;
    if all.is_empty() {
        let what = "the catalogue has no published defect of these designs; run \
                    `bristlecone-lab crash --catalogue` for all that it has";
        return Err(UsageError(what.into()).into());
    }
    let total = all.len() as u64;
    let caught = all.iter().filter(|result| result.caught().is_some()).count() as u64;
    if output.json {
        let design = if as_printed { "as-printed" } else { "catalogue" };
        let (images, recoveries) = totals(&all);
        let outcome = all_defects(&all, design);
        let row = Row::of_defects(&outcome, Catalogue { total, caught });
        output.object(&row.with_totals(images, recoveries))?;
    } else {
        summarise(&all, output)?;
        writeln!(output, "\n{caught} of {total} caught")?;
    }
    Ok(Answer::from_bool(if as_printed { caught == 0 } else { caught == total }))
}

/// Returns the outcome of all defects together, under the name `design`, without their counts.
fn all_defects(all: &[CatalogueResult], design: &str) -> Outcome {
    Outcome {
        subject: design.into(),
        scenario: "all".into(),
        violations: Vec::new(),
        ..all[0].outcome.clone()
    }
}

/// Returns the numbers of crash images and of recoveries of all defects together.
fn totals(all: &[CatalogueResult]) -> (u128, u64) {
    all.iter().fold((0, 0), |(images, recoveries), result| {
        let outcome = &result.outcome;
        (outcome.images().saturating_add(images), outcome.recoveries() + recoveries)
    })
}

/// Returns the outcome with the defect's name before that of the scenario that detected it.
fn named(result: &CatalogueResult) -> Outcome {
    let about = result.defect.about();
    let scenario = format!("{} {}", about.name, result.outcome.scenario);
    Outcome { scenario: scenario.trim_end().into(), ..result.outcome.clone() }
}

fn row(outcome: &Outcome, as_printed: bool) -> Row<'_> {
    let caught = u64::from(!outcome.violations.is_empty());
    let row = Row::of_defects(outcome, Catalogue { total: 1, caught });
    if as_printed { row } else { row.without_violations() }
}

/// Prints a defect, where it was published, and the trace that detects it.
fn print(result: &CatalogueResult, output: &mut Output) -> io::Result<()> {
    let about = result.defect.about();
    writeln!(output, "{}: {}\n  {}", about.design, about.what, about.published)?;
    let outcome = &result.outcome;
    match result.caught() {
        Some(violation) => {
            writeln!(output, "{}, {}: {violation}", outcome.scenario, outcome.mode().name())?;
        }
        None => writeln!(output, "no scenario detects it\n")?,
    }
    output.flush()
}

fn summarise(all: &[CatalogueResult], output: &mut Output) -> io::Result<()> {
    let mut shown = table(&["defect", "design", "caught by", "recoveries", "as"], 3..4);
    for CatalogueResult { defect, outcome } in all {
        let about = defect.about();
        let how = outcome.violations.first();
        shown.add_row([
            about.name.to_owned(),
            about.design.to_owned(),
            how.map_or("nothing".to_owned(), |_| outcome.scenario.clone()),
            grouped(outcome.recoveries()),
            how.map_or("NOT CAUGHT".to_owned(), |violation| violation.what.clone()),
        ]);
    }
    table::print(&shown, output)
}
