//! Tables: rows of cells, numbers to the right, a cell marked where it says how a claim fares.
//!
//! A mark is never only a colour: it has a sign before the text as well.

use crate::number::{drawable, full};
use crate::text::{escaped, put};

/// How a cell is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As hoped for.
    Good,
    /// Not as hoped for.
    Bad,
    /// Neither: a matter that is open, or of no weight.
    Neutral,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What stands above it, with its unit.
    pub name: String,
    /// Whether its cells are numbers, which stand to the right.
    pub is_numeric: bool,
}

impl Column {
    /// A column of words.
    pub fn words(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_numeric: false }
    }

    /// A column of numbers.
    pub fn numbers(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_numeric: true }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// How it is to be read, where that is not plain from the text.
    pub mark: Option<Mark>,
}

impl Cell {
    /// A number, or a dash where there is none.
    pub fn number(value: Option<f64>) -> Self {
        drawable(value).map_or_else(|| "\u{2013}".into(), full).into()
    }

    /// The same cell with a mark.
    #[must_use]
    pub fn marked(self, mark: Mark) -> Self {
        Self { mark: Some(mark), ..self }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, mark: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

/// A table. A row may be shorter than the header: what is not there is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What the table is about; nothing, if what stands before it says so.
    pub caption: String,
    /// Its columns.
    pub header: Vec<Column>,
    /// Its rows, each a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The table in HTML.
    pub fn html(&self) -> String {
        let mut html = String::from("<div class=\"wide\"><table>");
        if !self.caption.is_empty() {
            put(&mut html, format_args!("<caption>{}</caption>", escaped(&self.caption)));
        }
        html.push_str("<thead><tr>");
        for column in &self.header {
            let class = class_of(column, None);
            let name = escaped(&column.name);
            put(&mut html, format_args!("<th scope=\"col\"{class}>{name}</th>"));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (number, column) in self.header.iter().enumerate() {
                let cell = row.get(number);
                let class = class_of(column, cell.and_then(|cell| cell.mark));
                let text = escaped(cell.map_or("", |cell| &cell.text));
                put(&mut html, format_args!("<td{class}>{text}</td>"));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

fn class_of(column: &Column, mark: Option<Mark>) -> String {
    let mark = mark.map(|mark| match mark {
        Mark::Good => "good",
        Mark::Bad => "bad",
        Mark::Neutral => "neutral",
    });
    let classes: Vec<&str> = column.is_numeric.then_some("n").into_iter().chain(mark).collect();
    if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup;

    #[test]
    fn cells_stand_under_their_columns() {
        let table = Table {
            caption: "a < b".into(),
            header: vec![Column::words("design"), Column::numbers("flushes & fences")],
            rows: vec![
                vec!["<b>".into(), Cell::number(Some(1_234.0)).marked(Mark::Bad)],
                vec!["short".into()],
                vec!["odd".into(), Cell::number(Some(f64::NAN))],
            ],
        };
        let html = table.html();
        markup::parsed(&html).expect("is well formed");
        assert!(html.contains("<td>&lt;b&gt;</td><td class=\"n bad\">1 234</td>"), "{html}");
        assert!(html.contains("<td>short</td><td class=\"n\"></td>"), "{html}");
        assert!(html.contains("<td>odd</td><td class=\"n\">\u{2013}</td>"), "{html}");
    }
}
