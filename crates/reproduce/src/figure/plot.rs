//! What charts with a vertical axis of numbers share: the axis, its grid, a line to compare with.

use super::canvas::{Anchor, Area, Canvas, DESCENT, Hand, LEADING, MARGIN, TEXT};
use super::scale::{Scale, Span};
use crate::text::{width, wrapped};

/// Ticks of a vertical axis at most.
pub(super) const TICKS_MAX: i32 = 7;
/// Height of the area of the data, in pixels.
pub(super) const HEIGHT: f64 = 280.0;
const LABEL_LINES_MAX: usize = 2;
/// Between the labels of ticks and the data, in pixels.
const BEFORE: f64 = 8.0;

/// A horizontal line to compare with, such as the system that all others are divided by.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Where on the axis of values.
    pub at: f64,
    /// What it stands for.
    pub name: String,
}

impl Baseline {
    /// The line, if it has a place on such an axis.
    pub(super) fn drawable(line: Option<&Self>, scale: Scale) -> Option<&Self> {
        line.filter(|line| scale.drawable(Some(line.at)).is_some())
    }
}

/// The area of the data, with its vertical axis.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) area: Area,
    pub(super) span: Span,
}

impl Plot {
    /// Room that the labels of such an axis take, at the left of the data.
    pub(super) fn left(span: &Span) -> f64 {
        let labels = span.ticks.iter().map(|(_, label)| width(label, TEXT));
        MARGIN + labels.fold(0.0, f64::max) + BEFORE
    }

    /// Where a value is.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.area.y + self.area.height * (1.0 - self.span.fraction(value))
    }

    /// Where bars begin.
    pub(super) fn base(&self) -> f64 {
        self.area.y + self.area.height * (1.0 - self.span.base())
    }

    pub(super) fn right(&self) -> f64 {
        self.area.x + self.area.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.area.y + self.area.height
    }

    /// Ticks and the lines across, to be drawn before the data.
    pub(super) fn grid(&self, canvas: &mut Canvas) {
        for (value, label) in &self.span.ticks {
            let y = self.y(*value);
            canvas.line((self.area.x, y), (self.right(), y), "grid");
            let hand = Hand::new(TEXT, Anchor::End).dim();
            let base = y + TEXT / 2.0 - DESCENT * TEXT / 2.0;
            canvas.text(self.area.x - BEFORE, base, hand, label);
        }
    }

    /// The line to compare with, and the line that bars begin at.
    pub(super) fn rules(&self, canvas: &mut Canvas, baseline: Option<&Baseline>) {
        let mut rule = |y: f64, class: &str| {
            canvas.line((self.area.x, y), (self.right(), y), class);
        };
        rule(self.base(), "axis");
        if let Some(baseline) = baseline {
            rule(self.y(baseline.at), "baseline");
        }
    }
}

/// What the vertical axis counts, over its upper end; where that ends.
pub(super) fn value_label(canvas: &mut Canvas, top: f64, label: &str) -> f64 {
    let mut bottom = top + TEXT / 2.0;
    for line in wrapped(label, TEXT, canvas.width - 2.0 * MARGIN, LABEL_LINES_MAX) {
        bottom += TEXT * LEADING;
        let hand = Hand::new(TEXT, Anchor::Start).dim();
        canvas.text(MARGIN, bottom - DESCENT * TEXT, hand, &line);
    }
    bottom + TEXT
}

/// What the horizontal axis counts, under it; where that ends.
pub(super) fn axis_label(
    canvas: &mut Canvas,
    top: f64,
    (left, right): (f64, f64),
    label: &str,
) -> f64 {
    // The data may be narrow; the label has the drawing's width, and stays within it.
    let mut bottom = top + TEXT / 3.0;
    for line in wrapped(label, TEXT, canvas.width - 2.0 * MARGIN, LABEL_LINES_MAX) {
        bottom += TEXT * LEADING;
        let half = width(&line, TEXT) / 2.0;
        let middle =
            f64::midpoint(left, right).min(canvas.width - MARGIN - half).max(MARGIN + half);
        let hand = Hand::new(TEXT, Anchor::Middle).dim();
        canvas.text(middle, bottom - DESCENT * TEXT, hand, &line);
    }
    bottom + MARGIN
}
