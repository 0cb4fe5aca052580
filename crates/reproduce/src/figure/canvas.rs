//! What drawings are made on: text with elements of SVG, each with a class that the page styles.

use crate::text::{self, escaped, put, wrapped};
use core::fmt::{self, Arguments, Display, Formatter};

/// Width of a drawing that has no reason to be wider, in pixels.
pub(super) const WIDTH: f64 = 896.0;
/// Room at the edges of a drawing, in pixels.
pub(super) const MARGIN: f64 = 12.0;
/// Size of the text at ticks, in legends and at axes, in pixels.
pub(super) const TEXT: f64 = 12.0;
/// Size of numbers on data, in pixels.
pub(super) const SMALL: f64 = 11.0;
/// From one line of text to the next, as a part of its size.
pub(super) const LEADING: f64 = 1.25;
const TITLE: f64 = 15.0;
const TITLE_LINES_MAX: usize = 3;
/// From the bottom of a text to the line it stands on, as a part of its size.
pub(super) const DESCENT: f64 = 0.25;

/// A length for people and parsers: a tenth of a pixel is seen by nobody.
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // The sum turns a negative zero into zero.
        write!(formatter, "{}", (self.0 * 10.0).round() / 10.0 + 0.0)
    }
}

/// Where a text stands about its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hand {
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    pub(super) class: &'static str,
    /// Degrees that it is turned about its point, clockwise.
    pub(super) turn: i32,
}

impl Hand {
    pub(super) const fn new(size: f64, anchor: Anchor) -> Self {
        Self { size, anchor, class: "", turn: 0 }
    }

    pub(super) const fn dim(self) -> Self {
        Self { class: "dim", ..self }
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A drawing in the making; its height is known at the end.
pub(super) struct Canvas {
    pub(super) width: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64) -> Self {
        Self { width, body: String::new() }
    }

    fn put(&mut self, what: Arguments<'_>) {
        put(&mut self.body, what);
    }

    /// A text; `y` is the line that it stands on.
    pub(super) fn text(&mut self, x: f64, y: f64, hand: Hand, text: &str) {
        let anchor = match hand.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (Px(x), Px(y));
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\"",
            hand.size
        ));
        if !hand.class.is_empty() {
            self.put(format_args!(" class=\"{}\"", hand.class));
        }
        if hand.turn != 0 {
            self.put(format_args!(" transform=\"rotate({} {x} {y})\"", hand.turn));
        }
        self.put(format_args!(">{}</text>\n", escaped(text)));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.put(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>\n",
            Px(from.0),
            Px(from.1),
            Px(to.0),
            Px(to.1)
        ));
    }

    /// A rectangle.
    pub(super) fn rect(&mut self, area: Area, class: &str) {
        self.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>\n",
            Px(area.x),
            Px(area.y),
            Px(area.width),
            Px(area.height)
        ));
    }

    /// A path of any shape.
    pub(super) fn path(&mut self, shape: &str, class: &str) {
        self.put(format_args!("<path d=\"{shape}\" class=\"{class}\"/>\n"));
    }

    /// Begins a group that says what it is when the reader points at it.
    pub(super) fn begin(&mut self, hint: &str) {
        self.put(format_args!("<g><title>{}</title>\n", escaped(hint)));
    }

    /// Ends what [`Canvas::begin`] began.
    pub(super) fn end(&mut self) {
        self.put(format_args!("</g>\n"));
    }

    /// The title in the upper left corner; where the rest of the drawing may begin.
    pub(super) fn title(&mut self, title: &str) -> f64 {
        let room = (self.width - 2.0 * MARGIN) / text::BOLD;
        let hand = Hand { class: "title", ..Hand::new(TITLE, Anchor::Start) };
        let mut bottom = MARGIN;
        for line in wrapped(title, TITLE, room, TITLE_LINES_MAX) {
            bottom += TITLE * LEADING;
            self.text(MARGIN, bottom - DESCENT * TITLE, hand, &line);
        }
        bottom
    }

    /// The drawing, with words for those who cannot see it.
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

/// What is drawn where there is no data.
pub(super) fn nothing(title: &str, description: &str) -> String {
    const HEIGHT: f64 = 96.0;
    let mut canvas = Canvas::new(WIDTH);
    let top = canvas.title(title) + MARGIN;
    let area = Area { x: MARGIN, y: top, width: WIDTH - 2.0 * MARGIN, height: HEIGHT };
    canvas.rect(area, "empty");
    let hand = Hand::new(TEXT, Anchor::Middle).dim();
    canvas.text(WIDTH / 2.0, top + HEIGHT / 2.0, hand, "nothing was measured");
    canvas.finish(top + HEIGHT + MARGIN, title, description)
}
