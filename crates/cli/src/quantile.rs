//! Quantiles of durations.

use std::time::Duration;

/// Returns the shortest of `times` that `percent` percent of them do not exceed, and zero if there
/// are none. Sorts `times`.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let rank = (times.len() * percent).div_ceil(100);
    rank.checked_sub(1).map_or(Duration::ZERO, |index| times[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let ms = Duration::from_millis;
        assert_eq!(percentile(&mut [], 99), Duration::ZERO);
        assert_eq!(percentile(&mut [ms(3), ms(1)], 99), ms(3));
        assert_eq!(percentile(&mut [ms(3), ms(1)], 50), ms(1));
        let mut two_hundred: Vec<_> = (1..=200).rev().map(ms).collect();
        assert_eq!(percentile(&mut two_hundred, 99), ms(198));
    }
}
