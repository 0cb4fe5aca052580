//! Curves over an axis. A curve was measured, or was projected from a model, or is a paper's: it is
//! drawn in another stroke for each, and in the same colour for the same name.

use super::canvas::{Anchor, Area, Canvas, Hand, MARGIN, Px, TEXT, WIDTH, nothing};
use super::legend::{self, Entry, Sample};
use super::marks::{self, RADIUS, RADIUS_SMALL};
use super::plot::{self, Baseline, Plot};
use super::scale::{Axis, Scale, Span};
use crate::number::{full, short};
use crate::text::{put, width};
use crate::{Cell, Column, Table};

/// Ticks of the horizontal axis at most: so many of the longest labels stand beside each other.
const TICKS_MAX: i32 = 10;
/// Marks on a curve at most; they would hide it.
const MARKS_MAX: usize = 40;
/// Curves over an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// What the chart shows, in a few words.
    pub title: String,
    /// The same for those who cannot see it: what stands out.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; a linear one has a zero.
    pub y: Axis,
    /// The curves. Those of the same name have the same colour.
    pub curves: Vec<Curve>,
    /// A line to compare with.
    pub baseline: Option<Baseline>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it is of.
    pub name: String,
    /// Where it comes from.
    pub kind: Kind,
    /// Its points, in any order.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where on the horizontal axis.
    pub x: f64,
    /// How high; a gap in the curve, if missing.
    pub y: Option<f64>,
}

/// Where a curve comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Measured: a solid line with marks.
    Measured,
    /// Projected from a model of a device: a dashed line.
    Projected,
    /// What a paper says: a dotted line with hollow marks.
    Paper,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Measured, Self::Projected, Self::Paper];

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Projected => "projected",
            Self::Paper => "paper",
        }
    }

    pub(super) fn mark_class(self) -> &'static str {
        match self {
            Self::Measured | Self::Projected => "mark",
            Self::Paper => "mark hollow",
        }
    }

    pub(super) fn radius(self) -> f64 {
        match self {
            Self::Measured | Self::Paper => RADIUS,
            Self::Projected => RADIUS_SMALL,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Projected => "projected from a device model",
            Self::Paper => "the paper",
        }
    }
}

impl Curve {
    /// Its points that have a place along the axis, from left to right.
    fn drawn(&self, x: Scale, y: Scale) -> Vec<Point> {
        let placed = self.points.iter().filter_map(|point| {
            Some(Point { x: x.drawable(Some(point.x))?, y: y.drawable(point.y) })
        });
        let mut drawn: Vec<Point> = placed.collect();
        drawn.sort_by(|one, other| one.x.total_cmp(&other.x));
        drawn
    }
}

impl Lines {
    /// The drawing.
    pub fn svg(&self) -> String {
        let Some((across, up)) = self.spans() else {
            return nothing(&self.title, &self.description);
        };
        let mut canvas = Canvas::new(WIDTH);
        let top = canvas.title(&self.title);
        let top = legend::draw(&mut canvas, top, &self.legend());
        let top = plot::value_label(&mut canvas, top, &self.y.label) + RADIUS;
        let half =
            |tick: Option<&(f64, String)>| tick.map_or(0.0, |(_, text)| width(text, TEXT) / 2.0);
        let left = Plot::left(&up).max(MARGIN + half(across.ticks.first()));
        let right = WIDTH - MARGIN - half(across.ticks.last()).max(RADIUS);
        let area = Area { x: left, y: top, width: right - left, height: plot::HEIGHT };
        let plot = Plot { area, span: up };
        plot.grid(&mut canvas);
        let bottom = draw_ticks(&mut canvas, &plot, &across);
        plot.rules(&mut canvas, self.baseline());
        let colours = self.colours();
        for (curve, &colour) in self.curves.iter().zip(&colours) {
            let points = curve.drawn(self.x.scale, self.y.scale);
            draw_curve(&mut canvas, &plot, &across, curve, colour, &points);
        }
        let height = plot::axis_label(&mut canvas, bottom, (left, right), &self.x.label);
        canvas.finish(height, &self.title, &self.description)
    }

    /// The data of the drawing as a table.
    pub fn table(&self) -> Table {
        let curves: Vec<_> = self.drawn().collect();
        let mut places: Vec<f64> = curves.iter().flatten().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup_by(|one, other| one.total_cmp(other).is_eq());
        let mut header = vec![Column::numbers(&self.x.label)];
        header.extend(self.curves.iter().map(|curve| match curve.kind {
            Kind::Measured => Column::numbers(&curve.name),
            kind => Column::numbers(format!("{}, {}", curve.name, kind.name())),
        }));
        let row = |&x: &f64| {
            let mut row = vec![Cell::from(full(x))];
            row.extend(curves.iter().map(|points| {
                let point = points.iter().find(|point| point.x.total_cmp(&x).is_eq());
                Cell::number(point.and_then(|point| point.y))
            }));
            row
        };
        let rows = places.iter().map(row).collect();
        Table { caption: self.y.label.clone(), header, rows }
    }

    fn drawn(&self) -> impl Iterator<Item = Vec<Point>> {
        self.curves.iter().map(|curve| curve.drawn(self.x.scale, self.y.scale))
    }

    fn baseline(&self) -> Option<&Baseline> {
        Baseline::drawable(self.baseline.as_ref(), self.y.scale)
    }

    fn spans(&self) -> Option<(Span, Span)> {
        let points = self.drawn().flatten().filter_map(|point| Some((point.x, point.y?)));
        let (across, mut up): (Vec<f64>, Vec<f64>) = points.unzip();
        if !up.is_empty() {
            up.extend(self.baseline().into_iter().map(|baseline| baseline.at));
        }
        let across = Span::new(self.x.scale, across.into_iter(), false, TICKS_MAX)?;
        Some((across, Span::new(self.y.scale, up.into_iter(), true, plot::TICKS_MAX)?))
    }

    /// The colour of each curve.
    fn colours(&self) -> Vec<usize> {
        let names = self.names();
        let of = |curve: &Curve| names.iter().position(|name| *name == curve.name);
        self.curves.iter().filter_map(of).collect()
    }

    /// The names of curves, each once.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in &self.curves {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        names
    }

    fn legend(&self) -> Vec<Entry> {
        let kinds = Kind::ALL.into_iter();
        let kinds = kinds.filter(|&kind| self.curves.iter().any(|curve| curve.kind == kind));
        let kinds: Vec<Kind> = kinds.collect();
        let names = self.names().into_iter().enumerate();
        let mut entries: Vec<Entry> = match kinds[..] {
            [kind] => names.map(|(i, name)| Entry::new(Sample::Curve(i, kind), name)).collect(),
            _ => names.map(|(i, name)| Entry::new(Sample::Mark(i), name)).collect(),
        };
        // Measured curves alone need no word about it.
        if kinds != [Kind::Measured] {
            let of = |&kind: &Kind| Entry::new(Sample::AnyCurve(kind), kind.name());
            entries.extend(kinds.iter().map(of));
        }
        if let Some(baseline) = self.baseline() {
            entries.push(Entry::new(Sample::Baseline, &baseline.name));
        }
        entries
    }
}

fn x_of(plot: &Plot, across: &Span, x: f64) -> f64 {
    plot.area.x + plot.area.width * across.fraction(x)
}

/// The ticks of the horizontal axis; where their labels end.
fn draw_ticks(canvas: &mut Canvas, plot: &Plot, across: &Span) -> f64 {
    const LENGTH: f64 = 5.0;
    let base = plot.bottom() + LENGTH + TEXT;
    for (value, label) in &across.ticks {
        let x = x_of(plot, across, *value);
        canvas.line((x, plot.bottom()), (x, plot.bottom() + LENGTH), "tick");
        canvas.text(x, base, Hand::new(TEXT, Anchor::Middle).dim(), label);
    }
    base + TEXT / 3.0
}

fn draw_curve(
    canvas: &mut Canvas,
    plot: &Plot,
    across: &Span,
    curve: &Curve,
    colour: usize,
    points: &[Point],
) {
    let mut shape = String::new();
    let mut command = 'M';
    for point in points {
        let Some(y) = point.y else {
            command = 'M';
            continue;
        };
        let (x, y) = (Px(x_of(plot, across, point.x)), Px(plot.y(y)));
        put(&mut shape, format_args!("{command}{x} {y}"));
        command = 'L';
    }
    if shape.is_empty() {
        return;
    }
    canvas.path(&shape, &format!("curve {} {}", curve.kind.class(), marks::colour(colour)));
    let there: Vec<_> = points.iter().filter_map(|point| Some((point.x, point.y?))).collect();
    let stride = there.len() / MARKS_MAX + 1;
    for (x, y) in there.into_iter().step_by(stride) {
        canvas.begin(&format!(
            "{}, {}: {} at {}",
            curve.name,
            curve.kind.name(),
            short(y),
            short(x)
        ));
        let at = (x_of(plot, across, x), plot.y(y));
        marks::mark(canvas, at, colour, curve.kind.radius(), curve.kind.mark_class());
        canvas.end();
    }
}
