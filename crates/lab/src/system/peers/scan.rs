//! The reading of a scan's pairs: equal work for every peer.

use core::hint::black_box;

/// Reads key and value of up to `length` of `pairs`, and returns their number.
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

/// Reads like [`read`], from pairs that cannot fail.
#[inline]
pub(super) fn read_all(pairs: impl Iterator<Item = (u64, u64)>, length: usize) -> usize {
    let Ok(count) = read(pairs.map(Ok::<_, core::convert::Infallible>), length);
    count
}
