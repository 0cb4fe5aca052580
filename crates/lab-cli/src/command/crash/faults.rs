//! `crash --faults`: refused allocations and media faults.

use crate::table::{self, table};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, grouped};
use bristlecone_console::progress::Progress;
use bristlecone_crash::{Damages, Harm, Hunger, Page, Request, run_media, run_space};
use serde::Serialize;
use std::io::{self, Write};

/// The result of a scenario as a JSON object.
#[derive(Serialize)]
struct Row<'a> {
    fault: &'static str,
    design: &'a str,
    scenario: &'a str,
    cases: u64,
    runs: u64,
    right: u64,
    named: u64,
    wrong: u64,
    unseen: u64,
    example: Option<&'a str>,
    violations: usize,
    traces: Vec<String>,
}

impl<'a> Row<'a> {
    fn of_harm(harm: &'a Harm) -> Self {
        let Harm { cases, runs, right, named, wrong, unseen, .. } = *harm;
        Self {
            fault: "media",
            design: &harm.design,
            scenario: &harm.scenario,
            cases,
            runs,
            right,
            named,
            wrong,
            unseen,
            example: harm.example.as_deref(),
            violations: harm.violations.len(),
            traces: harm.violations.iter().map(ToString::to_string).collect(),
        }
    }

    fn of_hunger(hunger: &'a Hunger) -> Self {
        Self {
            fault: "space",
            design: &hunger.design,
            scenario: &hunger.scenario,
            cases: hunger.refused,
            runs: hunger.refused,
            right: hunger.refused - hunger.full,
            named: hunger.full,
            wrong: 0,
            unseen: 0,
            example: None,
            violations: hunger.violations.len(),
            traces: hunger.violations.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The sum of all rows of a design and a kind of fault.
#[derive(Default)]
struct Line {
    name: (String, &'static str),
    sums: [u64; 6],
    violations: usize,
}

/// The report that is going on, and its targets: output, page, progress.
struct Report<'a> {
    output: &'a mut Output,
    page: Option<&'a mut Page>,
    progress: Progress,
    lines: Vec<Line>,
    /// The first error of the output.
    written: io::Result<()>,
}

impl Report<'_> {
    /// Reports a row.
    fn add(&mut self, row: &Row<'_>, violations: &[bristlecone_crash::Violation]) {
        self.progress.say(format!("{} {}", row.design, row.scenario));
        self.progress.advance(1);
        let name = (row.design.to_owned(), row.fault);
        if self.lines.last().is_none_or(|line| line.name != name) {
            let known = self.lines.iter().position(|line| line.name == name);
            let line =
                known.map_or_else(|| Line { name, ..Line::default() }, |at| self.lines.remove(at));
            self.lines.push(line);
        }
        if let Some(line) = self.lines.last_mut() {
            let all = [row.cases, row.runs, row.right, row.named, row.wrong, row.unseen];
            line.sums.iter_mut().zip(all).for_each(|(sum, count)| *sum += count);
            line.violations += violations.len();
        }
        if let Some(page) = &mut self.page {
            let Row { fault, cases, right, named, wrong, .. } = row;
            let text = format!("{cases} cases: {right} right, {named} refused, {wrong} wrong");
            page.fault(row.design, &format!("{fault} {}", row.scenario), text, violations);
        }
        let now = if self.output.json {
            self.output.object(row)
        } else {
            violations.iter().try_for_each(|violation| {
                writeln!(self.output, "{}, {}: {violation}", row.design, row.scenario)
            })
        };
        self.written = std::mem::replace(&mut self.written, Ok(())).and(now);
    }
}

/// Refuses each allocation of each scenario of `request`, then tries each kind of corruption and
/// `garbage` images of random bytes. The answer is no if a fault violates a promise.
pub(super) fn run(
    request: &Request,
    garbage: u64,
    output: &mut Output,
    page: Option<&mut Page>,
) -> anyhow::Result<Answer> {
    let progress = Progress::new(0);
    let mut report = Report { output, page, progress, lines: Vec::new(), written: Ok(()) };
    run_space(request, &mut |hunger| {
        report.add(&Row::of_hunger(hunger), &hunger.violations);
    })?;
    let mut designs = request.designs.clone();
    designs.retain(|design| design != bristlecone_crash::POOL);
    if request.designs.is_empty() || !designs.is_empty() {
        let filter = request.filter.clone();
        let damages = Damages { designs, filter, garbage, ..Damages::default() };
        run_media(&damages, &mut |harm| report.add(&Row::of_harm(harm), &harm.violations))?;
    }
    let Report { output, progress, mut lines, written, .. } = report;
    drop(progress);
    written?;
    if lines.is_empty() {
        return Err(UsageError(
            "no scenario has this name, so no fault was tried; change --scenario".into(),
        )
        .into());
    }
    let violations: usize = lines.iter().map(|line| line.violations).sum();
    if !output.json {
        lines.sort_by(|a, b| a.name.cmp(&b.name));
        let titles = [
            "design",
            "fault",
            "cases",
            "runs",
            "right",
            "refused",
            "wrong",
            "unseen",
            "violations",
        ];
        let mut shown = table(&titles, 2..9);
        for Line { name: (design, fault), sums, violations } in lines {
            let mut row = vec![design, fault.to_owned()];
            row.extend(sums.map(grouped));
            row.push(violations.to_string());
            shown.add_row(row);
        }
        table::print(&shown, output)?;
    }
    Ok(Answer::from_bool(violations == 0))
}
