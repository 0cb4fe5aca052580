//! Parses workloads, traces and device profiles.

use bristlecone_lab::device::Profile;
use bristlecone_lab::workload::{Custom, Dist, Mix, Trace, Workload};
use std::path::Path;

/// The first byte of `data` selects the parser.
pub(crate) fn workload_text(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    if kind.is_multiple_of(5) {
        let _ = Trace::parse(rest, Path::new("fuzzed.trace"))
            .map(|trace| (trace.records(), trace.ops()));
        return;
    }
    let Ok(text) = str::from_utf8(rest) else { return };
    match kind % 5 {
        1 => {
            if let Ok(mix) = text.parse::<Mix>() {
                let again = mix.to_string().parse::<Mix>();
                assert!(again.is_ok_and(|again| again == mix), "a mix is read as it is written");
            }
            let _ = text.parse::<Workload>();
        }
        2 => {
            let _ = text.parse::<Dist>();
        }
        // A workload may name a file of keys, which a fuzzer must not open.
        3 if !text.contains('/') => {
            let _ = Custom::parse(text, Path::new("fuzzed.toml"));
        }
        _ => {
            let _ = Profile::parse(text);
        }
    }
}
