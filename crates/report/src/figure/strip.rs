//! Strips: one cell for each unit of a device, in the order of addresses, shaded by its value.

use super::canvas::{Anchor, Canvas, DESCENT, MARGIN, Px, SMALL, TextStyle, no_data};
use super::legend::{self, LegendEntry, Sample};
use super::plot;
use super::scale::{SHADES, Scale, Shading, ends};
use crate::number::{drawable, full, short};
use crate::table::{Cell, Column, Table};
use crate::text::{append, width};

/// The maximum number of cells in a row.
const COLUMNS: usize = 64;
/// The maximum number of rows. If there are more units, several share a cell.
const ROWS_MAX: usize = 32;
/// The side of a cell in a short strip, in pixels.
const CELL_MAX: f64 = 20.0;
/// The side of a cell in a strip of over 32 units, in pixels.
const CELL_MIN: f64 = 12.0;
/// The gap between the number of the first unit and its row, in pixels.
const BEFORE: f64 = 8.0;
/// The least width of the drawing, in pixels: its title and legend need as much.
const WIDTH_MIN: f64 = 560.0;

/// Units in the order of their addresses. If there are more than 2048, neighbours share a cell,
/// which shows the greatest value among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// The title, at the top left of the drawing.
    pub title: String,
    /// The text that a screen reader reads in place of the drawing.
    pub description: String,
    /// The name of a unit with its size, such as `XPLine of 256 B`.
    pub unit: String,
    /// The label of the values, with their unit.
    pub value: String,
    /// The scale that maps values to shades. Zero has a look of its own on each scale.
    pub scale: Scale,
    /// The values of the units, in the order of their addresses.
    pub values: Vec<Option<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Missing,
    Zero,
    Value(f64),
}

impl Strip {
    /// Returns the drawing as an SVG element.
    pub fn svg(&self) -> String {
        let cells = self.cells();
        if cells.iter().all(|&cell| cell == Shown::Missing) {
            return no_data(&self.title, &self.description);
        }
        let values = cells.iter().filter_map(|cell| match cell {
            Shown::Value(value) => Some(*value),
            Shown::Missing | Shown::Zero => None,
        });
        let shading = Shading::new(self.scale, values);
        let columns = cells.len().min(COLUMNS);
        let size = if columns > COLUMNS / 2 { CELL_MIN } else { CELL_MAX };
        let last = full((self.values.len() - 1) as f64);
        let left = MARGIN + width(&last, SMALL) + BEFORE;
        let right = left + size * columns as f64;
        let mut canvas = Canvas::new((right + MARGIN).max(WIDTH_MIN));
        let top = canvas.title(&self.title);
        let top = legend::draw(&mut canvas, top, &legend(&cells, shading.as_ref()));
        let top = plot::value_label(&mut canvas, top, &self.value);
        for (class, shape) in shapes(&cells, shading.as_ref(), (left, top), size) {
            canvas.path(&shape, &class);
        }
        self.draw_positions(&mut canvas, cells.len(), left - BEFORE, top, size);
        let bottom = top + size * cells.len().div_ceil(COLUMNS) as f64;
        let label = self.legend_of_cells(cells.len() > COLUMNS);
        let height = plot::axis_label(&mut canvas, bottom, (left, right), &label);
        canvas.finish(height, &self.title, &self.description)
    }

    /// Returns a table with the least, mean and greatest value of each row of the drawing.
    pub fn table(&self) -> Table {
        let header = ["first", "last", "least", "mean", "most"].map(Column::numbers).to_vec();
        let per_row = self.per_cell() * COLUMNS;
        let row = |(row, values): (usize, &[Option<f64>])| {
            let there: Vec<f64> = values.iter().filter_map(|&value| drawable(value)).collect();
            let least = there.iter().copied().min_by(f64::total_cmp);
            let most = there.iter().copied().max_by(f64::total_cmp);
            let mean = most.map(|_| there.iter().sum::<f64>() / there.len() as f64);
            let first = row * per_row;
            let mut cells: Vec<Cell> =
                [first, first + values.len() - 1].map(|at| full(at as f64).into()).to_vec();
            cells.extend([least, mean, most].map(Cell::number));
            cells
        };
        let rows = self.values.chunks(per_row).enumerate().map(row).collect();
        Table { caption: format!("{}, by {}", self.value, self.unit), header, rows }
    }

    /// Returns a sentence that says how many units a cell represents.
    fn legend_of_cells(&self, has_rows: bool) -> String {
        let mut label = match self.per_cell() {
            1 => format!("a cell is one {}", self.unit),
            many => {
                format!(
                    "a cell is {} x {}, shaded by the greatest value",
                    full(many as f64),
                    self.unit
                )
            }
        };
        if has_rows {
            label.push_str("; the number before a row is the index of its first unit");
        }
        label
    }

    fn per_cell(&self) -> usize {
        self.values.len().div_ceil(COLUMNS * ROWS_MAX).max(1)
    }

    fn cells(&self) -> Vec<Shown> {
        let show = |units: &[Option<f64>]| {
            let there = units.iter().filter_map(|&value| drawable(value));
            match there.max_by(f64::total_cmp) {
                None => Shown::Missing,
                Some(0.0) => Shown::Zero,
                Some(value) => {
                    self.scale.drawable(Some(value)).map_or(Shown::Missing, Shown::Value)
                }
            }
        };
        self.values.chunks(self.per_cell()).map(show).collect()
    }

    /// Writes the index of the first unit of each row, or of every second row if rows are low.
    fn draw_positions(&self, canvas: &mut Canvas, cells: usize, right: f64, top: f64, size: f64) {
        let stride = if size < SMALL * 1.5 { 2 } else { 1 };
        for row in (0..cells.div_ceil(COLUMNS)).step_by(stride) {
            let first = full((row * COLUMNS * self.per_cell()) as f64);
            let base = top + size * (row as f64 + 0.5) + SMALL * (0.5 - DESCENT / 2.0);
            canvas.text(right, base, TextStyle::new(SMALL, Anchor::End).dim(), &first);
        }
    }
}

fn class_of(cell: Shown, shading: Option<&Shading>) -> String {
    match (cell, shading) {
        (Shown::Value(value), Some(shading)) => format!("w{}", shading.shade(value)),
        (Shown::Zero, _) => "zero".into(),
        _ => "missing".into(),
    }
}

/// Returns the cells as one path for each class: thousands of elements would make a page slow.
fn shapes(
    cells: &[Shown],
    shading: Option<&Shading>,
    (left, top): (f64, f64),
    size: f64,
) -> Vec<(String, String)> {
    let mut shapes: Vec<(String, String)> = Vec::new();
    for (index, &cell) in cells.iter().enumerate() {
        let class = class_of(cell, shading);
        let (row, column) = (index / COLUMNS, index % COLUMNS);
        let x = Px(left + size * column as f64);
        let y = Px(top + size * row as f64);
        let side = Px(size - 1.0);
        let known = shapes.iter().position(|(known, _)| *known == class);
        let at = known.unwrap_or_else(|| {
            shapes.push((class, String::new()));
            shapes.len() - 1
        });
        append(&mut shapes[at].1, format_args!("M{x} {y}h{side}v{side}h-{side}z"));
    }
    shapes
}

/// Returns the shades that occur, each with the range of its numbers.
fn legend(cells: &[Shown], shading: Option<&Shading>) -> Vec<LegendEntry> {
    let mut entries = Vec::new();
    if cells.contains(&Shown::Zero) {
        entries.push(LegendEntry::new(Sample::Zero, "0"));
    }
    for shade in 0..SHADES {
        let Some(shading) = shading else { break };
        let values = cells.iter().filter_map(|cell| match cell {
            Shown::Value(value) if shading.shade(*value) == shade => Some(*value),
            _ => None,
        });
        let ends = ends(values).map(|(low, high)| (short(low), short(high)));
        let Some((low, high)) = ends else { continue };
        let name = if low == high { low } else { format!("{low} to {high}") };
        entries.push(LegendEntry::new(Sample::Shade(shade), name));
    }
    if cells.contains(&Shown::Missing) {
        entries.push(LegendEntry::new(Sample::Missing, "not measured"));
    }
    entries
}
