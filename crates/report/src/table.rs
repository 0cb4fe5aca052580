//! Tables: a header, rows of cells, and marks on cells.
//!
//! Numbers are right-aligned. The style sheet shows a mark by a colour and by a sign before the
//! text, so colour-blind readers can tell marks apart.

use crate::number::{drawable, full};
use crate::text::{append, escaped};

/// The judgement that a cell's colour and sign express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A good result: green, with a tick.
    Good,
    /// A bad result: red, with a cross.
    Bad,
    /// A result that is neither, or still open: grey, with a ring.
    Neutral,
}

/// The heading and the alignment of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The text of the heading, with the unit of the column's numbers.
    pub name: String,
    /// `true` if the column holds numbers, which are right-aligned.
    pub is_numeric: bool,
}

impl Column {
    /// Creates a column of left-aligned text.
    pub fn words(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_numeric: false }
    }

    /// Creates a column of right-aligned numbers.
    pub fn numbers(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_numeric: true }
    }
}

/// A cell: its text and an optional mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text, not escaped yet.
    pub text: String,
    /// The judgement to show; `None` shows the text alone.
    pub mark: Option<Mark>,
}

impl Cell {
    /// Creates a cell with a number in up to six significant digits, or a dash if it is missing.
    pub fn number(value: Option<f64>) -> Self {
        drawable(value).map_or_else(|| "\u{2013}".into(), full).into()
    }

    /// Returns the cell with its mark set.
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

/// A table. Cells missing at the end of a row are empty; cells beyond the header are not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The caption above the table; empty for none.
    pub caption: String,
    /// The columns, from left to right.
    pub header: Vec<Column>,
    /// The rows from top to bottom, each with its cells from left to right.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns the table as HTML, with all text escaped.
    pub fn html(&self) -> String {
        let mut html = String::from("<div class=\"wide\"><table>");
        if !self.caption.is_empty() {
            append(&mut html, format_args!("<caption>{}</caption>", escaped(&self.caption)));
        }
        html.push_str("<thead><tr>");
        for column in &self.header {
            let class = class_of(column, None);
            let name = escaped(&column.name);
            append(&mut html, format_args!("<th scope=\"col\"{class}>{name}</th>"));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (number, column) in self.header.iter().enumerate() {
                let cell = row.get(number);
                let class = class_of(column, cell.and_then(|cell| cell.mark));
                let text = escaped(cell.map_or("", |cell| &cell.text));
                append(&mut html, format_args!("<td{class}>{text}</td>"));
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
    fn each_cell_is_below_its_column() {
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
