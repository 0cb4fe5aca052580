//! The report: one page with all claims, and what nobody has asked for yet.

use crate::claims::{Doc, PaperValue};
use crate::devices::{self, DeviceResult};
use crate::verdict::{Verdict, VerdictRow};
use bristlecone_lab::Result;
use bristlecone_report::figure::{BarSeries, Bars};
use bristlecone_report::page::{Block, ReportPage, Section, Source};
use bristlecone_report::table::{Cell, Column, Mark, Table};

/// The page of `verdicts`, and of all designs on all devices if they were compared.
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
    let introduction = vec![
        "Five papers claim that their trees for persistent memory are better than others. Each of their claims \
         was measured again, all trees in one program, on one machine, in one run."
            .into(),
        format!(
            "Counts are exact. Times are ratios of medians of {} interleaved repetitions, at {} records and operations at the \
             most; where a device is needed that is not here, a model of it says what it would do, in virtual time, with \
             {} records and a cache that is scaled with them.",
            scale.reps, scale.ops_max, scale.modelled_records
        ),
    ];
    Ok(ReportPage { title: "Papers, measured again".into(), machine, date, introduction, sections })
}

fn overview(verdicts: &[Verdict]) -> Section {
    let agreeing = verdicts.iter().filter(|verdict| verdict.agrees()).count();
    let mostly = verdicts.iter().filter(|verdict| verdict.agrees_mostly()).count();
    let (numbers, met) = verdicts
        .iter()
        .fold((0, 0), |(all, met), verdict| (all + verdict.rows.len(), met + verdict.agreeing()));
    let columns = vec![
        Column::words("claim"),
        Column::words("where"),
        Column::words("what it says"),
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
        caption: "Claims of the papers".into(),
        header: columns,
        rows: verdicts.iter().map(row).collect(),
    };
    Section {
        id: "overview".into(),
        heading: "All claims".into(),
        finding: format!(
            "{agreeing} of {} claims agree in all of their numbers, {mostly} in half of them at the least; {met} of {numbers} numbers agree.",
            verdicts.len()
        ),
        blocks: vec![by_paper(verdicts).into(), Block::Table(table)],
        source: Some(Source::Timed { command: "bristlecone-lab reproduce".into() }),
    }
}

/// Numbers that agree, paper by paper.
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
        title: "Numbers of the papers that agree".into(),
        description: "In sign, or within the tolerance of the claim.".into(),
        category: "paper".into(),
        value: "numbers".into(),
        categories: Doc::ALL.iter().map(|doc| doc.title().to_owned()).collect(),
        series: vec![series("agree", &|row| row.agrees), series("do not", &|row| !row.agrees)],
        baseline: None,
        has_numbers: true,
    }
}

/// A number with as many digits as anybody compares.
fn rounded(number: f64) -> String {
    /// From here on nobody looks at what comes behind the point.
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
        Column::words("how"),
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
        caption: "Its numbers".into(),
        header: columns,
        rows: verdict.rows.iter().map(row).collect(),
    };
    let mut blocks = verdict.result.blocks.clone();
    blocks.push(Block::Table(table));
    Section {
        id: verdict.claim.id.clone(),
        heading: format!(
            "{}, {}: {}",
            verdict.claim.doc.title(),
            verdict.claim.figure,
            verdict.claim.id
        ),
        finding: format!("The paper: {}. {}", verdict.claim.says, verdict.sentence()),
        blocks,
        source: Some(verdict.result.source.clone()),
    }
}
