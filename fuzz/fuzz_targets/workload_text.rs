//! The target `workload_text`; see `fuzz/README.md`.
#![no_main]

#[path = "../entries/workload.rs"]
mod workload;

libfuzzer_sys::fuzz_target!(|data: &[u8]| workload::workload_text(data));
