//! The report as one page of HTML, written by `bristlecone-report`.
//!
//! The page is made from the same outcomes as the other output. The timeline of a violation is
//! drawn from its trace, so page and text cannot differ.

mod legend;
mod timeline;

use crate::outcome::{Outcome, Violation};
use bristlecone_pmem::Defect;
use bristlecone_report::number::count;
use bristlecone_report::page::{Block, ReportPage, Section, Source};
use bristlecone_report::table::{Cell, Column, Mark, Table};
use core::fmt::Write as _;
use std::collections::BTreeMap;

/// A page of HTML about outcomes.
#[derive(Clone, Debug, Default)]
pub struct CrashPage {
    outcomes: Vec<Outcome>,
    defects: Vec<(Defect, Outcome)>,
    /// The numbers of mutants and of killed mutants, by subject.
    mutants: BTreeMap<String, (u64, u64)>,
    faults: Vec<Fault>,
}

/// A row about allocation faults or media faults.
#[derive(Clone, Debug)]
struct Fault {
    design: String,
    scenario: String,
    text: String,
    violations: Vec<Violation>,
}

impl CrashPage {
    /// Adds the outcome of a scenario.
    pub fn outcome(&mut self, outcome: &Outcome) {
        self.outcomes.push(outcome.clone());
    }

    /// Adds a published defect, and the outcome of the search for it.
    pub fn defect(&mut self, defect: Defect, outcome: &Outcome) {
        self.defects.push((defect, outcome.clone()));
    }

    /// Adds a mutant of a design.
    pub fn mutant(&mut self, design: &str, killed: bool) {
        let (total, dead) = self.mutants.entry(design.into()).or_default();
        *total += 1;
        *dead += u64::from(killed);
    }

    /// Adds the result of allocation faults or media faults, in words.
    pub fn fault(&mut self, design: &str, scenario: &str, text: String, violations: &[Violation]) {
        let (design, scenario) = (design.into(), scenario.into());
        self.faults.push(Fault { design, scenario, text, violations: violations.to_vec() });
    }

    /// Returns the page as a whole document.
    pub fn html(&self) -> String {
        let mut sections = vec![legend::section()];
        sections.extend(self.defects.iter().map(|(defect, outcome)| of_defect(*defect, outcome)));
        sections.extend(self.violations());
        sections.extend(self.designs().into_iter().map(|design| self.design(design)));
        sections.extend(self.fault_section());
        let title = "Crash images explored".into();
        ReportPage { title, introduction: self.introduction(), sections, ..ReportPage::default() }
            .html()
    }

    /// Returns the verdict on the whole, and the amount of work behind it.
    fn introduction(&self) -> Vec<String> {
        let of_outcomes: usize = self.outcomes.iter().map(|outcome| outcome.violations.len()).sum();
        let of_faults: usize = self.faults.iter().map(|fault| fault.violations.len()).sum();
        let incomplete = self.outcomes.iter().filter(|outcome| outcome.incomplete).count();
        let mut paragraphs = Vec::new();
        if !self.outcomes.is_empty() || !self.faults.is_empty() {
            paragraphs.push(match (of_outcomes + of_faults, incomplete) {
                (0, 0) => "Pass: no promise is violated.".to_owned(),
                (0, some) => format!(
                    "No violation was found, but {} incomplete: their budget ended before their \
                     images. That is no pass.",
                    plural(some, "scenario is", "scenarios are")
                ),
                (some, _) => {
                    format!(
                        "Fail: {}.",
                        plural(some, "violation of a promise", "violations of a promise")
                    )
                }
            });
        }
        if !self.defects.is_empty() {
            let detected =
                self.defects.iter().filter(|(_, outcome)| !outcome.violations.is_empty());
            paragraphs.push(format!(
                "{} of {} published defects were injected and detected.",
                detected.count(),
                self.defects.len()
            ));
        }
        let all = || self.outcomes.iter().chain(self.defects.iter().map(|(_, outcome)| outcome));
        let images = all().fold(0, |sum: u128, outcome| sum.saturating_add(outcome.images()));
        let recoveries: u64 = all().map(Outcome::recoveries).sum();
        if recoveries > 0 {
            paragraphs.push(format!(
                "{} recoveries covered {} crash images of {}.",
                count(recoveries.into()),
                count(images),
                plural(all().count(), "scenario", "scenarios")
            ));
        }
        paragraphs
    }

    /// Returns a section for each violation, with its timeline.
    fn violations(&self) -> Vec<Section> {
        let of_outcomes = self.outcomes.iter().flat_map(|outcome| {
            let place = format!("{}, {}", outcome.scenario, outcome.mode().name());
            let all = outcome.violations.iter();
            all.map(move |violation| {
                (outcome.subject.as_str(), place.clone(), violation, command(outcome, violation))
            })
        });
        let of_faults = self.faults.iter().flat_map(|fault| {
            let command = format!("bristlecone-lab crash --design {} --faults", fault.design);
            let all = fault.violations.iter();
            all.map(move |violation| {
                (fault.design.as_str(), fault.scenario.clone(), violation, command.clone())
            })
        });
        let section = |(number, (subject, place, violation, command)): (
            usize,
            (&str, String, &Violation, String),
        )| Section {
            id: format!("violation-{}", number + 1),
            heading: format!("{subject}: {}", violation.what),
            finding: format!("In scenario {place}. {}", difference(violation)),
            blocks: drawing(violation),
            source: Some(Source::Counted { command }),
        };
        of_outcomes.chain(of_faults).enumerate().map(section).collect()
    }

    /// Returns the names of all subjects, in the order of their first outcome.
    fn designs(&self) -> Vec<&str> {
        let explored = self.outcomes.iter().map(|outcome| outcome.subject.as_str());
        let mut designs: Vec<&str> = Vec::new();
        for design in explored.chain(self.mutants.keys().map(String::as_str)) {
            if !designs.contains(&design) {
                designs.push(design);
            }
        }
        designs
    }

    /// Returns the section of a design: its scenarios with their counts.
    fn design(&self, design: &str) -> Section {
        let outcomes: Vec<_> =
            self.outcomes.iter().filter(|outcome| outcome.subject == design).collect();
        let violating = outcomes.iter().filter(|outcome| !outcome.violations.is_empty()).count();
        let incomplete = outcomes.iter().filter(|outcome| outcome.incomplete).count();
        let mut finding = match (violating, incomplete) {
            _ if outcomes.is_empty() => String::new(),
            (0, 0) => "Each image of each scenario recovers to a right state.".to_owned(),
            (some, rest) => {
                let all = plural(outcomes.len(), "scenario", "scenarios");
                format!("Of {all}, {some} violate a promise and {rest} are incomplete.")
            }
        };
        if let Some((total, killed)) = self.mutants.get(design) {
            let _ = write!(finding, " {killed} of {total} mutants were killed.");
        }
        let threaded = outcomes.iter().filter(|outcome| outcome.threads() > 1);
        let schedules: u64 = threaded.map(|outcome| outcome.schedules()).sum();
        if schedules > 0 {
            let (one, several) = ("schedule of several threads", "schedules of several threads");
            let _ = write!(finding, " {} ran.", plural(schedules as usize, one, several));
        }
        let mut header = ["scenario", "persistence model"].map(Column::words).to_vec();
        header.extend(["images", "recoveries", "flushes", "fences"].map(Column::numbers));
        header.push(Column::words("result"));
        let row = |outcome: &&Outcome| {
            let result = match (outcome.violations.len(), outcome.incomplete) {
                (0, false) => Cell::from("right").marked(Mark::Good),
                (0, true) => Cell::from("incomplete").marked(Mark::Neutral),
                (some, _) => Cell::from(plural(some, "violation", "violations")).marked(Mark::Bad),
            };
            let sites = outcome.sites();
            let numbers = [
                outcome.images(),
                outcome.recoveries().into(),
                sites.flushes.into(),
                sites.fences.into(),
            ];
            let mut cells = vec![outcome.scenario.as_str().into(), outcome.mode().name().into()];
            cells.extend(numbers.map(|number| Cell::from(count(number))));
            cells.push(result);
            cells
        };
        let rows: Vec<_> = outcomes.iter().map(row).collect();
        let caption = format!("{}, explored", plural(rows.len(), "scenario", "scenarios"));
        let table = (!rows.is_empty()).then_some(Block::Table(Table { caption, header, rows }));
        Section {
            id: format!("design-{design}"),
            heading: format!("Scenarios of {design}"),
            finding: finding.trim_start().to_owned(),
            blocks: table.into_iter().collect(),
            source: None,
        }
    }

    fn fault_section(&self) -> Option<Section> {
        let row = |Fault { design, scenario, text, violations }: &Fault| {
            let mark = if violations.is_empty() { Mark::Good } else { Mark::Bad };
            let result = Cell::from(text.as_str()).marked(mark);
            vec![design.as_str().into(), scenario.as_str().into(), result]
        };
        let table = Table {
            caption: "A case is one refused allocation, or one corruption of the contents. Right: \
                      all answers are right. Refused: an error names the damage, or the full pool. \
                      Wrong: an answer is wrong"
                .into(),
            header: ["design", "fault and scenario", "cases"].map(Column::words).to_vec(),
            rows: self.faults.iter().map(row).collect(),
        };
        let violations: usize = self.faults.iter().map(|fault| fault.violations.len()).sum();
        (!self.faults.is_empty()).then(|| Section {
            id: "faults".into(),
            heading: "Refused allocations and damaged contents".into(),
            finding: match violations {
                0 => "No fault violates a promise.".into(),
                some => format!(
                    "{}.",
                    plural(some, "fault violates a promise", "faults violate a promise")
                ),
            },
            blocks: vec![Block::Table(table)],
            source: None,
        })
    }
}

/// Returns the section of an injected defect. The heading is its sentence.
fn of_defect(defect: Defect, outcome: &Outcome) -> Section {
    let about = defect.about();
    let violation = outcome.violations.first();
    let finding = violation.map_or("No scenario detects it.".to_owned(), |violation| {
        let (scenario, mode) = (&outcome.scenario, outcome.mode().name());
        format!("Detected in scenario {scenario}, {mode}: {}.", violation.what)
    });
    let mut blocks = vec![Block::Note(format!("Published: {}.", about.published))];
    if let Some(violation) = violation {
        blocks.push(Block::Note(difference(violation)));
        blocks.extend(drawing(violation));
    }
    let how = if about.as_printed { "--as-printed" } else { "--catalogue" };
    let command = format!("bristlecone-lab crash {how} --design {}", about.design);
    Section {
        id: format!("defect-{}", about.name),
        heading: format!("{}: {} ({})", about.design, about.what, about.name),
        finding,
        blocks,
        source: Some(Source::Counted { command }),
    }
}

/// Returns the sentences that say what a recovery should have found, and what it found.
fn difference(violation: &Violation) -> String {
    let Violation { expected, found, .. } = violation;
    format!("Expected: {expected}. Found: {found}.")
}

/// Returns the timeline of a violation, or a note where no crash is needed.
fn drawing(violation: &Violation) -> Vec<Block> {
    let title = format!("Events up to the crash: {}", violation.what);
    vec![match timeline::timeline(title, &violation.trace) {
        Some(timeline) => timeline.into(),
        None => Block::Note("The operation fails by itself, without a crash.".into()),
    }]
}

/// Returns the command line that explores the scenario of a violation again.
fn command(outcome: &Outcome, violation: &Violation) -> String {
    let Outcome { subject, scenario, .. } = outcome;
    let mode = outcome.mode().name();
    let seed = violation.trace.trim_start().strip_prefix("schedule of seed ");
    let seed = seed.and_then(|rest| rest.split([',', ' ']).next());
    let threads = match (outcome.threads(), seed) {
        (1, _) => String::new(),
        (threads, None) => format!(" --threads {threads}"),
        (threads, Some(seed)) => format!(" --threads {threads} --schedules 1 --seed {seed}"),
    };
    format!("bristlecone-lab crash --design {subject} --mode {mode} --scenario {scenario}{threads}")
}

/// Returns a number with its noun, in the singular for 1.
fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number as u128), if number == 1 { one } else { many })
}
