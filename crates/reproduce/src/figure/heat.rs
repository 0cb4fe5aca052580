//! A matrix of numbers: each is printed, shaded by its size, and outlined if it wins its column.

use super::canvas::{Anchor, Area, Canvas, DESCENT, Hand, MARGIN, SMALL, TEXT, WIDTH, nothing};
use super::legend::{self, Entry, Sample};
use super::names::{Names, Side};
use super::plot;
use super::scale::{Scale, Shading};
use crate::number::short;
use crate::text::{BOLD, shortened, width};
use crate::{Cell, Column, Mark, Table};

/// Height of a row, in pixels.
const ROW: f64 = 21.0;
/// Least and greatest width of a cell, in pixels.
const CELL_MIN: f64 = 46.0;
const CELL_MAX: f64 = 104.0;
/// Longest name of a row, in pixels; what is longer is cut.
const NAME_MAX: f64 = 220.0;
/// Least width of the drawing, in pixels, for its title and legend.
const WIDTH_MIN: f64 = 560.0;
/// Between a number and the edge of its cell, in pixels.
const PADDING: f64 = 7.0;

/// A matrix of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// What the chart shows, in a few words.
    pub title: String,
    /// The same for those who cannot see it: what stands out.
    pub description: String,
    /// What the rows are.
    pub row: String,
    /// What the columns are.
    pub column: String,
    /// What the numbers are, with their unit.
    pub value: String,
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The numbers, row by row. What is not there is missing.
    pub cells: Vec<Vec<Option<f64>>>,
    /// What a shade compares.
    pub shade: Shade,
    /// How numbers become shades.
    pub scale: Scale,
    /// What wins a column.
    pub best: Best,
}

/// What a shade compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shade {
    /// The numbers of a column.
    #[default]
    ByColumn,
    /// All numbers.
    Overall,
}

/// What wins a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Best {
    /// The lowest number, as of flushes.
    #[default]
    Lowest,
    /// The highest number, as of operations a second.
    Highest,
}

/// Where things are.
struct Layout {
    left: f64,
    top: f64,
    cell: f64,
}

impl Heat {
    /// The drawing.
    pub fn svg(&self) -> String {
        let all = self.columns.iter().enumerate().flat_map(|(column, _)| self.column(column));
        let Some(overall) = Shading::new(self.scale, all) else {
            return nothing(&self.title, &self.description);
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
            canvas.text(left - PADDING, base, Hand::new(TEXT, Anchor::End), name);
        }
        for column in 0..self.columns.len() {
            self.draw_column(&mut canvas, &layout, column, &overall);
        }
        let bottom = top + ROW * self.rows.len() as f64;
        let height = plot::axis_label(&mut canvas, bottom, (left, wide), &self.column);
        canvas.finish(height, &self.title, &self.description)
    }

    /// The data of the drawing as a table; who wins a column is marked.
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

    /// Wide enough for every number, and wider as far as the drawing has room.
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
            // A hair between cells tells equal shades apart.
            let area = Area { x, y, width: layout.cell - 1.0, height: ROW - 1.0 };
            let value = self.at(row, column);
            let (Some(value), Some(shading)) = (value, &own) else {
                canvas.rect(area, "missing");
                continue;
            };
            canvas.rect(area, &format!("q{}", shading.shade(value)));
            let mut hand = Hand::new(SMALL, Anchor::Middle);
            if is_best(Some(value), best) {
                let inner =
                    Area { x: x + 1.0, y: y + 1.0, width: area.width - 2.0, height: ROW - 3.0 };
                canvas.rect(inner, "winner");
                hand.class = "strong";
            }
            let middle = x + area.width / 2.0;
            canvas.text(middle, base_of(layout, row, SMALL), hand, &short(value));
        }
    }

    fn legend(&self) -> Vec<Entry> {
        let among = match self.shade {
            Shade::ByColumn => "of its column",
            Shade::Overall => "of all",
        };
        let best = match self.best {
            Best::Lowest => "best of its column: the lowest",
            Best::Highest => "best of its column: the highest",
        };
        let mut entries = vec![
            Entry::new(Sample::Shades, format!("lowest to highest {among}")),
            Entry::new(Sample::Winner, best),
        ];
        let is_missing = |row| (0..self.columns.len()).any(|column| self.at(row, column).is_none());
        if (0..self.rows.len()).any(is_missing) {
            entries.push(Entry::new(Sample::Missing, "not measured"));
        }
        entries
    }
}

fn is_best(value: Option<f64>, best: Option<f64>) -> bool {
    value.zip(best).is_some_and(|(value, best)| value.total_cmp(&best).is_eq())
}

/// The line that the text of a row stands on.
fn base_of(layout: &Layout, row: usize, size: f64) -> f64 {
    layout.top + ROW * (row as f64 + 0.5) + size * (0.5 - DESCENT / 2.0) - 0.5
}

fn longest<'a>(names: impl Iterator<Item = &'a String>, size: f64) -> f64 {
    names.map(|name| width(name, size)).fold(0.0, f64::max)
}
