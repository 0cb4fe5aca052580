//! Writes a page with all kinds of charts on made-up data, to judge their look.
//!
//! `cargo run -p bristlecone-report --example gallery -- gallery.html`
//!
//! No number was measured, and each title says so. Names are long and data are awkward on purpose:
//! gaps, signs, outliers, many series.

use bristlecone_report::figure::{
    Axis, BarSeries, Bars, Baseline, Best, Curve, EventMark, Heat, Lines, Point, Scale, Shade,
    Strip, Stroke, Timeline, TimelineEvent,
};
use bristlecone_report::page::{Block, ReportPage, Section, Source};
use bristlecone_report::table::{Cell, Column, Mark, Table};

const DESIGNS: [&str; 28] = [
    "btree",
    "unsorted-leaf",
    "btree-log",
    "unsorted-leaf-log",
    "unsorted-bitmap-log",
    "btree-shadow",
    "unsorted-leaf-shadow",
    "unsorted-bitmap-shadow",
    "btree-gf",
    "btree-wal",
    "persistent-unsorted",
    "wb-tree",
    "wb-tree-bitmap-leaf",
    "wb-tree-slot-only",
    "wb-tree-r",
    "fast-fair",
    "fast-fair-sp",
    "wo-tree",
    "wo-tree-r",
    "fptree",
    "isle-tree",
    "isle-tree-r",
    "isle-tree-all",
    "ccl-btree",
    "nv-tree",
    "circ-tree",
    "btree-ls-r",
    "bristlecone",
];

/// Returns a pseudo-random number between 0 and 1, equal in each run.
fn made_up(index: usize) -> f64 {
    let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 32)) % 10_000) as f64 / 10_000.0
}

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "gallery.html".into());
    std::fs::write(&path, page().html())
}

fn page() -> ReportPage {
    ReportPage {
        title: "Gallery: all kinds of charts, on made-up data".into(),
        machine: "no machine: nothing here was measured".into(),
        date: "2026-11-22".into(),
        introduction: vec![
            "This page shows the look of figures. All numbers are made up. The names of designs serve \
             only as labels of realistic length."
                .into(),
        ],
        sections: vec![bars(), signed(), many(), lines(), device(), heat(), strip(), timeline(), verdicts()],
    }
}

fn section(id: &str, heading: &str, finding: &str, blocks: Vec<Block>) -> Section {
    let source = Some(Source::Counted { command: "bristlecone-lab reproduce --report DIR".into() });
    Section { id: id.into(), heading: heading.into(), finding: finding.into(), blocks, source }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn series(name: &str, values: &[f64], paper: &[f64]) -> BarSeries {
    let some = |values: &[f64]| values.iter().map(|&value| Some(value)).collect();
    BarSeries { name: name.into(), values: some(values), paper: some(paper) }
}

fn bars() -> Section {
    let mut chart = Bars {
        title: "Line flushes of one insert, by node size (made-up data)".into(),
        description: "Made up: bars in three groups, with a gap and marks of a paper.".into(),
        category: "bytes of a node".into(),
        value: "lines flushed for one insert".into(),
        categories: owned(&["256", "512", "1024", "2048"]),
        series: vec![
            series("btree-log", &[7.3, 11.2, 19.4, 36.1], &[6.9, 12.0, 21.0, 40.0]),
            series("fast-fair", &[3.1, 4.9, 8.2, 15.0], &[3.0, 4.4, 8.0, 14.1]),
            series("wb-tree", &[3.9, 4.0, 4.1, 4.2], &[4.0, 4.0, 4.0, 4.0]),
            series("wo-tree", &[2.1, 2.2, 2.4, 2.6], &[]),
        ],
        baseline: None,
        has_numbers: true,
    };
    chart.series[3].values[2] = None;
    let finding =
        "Made up: hollow diamonds are what a paper says, a gap is a value that is missing.";
    section("bars", "Bars in groups", finding, vec![chart.into()])
}

fn signed() -> Section {
    let chart = Bars {
        title: "Change of wo-tree against three designs (made-up data)".into(),
        description: "Made up: bars above and below zero.".into(),
        category: "against".into(),
        value: "change, %".into(),
        categories: owned(&["btree-log", "wb-tree", "fast-fair"]),
        series: vec![
            series("flushes", &[-84.1, -20.7, -31.2], &[-84.7, -22.2, -30.8]),
            series("time at 300 ns", &[-69.0, 4.4, -38.0], &[-71.0, -22.5, -43.3]),
        ],
        baseline: None,
        has_numbers: true,
    };
    let finding = "Made up: signed values stand around zero.";
    section("signed", "Bars around zero", finding, vec![chart.into()])
}

fn many() -> Section {
    let values: Vec<f64> = (0..DESIGNS.len()).map(|i| 0.4 + 3.0 * made_up(i)).collect();
    let chart = Bars {
        title: "Time of an insert, as a multiple of the store's own (made-up data)".into(),
        description: "Made up: one bar for each of 28 designs.".into(),
        category: "design".into(),
        value: "times the store's own".into(),
        categories: owned(&DESIGNS),
        series: vec![series("", &values, &[])],
        baseline: Some(Baseline { at: 1.0, name: "bristlecone".into() }),
        has_numbers: true,
    };
    let wide = |number: usize| {
        let value = |index: usize| 1e5 * (1.0 + made_up(index * 31 + number));
        series(&format!("series {number}"), &(0..6).map(value).collect::<Vec<_>>(), &[])
    };
    let series = Bars {
        title: "Ten series, more than there are colours (made-up data)".into(),
        description: "Made up: ten bars in each of six groups.".into(),
        category: "workload".into(),
        value: "operations a second".into(),
        categories: owned(&[
            "load",
            "A: half updates",
            "B: 5 % updates",
            "C: reads",
            "D",
            "E: scans",
        ]),
        series: (1..=10).map(wide).collect(),
        baseline: None,
        has_numbers: true,
    };
    let finding = "Made up: names that do not fit are turned, numbers too.";
    section("many", "Many bars", finding, vec![chart.into(), series.into()])
}

fn curve(name: &str, stroke: Stroke, points: &[(f64, f64)]) -> Curve {
    let points = points.iter().map(|&(x, y)| Point { x, y: Some(y) }).collect();
    Curve { name: name.into(), stroke, points }
}

fn lines() -> Section {
    const THREADS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0];
    let scaled = |most: f64, bound: f64, factor: f64| -> Vec<(f64, f64)> {
        THREADS.iter().map(|&x| (x, factor * (most * x).min(bound + x / 20.0))).collect()
    };
    let mut curves = Vec::new();
    for (name, most, bound) in
        [("ccl-btree", 0.9, 21.0), ("fptree", 0.8, 9.0), ("fast-fair", 0.7, 6.0)]
    {
        curves.push(curve(name, Stroke::Measured, &scaled(most, bound, 1.0)[..2]));
        curves.push(curve(name, Stroke::Projected, &scaled(most, bound, 1.0)));
        curves.push(curve(name, Stroke::Paper, &scaled(most, bound, 1.13)));
    }
    let chart = Lines {
        title: "Inserts by threads: two cores measured, more of them projected (made-up data)"
            .into(),
        description: "Made up: three designs, measured, projected and as a paper has it.".into(),
        x: Axis { label: "threads".into(), scale: Scale::Log2 },
        y: Axis { label: "million inserts a second".into(), scale: Scale::Linear },
        curves,
        baseline: None,
    };
    let finding = "Made up: a colour is a design, a stroke says where its numbers come from.";
    section("lines", "Curves of three strokes", finding, vec![chart.into()])
}

fn device() -> Section {
    let named = |(number, name): (usize, &&str)| {
        let point = |step: usize| {
            let x = 10f64.powf(2.0 + step as f64 / 2.0);
            let y = (step != 3 || number != 1)
                .then(|| 0.7 + made_up(number * 17) * 2.0 / (1.0 + step as f64 / 3.0));
            Point { x, y }
        };
        let points = (0..9).map(point).collect();
        Curve { name: (*name).into(), stroke: Stroke::Measured, points }
    };
    let chart = Lines {
        title: "Latency against DRAM, by size of the index, for nine designs (made-up data)".into(),
        description: "Made up: nine curves, one with a gap.".into(),
        x: Axis { label: "entries".into(), scale: Scale::Log10 },
        y: Axis { label: "times the latency in DRAM".into(), scale: Scale::Linear },
        curves: DESIGNS[11..20].iter().enumerate().map(named).collect(),
        baseline: Some(Baseline { at: 1.0, name: "DRAM".into() }),
    };
    let empty = Lines { title: "A chart without data".into(), ..Lines::default() };
    let finding = "Made up: marks have shapes, so that curves are told apart without colours.";
    section("device", "Curves with marks", finding, vec![chart.into(), empty.into()])
}

fn heat() -> Section {
    let columns = [
        "insert",
        "search",
        "update",
        "remove",
        "scan of 100",
        "load, sorted",
        "recovery after a crash",
    ];
    let cell = |row: usize, column: usize| {
        let value = 10f64.powf(3.0 * made_up(row * 7 + column) - 0.5);
        (row != 12 || column != 4).then_some(value)
    };
    let cells = (0..DESIGNS.len()).map(|row| (0..columns.len()).map(|c| cell(row, c)).collect());
    let chart = Heat {
        title: "28 designs in seven workloads (made-up data)".into(),
        description: "Made up: a matrix with one gap.".into(),
        row: "design".into(),
        column: "workload".into(),
        value: "ns an operation".into(),
        rows: owned(&DESIGNS),
        columns: owned(&columns),
        cells: cells.collect(),
        shade: Shade::ByColumn,
        scale: Scale::Log10,
        best: Best::Lowest,
    };
    let finding =
        "Made up: the outline is the best of a column, hatching is what was not measured.";
    section("heat", "A matrix", finding, vec![chart.into()])
}

fn strip() -> Section {
    let value = |index: usize| match index {
        index if index < 6 => Some(40_000.0 / (1.0 + index as f64)),
        index if index > 1_700 => Some(0.0),
        index if index % 257 == 0 => None,
        index => Some((1.0 + 400.0 * made_up(index).powi(4)).floor()),
    };
    let chart = Strip {
        title: "Wear of a small pool: writes by position (made-up data)".into(),
        description: "Made up: a few units are written far more often than the rest.".into(),
        unit: "XPLine of 256 B".into(),
        value: "media writes".into(),
        scale: Scale::Log10,
        values: (0..2_000).map(value).collect(),
    };
    let small = Strip {
        title: "Few units (made-up data)".into(),
        unit: "DIMM".into(),
        value: "media writes, million".into(),
        values: (0..6).map(|index| Some(3.0 + made_up(index))).collect(),
        ..Strip::default()
    };
    let finding = "Made up: the root and the log are hot, the end of the pool was never written.";
    section("strip", "Units by position", finding, vec![chart.into(), small.into()])
}

fn timeline() -> Section {
    let event =
        |text: &str, lane, mark, is_lost| TimelineEvent { text: text.into(), lane, mark, is_lost };
    let chart = Timeline {
        title: "An insert up to a crash (made-up data)".into(),
        description: "Made up: a commit store that precedes the fence of its record.".into(),
        lane: "offset of a line of 64 B".into(),
        events: vec![
            event("begin insert(7)", None, EventMark::None, false),
            event("W 0x1040 record", Some(0x1040), EventMark::Store, true),
            event("F 0x1040", Some(0x1040), EventMark::Flush, false),
            event("C 0x2000 bitmap", Some(0x2000), EventMark::Commit, false),
            event("| fence", None, EventMark::Fence, false),
            event("R 0x2038 latch", Some(0x2000), EventMark::Transient, false),
            event("crash", None, EventMark::Crash, false),
        ],
    };
    let finding = "Made up: the crash image has the commit store but lacks the record.";
    section("timeline", "Events up to a crash", finding, vec![chart.into()])
}

fn verdicts() -> Section {
    let row = |claim: &str, paper: f64, here: f64, (verdict, mark): (&str, Mark)| {
        let numbers = [paper, here].map(|value| Cell::number(Some(value)));
        let [paper, here] = numbers;
        vec![claim.into(), paper, here, Cell::from(verdict).marked(mark)]
    };
    let table = Table {
        caption: "Three made-up claims".into(),
        header: vec![
            Column::words("claim"),
            Column::numbers("the paper, %"),
            Column::numbers("here, %"),
            Column::words("verdict"),
        ],
        rows: vec![
            row("fewer flushes than btree-log", -84.7, -84.1, ("agrees", Mark::Good)),
            row("faster than wb-tree", -22.5, 4.4, ("differs in sign", Mark::Bad)),
            row("12 345 678 writes", 1_234.5, 1_200.0, ("near", Mark::Neutral)),
        ],
    };
    let note = "A note is a paragraph; <b>markup</b> & entities in it are text.".into();
    let blocks = vec![Block::Table(table), Block::Note(note)];
    let finding = "Made up: a mark is a sign as well as a colour.";
    Section {
        source: Some(Source::Modelled {
            command: "bristlecone-lab bench --device optane-100".into(),
            model: "optane-100".into(),
        }),
        ..section("verdicts", "Tables", finding, blocks)
    }
}
