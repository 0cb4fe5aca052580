//! The Zipf distribution: rank `k` of `n` has a probability proportional to `1 / k^0.99`.
//!
//! Samples come from rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to generate
//! variates from monotone discrete distributions", 1996). It is exact for any `n`, takes a few
//! floating-point operations for each sample, and needs no table.

use rand::{Rng, RngExt};

/// The exponent of YCSB.
pub(crate) const THETA: f64 = 0.99;

/// The Zipf distribution over `0..n`; 0 is the most frequent.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: f64,
    /// The integral of the density to the end of the first rank, less the weight of that rank.
    low: f64,
    /// The integral of the density to the end of the last rank.
    high: f64,
    /// The distance from the inverted point within which a rank is accepted without a further test.
    near: f64,
}

impl Zipf {
    /// Returns the distribution over `0..n`; `n` is at least 1.
    pub(crate) fn new(n: u64) -> Self {
        assert!(n > 0, "a distribution needs something to distribute over");
        let n = n as f64;
        Self {
            n,
            low: integral(1.5) - 1.0,
            high: integral(n + 0.5),
            near: 2.0 - inverse(integral(2.5) - density(2.0)),
        }
    }

    /// Draws a rank below `n`.
    pub(crate) fn sample(&self, rng: &mut impl Rng) -> u64 {
        loop {
            let at = self.high + rng.random::<f64>() * (self.low - self.high);
            let x = inverse(at);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.near || at >= integral(k + 0.5) - density(k) {
                return whole(k) - 1;
            }
        }
    }
}

/// Returns `number` without its fraction; `number` is not negative.
#[expect(clippy::cast_sign_loss, reason = "it is not negative")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// Returns `1 / x^THETA`.
fn density(x: f64) -> f64 {
    (-THETA * x.ln()).exp()
}

/// Returns the integral of [`density`] from 1 to `x`, by a formula that is stable near exponent 1.
fn integral(x: f64) -> f64 {
    let log = x.ln();
    let t = (1.0 - THETA) * log;
    let factor = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
    factor * log
}

/// Returns the inverse of [`integral`].
fn inverse(y: f64) -> f64 {
    let t = (y * (1.0 - THETA)).max(-1.0);
    let factor = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
    (factor * y).exp()
}

/// A bijection of `0..n` that separates neighbours, so that the frequent ranks are not the records
/// that were loaded first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scramble {
    n: u64,
    factor: u64,
    shift: u64,
}

impl Scramble {
    /// Returns a bijection of `0..n` that depends on `seed`.
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        // Multiples of the golden section of `n` stay far from 0 and from `n` for many steps. The
        // nearest greater factor that is coprime to `n` makes the map a bijection.
        let n = n.max(1);
        let golden = whole(n as f64 * 0.618_033_988_749_895).max(1);
        let factor = (golden..n).find(|&factor| gcd(factor, n) == 1).unwrap_or(1);
        Self { n, factor, shift: seed % n }
    }

    /// Returns the image of `index`, which is below `n`.
    pub(crate) fn apply(&self, index: u64) -> u64 {
        let product = u128::from(index) * u128::from(self.factor) + u128::from(self.shift);
        (product % u128::from(self.n)) as u64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    /// Returns Pearson's statistic of `draws` samples against the definition, and the degrees of
    /// freedom. Ranks with fewer than 20 expected samples are combined.
    fn chi_square(n: u64, draws: u64, seed: u64, zipf: &Zipf) -> (f64, f64) {
        let mut seen = vec![0_u64; n as usize];
        let mut rng = SmallRng::seed_from_u64(seed);
        for _ in 0..draws {
            seen[zipf.sample(&mut rng) as usize] += 1;
        }
        let weight = |rank: usize| 1.0 / (rank as f64 + 1.0).powf(THETA);
        let total: f64 = (0..n as usize).map(weight).sum();
        let (mut statistic, mut cells) = (0.0, 0.0);
        let (mut expected, mut observed) = (0.0, 0.0);
        for (rank, &count) in seen.iter().enumerate() {
            expected += draws as f64 * weight(rank) / total;
            observed += count as f64;
            if expected >= 20.0 || rank + 1 == n as usize {
                statistic += (observed - expected) * (observed - expected) / expected;
                cells += 1.0;
                (expected, observed) = (0.0, 0.0);
            }
        }
        (statistic, (cells - 1.0_f64).max(1.0))
    }

    #[test]
    fn ranks_come_as_often_as_the_definition_says() {
        for (n, seed) in [(2, 1), (10, 2), (1000, 3), (100_000, 4)] {
            let (statistic, freedom) = chi_square(n, 400_000, seed, &Zipf::new(n));
            // The mean is `freedom` and the variance twice that. Five deviations are one case in
            // millions.
            let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
            assert!(statistic < limit, "n {n}: {statistic} of {freedom} degrees");
        }
    }

    #[test]
    fn the_comparison_tells_other_distributions_apart() {
        let (statistic, freedom) = chi_square(1000, 400_000, 5, &Zipf::new(900));
        assert!(statistic > freedom + 50.0 * (2.0 * freedom).sqrt(), "{statistic} of {freedom}");
    }

    #[test]
    fn one_record_is_always_chosen() {
        let mut rng = SmallRng::seed_from_u64(6);
        assert!((0..100).all(|_| Zipf::new(1).sample(&mut rng) == 0));
    }

    #[test]
    fn scrambling_is_a_bijection_that_takes_neighbours_apart() {
        for n in [1, 2, 3, 4, 6, 100, 1000, 4096, 99_991] {
            let scramble = Scramble::new(n, 12_345);
            let mut hit = vec![false; n as usize];
            for index in 0..n {
                let to = scramble.apply(index) as usize;
                assert!(!std::mem::replace(&mut hit[to], true), "{n}: two go to {to}");
            }
            let apart = scramble.apply(1).abs_diff(scramble.apply(0));
            assert!(n < 100 || apart.min(n - apart) > n / 5, "{n}: {apart}");
        }
    }
}
