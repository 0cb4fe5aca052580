//! Charts: from numbers to the text of a drawing (SVG), and to the same numbers as a table.
//!
//! 1. A chart is a function of its data and of nothing else: no clock, no file, no state.
//! 2. A value that is missing, or is no finite number, is a gap and never a zero.
//! 3. No text leaves the box of its drawing, and no text or legend lies on data that it would hide.
//!    Widths are estimates of glyphs, so this holds for the faces that the estimate is wide enough
//!    for.
//! 4. Colours are custom properties of the page that holds the drawing. Series differ in texture or
//!    in the shape of their marks as well, for readers who do not see colours, and for paper.
//!
//! A drawing is made for a page that has [`STYLE`] in its styles and [`TEXTURES`] in its body. By
//! itself it is well formed, but black.

mod bars;
mod canvas;
mod heat;
mod legend;
mod lines;
mod marks;
mod names;
mod plot;
mod scale;
mod strip;
mod style;
#[cfg(test)]
mod tests;

pub use bars::{BarSeries, Bars};
pub use heat::{Best, Heat, Shade};
pub use lines::{Curve, Kind, Lines, Point};
pub use plot::Baseline;
pub use scale::{Axis, Scale};
pub use strip::Strip;
pub use style::{STYLE, TEXTURES};

use crate::Table;

/// A chart of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Bars in groups.
    Bars(Bars),
    /// Curves over an axis.
    Lines(Lines),
    /// A matrix of numbers.
    Heat(Heat),
    /// Units by position.
    Strip(Strip),
}

impl Chart {
    /// What the chart shows, in a few words.
    pub fn title(&self) -> &str {
        match self {
            Self::Bars(chart) => &chart.title,
            Self::Lines(chart) => &chart.title,
            Self::Heat(chart) => &chart.title,
            Self::Strip(chart) => &chart.title,
        }
    }

    /// The drawing.
    pub fn svg(&self) -> String {
        match self {
            Self::Bars(chart) => chart.svg(),
            Self::Lines(chart) => chart.svg(),
            Self::Heat(chart) => chart.svg(),
            Self::Strip(chart) => chart.svg(),
        }
    }

    /// The data of the drawing as a table.
    pub fn table(&self) -> Table {
        match self {
            Self::Bars(chart) => chart.table(),
            Self::Lines(chart) => chart.table(),
            Self::Heat(chart) => chart.table(),
            Self::Strip(chart) => chart.table(),
        }
    }
}

impl From<Bars> for Chart {
    fn from(chart: Bars) -> Self {
        Self::Bars(chart)
    }
}

impl From<Lines> for Chart {
    fn from(chart: Lines) -> Self {
        Self::Lines(chart)
    }
}

impl From<Heat> for Chart {
    fn from(chart: Heat) -> Self {
        Self::Heat(chart)
    }
}

impl From<Strip> for Chart {
    fn from(chart: Strip) -> Self {
        Self::Strip(chart)
    }
}
