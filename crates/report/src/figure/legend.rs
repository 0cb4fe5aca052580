//! Legends: rows above the data, each sample with its meaning.

use super::canvas::{Anchor, Area, Canvas, DESCENT, LEADING, MARGIN, TEXT, TextStyle};
use super::event_mark::{EventMark, draw_mark};
use super::marks;
use super::scale::SHADES;
use super::stroke::Stroke;
use crate::text::{shortened, width};

/// The width of a sample, in pixels.
const SAMPLE: f64 = 28.0;
/// The width of a sample that is a single mark, in pixels.
const SAMPLE_MARK: f64 = 12.0;
/// The width of one shade in the sample of all shades, in pixels.
const STEP: f64 = 13.0;
const AFTER_SAMPLE: f64 = 6.0;
const BETWEEN: f64 = 20.0;
/// The height of a row, in pixels.
const ROW: f64 = TEXT * LEADING + 5.0;
/// The height of a sample that is an area, in pixels.
const SWATCH: f64 = 12.0;

/// The drawing before a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    /// The bar of the series with this index.
    Bar(usize),
    /// The mark of the series with this index, without a curve.
    Mark(usize),
    /// The curve and mark of the series with this index.
    Curve(usize, Stroke),
    /// The stroke alone, in grey: all series share it.
    AnyCurve(Stroke),
    /// The hollow diamond of a published value.
    Paper,
    /// The dashed line of the value to compare with.
    Baseline,
    /// One shade of a strip.
    Shade(usize),
    /// All shades of a matrix, from pale to dark.
    Shades,
    /// A cell of a strip whose value is zero.
    Zero,
    /// A hatched cell: its value is missing.
    Missing,
    /// The outline of the best cell of a column.
    Winner,
    /// The mark of an event.
    Event(EventMark),
    /// The mark of a lost store.
    Lost,
}

#[derive(Clone, Debug)]
pub(super) struct LegendEntry {
    pub(super) sample: Sample,
    pub(super) name: String,
}

impl Sample {
    fn width(self) -> f64 {
        match self {
            Self::Mark(_) | Self::Paper => SAMPLE_MARK,
            Self::Shades => STEP * SHADES as f64,
            _ => SAMPLE,
        }
    }
}

impl LegendEntry {
    pub(super) fn new(sample: Sample, name: impl Into<String>) -> Self {
        Self { sample, name: name.into() }
    }
}

/// Draws the legend below `top`, and returns the y below the legend.
pub(super) fn draw(canvas: &mut Canvas, top: f64, entries: &[LegendEntry]) -> f64 {
    if entries.is_empty() {
        return top;
    }
    let right = canvas.width - MARGIN;
    let (mut x, mut bottom) = (MARGIN, top + ROW);
    for LegendEntry { sample, name } in entries {
        let before = sample.width() + AFTER_SAMPLE;
        let name = shortened(name, TEXT, right - MARGIN - before);
        let wide = before + width(&name, TEXT);
        if x > MARGIN && x + wide > right {
            (x, bottom) = (MARGIN, bottom + ROW);
        }
        let middle = bottom - ROW / 2.0 + 2.0;
        draw_sample(canvas, *sample, x, middle);
        let line = middle + TEXT / 2.0 - DESCENT * TEXT / 2.0;
        canvas.text(x + before, line, TextStyle::new(TEXT, Anchor::Start), &name);
        x += wide + BETWEEN;
    }
    bottom + 2.0
}

fn draw_sample(canvas: &mut Canvas, sample: Sample, x: f64, middle: f64) {
    let wide = sample.width();
    let area = Area { x, y: middle - SWATCH / 2.0, width: wide, height: SWATCH };
    let centre = (x + wide / 2.0, middle);
    let (left, right) = ((x, middle), (x + wide, middle));
    let ends = (x, x + wide);
    match sample {
        Sample::Bar(series) => marks::bar(canvas, area, series),
        Sample::Mark(series) => marks::mark(canvas, centre, series, marks::RADIUS, "mark"),
        Sample::Curve(series, stroke) => {
            let class = format!("curve {} {}", stroke.class(), marks::colour(series));
            canvas.line(left, right, &class);
            marks::mark(canvas, centre, series, stroke.radius(), stroke.mark_class());
        }
        Sample::AnyCurve(stroke) => {
            canvas.line(left, right, &format!("curve {} any", stroke.class()));
            let class = format!("{} any", stroke.mark_class());
            // The shape differs by series, so the first one represents all.
            marks::mark(canvas, centre, 0, stroke.radius(), &class);
        }
        Sample::Paper => marks::paper(canvas, centre),
        Sample::Baseline => canvas.line(left, right, "baseline"),
        Sample::Shade(shade) => {
            canvas.rect(area, &format!("w{shade}"));
            canvas.rect(area, "frame");
        }
        Sample::Shades => {
            for shade in 0..SHADES {
                let x = x + STEP * shade as f64;
                canvas.rect(Area { x, width: STEP, ..area }, &format!("q{shade}"));
            }
            canvas.rect(area, "frame");
        }
        Sample::Zero => canvas.rect(area, "zero"),
        Sample::Missing => canvas.rect(area, "missing"),
        Sample::Winner => canvas.rect(area, "winner"),
        Sample::Event(mark) => draw_mark(canvas, mark, false, (Some(centre.0), middle), ends),
        Sample::Lost => {
            draw_mark(canvas, EventMark::Store, true, (Some(centre.0), middle), ends);
        }
    }
}
