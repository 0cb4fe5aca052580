//! Units by position, such as the lines of a device: rows of cells, a shade for what each counts.

use super::canvas::{Anchor, Canvas, DESCENT, Hand, MARGIN, Px, SMALL, nothing};
use super::legend::{self, Entry, Sample};
use super::plot;
use super::scale::{SHADES, Scale, Shading, ends};
use crate::number::{drawable, full, short};
use crate::text::{put, width};
use crate::{Cell, Column, Table};

/// Cells in a row at most.
const COLUMNS: usize = 64;
/// Rows at most; more units share cells.
const ROWS_MAX: usize = 32;
/// Greatest and least size of a cell, in pixels.
const CELL_MAX: f64 = 20.0;
const CELL_MIN: f64 = 12.0;
/// Between the first unit's number and its row, in pixels.
const BEFORE: f64 = 8.0;
/// Least width of the drawing, in pixels, for its title and legend.
const WIDTH_MIN: f64 = 560.0;

/// Units by position. Where there are more than 2048, neighbours share a cell, which shows the most
/// that any of them counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// What the chart shows, in a few words.
    pub title: String,
    /// The same for those who cannot see it: what stands out.
    pub description: String,
    /// What a unit is, with its size.
    pub unit: String,
    /// What is counted for each.
    pub value: String,
    /// How numbers become shades. Zero has a shade of its own on each scale.
    pub scale: Scale,
    /// What each unit counts, by position.
    pub values: Vec<Option<f64>>,
}

/// What a cell shows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Missing,
    Zero,
    Value(f64),
}

impl Strip {
    /// The drawing.
    pub fn svg(&self) -> String {
        let cells = self.cells();
        if cells.iter().all(|&cell| cell == Shown::Missing) {
            return nothing(&self.title, &self.description);
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

    /// A summary of each row of the drawing as a table.
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

    /// What a cell stands for, in words.
    fn legend_of_cells(&self, has_rows: bool) -> String {
        let mut label = match self.per_cell() {
            1 => format!("a cell is one {}", self.unit),
            many => {
                format!("a cell is {} of {}, shaded for the most", full(many as f64), self.unit)
            }
        };
        if has_rows {
            label.push_str("; the number before a row is that of its first");
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

    /// The number of the first unit of a row, for as many rows as have room.
    fn draw_positions(&self, canvas: &mut Canvas, cells: usize, right: f64, top: f64, size: f64) {
        let stride = if size < SMALL * 1.5 { 2 } else { 1 };
        for row in (0..cells.div_ceil(COLUMNS)).step_by(stride) {
            let first = full((row * COLUMNS * self.per_cell()) as f64);
            let base = top + size * (row as f64 + 0.5) + SMALL * (0.5 - DESCENT / 2.0);
            canvas.text(right, base, Hand::new(SMALL, Anchor::End).dim(), &first);
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

/// The cells as one path for each class: thousands of elements would make a page slow.
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
        put(&mut shapes[at].1, format_args!("M{x} {y}h{side}v{side}h-{side}z"));
    }
    shapes
}

/// The shades that occur, with the numbers they stand for.
fn legend(cells: &[Shown], shading: Option<&Shading>) -> Vec<Entry> {
    let mut entries = Vec::new();
    if cells.contains(&Shown::Zero) {
        entries.push(Entry::new(Sample::Zero, "0"));
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
        entries.push(Entry::new(Sample::Shade(shade), name));
    }
    if cells.contains(&Shown::Missing) {
        entries.push(Entry::new(Sample::Missing, "not measured"));
    }
    entries
}
