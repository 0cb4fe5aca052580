//! Arithmetic of cache lines and of the larger unit in which some media write.

/// Bytes of a cache line: what one flush writes back.
pub const LINE_BYTES: usize = 64;
/// Words of a cache line.
pub const LINE_WORDS: usize = LINE_BYTES / 8;
/// Bytes of the unit in which Optane-like media write (an `XPLine`).
pub const XPLINE_BYTES: usize = 256;

/// Address of the line that holds `address`.
#[inline(always)]
pub const fn line_of(address: usize) -> usize {
    address & !(LINE_BYTES - 1)
}

/// Addresses of the lines that `bytes` bytes from `address` touch. Empty for no bytes.
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
