//! CRC-32C, the checksum of everything in a pool that has one.

/// Returns the CRC-32C of `bytes`, computed by the processor's instruction where it has one.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Returns the CRC-32C of the bytes that `checksum` covers, followed by `bytes`.
pub fn checksum_append(checksum: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(checksum, bytes)
}

/// Returns the CRC-32C of `words`, each as 8 B in little-endian order.
#[inline]
pub(crate) fn checksum_words(words: impl IntoIterator<Item = u64>) -> u64 {
    let append = |crc, word: u64| crc32c::crc32c_append(crc, &word.to_le_bytes());
    u64::from(words.into_iter().fold(0, append))
}
