//! Instructions that write lines back and order them, one file an instruction set.
//!
//! 1. [`WriteBack`] is picked once, when a medium opens; [`WriteBack::detect`] never names an
//!    instruction that the processor lacks.
//! 2. A write-back is ordered by nothing but the next [`fence`] of the same thread.

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

/// How a line is written back to the persistence domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// Nothing to do: the caches are inside the domain, or nothing survives anyway.
    None,
    /// x86-64 `clwb`: the line may stay cached. The best there is.
    Clwb,
    /// x86-64 `clflushopt`: evicts, but in parallel.
    ClflushOpt,
    /// x86-64 `clflush`: evicts, one after the other.
    Clflush,
    /// aarch64 `dc cvap`: clean to the point of persistence.
    DcCvap,
}

impl WriteBack {
    /// The best instruction of this processor; `None` if it has none, in which case no mapping
    /// can promise [`Domain::Adr`](crate::Domain::Adr).
    pub fn detect() -> Option<Self> {
        arch::detect()
    }

    /// Begins to write back the line of `address`.
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

/// Waits until all write-backs and non-temporal stores of this thread are in the domain.
#[inline(always)]
pub fn fence() {
    arch::fence();
}

/// Asks for the line of `address` to be brought near; harmless on any address.
#[inline(always)]
pub fn prefetch(address: usize) {
    arch::prefetch(address);
}

/// Copies whole words past the cache where the processor can; durable after the next [`fence`].
#[inline]
pub fn stream(target: &[core::sync::atomic::AtomicU64], source: &[u8]) {
    arch::stream(target, source);
}

/// A bit for each of the sixteen bytes of `words` that equals `byte`; the lowest of `words[0]` is
/// bit 0. One comparison of SSE2, which every x86-64 processor has, so that nothing needs to be
/// chosen at run time; arithmetic on words elsewhere.
#[inline(always)]
pub fn match_bytes(words: [u64; 2], byte: u8) -> u16 {
    #[cfg(target_arch = "x86_64")]
    return arch::match_bytes(words, byte);
    #[cfg(not(target_arch = "x86_64"))]
    return match_word(words[0], byte) | match_word(words[1], byte) << 8;
}

/// A bit for each of `words` that is greater than `than`; `None` where the processor has no quick way,
/// which on x86-64 is AVX2, looked for at run time. Every word is read, atomically by itself.
#[inline(always)]
pub fn greater(words: &[core::sync::atomic::AtomicU64; 32], than: u64) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    return arch::greater(words, than);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (words, than);
        None
    }
}

/// A bit for each byte of `word` that equals `byte`, by arithmetic alone.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn match_word(word: u64, byte: u8) -> u16 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let differs = word ^ (LOW * u64::from(byte));
    // The top bit of each byte that is zero; exact, since no carry crosses a byte.
    let zero = !(((differs & !HIGH) + !HIGH) | differs | !HIGH);
    ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
}

#[cfg(test)]
mod tests;
