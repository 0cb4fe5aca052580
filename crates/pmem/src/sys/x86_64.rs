//! x86-64: `clwb`, `clflushopt`, `clflush`, `sfence`, `mfence`, `movnti`.
#![expect(unsafe_code, reason = "cache control and cpuid have no safe form")]

use super::{RANKED_MAX, WriteBack};
use crate::word::words_of;
use core::arch::asm;
use core::arch::x86_64::{_MM_HINT_T0, _mm_mfence, _mm_prefetch, _mm_sfence, _mm_stream_si64};
use core::sync::atomic::AtomicU64;

#[expect(clippy::unnecessary_wraps, reason = "other processors may have none")]
pub(super) fn detect() -> Option<WriteBack> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    if __cpuid(0).eax < 7 {
        return Some(WriteBack::Clflush);
    }
    let leaf7 = __cpuid_count(7, 0).ebx;
    Some(if leaf7 & (1 << 24) != 0 {
        WriteBack::Clwb
    } else if leaf7 & (1 << 23) != 0 {
        WriteBack::ClflushOpt
    } else {
        WriteBack::Clflush
    })
}

#[inline(always)]
pub(super) fn write_back(how: WriteBack, address: usize) {
    match how {
        WriteBack::Clwb => {
            // SAFETY: clwb changes no architectural state, and `detect` found that it exists. A
            // medium passes only addresses of its own mapping, so it cannot fault.
            unsafe { asm!("clwb [{}]", in(reg) address, options(nostack, preserves_flags)) }
        }
        WriteBack::ClflushOpt => {
            // SAFETY: as for clwb.
            unsafe { asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags)) }
        }
        _ => {
            // SAFETY: as for clwb; every x86-64 processor has clflush.
            unsafe { asm!("clflush [{}]", in(reg) address, options(nostack, preserves_flags)) }
        }
    }
}

#[inline(always)]
pub(super) fn fence() {
    // SAFETY: every x86-64 processor has sfence; it has no operands.
    unsafe { _mm_sfence() }
}

#[inline(always)]
pub(super) fn full_fence() {
    // SAFETY: every x86-64 processor has mfence; it has no operands.
    unsafe { _mm_mfence() }
}

#[inline(always)]
pub(super) fn prefetch(address: usize) {
    // SAFETY: a prefetch changes no architectural state, for any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) }
}

#[inline(always)]
pub(super) fn prefetch_for_store(address: usize) {
    // SAFETY: a prefetch changes no architectural state, for any address. A processor that does not
    // know the instruction does nothing.
    unsafe { asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

pub(super) fn stream(target: &[AtomicU64], source: &[u8]) {
    for (word, value) in target.iter().zip(words_of(source)) {
        // SAFETY: the word is valid and aligned for a store of 8 B. Its block is fresh, so no other
        // thread reads or writes it before a fence and a commit have published it.
        unsafe { _mm_stream_si64(word.as_ptr().cast::<i64>(), value.cast_signed()) }
    }
}

#[inline]
pub(super) fn crc32c_append(crc: u32, bytes: &[u8]) -> Option<u32> {
    if !is_x86_feature_detected!("sse4.2") {
        return None;
    }
    // SAFETY: the processor has SSE 4.2.
    Some(unsafe { crc32c_append_sse42(crc, bytes) })
}

#[target_feature(enable = "sse4.2")]
fn crc32c_append_sse42(crc: u32, bytes: &[u8]) -> u32 {
    use core::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};
    let (words, rest) = bytes.as_chunks();
    let mut state = u64::from(!crc);
    for word in words {
        state = _mm_crc32_u64(state, u64::from_le_bytes(*word));
    }
    let mut state = state as u32;
    let (halves, rest) = rest.as_chunks();
    for half in halves {
        state = _mm_crc32_u32(state, u32::from_le_bytes(*half));
    }
    for byte in rest {
        state = _mm_crc32_u8(state, *byte);
    }
    !state
}

#[inline(always)]
pub(super) fn match_bytes(words: [u64; 2], byte: u8) -> u16 {
    // SAFETY: every x86-64 processor has SSE2, and `match_bytes_sse2` needs nothing more.
    unsafe { match_bytes_sse2(words, byte) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn match_bytes_sse2(words: [u64; 2], byte: u8) -> u16 {
    use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let bytes = _mm_set_epi64x(words[1].cast_signed(), words[0].cast_signed());
    let equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
    _mm_movemask_epi8(equal).cast_unsigned() as u16
}

#[inline]
pub(super) fn ranks(numbers: &[u64; RANKED_MAX], count: usize) -> Option<[u64; RANKED_MAX]> {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512 F.
        return Some(unsafe { ranks_avx512(numbers, count) });
    }
    // SAFETY: the processor has AVX2.
    is_x86_feature_detected!("avx2").then(|| unsafe { ranks_avx2(numbers, count) })
}

#[target_feature(enable = "avx512f")]
fn ranks_avx512(numbers: &[u64; RANKED_MAX], count: usize) -> [u64; RANKED_MAX] {
    ranks_by_counting(numbers, count)
}

#[target_feature(enable = "avx2")]
fn ranks_avx2(numbers: &[u64; RANKED_MAX], count: usize) -> [u64; RANKED_MAX] {
    ranks_by_counting(numbers, count)
}

/// Compares each number with all, which takes no branch that depends on them. The compiler makes
/// vectors of the innermost loop, and keeps its sums in registers. Fewer numbers cost less.
#[inline(always)]
fn ranks_by_counting(numbers: &[u64; RANKED_MAX], count: usize) -> [u64; RANKED_MAX] {
    const TOGETHER: usize = 16;
    const { assert!(RANKED_MAX.is_multiple_of(TOGETHER)) };
    // AVX2 compares signed numbers: see `greater`.
    let signed = numbers.map(|number| (number ^ 1 << 63).cast_signed());
    let mut ranks = [0; RANKED_MAX];
    let groups = signed.as_chunks::<TOGETHER>().0.iter().take(count.div_ceil(TOGETHER));
    for (ranks, group) in ranks.as_chunks_mut::<TOGETHER>().0.iter_mut().zip(groups) {
        let mut sums = [0; TOGETHER];
        for &less in signed.iter().take(count) {
            for (sum, &number) in sums.iter_mut().zip(group) {
                *sum += u64::from(less < number);
            }
        }
        *ranks = sums;
    }
    ranks
}

/// Returns a bit for each of `words` that is greater than `than` as an unsigned number, or `None`
/// without AVX2 and AVX-512.
///
/// This is in assembly because other threads write the words, and Rust has no atomic vector load.
#[cfg(not(miri))]
#[inline(always)]
pub(super) fn greater<const N: usize>(words: &[AtomicU64; N], than: u64) -> Option<u32> {
    if std::is_x86_feature_detected!("avx512bw") {
        return Some(match words.first_chunk::<32>() {
            Some(words) => greater_avx512(words, than),
            None => greater_avx512_half(words.first_chunk()?, than),
        });
    }
    std::is_x86_feature_detected!("avx2").then(|| greater_avx2(words, than))
}

/// As [`greater`], in fewer instructions, so that more of the next operation fits into the reorder
/// window. The processor must have AVX-512 BW.
#[cfg(not(miri))]
#[inline(always)]
fn greater_avx512(words: &[AtomicU64; 32], than: u64) -> u32 {
    let mask: u32;
    // SAFETY: As in `greater_avx2_half`, of 256 B. Registers from zmm16 on need no `vzeroupper`.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {than}",
            "vpcmpltuq k1, zmm16, [{at}]",
            "vpcmpltuq k2, zmm16, [{at} + 64]",
            "vpcmpltuq k3, zmm16, [{at} + 128]",
            "vpcmpltuq k4, zmm16, [{at} + 192]",
            "kunpckbw k1, k2, k1",
            "kunpckbw k3, k4, k3",
            "kunpckwd k1, k3, k1",
            "kmovd {mask:e}, k1",
            at = in(reg) words.as_ptr(),
            than = in(reg) than,
            mask = lateout(reg) mask,
            out("zmm16") _, out("k1") _, out("k2") _, out("k3") _, out("k4") _,
            options(nostack, readonly)
        );
    }
    mask
}

/// As [`greater_avx512`].
#[cfg(not(miri))]
#[inline(always)]
fn greater_avx512_half(words: &[AtomicU64; 16], than: u64) -> u32 {
    let mask: u32;
    // SAFETY: As in `greater_avx512`, of 128 B.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {than}",
            "vpcmpltuq k1, zmm16, [{at}]",
            "vpcmpltuq k2, zmm16, [{at} + 64]",
            "kunpckbw k1, k2, k1",
            "kmovd {mask:e}, k1",
            at = in(reg) words.as_ptr(),
            than = in(reg) than,
            mask = lateout(reg) mask,
            out("zmm16") _, out("k1") _, out("k2") _,
            options(nostack, readonly)
        );
    }
    mask
}

/// As [`greater`]. The processor must have AVX2.
#[cfg(not(miri))]
#[inline]
pub(super) fn greater_avx2<const N: usize>(words: &[AtomicU64; N], than: u64) -> u32 {
    let (halves, _) = words.as_chunks::<16>();
    halves.iter().rev().fold(0, |mask, half| mask << 16 | greater_avx2_half(half, than))
}

/// As [`greater_avx2`].
#[cfg(not(miri))]
#[inline]
fn greater_avx2_half(words: &[AtomicU64; 16], than: u64) -> u32 {
    let mask: u64;
    // AVX2 compares signed numbers. Flipping the sign bit on both sides gives the unsigned order.
    // SAFETY: AVX2 exists. All 128 B that are read belong to `words`. Each word is aligned to 8 B,
    // so a vector load reads it whole, and x86 orders the load like any other.
    unsafe {
        asm!(
            "vmovq xmm0, {sign}",
            "vpbroadcastq ymm0, xmm0",
            "vmovq xmm1, {than}",
            "vpbroadcastq ymm1, xmm1",
            "vpxor ymm2, ymm0, [{at}]",
            "vpxor ymm3, ymm0, [{at} + 32]",
            "vpxor ymm4, ymm0, [{at} + 64]",
            "vpxor ymm5, ymm0, [{at} + 96]",
            "vpcmpgtq ymm2, ymm2, ymm1",
            "vpcmpgtq ymm3, ymm3, ymm1",
            "vpcmpgtq ymm4, ymm4, ymm1",
            "vpcmpgtq ymm5, ymm5, ymm1",
            "vmovmskpd {low:e}, ymm2",
            "vmovmskpd {next:e}, ymm3",
            "shl {next:e}, 4",
            "or {low:e}, {next:e}",
            "vmovmskpd {next:e}, ymm4",
            "shl {next:e}, 8",
            "or {low:e}, {next:e}",
            "vmovmskpd {next:e}, ymm5",
            "shl {next:e}, 12",
            "or {low:e}, {next:e}",
            "vzeroupper",
            at = in(reg) words.as_ptr(),
            sign = in(reg) 1_u64 << 63,
            than = in(reg) than ^ 1 << 63,
            low = out(reg) mask,
            next = out(reg) _,
            out("ymm0") _, out("ymm1") _, out("ymm2") _,
            out("ymm3") _, out("ymm4") _, out("ymm5") _,
            // `vzeroupper` clears the upper half of each of the sixteen.
            out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _,
            out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack, readonly)
        );
    }
    mask as u32
}

#[cfg(miri)]
pub(super) fn greater<const N: usize>(_: &[AtomicU64; N], _: u64) -> Option<u32> {
    None
}
