//! The whole page: well formed, self-contained, and without dangling links.

use super::*;
use crate::figure::{BarSeries, Bars};
use crate::markup::{Element, parsed};
use crate::table::{Cell, Column, Mark, Table};

const HOSTILE: &str = "</style><script>alert('1')</script> & \"more\"";

fn page() -> ReportPage {
    let series = vec![BarSeries { name: HOSTILE.into(), values: vec![Some(1.0)], paper: vec![] }];
    let categories = vec![HOSTILE.into()];
    let chart = Bars { title: HOSTILE.into(), categories, series, ..Bars::default() };
    let table = Table {
        caption: HOSTILE.into(),
        header: vec![Column::words(HOSTILE)],
        rows: vec![vec![Cell::from(HOSTILE).marked(Mark::Neutral)]],
    };
    let section = |id: &str, source| Section {
        id: id.into(),
        heading: HOSTILE.into(),
        finding: HOSTILE.into(),
        blocks: vec![
            chart.clone().into(),
            Block::Table(table.clone()),
            Block::Note(HOSTILE.into()),
        ],
        source,
    };
    let command = || HOSTILE.to_string();
    ReportPage {
        title: HOSTILE.into(),
        machine: HOSTILE.into(),
        date: HOSTILE.into(),
        introduction: vec![HOSTILE.into()],
        sections: vec![
            section("fig 10(a)", Some(Source::Counted { command: command() })),
            section("fig 10(a)", Some(Source::Timed { command: command() })),
            section("", Some(Source::Modelled { command: command(), model: HOSTILE.into() })),
            section("\"><b>", None),
        ],
    }
}

fn identifiers(element: &Element, found: &mut Vec<String>) {
    found.extend(element.attributes.get("id").cloned());
    element.children.iter().for_each(|child| identifiers(child, found));
}

#[test]
fn input_is_escaped() {
    let html = page().html();
    let root = parsed(&html).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(root.all("script").is_empty() && root.all("b").is_empty());
    assert!(root.all("h1")[0].text.contains("<script>"));
    assert_eq!(root.all("style").len(), 1);
}

#[test]
fn the_page_is_self_contained() {
    let html = page().html();
    let root = parsed(&html).expect("is well formed");
    for name in ["script", "link", "img", "iframe", "object"] {
        assert!(root.all(name).is_empty(), "{name}");
    }
    assert!(!html.contains("@import") && !html.contains("src="));
    let without_namespace = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!without_namespace.contains("://"));
    let urls = html.split("url(").skip(1);
    assert!(urls.into_iter().all(|url| url.starts_with('#')));
}

#[test]
fn every_link_has_one_target() {
    let root = parsed(&page().html()).expect("is well formed");
    let mut found = Vec::new();
    identifiers(&root, &mut found);
    let mut once = found.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), found.len(), "{found:?}");
    let links = root.all("a");
    assert_eq!(links.len(), 4);
    for link in links {
        let target = link.get("href").strip_prefix('#').expect("is a place in the page");
        assert!(found.iter().any(|id| id == target), "{target}");
        assert!(target.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{target}");
    }
}

#[test]
fn every_figure_has_its_data_as_a_table() {
    let root = parsed(&page().html()).expect("is well formed");
    let figures = root.all("figure");
    assert_eq!(figures.len(), 4);
    for figure in figures {
        assert_eq!((figure.all("svg").len(), figure.all("details").len()), (1, 1));
        assert_eq!(figure.all("details")[0].all("table").len(), 1);
    }
}

#[test]
fn a_section_names_the_origin_of_its_numbers() {
    let root = parsed(&page().html()).expect("is well formed");
    let sources = root.all("p").into_iter().filter(|paragraph| paragraph.has_class("source"));
    let how: Vec<String> = sources.map(|source| source.all("span")[0].text.clone()).collect();
    let modelled = format!("virtual time of the device model {HOSTILE}");
    assert_eq!(
        how,
        ["counted: equal on every machine", "timed on this machine", modelled.as_str()]
    );
}

#[test]
fn every_colour_is_set_for_light_and_for_dark() {
    let dark = style::COLOURS.split("prefers-color-scheme:dark){").nth(1).unwrap_or_default();
    let colours = figure::STYLE.split("var(--").chain(style::STYLE.split("var(--")).skip(1);
    let names = colours.filter_map(|rest| rest.split(')').next());
    for name in names.filter(|name| name.len() <= 12 && !["c", "face", "mono"].contains(name)) {
        assert!(style::COLOURS.contains(&format!("--{name}:#")), "--{name} is not set");
        assert!(dark.contains(&format!("--{name}:#")), "--{name} has no dark");
    }
}

#[test]
fn an_empty_page_is_a_page() {
    let root = parsed(&ReportPage::default().html()).expect("is well formed");
    assert!(root.all("nav").is_empty() && root.all("section").is_empty());
}

#[test]
fn a_picture_is_well_formed_and_contains_its_colours() {
    let chart = figure::Chart::from(Bars {
        title: "A & B".into(),
        categories: vec!["x".into()],
        series: vec![BarSeries { name: "y".into(), values: vec![Some(1.0)], paper: Vec::new() }],
        ..Bars::default()
    });
    let picture = picture(&chart);
    parsed(&picture).expect("is well formed");
    for part in ["--s1:#", ".bar{fill", "texture-2", "</svg>"] {
        assert!(picture.contains(part), "{part}");
    }
}
