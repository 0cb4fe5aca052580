//! Instructions that write lines back and order them, with one file for each instruction set.
//!
//! 1. A medium picks its [`WriteBack`] once, when it opens. [`WriteBack::detect`] never returns an
//!    instruction that the processor lacks.
//! 2. Only the next [`fence`] of the same thread orders a write-back.

use core::fmt;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
use aarch64 as arch;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64 as arch;
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable as arch;

/// The instruction that writes a line back to the persistence domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// No instruction: the caches are inside the persistence domain, or the medium is volatile.
    None,
    /// x86-64 `clwb`: the line may stay in the cache. The fastest where it exists.
    Clwb,
    /// x86-64 `clflushopt`: evicts the line; several run in parallel.
    ClflushOpt,
    /// x86-64 `clflush`: evicts the line; several run one after the other.
    Clflush,
    /// aarch64 `dc cvap`: cleans the line to the point of persistence.
    DcCvap,
}

impl WriteBack {
    /// Returns the fastest instruction of this processor, or `None` if it has none. Then no mapping
    /// can give [`Domain::Adr`](crate::Domain::Adr).
    pub fn detect() -> Option<Self> {
        arch::detect()
    }

    /// Returns the instruction that writes back one line after the other: `clflush` on x86-64.
    /// Other processors have at most that of [`detect`](Self::detect).
    pub fn serial() -> Option<Self> {
        if cfg!(target_arch = "x86_64") { Some(Self::Clflush) } else { Self::detect() }
    }

    /// Starts to write back the line that contains `address`.
    #[inline(always)]
    pub fn line(self, address: usize) {
        if self != Self::None {
            arch::write_back(self, address);
        }
    }
}

impl fmt::Display for WriteBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Clwb => "clwb",
            Self::ClflushOpt => "clflushopt",
            Self::Clflush => "clflush",
            Self::DcCvap => "dc cvap",
        })
    }
}

/// Waits until all write-backs and non-temporal stores of this thread are in the persistence
/// domain.
#[inline(always)]
pub fn fence() {
    arch::fence();
}

/// As [`fence`], and orders every load and store of this thread before it against every one after:
/// `mfence` on x86-64.
#[inline(always)]
pub fn full_fence() {
    arch::full_fence();
}

/// Prefetches the line that contains `address`. Any address is safe, mapped or not.
#[inline(always)]
pub fn prefetch(address: usize) {
    arch::prefetch(address);
}

/// Prefetches the line that contains `address` for a store. Any address is safe, mapped or not.
#[inline(always)]
pub fn prefetch_for_store(address: usize) {
    arch::prefetch_for_store(address);
}

/// Copies `source` into `target` in whole words, with non-temporal stores where the processor has
/// them. Durable after the next [`fence`].
#[inline]
pub fn stream(target: &[core::sync::atomic::AtomicU64], source: &[u8]) {
    arch::stream(target, source);
}

/// Returns the CRC-32C of the bytes that `crc` covers, followed by `bytes`; `None` where the
/// processor has no instruction for it. On x86-64 that is SSE 4.2, detected at run time.
///
/// One instruction waits for the other, so this is the fast way for short strings alone.
#[inline]
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    return arch::crc32c_append(crc, bytes);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (crc, bytes);
        None
    }
}

/// Returns a bit for each of the 16 bytes of `words` that equals `byte`; bit 0 stands for the
/// lowest byte of `words[0]`. On x86-64 this is one SSE2 comparison, which needs no detection
/// because every x86-64 processor has SSE2. Elsewhere it is word arithmetic.
#[inline(always)]
pub fn match_bytes(words: [u64; 2], byte: u8) -> u16 {
    #[cfg(target_arch = "x86_64")]
    return arch::match_bytes(words, byte);
    #[cfg(not(target_arch = "x86_64"))]
    return match_word(words[0], byte) | match_word(words[1], byte) << 8;
}

/// The most numbers that [`ranks`] compares.
pub const RANKED_MAX: usize = 64;

/// Returns for each of the first `count` of `numbers` how many of these are less, or `None` where
/// the processor has no fast way. On x86-64 the fast way is AVX-512 or AVX2, detected at run time.
/// The ranks behind are of no use.
#[inline]
pub fn ranks(numbers: &[u64; RANKED_MAX], count: usize) -> Option<[u64; RANKED_MAX]> {
    #[cfg(target_arch = "x86_64")]
    return arch::ranks(numbers, count);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (numbers, count);
        None
    }
}

/// Returns a bit for each of `words`, of which there are 16 or 32, that is greater than `than`, or
/// `None` where the processor has no fast way. On x86-64 the fast way is AVX-512 or AVX2, detected
/// at run time. The function reads every word, each atomically.
#[inline(always)]
pub fn greater<const N: usize>(
    words: &[core::sync::atomic::AtomicU64; N],
    than: u64,
) -> Option<u32> {
    const { assert!(N == 16 || N == 32) };
    #[cfg(target_arch = "x86_64")]
    return arch::greater(words, than);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (words, than);
        None
    }
}

/// Returns a bit for each byte of `word` that equals `byte`, by word arithmetic.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn match_word(word: u64, byte: u8) -> u16 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let differs = word ^ (LOW * u64::from(byte));
    // The top bit of each byte that is zero. This is exact, because no addition carries into the
    // next byte.
    let zero = !(((differs & !HIGH) + !HIGH) | differs | !HIGH);
    ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
}

#[cfg(test)]
mod tests;
