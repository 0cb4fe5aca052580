//! CRC-32C, the checksum of everything in a pool that has one.

use crate::sys;

/// The longest string, in bytes, whose checksum is computed in a single chain of instructions. For
/// a longer one, interleaved chains gain more than starting them costs.
const CHAIN_BYTES_MAX: usize = 256;

/// Returns the CRC-32C of `bytes`, computed by the processor's instruction where it has one.
#[inline]
pub fn checksum(bytes: &[u8]) -> u32 {
    checksum_append(0, bytes)
}

/// Returns the CRC-32C of the bytes that `checksum` covers, followed by `bytes`.
#[inline]
pub fn checksum_append(checksum: u32, bytes: &[u8]) -> u32 {
    if bytes.len() <= CHAIN_BYTES_MAX
        && let Some(checksum) = sys::crc32c_append(checksum, bytes)
    {
        return checksum;
    }
    crc32c::crc32c_append(checksum, bytes)
}

/// Returns the CRC-32C of `words`, each as 8 B in little-endian order.
#[inline]
pub(crate) fn checksum_words(words: impl IntoIterator<Item = u64>) -> u64 {
    let append = |crc, word: u64| checksum_append(crc, &word.to_le_bytes());
    u64::from(words.into_iter().fold(0, append))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_does_not_depend_on_how_it_is_computed() {
        assert_eq!(checksum(b"123456789"), 0xE306_9283);
        let bytes: Vec<u8> = (0..600u32).map(|i| ((i * i) >> 3) as u8).collect();
        for start in 0..9 {
            for end in (start..300).chain(500..600) {
                let bytes = &bytes[start..end];
                let expected = crc32c::crc32c_append(7, bytes);
                assert_eq!(checksum_append(7, bytes), expected, "{start}..{end}");
                let (head, tail) = bytes.split_at(bytes.len() / 3);
                assert_eq!(checksum_append(checksum_append(7, head), tail), expected);
            }
        }
    }
}
