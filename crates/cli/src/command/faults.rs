//! `crash --faults`: no room, and contents that are not what was written.

use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress, grouped, table};
use bristlecone_crash::{
    Campaign, CrashPage, MediaOptions, Outcome, OutcomeCounts, Request, Subject, run as explore,
};
use serde::Serialize;
use std::io::{self, Write};

/// What came of a scenario, as programs read it.
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
    fn new(outcome: &'a Outcome) -> Self {
        let zeros = Self {
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
        };
        match &outcome.counts {
            OutcomeCounts::MediaFaults(counts) => Self {
                fault: "media",
                cases: counts.cases,
                runs: counts.runs,
                right: counts.right,
                named: counts.named,
                wrong: counts.wrong,
                unseen: counts.unseen,
                example: counts.example.as_deref(),
                ..zeros
            },
            OutcomeCounts::AllocFaults(counts) => Self {
                fault: "space",
                cases: counts.refused,
                runs: counts.refused,
                right: counts.refused - counts.full,
                named: counts.full,
                ..zeros
            },
            OutcomeCounts::Crashes(_) | OutcomeCounts::Schedules(_) => zeros,
        }
    }
}

/// The rows of a design and a fault, together.
#[derive(Default)]
struct Line {
    name: (String, &'static str),
    sums: [u64; 6],
    violations: usize,
}

/// All that is reported, where it is reported to.
struct Telling<'a> {
    output: &'a mut Output,
    page: Option<&'a mut CrashPage>,
    progress: Progress,
    lines: Vec<Line>,
    told: io::Result<()>,
}

impl Telling<'_> {
    fn tell(&mut self, row: &Row<'_>, violations: &[bristlecone_crash::Violation]) {
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
        self.told = std::mem::replace(&mut self.told, Ok(())).and(now);
    }
}

/// Tries all faults of `subjects`, with `garbage` garbage images.
pub(super) fn run(
    subjects: &[Subject],
    request: &Request,
    garbage: u64,
    output: &mut Output,
    page: Option<&mut CrashPage>,
) -> anyhow::Result<Answer> {
    let progress = Progress::new(0);
    let mut telling = Telling { output, page, progress, lines: Vec::new(), told: Ok(()) };
    let media = MediaOptions { garbage, ..MediaOptions::default() };
    for campaign in [Campaign::AllocFaults, Campaign::MediaFaults(media)] {
        let request = Request { campaign, ..request.clone() };
        explore(subjects, &request, &mut |outcome| {
            telling.tell(&Row::new(outcome), &outcome.violations);
        });
    }
    let Telling { output, progress, mut lines, told, .. } = telling;
    drop(progress);
    told?;
    if lines.is_empty() {
        return Err(Usage("no scenario is called so: nothing was tried".into()).into());
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
        output.table(&shown)?;
    }
    Ok(Answer::from_bool(violations == 0))
}
