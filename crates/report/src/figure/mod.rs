//! Charts: each turns numbers into a drawing (SVG), and into a table of the same numbers.
//!
//! 1. A chart depends on its data alone: no clock, no file, no state.
//! 2. A value that is missing or not finite is a gap, never a zero.
//! 3. No text leaves its drawing, and no text covers data or other text. Widths are estimates of
//!    glyphs, so this holds for fonts that are no wider than the estimate.
//! 4. Colours are custom properties of the page. Series also differ in texture or in the shape of
//!    their marks, so that print and colour-blind readers lose nothing.
//!
//! A drawing needs a page with [`STYLE`] in its style sheet and [`TEXTURES`] in its body. Alone it
//! is well formed but black; [`picture`](crate::page::picture) adds what it needs.

mod bars;
mod canvas;
mod event_mark;
mod heat;
mod legend;
mod lines;
mod marks;
mod names;
mod plot;
mod scale;
mod strip;
mod stroke;
mod style;
#[cfg(test)]
mod tests;
mod timeline;

pub use bars::{BarSeries, Bars};
pub use event_mark::EventMark;
pub use heat::{Best, Heat, Shade};
pub use lines::{Curve, Lines, Point};
pub use plot::Baseline;
pub use scale::{Axis, Scale};
pub use strip::Strip;
pub use stroke::Stroke;
pub use style::{STYLE, TEXTURES};
pub use timeline::{Timeline, TimelineEvent};

use crate::table::Table;

/// A chart of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Groups of bars over categories.
    Bars(Bars),
    /// Curves over a numeric axis.
    Lines(Lines),
    /// A matrix of numbers with shaded cells.
    Heat(Heat),
    /// Units in the order of their addresses, one cell for each.
    Strip(Strip),
    /// Events in lanes, from top to bottom.
    Timeline(Timeline),
}

impl Chart {
    /// Returns the title of the chart.
    pub fn title(&self) -> &str {
        match self {
            Self::Bars(chart) => &chart.title,
            Self::Lines(chart) => &chart.title,
            Self::Heat(chart) => &chart.title,
            Self::Strip(chart) => &chart.title,
            Self::Timeline(chart) => &chart.title,
        }
    }

    /// Returns the drawing as an SVG element.
    pub fn svg(&self) -> String {
        match self {
            Self::Bars(chart) => chart.svg(),
            Self::Lines(chart) => chart.svg(),
            Self::Heat(chart) => chart.svg(),
            Self::Strip(chart) => chart.svg(),
            Self::Timeline(chart) => chart.svg(),
        }
    }

    /// Returns the data of the drawing as a table.
    pub fn table(&self) -> Table {
        match self {
            Self::Bars(chart) => chart.table(),
            Self::Lines(chart) => chart.table(),
            Self::Heat(chart) => chart.table(),
            Self::Strip(chart) => chart.table(),
            Self::Timeline(chart) => chart.table(),
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

impl From<Timeline> for Chart {
    fn from(chart: Timeline) -> Self {
        Self::Timeline(chart)
    }
}
