//! The job: load, kill, verify; again until all words are there; then measure.

use super::expect::{Expectation, Verdict, value_of};
use super::kill;
use super::speed;
use crate::child::Moment;
use crate::escape;
use crate::quantile::percentile;
use anyhow::{Context, bail};
use bristlecone::Store;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Output, grouped, table};
use bristlecone_console::progress::Progress;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Load real data with a process that is killed again and again; verify that nothing is lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone demo
  bristlecone demo --kills 100 --seed 7 --json

The words are those of Debian's package wamerican; the files are in a temporary folder that is
removed at the end. The exit code is 1 if an acknowledged write is lost.")]
pub(crate) struct Args {
    /// Times that the loading process is killed.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    kills: u64,
    /// What the order of the words and the moments of the kills are drawn from [default: the
    /// clock].
    #[arg(long)]
    seed: Option<u64>,
    /// Threads that load.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
    /// Folder to make the temporary folder in [default: the system's].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// What the demonstration found.
#[derive(Debug, Serialize)]
struct Report {
    keys: u64,
    acknowledged: u64,
    kills: u64,
    lost: u64,
    ops_per_second: f64,
    lines_per_insert: f64,
    fences_per_insert: f64,
    reopen_ms_p99: f64,
    wrong: u64,
    gets_per_second: f64,
    seconds: f64,
    seed: u64,
    domain: &'static str,
}

/// Runs the demonstration.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let seed = args.seed.unwrap_or_else(bristlecone_console::values::seed_from_clock);
    let folder = match &args.folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("make a temporary folder")?;
    let mut job = Job::new(args, folder.path(), seed);
    job.load()?;
    let words = job.shuffled();
    let speed = speed::measure(&folder.path().join("speed.pool"), &words, args.threads as usize)?;
    let (lines_per_insert, fences_per_insert) = speed::mean_cost(&words);
    let report = Report {
        keys: job.expected.written(),
        acknowledged: job.acknowledged,
        kills: job.kills,
        lost: job.verdict.lost,
        ops_per_second: speed.puts,
        lines_per_insert,
        fences_per_insert,
        reopen_ms_p99: percentile(&mut job.reopens, 99).as_secs_f64() * 1e3,
        wrong: job.verdict.wrong,
        gets_per_second: speed.gets,
        seconds: start.elapsed().as_secs_f64(),
        seed,
        domain: job.domain,
    };
    drop(job);
    if output.json {
        output.object(&report)?;
    } else {
        print(&report, args.threads, output)?;
    }
    Ok(Answer::from_bool(report.lost == 0 && report.wrong == 0))
}

struct Job {
    pool: PathBuf,
    pairs: PathBuf,
    kills_wanted: u64,
    threads: u64,
    rng: SmallRng,
    expected: Expectation,
    verdict: Verdict,
    kills: u64,
    acknowledged: u64,
    reopens: Vec<Duration>,
    domain: &'static str,
    progress: Progress,
}

impl Job {
    fn new(args: &Args, folder: &Path, seed: u64) -> Self {
        Self {
            pool: folder.join("demo.pool"),
            pairs: folder.join("pairs.tsv"),
            kills_wanted: args.kills,
            threads: args.threads,
            rng: SmallRng::seed_from_u64(seed),
            expected: Expectation::new(),
            verdict: Verdict::default(),
            kills: 0,
            acknowledged: 0,
            reopens: Vec::new(),
            domain: "",
            progress: Progress::new(args.kills),
        }
    }

    /// The words and their numbers in a random order.
    fn shuffled(&mut self) -> Vec<(usize, &'static [u8])> {
        let mut words: Vec<_> = self.expected.words().iter().copied().enumerate().collect();
        words.shuffle(&mut self.rng);
        words
    }

    /// Loads all words, and goes on with new values for them until there were enough kills.
    fn load(&mut self) -> anyhow::Result<()> {
        /// More passes than this without enough kills: the machine is too fast or too slow.
        const PASSES_MAX: u32 = 10_000;
        Store::create(&self.pool)?.close()?;
        for pass in 0..PASSES_MAX {
            let mut words = self.shuffled();
            while !words.is_empty() {
                let wanted = (self.kills < self.kills_wanted).then(|| self.moment(words.len()));
                self.round(&words, pass, wanted)?;
                words.retain(|&(i, _)| !self.expected.has(i, pass));
            }
            if self.kills >= self.kills_wanted {
                return Ok(());
            }
        }
        bail!("{} of {} kills came in time", self.kills, self.kills_wanted)
    }

    /// A random moment such that the kills that are left are spread over the words that are left.
    fn moment(&mut self, words: usize) -> Moment {
        let kills_left = (self.kills_wanted - self.kills) as usize;
        let acknowledgements = self.rng.random_range(0..=2 * words / (kills_left + 1));
        let then = Duration::from_micros(self.rng.random_range(0..2000));
        Moment { acknowledgements, then }
    }

    /// One child, killed or not; then the store is opened and compared.
    fn round(
        &mut self,
        words: &[(usize, &[u8])],
        pass: u32,
        moment: Option<Moment>,
    ) -> anyhow::Result<()> {
        self.write_pairs(words, pass).with_context(|| self.pairs.display().to_string())?;
        let outcome = kill::load(&self.pool, &self.pairs, self.threads, moment)?;
        for word in outcome.acknowledged.split_inclusive(|&byte| byte == b'\n') {
            let Some(word) = word.strip_suffix(b"\n").and_then(escape::read) else { continue };
            self.acknowledged += 1;
            self.verdict.wrong += u64::from(!self.expected.promise(&word, pass));
        }
        let start = Instant::now();
        let store = Store::open(&self.pool)?;
        if outcome.killed {
            self.reopens.push(start.elapsed());
            self.kills += 1;
            self.progress.advance(1);
        }
        self.domain = store.stats().domain.name();
        let verdict = self.expected.compare(&store)?;
        self.verdict.lost += verdict.lost;
        self.verdict.wrong += verdict.wrong;
        // Half of the children find a store that was closed, half one that was not.
        if self.rng.random() {
            store.close()?;
        }
        Ok(())
    }

    fn write_pairs(&mut self, words: &[(usize, &[u8])], pass: u32) -> std::io::Result<()> {
        let mut file = BufWriter::new(std::fs::File::create(&self.pairs)?);
        for &(i, word) in words {
            self.expected.try_word(i, pass);
            escape::write(&mut file, word)?;
            file.write_all(b"\t")?;
            escape::write(&mut file, &value_of(i, pass))?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }
}

fn print(report: &Report, threads: u64, output: &mut Output) -> anyhow::Result<()> {
    let mut shown = table(&[], 1..2);
    for (name, value) in [
        ("keys (English words)", grouped(report.keys)),
        ("kills (SIGKILL while loading)", grouped(report.kills)),
        ("acknowledged writes", grouped(report.acknowledged)),
        ("lost writes", grouped(report.lost)),
        ("wrong pairs", grouped(report.wrong)),
        ("reopen after a kill, p99", format!("{:.1} ms", report.reopen_ms_p99)),
        ("durable inserts a second", grouped_float(report.ops_per_second)),
        ("gets a second", grouped_float(report.gets_per_second)),
        ("lines flushed an insert", format!("{:.2}", report.lines_per_insert)),
        ("fences an insert", format!("{:.2}", report.fences_per_insert)),
    ] {
        shown.add_row([name.to_owned(), value]);
    }
    output.table(&shown)?;
    let Report { seed, seconds, domain, .. } = report;
    writeln!(output, "\n{seconds:.1} s, {threads} threads, seed {seed}, domain {domain}.")?;
    if *domain == "process" {
        writeln!(
            output,
            "In this domain no line need be flushed: the lines and fences are those that an insert\n\
             takes on persistent memory, counted in a pass of their own."
        )?;
    }
    Ok(output.flush()?)
}

fn grouped_float(number: f64) -> String {
    grouped(bristlecone_console::output::whole(number))
}
