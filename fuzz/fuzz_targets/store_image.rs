//! The target `store_image`; see `fuzz/README.md`.
#![no_main]

#[path = "../entries/store.rs"]
mod store;

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::store_image(data));
