//! Names along an axis: flat where they fit, in several lines where that helps, turned where not.

use super::canvas::{Anchor, Canvas, DESCENT, Hand, LEADING, TEXT};
use crate::text::{fits, shortened, width, wrapped};

/// Lines that a name may take.
const LINES_MAX: usize = 3;
/// What a turned name may be long, in pixels; longer ones are cut.
const LENGTH_MAX: f64 = 170.0;
/// From one flat name to the next, in pixels.
const BETWEEN: f64 = 8.0;
/// A turn of 45 degrees: what it makes of a length, across and down.
const SLANT: f64 = core::f64::consts::FRAC_1_SQRT_2;
/// Least distance of slanted names, in pixels.
const PITCH_SLANTED: f64 = TEXT * LEADING / SLANT;

/// Names, and how they are written.
#[derive(Clone, Debug)]
pub(super) enum Names {
    Flat(Vec<Vec<String>>),
    Slanted(Vec<String>),
    Upright(Vec<String>),
}

/// Which turns there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Under the axis.
    Below,
    /// Over the data, where there is no room to slant.
    Above,
}

impl Names {
    /// How these names are written with that much room for each.
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

    /// What they take, across the axis.
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

    /// How far the names reach to the left of where the first slot begins.
    pub(super) fn overhang(&self, pitch: f64) -> f64 {
        let Self::Slanted(names) = self else { return 0.0 };
        let reach = |(index, name): (usize, &String)| {
            (width(name, TEXT) + TEXT) * SLANT - (index as f64 + 0.5) * pitch
        };
        names.iter().enumerate().map(reach).fold(0.0, f64::max)
    }

    /// Writes them, each at the middle of its slot; `y` is where they begin, or end if above.
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
                        canvas.text(middle(index), base, Hand::new(TEXT, Anchor::Middle), line);
                    }
                }
            }
            Self::Slanted(names) => {
                let hand = Hand { turn: -45, ..Hand::new(TEXT, Anchor::End) };
                for (index, name) in names.iter().enumerate() {
                    canvas.text(middle(index) + TEXT * SLANT / 2.0, y + TEXT * SLANT, hand, name);
                }
            }
            Self::Upright(names) => {
                let anchor = if side == Side::Below { Anchor::End } else { Anchor::Start };
                let hand = Hand { turn: -90, ..Hand::new(TEXT, anchor) };
                for (index, name) in names.iter().enumerate() {
                    let base = middle(index) + TEXT / 2.0 - DESCENT * TEXT / 2.0;
                    canvas.text(base, y, hand, name);
                }
            }
        }
    }
}

fn longest(names: &[String]) -> f64 {
    names.iter().map(|name| width(name, TEXT)).fold(0.0, f64::max)
}
