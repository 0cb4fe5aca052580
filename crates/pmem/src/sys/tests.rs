use super::{RANKED_MAX, WriteBack, arch, greater, match_bytes, match_word, portable, ranks};
use core::sync::atomic::{AtomicU64, Ordering};
use proptest::prelude::*;

/// Returns the words that `stream` makes of `bytes`, in a buffer of ones.
fn streamed(stream: fn(&[AtomicU64], &[u8]), bytes: &[u8]) -> Vec<u64> {
    let words: Vec<_> = (0..8).map(|_| AtomicU64::new(u64::MAX)).collect();
    stream(&words, bytes);
    arch::fence();
    words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

#[test]
fn every_processor_streams_the_same_bytes() {
    let bytes: Vec<u8> = (1..=64).collect();
    for length in 0..=64 {
        let native = streamed(arch::stream, &bytes[..length]);
        assert_eq!(native, streamed(portable::stream, &bytes[..length]));
        for (index, word) in native.iter().enumerate() {
            let expected = match bytes[..length].chunks(8).nth(index) {
                Some(chunk) => {
                    chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
                }
                None => u64::MAX,
            };
            assert_eq!(*word, expected, "word {index} of {length} bytes");
        }
    }
}

#[test]
fn an_unknown_processor_has_no_write_back() {
    assert_eq!(portable::detect(), None);
    portable::write_back(WriteBack::None, 0);
    portable::prefetch(0);
    portable::prefetch_for_store(0);
    portable::fence();
    portable::full_fence();
}

#[test]
fn a_write_back_changes_no_value() {
    let words: Vec<_> = (0..64).map(AtomicU64::new).collect();
    let instructions = if cfg!(target_arch = "x86_64") {
        // Every x86-64 processor has `clflush`; `clflushopt` is tested only where `detect` returns
        // it.
        vec![WriteBack::detect().unwrap(), WriteBack::serial().unwrap()]
    } else {
        WriteBack::detect().into_iter().collect()
    };
    for write_back in instructions {
        for word in &words {
            write_back.line(word.as_ptr() as usize);
            super::prefetch(word.as_ptr() as usize);
            super::prefetch_for_store(word.as_ptr() as usize);
        }
        super::fence();
        super::full_fence();
        assert!(words.iter().zip(0..).all(|(word, index)| word.load(Ordering::Relaxed) == index));
    }
}

proptest! {
    #[test]
    fn every_way_to_match_agrees(words: [u64; 2], pick in 0usize..16, any: u8) {
        let byte = |at: usize| (words[at / 8] >> (8 * (at % 8))) as u8;
        for wanted in [any, byte(pick)] {
            let expected =
                (0..16).filter(|&at| byte(at) == wanted).fold(0u16, |mask, at| mask | 1 << at);
            prop_assert_eq!(match_bytes(words, wanted), expected);
            let arithmetic = match_word(words[0], wanted) | match_word(words[1], wanted) << 8;
            prop_assert_eq!(arithmetic, expected);
        }
    }
}

#[test]
fn greater_words_are_those_that_a_comparison_of_each_finds() {
    use core::sync::atomic::AtomicU64;
    let edges = [0, 1, 2, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    for shift in 0..32 {
        let values: [u64; 32] =
            core::array::from_fn(|i| edges[(i * 5 + shift) % 8] ^ (i as u64 & 1));
        let words = values.map(AtomicU64::new);
        for than in edges {
            let expected = (0..32).fold(0, |mask, i| mask | u32::from(values[i] > than) << i);
            if let Some(found) = greater(&words, than) {
                assert_eq!(found, expected, "{values:x?} > {than:x}");
            }
            let (halves, _) = words.as_chunks::<16>();
            let found = |at: usize| greater(&halves[at], than);
            if let (Some(low), Some(high)) = (found(0), found(1)) {
                assert_eq!(high << 16 | low, expected, "halves of {values:x?} > {than:x}");
            }
            // A processor with AVX-512 takes another way.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if std::is_x86_feature_detected!("avx2") {
                assert_eq!(arch::greater_avx2(&words, than), expected, "{values:x?} > {than:x}");
                let found = [0, 1].map(|at| arch::greater_avx2(&halves[at], than));
                assert_eq!(found[1] << 16 | found[0], expected, "halves of {values:x?} > {than:x}");
            }
        }
    }
}

proptest! {
    #[test]
    fn ranks_are_those_that_counting_finds(
        numbers in prop::collection::vec(prop_oneof![0..9_u64, any::<u64>()], 0..=RANKED_MAX),
    ) {
        let mut padded = [7; RANKED_MAX];
        padded[..numbers.len()].copy_from_slice(&numbers);
        let less = |number| numbers.iter().filter(|&&other| other < number).count() as u64;
        let expected: Vec<_> = numbers.iter().map(|&number| less(number)).collect();
        if let Some(found) = ranks(&padded, numbers.len()) {
            prop_assert_eq!(&found[..numbers.len()], expected);
        }
    }
}
