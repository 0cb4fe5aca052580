//! The time to open a store of random pairs of 8 B + 8 B after a kill: of the file with its
//! journal, and of the tree on it. Prints the medians over rounds.
//!
//! `cargo run --release -p bristlecone --example reopen [FOLDER [PAIRS ROUNDS]]`

use bristlecone::Store;
use bristlecone_pmem::journal::{JournalOptions, Journaled};
use bristlecone_pmem::{FileMedium, Medium};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The number of pairs, and of rounds.
const SCALE: [u64; 2] = [10_000_000, 5];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let numbers = arguments.map(|number| number.parse()).collect::<Result<Vec<u64>, _>>()?;
    let [pairs, rounds] = core::array::from_fn(|at| *numbers.get(at).unwrap_or(&SCALE[at]));
    let path = Path::new(&folder).join("reopen.pool");
    let mut times = [const { Vec::new() }; 2];
    let mut output = std::io::stdout();
    for _ in 0..rounds {
        let store = Store::options().initial_bytes(64 << 20).create(&path)?;
        for number in 1..=pairs {
            let key = number.wrapping_mul(0x5851_F42D_4C95_7F2D);
            store.put(key.to_be_bytes(), number.to_le_bytes())?;
        }
        let segments = store.stats().journal.map_or(0, |journal| journal.segments_used);
        drop(store); // Leaves the files as a kill does.
        let start = Instant::now();
        let medium = FileMedium::from(Journaled::open(&path, &JournalOptions::default())?);
        let opened = Instant::now();
        let bytes = medium.len();
        let store = Store::open_on(medium)?;
        let ends = [opened - start, opened.elapsed()];
        for (times, end) in times.iter_mut().zip(ends) {
            times.push(end.as_secs_f64() * 1e3);
        }
        let [medium, tree] = ends;
        writeln!(output, "{bytes} B, {segments} segments: {medium:.0?} + {tree:.0?}")?;
        store.close()?;
        std::fs::remove_file(&path)?;
    }
    let [medium, tree] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    writeln!(output, "{pairs} pairs: file and journal {medium:.0} ms, tree {tree:.0} ms")?;
    Ok(())
}
