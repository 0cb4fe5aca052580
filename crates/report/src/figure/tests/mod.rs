//! All charts on awkward data: drawings are well formed, and no text leaves its drawing or covers
//! data or other text.

mod boxes;

use super::*;
use crate::markup::{Element, parsed};
use boxes::{check, places, rectangle};

/// Names of many lengths, some with characters that markup must escape.
const NAMES: [&str; 7] = [
    "a",
    "wb-tree",
    "unsorted-bitmap-shadow",
    "recovery after a crash of the machine",
    "<b> & \"c\"",
    "onewordthatisfartoolongforanyplaceinanychartandcannotbebrokenatall",
    "",
];
fn names(count: usize, first: usize) -> Vec<String> {
    (0..count).map(|index| NAMES[(first + index) % NAMES.len()].to_string()).collect()
}

/// Returns values of all kinds, equal in each run.
fn values(count: usize, seed: usize) -> Vec<Option<f64>> {
    let value = |index: usize| {
        let turn = (seed * 31 + index * 17) % 101;
        match turn % 11 {
            0 => None,
            1 => Some(f64::NAN),
            2 => Some(0.0),
            3 if seed.is_multiple_of(2) => Some(-(turn as f64) * 1.37),
            4 if seed.is_multiple_of(3) => Some(turn as f64 * 98_765.4),
            _ => Some(turn as f64 * 0.731),
        }
    };
    (0..count).map(value).collect()
}

fn bars(groups: usize, series: usize, seed: usize) -> Bars {
    let one = |number: usize| BarSeries {
        name: NAMES[(number + seed) % NAMES.len()].into(),
        values: values(groups, seed + number),
        paper: if seed.is_multiple_of(2) { values(groups, seed + number + 1) } else { vec![] },
    };
    Bars {
        title: NAMES[(seed + 3) % NAMES.len()].repeat(1 + seed % 5),
        description: "a & b".into(),
        category: NAMES[seed % NAMES.len()].into(),
        value: NAMES[(seed + 1) % NAMES.len()].into(),
        categories: names(groups, seed),
        series: (0..series).map(one).collect(),
        baseline: (seed.is_multiple_of(3)).then(|| Baseline { at: 1.0, name: NAMES[2].into() }),
        has_numbers: true,
    }
}

#[test]
fn the_text_of_bars_stays_inside() {
    for groups in [1, 2, 3, 6, 13, 28, 45] {
        for series in [1, 2, 5, 10] {
            for seed in 0..7 {
                check(&bars(groups, series, seed).svg());
            }
        }
    }
}

fn lines(curves: usize, scale: Scale, seed: usize) -> Lines {
    let one = |number: usize| Curve {
        name: NAMES[(number + seed) % NAMES.len()].into(),
        stroke: [Stroke::Measured, Stroke::Projected, Stroke::Paper][(number + seed) % 3],
        points: values(9, seed + number)
            .into_iter()
            .enumerate()
            .map(|(x, y)| Point { x: 3f64.powf(x as f64) * 10f64.powf(seed as f64), y })
            .collect(),
    };
    Lines {
        title: NAMES[(seed + 3) % NAMES.len()].into(),
        description: String::new(),
        x: Axis { label: NAMES[seed % NAMES.len()].into(), scale },
        y: Axis { label: NAMES[(seed + 1) % NAMES.len()].into(), scale: Scale::Linear },
        curves: (0..curves).map(one).collect(),
        baseline: Some(Baseline { at: 1.0, name: "DRAM".into() }),
    }
}

#[test]
fn the_text_of_lines_stays_inside() {
    for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
        for curves in [1, 3, 9, 20] {
            for seed in 0..9 {
                let mut chart = lines(curves, scale, seed);
                check(&chart.svg());
                chart.y.scale = scale;
                check(&chart.svg());
            }
        }
    }
}

fn heat(rows: usize, columns: usize, seed: usize) -> Heat {
    Heat {
        title: NAMES[(seed + 3) % NAMES.len()].into(),
        row: "design".into(),
        column: NAMES[seed % NAMES.len()].into(),
        value: NAMES[(seed + 1) % NAMES.len()].into(),
        rows: names(rows, seed),
        columns: names(columns, seed + 1),
        cells: (0..rows).map(|row| values(columns, seed + row)).collect(),
        ..Heat::default()
    }
}

#[test]
fn the_text_of_matrices_stays_inside() {
    for rows in [1, 5, 28] {
        for columns in [1, 3, 7, 20] {
            for seed in 0..7 {
                let mut chart = heat(rows, columns, seed);
                check(&chart.svg());
                (chart.shade, chart.scale, chart.best) =
                    (Shade::Overall, Scale::Log10, Best::Highest);
                check(&chart.svg());
            }
        }
    }
}

#[test]
fn the_longest_numbers_widen_a_matrix() {
    let cells = vec![vec![Some(-1.23e-45); 20]; 3];
    check(&Heat { cells, ..heat(3, 20, 1) }.svg());
}

fn strip(units: usize, scale: Scale) -> Strip {
    Strip {
        title: NAMES[3].into(),
        unit: NAMES[5].into(),
        value: "writes".into(),
        scale,
        values: values(units, 4),
        ..Strip::default()
    }
}

#[test]
fn the_text_of_strips_stays_inside() {
    for units in [1, 3, 63, 64, 65, 2_048, 2_049, 100_000] {
        for scale in [Scale::Linear, Scale::Log10] {
            let chart = strip(units, scale);
            check(&chart.svg());
            assert!(chart.table().rows.len() <= 32);
        }
    }
}

fn timeline(events: usize, lanes: u64) -> Timeline {
    let event = |index: usize| TimelineEvent {
        text: format!("{} {}", index, NAMES[index % NAMES.len()]),
        lane: (!index.is_multiple_of(5)).then(|| 64 * (index as u64 * 7 % lanes) * 1_000),
        mark: EventMark::DRAWN[index % 6],
        is_lost: index == 1,
    };
    Timeline {
        title: NAMES[3].into(),
        description: "a & b".into(),
        lane: "offset of a line".into(),
        events: (0..events).map(event).collect(),
    }
}

#[test]
fn the_text_of_timelines_stays_inside() {
    for events in [1, 2, 9, 60] {
        for lanes in [1, 3, 40] {
            let chart = timeline(events, lanes);
            check(&chart.svg());
            assert_eq!(chart.table().rows.len(), events);
        }
    }
}

#[test]
fn a_lost_store_is_crossed_and_named_in_the_legend() {
    let root = check(&timeline(9, 3).svg());
    let lines = root.all("line");
    // The lane, and a cross in the legend and in the data.
    assert_eq!(lines.iter().filter(|line| line.has_class("lost")).count(), 5);
    let crashes = lines.iter().filter(|line| line.has_class("crash")).count();
    assert_eq!(crashes, 2, "one in the legend, one in the data");
    let texts = root.all("text");
    assert!(texts.iter().any(|text| text.text == "store that the crash image lacks"));
}

#[test]
fn a_chart_without_data_says_so() {
    let without = |chart: Bars| Bars { series: vec![], ..chart };
    let empty: [Chart; 7] = [
        Timeline::default().into(),
        Bars::default().into(),
        without(bars(3, 1, 1)).into(),
        Lines::default().into(),
        Heat { cells: vec![], ..heat(3, 3, 1) }.into(),
        Strip::default().into(),
        Strip { values: vec![None, Some(f64::INFINITY)], ..Strip::default() }.into(),
    ];
    for chart in empty {
        let root = check(&chart.svg());
        let texts = root.all("text");
        assert!(texts.iter().any(|text| text.text == "nothing was measured"), "{chart:?}");
        parsed(&chart.table().html()).expect("is well formed");
    }
}

/// Returns the tooltips of bars. Bars of the legend have none.
fn drawn_bars(root: &Element) -> Vec<String> {
    let groups = root.all("g").into_iter();
    groups.map(|group| group.children[0].text.clone()).collect()
}

#[test]
fn a_missing_value_is_a_gap_and_zero_is_not() {
    let categories = ["none", "nan", "zero", "one"].map(String::from).to_vec();
    let values = vec![None, Some(f64::NAN), Some(0.0), Some(1.0)];
    let series = vec![BarSeries { name: "x".into(), values, paper: vec![] }];
    let chart = Bars { categories, series, ..Bars::default() };
    assert_eq!(drawn_bars(&check(&chart.svg())), ["zero, x: 0", "one, x: 1"]);
    let cells: Vec<_> = chart.table().rows.iter().map(|row| row[1].text.clone()).collect();
    assert_eq!(cells, ["\u{2013}", "\u{2013}", "0", "1"]);
}

#[test]
fn a_gap_breaks_a_curve() {
    let ys = [Some(1.0), Some(2.0), None, Some(3.0), Some(f64::NAN), Some(4.0)];
    let points = ys.iter().zip(1u8..).map(|(&y, x)| Point { x: x.into(), y }).collect();
    let curves = vec![Curve { name: "c".into(), stroke: Stroke::Measured, points }];
    let root = check(&Lines { curves, ..Lines::default() }.svg());
    let paths = root.all("path");
    let curve = paths.iter().find(|path| path.has_class("curve")).expect("is drawn");
    assert_eq!(curve.get("d").matches('M').count(), 3);
    assert_eq!(curve.get("d").matches('L').count(), 1);
}

#[test]
fn a_published_value_is_drawn_at_its_height() {
    let values = vec![Some(10.0)];
    let paper = vec![Some(5.0)];
    let series = vec![BarSeries { name: "x".into(), values, paper }];
    let chart = Bars { categories: vec!["c".into()], series, ..Bars::default() };
    let root = check(&chart.svg());
    let mut bars = root.all("rect").into_iter().filter(|rect| rect.has_class("bar"));
    let bar = bars.next_back().map(rectangle).expect("is drawn");
    let mut paths = root.all("path").into_iter();
    let said = paths.rfind(|path| path.has_class("said")).expect("is drawn");
    let heights: Vec<f64> = places(said).iter().map(|place| place[0].1).collect();
    let middle = heights.iter().sum::<f64>() / heights.len() as f64;
    assert!((middle - f64::midpoint(bar[0].1, bar[2].1)).abs() < 1.0, "{middle} in {bar:?}");
    assert!(chart.table().header.iter().any(|column| column.name == "x, the paper"));
}

#[test]
fn the_best_cell_of_a_column_is_outlined() {
    let mut chart = heat(2, 2, 1);
    chart.cells = vec![vec![Some(1.0), Some(5.0)], vec![Some(2.0), Some(5.0)]];
    let strong = |chart: &Heat| {
        let root = check(&chart.svg());
        let texts = root.all("text").into_iter().filter(|text| text.has_class("strong"));
        texts.map(|text| text.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(strong(&chart), ["1", "5", "5"]);
    chart.best = Best::Highest;
    assert_eq!(strong(&chart), ["2", "5", "5"]);
}

#[test]
fn a_legend_names_each_series_and_each_kind() {
    let chart = lines(3, Scale::Log2, 0);
    let root = check(&chart.svg());
    let texts: Vec<&str> = root.all("text").iter().map(|text| text.text.as_str()).collect();
    for name in ["a", "wb-tree", "measured", "projected from a device model", "the paper", "DRAM"] {
        assert!(texts.contains(&name), "{name} in {texts:?}");
    }
}

#[test]
fn each_texture_of_the_style_sheet_exists() {
    parsed(TEXTURES).expect("is well formed");
    for used in STYLE.split("url(#").skip(1) {
        let name = used.split(')').next().unwrap_or_default();
        assert!(TEXTURES.contains(&format!("id=\"{name}\"")), "{name}");
    }
}

#[test]
fn numbers_on_the_highest_bars_do_not_cover_the_axis_label() {
    for (groups, said) in [(4, None), (4, Some(100.0)), (28, None), (28, Some(100.0))] {
        let categories = (0..groups).map(|group| format!("group {group}")).collect();
        // The highest bar almost reaches the end of its axis, so it leaves no room for its number.
        let one = |value| vec![Some(value); groups];
        let paper = said.map(one).unwrap_or_default();
        let series = vec![BarSeries { name: "x".into(), values: one(99.94), paper }];
        let value = "what the axis counts is a matter of many words ".repeat(3);
        let chart = Bars { categories, series, value, has_numbers: true, ..Bars::default() };
        let root = check(&chart.svg());
        let numbers = root.all("text").into_iter().filter(|text| text.has_class("number")).count();
        assert_eq!(numbers, groups);
    }
}

#[test]
fn the_longest_tick_labels_do_not_overlap() {
    let ends = [(-1e99, -1.2e98), (-1e99, 9.3e98), (1e-99, 1e-90), (1e-60, 1e60), (1e5, 1.1e5)];
    for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
        for (low, high) in ends {
            let points = [low, high].map(|x| Point { x, y: Some(1.0) }).to_vec();
            let curves = vec![Curve { name: "c".into(), stroke: Stroke::Measured, points }];
            let x = Axis { label: "seconds".into(), scale };
            check(&Lines { x, curves, ..Lines::default() }.svg());
        }
    }
}

#[test]
fn a_baseline_outside_the_scale_is_not_drawn() {
    let count = |chart: Chart| {
        let root = check(&chart.svg());
        root.all("line").into_iter().filter(|line| line.has_class("baseline")).count()
    };
    for (at, scale, expected) in [
        (f64::NAN, Scale::Linear, 0),
        (f64::INFINITY, Scale::Linear, 0),
        (0.0, Scale::Log10, 0),
        // One in the legend, one in the data area.
        (0.0, Scale::Linear, 2),
    ] {
        let baseline = Some(Baseline { at, name: "DRAM".into() });
        let mut chart = lines(1, Scale::Linear, 1);
        (chart.y.scale, chart.baseline) = (scale, baseline.clone());
        assert_eq!(count(chart.into()), expected, "{at} on {scale:?}");
        if scale == Scale::Linear {
            assert_eq!(count(Bars { baseline, ..bars(3, 1, 1) }.into()), expected, "{at}");
        }
    }
}
