//! The cost of a put and of a get on a plain file: without a journal, with the instructions of
//! persistent memory, and with a journal in each durability; and of the system calls that a commit
//! needs at least. Prints medians over rounds that alternate, and the ratios to the first of their
//! kind.
//!
//! `cargo run --release -p bristlecone --example durability [FOLDER]`

use bristlecone::{Durability, Error, Store};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Domain, FileMedium, Mapped};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// The number of puts of a round.
const PUTS: u64 = 200_000;
/// The number of puts of a round in which each waits for the device.
const COMMITS: u64 = 2_000;
/// The number of threads that commit together, and of their puts in a round.
const THREADS: u64 = 64;
const SHARED_COMMITS: u64 = 100_000;
/// The number of rounds.
const ROUNDS: usize = 7;
/// The number of turns of the stores in a round of gets.
const GET_TURNS: usize = 9;
/// The size of a new file, in bytes.
const FILE_BYTES: u64 = 64 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let path = Path::new(&folder).join("durability.pool");
    let mut times = [const { Vec::new() }; 9];
    for _ in 0..ROUNDS {
        let options = Store::options().initial_bytes(FILE_BYTES);
        let [process, interval, committed] =
            [Durability::Process, Durability::DEFAULT, Durability::Commit]
                .map(|durability| options.clone().durability(durability));

        times[0].push(puts(process.create(&path)?, PUTS, 1)?);
        std::fs::remove_file(&path)?;

        let medium = Mapped::create(&path, FILE_BYTES, &FileOptions::default())?;
        let medium = FileMedium::from(medium.emulate(Domain::Adr)?);
        times[1].push(puts(Store::create_on(medium)?, PUTS, 1)?);
        std::fs::remove_file(&path)?;

        times[2].push(puts(interval.create(&path)?, PUTS, 1)?);
        std::fs::remove_file(&path)?;

        times[3].push(syncs(&path)?);
        std::fs::remove_file(&path)?;

        times[4].push(puts(committed.create(&path)?, COMMITS, 1)?);
        std::fs::remove_file(&path)?;

        times[5].push(puts(committed.create(&path)?, SHARED_COMMITS, THREADS)?);
        std::fs::remove_file(&path)?;

        puts(process.create(&path)?, PUTS, 1)?;
        // A get costs so little that the stores take turns.
        let copies = ["interval", "commit"].map(|name| path.with_extension(name));
        copies.iter().try_for_each(|copy| std::fs::copy(&path, copy).map(drop))?;
        let stores =
            [process.open(&path)?, interval.open(&copies[0])?, committed.open(&copies[1])?];
        for _ in 0..GET_TURNS {
            for (store, times) in stores.iter().zip(&mut times[6..]) {
                times.push(gets(store)?);
            }
        }
        stores.into_iter().try_for_each(Store::close)?;
        [&path, &copies[0], &copies[1]].into_iter().try_for_each(std::fs::remove_file)?;
    }
    let names = [
        "put, process",
        "put, adr, emulated",
        "put, interval 100 ms",
        "pwrite and fdatasync",
        "put, commit",
        "put, commit, 64 threads",
        "get, process",
        "get, interval 100 ms",
        "get, commit",
    ];
    let medians = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    let mut output = std::io::stdout();
    let firsts = [0, 0, 0, 3, 3, 3, 6, 6, 6];
    for ((name, nanoseconds), first) in names.into_iter().zip(medians).zip(firsts) {
        let ratio = nanoseconds / medians[first];
        writeln!(output, "{name:24} {nanoseconds:10.1} ns {ratio:8.2} x")?;
    }
    Ok(())
}

/// Puts `count` random pairs of 8 B + 8 B, in so many threads together, and returns the time of all
/// of them divided by `count`, in nanoseconds.
fn puts(store: Store, count: u64, threads: u64) -> Result<f64, Error> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let store = &store;
        let others: Vec<_> = (1..threads)
            .map(|thread| scope.spawn(move || put(store, thread, count / threads)))
            .collect();
        put(store, 0, count - count / threads * (threads - 1))?;
        others.into_iter().try_for_each(|thread| thread.join().expect("a put does not panic"))
    })?;
    let nanoseconds = start.elapsed().as_nanos() as f64 / count as f64;
    store.close()?;
    Ok(nanoseconds)
}

/// Writes and syncs a sector as often as a round commits, behind one another in a file of zeros, as
/// the frames of a journal are. Returns the time of each, in nanoseconds.
fn syncs(path: &Path) -> Result<f64, std::io::Error> {
    const SECTOR: [u8; 512] = [7; 512];
    let file = File::create(path)?;
    file.write_all_at(&vec![0; COMMITS as usize * SECTOR.len()], 0)?;
    file.sync_all()?;
    let start = Instant::now();
    for number in 0..COMMITS {
        file.write_all_at(&SECTOR, number * SECTOR.len() as u64)?;
        file.sync_data()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / COMMITS as f64)
}

/// Looks up the pairs that one thread has put, and returns the time of a get, in nanoseconds.
fn gets(store: &Store) -> Result<f64, Error> {
    let start = Instant::now();
    let mut key = 1_u64;
    for value in 0..PUTS {
        key = next(key);
        let found = store.get_with(key.to_be_bytes(), |found| found == value.to_le_bytes())?;
        assert_eq!(found, Some(true));
    }
    Ok(start.elapsed().as_nanos() as f64 / PUTS as f64)
}

/// Returns the key after `key`.
fn next(key: u64) -> u64 {
    key.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F)
}

fn put(store: &Store, thread: u64, count: u64) -> Result<(), Error> {
    let mut key = thread + 1;
    for value in 0..count {
        key = next(key);
        store.put(key.to_be_bytes(), value.to_le_bytes())?;
    }
    Ok(())
}
