//! Hashes of 64-bit words: seeds of random number generators, and the tokens of keys.

/// Returns the `SplitMix64` finaliser of `word`. It is a bijection of the 64-bit words.
pub fn mix64(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Returns a number for `index` that depends on `seed`. Distinct indices have distinct numbers.
pub(crate) fn nth_word(seed: u64, index: u64) -> u64 {
    /// The increment of `SplitMix64`: 2^64 over the golden ratio, made odd.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    mix64(index.wrapping_add(seed.wrapping_mul(GOLDEN)))
}
