//! Sections: a finding, the charts and tables that support it, and the source of the numbers.

use crate::figure::Chart;
use crate::table::Table;
use crate::text::{append, escaped};

/// A section of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The id for links. The page replaces characters that are invalid in a link, and makes ids
    /// distinct.
    pub id: String,
    /// The heading, also shown in the contents.
    pub heading: String,
    /// The result in one sentence, also shown in the contents; empty for none.
    pub finding: String,
    /// The charts, tables and paragraphs, from top to bottom.
    pub blocks: Vec<Block>,
    /// The origin of the numbers; `None` shows no line about it.
    pub source: Option<Source>,
}

/// A chart, a table or a paragraph of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A chart. Below it, a collapsed element shows its data as a table.
    Chart(Chart),
    /// A table, always visible.
    Table(Table),
    /// A paragraph of plain text.
    Note(String),
}

impl<C: Into<Chart>> From<C> for Block {
    fn from(chart: C) -> Self {
        Self::Chart(chart.into())
    }
}

/// The origin of the numbers of a section, with the command that reproduces them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Counts, which are equal on every machine.
    Counted {
        /// The command line that counts them again.
        command: String,
    },
    /// Times on the machine that the page names.
    Timed {
        /// The command line that times them again.
        command: String,
    },
    /// Virtual times of a device model, which are equal on every machine.
    Modelled {
        /// The command line that models them again.
        command: String,
        /// The name of the device model.
        model: String,
    },
}

impl Source {
    fn html(&self) -> String {
        let (command, how) = match self {
            Self::Counted { command } => (command, "counted: equal on every machine".to_string()),
            Self::Timed { command } => (command, "timed on this machine".to_string()),
            Self::Modelled { command, model } => {
                (command, format!("virtual time of the device model {}", escaped(model)))
            }
        };
        format!("<p class=\"source\"><code>{}</code> <span>{how}</span></p>\n", escaped(command))
    }
}

impl Section {
    pub(super) fn write(&self, html: &mut String, anchor: &str) {
        let heading = escaped(&self.heading);
        append(html, format_args!("<section id=\"{anchor}\">\n<h2>{heading}</h2>\n"));
        if !self.finding.is_empty() {
            append(html, format_args!("<p class=\"finding\">{}</p>\n", escaped(&self.finding)));
        }
        for block in &self.blocks {
            match block {
                Block::Chart(chart) => {
                    append(html, format_args!("<figure>{}", chart.svg()));
                    append(
                        html,
                        format_args!(
                            "<details><summary>data of this figure</summary>{}</details>\
                             </figure>\n",
                            chart.table().html()
                        ),
                    );
                }
                Block::Table(table) => html.push_str(&table.html()),
                Block::Note(text) => append(html, format_args!("<p>{}</p>\n", escaped(text))),
            }
        }
        if let Some(source) = &self.source {
            html.push_str(&source.html());
        }
        html.push_str("</section>\n");
    }
}
