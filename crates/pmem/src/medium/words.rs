//! The words of a medium, by offset. Only here an offset of a pool becomes a reference.

use super::Medium;
use crate::error::Corrupt;
use crate::word::{PmPtr, PmWord};

/// Returns the `count` consecutive words of `medium` that begin at `at`.
///
/// # Errors
/// The words are not inside the medium, or `at` is no multiple of 8: the pointer is damaged.
#[inline(always)]
pub(crate) fn words_at<M: Medium>(
    medium: &M,
    at: PmPtr,
    count: usize,
) -> Result<&[PmWord], Corrupt> {
    let bytes = (count as u64).saturating_mul(8);
    if !at.offset().is_multiple_of(8) || !medium.holds(at.offset().saturating_add(bytes)) {
        return Err(outside(at, medium.len()));
    }
    let first = medium.base().as_ptr().wrapping_add(at.offset() as usize);
    #[expect(
        unsafe_code,
        reason = "an offset in the mapping becomes a reference here and nowhere else"
    )]
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "base and offset are multiples of 8, checked above"
    )]
    // SAFETY: a medium keeps all bytes that it holds mapped for as long as it lives, and the
    // reference borrows it; the range was just checked. PmWord is an atomic, valid for any bits.
    let words = unsafe { core::slice::from_raw_parts(first.cast::<PmWord>(), count) };
    Ok(words)
}

/// Prefetches the lines of `words`, which are in memory.
#[inline(always)]
pub(crate) fn prefetch(words: &[PmWord]) {
    for_each_line(words, crate::sys::prefetch);
}

/// Calls `act` with the address of each line of `words`, which are in memory. For a slice of one
/// word, which lies in one line, this compiles to no loop.
#[inline(always)]
pub(crate) fn for_each_line(words: &[PmWord], act: impl FnMut(usize)) {
    let address = words.as_ptr() as usize;
    match words {
        [_] => core::iter::once(crate::line::line_of(address)).for_each(act),
        _ => crate::line::lines(address, core::mem::size_of_val(words)).for_each(act),
    }
}

/// Returns the offset of `word`, which must be a word of `medium`.
#[inline]
pub(crate) fn offset_of<M: Medium>(medium: &M, word: &PmWord) -> PmPtr {
    let offset = core::ptr::from_ref(word) as usize - medium.base().as_ptr() as usize;
    debug_assert!((offset as u64) < medium.len());
    PmPtr::new(offset as u64)
}

#[cold]
fn outside(at: PmPtr, len: u64) -> Corrupt {
    let what = "pointer outside the pool, or unaligned";
    Corrupt { at: at.offset(), what, expected: len, found: at.offset() }
}
