//! The job: load, kill, verify, until all words are there and there were enough kills.

use super::args::Args;
use super::expect::{Comparison, Expectation, value_of};
use super::kill;
use crate::child::Moment;
use crate::escape;
use crate::quantile::percentile;
use crate::session::{Promise, survives};
use anyhow::{Context, bail};
use bristlecone::{Domain, Options};
use bristlecone_console::progress::Progress;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The result of a job.
#[derive(Debug)]
pub(super) struct DemoResult {
    /// The number of words that the store holds.
    pub(super) keys: u64,
    /// The number of acknowledgements, of all passes together.
    pub(super) acknowledged: u64,
    pub(super) kills: u64,
    pub(super) verdict: Comparison,
    pub(super) reopen_ms_p99: f64,
    pub(super) domain: Domain,
    /// The crashes that an acknowledged write survives, in words.
    pub(super) survives: String,
}

/// A job that is going on.
pub(super) struct Job {
    pool: PathBuf,
    pairs: PathBuf,
    kills_wanted: u64,
    threads: u64,
    durability: Option<Promise>,
    options: Options,
    rng: SmallRng,
    expected: Expectation,
    verdict: Comparison,
    kills: u64,
    acknowledged: u64,
    /// The times that `open` took after a kill.
    reopens: Vec<Duration>,
    /// The domain of the pool, once it has been opened.
    domain: Domain,
    survives: String,
    progress: Progress,
}

impl Job {
    /// Returns a job whose files lie in `folder`.
    pub(super) fn new(args: &Args, folder: &Path, seed: u64) -> Self {
        Self {
            pool: folder.join("demo.pool"),
            pairs: folder.join("pairs.tsv"),
            kills_wanted: args.kills,
            threads: args.threads,
            durability: args.durability.durability,
            options: args.durability.options(),
            rng: SmallRng::seed_from_u64(seed),
            expected: Expectation::new(),
            verdict: Comparison::default(),
            kills: 0,
            acknowledged: 0,
            reopens: Vec::new(),
            domain: Domain::Volatile,
            survives: String::new(),
            progress: Progress::new(args.kills),
        }
    }

    /// Ends the job and returns its result.
    pub(super) fn finish(mut self) -> DemoResult {
        DemoResult {
            keys: self.expected.written(),
            acknowledged: self.acknowledged,
            kills: self.kills,
            verdict: self.verdict,
            reopen_ms_p99: percentile(&mut self.reopens, 99).as_secs_f64() * 1e3,
            domain: self.domain,
            survives: self.survives,
        }
    }

    /// Returns the words with their numbers in a random order.
    pub(super) fn shuffled(&mut self) -> Vec<(usize, &'static [u8])> {
        let mut words: Vec<_> = self.expected.words().iter().copied().enumerate().collect();
        words.shuffle(&mut self.rng);
        words
    }

    /// Loads all words. Goes on with new values for them until there were enough kills.
    pub(super) fn load(&mut self) -> anyhow::Result<()> {
        /// The passes after which the job gives up: the children end before they are killed.
        const PASSES_MAX: u32 = 10_000;
        self.options.create_closed(&self.pool)?;
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
        bail!(
            "only {} of {} kills hit a child that was still loading; try fewer --kills",
            self.kills,
            self.kills_wanted
        )
    }

    /// Returns a random moment. The kills to come are spread evenly over the words to come.
    fn moment(&mut self, words: usize) -> Moment {
        let kills_left = (self.kills_wanted - self.kills) as usize;
        let acknowledgements = self.rng.random_range(0..=2 * words / (kills_left + 1));
        let then = Duration::from_micros(self.rng.random_range(0..2000));
        Moment { acknowledgements, then }
    }

    /// Runs one child, which is killed at `moment` or finishes; then opens and compares the store.
    fn round(
        &mut self,
        words: &[(usize, &[u8])],
        pass: u32,
        moment: Option<Moment>,
    ) -> anyhow::Result<()> {
        self.write_pairs(words, pass).with_context(|| self.pairs.display().to_string())?;
        let outcome = kill::load(&self.pool, &self.pairs, self.threads, self.durability, moment)?;
        for word in outcome.acknowledged.split_inclusive(|&byte| byte == b'\n') {
            let Some(word) = word.strip_suffix(b"\n").and_then(escape::read) else { continue };
            self.acknowledged += 1;
            self.verdict.wrong += u64::from(!self.expected.promise(&word, pass));
        }
        let start = Instant::now();
        let store = self.options.open(&self.pool)?;
        if outcome.killed {
            self.reopens.push(start.elapsed());
            self.kills += 1;
            self.progress.advance(1);
        }
        let stats = store.stats();
        (self.domain, self.survives) = (stats.domain, survives(&stats));
        let verdict = self.expected.compare(&store)?;
        self.verdict.lost += verdict.lost;
        self.verdict.wrong += verdict.wrong;
        // Half of the children open a store that was closed, half one that recovers.
        if self.rng.random() {
            store.close()?;
        }
        Ok(())
    }

    /// Writes the file that the child loads.
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
