//! `torture --power-cut` with a journal: images of the pool file and of the segments beside it that
//! a power cut can leave, each of which must be right.
//!
//! A session opens a store, works on it with several threads, and closes or drops it; what the
//! journal writes and syncs is [recorded](Recording). For each image the power is cut after a
//! random event: each sector that was written and not synced is as it was, or as one of its writes.
//! A process judges the image ([`judge`](super::judge)). The next session goes on from the last
//! image, so cuts also hit the recovery from a cut.

use super::args::{Args, durability, options};
use super::child::work;
use super::judge::{Finding, run_judge};
use super::ledger::Ledger;
use super::prefix::Promised;
use super::steps::Load;
use super::tally::{COLUMNS, Tally, print_table};
use crate::child;
use crate::session::Promise;
use anyhow::Context;
use bristlecone::{Durability, Store};
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Fields, Output, grouped};
use bristlecone_console::progress::Progress;
use bristlecone_pmem::journal::{DiskFiles, Recording};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most images of one session.
const SESSION_IMAGES: u64 = 20;
/// The number of sessions after which a new pool replaces the old one.
const POOL_SESSIONS: u64 = 40;
/// The most steps of a thread in a session with commits.
const COMMITS_MAX: u64 = 1500;
/// The most steps of a thread in a session with an interval: some windows long.
const STEPS_MAX: u64 = 10_000;
/// The number of intervals after which a write waits for a sync.
const LATE_INTERVALS: u32 = 4;
/// The time by which the clock of the journal may be behind that of the test.
const TICK: Duration = Duration::from_millis(11);
/// The longest time between two calls of `sync`.
const PAUSE: Duration = Duration::from_millis(20);
/// The offset of the boot's id in a ring.
const RING_BOOT_AT: usize = 16;
/// The offset of the slots of a ring.
const RING_SLOTS_AT: usize = 4096;

/// An event between the writes and syncs.
#[derive(Clone, Copy, Debug)]
enum Note {
    /// The store is open.
    Opened,
    /// A thread has returned from its next step, at this time.
    Acknowledged {
        thread: u64,
        at: Duration,
    },
    /// A call of `sync` begins, or has returned.
    SyncBegins,
    Synced,
    /// The threads have ended.
    Ended,
}

/// The moments of a cut.
const PHASES: [&str; 3] = ["opening", "at work", "closing"];

/// Makes and judges the images.
pub(super) fn run(
    args: &Args,
    images: u64,
    promise: Promise,
    folder: &Path,
    output: &mut Output,
) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let seed = args.seed.unwrap_or_else(bristlecone_console::values::seed_from_clock);
    let load = Load { seed, cycle: 0, keys: args.keys.max(args.threads), threads: args.threads };
    let mut cutter = Cutter {
        load,
        loaded: args.load.min(load.keys),
        promise,
        lies: args.lying_disk,
        folder: folder.to_owned(),
        rng: SmallRng::seed_from_u64(seed),
        ledger: Ledger::new(load.keys, 0),
        files: None,
        phases: Default::default(),
        all: Tally::default(),
        counts: Counts::default(),
        progress: Progress::new(images),
    };
    while cutter.all.images < images {
        let cycle = cutter.counts.sessions + 1;
        cutter.session(cycle, images).with_context(|| format!("session {cycle} of seed {seed}"))?;
    }
    let Cutter { phases, all, counts, progress, .. } = cutter;
    drop(progress);
    let report =
        Report { phases, all, counts, promise, seed, seconds: start.elapsed().as_secs_f64() };
    if output.json {
        print_json(&report, output)?;
    } else {
        print(&report, output)?;
    }
    Ok(Answer::from_bool(report.all.right == report.all.images))
}

/// Numbers over all sessions.
#[derive(Clone, Debug, Default)]
struct Counts {
    sessions: u64,
    acknowledged: u64,
    /// The images in which some acknowledged step was promised to survive.
    with_promise: u64,
    /// The images in which some acknowledged step was not yet promised to survive.
    with_window: u64,
    /// The sectors that were written and not synced, of all images together.
    open_sectors: u64,
}

struct Report {
    /// The images of each moment of a cut, in the order of [`PHASES`].
    phases: [Tally; 3],
    all: Tally,
    counts: Counts,
    promise: Promise,
    seconds: f64,
    seed: u64,
}

struct Cutter {
    load: Load,
    loaded: u64,
    promise: Promise,
    lies: bool,
    folder: PathBuf,
    rng: SmallRng,
    /// The versions that the store of the next session holds.
    ledger: Ledger,
    /// The files and the ring of that store, or `None` for a new one.
    files: Option<(DiskFiles, Vec<u8>)>,
    phases: [Tally; 3],
    all: Tally,
    counts: Counts,
    progress: Progress,
}

impl Cutter {
    /// Works on the store, then judges images of what that wrote.
    fn session(&mut self, cycle: u64, images: u64) -> anyhow::Result<()> {
        let load = Load { cycle, ..self.load };
        self.counts.sessions = cycle;
        let pool = self.folder.join(POOL);
        if (cycle - 1).is_multiple_of(POOL_SESSIONS) {
            self.ledger = Ledger::new(load.keys, self.loaded);
            remove(&pool)?;
            let store = options(Promise::Process).create(&pool)?;
            self.ledger.load(&store)?;
            store.close()?;
        } else if let Some((files, ring)) = &self.files {
            place(&pool, files, ring)?;
        }
        let recording = Arc::new(Recording::default());
        let ring = self.work(&pool, load, &recording)?;
        // A short run also has several sessions.
        let most = SESSION_IMAGES.min(images.div_ceil(8)).min(images - self.all.images);
        for _ in 0..most {
            let files = self.image(load, &recording, &ring)?;
            self.files = Some((files, ring.clone()));
        }
        self.adopt()
    }

    /// Opens the store, does the steps of all threads, and closes or drops it. Returns the bytes of
    /// the ring.
    fn work(
        &mut self,
        pool: &Path,
        load: Load,
        recording: &Arc<Recording<Note>>,
    ) -> anyhow::Result<Vec<u8>> {
        let store = options(self.promise).open_traced(pool, recording.clone())?;
        recording.note(Note::Opened);
        let is_interval = self.promise == Promise::Interval;
        let most = if is_interval { STEPS_MAX } else { COMMITS_MAX };
        let steps = self.rng.random_range(1..most);
        let syncs = is_interval && self.rng.random();
        let seed = self.rng.random();
        perform(&store, load, steps, syncs.then_some(seed), recording)?;
        recording.note(Note::Ended);
        let mut ring = std::fs::read(journal_of(pool).join("ring")).context("read the ring")?;
        // A machine that comes back has another boot id, and the cut has lost what the cache had.
        ring[RING_BOOT_AT] ^= 0x5A;
        ring[RING_SLOTS_AT..].fill(0);
        if self.rng.random() {
            store.close()?;
        }
        Ok(ring)
    }

    /// Makes an image and judges it.
    fn image(
        &mut self,
        load: Load,
        recording: &Recording<Note>,
        ring: &[u8],
    ) -> anyhow::Result<DiskFiles> {
        let all = recording.len();
        let count = match self.rng.random_range(0..8) {
            0 => all,
            1 => self.rng.random_range(0..=all.min(100)),
            2 => all - self.rng.random_range(0..=all.min(100)),
            _ => self.rng.random_range(0..=all),
        };
        let share = self.rng.random_range(0.0..1.0);
        let Self { rng, counts, .. } = self;
        let (files, notes) = recording.cut(count, self.lies, |states| {
            counts.open_sectors += 1;
            if rng.random_bool(share) { 0 } else { rng.random_range(0..states) }
        });
        let (acknowledged, least) = promised(&notes, load.threads, self.promise);
        let returned = acknowledged.len() as u64;
        self.counts.acknowledged += returned;
        self.counts.with_promise += u64::from(least.iter().sum::<u64>() > 0);
        self.counts.with_window += u64::from(least.iter().sum::<u64>() < returned);
        let promised = Promised::new(load, &self.ledger, acknowledged, least);
        std::fs::write(self.folder.join(STATE), promised.written()).context("write the state")?;
        let path = self.folder.join(POOL);
        place(&path, &files, ring)?;
        let finding = self.judge(&path)?;
        let phase = match notes.last() {
            None => 0,
            Some(Note::Ended) => 2,
            Some(_) => 1,
        };
        if finding != Finding::Right {
            self.keep(&files, ring, &finding)?;
        }
        self.phases[phase].add(finding.clone());
        self.all.add(finding);
        self.progress.advance(1);
        let Tally { right, wrong, hung, .. } = self.all;
        self.progress.say(format!("{right} right, {wrong} wrong, {hung} hung"));
        Ok(files)
    }

    /// Runs a process that judges the image at `path`: half of them with a journal.
    fn judge(&mut self, path: &Path) -> anyhow::Result<Finding> {
        let mut command = child::command()?;
        command.arg("torture").arg("--judge").arg(self.folder.join(STATE)).arg("--pool").arg(path);
        let promise = if self.rng.random() { self.promise } else { Promise::Process };
        command.args(["--prefix", "--durability", promise.name()]);
        run_judge(&mut command)
    }

    /// Keeps an image that was not right beside the temporary folder.
    fn keep(&self, files: &DiskFiles, ring: &[u8], finding: &Finding) -> anyhow::Result<()> {
        let (seed, number) = (self.load.seed, self.all.images);
        let kept = self.folder.with_file_name(format!("power-cut-{seed}-{number}.pool"));
        // A few are enough to look at. Those of a disk that lies are of no use.
        let is_kept = !self.lies && self.all.images - self.all.right < 3;
        let place = if is_kept {
            place(&kept, files, ring)?;
            let state = kept.with_extension("state");
            std::fs::copy(self.folder.join(STATE), state).context("keep the state")?;
            format!("; kept as {}", kept.display())
        } else {
            String::new()
        };
        // If standard error is closed, the exit code still says it.
        let _ = writeln!(io::stderr(), "image {number} of seed {seed}: {finding:?}{place}");
        Ok(())
    }

    /// Lets the ledger expect what the last image holds.
    fn adopt(&mut self) -> anyhow::Result<()> {
        let Some((files, ring)) = &self.files else { return Ok(()) };
        let path = self.folder.join(POOL);
        place(&path, files, ring)?;
        // An image that cannot be used was counted: the next session has a new pool.
        let opened = options(Promise::Process).open(&path);
        let found = opened.and_then(|mut store| Ledger::find(&mut store, self.load.keys));
        match found {
            Ok((ledger, _)) => self.ledger = ledger,
            Err(_) => self.counts.sessions = self.counts.sessions.next_multiple_of(POOL_SESSIONS),
        }
        Ok(())
    }
}

/// The file of the store, and of each image: a copy of a store that was not closed is refused.
const POOL: &str = "torture.pool";
const STATE: &str = "expected.state";

/// Does the steps of all threads and notes each acknowledgement. With a seed, calls `sync` at
/// random moments.
fn perform(
    store: &Store,
    load: Load,
    steps: u64,
    syncs: Option<u64>,
    recording: &Recording<Note>,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let reads_count = store.durability() == Durability::Commit;
    let counts = Mutex::new(vec![0; load.threads as usize]);
    let acknowledge = |thread: u64, steps: u64, is_read: bool| {
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = &mut counts[thread as usize];
        if steps > *count && (reads_count || !is_read) {
            *count = steps;
            recording.note(Note::Acknowledged { thread, at: begin.elapsed() });
        }
        Ok(())
    };
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let has_ended = &has_ended;
        let spawn = |seed| child::start(scope, move || sync(store, seed, recording, has_ended));
        let syncer = syncs.map(spawn).transpose()?;
        let worked = work(store, load, Some(steps), &acknowledge);
        has_ended.store(true, Ordering::Relaxed);
        let synced = syncer.map(|thread| thread.join().expect("the syncing thread panicked"));
        worked?;
        Ok(synced.transpose().map(|_| ())?)
    })
}

/// Calls `sync` after random pauses until the threads have ended.
fn sync(
    store: &Store,
    seed: u64,
    recording: &Recording<Note>,
    has_ended: &AtomicBool,
) -> Result<(), bristlecone::Error> {
    let mut rng = SmallRng::seed_from_u64(seed);
    while !has_ended.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE.mul_f64(rng.random_range(0.0..1.0)));
        recording.note(Note::SyncBegins);
        store.sync()?;
        recording.note(Note::Synced);
    }
    Ok(())
}

/// Returns the threads of the acknowledgements in their order, and the number of each thread's
/// steps that may not be lost.
fn promised(notes: &[Note], threads: u64, promise: Promise) -> (Vec<u64>, Vec<u64>) {
    let (mut acknowledged, mut times) = (Vec::new(), Vec::new());
    let mut counts = vec![0; threads as usize];
    // The last acknowledgement of each thread; its next step begins then.
    let mut last = vec![Duration::ZERO; threads as usize];
    let mut least = counts.clone();
    let mut syncing = counts.clone();
    let mut newest_begin = Duration::ZERO;
    for note in notes {
        match *note {
            Note::Acknowledged { thread, at } => {
                let thread_index = thread as usize;
                newest_begin = newest_begin.max(last[thread_index]);
                last[thread_index] = at;
                counts[thread_index] += 1;
                acknowledged.push(thread);
                times.push((thread_index, at));
            }
            Note::SyncBegins => syncing.clone_from(&counts),
            Note::Synced => least.clone_from(&syncing),
            Note::Opened | Note::Ended => {}
        }
    }
    match durability(promise) {
        Durability::Process => {}
        Durability::Commit => least = counts,
        // A step that returned waited for a sync, if the last one began too long before.
        Durability::Interval(interval) => {
            let window = interval * LATE_INTERVALS + TICK;
            let mut counts = vec![0; threads as usize];
            for (thread, at) in times {
                counts[thread] += 1;
                if at + window <= newest_begin {
                    least[thread] = least[thread].max(counts[thread]);
                }
            }
        }
    }
    (acknowledged, least)
}

fn journal_of(pool: &Path) -> PathBuf {
    pool.with_extension("pool.journal")
}

/// Removes a pool and its journal.
fn remove(pool: &Path) -> anyhow::Result<()> {
    check_removed([std::fs::remove_file(pool), std::fs::remove_dir_all(journal_of(pool))])
}

/// Returns the first error of a removal, except that there was nothing.
fn check_removed<const COUNT: usize>(removals: [io::Result<()>; COUNT]) -> anyhow::Result<()> {
    for done in removals {
        match done {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context("remove the old pool");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes the files of an image. A pool that is there stays the same file, as at a power cut.
fn place(pool: &Path, files: &DiskFiles, ring: &[u8]) -> anyhow::Result<()> {
    check_removed([std::fs::remove_dir_all(journal_of(pool))])?;
    let journal = journal_of(pool);
    let written = || {
        std::fs::create_dir(&journal)?;
        std::fs::write(journal.join("ring"), ring)?;
        for (file, bytes) in files {
            let segment = |index| journal.join(format!("{index:04}.bristlecone"));
            std::fs::write(file.map_or_else(|| pool.to_owned(), segment), bytes)?;
        }
        io::Result::Ok(())
    };
    written().context("write an image")
}

fn print_json(report: &Report, output: &mut Output) -> io::Result<()> {
    let mut fields: Vec<(&'static str, Value)> =
        COLUMNS.into_iter().zip(report.all.numbers()).map(|(name, n)| (name, n.into())).collect();
    let phases: serde_json::Map<String, Value> = PHASES
        .iter()
        .zip(&report.phases)
        .map(|(&name, tally)| (name.replace(' ', "_"), tally.json()))
        .collect();
    let Counts { sessions, acknowledged, with_promise, with_window, open_sectors } = report.counts;
    fields.extend([
        ("durability", report.promise.name().into()),
        ("phases", phases.into()),
        ("sessions", sessions.into()),
        ("acknowledged", acknowledged.into()),
        ("with_promise", with_promise.into()),
        ("with_window", with_window.into()),
        ("open_sectors", open_sectors.into()),
        ("seconds", report.seconds.into()),
        ("seed", report.seed.into()),
    ]);
    output.object(&Fields(&fields))
}

fn print(report: &Report, output: &mut Output) -> io::Result<()> {
    let Report { phases, all, counts, promise, seconds, seed } = report;
    let rows: Vec<_> = PHASES.into_iter().zip(phases).chain([("all", all)]).collect();
    print_table("the cut was", &rows, output)?;
    writeln!(
        output,
        "\nEach image must be right: a store with a journal is refused after no cut."
    )?;
    let mean = |sum: u64| sum / all.images.max(1);
    writeln!(
        output,
        "At the cut {} steps had returned on average, and {} sectors were not synced.",
        grouped(mean(counts.acknowledged)),
        grouped(mean(counts.open_sectors))
    )?;
    writeln!(
        output,
        "In {} images some of these steps had to survive, in {} some were free to be lost.",
        grouped(counts.with_promise),
        grouped(counts.with_window)
    )?;
    let sessions = grouped(counts.sessions);
    writeln!(output, "{seconds:.1} s, {sessions} sessions, {}, seed {seed}.", promise.name())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_and_the_age_of_a_write_promise_that_it_survives() {
        let at = |thread, millis| Note::Acknowledged { thread, at: Duration::from_millis(millis) };
        let mut notes = vec![Note::Opened, at(0, 1), at(1, 2)];
        let of = |notes: &[Note], promise| promised(notes, 2, promise);
        assert_eq!(of(&notes, Promise::Commit), (vec![0, 1], vec![1, 1]));
        assert_eq!(of(&notes, Promise::Interval), (vec![0, 1], vec![0, 0]));
        notes.extend([Note::SyncBegins, at(0, 3), Note::Synced]);
        assert_eq!(of(&notes, Promise::Interval).1, [1, 1]);
        // The step that returns at 90 ms may have begun directly after the one at 3 ms.
        notes.push(at(0, 90));
        assert_eq!(of(&notes, Promise::Interval).1, [1, 1]);
        notes.push(at(0, 91));
        assert_eq!(of(&notes, Promise::Interval).1, [2, 1]);
    }
}
