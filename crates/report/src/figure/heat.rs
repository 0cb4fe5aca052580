//! Matrices: a cell for each number, shaded by its magnitude, outlined if it is the best of its
//! column.

use super::canvas::{
    Anchor, Area, Canvas, DESCENT, MARGIN, SMALL, TEXT, TextStyle, WIDTH, no_data,
};
use super::legend::{self, LegendEntry, Sample};
use super::names::{Names, Side};
use super::plot;
use super::scale::{Scale, Shading};
use crate::number::short;
use crate::table::{Cell, Column, Mark, Table};
use crate::text::{BOLD, shortened, width};

/// The height of a row, in pixels.
const ROW: f64 = 21.0;
/// The least width of a cell, in pixels.
const CELL_MIN: f64 = 46.0;
/// The greatest width of a cell, in pixels, unless its number is wider.
const CELL_MAX: f64 = 104.0;
/// The width to which names of rows are shortened, in pixels.
const NAME_MAX: f64 = 220.0;
/// The least width of the drawing, in pixels: its title and legend need as much.
const WIDTH_MIN: f64 = 560.0;
/// The distance between a number and the edge of its cell, in pixels.
const PADDING: f64 = 7.0;

/// A matrix of numbers, such as designs by devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// The title, at the top left of the drawing.
    pub title: String,
    /// The text that a screen reader reads in place of the drawing.
    pub description: String,
    /// The kind of thing in a row, as the head of the first column of the table.
    pub row: String,
    /// The kind of thing in a column, as the label below the matrix.
    pub column: String,
    /// The label of the numbers, with their unit.
    pub value: String,
    /// The names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// The names of the columns, from left to right.
    pub columns: Vec<String>,
    /// The numbers, row by row. Numbers beyond the end of a list are missing.
    pub cells: Vec<Vec<Option<f64>>>,
    /// The set of numbers that a shade compares.
    pub shade: Shade,
    /// The scale that maps numbers to shades.
    pub scale: Scale,
    /// The end of the scale that is best, and outlined, in each column.
    pub best: Best,
}

/// The set of numbers that a shade compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shade {
    /// The numbers of one column: the palest is its lowest.
    #[default]
    ByColumn,
    /// All numbers of the matrix.
    Overall,
}

/// The end of the scale that is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Best {
    /// The lowest number, as for flushes or times.
    #[default]
    Lowest,
    /// The highest number, as for operations a second.
    Highest,
}

struct Layout {
    left: f64,
    top: f64,
    cell: f64,
}

impl Heat {
    /// Returns the drawing as an SVG element.
    pub fn svg(&self) -> String {
        let all = self.columns.iter().enumerate().flat_map(|(column, _)| self.column(column));
        let Some(overall) = Shading::new(self.scale, all) else {
            return no_data(&self.title, &self.description);
        };
        let names: Vec<String> =
            self.rows.iter().map(|name| shortened(name, TEXT, NAME_MAX)).collect();
        let left = MARGIN + longest(names.iter(), TEXT) + PADDING;
        let cell = self.cell_width(left);
        let wide = left + cell * self.columns.len() as f64;
        let mut canvas = Canvas::new((wide + MARGIN).max(WIDTH_MIN));
        let top = canvas.title(&self.title);
        let top = legend::draw(&mut canvas, top, &self.legend());
        let top = plot::value_label(&mut canvas, top, &self.value);
        let heads = Names::fit(&self.columns, cell, Side::Above);
        let top = top + heads.height();
        heads.draw(&mut canvas, left, cell, top - PADDING / 2.0, Side::Above);
        let layout = Layout { left, top, cell };
        for (row, name) in names.iter().enumerate() {
            let base = base_of(&layout, row, TEXT);
            canvas.text(left - PADDING, base, TextStyle::new(TEXT, Anchor::End), name);
        }
        for column in 0..self.columns.len() {
            self.draw_column(&mut canvas, &layout, column, &overall);
        }
        let bottom = top + ROW * self.rows.len() as f64;
        let height = plot::axis_label(&mut canvas, bottom, (left, wide), &self.column);
        canvas.finish(height, &self.title, &self.description)
    }

    /// Returns the data of the drawing as a table; the best cell of each column is marked.
    pub fn table(&self) -> Table {
        let mut header = vec![Column::words(&self.row)];
        header.extend(self.columns.iter().map(Column::numbers));
        let best: Vec<_> = (0..self.columns.len()).map(|column| self.best_of(column)).collect();
        let row = |(row, name): (usize, &String)| {
            let mut cells = vec![Cell::from(name.as_str())];
            cells.extend(best.iter().enumerate().map(|(column, &best)| {
                let value = self.at(row, column);
                let cell = Cell::number(value);
                if is_best(value, best) { cell.marked(Mark::Good) } else { cell }
            }));
            cells
        };
        let rows = self.rows.iter().enumerate().map(row).collect();
        Table { caption: self.value.clone(), header, rows }
    }

    fn at(&self, row: usize, column: usize) -> Option<f64> {
        self.scale.drawable(self.cells.get(row)?.get(column).copied().flatten())
    }

    fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        (0..self.rows.len()).filter_map(move |row| self.at(row, column))
    }

    fn best_of(&self, column: usize) -> Option<f64> {
        match self.best {
            Best::Lowest => self.column(column).min_by(f64::total_cmp),
            Best::Highest => self.column(column).max_by(f64::total_cmp),
        }
    }

    /// Returns a width that fits every number, and more if the drawing has room.
    fn cell_width(&self, left: f64) -> f64 {
        let columns = 0..self.columns.len();
        let numbers = columns.flat_map(|column| self.column(column)).map(short);
        let numbers: Vec<String> = numbers.collect();
        let number = longest(numbers.iter(), SMALL * BOLD) + 2.0 * PADDING;
        let fair = (WIDTH - left - MARGIN) / self.columns.len() as f64;
        number.max(CELL_MIN).max(fair.min(CELL_MAX))
    }

    fn draw_column(&self, canvas: &mut Canvas, layout: &Layout, column: usize, overall: &Shading) {
        let own = match self.shade {
            Shade::ByColumn => Shading::new(self.scale, self.column(column)),
            Shade::Overall => Some(overall.clone()),
        };
        let best = self.best_of(column);
        let x = layout.left + layout.cell * column as f64;
        for row in 0..self.rows.len() {
            let y = layout.top + ROW * row as f64;
            // A gap of one pixel separates cells of equal shade.
            let area = Area { x, y, width: layout.cell - 1.0, height: ROW - 1.0 };
            let value = self.at(row, column);
            let (Some(value), Some(shading)) = (value, &own) else {
                canvas.rect(area, "missing");
                continue;
            };
            canvas.rect(area, &format!("q{}", shading.shade(value)));
            let mut style = TextStyle::new(SMALL, Anchor::Middle);
            if is_best(Some(value), best) {
                let inner =
                    Area { x: x + 1.0, y: y + 1.0, width: area.width - 2.0, height: ROW - 3.0 };
                canvas.rect(inner, "winner");
                style.class = "strong";
            }
            let middle = x + area.width / 2.0;
            canvas.text(middle, base_of(layout, row, SMALL), style, &short(value));
        }
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let among = match self.shade {
            Shade::ByColumn => "of its column",
            Shade::Overall => "of all columns",
        };
        let best = match self.best {
            Best::Lowest => "outlined: best of its column (lowest)",
            Best::Highest => "outlined: best of its column (highest)",
        };
        let mut entries = vec![
            LegendEntry::new(Sample::Shades, format!("pale to dark: lowest to highest {among}")),
            LegendEntry::new(Sample::Winner, best),
        ];
        let is_missing = |row| (0..self.columns.len()).any(|column| self.at(row, column).is_none());
        if (0..self.rows.len()).any(is_missing) {
            entries.push(LegendEntry::new(Sample::Missing, "not measured"));
        }
        entries
    }
}

fn is_best(value: Option<f64>, best: Option<f64>) -> bool {
    value.zip(best).is_some_and(|(value, best)| value.total_cmp(&best).is_eq())
}

/// Returns the baseline of the text in a row.
fn base_of(layout: &Layout, row: usize, size: f64) -> f64 {
    layout.top + ROW * (row as f64 + 0.5) + size * (0.5 - DESCENT / 2.0) - 0.5
}

fn longest<'a>(names: impl Iterator<Item = &'a String>, size: f64) -> f64 {
    names.map(|name| width(name, size)).fold(0.0, f64::max)
}
