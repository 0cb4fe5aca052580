//! The process that kills, and verifies.

use super::args::Args;
use super::child::ACKNOWLEDGEMENT_BYTES;
use super::ledger::{Ledger, Verdict};
use super::steps::Load;
use crate::child::{self, Moment};
use crate::quantile::percentile;
use anyhow::Context;
use bristlecone::Store;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Output, grouped, table};
use bristlecone_console::progress::Progress;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Cycles after which a pool is replaced by a new one, so that creation and growth are hit too.
const POOL_CYCLES: u64 = 500;
/// Steps after which a child is killed, at most.
const STEPS_MAX: usize = 4000;
/// How long a child lives at most, if it is killed by the clock: while it opens, as a rule.
const LIFE_MAX: Duration = Duration::from_millis(12);

/// What came of it.
#[derive(Debug, Serialize)]
struct Report {
    cycles: u64,
    acknowledged: u64,
    lost: u64,
    reopen_ms: Quantiles,
    wrong: u64,
    threads: u64,
    keys: u64,
    /// Keys that each new pool held before the first kill.
    loaded: u64,
    /// Keys that were there, on average over the cycles.
    keys_present: u64,
    seconds: f64,
    seed: u64,
    domain: &'static str,
}

#[derive(Debug, Serialize)]
struct Quantiles {
    p50: f64,
    p99: f64,
}

/// Does all cycles.
pub(super) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let folder = match &args.folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("make a temporary folder")?;
    let seed = args.seed.unwrap_or_else(bristlecone_console::values::seed_from_clock);
    let load = Load { seed, cycle: 0, keys: args.keys.max(args.threads), threads: args.threads };
    let mut torture = Torture::new(load, args.load.min(load.keys), folder.path(), args.cycles);
    for cycle in 1..=args.cycles {
        torture.cycle(cycle).with_context(|| format!("cycle {cycle} of seed {seed}"))?;
    }
    let mut quantile = |percent| percentile(&mut torture.reopens, percent).as_secs_f64() * 1e3;
    let reopen_ms = Quantiles { p50: quantile(50), p99: quantile(99) };
    let report = Report {
        cycles: args.cycles,
        acknowledged: torture.acknowledged,
        lost: torture.verdict.lost,
        reopen_ms,
        wrong: torture.verdict.wrong,
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
        output.object(&report)?;
    } else {
        print(&report, output)?;
    }
    Ok(Answer::from_bool(report.lost == 0 && report.wrong == 0))
}

struct Torture {
    load: Load,
    /// Keys that a new pool holds.
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
    fn new(load: Load, loaded: u64, folder: &Path, cycles: u64) -> Self {
        Self {
            load,
            loaded,
            pool: folder.join("torture.pool"),
            rng: SmallRng::seed_from_u64(load.seed),
            ledger: Ledger::new(load.keys, loaded),
            verdict: Verdict::default(),
            acknowledged: 0,
            present: 0,
            reopens: Vec::new(),
            domain: "",
            progress: Progress::new(cycles),
        }
    }

    /// One child, killed; then the store is opened and compared.
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
        let outcome = child::run(&mut child, Some(moment), <[u8]>::len)?;
        let done = self.ledger.note(load, &outcome.acknowledged);
        self.acknowledged += done.acknowledged;
        let start = Instant::now();
        let mut store = Store::open_or_create(&self.pool)?;
        self.reopens.push(start.elapsed());
        self.domain = store.stats().domain.name();
        let verdict = self.ledger.compare(&mut store, &done)?;
        self.verdict.lost += verdict.lost;
        self.verdict.wrong += verdict.wrong;
        self.present += self.ledger.present();
        if verdict != Verdict::default() {
            let Verdict { lost, wrong } = verdict;
            let seed = load.seed;
            let text = format!("cycle {cycle} of seed {seed}: {lost} lost, {wrong} wrong");
            writeln!(std::io::stderr(), "{text}")?;
        }
        // Half of the children find a store that was closed, half one that was not.
        if self.rng.random() {
            store.close()?;
        }
        self.progress.advance(1);
        let Verdict { lost, wrong } = self.verdict;
        let acknowledged = grouped(self.acknowledged);
        self.progress.say(format!("{acknowledged} acknowledged, {lost} lost, {wrong} wrong"));
        Ok(())
    }

    /// Begins with a new pool, which the next child creates, unless it is to hold something.
    fn replace(&mut self, exists: bool) -> anyhow::Result<()> {
        if exists {
            std::fs::remove_file(&self.pool).context("remove the old pool")?;
            self.ledger = Ledger::new(self.load.keys, self.loaded);
        }
        if self.loaded > 0 {
            self.progress.say(format!("loading {} keys", grouped(self.loaded)));
            let store = Store::create(&self.pool)?;
            self.ledger.load(&store)?;
            store.close()?;
        }
        Ok(())
    }

    /// Some children are killed while they open or recover, most in the middle of their steps.
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

fn print(report: &Report, output: &mut Output) -> anyhow::Result<()> {
    let Report { reopen_ms: Quantiles { p50, p99 }, threads, keys, seed, .. } = report;
    let mut shown = table(&[], 1..2);
    for (name, value) in [
        ("cycles (SIGKILL while loading)", grouped(report.cycles)),
        ("acknowledged puts, updates, deletes", grouped(report.acknowledged)),
        ("lost", grouped(report.lost)),
        ("wrong", grouped(report.wrong)),
        ("keys present, on average", grouped(report.keys_present)),
        ("reopen after a kill, median", format!("{p50:.2} ms")),
        ("reopen after a kill, p99", format!("{p99:.2} ms")),
    ] {
        shown.add_row([name.to_owned(), value]);
    }
    output.table(&shown)?;
    let (seconds, domain) = (report.seconds, report.domain);
    writeln!(
        output,
        "\n{seconds:.1} s, {threads} threads, {keys} keys, seed {seed}, domain {domain}."
    )?;
    Ok(output.flush()?)
}
