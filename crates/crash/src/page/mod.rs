//! The report as one page of HTML, with its styles and drawings in it.
//!
//! The page is made from the same outcomes as the other output. The timeline of a violation is
//! drawn from its trace, so page and text cannot differ.

mod escape;
mod timeline;

use crate::outcome::{Outcome, Violation};
use core::fmt::{self, Write as _};
use escape::escaped;
use std::collections::BTreeMap;

/// A page of HTML about outcomes.
#[derive(Clone, Debug, Default)]
pub struct CrashPage {
    outcomes: Vec<Outcome>,
    /// The numbers of mutants and of killed mutants, by subject.
    mutants: BTreeMap<String, (u64, u64)>,
    /// The number of explored schedules, by subject.
    schedules: BTreeMap<String, u64>,
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

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1d2430}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid #d5dbe3}\
table{border-collapse:collapse;width:100%;font-size:13px}\
th,td{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #e8ecf1}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
tr.bad td{background:#fdecea}tr.part td{background:#fff6e0}\
.tag{display:inline-block;padding:.1rem .6rem;border-radius:1rem;color:#fff;background:#2e7d4f}\
.tag.bad{background:#b3261e}.tag.part{background:#9a6700}\
figure{margin:1rem 0;border:1px solid #d5dbe3;border-radius:6px;padding:1rem;overflow-x:auto}\
figcaption{margin-bottom:.5rem}figcaption b{color:#b3261e}code{font:12px/1.4 ui-monospace,monospace}\
svg text{font:12px ui-monospace,monospace;fill:#1d2430}svg .lost{fill:#b3261e;font-weight:bold}\
svg .dim{fill:#6b7686}\
@media(prefers-color-scheme:dark){body{background:#14181f;color:#dde3ec}\
th,td,h2,figure{border-color:#343c49}tr.bad td{background:#4a1f1c}tr.part td{background:#43351033}\
svg text{fill:#dde3ec}svg .lost,figcaption b{fill:#ff8a80;color:#ff8a80}svg .dim{fill:#8b97a8}}";

impl CrashPage {
    /// Adds the outcome of a scenario.
    pub fn outcome(&mut self, outcome: &Outcome) {
        if outcome.threads() > 1 {
            *self.schedules.entry(outcome.subject.clone()).or_default() += outcome.schedules();
        }
        self.outcomes.push(outcome.clone());
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
        let mut page = String::new();
        let written = self.write(&mut page);
        debug_assert!(written.is_ok(), "a string takes all that is written to it");
        page
    }

    fn write(&self, page: &mut String) -> fmt::Result {
        write!(
            page,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\">\
             <title>Bristlecone: crash images explored</title><style>{STYLE}</style></head><body>\n\
             <h1>Crash images explored</h1>\n"
        )?;
        self.summary(page)?;
        self.violations(page)?;
        let explored = self.outcomes.iter().map(|outcome| outcome.subject.as_str());
        let mut designs: Vec<&str> = Vec::new();
        for design in explored.chain(self.mutants.keys().map(String::as_str)) {
            if !designs.contains(&design) {
                designs.push(design);
                self.design(page, design)?;
            }
        }
        self.faults(page)?;
        page.push_str("</body></html>\n");
        Ok(())
    }

    fn summary(&self, page: &mut String) -> fmt::Result {
        let violations = self.all_violations().count();
        let incomplete = self.outcomes.iter().filter(|outcome| outcome.incomplete).count();
        let (class, verdict) = match (violations, incomplete) {
            (0, 0) => ("", "nothing is violated".to_string()),
            (0, some) => ("part", format!("{some} scenarios are incomplete")),
            (some, _) => ("bad", format!("{some} violations")),
        };
        let images = self.outcomes.iter().fold(0, |sum: u128, o| sum.saturating_add(o.images()));
        let recoveries: u64 = self.outcomes.iter().map(Outcome::recoveries).sum();
        writeln!(
            page,
            "<p><span class=\"tag {class}\">{verdict}</span> {} images in {} scenarios, covered by \
             {} recoveries.</p>",
            count(images),
            self.outcomes.len(),
            count(recoveries.into())
        )
    }

    /// Returns each violation with its subject, scenario and mode.
    fn all_violations(&self) -> impl Iterator<Item = (String, &Violation)> {
        let outcomes = self.outcomes.iter().flat_map(|outcome| {
            let Outcome { subject, scenario, violations, .. } = outcome;
            let of = format!("{subject}, {scenario}, {}", outcome.mode().name());
            violations.iter().map(move |violation| (of.clone(), violation))
        });
        outcomes.chain(self.faults.iter().flat_map(|fault| {
            let of = format!("{}, {}", fault.design, fault.scenario);
            fault.violations.iter().map(move |violation| (of.clone(), violation))
        }))
    }

    fn violations(&self, page: &mut String) -> fmt::Result {
        for (number, (of, violation)) in self.all_violations().enumerate() {
            if number == 0 {
                page.push_str("<h2>Violations</h2>\n");
            }
            write!(
                page,
                "<figure><figcaption><b>{}</b><br>{}<br>expected <code>{}</code><br>\
                 found <code>{}</code></figcaption>",
                escaped(&violation.what),
                escaped(&of),
                escaped(&violation.expected),
                escaped(&violation.found)
            )?;
            timeline::draw(page, &violation.trace)?;
            page.push_str("</figure>\n");
        }
        Ok(())
    }

    fn design(&self, page: &mut String, design: &str) -> fmt::Result {
        write!(page, "<h2>{}</h2>\n<p>", escaped(design))?;
        if let Some((total, killed)) = self.mutants.get(design) {
            write!(page, "{killed} of {total} mutants killed. ")?;
        }
        if let Some(schedules) = self.schedules.get(design) {
            write!(page, "{schedules} schedules of several threads.")?;
        }
        page.push_str(
            "</p>\n<table><tr><th>scenario</th><th>mode</th><th class=\"n\">images</th>\
             <th class=\"n\">recoveries</th><th class=\"n\">flushes</th><th class=\"n\">fences</th>\
             <th></th></tr>\n",
        );
        for outcome in self.outcomes.iter().filter(|outcome| outcome.subject == design) {
            let (class, verdict) = match (outcome.violations.len(), outcome.incomplete) {
                (0, false) => ("", String::new()),
                (0, true) => ("part", "incomplete".into()),
                (some, _) => ("bad", format!("{some} violations")),
            };
            writeln!(
                page,
                "<tr class=\"{class}\"><td>{}</td><td>{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td>{verdict}</td></tr>",
                escaped(&outcome.scenario),
                outcome.mode().name(),
                count(outcome.images()),
                count(outcome.recoveries().into()),
                outcome.sites().flushes,
                outcome.sites().fences,
            )?;
        }
        page.push_str("</table>\n");
        Ok(())
    }

    fn faults(&self, page: &mut String) -> fmt::Result {
        if self.faults.is_empty() {
            return Ok(());
        }
        page.push_str("<h2>Faults of space and of the medium</h2>\n<table>");
        for Fault { design, scenario, text, violations } in &self.faults {
            let class = if violations.is_empty() { "" } else { "bad" };
            writeln!(
                page,
                "<tr class=\"{class}\"><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(design),
                escaped(scenario),
                escaped(text)
            )?;
        }
        page.push_str("</table>\n");
        Ok(())
    }
}

/// Returns a number with spaces between thousands, or as a power of ten from 10^12 on.
fn count(number: u128) -> String {
    if number >= 1_000_000_000_000 {
        return format!("{:.2e}", number as f64);
    }
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
