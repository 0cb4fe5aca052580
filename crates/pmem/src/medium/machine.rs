//! The identity of this boot of the machine, and its randomness.

use rustix::rand::{GetRandomFlags, getrandom};
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the id that the kernel drew when the machine started, or zeros if it does not tell.
pub(super) fn boot_id() -> [u64; 2] {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.ok().and_then(|text| parse(&text)).unwrap_or([0; 2])
}

/// Returns the two halves of a UUID in its text form, or `None` if `text` is none.
fn parse(text: &str) -> Option<[u64; 2]> {
    let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
    let id = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some([(id >> 64) as u64, id as u64])
}

/// Returns a random number of the system. While the system has none, early in a boot, the number
/// comes from the clock and the seed of the standard library's hash tables.
pub(super) fn draw() -> u64 {
    let mut bytes = [0; 8];
    match getrandom(&mut bytes, GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_le_bytes(bytes),
        _ => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
            RandomState::new().hash_one((now, std::process::id()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_id_has_two_halves_and_anything_else_is_unknown() {
        let id = parse("00000000-0000-0001-8000-0000000000ff\n");
        assert_eq!(id, Some([1, 1 << 63 | 255]));
        for text in ["", "\n", "0123", "g0000000-0000-0001-8000-0000000000ff"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(boot_id(), boot_id());
    }

    #[test]
    fn drawn_numbers_differ() {
        let drawn: std::collections::HashSet<u64> = (0..100).map(|_| draw()).collect();
        assert_eq!(drawn.len(), 100);
    }
}
