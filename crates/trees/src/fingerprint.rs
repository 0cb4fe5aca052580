//! Fingerprints: one byte of a key's hash, matched for many entries at once.

use bristlecone_pmem::sys;

/// The fingerprint of a key whose hash is `hash`.
#[inline(always)]
pub(crate) const fn of(hash: u64) -> u8 {
    hash as u8
}

/// A bit for each byte of `words` that equals `fingerprint`; byte 0 of word 0 is bit 0. At most
/// eight words, in pairs.
#[inline(always)]
pub(crate) fn matches<const WORDS: usize>(words: [u64; WORDS], fingerprint: u8) -> u64 {
    const { assert!(WORDS <= 8 && WORDS.is_multiple_of(2)) };
    let mut mask = 0;
    for (at, pair) in words.chunks_exact(2).enumerate() {
        mask |= u64::from(sys::match_bytes([pair[0], pair[1]], fingerprint)) << (16 * at);
    }
    mask
}
