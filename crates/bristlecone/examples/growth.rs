//! The time of puts beside the growth of the file: fills stores with pairs of 16 B + 100 B until
//! each file has as many MiB, and prints the time of a put at some quantiles, and its maximum.
//!
//! `cargo run --release -p bristlecone --example growth FOLDER MIB [process|interval|commit]..`
//!
//! With `paced`, a put begins every 10 us at most: else a store with a journal waits for its disk.

use bristlecone::{Durability, Error, Store};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of puts between two looks at the size of the file.
const BATCH: u64 = 10_000;
/// The least time from one put to the next of a paced run.
const PACE: Duration = Duration::from_micros(10);
/// The quantiles, in parts of a hundred thousand.
const QUANTILES: [(&str, usize); 5] =
    [("p50", 50_000), ("p99", 99_000), ("p99.9", 99_900), ("p99.99", 99_990), ("p99.999", 99_999)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let mebibytes: u64 = arguments.next().map_or(Ok(1024), |number| number.parse())?;
    let names: Vec<_> = arguments.collect();
    let pace = if names.iter().any(|name| name == "paced") { PACE } else { Duration::ZERO };
    let path = Path::new(&folder).join("growth.pool");
    for name in names.iter().filter(|&name| name != "paced") {
        let durability = match name.as_str() {
            "process" => Durability::Process,
            "interval" => Durability::DEFAULT,
            _ => Durability::Commit,
        };
        let times = fill(&path, durability, mebibytes << 20, pace)?;
        std::fs::remove_file(&path)?;
        print(name, times)?;
    }
    Ok(())
}

/// Puts pairs until the file has `bytes` bytes. Returns the time of each put, in nanoseconds.
fn fill(
    path: &Path,
    durability: Durability,
    bytes: u64,
    pace: Duration,
) -> Result<Vec<u64>, Error> {
    let store = Store::options().durability(durability).create(path)?;
    let mut times = Vec::new();
    let mut due = Instant::now();
    while store.stats().pool_bytes < bytes {
        times.reserve(BATCH as usize);
        for _ in 0..BATCH {
            let number = times.len() as u128;
            let key = number.wrapping_mul(0x0fc9_4e3b_f4e9_ab32_8664_58cd_56f5_e605);
            while due.elapsed() < pace {
                std::hint::spin_loop();
            }
            due = Instant::now();
            store.put(key.to_be_bytes(), [7; 100])?;
            times.push(due.elapsed().as_nanos() as u64);
        }
    }
    store.close()?;
    Ok(times)
}

fn print(name: &str, mut times: Vec<u64>) -> std::io::Result<()> {
    let total: u64 = times.iter().sum();
    times.sort_unstable();
    let mut output = std::io::stdout();
    write!(output, "{name:9} {:9} puts, {:6.1} s, in us:", times.len(), total as f64 / 1e9)?;
    for (name, quantile) in QUANTILES {
        let time = times[(times.len() as u128 * quantile as u128 / 100_000) as usize];
        write!(output, " {name} {:.1}", time as f64 / 1e3)?;
    }
    let late = times.iter().rev().take_while(|&&time| time > 5_000_000).count();
    writeln!(output, " max {:.1}; {late} over 5 ms", times[times.len() - 1] as f64 / 1e3)
}
