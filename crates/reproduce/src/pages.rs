//! The report: one page with all claims and the results of all designs on all devices.

mod legend;

use crate::claims::{Claim, Doc};
use crate::devices::{self, DeviceResult};
use crate::rule::{Agreement, Relation, Status};
use crate::verdict::{Tally, Verdict, VerdictRow};
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
        "Five papers compare trees for persistent memory. This report lists every number that they print, and \
         measures what it can again, with all trees in one program, on one machine, in one run."
            .into(),
        format!(
            "Counts are exact. Timed claims are ratios of {} paired repetitions in turns, with at most {} records and \
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
    let tally = Tally::of(verdicts.iter().flat_map(|verdict| &verdict.rows));
    let mut columns = vec![Column::words("claim in words"), Column::words("source")];
    columns.push(Column::words("kind"));
    columns.extend(Status::ALL.map(|status| Column::numbers(status.name())));
    columns.extend(["agree", "meet the rule at this size"].map(Column::numbers));
    columns.push(Column::words("name for the command"));
    let row = |verdict: &Verdict| {
        let tally = Tally::of(&verdict.rows);
        let number = |count: usize, mark: Mark| {
            let cell = Cell::from(count.to_string());
            if count > 0 { cell.marked(mark) } else { cell }
        };
        let mut cells = vec![
            Cell::from(verdict.claim.sentence()),
            Cell::from(format!("{}, {}", verdict.claim.doc.title(), verdict.claim.figure)),
            Cell::from(verdict.claim.kind.name()),
        ];
        cells.extend(tally.rows.map(|count| Cell::from(count.to_string())));
        cells.push(number(tally.agree, Mark::Good));
        cells.push(number(tally.at_our_size, Mark::Neutral));
        cells.push(Cell::from(verdict.claim.id.as_str()));
        cells
    };
    let table = Table {
        caption: "The claims, with how many of their numbers have each status and verdict".into(),
        header: columns,
        rows: verdicts.iter().map(row).collect(),
    };
    Section {
        id: "overview".into(),
        heading: "All claims, and what this run found".into(),
        finding: tally.sentence(),
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

/// Returns a chart of the numbers of each status and verdict, by paper.
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
        title: "Published numbers, by paper: what was measured, and what agrees".into(),
        description: "A number agrees if its row is as described and meets the rule. A scaled row \
                      can meet the rule at its size alone. A substitute never agrees."
            .into(),
        category: "paper".into(),
        value: "numbers".into(),
        categories: Doc::ALL.iter().map(|doc| doc.title().to_owned()).collect(),
        series: vec![
            series("agree", &|row| row.agreement == Agreement::Yes),
            series("scaled, meet the rule", &|row| row.agreement == Agreement::Weak),
            series("run as described or scaled, do not agree", &|row| {
                row.status <= Status::Scaled && row.agreement == Agreement::No
            }),
            series("substituted", &|row| row.status == Status::Substituted),
            series("not run", &|row| row.status == Status::NotRun),
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

/// Prints the published number of `row` with its relation, if that is an inequality.
pub fn published(row: &VerdictRow) -> String {
    let number = rounded(row.paper);
    match row.relation {
        Relation::Above => format!("above {number}"),
        Relation::Below => format!("below {number}"),
        Relation::UpTo => format!("up to {number}"),
        _ => number,
    }
}

/// Prints the 95 % interval of `row`; empty for counts and models.
fn interval(row: &VerdictRow) -> String {
    let ends = row.low.zip(row.high).filter(|_| row.repetitions > 1);
    ends.map_or(String::new(), |(low, high)| format!("{} to {}", rounded(low), rounded(high)))
}

fn section(verdict: &Verdict) -> Section {
    let columns = vec![
        Column::words("compared with"),
        Column::words("case"),
        Column::words("status"),
        Column::numbers("paper"),
        Column::numbers("measured"),
        Column::numbers("95 % interval"),
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
        vec![
            Cell::from(row.baseline.as_str()),
            Cell::from(row.case.as_str()),
            Cell::from(row.status.name()),
            Cell::from(published(row)),
            row.measured.map_or(Cell::number(None), |measured| Cell::from(rounded(measured))),
            Cell::from(interval(row)),
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
        let verdicts = [
            verdict(Status::AsDescribed, -0.2, Some(0.01)),
            verdict(Status::Scaled, -0.2, None),
            verdict(Status::Substituted, -0.2, Some(1.2)),
        ];
        let page = page(&mut bench, &verdicts, &[], ["a machine", "a day"].map(String::from));
        let html = page.expect("no design runs").html();
        let terms = ["line", "fence", "word", "baseline", "spread of repetitions", "95 % interval"];
        for term in terms {
            assert!(html.contains(&format!("<td>{term}</td>")), "{term} is not defined");
        }
        for doc in Doc::ALL {
            let citation = doc.citation().replace('\'', "&#39;");
            assert!(html.contains(&citation), "{} is not cited", doc.title());
        }
        for cell in ["good\">yes", "neutral\">weak", "bad\">no"] {
            assert!(html.contains(&format!("class=\"{cell}</td>")), "{cell}: {html}");
        }
        for status in Status::ALL {
            assert!(html.contains(&format!("<td>{}</td>", status.name())), "{status:?}");
        }
        assert!(html.contains("1 of 3 numbers agree (as described 1: 1 agree; scaled 1: 1 meet"));
        assert!(html.contains(">-0.210 to -0.190</td>"), "{html}");
        assert!(html.contains("<h2>300 000 inserts take less time"), "a heading is a sentence");
        assert!(html.contains("Warning: repetitions of the same run differ by up to 120 %"));
    }
}
