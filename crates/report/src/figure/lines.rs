//! Line charts: curves over a numeric axis. The colour of a curve shows its name; its stroke shows
//! if the numbers were measured, projected from a model, or published.

use super::canvas::{Anchor, Area, Canvas, MARGIN, Px, TEXT, TextStyle, WIDTH, no_data};
use super::legend::{self, LegendEntry, Sample};
use super::marks::{self, RADIUS};
use super::plot::{self, Baseline, Plot};
use super::scale::{Axis, Scale, Span};
use super::stroke::Stroke;
use crate::number::{full, short};
use crate::table::{Cell, Column, Table};
use crate::text::{append, width};

/// The maximum number of ticks on the horizontal axis. Ten of the longest labels fit side by side.
const TICKS_MAX: i32 = 10;
/// The maximum number of marks on a curve; more would hide it.
const MARKS_MAX: usize = 40;

/// A chart of curves over a numeric axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The title, at the top left of the drawing.
    pub title: String,
    /// The text that a screen reader reads in place of the drawing.
    pub description: String,
    /// The horizontal axis: label and scale.
    pub x: Axis,
    /// The vertical axis; a linear one includes zero.
    pub y: Axis,
    /// The curves. Curves of equal name have one colour.
    pub curves: Vec<Curve>,
    /// A horizontal line to compare with.
    pub baseline: Option<Baseline>,
}

/// A curve: points with a name and a stroke.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in the legend, such as a design.
    pub name: String,
    /// The origin of the numbers.
    pub stroke: Stroke,
    /// The points, in any order.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The value; `None` makes a gap in the curve.
    pub y: Option<f64>,
}

impl Curve {
    /// Returns the points whose x can be drawn, from left to right.
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
    /// Returns the drawing as an SVG element.
    pub fn svg(&self) -> String {
        let Some((across, up)) = self.spans() else {
            return no_data(&self.title, &self.description);
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

    /// Returns the data of the drawing as a table.
    pub fn table(&self) -> Table {
        let curves: Vec<_> = self.drawn().collect();
        let mut places: Vec<f64> = curves.iter().flatten().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup_by(|one, other| one.total_cmp(other).is_eq());
        let mut header = vec![Column::numbers(&self.x.label)];
        header.extend(self.curves.iter().map(|curve| match curve.stroke {
            Stroke::Measured => Column::numbers(&curve.name),
            stroke => Column::numbers(format!("{}, {}", curve.name, stroke.name())),
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

    /// Returns the index of the colour of each curve.
    fn colours(&self) -> Vec<usize> {
        let names = self.names();
        let of = |curve: &Curve| names.iter().position(|name| *name == curve.name);
        self.curves.iter().filter_map(of).collect()
    }

    /// Returns the distinct names, in the order of the curves.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in &self.curves {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        names
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let strokes = Stroke::ALL.into_iter();
        let strokes =
            strokes.filter(|&stroke| self.curves.iter().any(|curve| curve.stroke == stroke));
        let strokes: Vec<Stroke> = strokes.collect();
        let names = self.names().into_iter().enumerate();
        let mut entries: Vec<LegendEntry> = match strokes[..] {
            [stroke] => {
                names.map(|(i, name)| LegendEntry::new(Sample::Curve(i, stroke), name)).collect()
            }
            _ => names.map(|(i, name)| LegendEntry::new(Sample::Mark(i), name)).collect(),
        };
        // If all curves are measured, the legend need not explain strokes.
        if strokes != [Stroke::Measured] {
            let of = |&stroke: &Stroke| LegendEntry::new(Sample::AnyCurve(stroke), stroke.name());
            entries.extend(strokes.iter().map(of));
        }
        if let Some(baseline) = self.baseline() {
            entries.push(LegendEntry::new(Sample::Baseline, &baseline.name));
        }
        entries
    }
}

fn x_of(plot: &Plot, across: &Span, x: f64) -> f64 {
    plot.area.x + plot.area.width * across.fraction(x)
}

/// Draws the ticks of the horizontal axis, and returns the y below their labels.
fn draw_ticks(canvas: &mut Canvas, plot: &Plot, across: &Span) -> f64 {
    const LENGTH: f64 = 5.0;
    let base = plot.bottom() + LENGTH + TEXT;
    for (value, label) in &across.ticks {
        let x = x_of(plot, across, *value);
        canvas.line((x, plot.bottom()), (x, plot.bottom() + LENGTH), "tick");
        canvas.text(x, base, TextStyle::new(TEXT, Anchor::Middle).dim(), label);
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
        append(&mut shape, format_args!("{command}{x} {y}"));
        command = 'L';
    }
    if shape.is_empty() {
        return;
    }
    canvas.path(&shape, &format!("curve {} {}", curve.stroke.class(), marks::colour(colour)));
    let there: Vec<_> = points.iter().filter_map(|point| Some((point.x, point.y?))).collect();
    let stride = there.len() / MARKS_MAX + 1;
    for (x, y) in there.into_iter().step_by(stride) {
        canvas.begin(&format!(
            "{}, {}: {} at {}",
            curve.name,
            curve.stroke.name(),
            short(y),
            short(x)
        ));
        let at = (x_of(plot, across, x), plot.y(y));
        marks::mark(canvas, at, colour, curve.stroke.radius(), curve.stroke.mark_class());
        canvas.end();
    }
}
