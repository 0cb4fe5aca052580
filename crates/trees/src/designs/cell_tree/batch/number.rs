//! The number of a batch in a word: of each cell that it changes, and of the header of the first
//! leaf once it is committed.
//!
//! | bits | field | meaning |
//! | --- | --- | --- |
//! | 0..16 | check | of the number and the offset of cell or leaf |
//! | 16..64 | number | ascends in the order of the commits; 0: no batch |

use bristlecone_pmem::Corrupt;

const NUMBER_SHIFT: u32 = 16;
const CHECK: u64 = (1 << NUMBER_SHIFT) - 1;

/// Returns the word with this number, of the cell or leaf at `at`.
#[inline(always)]
pub(in super::super) fn word_of(at: u64, number: u64) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (number ^ at.rotate_left(32)).wrapping_mul(MULTIPLIER);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(MULTIPLIER);
    number << NUMBER_SHIFT | (mixed >> 32) & CHECK
}

/// Returns the number in `word`, of the cell or leaf at `at`.
///
/// # Errors
/// The check does not fit.
#[inline]
pub(in super::super) fn in_word(at: u64, word: u64) -> Result<u64, Corrupt> {
    let number = word >> NUMBER_SHIFT;
    let expected = word_of(at, number);
    if word == expected {
        return Ok(number);
    }
    Err(Corrupt { at, what: "number of a batch", expected, found: word })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_that_of_one_place() {
        for number in [0, 1, 77, (1 << 48) - 1] {
            let word = word_of(4096, number);
            assert_eq!(in_word(4096, word), Ok(number));
            assert!(in_word(4160, word).is_err() && in_word(4096, word ^ 1 << 20).is_err());
        }
    }
}
