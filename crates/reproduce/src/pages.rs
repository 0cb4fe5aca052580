//! The report: one page with all claims and the results of all designs on all devices.

use crate::claims::{Claim, Doc, PaperValue};
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
    let mut sections = vec![overview(verdicts)];
    sections.extend(verdicts.iter().map(section));
    if !entries.is_empty() {
        sections.extend(devices::sections(bench, entries)?);
    }
    let scale = bench.scale;
    let mut introduction = vec![
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
    introduction.push(
        "In charts, a filled bar or mark is measured here, and a hollow diamond is the value of the paper. A solid \
         curve is measured, a dashed one is projected from a device model, and a dotted one is published. In tables, \
         green with a tick agrees, red with a cross does not, and grey with a ring agrees in part."
            .into(),
    );
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
    let columns = vec![
        Column::words("claim"),
        Column::words("source"),
        Column::words("claim in words"),
        Column::words("kind"),
        Column::numbers("numbers that agree"),
    ];
    let row = |verdict: &Verdict| {
        let mark = match verdict.agreeing() {
            all if all == verdict.rows.len() => Mark::Good,
            0 => Mark::Bad,
            _ => Mark::Neutral,
        };
        vec![
            Cell::from(verdict.claim.id.as_str()),
            Cell::from(format!("{}, {}", verdict.claim.doc.title(), verdict.claim.figure)),
            Cell::from(verdict.claim.says.as_str()),
            Cell::from(verdict.claim.kind.name()),
            Cell::from(format!("{} of {}", verdict.agreeing(), verdict.rows.len())).marked(mark),
        ]
    };
    let table = Table {
        caption: "Claims: a tick marks full agreement, a ring partial agreement, a cross none"
            .into(),
        header: columns,
        rows: verdicts.iter().map(row).collect(),
    };
    Section {
        id: "overview".into(),
        heading: "All claims".into(),
        finding: format!(
            "{agreeing} of {} claims agree in all their numbers, {mostly} in at least half of them; {met} of {numbers} numbers agree.",
            verdicts.len()
        ),
        blocks: vec![Block::Table(papers()), by_paper(verdicts).into(), Block::Table(table)],
        source: Some(Source::Timed { command: "bristlecone-lab reproduce".into() }),
    }
}

/// Returns a table of the papers, with authors, title and venue.
fn papers() -> Table {
    let row = |&doc: &Doc| vec![Cell::from(doc.title()), Cell::from(doc.citation())];
    Table {
        caption: "The papers".into(),
        header: vec![Column::words("short title"), Column::words("authors, title, venue")],
        rows: Doc::ALL.iter().map(row).collect(),
    }
}

/// Returns a chart of the numbers that agree and that do not, by paper.
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
        description: "A number agrees in sign, or within the tolerance of its claim.".into(),
        category: "paper".into(),
        value: "numbers".into(),
        categories: Doc::ALL.iter().map(|doc| doc.title().to_owned()).collect(),
        series: vec![
            series("agree", &|row| row.agrees),
            series("do not agree", &|row| !row.agrees),
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
        Column::words("details"),
    ];
    let row = |row: &VerdictRow| {
        let (word, mark) = if row.agrees { ("yes", Mark::Good) } else { ("no", Mark::Bad) };
        let paper = match row.paper {
            PaperValue::Number(number) => Cell::from(rounded(number)),
            PaperValue::Range([low, high]) => Cell::from(format!("{low} to {high}")),
        };
        vec![
            Cell::from(row.baseline.as_str()),
            Cell::from(row.case.as_str()),
            paper,
            row.measured.map_or(Cell::number(None), |measured| Cell::from(rounded(measured))),
            Cell::from(word).marked(mark),
            Cell::from(row.note.as_str()),
        ]
    };
    let table = Table {
        caption: "Numbers: published and measured".into(),
        header: columns,
        rows: verdict.rows.iter().map(row).collect(),
    };
    let mut blocks = verdict.result.blocks.clone();
    blocks.push(Block::Table(table));
    let Claim { doc, figure, .. } = &verdict.claim;
    blocks.push(Block::Note(format!("Source of the claim: {}; {figure}.", doc.citation())));
    Section {
        id: verdict.claim.id.clone(),
        heading: format!(
            "{}, {}: {}",
            verdict.claim.doc.title(),
            verdict.claim.figure,
            verdict.claim.id
        ),
        finding: format!("The paper claims: {}. {}", verdict.claim.says, verdict.sentence()),
        blocks,
        source: Some(verdict.result.source.clone()),
    }
}
