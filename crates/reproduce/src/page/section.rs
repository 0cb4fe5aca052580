//! A section of the report: what was found, what shows it, and where it comes from.

use crate::Table;
use crate::figure::Chart;
use crate::text::{escaped, put};

/// A section of the report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// What links to it; the page makes it fit for a link, and unlike all others.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// What was found, in one sentence.
    pub finding: String,
    /// What shows it, from top to bottom.
    pub blocks: Vec<Block>,
    /// Where its numbers come from.
    pub source: Option<Source>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A drawing, with its data folded up under it.
    Chart(Chart),
    /// A table.
    Table(Table),
    /// A paragraph.
    Note(String),
}

impl<C: Into<Chart>> From<C> for Block {
    fn from(chart: C) -> Self {
        Self::Chart(chart.into())
    }
}

/// Where the numbers of a section come from. Each names the command that shows them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Counted: the same on any machine.
    Counted {
        /// The command.
        command: String,
    },
    /// Timed on the machine that the page names.
    Timed {
        /// The command.
        command: String,
    },
    /// Counted in the virtual time of a model of a device.
    Modelled {
        /// The command.
        command: String,
        /// The name of the model.
        model: String,
    },
}

impl Source {
    fn html(&self) -> String {
        let (command, how) = match self {
            Self::Counted { command } => (command, "counted".to_string()),
            Self::Timed { command } => (command, "timed on this machine".to_string()),
            Self::Modelled { command, model } => {
                (command, format!("model {}, virtual time", escaped(model)))
            }
        };
        format!("<p class=\"source\"><code>{}</code> <span>{how}</span></p>\n", escaped(command))
    }
}

impl Section {
    pub(super) fn write(&self, html: &mut String, anchor: &str) {
        let heading = escaped(&self.heading);
        put(html, format_args!("<section id=\"{anchor}\">\n<h2>{heading}</h2>\n"));
        if !self.finding.is_empty() {
            put(html, format_args!("<p class=\"finding\">{}</p>\n", escaped(&self.finding)));
        }
        for block in &self.blocks {
            match block {
                Block::Chart(chart) => {
                    put(html, format_args!("<figure>{}", chart.svg()));
                    put(
                        html,
                        format_args!(
                            "<details><summary>the data of this figure</summary>{}</details>\
                             </figure>\n",
                            chart.table().html()
                        ),
                    );
                }
                Block::Table(table) => html.push_str(&table.html()),
                Block::Note(text) => put(html, format_args!("<p>{}</p>\n", escaped(text))),
            }
        }
        if let Some(source) = &self.source {
            html.push_str(&source.html());
        }
        html.push_str("</section>\n");
    }
}
