//! The reading of a scan: the same work for every peer.

use core::hint::black_box;

/// Reads up to `length` of `pairs`, every key and value of them; gives their number.
#[inline]
pub(super) fn read<E>(
    pairs: impl Iterator<Item = Result<(u64, u64), E>>,
    length: usize,
) -> Result<usize, E> {
    let (mut count, mut sum) = (0, 0_u64);
    for pair in pairs.take(length) {
        let (key, value) = pair?;
        sum = sum.wrapping_add(key ^ value);
        count += 1;
    }
    black_box(sum);
    Ok(count)
}

/// The same, where reading cannot fail.
#[inline]
pub(super) fn read_all(pairs: impl Iterator<Item = (u64, u64)>, length: usize) -> usize {
    let Ok(count) = read(pairs.map(Ok::<_, core::convert::Infallible>), length);
    count
}
