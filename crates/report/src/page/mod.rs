//! The HTML writer: a report with contents, sections, charts and tables in one file.
//!
//! The file loads nothing and runs no script. It follows the system's choice of light or dark, and
//! prints in black on white. All text is escaped, so it can never become markup.

mod section;
mod style;
#[cfg(test)]
mod tests;

pub use section::{Block, Section, Source};

use crate::figure;
use crate::text::{append, escaped};

/// Returns `chart` as a complete SVG file with its styles, to be shown as an image.
pub fn picture(chart: &figure::Chart) -> String {
    let drawing = chart.svg();
    let Some((head, rest)) = drawing.split_once('>') else { return drawing };
    format!(
        "{head}><style>{}{}svg.chart{{background:var(--ground)}}</style>\n{}{rest}",
        style::COLOURS,
        figure::STYLE,
        figure::TEXTURES
    )
}

/// A report: its head and its sections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportPage {
    /// The title of the page.
    pub title: String,
    /// The machine of the measurements, in a few words; empty for none.
    pub machine: String,
    /// The date of the measurements, such as `2026-11-22`; empty for none.
    pub date: String,
    /// The paragraphs between the title and the contents.
    pub introduction: Vec<String>,
    /// The sections, from top to bottom.
    pub sections: Vec<Section>,
}

impl ReportPage {
    /// Returns the page as a complete HTML file.
    pub fn html(&self) -> String {
        let mut html = String::new();
        let title = escaped(&self.title);
        append(
            &mut html,
            format_args!(
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
                 <meta name=\"color-scheme\" content=\"light dark\">\
                 <title>{title}</title>\n<style>{}{}{}</style></head>\n<body>\n{}\
                 <header><h1>{title}</h1>\n",
                style::COLOURS,
                style::STYLE,
                figure::STYLE,
                figure::TEXTURES
            ),
        );
        let where_and_when = [&self.machine, &self.date].map(|part| escaped(part));
        let parts: Vec<&str> = where_and_when.iter().map(String::as_str).collect();
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if !parts.is_empty() {
            append(&mut html, format_args!("<p class=\"when\">{}</p>\n", parts.join(" &#183; ")));
        }
        for paragraph in &self.introduction {
            append(&mut html, format_args!("<p>{}</p>\n", escaped(paragraph)));
        }
        html.push_str("</header>\n");
        let anchors = anchors(&self.sections);
        self.contents(&mut html, &anchors);
        html.push_str("<main>\n");
        for (section, anchor) in self.sections.iter().zip(&anchors) {
            section.write(&mut html, anchor);
        }
        html.push_str("</main>\n</body></html>\n");
        html
    }

    /// Writes the table of contents, with the finding of each section.
    fn contents(&self, html: &mut String, anchors: &[String]) {
        if self.sections.is_empty() {
            return;
        }
        html.push_str("<nav aria-label=\"contents\"><h2>Contents</h2>\n<ol>\n");
        for (section, anchor) in self.sections.iter().zip(anchors) {
            let (heading, finding) = (escaped(&section.heading), escaped(&section.finding));
            append(html, format_args!("<li><a href=\"#{anchor}\">{heading}</a>"));
            if !finding.is_empty() {
                append(html, format_args!("<span class=\"found\">{finding}</span>"));
            }
            html.push_str("</li>\n");
        }
        html.push_str("</ol></nav>\n");
    }
}

/// Returns a distinct anchor for each section, made of characters that are valid in any link.
fn anchors(sections: &[Section]) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for section in sections {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        // The prefix keeps anchors apart from the ids of textures.
        let name: String = "at-".chars().chain(section.id.chars().map(plain)).collect();
        let mut anchor = name.clone();
        let mut number = 2;
        while anchors.contains(&anchor) {
            anchor = format!("{name}-{number}");
            number += 1;
        }
        anchors.push(anchor);
    }
    anchors
}
