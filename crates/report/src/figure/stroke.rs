//! The strokes that tell measured, projected and published numbers apart.

use super::marks::{RADIUS, RADIUS_SMALL};

/// The origin of a curve's numbers, which decides the stroke that draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Measured on this machine, or counted: a solid line with filled marks.
    Measured,
    /// Projected from a model of a device: a dashed line with small marks.
    Projected,
    /// Read from a paper: a dotted line with hollow marks.
    Paper,
}

impl Stroke {
    pub(super) const ALL: [Self; 3] = [Self::Measured, Self::Projected, Self::Paper];

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

    /// Returns the word for this origin in the legend, and beside the name in a table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Projected => "projected from a device model",
            Self::Paper => "the paper",
        }
    }
}
