//! Arithmetic modulo the prime 2^61 - 1. Numbers of images exceed 2^128, and the explorer has to
//! prove that it has covered each image exactly once.

const PRIME: u64 = (1 << 61) - 1;

/// A number modulo 2^61 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Residue(u64);

impl Residue {
    pub(crate) const ZERO: Self = Self(0);
    pub(crate) const ONE: Self = Self(1);

    pub(crate) fn of(number: u64) -> Self {
        Self(number % PRIME)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self((self.0 + other.0) % PRIME)
    }

    pub(crate) fn times(self, other: Self) -> Self {
        Self((u128::from(self.0) * u128::from(other.0) % u128::from(PRIME)) as u64)
    }

    /// Returns the multiplicative inverse of a number other than zero (Fermat).
    pub(crate) fn inverse(self) -> Self {
        debug_assert_ne!(self.0, 0);
        let (mut power, mut result, mut exponent) = (self, Self::ONE, PRIME - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(power);
            }
            power = power.times(power);
            exponent >>= 1;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_undoes_a_product() {
        for number in [1, 2, 255, 256, 511, 1 << 40] {
            let residue = Residue::of(number);
            assert_eq!(residue.times(residue.inverse()), Residue::ONE);
            assert_eq!(Residue::of(7).times(residue).times(residue.inverse()), Residue::of(7));
        }
        assert_eq!(Residue::of(PRIME - 1).plus(Residue::of(3)), Residue::of(2));
    }
}
