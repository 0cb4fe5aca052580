//! Rank correlation.

/// Returns Spearman's rank correlation of two lists of the same length: 1 if both have the same
/// order, -1 if the orders are opposite. Equal values share the mean of their ranks.
pub fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let [a, b] = [ranks(a), ranks(b)];
    // The mean of all ranks.
    let middle = (a.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    sum(&a, &b) / (sum(&a, &a) * sum(&b, &b)).sqrt()
}

/// Returns the rank of each value, from 0 on.
fn ranks(values: &[f64]) -> Vec<f64> {
    let count = |is: &dyn Fn(f64) -> bool| values.iter().filter(|&&value| is(value)).count();
    let rank = |&value: &f64| {
        let below = count(&|other| other < value);
        // The value is one of its equals.
        let equal = count(&|other| other.total_cmp(&value).is_eq());
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_compared_and_sizes_are_not() {
        let is = |a: &[f64], b: &[f64], expected: f64| {
            assert!((rank_correlation(a, b) - expected).abs() < 1e-9, "{a:?} {b:?}");
        };
        is(&[1.0, 2.0, 3.0], &[1.0, 10.0, 100.0], 1.0);
        is(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0], -1.0);
        // Differences of ranks 0, 1, 1, 0: 1 - 6 * 2 / (4 * 15).
        is(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0], 0.8);
        assert_eq!(ranks(&[5.0, 5.0, 1.0]), [1.5, 1.5, 0.0]);
    }
}
