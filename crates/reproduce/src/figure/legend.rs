//! The legend: samples with their names, in rows above the data.

use super::canvas::{Anchor, Area, Canvas, DESCENT, Hand, LEADING, MARGIN, TEXT};
use super::lines::Kind;
use super::marks;
use super::scale::SHADES;
use crate::text::{shortened, width};

/// Width of a sample, in pixels.
const SAMPLE: f64 = 28.0;
/// Width of a sample that is a mark, in pixels.
const SAMPLE_MARK: f64 = 12.0;
/// Width of one shade in the sample of all, in pixels.
const STEP: f64 = 13.0;
const AFTER_SAMPLE: f64 = 6.0;
const BETWEEN: f64 = 20.0;
/// From one row to the next, in pixels.
const ROW: f64 = TEXT * LEADING + 5.0;
/// Height of a sample that is an area, in pixels.
const SWATCH: f64 = 12.0;

/// What stands before a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    /// A bar of a series.
    Bar(usize),
    /// The mark of a series, without a curve.
    Mark(usize),
    /// A curve of a series.
    Curve(usize, Kind),
    /// A curve of any series.
    AnyCurve(Kind),
    /// What a paper says about a bar.
    Paper,
    /// The line to compare with.
    Baseline,
    /// A shade of a map.
    Shade(usize),
    /// All shades of a matrix.
    Shades,
    /// A cell of a matrix that counts nothing.
    Zero,
    /// What is missing in a matrix.
    Missing,
    /// The winner of a column.
    Winner,
}

/// A sample with its name.
#[derive(Clone, Debug)]
pub(super) struct Entry {
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

impl Entry {
    pub(super) fn new(sample: Sample, name: impl Into<String>) -> Self {
        Self { sample, name: name.into() }
    }
}

/// Draws the legend under what ends at `top`; where it ends itself.
pub(super) fn draw(canvas: &mut Canvas, top: f64, entries: &[Entry]) -> f64 {
    if entries.is_empty() {
        return top;
    }
    let right = canvas.width - MARGIN;
    let (mut x, mut bottom) = (MARGIN, top + ROW);
    for Entry { sample, name } in entries {
        let before = sample.width() + AFTER_SAMPLE;
        let name = shortened(name, TEXT, right - MARGIN - before);
        let wide = before + width(&name, TEXT);
        if x > MARGIN && x + wide > right {
            (x, bottom) = (MARGIN, bottom + ROW);
        }
        let middle = bottom - ROW / 2.0 + 2.0;
        draw_sample(canvas, *sample, x, middle);
        let line = middle + TEXT / 2.0 - DESCENT * TEXT / 2.0;
        canvas.text(x + before, line, Hand::new(TEXT, Anchor::Start), &name);
        x += wide + BETWEEN;
    }
    bottom + 2.0
}

fn draw_sample(canvas: &mut Canvas, sample: Sample, x: f64, middle: f64) {
    let wide = sample.width();
    let area = Area { x, y: middle - SWATCH / 2.0, width: wide, height: SWATCH };
    let centre = (x + wide / 2.0, middle);
    let (left, right) = ((x, middle), (x + wide, middle));
    match sample {
        Sample::Bar(series) => marks::bar(canvas, area, series),
        Sample::Mark(series) => marks::mark(canvas, centre, series, marks::RADIUS, "mark"),
        Sample::Curve(series, kind) => {
            let class = format!("curve {} {}", kind.class(), marks::colour(series));
            canvas.line(left, right, &class);
            marks::mark(canvas, centre, series, kind.radius(), kind.mark_class());
        }
        Sample::AnyCurve(kind) => {
            canvas.line(left, right, &format!("curve {} any", kind.class()));
            let class = format!("{} any", kind.mark_class());
            // The first shape of marks stands for all of them.
            marks::mark(canvas, centre, 0, kind.radius(), &class);
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
    }
}
