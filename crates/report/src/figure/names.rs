//! Names along an axis: flat, if they fit into three lines, else slanted or upright.

use super::canvas::{Anchor, Canvas, DESCENT, LEADING, TEXT, TextStyle};
use crate::text::{fits, shortened, width, wrapped};

/// The maximum number of lines of a flat name.
const LINES_MAX: usize = 3;
/// The length to which turned names are shortened, in pixels.
const LENGTH_MAX: f64 = 170.0;
/// The gap between flat names, in pixels.
const BETWEEN: f64 = 8.0;
/// The horizontal, and the vertical, part of a length that is turned by 45 degrees.
const SLANT: f64 = core::f64::consts::FRAC_1_SQRT_2;
/// The least distance of slanted names, in pixels.
const PITCH_SLANTED: f64 = TEXT * LEADING / SLANT;

/// Names, fitted to their slots: a list of lines for each flat name.
#[derive(Clone, Debug)]
pub(super) enum Names {
    Flat(Vec<Vec<String>>),
    Slanted(Vec<String>),
    Upright(Vec<String>),
}

/// The side of the data on which names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Below the axis, where names may slant.
    Below,
    /// Above the data, where names have no room to slant.
    Above,
}

impl Names {
    /// Fits the names to slots of `pitch` pixels.
    pub(super) fn fit(names: &[String], pitch: f64, side: Side) -> Self {
        let room = pitch - BETWEEN;
        if names.iter().all(|name| fits(name, TEXT, room, LINES_MAX)) {
            let lines = |name: &String| wrapped(name, TEXT, room, LINES_MAX);
            return Self::Flat(names.iter().map(lines).collect());
        }
        let cut = names.iter().map(|name| shortened(name, TEXT, LENGTH_MAX)).collect();
        if side == Side::Below && pitch >= PITCH_SLANTED {
            Self::Slanted(cut)
        } else {
            Self::Upright(cut)
        }
    }

    /// Returns the height of the names, in pixels.
    pub(super) fn height(&self) -> f64 {
        match self {
            Self::Flat(names) => {
                let lines = names.iter().map(Vec::len).max().unwrap_or(0);
                lines as f64 * TEXT * LEADING
            }
            Self::Slanted(names) => (longest(names) + TEXT) * SLANT,
            Self::Upright(names) => longest(names),
        }
    }

    /// Returns how far slanted names extend to the left of the first slot, in pixels.
    pub(super) fn overhang(&self, pitch: f64) -> f64 {
        let Self::Slanted(names) = self else { return 0.0 };
        let reach = |(index, name): (usize, &String)| {
            (width(name, TEXT) + TEXT) * SLANT - (index as f64 + 0.5) * pitch
        };
        names.iter().enumerate().map(reach).fold(0.0, f64::max)
    }

    /// Writes each name at the middle of its slot; `y` is their top below the axis, their bottom
    /// above it.
    pub(super) fn draw(&self, canvas: &mut Canvas, left: f64, pitch: f64, y: f64, side: Side) {
        let middle = |index: usize| left + (index as f64 + 0.5) * pitch;
        match self {
            Self::Flat(names) => {
                for (index, lines) in names.iter().enumerate() {
                    let top = match side {
                        Side::Below => y,
                        Side::Above => y - lines.len() as f64 * TEXT * LEADING,
                    };
                    for (number, line) in (1..).zip(lines) {
                        let base = top + f64::from(number) * TEXT * LEADING - DESCENT * TEXT;
                        canvas.text(
                            middle(index),
                            base,
                            TextStyle::new(TEXT, Anchor::Middle),
                            line,
                        );
                    }
                }
            }
            Self::Slanted(names) => {
                let style = TextStyle { turn: -45, ..TextStyle::new(TEXT, Anchor::End) };
                for (index, name) in names.iter().enumerate() {
                    canvas.text(middle(index) + TEXT * SLANT / 2.0, y + TEXT * SLANT, style, name);
                }
            }
            Self::Upright(names) => {
                let anchor = if side == Side::Below { Anchor::End } else { Anchor::Start };
                let style = TextStyle { turn: -90, ..TextStyle::new(TEXT, anchor) };
                for (index, name) in names.iter().enumerate() {
                    let base = middle(index) + TEXT / 2.0 - DESCENT * TEXT / 2.0;
                    canvas.text(base, y, style, name);
                }
            }
        }
    }
}

fn longest(names: &[String]) -> f64 {
    names.iter().map(|name| width(name, TEXT)).fold(0.0, f64::max)
}
