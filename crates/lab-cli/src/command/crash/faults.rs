//! `crash --faults`: refused allocations and media faults.

use super::progress::SharedProgress;
use crate::table::{self, table};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, grouped};
use bristlecone_crash::{
    AllocFaultCounts, Campaign, CrashPage, MediaFaultCounts, MediaOptions, Outcome, OutcomeCounts,
    Request, Subject, run as explore,
};
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
    /// Returns the row of an outcome of refused allocations or of media faults.
    fn new(outcome: &'a Outcome) -> Self {
        match &outcome.counts {
            OutcomeCounts::MediaFaults(counts) => Self::of_media_faults(outcome, counts),
            OutcomeCounts::AllocFaults(counts) => Self::of_alloc_faults(outcome, counts),
            OutcomeCounts::Crashes(_) | OutcomeCounts::Schedules(_) => Self::of_outcome(outcome),
        }
    }

    /// Returns the row without any count of faults.
    fn of_outcome(outcome: &'a Outcome) -> Self {
        Self {
            fault: "",
            design: &outcome.subject,
            scenario: &outcome.scenario,
            cases: 0,
            runs: 0,
            right: 0,
            named: 0,
            wrong: 0,
            unseen: 0,
            example: None,
            violations: outcome.violations.len(),
            traces: outcome.violations.iter().map(ToString::to_string).collect(),
        }
    }

    fn of_media_faults(outcome: &'a Outcome, counts: &'a MediaFaultCounts) -> Self {
        Self {
            fault: "media",
            cases: counts.cases,
            runs: counts.runs,
            right: counts.right,
            named: counts.named,
            wrong: counts.wrong,
            unseen: counts.unseen,
            example: counts.example.as_deref(),
            ..Self::of_outcome(outcome)
        }
    }

    fn of_alloc_faults(outcome: &'a Outcome, counts: &AllocFaultCounts) -> Self {
        Self {
            fault: "space",
            cases: counts.refused,
            runs: counts.refused,
            right: counts.refused - counts.full,
            named: counts.full,
            ..Self::of_outcome(outcome)
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
    page: Option<&'a mut CrashPage>,
    progress: SharedProgress,
    lines: Vec<Line>,
    /// The first error of the output.
    written: io::Result<()>,
}

impl Report<'_> {
    /// Reports a row.
    fn add(&mut self, row: &Row<'_>, violations: &[bristlecone_crash::Violation]) {
        self.progress.say(format!("{} {}", row.design, row.scenario));
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

/// Refuses each allocation of each scenario of `subjects`, then tries each kind of corruption and
/// `garbage` images of random bytes. The answer is no if a fault violates a promise.
pub(super) fn run(
    subjects: &[Subject],
    request: &Request,
    garbage: u64,
    output: &mut Output,
    page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let progress = SharedProgress::default();
    let request = &progress.watching(request);
    let mut report = Report { output, page, progress, lines: Vec::new(), written: Ok(()) };
    let media = MediaOptions { garbage, ..MediaOptions::default() };
    for campaign in [Campaign::AllocFaults, Campaign::MediaFaults(media)] {
        let request = Request { campaign, ..request.clone() };
        explore(subjects, &request, &mut |outcome| {
            report.add(&Row::new(outcome), &outcome.violations);
        });
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
