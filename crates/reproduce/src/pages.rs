//! The report: one page with all claims and the results of all designs on all devices.

mod legend;

use crate::claims::{Agreement, Claim, Doc, PaperValue};
use crate::devices::{self, DeviceResult};
use crate::verdict::{Verdict, VerdictRow};
use bristlecone_lab::Result;
use bristlecone_report::figure::{BarSeries, Bars};
use bristlecone_report::page::{Block, ReportPage, Section, Source};
use bristlecone_report::table::{Cell, Column, Mark, Table};

/// Creates the page of `verdicts`, and of `entries` if all designs were modelled on all devices.
///
/// # Errors
/// A design failed.
pub fn page(
    bench: &mut crate::workbench::Workbench<'_>,
    verdicts: &[Verdict],
    entries: &[DeviceResult],
    [machine, date]: [String; 2],
) -> Result<ReportPage> {
    let mut sections = vec![legend::section(), overview(verdicts)];
    sections.extend(verdicts.iter().map(section));
    if !entries.is_empty() {
        sections.extend(devices::sections(bench, entries)?);
    }
    let scale = bench.scale;
    let introduction = vec![
        "Five papers compare trees for persistent memory. This report measures their claims again, with all \
         trees in one program, on one machine, in one run."
            .into(),
        format!(
            "Counts are exact. Timed claims are ratios of medians of {} interleaved repetitions, with at most {} records and \
             operations. Claims about a device that this machine lacks use a model of the device: virtual time, {} records, \
             and a processor cache of one byte for each record.",
            scale.reps, scale.ops_max, scale.modelled_records
        ),
    ];
    Ok(ReportPage {
        title: "Published results, measured again".into(),
        machine,
        date,
        introduction,
        sections,
    })
}

fn overview(verdicts: &[Verdict]) -> Section {
    let agreeing = verdicts.iter().filter(|verdict| verdict.agrees()).count();
    let mostly = verdicts.iter().filter(|verdict| verdict.agrees_mostly()).count();
    let (numbers, met) = verdicts
        .iter()
        .fold((0, 0), |(all, met), verdict| (all + verdict.rows.len(), met + verdict.agreeing()));
    let weak: usize = verdicts.iter().map(|verdict| verdict.count(Agreement::Weak)).sum();
    let columns = vec![
        Column::words("claim in words"),
        Column::words("source"),
        Column::words("kind"),
        Column::numbers("yes"),
        Column::numbers("weak"),
        Column::numbers("no"),
        Column::words("name for the command"),
    ];
    let row = |verdict: &Verdict| {
        let [yes, weak, no] =
            [Agreement::Yes, Agreement::Weak, Agreement::No].map(|which| verdict.count(which));
        let number = |count: usize, mark: Option<Mark>| {
            let cell = Cell::from(count.to_string());
            mark.filter(|_| count > 0).map_or(cell.clone(), |mark| cell.marked(mark))
        };
        vec![
            Cell::from(verdict.claim.sentence()),
            Cell::from(format!("{}, {}", verdict.claim.doc.title(), verdict.claim.figure)),
            Cell::from(verdict.claim.kind.name()),
            number(yes, Some(Mark::Good)),
            number(weak, Some(Mark::Neutral)),
            number(no, Some(Mark::Bad)),
            Cell::from(verdict.claim.id.as_str()),
        ]
    };
    let table = Table {
        caption: "The claims, with how many of their numbers have each verdict".into(),
        header: columns,
        rows: verdicts.iter().map(row).collect(),
    };
    Section {
        id: "overview".into(),
        heading: "All claims, and what this run found".into(),
        finding: format!(
            "{agreeing} of {} claims agree in all their numbers, {mostly} in at least half of \
             them; {met} of {numbers} numbers agree, {weak} of these weakly.",
            verdicts.len()
        ),
        blocks: vec![Block::Table(papers()), by_paper(verdicts).into(), Block::Table(table)],
        source: Some(Source::Timed { command: "bristlecone-lab reproduce".into() }),
    }
}

/// Returns a table of the papers, with authors, title, venue and year.
fn papers() -> Table {
    let row = |&doc: &Doc| vec![Cell::from(doc.title()), Cell::from(doc.citation())];
    Table {
        caption: "The papers".into(),
        header: vec![Column::words("short title"), Column::words("authors: title. venue, year")],
        rows: Doc::ALL.iter().map(row).collect(),
    }
}

/// Returns a chart of the numbers of each verdict, by paper.
pub fn by_paper(verdicts: &[Verdict]) -> Bars {
    let count = |doc: Doc, is: &dyn Fn(&VerdictRow) -> bool| {
        let rows = verdicts.iter().filter(|verdict| verdict.claim.doc == doc);
        Some(rows.flat_map(|verdict| &verdict.rows).filter(|row| is(row)).count() as f64)
    };
    let series = |name: &str, is: &dyn Fn(&VerdictRow) -> bool| BarSeries {
        name: name.into(),
        values: Doc::ALL.iter().map(|&doc| count(doc, is)).collect(),
        paper: Vec::new(),
    };
    Bars {
        title: "Published numbers that agree with this run, by paper".into(),
        description: "A number agrees in direction and size, or in direction alone (weakly)."
            .into(),
        category: "paper".into(),
        value: "numbers".into(),
        categories: Doc::ALL.iter().map(|doc| doc.title().to_owned()).collect(),
        series: vec![
            series("agree", &|row| row.agreement == Agreement::Yes),
            series("agree weakly", &|row| row.agreement == Agreement::Weak),
            series("do not agree", &|row| row.agreement == Agreement::No),
        ],
        baseline: None,
        has_numbers: true,
    }
}

/// Prints a number: whole from 100 on, else with three decimals.
fn rounded(number: f64) -> String {
    const LARGE: f64 = 100.0;
    if number.abs() >= LARGE { format!("{number:.0}") } else { format!("{number:.3}") }
}

fn section(verdict: &Verdict) -> Section {
    let columns = vec![
        Column::words("compared with"),
        Column::words("case"),
        Column::numbers("paper"),
        Column::numbers("measured"),
        Column::words("agrees"),
        Column::numbers("spread of repetitions"),
        Column::words("details"),
    ];
    let row = |row: &VerdictRow| {
        let mark = match row.agreement {
            Agreement::Yes => Mark::Good,
            Agreement::Weak => Mark::Neutral,
            Agreement::No => Mark::Bad,
        };
        let spread = row.spread.map_or(String::new(), |spread| format!("{:.0} %", spread * 100.0));
        let paper = match row.paper {
            PaperValue::Number(number) => Cell::from(rounded(number)),
            PaperValue::Range([low, high]) => Cell::from(format!("{low} to {high}")),
        };
        vec![
            Cell::from(row.baseline.as_str()),
            Cell::from(row.case.as_str()),
            paper,
            row.measured.map_or(Cell::number(None), |measured| Cell::from(rounded(measured))),
            Cell::from(row.agreement.name()).marked(mark),
            Cell::from(spread),
            Cell::from(row.note.as_str()),
        ]
    };
    let table = Table {
        caption: "Numbers: published and measured".into(),
        header: columns,
        rows: verdict.rows.iter().map(row).collect(),
    };
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(verdict.warning().map(|warning| Block::Note(format!("Warning: {warning}."))));
    blocks.extend(verdict.result.blocks.iter().cloned());
    blocks.push(Block::Table(table));
    let Claim { id, doc, figure, .. } = &verdict.claim;
    blocks.push(Block::Note(format!("Source of the claim: {}; {figure}.", doc.citation())));
    Section {
        id: id.clone(),
        heading: format!("{} ({}, {figure})", verdict.claim.sentence(), doc.title()),
        finding: verdict.sentence(),
        blocks,
        source: Some(verdict.result.source.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::verdict;
    use crate::workbench::{RunScale, Workbench};

    #[test]
    fn the_report_can_be_read_without_other_documents() {
        let silent = |_: &str| {};
        let mut bench = Workbench::new(RunScale::QUICK, 1, &silent);
        let verdicts = [verdict(-0.2, Some(0.01)), verdict(-0.029, None), verdict(0.1, Some(1.2))];
        let page = page(&mut bench, &verdicts, &[], ["a machine", "a day"].map(String::from));
        let html = page.expect("no design runs").html();
        for term in ["line", "fence", "word", "baseline", "spread of repetitions"] {
            assert!(html.contains(&format!("<td>{term}</td>")), "{term} is not defined");
        }
        for doc in Doc::ALL {
            let citation = doc.citation().replace('\'', "&#39;");
            assert!(html.contains(&citation), "{} is not cited", doc.title());
        }
        for cell in ["good\">yes", "neutral\">weak", "bad\">no"] {
            assert!(html.contains(&format!("class=\"{cell}</td>")), "{cell}: {html}");
        }
        assert!(html.contains("<h2>300 000 inserts take less time"), "a heading is a sentence");
        assert!(html.contains("Warning: repetitions of the same run differ by up to 120 %"));
    }
}
