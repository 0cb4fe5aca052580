//! The arguments of `torture`.

use crate::session::Promise;
use bristlecone::{Durability, Options, Store};
use bristlecone_console::values;
use std::path::PathBuf;
use std::time::Duration;

/// The interval of [`Promise::Interval`].
const INTERVAL: Duration = Duration::from_millis(5);
/// The size of a journal, in bytes: so small that checkpoints run.
const JOURNAL_BYTES: u64 = 1 << 20;

/// Returns the durability with a short interval.
pub(super) fn durability(promise: Promise) -> Durability {
    match promise {
        Promise::Commit => Durability::Commit,
        Promise::Interval => Durability::Interval(INTERVAL),
        Promise::Process => Durability::Process,
    }
}

/// Returns the options of a store with a small journal, or without one.
pub(super) fn options(promise: Promise) -> Options {
    let options = Store::options().initial_bytes(1 << 20).durability(durability(promise));
    // A kill loses no page on any file system, and the power cuts are of our own making.
    options.journal_bytes(JOURNAL_BYTES).trust_file_system(true)
}

/// Load a store with several threads, kill the process, verify: some thousands of times.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone torture --cycles 10000
  bristlecone torture --cycles 100 --threads 4 --keys 1M --load 1M --json
  bristlecone torture --cycles 1000 --durability commit
  bristlecone torture --power-cut 10k --folder /dev/shm
  bristlecone torture --power-cut 10k --folder /dev/shm --durability process

After each kill the command looks up every put, update and delete that was acknowledged, and every
value that a reader saw. It also demands that a scan is in order and that the pool has no
unreachable block. The exit code is 1 if anything is lost or wrong.

With --power-cut the command makes images of the files of a store after random events: each sector
of 512 B of the pool and of its journal that was not synced is as before or as written. Every image
must be right: with commit, nothing that returned is lost; with interval, no more than its window,
and never an earlier write alone. The exit code is 1 if an image is answered wrong, hangs or crashes
the process. With --durability process each page of the file is as of the last sync or as of now, at
random, and an open must refuse an image or answer right.")]
pub(crate) struct Args {
    /// Number of kills.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = values::positive_count)]
    pub(super) cycles: u64,
    /// Threads that write. One more thread reads.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=64),
    )]
    pub(super) threads: u64,
    /// Number of different keys.
    #[arg(long, value_name = "N", default_value = "10k", value_parser = values::count)]
    pub(super) keys: u64,
    /// Keys that each new pool holds before the first kill, at most as many as --keys.
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::count)]
    pub(super) load: u64,
    /// Seed of the steps and of the moments of the kills [default: the clock].
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Folder for the temporary folder with the pool [default: the system's].
    #[arg(long, value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// The moment from which a write survives a power cut. After half of the kills a store with a
    /// journal is recovered without one.
    #[arg(long, value_name = "commit|interval|process", default_value = "interval")]
    pub(super) durability: Promise,
    /// Judge N images that a power cut can leave of the file, in place of counting cycles.
    #[arg(
        long,
        value_name = "N",
        value_parser = values::positive_count,
        conflicts_with = "cycles",
    )]
    pub(super) power_cut: Option<u64>,
    /// Also open the images that are refused because they may be torn, and count what they answer.
    /// Only with --durability process.
    #[arg(long, requires = "power_cut")]
    pub(super) open_torn: bool,
    /// Let syncs do nothing: the images of a disk that lies, which the judge must find wrong.
    #[arg(long, hide = true, requires = "power_cut")]
    pub(super) lying_disk: bool,
    /// Run as the process that is killed, in this cycle.
    #[arg(long, hide = true, requires = "pool", requires = "seed")]
    pub(super) victim: Option<u64>,
    /// The file to which the process that is killed copies the pool after it has opened it.
    #[arg(long, hide = true, requires = "victim")]
    pub(super) snapshot: Option<PathBuf>,
    /// The steps of each thread after which the process closes the store and ends.
    #[arg(long, hide = true, requires = "victim")]
    pub(super) steps: Option<u64>,
    /// Run as the process that judges an image, by the state in this file.
    #[arg(long, hide = true, requires = "pool", value_name = "FILE")]
    pub(super) judge: Option<PathBuf>,
    /// Judge the image of a store that had a journal.
    #[arg(long, hide = true, requires = "judge")]
    pub(super) prefix: bool,
    /// The pool of the process that is killed, or that judges.
    #[arg(long, hide = true)]
    pub(super) pool: Option<PathBuf>,
}
