//! Arithmetic on cache lines, and the size of the larger block that some media write.

/// The size of a cache line, in bytes. One flush writes one line back.
pub const LINE_BYTES: usize = 64;
/// The number of words in a cache line.
pub const LINE_WORDS: usize = LINE_BYTES / 8;
/// The size of an `XPLine`, the block of 256 B that Optane media write at a time.
pub const XPLINE_BYTES: usize = 256;

/// Returns the address of the line that contains `address`.
#[inline(always)]
pub const fn line_of(address: usize) -> usize {
    address & !(LINE_BYTES - 1)
}

/// Returns the addresses of the lines that the `bytes` bytes from `address` touch, or none if
/// `bytes` is 0.
#[inline(always)]
pub fn lines(address: usize, bytes: usize) -> impl Iterator<Item = usize> {
    let end = if bytes == 0 { line_of(address) } else { address + bytes };
    (line_of(address)..end).step_by(LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_touches_each_of_its_lines_once() {
        let touched = |a, n| lines(a, n).collect::<Vec<_>>();
        assert_eq!(touched(64, 0), []);
        assert_eq!(touched(72, 0), []);
        assert_eq!(touched(64, 1), [64]);
        assert_eq!(touched(127, 1), [64]);
        assert_eq!(touched(127, 2), [64, 128]);
        assert_eq!(touched(120, 137), [64, 128, 192, 256]);
    }
}
