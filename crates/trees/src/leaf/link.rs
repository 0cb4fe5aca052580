//! The word of a link between leaves: an offset in 48 bits, and a check of it in 16.

use bristlecone_pmem::{Corrupt, PmPtr};

/// The number of low bits of a link word that hold an offset.
const OFFSET_BITS: u32 = 48;

/// Returns the check of `offset`, in the 16 bits above it. The check of offset 0 is not 0, so a
/// zeroed link is damage and not the end of the chain.
#[inline(always)]
const fn check(offset: u64) -> u64 {
    ((offset ^ 0x5851_F42D).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> OFFSET_BITS) << OFFSET_BITS
}

/// Returns the word of a link to `next`.
#[inline(always)]
pub(crate) const fn encode(next: u64) -> u64 {
    next ^ check(next)
}

/// Returns the offset in `word`, if its check is right; else another number.
#[inline(always)]
pub(crate) const fn decode(word: u64) -> u64 {
    word ^ check(word & ((1 << OFFSET_BITS) - 1))
}

/// Returns the offset in `word`, the link word at `at`.
///
/// # Errors
/// The link does not have its check.
#[inline]
pub(crate) fn checked(at: u64, word: u64) -> Result<PmPtr, Corrupt> {
    let next = decode(word);
    if encode(next) == word {
        return Ok(PmPtr::new(next));
    }
    let what = "check of a link between leaves";
    Err(Corrupt { at, what, expected: encode(next), found: word })
}
