//! The page as a whole: well formed, in need of nothing else, and every link leads somewhere.

use super::*;
use crate::figure::{BarSeries, Bars};
use crate::markup::{Element, parsed};
use crate::{Cell, Column, Mark, Table};

const HOSTILE: &str = "</style><script>alert('1')</script> & \"more\"";

fn page() -> Page {
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
    Page {
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
fn what_it_is_given_is_text() {
    let html = page().html();
    let root = parsed(&html).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(root.all("script").is_empty() && root.all("b").is_empty());
    assert!(root.all("h1")[0].text.contains("<script>"));
    // The title of the page, then one in each section.
    assert_eq!(root.all("style").len(), 1);
}

#[test]
fn it_needs_nothing_else() {
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
fn every_link_leads_to_one_place() {
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
fn a_section_says_where_its_numbers_come_from() {
    let root = parsed(&page().html()).expect("is well formed");
    let sources = root.all("p").into_iter().filter(|paragraph| paragraph.is_of("source"));
    let how: Vec<String> = sources.map(|source| source.all("span")[0].text.clone()).collect();
    let modelled = format!("model {HOSTILE}, virtual time");
    assert_eq!(how, ["counted", "timed on this machine", modelled.as_str()]);
}

#[test]
fn every_colour_is_set_and_dark_sets_the_same() {
    let dark = style::COLOURS.split("prefers-color-scheme:dark){").nth(1).unwrap_or_default();
    let colours = figure::STYLE.split("var(--").chain(style::STYLE.split("var(--")).skip(1);
    let names = colours.filter_map(|rest| rest.split(')').next());
    for name in names.filter(|name| name.len() <= 12 && !["c", "face"].contains(name)) {
        assert!(style::COLOURS.contains(&format!("--{name}:#")), "--{name} is not set");
        assert!(dark.contains(&format!("--{name}:#")), "--{name} has no dark");
    }
}

#[test]
fn an_empty_page_is_a_page() {
    let root = parsed(&Page::default().html()).expect("is well formed");
    assert!(root.all("nav").is_empty() && root.all("section").is_empty());
}

#[test]
fn a_picture_is_well_formed_and_has_its_colours_with_it() {
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
