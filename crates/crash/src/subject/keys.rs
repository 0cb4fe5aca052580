//! Sample keys: keys that scenarios name by number.

use bristlecone_trees::{Key, Text};

/// Keys in an order that a scenario can name by number.
pub(crate) trait SampleKey: Key {
    /// The key of that number; in the order of the numbers. Number 0 is the least key of all and
    /// number [`NUMBER_MAX`] a very great one.
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
    /// Lengths differ, so that keys fill one record line or two; the first 8 B are the same for
    /// neighbours.
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
