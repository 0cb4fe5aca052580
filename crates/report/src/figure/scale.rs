//! Scales: maps from numbers to positions on an axis, or to shades, with round ticks.

use crate::number::{drawable, short, tick};

/// The map from numbers to positions on an axis, or to shades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal lengths.
    #[default]
    Linear,
    /// Equal ratios have equal lengths, and ticks are powers of two. Zero and negative numbers are
    /// missing.
    Log2,
    /// Equal ratios have equal lengths, and ticks are powers of ten. Zero and negative numbers are
    /// missing.
    Log10,
}

/// The label and the scale of a numeric axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axis {
    /// The label, with the unit.
    pub label: String,
    /// The map from numbers to positions.
    pub scale: Scale,
}

/// The steps of linear ticks, times a power of ten.
const STEPS: [f64; 4] = [1.0, 2.0, 2.5, 5.0];
/// Up to this number of decades, a logarithmic axis also has ticks at 2 and 5 of each decade.
const FEW_DECADES: i32 = 2;
/// A span that is smaller than this share of its numbers counts as a single number.
const NARROW: f64 = 1e-9;

impl Scale {
    /// Returns the number if it can be drawn on this scale.
    pub(super) fn drawable(self, value: Option<f64>) -> Option<f64> {
        drawable(value).filter(|&value| self == Self::Linear || value > 0.0)
    }

    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        }
    }
}

/// The range of an axis, and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    scale: Scale,
    low: f64,
    high: f64,
    /// The ticks with their labels, in ascending order.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Span {
    /// Creates the span of `values`, extended to round numbers; `None` if there are no values. With
    /// `from_zero`, a linear span includes zero.
    pub(super) fn new(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        from_zero: bool,
        ticks_max: i32,
    ) -> Option<Self> {
        let drawn = values.filter_map(|value| scale.drawable(Some(value)));
        let (low, high) = ends(drawn)?;
        let ticks_max = ticks_max.max(2);
        Some(match scale {
            Scale::Linear if from_zero => linear(low.min(0.0), high.max(0.0), ticks_max),
            Scale::Linear => linear(low, high, ticks_max),
            Scale::Log2 => logarithmic(scale, 2.0, (low, high), ticks_max),
            Scale::Log10 => logarithmic(scale, 10.0, (low, high), ticks_max),
        })
    }

    /// Returns the position of a number, from 0 at the low end to 1 at the high end.
    pub(super) fn fraction(&self, value: f64) -> f64 {
        let place = self.scale.place(value);
        ((place - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Returns the position at which bars begin: that of zero, or 0 on a logarithmic scale.
    pub(super) fn base(&self) -> f64 {
        match self.scale {
            Scale::Linear => self.fraction(0.0),
            Scale::Log2 | Scale::Log10 => 0.0,
        }
    }
}

fn linear(low: f64, high: f64, ticks_max: i32) -> Span {
    let size = low.abs().max(high.abs());
    let is_narrow = high - low <= NARROW * size;
    let (low, high) = match is_narrow {
        true if size > 0.0 => (low - size / 2.0, high + size / 2.0),
        true => (0.0, 1.0),
        false => (low, high),
    };
    let rough = (high - low) / f64::from(ticks_max - 1);
    let power = 10f64.powi(rough.log10().floor() as i32);
    // 20 times the power of ten below the rough step always fits, so some candidate does.
    let candidates = STEPS.iter().chain(&[10.0, 20.0]).map(|step| step * power);
    let count = |step: f64| ((high / step).ceil() - (low / step).floor()) as i32 + 1;
    let mut fitting = candidates.filter(|&step| count(step) <= ticks_max);
    let step = fitting.next().unwrap_or((high - low).max(power));
    let first = (low / step).floor();
    let values = (0..count(step)).map(|index| (first + f64::from(index)) * step);
    let values: Vec<f64> = values.collect();
    let (low, high) = (values[0], values[values.len() - 1]);
    let largest = low.abs().max(high.abs());
    let ticks = values.into_iter().map(|value| (value, tick(value, step, largest))).collect();
    Span { scale: Scale::Linear, low, high, ticks }
}

fn logarithmic(scale: Scale, base: f64, (low, high): (f64, f64), ticks_max: i32) -> Span {
    // NARROW absorbs the rounding error of a logarithm, so that a power is its own tick.
    let first = (scale.place(low) + NARROW).floor() as i32;
    let last = (scale.place(high) - NARROW).ceil() as i32;
    let last = last.max(first + 1);
    let stride = (last - first) / ticks_max + 1;
    let powers = (first..=last).step_by(stride.unsigned_abs() as usize);
    let mut values: Vec<f64> = powers.map(|exponent| base.powi(exponent)).collect();
    if scale == Scale::Log10 && last - first <= FEW_DECADES {
        let between = (first..last).flat_map(|exponent| [2, 5].map(|part| (part, exponent)));
        values.extend(between.map(|(part, exponent)| f64::from(part) * base.powi(exponent)));
        values.sort_by(f64::total_cmp);
    }
    let ticks = values.into_iter().map(|value| (value, short(value))).collect();
    Span { scale, low: first.into(), high: last.into(), ticks }
}

/// The number of shades of the one colour of matrices and strips.
pub(super) const SHADES: usize = 8;

/// The range of shades, from the least number to the greatest.
#[derive(Clone, Debug)]
pub(super) struct Shading {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Shading {
    /// Creates the shading of `values`; `None` if there are no values.
    pub(super) fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Option<Self> {
        let places = values.filter_map(|value| scale.drawable(Some(value)));
        let (low, high) = ends(places.map(|value| scale.place(value)))?;
        Some(Self { scale, low, high })
    }

    /// Returns the shade of a number: 0 is the palest.
    pub(super) fn shade(&self, value: f64) -> usize {
        let above = self.scale.place(value) - self.low;
        let step = (self.high - self.low) / SHADES as f64;
        (1..SHADES).filter(|&shade| above > 0.0 && above >= step * shade as f64).count()
    }
}

/// Returns the least number and the greatest.
pub(super) fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64], from_zero: bool) -> Vec<String> {
        let span = Span::new(scale, values.iter().copied(), from_zero, 8).expect("has values");
        span.ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(Scale::Linear, &[3.7], true), ["0", "1", "2", "3", "4"]);
        let signed = labels(Scale::Linear, &[-84.7, 12.0], true);
        assert_eq!(signed[..2], ["\u{2212}100", "\u{2212}80"]);
        assert_eq!(signed[5..], ["0", "20"]);
        assert_eq!(
            labels(Scale::Log2, &[1.0, 48.0], false),
            ["1", "2", "4", "8", "16", "32", "64"]
        );
        assert_eq!(labels(Scale::Log10, &[1.0, 100.0], false)[..4], ["1", "2", "5", "10"]);
        assert_eq!(labels(Scale::Log10, &[1.0, 1e4], false), ["1", "10", "100", "1000", "10k"]);
    }

    #[test]
    fn all_numbers_lie_within_their_span() {
        let lists: [&[f64]; 9] = [
            &[0.0],
            &[5.0],
            &[-5.0],
            &[1e100, -1e100],
            &[1e-99],
            &[1e15, 1e15 + 1.0],
            &[f64::NAN, 2.0, f64::INFINITY],
            &[0.1, 0.2, 0.3],
            &[-1e-9, 1e9],
        ];
        for values in lists {
            for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
                for from_zero in [false, true] {
                    let drawn = || values.iter().filter_map(|&v| scale.drawable(Some(v)));
                    let Some(span) = Span::new(scale, drawn(), from_zero, 7) else {
                        assert_eq!(drawn().count(), 0);
                        continue;
                    };
                    assert!((2..=9).contains(&span.ticks.len()), "{values:?}: {span:?}");
                    assert!(span.ticks.is_sorted_by(|a, b| a.0 < b.0), "{values:?}: {span:?}");
                    for value in drawn() {
                        let place = (scale.place(value) - span.low) / (span.high - span.low);
                        assert!((-1e-6..=1.000_001).contains(&place), "{values:?}: {span:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_has_no_span() {
        assert!(Span::new(Scale::Linear, [f64::NAN].into_iter(), true, 5).is_none());
        assert!(Span::new(Scale::Log2, [0.0, -1.0].into_iter(), false, 5).is_none());
    }
}
