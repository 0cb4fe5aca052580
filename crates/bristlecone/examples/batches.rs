//! The cost of a pair that is put by itself and in batches: without a journal, with the
//! instructions of persistent memory, and with a journal. Prints medians over rounds in which all
//! take turns, and ratios.
//!
//! `cargo run --release -p bristlecone --example batches [FOLDER [PAIRS]]`; PAIRS is the number of
//! pairs in a store. Without a disk below the folder there is no journal.

use bristlecone::{Batch, Durability, Error, Store};
use bristlecone_pmem::journal::JournalError;
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Domain, FileMedium, Mapped};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The number of pairs in a store, unless it is given.
const PAIRS: u64 = 200_000;
/// The numbers of pairs in a batch; 0 for puts.
const SIZES: [u64; 4] = [0, 10, 100, 1000];
/// The lengths of values, in bytes.
const VALUE_BYTES: [usize; 2] = [8, 100];
/// The number of pairs that a turn writes, and of those that each wait for the device.
const TURN_PAIRS: u64 = 20_000;
const TURN_COMMITS: u64 = 200;
const ROUNDS: usize = 7;
/// The bytes of a new file for each pair.
const FILE_BYTES: u64 = 640;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = Path::new(&folder);
    let pairs = std::env::args().nth(2).map_or(Ok(PAIRS), |pairs| pairs.parse())?;
    let file_bytes = pairs * FILE_BYTES;
    let options = Store::options().initial_bytes(file_bytes).prefault(true);
    let [process, interval, committed] = [
        ("process", Durability::Process),
        ("interval", Durability::DEFAULT),
        ("commit", Durability::Commit),
    ]
    .map(|(name, durability)| (name, options.clone().durability(durability)));
    let prefaulted = FileOptions { prefault: true, ..FileOptions::default() };
    for bytes in VALUE_BYTES {
        let path = folder.join("batches-adr.pool");
        let medium = Mapped::create(&path, file_bytes, &prefaulted)?;
        let medium = FileMedium::from(medium.emulate(Domain::Adr)?);
        measure("adr, emulated", &Store::create_on(medium)?, (pairs, bytes), TURN_PAIRS)?;
        std::fs::remove_file(&path)?;
        for (name, options) in [&process, &interval, &committed] {
            let path = folder.join(format!("batches-{name}.pool"));
            let store = match options.create(&path) {
                Err(Error::Journal { source: JournalError::NotOnDisk { kind }, .. }) => {
                    writeln!(std::io::stdout(), "{name}: no journal on {kind}")?;
                    continue;
                }
                created => created?,
            };
            let singles = if *name == "commit" { TURN_COMMITS } else { TURN_PAIRS };
            measure(name, &store, (pairs, bytes), singles)?;
            store.close()?;
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Prints the time of a pair in each size of batch, in a store of `pairs` pairs with values of
/// `bytes` bytes. A turn of puts writes `singles` pairs.
fn measure(
    name: &str,
    store: &Store,
    (pairs, bytes): (u64, usize),
    singles: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let value = vec![7; bytes];
    for keys in (0..pairs).collect::<Vec<_>>().chunks(1000) {
        let batch = keys.iter().fold(Batch::new(), |batch, &n| batch.put(key(n), &value));
        let _ = store.commit(&batch)?;
    }
    let mut times = SIZES.map(|_| Vec::new());
    let mut state = 1_u64;
    for round in 0..ROUNDS {
        let value = vec![round as u8; bytes];
        for (size, times) in SIZES.iter().zip(&mut times) {
            let written = if *size == 0 { singles } else { TURN_PAIRS };
            let start = Instant::now();
            let mut next = || {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                key((state >> 33) % pairs)
            };
            write(store, *size, written, &value, &mut next)?;
            times.push(start.elapsed().as_nanos() as f64 / written as f64);
        }
    }
    let medians = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    for (size, median) in SIZES.iter().zip(medians) {
        let ratio = medians[0] / median;
        writeln!(
            std::io::stdout(),
            "{name}, 8 + {bytes} B, batches of {size}: {median:.0} ns a pair, {ratio:.2} x"
        )?;
    }
    Ok(())
}

/// Writes `pairs` pairs with keys from `next`, in batches of `size`.
fn write(
    store: &Store,
    size: u64,
    pairs: u64,
    value: &[u8],
    next: &mut impl FnMut() -> [u8; 8],
) -> Result<(), Error> {
    if size == 0 {
        return (0..pairs).try_for_each(|_| store.put(next(), value));
    }
    for _ in 0..pairs / size {
        let batch = (0..size).fold(Batch::new(), |batch, _| batch.put(next(), value));
        let _ = store.commit(&batch)?;
    }
    Ok(())
}

/// Returns the key with a number; the order of numbers is not that of keys.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}
