//! The report: one file of HTML that holds all it shows.
//!
//! It asks for nothing else, runs nothing, follows the reader's choice of light or dark, and prints
//! in black on white. Words are taken as text, never as markup.

mod section;
mod style;
#[cfg(test)]
mod tests;

pub use section::{Block, Section, Source};

use crate::figure;
use crate::text::{escaped, put};

/// `chart` as a file of its own, in SVG: for a document that shows it as a picture.
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

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What the report is about.
    pub title: String,
    /// The machine that measured, in a few words.
    pub machine: String,
    /// The day that it measured, as `2026-11-22`.
    pub date: String,
    /// What a reader needs to know first: paragraphs.
    pub introduction: Vec<String>,
    /// What was found.
    pub sections: Vec<Section>,
}

impl Page {
    /// The page in HTML.
    pub fn html(&self) -> String {
        let mut html = String::new();
        let title = escaped(&self.title);
        put(
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
            put(&mut html, format_args!("<p class=\"when\">{}</p>\n", parts.join(" &#183; ")));
        }
        for paragraph in &self.introduction {
            put(&mut html, format_args!("<p>{}</p>\n", escaped(paragraph)));
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

    /// The table of contents, with what each section finds.
    fn contents(&self, html: &mut String, anchors: &[String]) {
        if self.sections.is_empty() {
            return;
        }
        html.push_str("<nav aria-label=\"contents\"><h2>Contents</h2>\n<ol>\n");
        for (section, anchor) in self.sections.iter().zip(anchors) {
            let (heading, finding) = (escaped(&section.heading), escaped(&section.finding));
            put(html, format_args!("<li><a href=\"#{anchor}\">{heading}</a>"));
            if !finding.is_empty() {
                put(html, format_args!("<span class=\"found\">{finding}</span>"));
            }
            html.push_str("</li>\n");
        }
        html.push_str("</ol></nav>\n");
    }
}

/// What links to each section: its name in characters that any link can hold, each once.
fn anchors(sections: &[Section]) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for section in sections {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        // The word in front keeps clear of names that the page has for itself.
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
