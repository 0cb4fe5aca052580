//! `crash --catalogue` and `crash --as-printed`: published defects, put back and looked for.

use super::crash::{Catalogue, Row};
use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress, grouped, table};
use bristlecone_crash::{
    CatalogueResult, CrashPage, Outcome, Request, run_as_printed, run_catalogue,
};
use std::io::{self, Write};

/// Looks for the defects of `designs`, or of all. With `as_printed` what is caught
/// is a violation; else what is not caught is the failure.
pub(super) fn run(
    designs: &[String],
    request: &Request,
    as_printed: bool,
    output: &mut Output,
    mut page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let mut progress = Progress::new(0);
    let mut all = Vec::new();
    let mut told: io::Result<()> = Ok(());
    let mut see = |result: &CatalogueResult| {
        progress.say(result.defect.about().name.to_owned());
        progress.advance(1);
        if let Some(page) = page.as_mut().filter(|_| as_printed) {
            page.outcome(&named(result));
        }
        let now = if output.json {
            output.object(&row(&named(result), as_printed))
        } else if as_printed {
            tell(result, output)
        } else {
            Ok(())
        };
        if told.is_ok() {
            told = now;
        }
        all.push(result.clone());
    };
    if as_printed {
        run_as_printed(designs, request, &mut see)?;
    } else {
        run_catalogue(designs, request, &mut see)?;
    }
    drop(progress);
    told?;
    if all.is_empty() {
        return Err(Usage("no published defect of these designs is seeded".into()).into());
    }
    let total = all.len() as u64;
    let caught = all.iter().filter(|result| result.caught().is_some()).count() as u64;
    if output.json {
        let design = if as_printed { "as-printed" } else { "catalogue" };
        let mut sum = Outcome { subject: design.into(), ..all[0].outcome.clone() };
        (sum.scenario, sum.violations) = ("all".into(), Vec::new());
        let mut row = Row::new(&sum);
        (row.images, row.recoveries) = all.iter().fold((0, 0), |(images, recoveries), result| {
            let outcome = &result.outcome;
            (outcome.images().saturating_add(images), outcome.recoveries() + recoveries)
        });
        row.catalogue = Catalogue { total, caught };
        output.object(&row)?;
    } else {
        summarise(&all, output)?;
        writeln!(output, "\n{caught} of {total} caught")?;
    }
    Ok(Answer::from_bool(if as_printed { caught == 0 } else { caught == total }))
}

/// The outcome under the name of the defect, and of the scenario that gave it away.
fn named(result: &CatalogueResult) -> Outcome {
    let about = result.defect.about();
    let scenario = format!("{} {}", about.name, result.outcome.scenario);
    Outcome { scenario: scenario.trim_end().into(), ..result.outcome.clone() }
}

fn row(outcome: &Outcome, as_printed: bool) -> Row<'_> {
    let caught = u64::from(!outcome.violations.is_empty());
    let mut row = Row::new(outcome);
    row.catalogue = Catalogue { total: 1, caught };
    if !as_printed {
        row.violations = 0; // What was seeded on purpose violates nothing that is promised.
    }
    row
}

fn tell(result: &CatalogueResult, output: &mut Output) -> io::Result<()> {
    let about = result.defect.about();
    writeln!(output, "{}: {}\n  {}", about.design, about.what, about.published)?;
    let outcome = &result.outcome;
    match result.caught() {
        Some(violation) => {
            writeln!(output, "{}, {}: {violation}", outcome.scenario, outcome.mode().name())?;
        }
        None => writeln!(output, "nothing shows it\n")?,
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
    output.table(&shown)
}
