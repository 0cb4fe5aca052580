//! Sample keys: keys that scenarios name by number.

use bristlecone_trees::{Key, Text};

/// A kind of key with samples that scenarios name by number.
pub(crate) trait SampleKey: Key {
    /// Returns the key of a number. Keys are in the order of their numbers. Number 0 is the least
    /// key, and [`NUMBER_MAX`] a very great one.
    fn sample(number: u64) -> Self::Owned;
}

/// The greatest number of a sample key.
pub(crate) const NUMBER_MAX: u64 = u64::MAX;

impl SampleKey for u64 {
    fn sample(number: u64) -> u64 {
        number
    }
}

impl SampleKey for Text {
    /// Returns keys of three lengths, whose records fill one line or two. Neighbours share their
    /// first 8 B.
    fn sample(number: u64) -> Vec<u8> {
        match number {
            0 => Vec::new(),
            NUMBER_MAX => vec![0xff; 12],
            _ => {
                let tail = [0, 5, 60][(number % 3) as usize];
                let mut key = format!("sample{number:06}").into_bytes();
                key.extend(core::iter::repeat_n(b'x', tail));
                key
            }
        }
    }
}
