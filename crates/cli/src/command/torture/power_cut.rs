//! `torture --power-cut`: images that a power cut can leave of a store in a plain file. Such a file
//! promises nothing after a cut, but an open must refuse it or answer right, and never wait for
//! ever.
//!
//! A child works on a store until it is killed or closes it, as in a torture without cuts. The
//! parent then mixes the pages of the file as of the last sync with those of now
//! ([`image`](super::image)), lets the mixture look as written by another boot, and runs a process
//! that judges it ([`judge`](super::judge)).

use super::args::{Args, options};
use super::child::ACKNOWLEDGEMENT_BYTES;
use super::image::{is_closed, mixed, set_other_boot, with_superblocks};
use super::judge::{Finding, run_judge};
use super::ledger::{Done, Ledger, Verdict};
use super::steps::Load;
use super::tally::{COLUMNS, Tally, print_table};
use crate::child::{self, Moment};
use crate::session::Promise;
use anyhow::Context;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Fields, Output, counted, grouped};
use bristlecone_console::progress::Progress;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most images of one session.
const SESSION_IMAGES: u64 = 20;
/// The number of sessions after which a new pool replaces the old one.
const POOL_SESSIONS: u64 = 40;
/// The most steps of a thread before a kill or a close.
const STEPS_MAX: u64 = 600;

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The child was killed at work.
    Killed,
    /// The child was killed while it closed the store, or just before.
    Closing,
    /// The child closed the store.
    Closed,
}

const ENDS: [(End, &str); 3] =
    [(End::Killed, "killed"), (End::Closing, "closing"), (End::Closed, "closed")];

/// The result of all sessions.
struct Report {
    /// The images of each end of a session, in the order of [`ENDS`].
    ends: [Tally; 3],
    /// All images.
    all: Tally,
    /// The refused images that might be torn, opened all the same; with `--open-torn`.
    forced: Option<Tally>,
    sessions: u64,
    /// The acknowledged steps that the file lacked after a kill, without a cut; and wrong answers.
    kills: Verdict,
    /// The number of pages that were as of the last sync, of all images together.
    stale_pages: u64,
    seconds: f64,
    seed: u64,
}

/// Makes and judges the images.
pub(super) fn run(
    args: &Args,
    images: u64,
    folder: &Path,
    output: &mut Output,
) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let seed = args.seed.unwrap_or_else(bristlecone_console::values::seed_from_clock);
    let load = Load { seed, cycle: 0, keys: args.keys.max(args.threads), threads: args.threads };
    let mut cutter = Cutter {
        load,
        loaded: args.load.min(load.keys),
        open_torn: args.open_torn,
        folder: folder.to_owned(),
        rng: SmallRng::seed_from_u64(seed),
        ledger: Ledger::new(load.keys, 0),
        synced: None,
        report: Report {
            ends: Default::default(),
            all: Tally::default(),
            forced: args.open_torn.then(Tally::default),
            sessions: 0,
            kills: Verdict::default(),
            stale_pages: 0,
            seconds: 0.0,
            seed,
        },
        progress: Progress::new(images),
    };
    while cutter.report.all.images < images {
        let cycle = cutter.report.sessions + 1;
        cutter.session(cycle, images).with_context(|| format!("session {cycle} of seed {seed}"))?;
    }
    let Cutter { mut report, progress, .. } = cutter;
    drop(progress);
    report.seconds = start.elapsed().as_secs_f64();
    if output.json {
        print_json(&report, output)?;
    } else {
        print(&report, output)?;
    }
    Ok(Answer::from_bool(report.all.is_right() && report.kills == Verdict::default()))
}

struct Cutter {
    load: Load,
    loaded: u64,
    open_torn: bool,
    folder: PathBuf,
    rng: SmallRng,
    ledger: Ledger,
    /// The file as of its last sync, or `None` if there was none.
    synced: Option<Vec<u8>>,
    report: Report,
    progress: Progress,
}

impl Cutter {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs a child on the store, then judges images of the file that it leaves.
    fn session(&mut self, cycle: u64, images: u64) -> anyhow::Result<()> {
        let load = Load { cycle, ..self.load };
        self.report.sessions = cycle;
        if (cycle - 1).is_multiple_of(POOL_SESSIONS) {
            self.replace()?;
        }
        let (end, acknowledged) = self.run_child(load)?;
        let done = self.ledger.note(load, &acknowledged);
        let (opened, after) = (read(&self.path(SNAPSHOT))?, read(&self.path(POOL))?);
        if opened.is_some() {
            std::fs::remove_file(self.path(SNAPSHOT)).context("remove the snapshot")?;
        }
        let Some(after) = after else { return Ok(()) }; // Killed before it created the file.
        // A creation syncs the file, an open its mark alone. A child that was killed in the open
        // may have synced the mark.
        let synced = match self.synced.take() {
            Some(old) => Some(with_superblocks(old, opened.as_ref().unwrap_or(&after))),
            None => opened,
        };
        std::fs::write(self.path(STATE), self.ledger.written(&done))
            .context("write the expected state")?;
        self.compare(&after, &done)?;
        let Some(mut synced) = synced else { return Ok(()) };
        if is_closed(&after) {
            // The contents were synced before the mark. Only the mark may be missing.
            let marked = with_superblocks(after.clone(), &synced);
            self.images(end, &marked, &after, images)?;
            synced = after;
        } else {
            self.images(end, &synced, &after, images)?;
        }
        self.synced = Some(synced);
        Ok(())
    }

    /// Removes the old pool. With `--load` creates and loads the new one; else the next child
    /// creates it.
    fn replace(&mut self) -> anyhow::Result<()> {
        let pool = self.path(POOL);
        if pool.exists() {
            std::fs::remove_file(&pool).context("remove the old pool")?;
        }
        self.ledger = Ledger::new(self.load.keys, self.loaded);
        self.synced = None;
        if self.loaded > 0 {
            let store = options(Promise::Process).create(&pool)?;
            self.ledger.load(&store)?;
            store.close()?;
            self.synced = read(&pool)?;
        }
        Ok(())
    }

    /// Runs a child until it is killed or has closed the store. Returns its end and all
    /// acknowledgements.
    fn run_child(&mut self, load: Load) -> anyhow::Result<(End, Vec<u8>)> {
        let end = ENDS[[0, 2, 0, 1][(load.cycle % 4) as usize]].0;
        let steps = self.rng.random_range(1..STEPS_MAX);
        let all = (steps * load.threads) as usize * ACKNOWLEDGEMENT_BYTES;
        let micros = |rng: &mut SmallRng, most| Duration::from_micros(rng.random_range(0..most));
        let moment = match end {
            End::Killed => Some(Moment {
                acknowledgements: self.rng.random_range(0..all),
                then: micros(&mut self.rng, 500),
            }),
            End::Closing => {
                Some(Moment { acknowledgements: all, then: micros(&mut self.rng, 1000) })
            }
            End::Closed => None,
        };
        let mut command = child::command()?;
        command
            .args(["torture", "--victim", &load.cycle.to_string(), "--seed"])
            .args([load.seed.to_string(), "--threads".into(), load.threads.to_string()])
            .args(["--keys", &load.keys.to_string(), "--pool"])
            .arg(self.path(POOL))
            .args(["--durability", Promise::Process.name(), "--snapshot"])
            .arg(self.path(SNAPSHOT));
        if end != End::Killed {
            command.args(["--steps", &steps.to_string()]);
        }
        let outcome = child::run(&mut command, moment, <[u8]>::len)?;
        Ok((if outcome.killed { end } else { End::Closed }, outcome.acknowledged))
    }

    /// Compares a copy of the file as the child left it, without a cut: no process has it open.
    /// From then on the ledger expects what it holds.
    fn compare(&mut self, after: &[u8], done: &Done) -> anyhow::Result<()> {
        let whole = self.path("whole.pool");
        std::fs::write(&whole, after).context("copy the pool")?;
        let mut store = options(Promise::Process).open_torn(true).open_or_create(&whole)?;
        let verdict = self.ledger.compare(&mut store, done)?;
        drop(store);
        self.report.kills.lost += verdict.lost;
        self.report.kills.wrong += verdict.wrong;
        Ok(())
    }

    /// Judges images between `before` and `after`, up to `images` images of all sessions.
    fn images(&mut self, end: End, before: &[u8], after: &[u8], images: u64) -> anyhow::Result<()> {
        // A short run also has several sessions.
        let most = SESSION_IMAGES.min(images.div_ceil(8));
        for _ in 0..most.min(images - self.report.all.images) {
            let (mut image, stale) = mixed(before, after, &mut self.rng);
            set_other_boot(&mut image);
            self.report.stale_pages += stale;
            let finding = self.judge(&image, false)?;
            let may_be_torn = finding == Finding::Refused(MAY_BE_TORN.into());
            if !matches!(finding, Finding::Refused(_) | Finding::Right | Finding::Damaged) {
                self.keep(&image, &finding)?;
            }
            let at = ENDS.iter().position(|&(of, _)| of == end).unwrap_or_default();
            self.report.ends[at].add(finding.clone());
            self.report.all.add(finding);
            if self.open_torn && may_be_torn {
                let finding = self.judge(&image, true)?;
                if let Some(forced) = &mut self.report.forced {
                    forced.add(finding);
                }
            }
            self.progress.advance(1);
            let Tally { refused, right, wrong, hung, .. } = self.report.all;
            self.progress
                .say(format!("{refused} refused, {right} right, {wrong} wrong, {hung} hung"));
        }
        Ok(())
    }

    /// Names an image that was not handled well. Its contents follow from the seed only as far as
    /// the kills fall alike, so it is kept beside the temporary folder.
    fn keep(&self, image: &[u8], finding: &Finding) -> anyhow::Result<()> {
        let (seed, number) = (self.load.seed, self.report.all.images);
        let kept = self.folder.with_file_name(format!("power-cut-{seed}-{number}.pool"));
        let Report { all, .. } = &self.report;
        // A few are enough to look at.
        let is_kept = all.wrong + all.hung + all.crashed < 3;
        let place = if is_kept {
            std::fs::write(&kept, image).context("keep the image")?;
            format!("; kept as {}", kept.display())
        } else {
            String::new()
        };
        // If standard error is closed, the exit code still says it.
        let _ = writeln!(io::stderr(), "image {number} of seed {seed}: {finding:?}{place}");
        Ok(())
    }

    /// Runs a process that judges `image`.
    fn judge(&self, image: &[u8], open_torn: bool) -> anyhow::Result<Finding> {
        let path = self.path("image.pool");
        std::fs::write(&path, image).context("write an image")?;
        let mut command = child::command()?;
        command.arg("torture").arg("--judge").arg(self.path(STATE)).arg("--pool").arg(&path);
        command.args(["--durability", Promise::Process.name()]);
        if open_torn {
            command.arg("--open-torn");
        }
        run_judge(&mut command)
    }
}

const POOL: &str = "torture.pool";
const SNAPSHOT: &str = "opened.pool";
const STATE: &str = "expected.state";
/// The name of the error of a file that a power cut may have torn.
const MAY_BE_TORN: &str = "MayBeTorn";

fn read(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).with_context(|| path.display().to_string()),
    }
}

fn print_json(report: &Report, output: &mut Output) -> io::Result<()> {
    let mut fields: Vec<(&'static str, Value)> =
        COLUMNS.into_iter().zip(report.all.numbers()).map(|(name, n)| (name, n.into())).collect();
    let ends: serde_json::Map<String, Value> = ENDS
        .iter()
        .zip(&report.ends)
        .map(|(&(_, name), tally)| (name.to_owned(), tally.json()))
        .collect();
    fields.extend([
        ("refusals", json!(report.all.refusals)),
        ("ends", ends.into()),
        ("open_torn", report.forced.as_ref().map_or(Value::Null, Tally::json)),
        ("sessions", report.sessions.into()),
        ("lost_by_kills", report.kills.lost.into()),
        ("wrong_by_kills", report.kills.wrong.into()),
        ("stale_pages", report.stale_pages.into()),
        ("seconds", report.seconds.into()),
        ("seed", report.seed.into()),
    ]);
    output.object(&Fields(&fields))
}

fn print(report: &Report, output: &mut Output) -> io::Result<()> {
    let named = ENDS.iter().zip(&report.ends).map(|(&(_, name), tally)| (name, tally));
    let forced = report.forced.as_ref().map(|tally| ("opened all the same", tally));
    let rows: Vec<_> = named.chain([("all", &report.all)]).chain(forced).collect();
    print_table("the store was", &rows, output)?;
    let Report { sessions, kills, stale_pages, seconds, seed, all, .. } = report;
    let errors = all.refusals.iter().map(|(name, count)| format!("{name} {}", grouped(*count)));
    let errors: Vec<String> = errors.collect();
    writeln!(
        output,
        "\nrefused: the open failed with an error ({}); damaged: a later call did.",
        if errors.is_empty() { "none".into() } else { errors.join(", ") }
    )?;
    let mean = *stale_pages as f64 / all.images.max(1) as f64;
    writeln!(output, "On average {mean:.0} pages of an image are as of the last sync.")?;
    writeln!(
        output,
        "Kills without a cut: {} in {}, {} wrong.",
        counted(kills.lost, "lost write"),
        counted(*sessions, "session"),
        grouped(kills.wrong)
    )?;
    writeln!(output, "{seconds:.1} s, seed {seed}.")?;
    output.flush()
}
