//! The 95 % interval of a measured number.
//!
//! Repetitions of two systems are paired: repetition `i` of both runs in the same turn, so that a
//! slow moment of the machine affects both. The logarithms of the ratios of the pairs are averaged,
//! and Student's t with one degree of freedom fewer than pairs gives the interval of their mean.
//! The measured number is the geometric mean of the ratios.

use serde::Serialize;

/// A measured number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The measured number.
    pub value: f64,
    /// The lower end; `None` if there are too few repetitions for an interval.
    pub low: Option<f64>,
    /// The upper end; `None` if there are too few repetitions for an interval.
    pub high: Option<f64>,
    /// The number of repetitions; 1 for a number that is the same in each run.
    pub repetitions: usize,
}

/// The 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// Creates the interval of a number that is the same in each run: a point.
    pub const fn exact(value: f64) -> Self {
        Self { value, low: Some(value), high: Some(value), repetitions: 1 }
    }

    /// Returns `true` if the number is the same in each run.
    pub const fn is_exact(&self) -> bool {
        self.repetitions == 1 && self.low.is_some()
    }

    /// Creates the interval of the geometric mean of `ratios`, one for each repetition.
    pub fn of_ratios(ratios: &[f64]) -> Self {
        let count = ratios.len();
        let mean =
            |values: &mut dyn Iterator<Item = f64>, of: usize| values.sum::<f64>() / of as f64;
        let log = mean(&mut ratios.iter().map(|ratio| ratio.ln()), count);
        let value = log.exp();
        if count < 2 {
            return Self { value, low: None, high: None, repetitions: count };
        }
        let mut squares = ratios.iter().map(|ratio| (ratio.ln() - log).powi(2));
        let variance = mean(&mut squares, count - 1);
        // Beyond the table the last quantile makes the interval a little too wide.
        let t = T_975[(count - 2).min(T_975.len() - 1)];
        let half = t * (variance / count as f64).sqrt();
        let [low, high] = [log - half, log + half].map(|end| Some(end.exp()));
        Self { value, low, high, repetitions: count }
    }

    /// Creates the interval of the ratio of `own` to `base`, repetition by repetition.
    pub fn paired(own: &[f64], base: &[f64]) -> Self {
        let ratios: Vec<f64> = own.iter().zip(base).map(|(own, base)| own / base).collect();
        Self::of_ratios(&ratios)
    }

    /// Creates the range of `values`, with `value` as the measured number.
    ///
    /// It is for values that are no ratios, such as the best of a few sizes.
    pub fn range(value: f64, values: &[f64]) -> Self {
        let least = values.iter().copied().reduce(f64::min);
        let most = values.iter().copied().reduce(f64::max);
        let has_range = values.len() > 1;
        Self {
            value,
            low: least.filter(|_| has_range),
            high: most.filter(|_| has_range),
            repetitions: values.len(),
        }
    }

    /// Returns the interval of the relative change, for the interval of a ratio.
    #[must_use]
    pub fn less_one(self) -> Self {
        let less = |end: Option<f64>| end.map(|end| end - 1.0);
        Self { value: self.value - 1.0, low: less(self.low), high: less(self.high), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_number_is_a_point() {
        let point = Interval::exact(3.0);
        assert_eq!((point.low, point.high, point.repetitions), (Some(3.0), Some(3.0), 1));
        assert!(point.is_exact() && !Interval::of_ratios(&[3.0]).is_exact());
    }

    #[test]
    fn the_interval_of_ten_pairs_is_students() {
        // Logarithms -0.09, -0.07 .. 0.09: mean 0, variance 0.0330 / 9, t of 9 degrees 2.262.
        let logs = (0..10).map(|at| f64::from(2 * at - 9) / 100.0);
        let ratios: Vec<f64> = logs.map(f64::exp).collect();
        let found = Interval::of_ratios(&ratios);
        let half = 2.262 * (0.033_f64 / 9.0 / 10.0).sqrt();
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(is(found.value, 1.0) && found.repetitions == 10);
        assert!(is(found.low.unwrap(), (-half).exp()) && is(found.high.unwrap(), half.exp()));
        let change = found.less_one();
        assert!(is(change.value, 0.0) && is(change.high.unwrap(), half.exp() - 1.0));
    }

    #[test]
    fn what_slows_both_of_a_pair_does_not_widen_the_interval() {
        let base = [1.0, 2.0, 5.0, 1.5, 3.0, 1.0, 1.0, 2.0, 4.0, 1.0];
        let own = base.map(|speed| speed * 2.0);
        let found = Interval::paired(&own, &base);
        assert!((found.high.unwrap() - found.low.unwrap()).abs() < 1e-9 && found.value > 1.9);
        assert_eq!(Interval::paired(&[1.0], &[2.0]).low, None, "one pair has no interval");
    }
}
