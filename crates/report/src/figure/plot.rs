//! The vertical axis of bar and line charts: ticks, grid, baseline, labels.

use super::canvas::{Anchor, Area, Canvas, DESCENT, LEADING, MARGIN, TEXT, TextStyle};
use super::scale::{Scale, Span};
use crate::text::{width, wrapped};

/// The maximum number of ticks on a vertical axis.
pub(super) const TICKS_MAX: i32 = 7;
/// The height of the data area, in pixels.
pub(super) const HEIGHT: f64 = 280.0;
const LABEL_LINES_MAX: usize = 2;
/// The gap between tick labels and data, in pixels.
const BEFORE: f64 = 8.0;

/// A horizontal line to compare with, such as the 1 of ratios.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The position on the value axis.
    pub at: f64,
    /// The name in the legend.
    pub name: String,
}

impl Baseline {
    /// Returns the line if it can be drawn on an axis of this scale.
    pub(super) fn drawable(line: Option<&Self>, scale: Scale) -> Option<&Self> {
        line.filter(|line| scale.drawable(Some(line.at)).is_some())
    }
}

/// The data area with its vertical axis.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) area: Area,
    pub(super) span: Span,
}

impl Plot {
    /// Returns the x of the data area: margin and tick labels lie to its left.
    pub(super) fn left(span: &Span) -> f64 {
        let labels = span.ticks.iter().map(|(_, label)| width(label, TEXT));
        MARGIN + labels.fold(0.0, f64::max) + BEFORE
    }

    /// Returns the y of a value.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.area.y + self.area.height * (1.0 - self.span.fraction(value))
    }

    /// Returns the y at which bars begin.
    pub(super) fn base(&self) -> f64 {
        self.area.y + self.area.height * (1.0 - self.span.base())
    }

    pub(super) fn right(&self) -> f64 {
        self.area.x + self.area.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.area.y + self.area.height
    }

    /// Draws tick labels and grid lines. Call it before drawing data, which covers the grid.
    pub(super) fn grid(&self, canvas: &mut Canvas) {
        for (value, label) in &self.span.ticks {
            let y = self.y(*value);
            canvas.line((self.area.x, y), (self.right(), y), "grid");
            let style = TextStyle::new(TEXT, Anchor::End).dim();
            let base = y + TEXT / 2.0 - DESCENT * TEXT / 2.0;
            canvas.text(self.area.x - BEFORE, base, style, label);
        }
    }

    /// Draws the line at which bars begin, and the baseline.
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

/// Writes the label of the vertical axis above the axis, and returns the y below the label.
pub(super) fn value_label(canvas: &mut Canvas, top: f64, label: &str) -> f64 {
    let mut bottom = top + TEXT / 2.0;
    for line in wrapped(label, TEXT, canvas.width - 2.0 * MARGIN, LABEL_LINES_MAX) {
        bottom += TEXT * LEADING;
        let style = TextStyle::new(TEXT, Anchor::Start).dim();
        canvas.text(MARGIN, bottom - DESCENT * TEXT, style, &line);
    }
    bottom + TEXT
}

/// Writes the label of the horizontal axis below the axis, and returns the y below the label.
pub(super) fn axis_label(
    canvas: &mut Canvas,
    top: f64,
    (left, right): (f64, f64),
    label: &str,
) -> f64 {
    // The label may be wider than narrow data: it is centred there but kept inside the drawing.
    let mut bottom = top + TEXT / 3.0;
    for line in wrapped(label, TEXT, canvas.width - 2.0 * MARGIN, LABEL_LINES_MAX) {
        bottom += TEXT * LEADING;
        let half = width(&line, TEXT) / 2.0;
        let middle =
            f64::midpoint(left, right).min(canvas.width - MARGIN - half).max(MARGIN + half);
        let style = TextStyle::new(TEXT, Anchor::Middle).dim();
        canvas.text(middle, bottom - DESCENT * TEXT, style, &line);
    }
    bottom + MARGIN
}
