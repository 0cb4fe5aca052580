//! The process that kills and verifies.

use super::args::{Args, options};
use super::child::ACKNOWLEDGEMENT_BYTES;
use super::ledger::{Ledger, Verdict};
use super::steps::Load;
use crate::child::{self, Moment};
use crate::quantile::percentile;
use crate::session::Promise;
use anyhow::Context;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Align, Fields, Output, grouped};
use bristlecone_console::progress::Progress;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of cycles of a pool. Then a new pool replaces it, so that kills also hit creation and
/// growth.
const POOL_CYCLES: u64 = 500;
/// The number of acknowledged steps after which a child is killed, at the most.
const STEPS_MAX: usize = 4000;
/// The longest life of a child that the clock kills, most often while it opens the store.
const LIFE_MAX: Duration = Duration::from_millis(12);

/// The result of a torture.
#[derive(Debug)]
struct Report {
    cycles: u64,
    acknowledged: u64,
    verdict: Verdict,
    /// Median and 99th percentile of the times that `open` took after a kill, in milliseconds.
    reopen_ms: [f64; 2],
    threads: u64,
    keys: u64,
    /// The number of keys that each new pool held before the first kill.
    loaded: u64,
    /// The mean number of keys that the store held after a kill.
    keys_present: u64,
    seconds: f64,
    seed: u64,
    domain: &'static str,
}

/// Runs all cycles.
pub(super) fn run(args: &Args, folder: &Path, output: &mut Output) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let seed = args.seed.unwrap_or_else(bristlecone_console::values::seed_from_clock);
    let load = Load { seed, cycle: 0, keys: args.keys.max(args.threads), threads: args.threads };
    let mut torture = Torture::new(load, args, folder);
    for cycle in 1..=args.cycles {
        torture.cycle(cycle).with_context(|| format!("cycle {cycle} of seed {seed}"))?;
    }
    let mut quantile = |percent| percentile(&mut torture.reopens, percent).as_secs_f64() * 1e3;
    let reopen_ms = [quantile(50), quantile(99)];
    let report = Report {
        cycles: args.cycles,
        acknowledged: torture.acknowledged,
        verdict: torture.verdict,
        reopen_ms,
        threads: load.threads,
        keys: load.keys,
        loaded: torture.loaded,
        keys_present: torture.present / args.cycles.max(1),
        seconds: start.elapsed().as_secs_f64(),
        seed,
        domain: torture.domain,
    };
    drop(torture);
    if output.json {
        print_json(&report, output)?;
    } else {
        print(&report, output)?;
    }
    Ok(Answer::from_bool(report.verdict == Verdict::default()))
}

struct Torture {
    load: Load,
    promise: Promise,
    /// The number of keys that a new pool holds.
    loaded: u64,
    pool: PathBuf,
    rng: SmallRng,
    ledger: Ledger,
    verdict: Verdict,
    acknowledged: u64,
    present: u64,
    reopens: Vec<Duration>,
    domain: &'static str,
    progress: Progress,
}

impl Torture {
    fn new(load: Load, args: &Args, folder: &Path) -> Self {
        let loaded = args.load.min(load.keys);
        Self {
            load,
            promise: args.durability,
            loaded,
            pool: folder.join("torture.pool"),
            rng: SmallRng::seed_from_u64(load.seed),
            ledger: Ledger::new(load.keys, loaded),
            verdict: Verdict::default(),
            acknowledged: 0,
            present: 0,
            reopens: Vec::new(),
            domain: "",
            progress: Progress::new(args.cycles),
        }
    }

    /// Runs one child, which is killed; then opens and compares the store.
    fn cycle(&mut self, cycle: u64) -> anyhow::Result<()> {
        let load = Load { cycle, ..self.load };
        if (cycle - 1).is_multiple_of(POOL_CYCLES) {
            self.replace(cycle > 1)?;
        }
        let moment = self.moment();
        let mut child = child::command()?;
        child
            .args(["torture", "--victim", &cycle.to_string(), "--seed", &load.seed.to_string()])
            .args(["--threads", &load.threads.to_string(), "--keys", &load.keys.to_string()])
            .arg("--pool")
            .arg(&self.pool);
        child.args(["--durability", self.promise.name()]);
        let outcome = child::run(&mut child, Some(moment), <[u8]>::len)?;
        let done = self.ledger.note(load, &outcome.acknowledged);
        self.acknowledged += done.acknowledged;
        // Half of the stores with a journal are made whole and opened without one.
        let promise = if self.rng.random() { self.promise } else { Promise::Process };
        let start = Instant::now();
        let mut store = options(promise).open_or_create(&self.pool)?;
        self.reopens.push(start.elapsed());
        if promise == self.promise {
            self.domain = store.stats().domain.name();
        }
        let verdict = self.ledger.compare(&mut store, &done)?;
        self.verdict.lost += verdict.lost;
        self.verdict.wrong += verdict.wrong;
        self.present += self.ledger.present();
        if verdict != Verdict::default() {
            let Verdict { lost, wrong } = verdict;
            let seed = load.seed;
            let text = format!("cycle {cycle} of seed {seed}: {lost} lost, {wrong} wrong");
            let _ = writeln!(std::io::stderr(), "{text}"); // The exit code says so, too.
        }
        // Half of the children open a store that was closed, half one that recovers.
        if self.rng.random() {
            store.close()?;
        }
        self.progress.advance(1);
        let Verdict { lost, wrong } = self.verdict;
        let acknowledged = grouped(self.acknowledged);
        self.progress.say(format!("{acknowledged} acknowledged, {lost} lost, {wrong} wrong"));
        Ok(())
    }

    /// Removes the old pool, if there is one. With `--load` creates and loads the new one; else the
    /// next child creates it.
    fn replace(&mut self, exists: bool) -> anyhow::Result<()> {
        if exists {
            std::fs::remove_file(&self.pool).context("remove the old pool")?;
            self.ledger = Ledger::new(self.load.keys, self.loaded);
        }
        if self.loaded > 0 {
            self.progress.say(format!("loading {} keys", grouped(self.loaded)));
            let store = options(self.promise).create(&self.pool)?;
            self.ledger.load(&store)?;
            store.close()?;
        }
        Ok(())
    }

    /// Returns a random moment: for a quarter of the children while they open or recover, for the
    /// others in the middle of their steps.
    fn moment(&mut self) -> Moment {
        if self.rng.random_range(0..4) == 0 {
            return Moment {
                acknowledgements: 0,
                then: LIFE_MAX.mul_f64(self.rng.random_range(0.0..1.0)),
            };
        }
        Moment {
            acknowledgements: self.rng.random_range(1..STEPS_MAX) * ACKNOWLEDGEMENT_BYTES,
            then: Duration::from_micros(self.rng.random_range(0..500)),
        }
    }
}

fn print_json(report: &Report, output: &mut Output) -> std::io::Result<()> {
    let [p50, p99] = report.reopen_ms;
    output.object(&Fields(&[
        ("cycles", report.cycles.into()),
        ("acknowledged", report.acknowledged.into()),
        ("lost", report.verdict.lost.into()),
        ("reopen_ms", json!({ "p50": p50, "p99": p99 })),
        ("wrong", report.verdict.wrong.into()),
        ("threads", report.threads.into()),
        ("keys", report.keys.into()),
        ("loaded", report.loaded.into()),
        ("keys_present", report.keys_present.into()),
        ("seconds", report.seconds.into()),
        ("seed", report.seed.into()),
        ("domain", report.domain.into()),
    ]))
}

fn print(report: &Report, output: &mut Output) -> std::io::Result<()> {
    let Report { reopen_ms: [p50, p99], threads, keys, seed, seconds, domain, .. } = report;
    let pairs = [
        ("cycles (SIGKILL while loading)", grouped(report.cycles)),
        ("acknowledged puts, updates, deletes", grouped(report.acknowledged)),
        ("lost", grouped(report.verdict.lost)),
        ("wrong", grouped(report.verdict.wrong)),
        ("keys present, on average", grouped(report.keys_present)),
        ("reopen after a kill, median", format!("{p50:.2} ms")),
        ("reopen after a kill, p99", format!("{p99:.2} ms")),
    ];
    output.pairs(&pairs, Align::Right)?;
    writeln!(
        output,
        "\n{seconds:.1} s, {threads} threads, {keys} keys, seed {seed}, domain {domain}."
    )?;
    output.flush()
}
