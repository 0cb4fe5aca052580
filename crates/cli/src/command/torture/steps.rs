//! The steps of a child's threads, as a function of a seed: child and parent draw the same steps.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The work of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) seed: u64,
    /// The number of the cycle, from 1. Cycle 0 loads the pool before the first kill.
    pub(super) cycle: u64,
    /// The number of different keys, at least one for each thread.
    pub(super) keys: u64,
    pub(super) threads: u64,
}

/// A version of a key's value: the step that wrote it, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) cycle: u64,
    pub(super) step: u64,
    pub(super) bytes: u64,
}

impl Version {
    /// Returns the version that `--load` gives to `key`.
    pub(super) const fn loaded(key: u64) -> Self {
        Self { cycle: 0, step: key, bytes: VALUE_BYTES_MIN + key % 8 }
    }

    /// Returns a version as words. No version has a length of 0, which says that there is none.
    pub(super) fn words(version: Option<Self>) -> [u64; 3] {
        let Self { cycle, step, bytes } = version.unwrap_or(Self { cycle: 0, step: 0, bytes: 0 });
        [cycle, step, bytes]
    }

    /// Returns the version of such words.
    pub(super) fn of_words([cycle, step, bytes]: [u64; 3]) -> Option<Self> {
        (bytes > 0).then_some(Self { cycle, step, bytes })
    }
}

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) key: u64,
    /// The version that the step puts, or `None` for a delete.
    pub(super) version: Option<Version>,
}

/// The length of the shortest value: four words, which name its key and its version.
const VALUE_BYTES_MIN: u64 = 32;

impl Load {
    /// Returns the endless steps of a thread.
    pub(super) fn steps(self, thread: u64) -> impl Iterator<Item = Step> {
        let stream = mix(self.seed ^ mix(self.cycle ^ mix(thread)));
        let mut rng = SmallRng::seed_from_u64(stream);
        let own = (self.keys - thread).div_ceil(self.threads);
        (0..).map(move |step| {
            let key = thread + self.threads * rng.random_range(0..own);
            let version = match rng.random_range(0..1024) {
                0..380 => None,
                380..390 => Some(rng.random_range(100..6000)),
                390 => Some(rng.random_range(6000..100_000)),
                _ => Some(rng.random_range(VALUE_BYTES_MIN..100)),
            };
            Step { key, version: version.map(|bytes| Version { cycle: self.cycle, step, bytes }) }
        })
    }
}

/// Returns the key with this number. Lengths differ, and neighbours share their first 8 B.
pub(super) fn key_of(number: u64) -> Vec<u8> {
    let tail = "x".repeat([0, 7, 40][(number % 3) as usize]);
    format!("{:02}{:06}/{number}{tail}", number % 17, number / 64).into_bytes()
}

/// Returns the number of a key, or `None` if [`key_of`] makes no such key.
pub(super) fn number_of(key: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(key).ok()?;
    let number = text.split_once('/')?.1.trim_end_matches('x').parse().ok()?;
    (key_of(number) == key).then_some(number)
}

/// Returns the value of a key in a version. Every byte follows from both.
pub(super) fn value_of(key: u64, version: Version) -> Vec<u8> {
    let Version { cycle, step, bytes } = version;
    let mut value = Vec::with_capacity(bytes as usize + 8);
    for word in [key, cycle, step, bytes] {
        value.extend_from_slice(&word.to_le_bytes());
    }
    let mut state = mix(key ^ mix(cycle ^ mix(step)));
    while value.len() < bytes as usize {
        value.extend_from_slice(&state.to_le_bytes());
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
    }
    value.truncate(bytes as usize);
    value
}

/// Returns the version of `value`, or `None` unless [`value_of`] makes exactly these bytes of it.
pub(super) fn version_of(key: u64, value: &[u8]) -> Option<Version> {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(value.get(..32)?.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let [owner, cycle, step, bytes] = words;
    let version = Version { cycle, step, bytes };
    let whole = owner == key && bytes == value.len() as u64 && value_of(key, version) == value;
    whole.then_some(version)
}

/// Returns a hash of a number (the finalizer of `SplitMix64`).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_keys_of_its_own_and_uses_them() {
        let load = Load { seed: 3, cycle: 9, keys: 10, threads: 3 };
        let mut owners = [None; 10];
        for thread in 0..3 {
            for step in load.steps(thread).take(1000) {
                assert_eq!(*owners[step.key as usize].get_or_insert(thread), thread);
            }
        }
        assert!(owners.iter().all(Option::is_some), "{owners:?}");
        let again: Vec<_> = load.steps(1).take(50).collect();
        assert_eq!(load.steps(1).take(50).collect::<Vec<_>>(), again);
        let other = Load { cycle: 10, ..load };
        assert_ne!(other.steps(1).take(50).collect::<Vec<_>>(), again);
    }

    #[test]
    fn keys_and_values_tell_whose_they_are() {
        for number in [0, 1, 2, 63, 64, 999_999, u64::MAX] {
            assert_eq!(number_of(&key_of(number)), Some(number));
        }
        assert_eq!(number_of(b"00000000/1"), None);
        let version = Version { cycle: 4, step: 77, bytes: 99 };
        let mut value = value_of(5, version);
        assert_eq!(version_of(5, &value), Some(version));
        assert_eq!(version_of(6, &value), None);
        value[98] ^= 1;
        assert_eq!(version_of(5, &value), None);
        assert_eq!(version_of(5, &value[..98]), None);
    }
}
