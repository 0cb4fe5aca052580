//! The cost of checkpoints: random updates of a store with a journal that is so small that
//! checkpoints run all the time, and of one in which none runs. Prints the time of a put at some
//! quantiles, and the bytes that a put writes; rounds alternate, and the medians are shown.
//!
//! `cargo run --release -p bristlecone --example checkpoints [FOLDER]`

use bristlecone::{Durability, Error, Store};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The number of pairs.
const PAIRS: u64 = 500_000;
/// The number of updates of a round.
const UPDATES: u64 = 1_500_000;
/// The number of rounds.
const ROUNDS: usize = 5;
/// The sizes of the journals, in bytes.
const JOURNALS: [u64; 2] = [64 << 20, 1 << 30];
/// The columns.
const NAMES: [&str; 7] = ["p50 ns", "p99 ns", "p99.9 ns", "max us", "journal B", "pool B", "turns"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let path = Path::new(&folder).join("checkpoints.pool");
    let mut rounds = [const { Vec::new() }; JOURNALS.len()];
    for _ in 0..ROUNDS {
        for (rounds, journal_bytes) in rounds.iter_mut().zip(JOURNALS) {
            rounds.push(round(&path, journal_bytes)?);
            std::fs::remove_file(&path)?;
        }
    }
    let mut output = std::io::stdout();
    write!(output, "{:12}", "journal")?;
    NAMES.iter().try_for_each(|name| write!(output, " {name:>10}"))?;
    for (rounds, journal_bytes) in rounds.into_iter().zip(JOURNALS) {
        write!(output, "\n{:8} MiB", journal_bytes >> 20)?;
        for column in 0..NAMES.len() {
            let mut values: Vec<f64> =
                rounds.iter().map(|round: &[f64; 7]| round[column]).collect();
            values.sort_by(f64::total_cmp);
            write!(output, " {:10.1}", values[values.len() / 2])?;
        }
    }
    writeln!(output)?;
    Ok(())
}

/// Returns the columns of one round.
fn round(path: &Path, journal_bytes: u64) -> Result<[f64; 7], Error> {
    let options = Store::options().initial_bytes(64 << 20).durability(Durability::DEFAULT);
    let store = options.journal_bytes(journal_bytes).create(path)?;
    let stats = || store.stats().journal.expect("the store has a journal");
    let key = |number: u64| number.wrapping_mul(0x5851_F42D_4C95_7F2D).to_be_bytes();
    for number in 0..PAIRS {
        store.put(key(number), number.to_le_bytes())?;
    }
    store.sync()?;
    let before = stats();
    let mut times = Vec::with_capacity(UPDATES as usize);
    let mut state = 1_u64;
    for value in 0..UPDATES {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let key = key((state >> 33) % PAIRS);
        let start = Instant::now();
        store.put(key, value.to_le_bytes())?;
        times.push(start.elapsed().as_nanos() as u64);
    }
    let after = stats();
    store.close()?;
    times.sort_unstable();
    let at = |per_mille: usize| times[times.len() * per_mille / 1000] as f64;
    let a_put = |bytes: u64| bytes as f64 / UPDATES as f64;
    Ok([
        at(500),
        at(990),
        at(999),
        times[times.len() - 1] as f64 / 1e3,
        a_put(after.journal_bytes_written - before.journal_bytes_written),
        a_put(after.pool_bytes_written - before.pool_bytes_written),
        (after.checkpoints - before.checkpoints) as f64,
    ])
}
