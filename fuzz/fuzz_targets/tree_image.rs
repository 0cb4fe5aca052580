//! The target `tree_image`; see `fuzz/README.md`.
#![no_main]

#[path = "../entries/tree.rs"]
mod tree;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tree::tree_image(data));
