//! Bar charts: a group of bars for each category, one bar for each series, and a hollow diamond at
//! the value that a paper publishes.

use super::canvas::{
    Anchor, Area, Canvas, DESCENT, LEADING, MARGIN, SMALL, TEXT, TextStyle, WIDTH, no_data,
};
use super::legend::{self, LegendEntry, Sample};
use super::marks::{self, RADIUS};
use super::names::{Names, Side};
use super::plot::{self, Baseline, Plot};
use super::scale::{Scale, Span, ends};
use crate::number::{drawable, short};
use crate::table::{Cell, Column, Table};
use crate::text::width;

/// The share of a group's width that bars fill.
const FILL: f64 = 0.82;
/// The share of its slot that a bar fills.
const BAR_FILL: f64 = 0.9;
/// The least width of a slot, in pixels, at which a texture is visible. More bars widen the chart.
const SLOT_MIN: f64 = 8.0;
/// The greatest width of a slot, in pixels; a wider bar looks like an area.
const SLOT_MAX: f64 = 52.0;
/// The least width of a group, in pixels: its upright name needs as much.
const GROUP_MIN: f64 = TEXT * LEADING + 2.0;
/// The gap between a bar and its number, in pixels.
const AFTER_BAR: f64 = 4.0;
/// The height of a bar of value zero, in pixels, so that it differs from a missing bar.
const ZERO_HEIGHT: f64 = 1.0;

/// A chart of grouped bars, on a linear axis that includes zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// The title, at the top left of the drawing.
    pub title: String,
    /// The text that a screen reader reads in place of the drawing.
    pub description: String,
    /// The label of the category axis.
    pub category: String,
    /// The label of the value axis, with the unit.
    pub value: String,
    /// The names of the groups, from left to right.
    pub categories: Vec<String>,
    /// The series: each has one bar in each group.
    pub series: Vec<BarSeries>,
    /// A horizontal line to compare with.
    pub baseline: Option<Baseline>,
    /// `true` if bars show their numbers, where there is room for them.
    pub has_numbers: bool,
}

/// A series: one bar in each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// The name of the series in the legend; empty for a single series.
    pub name: String,
    /// The values, in the order of the categories. Values beyond the end of the list are missing.
    pub values: Vec<Option<f64>>,
    /// The published values, in the same order; empty if no paper gives any.
    pub paper: Vec<Option<f64>>,
}

/// The orientation of the numbers on bars.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Numbers {
    None,
    Flat,
    Upright,
}

struct Layout {
    left: f64,
    width: f64,
    /// The distance from one group to the next, in pixels.
    pitch: f64,
    /// The distance from one bar to the next in a group, in pixels.
    slot: f64,
    names: Names,
    numbers: Numbers,
    /// The height that numbers need above the data area, in pixels.
    above: f64,
    /// The height that they need below it, in pixels.
    below: f64,
}

struct Bar<'a> {
    category: &'a str,
    series: &'a str,
    number: usize,
    middle: f64,
    value: Option<f64>,
    published: Option<f64>,
}

impl Bars {
    /// Returns the drawing as an SVG element.
    pub fn svg(&self) -> String {
        let Some(span) = self.span() else { return no_data(&self.title, &self.description) };
        let layout = self.layout(&span);
        let mut canvas = Canvas::new(layout.width);
        let top = canvas.title(&self.title);
        let top = legend::draw(&mut canvas, top, &self.legend());
        let top = plot::value_label(&mut canvas, top, &self.value) + layout.above;
        let wide = layout.pitch * self.categories.len() as f64;
        let area = Area { x: layout.left, y: top, width: wide, height: plot::HEIGHT };
        let plot = Plot { area, span };
        plot.grid(&mut canvas);
        let bars = self.bars(&layout);
        for bar in &bars {
            bar.draw(&mut canvas, &plot, layout.slot);
        }
        plot.rules(&mut canvas, self.baseline());
        // Numbers are drawn last, so that no grid line crosses them.
        for bar in &bars {
            if let Some(published) = bar.published {
                marks::paper(&mut canvas, (bar.middle, plot.y(published)));
            }
            bar.draw_number(&mut canvas, &plot, layout.numbers);
        }
        let under = plot.bottom() + layout.below + TEXT / 2.0;
        layout.names.draw(&mut canvas, layout.left, layout.pitch, under, Side::Below);
        let under = under + layout.names.height();
        let ends = (layout.left, plot.right());
        let height = plot::axis_label(&mut canvas, under, ends, &self.category);
        canvas.finish(height, &self.title, &self.description)
    }

    /// Returns the data of the drawing as a table.
    pub fn table(&self) -> Table {
        let mut header = vec![Column::words(&self.category)];
        for series in &self.series {
            header.push(Column::numbers(&series.name));
            if has_paper(series) {
                header.push(Column::numbers(format!("{}, the paper", series.name)));
            }
        }
        let row = |(category, name): (usize, &String)| {
            let mut row = vec![Cell::from(name.as_str())];
            for series in &self.series {
                row.push(Cell::number(at(&series.values, category)));
                if has_paper(series) {
                    row.push(Cell::number(at(&series.paper, category)));
                }
            }
            row
        };
        let rows = self.categories.iter().enumerate().map(row).collect();
        Table { caption: self.value.clone(), header, rows }
    }

    /// Returns all numbers that the value axis must include.
    fn drawn(&self) -> Vec<f64> {
        let lists = self.series.iter().flat_map(|series| [&series.values, &series.paper]);
        let drawn = lists.flat_map(|list| list.iter().take(self.categories.len()));
        let mut drawn: Vec<f64> = drawn.filter_map(|&value| drawable(value)).collect();
        if !drawn.is_empty() {
            drawn.extend(self.baseline().into_iter().map(|baseline| baseline.at));
        }
        drawn
    }

    fn baseline(&self) -> Option<&Baseline> {
        Baseline::drawable(self.baseline.as_ref(), Scale::Linear)
    }

    fn span(&self) -> Option<Span> {
        Span::new(Scale::Linear, self.drawn().into_iter(), true, plot::TICKS_MAX)
    }

    fn bars(&self, layout: &Layout) -> Vec<Bar<'_>> {
        let mut bars = Vec::new();
        for (group, category) in self.categories.iter().enumerate() {
            let centre = layout.left + (group as f64 + 0.5) * layout.pitch;
            for (number, series) in self.series.iter().enumerate() {
                let from_centre = number as f64 + 0.5 - self.series.len() as f64 / 2.0;
                bars.push(Bar {
                    category,
                    series: &series.name,
                    number,
                    middle: centre + from_centre * layout.slot,
                    value: at(&series.values, group),
                    published: at(&series.paper, group),
                });
            }
        }
        bars
    }

    fn layout(&self, span: &Span) -> Layout {
        let bars = self.series.len() as f64;
        let pitch_for = |left: f64| {
            let fair = (WIDTH - left - MARGIN) / self.categories.len() as f64;
            fair.max(GROUP_MIN).max(bars * SLOT_MIN / FILL)
        };
        // Slanted names may start left of the axis. Then the axis moves right, which narrows the
        // groups, so the room on the left is computed twice.
        let reach = |left: f64| {
            let pitch = pitch_for(left);
            let names = Names::fit(&self.categories, pitch, Side::Below);
            left.max(names.overhang(pitch) + MARGIN)
        };
        let first_left = reach(Plot::left(span));
        let pitch = pitch_for(first_left);
        let left = reach(first_left);
        let slot = (pitch * FILL / bars).min(SLOT_MAX);
        let names = Names::fit(&self.categories, pitch, Side::Below);
        let width = left + pitch * self.categories.len() as f64 + MARGIN;
        let (numbers, beyond) = self.numbers(slot, pitch);
        // Ticks are round, so the axis may end beyond the data. Numbers use that room first.
        let (least, most) = ends(self.drawn().into_iter()).unwrap_or_default();
        let spare = |part: f64| (beyond - plot::HEIGHT * part).max(RADIUS);
        let above = spare(1.0 - span.fraction(most));
        let below = if least < 0.0 { spare(span.fraction(least)) } else { 0.0 };
        Layout { left, width, pitch, slot, names, numbers, above, below }
    }

    /// Returns how numbers are written, and the height that they need beyond the bars.
    fn numbers(&self, slot: f64, pitch: f64) -> (Numbers, f64) {
        let categories = self.categories.len();
        let values = self.series.iter().flat_map(|series| series.values.iter().take(categories));
        let labels = values.filter_map(|&value| drawable(value)).map(short);
        let longest = labels.map(|label| width(&label, SMALL)).fold(0.0, f64::max);
        // A single bar may use the whole width of its group.
        let room = if self.series.len() == 1 { pitch } else { slot };
        let marks = AFTER_BAR + 2.0 * RADIUS;
        if !self.has_numbers {
            (Numbers::None, RADIUS)
        } else if longest + AFTER_BAR <= room {
            (Numbers::Flat, SMALL * LEADING + marks)
        } else if slot >= SMALL * LEADING {
            (Numbers::Upright, longest + marks)
        } else {
            (Numbers::None, RADIUS)
        }
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let mut entries = Vec::new();
        if self.series.len() > 1 || self.series.iter().any(|series| !series.name.is_empty()) {
            let bars = self.series.iter().enumerate();
            entries.extend(
                bars.map(|(index, series)| LegendEntry::new(Sample::Bar(index), &series.name)),
            );
        }
        if self.series.iter().any(has_paper) {
            entries.push(LegendEntry::new(Sample::Paper, "published in the paper"));
        }
        if let Some(baseline) = self.baseline() {
            entries.push(LegendEntry::new(Sample::Baseline, &baseline.name));
        }
        entries
    }
}

fn at(values: &[Option<f64>], index: usize) -> Option<f64> {
    drawable(values.get(index).copied().flatten())
}

fn has_paper(series: &BarSeries) -> bool {
    series.paper.iter().any(|&value| drawable(value).is_some())
}

impl Bar<'_> {
    fn draw(&self, canvas: &mut Canvas, plot: &Plot, slot: f64) {
        let Some(value) = self.value else { return };
        let (base, end) = (plot.base(), plot.y(value));
        let height = (base - end).abs().max(ZERO_HEIGHT);
        let wide = slot * BAR_FILL;
        let y = if value < 0.0 { base } else { base - height };
        let published =
            self.published.map(|published| format!(" (the paper: {})", short(published)));
        let (name, published) = (self.series, published.unwrap_or_default());
        let comma = if name.is_empty() { "" } else { ", " };
        canvas.begin(&format!("{}{comma}{name}: {}{published}", self.category, short(value)));
        let area = Area { x: self.middle - wide / 2.0, y, width: wide, height };
        marks::bar(canvas, area, self.number);
        canvas.end();
    }

    /// Draws the number beyond the end of the bar, and beyond the published value if that would
    /// overlap it.
    fn draw_number(&self, canvas: &mut Canvas, plot: &Plot, numbers: Numbers) {
        let Some(value) = self.value else { return };
        let label = short(value);
        let extent = match numbers {
            Numbers::None => return,
            Numbers::Flat => SMALL,
            Numbers::Upright => width(&label, SMALL),
        };
        // Away from zero: upwards unless the value is negative.
        let away = if value < 0.0 { 1.0 } else { -1.0 };
        let end = plot.y(value);
        let near = RADIUS + 1.0;
        let published = self.published.map(|published| plot.y(published)).filter(|published| {
            let beyond = (published - end) * away;
            (-near..=extent + AFTER_BAR + near).contains(&beyond)
        });
        let start = published.map_or(end, |published| published + near * away) + AFTER_BAR * away;
        let style = |anchor| TextStyle { class: "number", ..TextStyle::new(SMALL, anchor) };
        if numbers == Numbers::Flat {
            let base = if value < 0.0 { start + SMALL * (1.0 - DESCENT) } else { start };
            canvas.text(self.middle, base, style(Anchor::Middle), &label);
        } else {
            let anchor = if value < 0.0 { Anchor::End } else { Anchor::Start };
            let style = TextStyle { turn: -90, ..style(anchor) };
            canvas.text(self.middle + SMALL * (0.5 - DESCENT / 2.0), start, style, &label);
        }
    }
}
