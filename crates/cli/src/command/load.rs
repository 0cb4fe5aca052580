//! `load`: pairs from a file or a pipe.
//!
//! 1. A thread acknowledges a pair, in one write, after its put has returned. So an acknowledged
//!    pair is durable, in the file's domain.
//! 2. One thread puts all pairs of a key, in the order of the input. So the last one stays.
//! 3. A load that cannot go on, also because its acknowledgements cannot be written, is an error.
//!    The error says how many pairs are in.
//! 4. The reader passes on all pairs that it has before it waits for more input. So a program that
//!    sends a pair and waits for the acknowledgement gets it.

use crate::format::Format;
use crate::session;
use anyhow::Context;
use bristlecone::{Error, KEY_BYTES_MAX, Store, VALUE_BYTES_MAX};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, counted};
use bristlecone_console::progress::Progress;
use serde_json::json;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Instant;

/// Put the pairs of a file into a store, which is created if there is none. Each put is
/// acknowledged by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone load trees.pool trees.tsv
  find / -xdev | bristlecone load files.pool - --format lines --threads 2
  bristlecone load trees.pool trees.tsv --ack | while read -r key; do echo \"done: $key\"; done")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// The file; `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Format of the file.
    #[arg(long, value_enum, default_value_t = Format::Tsv)]
    format: Format,
    /// Print each key, in the format of the file, when its put has returned.
    #[arg(long)]
    ack: bool,
    /// Number of threads that put.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=256),
    )]
    threads: u64,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Loads the pairs and returns `Yes`.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let input = open(&args.file)?;
    let mut lines = Lines {
        input: BufReader::with_capacity(256 << 10, input),
        name: args.file.display().to_string(),
        format: args.format,
        number: 0,
        line: Vec::new(),
        progress: Progress::new(0),
    };
    let store = args.open.options().open_or_create(&args.pool)?;
    let start = Instant::now();
    let sink =
        Sink { store: &store, ack: args.ack.then_some(args.format), loaded: AtomicU64::new(0) };
    let loaded = match args.threads {
        1 => alone(&mut lines, &sink),
        threads => together(&mut lines, &sink, threads as usize),
    };
    let done = sink.loaded.into_inner();
    let closed = session::close(store);
    loaded.and(closed).with_context(|| stopped(&args.pool, done))?;
    let (pairs, seconds) = (lines.number, start.elapsed().as_secs_f64());
    let pairs_per_second = pairs as f64 / seconds.max(1e-9);
    if args.ack {
        return Ok(Answer::Yes); // The acknowledged keys are the answer.
    }
    if output.json {
        output.object(&json!({
            "pairs": pairs, "seconds": seconds, "pairs_per_second": pairs_per_second,
        }))?;
    } else {
        writeln!(output, "{} in {seconds:.2} s", counted(pairs, "pair"))?;
        output.flush()?;
    }
    Ok(Answer::Yes)
}

/// Opens the input before the store: an input that cannot be read leaves no new store behind.
fn open(file: &Path) -> anyhow::Result<Box<dyn Read>> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let opened = File::open(file).and_then(|input| {
        let is_folder = input.metadata()?.is_dir();
        if is_folder { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(input) }
    });
    Ok(Box::new(opened.with_context(|| file.display().to_string())?))
}

/// Returns the first part of the message of a load that stopped after `pairs` pairs.
fn stopped(pool: &Path, pairs: u64) -> String {
    let them = counted(pairs, "pair");
    let (are, pool) = (if pairs == 1 { "is" } else { "are" }, pool.display());
    format!("the load stopped; {them} of it {are} in {pool}")
}

/// The error of a load whose acknowledgements cannot be written. Unlike the error of an answer that
/// has no reader, it must not pass for success: the rest of the input is not in the store.
#[derive(Debug)]
struct Unacknowledged(io::Error);

impl std::fmt::Display for Unacknowledged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot write an acknowledgement to standard output")
    }
}

impl std::error::Error for Unacknowledged {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// The pairs of the input.
struct Lines {
    input: BufReader<Box<dyn Read>>,
    name: String,
    format: Format,
    number: u64,
    line: Vec<u8>,
    progress: Progress,
}

impl Lines {
    /// Returns the next pair, or `None` at the end of the input.
    fn next(&mut self) -> anyhow::Result<Option<Pair>> {
        const REPORT_EVERY: u64 = 4096;
        self.line.clear();
        let most = self.format.line_bytes_max();
        let mut input = self.input.by_ref().take(most as u64 + 1);
        let length = input.read_until(b'\n', &mut self.line).with_context(|| self.name.clone())?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_open_ended = self.line.last() != Some(&b'\n');
        if !is_open_ended {
            self.line.pop();
        } else if length > most {
            return Err(self.wrong(&format!("longer than {most} bytes, as no pair is")));
        }
        if self.number.is_multiple_of(REPORT_EVERY) {
            self.progress.advance(REPORT_EVERY);
        }
        let (key, value) = self.format.read(&self.line).map_err(|wrong| self.wrong(&wrong))?;
        if let Some(error) = too_long(&key, &value) {
            return Err(self.wrong(&error.to_string()));
        }
        if is_open_ended {
            let warning = "no newline at the end; if the input was cut there, so is this pair";
            let _ = writeln!(io::stderr(), "bristlecone: {}: {warning}", self.place());
        }
        Ok(Some((key, value)))
    }

    fn wrong(&self, reason: &str) -> anyhow::Error {
        UsageError(format!("{}: {reason}", self.place())).into()
    }

    /// Returns `true` if reading the next pair may wait.
    fn is_drained(&self) -> bool {
        self.input.buffer().is_empty()
    }

    fn place(&self) -> String {
        format!("{}, line {}", self.name, self.number)
    }
}

/// Returns the error with which the store would refuse the pair. It is found before the put, while
/// the number of the line is known.
fn too_long(key: &[u8], value: &[u8]) -> Option<Error> {
    if key.len() > KEY_BYTES_MAX {
        return Some(Error::KeyTooLong { bytes: key.len(), maximum: KEY_BYTES_MAX });
    }
    (value.len() > VALUE_BYTES_MAX)
        .then(|| Error::ValueTooLong { bytes: value.len(), maximum: VALUE_BYTES_MAX })
}

/// The target of the pairs, and the format of acknowledgements, if any are wanted.
struct Sink<'a> {
    store: &'a Store,
    ack: Option<Format>,
    /// The number of pairs that are in the store.
    loaded: AtomicU64,
}

impl Sink<'_> {
    /// Puts a pair and acknowledges it. `line` is a buffer that the caller reuses.
    fn put(&self, (key, value): &Pair, line: &mut Vec<u8>) -> anyhow::Result<()> {
        self.store.put(key, value)?;
        self.loaded.fetch_add(1, Ordering::Relaxed);
        let acknowledged = self.ack.map_or(Ok(()), |format| {
            line.clear();
            format.write_key(line, key)?;
            let mut stdout = io::stdout().lock();
            stdout.write_all(line)?;
            stdout.flush()
        });
        Ok(acknowledged.map_err(Unacknowledged)?)
    }
}

fn alone(lines: &mut Lines, sink: &Sink<'_>) -> anyhow::Result<()> {
    let mut line = Vec::new();
    while let Some(pair) = lines.next()? {
        sink.put(&pair, &mut line).map_err(|error| {
            // An error of the output is no fault of the line, so it gets no line number.
            if error.is::<Unacknowledged>() { error } else { error.context(lines.place()) }
        })?;
    }
    Ok(())
}

/// The number of pairs in a full batch for one thread. A batch also ends where reading would wait.
const BATCH_PAIRS: usize = 128;
/// The number of batches that may wait for one thread.
const BATCHES_WAITING: usize = 8;

fn together(lines: &mut Lines, sink: &Sink<'_>, threads: usize) -> anyhow::Result<()> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    std::thread::scope(|scope| {
        let (mut senders, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..threads {
            let (sender, receiver) = sync_channel(BATCHES_WAITING);
            let worker = Builder::new().spawn_scoped(scope, move || work(&receiver, sink));
            workers.push(worker.context("cannot start a thread")?);
            senders.push(sender);
        }
        let mut batches: Vec<Vec<Pair>> = vec![Vec::new(); threads];
        let read = loop {
            match lines.next() {
                Ok(Some(pair)) => {
                    let owner = hasher.hash_one(&pair.0) as usize % threads; // 2
                    batches[owner].push(pair);
                    let all = lines.is_drained(); // 4
                    if (all || batches[owner].len() == BATCH_PAIRS)
                        && !hand_on(&mut batches, &senders, (!all).then_some(owner))
                    {
                        break Ok(());
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        hand_on(&mut batches, &senders, None);
        drop(senders);
        let done = workers.into_iter().map(|worker| worker.join().expect("a thread panicked"));
        // Joins all threads, then returns the first error.
        done.collect::<Vec<_>>().into_iter().collect::<anyhow::Result<()>>().and(read)
    })
}

/// Sends the batch of thread `only`, or of all threads. Returns `false` if a thread has failed.
fn hand_on(batches: &mut [Vec<Pair>], to: &[SyncSender<Vec<Pair>>], only: Option<usize>) -> bool {
    let mut parts = batches.iter_mut().zip(to).enumerate();
    parts.all(|(index, (batch, sender))| {
        let wanted = only.is_none_or(|only| only == index) && !batch.is_empty();
        !wanted || sender.send(std::mem::take(batch)).is_ok()
    })
}

fn work(batches: &Receiver<Vec<Pair>>, sink: &Sink<'_>) -> anyhow::Result<()> {
    let mut line = Vec::new();
    for batch in batches {
        for pair in &batch {
            sink.put(pair, &mut line)?;
        }
    }
    Ok(())
}
