//! Fingerprints: a one-byte hash of a key, compared for many entries at once (FPTree).

use bristlecone_pmem::sys;

/// Returns the fingerprint of a key with this hash: its highest byte. A product's low bytes depend
/// on the low bytes of its factors alone, and its highest byte on all of them.
#[inline(always)]
pub(crate) const fn of(hash: u64) -> u8 {
    (hash >> 56) as u8
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

#[cfg(test)]
mod tests {
    use super::of;
    use crate::key::{Key, Record};

    /// The number of entries of a leaf of pairs.
    const LEAF_KEYS: usize = 24;

    /// Returns the probability that two of `keys` have one fingerprint, in units of 1/256: for any
    /// two of them, and for two neighbours that would share a leaf.
    fn collisions(fingerprints: &[u8]) -> (f64, f64) {
        let mut counts = [0u64; 256];
        for &fingerprint in fingerprints {
            counts[usize::from(fingerprint)] += 1;
        }
        let keys = fingerprints.len() as f64;
        let of_all = counts.iter().map(|&count| (count * count) as f64).sum::<f64>() / keys / keys;
        let (mut pairs, mut equal) = (0u64, 0u64);
        for leaf in fingerprints.chunks_exact(LEAF_KEYS) {
            for (i, one) in leaf.iter().enumerate() {
                pairs += i as u64;
                equal += leaf[..i].iter().map(|other| u64::from(other == one)).sum::<u64>();
            }
        }
        (256.0 * of_all, 256.0 * equal as f64 / pairs as f64)
    }

    fn assert_spread(what: &str, fingerprints: &[u8]) {
        let (of_all, of_neighbours) = collisions(fingerprints);
        assert!(of_all < 1.3, "{what}: {of_all} of 256 pairs of keys collide");
        assert!(of_neighbours < 1.3, "{what}: {of_neighbours} of 256 pairs in a leaf collide");
    }

    fn of_bytes(key: &[u8]) -> u8 {
        of(Record::hash(key))
    }

    #[test]
    fn fingerprints_see_all_bytes_of_a_counter() {
        let counters = || 0..1u64 << 24;
        let big_endian: Vec<_> = counters().map(|i| of_bytes(&i.to_be_bytes())).collect();
        assert_spread("big-endian counters", &big_endian);
        let little_endian: Vec<_> = counters().map(|i| of_bytes(&i.to_le_bytes())).collect();
        assert_spread("little-endian counters", &little_endian);
        let integers: Vec<_> = counters().map(|i| of(u64::hash(i))).collect();
        assert_spread("integers", &integers);
        let high: Vec<_> = counters().map(|i| of(u64::hash(i << 40))).collect();
        assert_spread("integers of high bits", &high);
    }

    #[test]
    fn fingerprints_see_the_last_bytes_behind_any_prefix() {
        for length in 1..=40 {
            let prefix = vec![b'p'; length];
            for digits in 5..=9 {
                let keys = (0..1u32 << 15).map(|i| {
                    let counter = format!("{i:09}");
                    [&prefix, &counter.as_bytes()[9 - digits..]].concat()
                });
                let found: Vec<_> = keys.map(|key| of_bytes(&key)).collect();
                assert_spread(&format!("{length} + {digits} B"), &found);
            }
            let binary = (0..1u32 << 15)
                .map(|i| of_bytes(&[&prefix[..], &(i << 8).to_be_bytes()[..3]].concat()));
            assert_spread(&format!("{length} + 3 B"), &binary.collect::<Vec<_>>());
        }
    }
}
