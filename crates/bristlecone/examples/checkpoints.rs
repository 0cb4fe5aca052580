//! The cost of checkpoints: random updates of a store with a journal of each size. In the largest
//! none may run. Prints the time of a put at some quantiles, and the bytes that a put writes: as
//! the journal counts them; as the kernel counts them for the process (`write_bytes` of
//! `/proc/self/io`, where a sector that changes counts as all of the pages that the cache holds as
//! one); and what the device of the folder was sent, by anyone. Rounds alternate, and the medians
//! are shown. The last column is the formula of the design: of `j` bytes of journal a put,
//! `j (1 + D / L)` for data of `D` bytes and a journal of `L`.
//!
//! `cargo run --release -p bristlecone --example checkpoints [FOLDER [PAIRS UPDATES ROUNDS MIB..]]`

use bristlecone::{Durability, Error, Store};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

/// The number of pairs, of updates of a round, and of rounds.
const SCALE: [u64; 3] = [500_000, 1_500_000, 5];
/// The sizes of the journals, in MiB.
const JOURNALS: [u64; 2] = [64, 1024];
/// The columns.
const NAMES: [&str; 10] = [
    "p50 ns",
    "p99 ns",
    "p99.9 ns",
    "max us",
    "journal B",
    "pool B",
    "kernel B",
    "device B",
    "turns",
    "formula B",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let numbers = arguments.map(|number| number.parse()).collect::<Result<Vec<u64>, _>>()?;
    let [pairs, updates, turns] = core::array::from_fn(|at| *numbers.get(at).unwrap_or(&SCALE[at]));
    let journals = numbers.get(SCALE.len()..).filter(|journals| !journals.is_empty());
    let journals = journals.unwrap_or(&JOURNALS);
    let path = Path::new(&folder).join("checkpoints.pool");
    let mut rounds = vec![Vec::new(); journals.len()];
    for _ in 0..turns {
        for (rounds, mebibytes) in rounds.iter_mut().zip(journals) {
            rounds.push(round(&path, mebibytes << 20, pairs, updates)?);
            std::fs::remove_file(&path)?;
        }
    }
    let mut output = std::io::stdout();
    write!(output, "{:12}", "journal")?;
    NAMES.iter().try_for_each(|name| write!(output, " {name:>10}"))?;
    for (rounds, mebibytes) in rounds.into_iter().zip(journals) {
        write!(output, "\n{mebibytes:8} MiB")?;
        for column in 0..NAMES.len() {
            let mut values: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
            values.sort_by(f64::total_cmp);
            write!(output, " {:10.1}", values[values.len() / 2])?;
        }
    }
    writeln!(output)?;
    Ok(())
}

/// Returns the columns of one round.
fn round(
    path: &Path,
    journal_bytes: u64,
    pairs: u64,
    updates: u64,
) -> Result<[f64; NAMES.len()], Box<dyn std::error::Error>> {
    let options = Store::options().initial_bytes(64 << 20).durability(Durability::DEFAULT);
    let store = options.journal_bytes(journal_bytes).create(path)?;
    let stats = || store.stats().journal.expect("the store has a journal");
    let key = |number: u64| number.wrapping_mul(0x5851_F42D_4C95_7F2D).to_be_bytes();
    for number in 0..pairs {
        store.put(key(number), number.to_le_bytes())?;
    }
    store.sync()?;
    let mut state = 1_u64;
    let mut update = |value: u64| -> Result<u64, Error> {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let key = key((state >> 33) % pairs);
        let start = Instant::now();
        store.put(key, value.to_le_bytes())?;
        Ok(start.elapsed().as_nanos() as u64)
    };
    // The load leaves a checkpoint under way: what follows is steady.
    (0..updates / 4).try_for_each(|value| update(value).map(drop))?;
    let (before, kernel_before, device_before) = (stats(), kernel_bytes()?, device_bytes(path)?);
    let mut times = (0..updates).map(&mut update).collect::<Result<Vec<_>, _>>()?;
    let (after, kernel_after, device_after) = (stats(), kernel_bytes()?, device_bytes(path)?);
    let data_bytes = store.stats().used_bytes as f64;
    store.close()?;
    times.sort_unstable();
    let at = |per_mille: usize| times[times.len() * per_mille / 1000] as f64;
    let a_put = |bytes: u64| bytes as f64 / updates as f64;
    let journal = a_put(after.journal_bytes_written - before.journal_bytes_written);
    Ok([
        at(500),
        at(990),
        at(999),
        times[times.len() - 1] as f64 / 1e3,
        journal,
        a_put(after.pool_bytes_written - before.pool_bytes_written),
        a_put(kernel_after - kernel_before),
        a_put(device_after - device_before),
        (after.checkpoints - before.checkpoints) as f64,
        journal * (1.0 + data_bytes / journal_bytes as f64),
    ])
}

/// Returns the number of bytes that the device of a file was sent.
fn device_bytes(path: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    let device = std::fs::metadata(path)?.dev();
    let stat = format!("/sys/dev/block/{}:{}/stat", libc::major(device), libc::minor(device));
    let sectors = std::fs::read_to_string(stat)?;
    Ok(512 * sectors.split_whitespace().nth(6).ok_or("no sectors")?.parse::<u64>()?)
}

/// Returns the number of bytes of pages that the kernel has marked for devices for this process.
fn kernel_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let counters = std::fs::read_to_string("/proc/self/io")?;
    let bytes = counters.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(bytes.ok_or("no write_bytes")?.parse()?)
}
