//! The target `load_lines`; see `fuzz/README.md`.
#![no_main]

#[path = "../entries/pairs.rs"]
mod pairs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| pairs::load_lines(data));
