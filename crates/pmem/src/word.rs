//! The unit of persistence: an aligned word of 8 B, and the offset that names one.
//!
//! 1. A word is never torn by a crash; nothing larger is atomic.
//! 2. A word is read and written through a [`Medium`](crate::Medium) only. [`PmWord::cell`] is for
//!    those who implement one.
//! 3. A pointer in a pool is an offset from the pool's base, so a pool maps anywhere. Offset 0 is
//!    the superblock, so 0 can mean "none".

use core::fmt;
use core::sync::atomic::AtomicU64;

/// Bytes of a word, the failure-atomic unit.
pub const WORD_BYTES: usize = 8;

/// A word of persistent memory.
#[repr(transparent)]
pub struct PmWord(AtomicU64);

impl PmWord {
    /// The memory behind the word. Only an implementation of [`Medium`](crate::Medium) may use it:
    /// a store that goes around the medium is invisible to the crash explorer.
    #[inline(always)]
    pub fn cell(&self) -> &AtomicU64 {
        &self.0
    }
}

impl fmt::Debug for PmWord {
    /// Shows the address alone: reading a word goes through a medium.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PmWord({:p})", &raw const self.0)
    }
}

/// Offset of a block in its pool, in bytes; a multiple of 8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PmPtr(u64);

impl PmPtr {
    /// No block. Offset 0 holds the superblock, so no block can be there.
    pub const NULL: Self = Self(0);

    /// The block at `offset` bytes from the pool's base. Nothing is checked here:
    /// [`Pool::words`](crate::Pool::words) checks bounds and alignment on every use.
    #[inline(always)]
    pub const fn new(offset: u64) -> Self {
        Self(offset)
    }

    /// Bytes from the pool's base.
    #[inline(always)]
    pub const fn offset(self) -> u64 {
        self.0
    }

    /// Whether this is [`Self::NULL`].
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
