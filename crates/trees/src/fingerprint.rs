//! Fingerprints: a one-byte hash of a key, compared for many entries at once (FPTree).

use bristlecone_pmem::sys;

/// Returns the fingerprint of a key with this hash: its low byte.
#[inline(always)]
pub(crate) const fn of(hash: u64) -> u8 {
    hash as u8
}

/// Returns a mask with a bit for each byte of `words`, set where the byte equals `fingerprint`.
/// Byte 0 of word 0 is bit 0. `WORDS` is even and at most 8, so that the mask has at most 64 bits.
#[inline(always)]
pub(crate) fn matches<const WORDS: usize>(words: [u64; WORDS], fingerprint: u8) -> u64 {
    const { assert!(WORDS <= 8 && WORDS.is_multiple_of(2)) };
    let mut mask = 0;
    for (at, pair) in words.chunks_exact(2).enumerate() {
        mask |= u64::from(sys::match_bytes([pair[0], pair[1]], fingerprint)) << (16 * at);
    }
    mask
}
