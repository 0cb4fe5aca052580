//! The SVG writer: elements with coordinates and a class, which the style sheet gives its look.

use crate::text::{self, append, escaped, wrapped};
use core::fmt::{self, Arguments, Display, Formatter};

/// The default width of a drawing, in pixels.
pub(super) const WIDTH: f64 = 896.0;
/// The margin at all edges of a drawing, in pixels.
pub(super) const MARGIN: f64 = 12.0;
/// The size of text at ticks, in legends and at axes, in pixels.
pub(super) const TEXT: f64 = 12.0;
/// The size of numbers on data, in pixels.
pub(super) const SMALL: f64 = 11.0;
/// The line height, relative to the text size.
pub(super) const LEADING: f64 = 1.25;
const TITLE: f64 = 15.0;
const TITLE_LINES_MAX: usize = 3;
/// The distance from the bottom of a text up to its baseline, relative to the text size.
pub(super) const DESCENT: f64 = 0.25;

/// A length in pixels, printed to a tenth: smaller steps are invisible.
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // Adding 0.0 turns a negative zero into zero.
        write!(formatter, "{}", (self.0 * 10.0).round() / 10.0 + 0.0)
    }
}

/// The part of a text that lies at its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The size, the alignment and the class of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextStyle {
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    pub(super) class: &'static str,
    /// The rotation about the point of the text, in degrees clockwise.
    pub(super) turn: i32,
}

impl TextStyle {
    pub(super) const fn new(size: f64, anchor: Anchor) -> Self {
        Self { size, anchor, class: "", turn: 0 }
    }

    pub(super) const fn dim(self) -> Self {
        Self { class: "dim", ..self }
    }
}

/// A rectangle, in pixels from the top left corner of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// An unfinished drawing. Its height is known only at the end, so `finish` writes the head.
pub(super) struct Canvas {
    pub(super) width: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64) -> Self {
        Self { width, body: String::new() }
    }

    fn put(&mut self, what: Arguments<'_>) {
        append(&mut self.body, what);
    }

    /// Writes a text; `y` is its baseline.
    pub(super) fn text(&mut self, x: f64, y: f64, style: TextStyle, text: &str) {
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (Px(x), Px(y));
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\"",
            style.size
        ));
        if !style.class.is_empty() {
            self.put(format_args!(" class=\"{}\"", style.class));
        }
        if style.turn != 0 {
            self.put(format_args!(" transform=\"rotate({} {x} {y})\"", style.turn));
        }
        self.put(format_args!(">{}</text>\n", escaped(text)));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.put(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>\n",
            Px(from.0),
            Px(from.1),
            Px(to.0),
            Px(to.1)
        ));
    }

    pub(super) fn rect(&mut self, area: Area, class: &str) {
        self.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>\n",
            Px(area.x),
            Px(area.y),
            Px(area.width),
            Px(area.height)
        ));
    }

    /// Draws a path; `shape` is its SVG path data.
    pub(super) fn path(&mut self, shape: &str, class: &str) {
        self.put(format_args!("<path d=\"{shape}\" class=\"{class}\"/>\n"));
    }

    /// Begins a group with a tooltip.
    pub(super) fn begin(&mut self, hint: &str) {
        self.put(format_args!("<g><title>{}</title>\n", escaped(hint)));
    }

    /// Ends the group that [`Canvas::begin`] began.
    pub(super) fn end(&mut self) {
        self.put(format_args!("</g>\n"));
    }

    /// Writes the title at the top left, and returns the y below it.
    pub(super) fn title(&mut self, title: &str) -> f64 {
        let room = (self.width - 2.0 * MARGIN) / text::BOLD;
        let style = TextStyle { class: "title", ..TextStyle::new(TITLE, Anchor::Start) };
        let mut bottom = MARGIN;
        for line in wrapped(title, TITLE, room, TITLE_LINES_MAX) {
            bottom += TITLE * LEADING;
            self.text(MARGIN, bottom - DESCENT * TITLE, style, &line);
        }
        bottom
    }

    /// Returns the drawing; screen readers read `title` and `description`.
    pub(super) fn finish(self, height: f64, title: &str, description: &str) -> String {
        let (width, height) = (Px(self.width), Px(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{}</svg>\n",
            escaped(title),
            escaped(description),
            self.body
        )
    }
}

/// Returns the drawing of a chart without data.
pub(super) fn no_data(title: &str, description: &str) -> String {
    const HEIGHT: f64 = 96.0;
    let mut canvas = Canvas::new(WIDTH);
    let top = canvas.title(title) + MARGIN;
    let area = Area { x: MARGIN, y: top, width: WIDTH - 2.0 * MARGIN, height: HEIGHT };
    canvas.rect(area, "empty");
    let style = TextStyle::new(TEXT, Anchor::Middle).dim();
    canvas.text(WIDTH / 2.0, top + HEIGHT / 2.0, style, "nothing was measured");
    canvas.finish(top + HEIGHT + MARGIN, title, description)
}
