//! `load`: pairs from a file or a pipe.
//!
//! 1. An acknowledgement is written, in one write, after the put of its pair has returned: whoever
//!    reads it knows that the pair is durable.
//! 2. Pairs with the same key are put by the same thread, in the order of the input, so the last
//!    one stays.
//! 3. The reader hands on what it has before it waits for more input. So a program that feeds a
//!    pair and waits for its acknowledgement gets it.

use crate::format::Format;
use crate::session;
use anyhow::Context;
use bristlecone::Store;
use bristlecone_console::exit::{Answer, Usage};
use bristlecone_console::output::{Output, grouped};
use bristlecone_console::progress::Progress;
use serde_json::json;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

/// Put the pairs of a file, each durable by itself. The store is created if there is none.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone load trees.pool trees.tsv
  find / -xdev | bristlecone load files.pool - --format lines --threads 2
  bristlecone load trees.pool trees.tsv --ack | while read -r key; do echo \"$key is safe\"; done")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// The file; `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// How pairs are spelled.
    #[arg(long, value_enum, default_value_t = Format::Tsv)]
    format: Format,
    /// Print each key, spelled as in the file, once its pair is durable.
    #[arg(long)]
    ack: bool,
    /// Threads that put.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
}

/// Loads the pairs.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let input: Box<dyn Read> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let named = || args.file.display().to_string();
        Box::new(File::open(&args.file).with_context(named)?)
    };
    let mut lines = Lines {
        input: BufReader::with_capacity(256 << 10, input),
        name: args.file.display().to_string(),
        format: args.format,
        number: 0,
        line: Vec::new(),
        progress: Progress::new(0),
    };
    let store = Store::open_or_create(&args.pool)?;
    let start = Instant::now();
    let sink = Sink { store: &store, ack: args.ack.then_some(args.format) };
    let loaded = match args.threads {
        1 => alone(&mut lines, &sink),
        threads => together(&mut lines, &sink, threads as usize),
    };
    session::close(store);
    loaded?;
    let (pairs, seconds) = (lines.number, start.elapsed().as_secs_f64());
    let pairs_per_second = pairs as f64 / seconds.max(1e-9);
    if args.ack {
        return Ok(Answer::Yes); // The keys are the answer.
    }
    if output.json {
        output.object(&json!({
            "pairs": pairs, "seconds": seconds, "pairs_per_second": pairs_per_second,
        }))?;
    } else {
        writeln!(output, "{} pairs in {seconds:.2} s", grouped(pairs))?;
        output.flush()?;
    }
    Ok(Answer::Yes)
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
    /// The next pair, if there is one.
    fn next(&mut self) -> anyhow::Result<Option<Pair>> {
        const REPORT_EVERY: u64 = 4096;
        self.line.clear();
        let length = self.input.read_until(b'\n', &mut self.line);
        if length.with_context(|| self.name.clone())? == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        self.number += 1;
        if self.number.is_multiple_of(REPORT_EVERY) {
            self.progress.advance(REPORT_EVERY);
        }
        let pair = self.format.read(&self.line);
        pair.map(Some).map_err(|wrong| Usage(format!("{}: {wrong}", self.place())).into())
    }

    /// Whether the next pair may have to be waited for.
    fn is_drained(&self) -> bool {
        self.input.buffer().is_empty()
    }

    fn place(&self) -> String {
        format!("{}, line {}", self.name, self.number)
    }
}

/// Where pairs go.
struct Sink<'a> {
    store: &'a Store,
    ack: Option<Format>,
}

impl Sink<'_> {
    /// Puts a pair and acknowledges it. `line` is room to spell it in.
    fn put(&self, (key, value): &Pair, line: &mut Vec<u8>) -> anyhow::Result<()> {
        self.store.put(key, value)?;
        if let Some(format) = self.ack {
            line.clear();
            format.write_key(line, key)?;
            let mut stdout = io::stdout().lock();
            stdout.write_all(line)?;
            stdout.flush()?;
        }
        Ok(())
    }
}

fn alone(lines: &mut Lines, sink: &Sink<'_>) -> anyhow::Result<()> {
    let mut line = Vec::new();
    while let Some(pair) = lines.next()? {
        // No place is added where nobody reads any more: that is no fault of the line.
        sink.put(&pair, &mut line).map_err(|error| at(error, || lines.place()))?;
    }
    Ok(())
}

fn at(error: anyhow::Error, place: impl FnOnce() -> String) -> anyhow::Error {
    if bristlecone_console::exit::reader_left(&error) { error } else { error.context(place()) }
}

/// A batch for one thread; it also ends where the input has to be waited for.
const BATCH_PAIRS: usize = 128;
/// Batches that may wait for a thread.
const BATCHES_WAITING: usize = 8;

fn together(lines: &mut Lines, sink: &Sink<'_>, threads: usize) -> anyhow::Result<()> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    std::thread::scope(|scope| {
        let (senders, workers): (Vec<_>, Vec<_>) = (0..threads)
            .map(|_| {
                let (sender, receiver) = sync_channel(BATCHES_WAITING);
                (sender, scope.spawn(move || work(&receiver, sink)))
            })
            .unzip();
        let mut batches: Vec<Vec<Pair>> = vec![Vec::new(); threads];
        let read = loop {
            match lines.next() {
                Ok(Some(pair)) => {
                    let owner = hasher.hash_one(&pair.0) as usize % threads; // 2
                    batches[owner].push(pair);
                    let all = lines.is_drained(); // 3
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
        // The first failure counts, but all are waited for.
        done.collect::<Vec<_>>().into_iter().collect::<anyhow::Result<()>>().and(read)
    })
}

/// Hands on the batch of one thread, or all; false if a thread has failed and takes no more.
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
