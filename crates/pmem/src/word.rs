//! The unit of persistence: an aligned word of 8 B, and the offset that names one.
//!
//! 1. A crash never tears a word. Nothing larger is atomic.
//! 2. A word is read and written only through a [`Medium`](crate::Medium). Only an implementation
//!    of a medium uses [`PmWord::cell`].
//! 3. A pointer in a pool is an offset from the pool's base, so a pool can be mapped at any
//!    address. Offset 0 is the superblock, so 0 can mean "none".

use core::fmt;
use core::sync::atomic::AtomicU64;

/// The size of a word, in bytes: the largest failure-atomic store.
pub const WORD_BYTES: usize = 8;

/// A word of persistent memory, accessed only through a [`Medium`](crate::Medium).
#[repr(transparent)]
pub struct PmWord(AtomicU64);

impl PmWord {
    /// Returns the memory of the word. Only an implementation of [`Medium`](crate::Medium) may use
    /// it: the crash explorer does not see a store that bypasses the medium.
    #[inline(always)]
    pub fn cell(&self) -> &AtomicU64 {
        &self.0
    }
}

impl fmt::Debug for PmWord {
    /// Prints only the address, since reading the word needs a medium.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PmWord({:p})", &raw const self.0)
    }
}

/// Yields `bytes` as words in little-endian order, the last one padded with zeros. Whole words need
/// no call of a function, to which a copy of unknown length compiles.
#[inline(always)]
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = bytes.as_chunks();
    let mut last = [0; WORD_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some(last);
    whole.iter().copied().chain(last).map(u64::from_le_bytes)
}

/// The offset of a block from its pool's base, in bytes; a multiple of 8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PmPtr(u64);

impl PmPtr {
    /// The pointer to no block. Offset 0 holds the superblock, so no block lies there.
    pub const NULL: Self = Self(0);

    /// Returns the pointer to the block at `offset` bytes from the pool's base. This checks
    /// nothing: [`Pool::words`](crate::Pool::words) checks bounds and alignment at each use.
    #[inline(always)]
    pub const fn new(offset: u64) -> Self {
        Self(offset)
    }

    /// Returns the offset from the pool's base, in bytes.
    #[inline(always)]
    pub const fn offset(self) -> u64 {
        self.0
    }

    /// Returns `true` if this is [`Self::NULL`].
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for PmPtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:#x}", self.0)
    }
}
