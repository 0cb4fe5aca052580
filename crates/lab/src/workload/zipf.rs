//! Zipfian numbers: rank `k` of `n` comes with probability proportional to `1 / k^0.99`.
//!
//! Sampled by rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to generate
//! variates from monotone discrete distributions", 1996): exact for any `n`, a handful of
//! floating-point operations a number, and no table to set up.

use rand::{Rng, RngExt};

/// The exponent of YCSB.
pub(crate) const THETA: f64 = 0.99;

/// The distribution over `0..n`, 0 the most frequent.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: f64,
    /// The integral of the density up to the end of the first rank, less the first rank's weight.
    low: f64,
    /// The integral up to the end of the last rank.
    high: f64,
    /// A rank this near to where the inversion landed is accepted without a closer look.
    near: f64,
}

impl Zipf {
    /// The distribution over `0..n`; `n` is at least 1.
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

    /// Draws a rank.
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

/// `number` without its fraction.
#[expect(clippy::cast_sign_loss, reason = "it is not negative")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// `1 / x^THETA`.
fn density(x: f64) -> f64 {
    (-THETA * x.ln()).exp()
}

/// The integral of [`density`] from 1 to `x`, in a form that holds for exponents near 1.
fn integral(x: f64) -> f64 {
    let log = x.ln();
    let t = (1.0 - THETA) * log;
    let factor = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
    factor * log
}

/// The inverse of [`integral`].
fn inverse(y: f64) -> f64 {
    let t = (y * (1.0 - THETA)).max(-1.0);
    let factor = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
    (factor * y).exp()
}

/// A bijection of `0..n` that takes neighbours apart, so that the frequent ranks are not the
/// records that were loaded first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scramble {
    n: u64,
    factor: u64,
    shift: u64,
}

impl Scramble {
    /// A bijection of `0..n`; which one depends on `seed`.
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        // A golden section of `n` is as far from 0 and from `n` as a factor can be, for many steps;
        // the next coprime is near.
        let n = n.max(1);
        let golden = whole(n as f64 * 0.618_033_988_749_895).max(1);
        let factor = (golden..n).find(|&factor| gcd(factor, n) == 1).unwrap_or(1);
        Self { n, factor, shift: seed % n }
    }

    /// Where `index`, below `n`, goes.
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

    /// Pearson's statistic of `draws` draws from `Zipf::new(n)` against the definition, and the
    /// degrees of freedom. Ranks that are expected fewer than 20 times are taken together.
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
            // Mean `freedom`, variance twice that: five deviations are one case in millions.
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
