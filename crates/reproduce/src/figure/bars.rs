//! Bars in groups: categories along the axis, a bar of each series in each, and beside the bars
//! what a paper says they should be.

use super::canvas::{
    Anchor, Area, Canvas, DESCENT, Hand, LEADING, MARGIN, SMALL, TEXT, WIDTH, nothing,
};
use super::legend::{self, Entry, Sample};
use super::marks::{self, RADIUS};
use super::names::{Names, Side};
use super::plot::{self, Baseline, Plot};
use super::scale::{Scale, Span, ends};
use crate::number::{drawable, short};
use crate::text::width;
use crate::{Cell, Column, Table};

/// The part of a group that bars fill.
const FILL: f64 = 0.82;
/// The part of its slot that a bar fills.
const BAR_FILL: f64 = 0.9;
/// A bar needs that much to show its texture, in pixels; where there are more, the chart is wider.
const SLOT_MIN: f64 = 8.0;
/// A bar that is wider looks like an area, in pixels.
const SLOT_MAX: f64 = 52.0;
/// A group needs that much for its name, in pixels.
const GROUP_MIN: f64 = TEXT * LEADING + 2.0;
/// Between a bar and its number, in pixels.
const AFTER_BAR: f64 = 4.0;
/// A bar of nothing is still there, and is no gap: its height in pixels.
const NOTHING: f64 = 1.0;

/// Bars in groups, on a linear axis that has a zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What the chart shows, in a few words.
    pub title: String,
    /// The same for those who cannot see it: what stands out.
    pub description: String,
    /// What the categories are.
    pub category: String,
    /// What the bars count, with its unit.
    pub value: String,
    /// The names of the groups.
    pub categories: Vec<String>,
    /// A bar for each in each group.
    pub series: Vec<BarSeries>,
    /// A line to compare with.
    pub baseline: Option<Baseline>,
    /// Whether each bar has its number, where there is room for it.
    pub has_numbers: bool,
}

/// One bar in each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// The name of the series.
    pub name: String,
    /// Its value in each category, in their order. What is not there is missing.
    pub values: Vec<Option<f64>>,
    /// What a paper says each value is, likewise.
    pub paper: Vec<Option<f64>>,
}

/// How the numbers on bars are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Numbers {
    None,
    Flat,
    Upright,
}

/// Where things are.
struct Layout {
    left: f64,
    width: f64,
    /// From one group to the next.
    pitch: f64,
    /// From one bar to the next in a group.
    slot: f64,
    names: Names,
    numbers: Numbers,
    /// What numbers take above and below the area of the data.
    above: f64,
    below: f64,
}

/// A bar, and what goes with it.
struct Bar<'a> {
    category: &'a str,
    series: &'a str,
    number: usize,
    middle: f64,
    value: Option<f64>,
    said: Option<f64>,
}

impl Bars {
    /// The drawing.
    pub fn svg(&self) -> String {
        let Some(span) = self.span() else { return nothing(&self.title, &self.description) };
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
        // What is written comes last: no line strikes it through.
        for bar in &bars {
            if let Some(said) = bar.said {
                marks::paper(&mut canvas, (bar.middle, plot.y(said)));
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

    /// The data of the drawing as a table.
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

    /// All that is drawn on the axis of values.
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
                    said: at(&series.paper, group),
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
        // Names that slant may reach further left than the axis does, which leaves less for groups.
        let reach = |left: f64| {
            let pitch = pitch_for(left);
            let names = Names::fit(&self.categories, pitch, Side::Below);
            left.max(names.overhang(pitch) + MARGIN)
        };
        let wished = reach(Plot::left(span));
        let pitch = pitch_for(wished);
        let left = reach(wished);
        let slot = (pitch * FILL / bars).min(SLOT_MAX);
        let names = Names::fit(&self.categories, pitch, Side::Below);
        let width = left + pitch * self.categories.len() as f64 + MARGIN;
        let (numbers, beyond) = self.numbers(slot, pitch);
        // The axis may reach further than the data, which leaves room for numbers.
        let (least, most) = ends(self.drawn().into_iter()).unwrap_or_default();
        let spare = |part: f64| (beyond - plot::HEIGHT * part).max(RADIUS);
        let above = spare(1.0 - span.fraction(most));
        let below = if least < 0.0 { spare(span.fraction(least)) } else { 0.0 };
        Layout { left, width, pitch, slot, names, numbers, above, below }
    }

    /// How numbers are written, and what they take beyond the bars.
    fn numbers(&self, slot: f64, pitch: f64) -> (Numbers, f64) {
        let categories = self.categories.len();
        let values = self.series.iter().flat_map(|series| series.values.iter().take(categories));
        let labels = values.filter_map(|&value| drawable(value)).map(short);
        let longest = labels.map(|label| width(&label, SMALL)).fold(0.0, f64::max);
        // A bar that is alone in its group has the group's room.
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

    fn legend(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        if self.series.len() > 1 || self.series.iter().any(|series| !series.name.is_empty()) {
            let bars = self.series.iter().enumerate();
            entries
                .extend(bars.map(|(index, series)| Entry::new(Sample::Bar(index), &series.name)));
        }
        if self.series.iter().any(has_paper) {
            entries.push(Entry::new(Sample::Paper, "what the paper says"));
        }
        if let Some(baseline) = self.baseline() {
            entries.push(Entry::new(Sample::Baseline, &baseline.name));
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
        let height = (base - end).abs().max(NOTHING);
        let wide = slot * BAR_FILL;
        let y = if value < 0.0 { base } else { base - height };
        let said = self.said.map(|said| format!(" (the paper: {})", short(said)));
        let (name, said) = (self.series, said.unwrap_or_default());
        let comma = if name.is_empty() { "" } else { ", " };
        canvas.begin(&format!("{}{comma}{name}: {}{said}", self.category, short(value)));
        let area = Area { x: self.middle - wide / 2.0, y, width: wide, height };
        marks::bar(canvas, area, self.number);
        canvas.end();
    }

    /// Its number, beyond its end and beyond what the paper says, if that is in the way.
    fn draw_number(&self, canvas: &mut Canvas, plot: &Plot, numbers: Numbers) {
        let Some(value) = self.value else { return };
        let label = short(value);
        let extent = match numbers {
            Numbers::None => return,
            Numbers::Flat => SMALL,
            Numbers::Upright => width(&label, SMALL),
        };
        // Upwards for what is not negative.
        let away = if value < 0.0 { 1.0 } else { -1.0 };
        let end = plot.y(value);
        let near = RADIUS + 1.0;
        let said = self.said.map(|said| plot.y(said)).filter(|said| {
            let beyond = (said - end) * away;
            (-near..=extent + AFTER_BAR + near).contains(&beyond)
        });
        let start = said.map_or(end, |said| said + near * away) + AFTER_BAR * away;
        let hand = |anchor| Hand { class: "number", ..Hand::new(SMALL, anchor) };
        if numbers == Numbers::Flat {
            let base = if value < 0.0 { start + SMALL * (1.0 - DESCENT) } else { start };
            canvas.text(self.middle, base, hand(Anchor::Middle), &label);
        } else {
            let anchor = if value < 0.0 { Anchor::End } else { Anchor::Start };
            let hand = Hand { turn: -90, ..hand(anchor) };
            canvas.text(self.middle + SMALL * (0.5 - DESCENT / 2.0), start, hand, &label);
        }
    }
}
