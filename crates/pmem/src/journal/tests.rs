//! The search for what a power cut loses: small histories, all of their cuts, all of the cuts of
//! the recoveries, and each rule broken.

use super::disk::{Breach, Place};
use super::lines::{Journal, copy_of};
use super::noted;
use super::pages::PAGE_BYTES;
use super::point::Geometry;
use super::recovery::{Opening, end_journal};
use super::ring::Ring;
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::{Mapped, Medium, MediumError, words_at};
use crate::word::PmPtr;
use core::sync::atomic::{AtomicU64, Ordering};
use recorder::{Acknowledged, Files, Recorder};
use std::sync::Arc;

mod faults;
mod file;
mod folder;
mod growth;
mod recorder;

/// The pages of the pool: one with the mark, and two with lines.
const PAGES: u64 = 3;
/// The slots of the ring, and the index of their first word.
const SLOTS: u64 = 16;
const SLOTS_AT: usize = 512;
const GEOMETRY: Geometry = Geometry { segment_bytes: 4096, segments: 10 };
/// The lines that the histories store to, on two pages.
const LINES: [u64; 4] = [64, 65, 128, 129];
/// The number of images of one cut. Beyond it, some are drawn.
const IMAGES_MAX: u64 = 36;

/// A step of a history.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Store to a line of [`LINES`], flush and fence it.
    Put(usize),
    /// Sync, and acknowledge what was put before.
    Sync,
    /// Sync, which the device refuses; then sync again.
    FailSync,
    Checkpoint,
    /// Checkpoints of parts, until a segment comes free.
    Free,
    /// The process dies, and the next opens the pool in the same boot.
    Kill,
    /// The pool is closed, and opened again.
    Close,
    /// The process dies. The next makes the pool whole, as one without a journal does, and opens
    /// it.
    MakeWhole,
}

/// The content of a line: all of its words are the number of the record.
type Lines = [u64; LINES.len()];

/// A pool that is open on a recorder.
struct Run {
    disk: Recorder,
    journal: Arc<Journal<Recorder>>,
    /// The lines after each record. The first is the state at the beginning.
    states: Vec<Lines>,
    boot: u64,
    opens: u64,
    /// The ring as the first open of this run left it.
    old_ring: Option<Vec<u64>>,
}

fn empty() -> Files {
    let segments = (0..GEOMETRY.segments)
        .map(|index| (Place::Segment(index), vec![0; GEOMETRY.segment_bytes as usize]));
    segments.chain([(Place::Pool, vec![0; (PAGES * PAGE_BYTES) as usize])]).collect()
}

fn ring_of(words: Option<&[u64]>) -> Ring {
    let file = Mapped::anonymous(Ring::file_bytes(SLOTS)).unwrap();
    for (at, &word) in (0..).step_by(8).zip(words.unwrap_or_default()) {
        file.store(&words_at(&file, PmPtr::new(at), 1).unwrap()[0], word);
    }
    Ring::new(file)
}

fn words_of(ring: &Ring) -> Vec<u64> {
    let file = ring.file();
    let words = words_at(file, PmPtr::NULL, file.len() as usize / 8).unwrap();
    words.iter().map(|word| file.load(word)).collect()
}

fn open(
    disk: &Recorder,
    ring: Option<&[u64]>,
    nonce: u64,
    boot: u64,
) -> Result<Journal<Recorder>, super::JournalError> {
    let memory = Mapped::anonymous(PAGES * PAGE_BYTES).unwrap();
    let opening = Opening {
        nonce: nonce.wrapping_mul(0x9E37),
        boot: Some([boot; 2]),
        geometry: GEOMETRY,
        readers_wait: true,
    };
    Journal::open(disk.clone(), memory, ring_of(ring), opening)
}

/// Stores `number` to all words of a line, and flushes it.
fn store(memory: &Mapped, line: u64, number: u64) {
    let at = PmPtr::new(line * LINE_BYTES as u64);
    for word in words_at(memory, at, LINE_WORDS).unwrap() {
        memory.store(word, number);
        noted::note(word.cell().as_ptr() as usize, 8);
    }
}

fn copy_line(journal: &Journal<Recorder>, line: u64) -> [u64; LINE_WORDS] {
    copy_of(&journal.lines(line, 1)[0])
}

/// Returns the lines of a pool, or what is wrong with it.
fn read(journal: &Journal<Recorder>) -> Result<Lines, String> {
    let mut found = [0; LINES.len()];
    for line in 0..PAGES * PAGE_BYTES / LINE_BYTES as u64 {
        let words = copy_line(journal, line);
        if words.iter().any(|&word| word != words[0]) {
            return Err(format!("line {line} is torn: {words:?}"));
        }
        match LINES.iter().position(|&known| known == line) {
            Some(index) => found[index] = words[0],
            None if words[0] != 0 => return Err(format!("line {line} was never stored to")),
            None => {}
        }
    }
    Ok(found)
}

impl Run {
    fn new(disk: Recorder, ring: Option<&[u64]>, opens: u64, boot: u64) -> Result<Self, String> {
        let journal = open(&disk, ring, opens, boot).map_err(|e| format!("refused: {e}"))?;
        let states = vec![read(&journal)?];
        let journal = Arc::new(journal);
        Ok(Self { disk, journal, states, boot, opens, old_ring: ring.map(<[u64]>::to_vec) })
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Put(index) => self.put(&[index]),
            Step::Sync => self.sync(),
            Step::FailSync => {
                self.disk.fail_sync();
                assert!(self.journal.sync_to(self.journal.ring.head()).is_err());
                self.sync();
            }
            Step::Checkpoint => {
                let journal = &self.journal;
                journal.checkpoint(&mut journal.syncer.lock()).map_err(|e| e.to_string())?;
            }
            Step::Free => self.free().map_err(|e| e.to_string())?,
            Step::Kill => self.reopen()?,
            Step::Close => {
                self.journal.finish().map_err(|e| e.to_string())?;
                self.acknowledge(false);
                self.reopen()?;
            }
            Step::MakeWhole => {
                let ring = ring_of(Some(&words_of(&self.journal.ring)));
                let memory = Mapped::anonymous(PAGES * PAGE_BYTES).unwrap();
                end_journal(&self.disk, &memory, Some(&ring), Some([self.boot; 2]))
                    .map_err(|e| e.to_string())?;
                self.acknowledge(false);
                self.reopen()?;
            }
        }
        Ok(())
    }

    fn free(&self) -> Result<(), MediumError> {
        let start = || self.journal.writer.lock().mark.start;
        let before = start();
        let mut syncer = self.journal.syncer.lock();
        while start() == before {
            self.journal.checkpoint_step(&mut syncer)?;
        }
        Ok(())
    }

    fn sync(&self) {
        let intruder = self.disk.has_intruded();
        if self.journal.sync_to(self.journal.ring.head()).is_ok() {
            self.acknowledge(intruder);
        }
    }

    fn acknowledge(&self, intruder: bool) {
        self.disk.acknowledge(Acknowledged { records: self.states.len() as u64 - 1, intruder });
    }

    fn put(&mut self, indices: &[usize]) {
        let journal = Arc::clone(&self.journal);
        for &index in indices {
            let number = self.states.last().unwrap().iter().max().unwrap() + 1;
            store(&journal.memory, LINES[index], number);
            let mut lines = *self.states.last().unwrap();
            lines[index] = number;
            self.states.push(lines);
        }
        journal.fence();
    }

    fn reopen(&mut self) -> Result<(), String> {
        let ring = words_of(&self.journal.ring);
        self.opens += 1;
        let journal = open(&self.disk, Some(&ring), self.opens, self.boot);
        self.journal = Arc::new(journal.map_err(|e| format!("a kill: refused: {e}"))?);
        self.old_ring.get_or_insert(ring);
        let found = read(&self.journal)?;
        if Some(&found) != self.states.last() {
            return Err(format!("a kill lost something: {found:?}, not {:?}", self.states.last()));
        }
        Ok(())
    }
}

/// The work of a search after each power cut.
#[derive(Clone, Copy)]
struct Search {
    breach: Option<Breach>,
    /// The work of the next process before the next cut, in another boot.
    then: &'static [Step],
    /// The number of further cuts.
    depth: u32,
    images: u64,
}

/// Runs `steps` on `files` and cuts the power after each event.
fn search(
    files: Files,
    steps: &[Step],
    search: Search,
    intrusion: Option<usize>,
    boot: u64,
    old_ring: Option<&[u64]>,
    visited: &mut u64,
) -> Result<usize, String> {
    let disk = Recorder::new(files, search.breach);
    // The numbers of opens differ from those of the boots before.
    let mut run = Run::new(disk.clone(), old_ring, boot * 100, boot)?;
    let calls = disk.calls();
    if let Some(at) = intrusion {
        intrude(&mut run, at);
    }
    for &step in steps {
        run.step(step)?;
    }
    // A power cut loses slots of the ring, or none. A ring that an open has read is on the device.
    let mut rings = vec![run.old_ring.clone()];
    if let (None, Some(mut words)) = (old_ring, run.old_ring.clone()) {
        words[SLOTS_AT..].fill(0);
        rings.push(Some(words));
    }
    let mut found = Ok(());
    for count in 0..=disk.events() {
        disk.cuts(count, search.images, |image, acknowledged| {
            for ring in rings.iter().map(Option::as_deref) {
                if found.is_ok() {
                    *visited += 1;
                    let image = image.clone();
                    found =
                        judge(image, acknowledged, &run.states, search, boot + 1, ring, visited)
                            .map_err(|error| format!("cut after event {count}: {error}"));
                }
            }
        });
        found.clone()?;
    }
    Ok(disk.calls() - calls)
}

/// Lets another thread store to a line of its own, fence it, and drain it if no drain is under way,
/// at the call number `at`.
fn intrude(run: &mut Run, at: usize) {
    // The last line is the intruder's. A record of it may be anywhere, so it is not in `states`.
    let journal = Arc::clone(&run.journal);
    run.disk.intrude(
        at,
        Box::new(move || {
            store(&journal.memory, LINES[3], INTRUDER);
            journal.fence();
            store(&journal.memory, LINES[1], INTRUDER);
            journal.fence();
            if let Some(mut writer) = journal.writer.try_lock() {
                journal.drain(&mut writer).unwrap();
            }
        }),
    );
}

/// The number that an intruder stores, to line 3 and then to line 1, which no history uses.
const INTRUDER: u64 = 1 << 32;

/// Opens the image, and compares it with the states that it may have.
fn judge(
    image: Files,
    acknowledged: Acknowledged,
    states: &[Lines],
    search: Search,
    boot: u64,
    old_ring: Option<&[u64]>,
    visited: &mut u64,
) -> Result<(), String> {
    let disk = Recorder::new(image.clone(), search.breach);
    let run = Run::new(disk, old_ring, boot * 100, boot)?;
    let mut found = run.states[0];
    let [first, second] = [3, 1].map(|line| found[line] == INTRUDER);
    if second && !first {
        return Err("a later record is there, and an earlier one is lost".to_owned());
    }
    if acknowledged.intruder && !(first && second) {
        return Err("a record of another thread is lost".to_owned());
    }
    for line in [1, 3] {
        if found[line] == INTRUDER {
            found[line] = 0;
        }
    }
    let allowed = &states[acknowledged.records as usize..];
    if !allowed.contains(&found) {
        return Err(format!("found {found:?}, acknowledged {:?}", allowed[0]));
    }
    if search.depth == 0 {
        return Ok(());
    }
    let deeper = Search { depth: search.depth - 1, images: 4, ..search };
    self::search(image, search.then, deeper, None, boot, old_ring, visited).map(|_| ())
}

const SHORT: &[Step] = &[Step::Put(0), Step::Sync];
use Step::{Checkpoint, Close, FailSync, Free, Kill, MakeWhole, Put, Sync};

/// The histories, by name.
const HISTORIES: &[(&str, &[Step])] = &[
    ("syncs", &[Put(0), Sync, Put(2), Put(0), Sync, Put(2), Sync]),
    ("a sync after a sync", &[Put(0), Sync, Sync]),
    ("unsynced", &[Put(0), Put(2), Put(0)]),
    (
        "a frame of two sectors",
        &[Put(0), Put(2), Put(0), Put(2), Put(0), Put(2), Put(0), Put(2), Sync, Put(0), Sync],
    ),
    ("checkpoint", &[Put(0), Put(2), Sync, Put(0), Checkpoint, Put(2), Sync, Put(0), Sync]),
    ("two checkpoints", &[Put(0), Checkpoint, Put(2), Put(0), Checkpoint, Put(2), Sync]),
    ("checkpoints of one page each", &[Put(0), Checkpoint, Sync, Put(2), Checkpoint, Put(2), Sync]),
    ("kill", &[Put(0), Sync, Put(2), Put(0), Kill, Put(2), Sync]),
    ("a kill before a sync", &[Put(2), Put(0), Kill, Put(2), Sync]),
    ("close", &[Put(0), Sync, Put(2), Close, Put(0), Sync, Close]),
    ("a failed sync", &[Put(0), Sync, Put(2), FailSync]),
    ("a failed sync and a kill", &[Put(2), Put(0), FailSync, Kill, Put(2), Sync]),
];

/// A history in which a process without a journal makes the pool whole.
const MADE_WHOLE: &[Step] = &[Put(0), Sync, Put(2), Put(0), MakeWhole, Put(2), Sync];

/// Searches every history. Returns the number of images, or the first finding.
fn search_all(breach: Option<Breach>, depth: u32) -> Result<u64, String> {
    let mut visited = 0;
    for (name, steps) in HISTORIES {
        let all = Search { breach, then: SHORT, depth, images: IMAGES_MAX };
        let named = |error| format!("{name}: {error}");
        let calls = search(empty(), steps, all, None, 1, None, &mut visited).map_err(named)?;
        let has_room = !steps.iter().any(|step| matches!(step, Kill | Close | FailSync));
        for at in (0..calls).filter(|_| has_room) {
            let flat = Search { depth: 0, images: 12, ..all };
            let found = search(empty(), steps, flat, Some(at), 1, None, &mut visited);
            found.map_err(|error| format!("{name}, another thread at call {at}: {error}"))?;
        }
    }
    let wrapping = Search { breach, then: SHORT, depth: 0, images: 8 };
    let named = |error| format!("segments that are used again: {error}");
    search(empty(), &wrap(), wrapping, None, 1, None, &mut visited).map_err(named)?;
    let named = |error| format!("made whole: {error}");
    search(
        empty(),
        MADE_WHOLE,
        Search { breach, then: SHORT, depth, images: IMAGES_MAX },
        None,
        1,
        None,
        &mut visited,
    )
    .map_err(named)?;
    let named = |error| format!("parts: {error}");
    search(empty(), &frees(), wrapping, None, 1, None, &mut visited).map_err(named)?;
    Ok(visited)
}

/// A history in which checkpoints of parts free segments, while others of them wait.
fn frees() -> Vec<Step> {
    let syncs = |first: usize| (first..first + 10).flat_map(|at| [Put(at % 2 * 2), Sync]);
    let mut steps: Vec<_> = syncs(0).collect();
    steps.push(Free);
    steps.extend([Put(0), Sync]);
    for _ in 0..3 {
        steps.extend(syncs(1));
        steps.push(Free);
    }
    steps.extend([Put(2), Put(0), Sync]);
    steps
}

/// A history that fills every segment more than once.
fn wrap() -> Vec<Step> {
    let syncs = (0..9 * GEOMETRY.segments as usize).flat_map(|at| [Put(at % 2 * 2), Sync]);
    let mut steps = vec![Put(0), Sync, Put(2), Checkpoint];
    steps.extend(syncs);
    steps
}

/// A drain that was under way when a sync failed grants room once more. If a fence entered then, it
/// would follow one that was refused, and the ring would be no prefix.
#[test]
fn a_closed_ring_takes_no_line_whatever_is_granted() {
    let ring = ring_of(None);
    ring.grant(2);
    let position = ring.begin(1).unwrap();
    ring.end(position + 1);
    ring.close();
    assert_eq!(ring.begin(1), None);
    ring.grant(SLOTS);
    assert_eq!(ring.begin(1), None);
    assert_eq!(ring.head(), 1);
}

#[test]
fn no_power_cut_loses_what_was_acknowledged_or_leaves_more_than_a_prefix() {
    let visited = search_all(None, 1).unwrap_or_else(|error| panic!("{error}"));
    assert!(visited > 10_000, "{visited} images");
}

#[test]
fn a_third_cut_loses_nothing_either() {
    let deep = Search { breach: None, then: SHORT, depth: 2, images: 4 };
    let steps = [Put(0), Sync, Put(2), Checkpoint, Put(0), Kill, Put(2)];
    let mut visited = 0;
    search(empty(), &steps, deep, None, 1, None, &mut visited).unwrap();
    assert!(visited > 1000, "{visited} images");
}

fn assert_found(breaches: &[Breach]) {
    for &breach in breaches {
        let found = search_all(Some(breach), 1);
        assert!(found.is_err(), "nothing finds {breach:?}");
    }
}

#[test]
fn each_broken_rule_of_frames_and_checkpoints_is_found() {
    assert_found(&[
        Breach::Unchained,
        Breach::TailByLength,
        Breach::PageBeforeSync,
        Breach::HeadBeforeCopy,
        Breach::ClearAfterWrite,
        Breach::MarkBeforePages,
        Breach::MarkFirst,
        Breach::PartAlone,
        Breach::ReuseBeforeMark,
    ]);
}

#[test]
fn each_broken_rule_of_syncs_and_opens_is_found() {
    assert_found(&[
        Breach::AcknowledgeBeforeSync,
        Breach::CountLaterDrains,
        Breach::RingUnsynced,
        Breach::StaleRing,
        Breach::RetrySync,
        Breach::TrustCache,
        Breach::WholeBeforePages,
        Breach::RecoveryUnsynced,
    ]);
}

#[test]
fn a_full_journal_makes_room_by_checkpoints_and_loses_nothing() {
    let disk = Recorder::new(empty(), None);
    let mut run = Run::new(disk.clone(), None, 1, 1).unwrap();
    for number in 0..2000 {
        run.put(&[number % 3, (number + 1) % 3]);
    }
    run.step(Step::Sync).unwrap();
    let (states, events) = (run.states, disk.events());
    disk.cuts(events, 8, |image, acknowledged| {
        assert_eq!(acknowledged.records, 4000);
        let reopened = open(&Recorder::new(image, None), None, 9, 9).unwrap();
        assert_eq!(read(&reopened).as_ref(), Ok(&states[4000]));
    });
}

#[test]
fn a_fence_of_more_lines_than_a_run_enters_in_runs() {
    let disk = Recorder::new(empty(), None);
    let journal = open(&disk, None, 1, 1).unwrap();
    for line in 64..192 {
        store(&journal.memory, line, line);
    }
    journal.fence();
    assert_eq!(journal.ring.head(), 128);
    let ring = words_of(&journal.ring);
    drop(journal);
    let journal = open(&disk, Some(&ring), 2, 1).unwrap();
    assert!((64..192).all(|line| copy_line(&journal, line) == [line; LINE_WORDS]));
}

#[test]
fn a_mark_or_a_journal_that_is_damaged_or_cut_short_is_refused() {
    let disk = Recorder::new(empty(), None);
    let mut run = Run::new(disk.clone(), None, 1, 1).unwrap();
    for step in [Put(0), Sync, Put(2), Checkpoint] {
        run.step(step).unwrap();
    }
    let mut image = None;
    disk.cuts(disk.events(), 1, |files, _| image = Some(files));
    let image = image.unwrap();
    let refuse = |place, at: usize, value| {
        let mut files = image.clone();
        files.get_mut(&place).unwrap()[at] = value;
        open(&Recorder::new(files, None), None, 2, 2).unwrap_err().to_string()
    };
    for sector in [0x800, 0xa00] {
        assert!(refuse(Place::Pool, sector + 9, 77).contains("journal's mark"));
    }
    // Numbers and sizes that no real journal has, with a right checksum.
    let forge = |change: &dyn Fn(&mut super::Mark)| {
        let mut files = image.clone();
        let mut mark = super::Mark::read(&files[&Place::Pool]).unwrap().unwrap();
        change(&mut mark);
        let (at, sector) = mark.encode();
        files.get_mut(&Place::Pool).unwrap()[at as usize..][..sector.len()]
            .copy_from_slice(&sector);
        open(&Recorder::new(files, None), None, 2, 2).unwrap_err().to_string()
    };
    assert!(forge(&|mark| mark.start.segment = u64::MAX).contains("number in"));
    assert!(forge(&|mark| mark.start.offset = 100).contains("start in"));
    assert!(forge(&|mark| mark.geometry.segments = 0).contains("size of a segment"));
    assert!(forge(&|mark| mark.geometry.segments = 2).contains("which its ring needs"));
    // The start of the replay, in a mark that says more is needed.
    let mut run = Run::new(Recorder::new(empty(), None), None, 1, 1).unwrap();
    for step in [Put(0), Checkpoint, Put(0), Put(2)] {
        run.step(step).unwrap();
    }
    run.journal.sync(&mut run.journal.syncer.lock()).unwrap();
    let writer = run.journal.writer.lock();
    let needed = run.journal.ring.head() + 1;
    let mark = super::Mark { sequence: writer.mark.sequence + 1, needed, ..writer.mark };
    super::checkpoint::put_mark(&run.disk, &mark).unwrap();
    drop(writer);
    let error = open(&run.disk, None, 2, 2).unwrap_err();
    assert!(matches!(error, super::JournalError::CutShort { found, .. } if found + 1 == needed));
}

#[test]
fn every_fence_of_every_thread_is_in_the_ring_after_a_kill() {
    const ROUNDS: u64 = 3000;
    let disk = Recorder::new(empty(), None);
    let journal = open(&disk, None, 1, 1).unwrap();
    std::thread::scope(|scope| {
        for line in 64..68 {
            let journal = &journal;
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    store(&journal.memory, line, round);
                    journal.fence();
                }
            });
        }
    });
    let ring = words_of(&journal.ring);
    drop(journal);
    let journal = open(&disk, Some(&ring), 2, 1).unwrap();
    for line in 64..68 {
        assert_eq!(copy_line(&journal, line), [ROUNDS; LINE_WORDS]);
    }
}

/// The writer stores to one word after the other. So the words of a state do not increase along the
/// line, and the first is at most one ahead of the last.
#[test]
fn a_copy_is_a_state_that_the_line_had() {
    const ROUNDS: u64 = 30_000;
    let memory = Mapped::anonymous(PAGE_BYTES).unwrap();
    let words = words_at(&memory, PmPtr::NULL, LINE_WORDS).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=ROUNDS {
                for word in words {
                    memory.store(word, number);
                    // Else no two readings of a copy would agree.
                    (0..20).for_each(|_| core::hint::spin_loop());
                }
            }
        });
        loop {
            let copy = copy_of(&words.as_chunks().0[0]);
            let [first, .., last] = copy;
            assert!(copy.is_sorted_by(|a, b| a >= b) && first - last <= 1, "{copy:?}");
            if last == ROUNDS {
                break;
            }
        }
    });
}

/// A signal ends a service when the machine goes down. The file systems are synced after that, so
/// the ring is whole, but of another boot.
#[test]
fn a_restart_in_order_after_a_kill_loses_nothing() {
    for loses_slot in [false, true] {
        let disk = Recorder::new(empty(), None);
        let mut run = Run::new(disk.clone(), None, 1, 1).unwrap();
        (0..7).for_each(|at| run.put(&[at % 3]));
        let mut ring = words_of(&run.journal.ring);
        if loses_slot {
            ring[SLOTS_AT + 6 * 9 - 1] = 0; // the last word of slot 5, after a power cut
        }
        let found = read(&open(&disk, Some(&ring), 2, 2).unwrap());
        assert_eq!(found.as_ref(), Ok(&run.states[if loses_slot { 0 } else { 7 }]));
    }
}

#[test]
fn a_reader_waits_for_what_it_has_read_and_for_nothing_else() {
    for (breach, waits) in [(None, true), (Some(Breach::ReadsUnnoted), false)] {
        let journal = open(&Recorder::new(empty(), breach), None, 1, 1).unwrap();
        let read = |line: u64| {
            let at = PmPtr::new(line * LINE_BYTES as u64);
            journal.note_read(words_at(&journal.memory, at, LINE_WORDS).unwrap());
            journal.settle_noted();
            journal.reads.synced.load(Ordering::Acquire)
        };
        store(&journal.memory, 64, 1);
        journal.fence();
        assert_eq!(read(128), 0);
        assert_eq!(read(64) == 1, waits, "{breach:?}");
        assert_eq!(read(128), u64::from(waits));
    }
}

/// A line whose content is durable, but not what leads to it: see
/// [`flush_for_readers`](Medium::flush_for_readers).
#[test]
fn a_reader_of_a_line_that_was_flushed_again_waits_for_that_fence() {
    let journal = open(&Recorder::new(empty(), None), None, 1, 1).unwrap();
    let at = |line: u64| words_at(&journal.memory, PmPtr::new(line * 64), LINE_WORDS).unwrap();
    store(&journal.memory, 64, 1);
    journal.fence();
    journal.sync_to(journal.ring.head()).unwrap();
    for (flushes_again, expected) in [(false, 1), (true, 4)] {
        store(&journal.memory, 128, 1);
        if flushes_again {
            noted::note(at(64).as_ptr() as usize, LINE_BYTES);
        }
        journal.fence();
        journal.note_read(at(64));
        journal.settle_noted();
        assert_eq!(journal.reads.synced.load(Ordering::Acquire), expected);
    }
}

#[test]
fn every_thread_that_waits_for_a_sync_wakes_also_if_it_fails() {
    const THREADS: u64 = 4;
    for round in 0..200 {
        let disk = Recorder::new(empty(), None);
        let journal = open(&disk, None, 1, 1).unwrap();
        let is_failing = round % 2 == 1;
        if is_failing {
            disk.fail_sync();
        }
        std::thread::scope(|scope| {
            for line in 64..64 + THREADS {
                let journal = &journal;
                scope.spawn(move || {
                    store(&journal.memory, line, 1);
                    journal.fence();
                    let done = journal.sync_to(journal.ring.head());
                    assert_eq!(done.is_err(), is_failing);
                });
            }
        });
        assert_eq!(
            journal.reads.synced.load(Ordering::Acquire),
            if is_failing { 0 } else { THREADS }
        );
    }
}

/// A thread that should lead next finds its records synced by a checkpoint, and leads nothing.
#[test]
fn every_thread_that_waits_for_a_sync_wakes_also_beside_syncs_that_none_leads() {
    const THREADS: u64 = 4;
    const COMMITS: u64 = 500;
    let journal = open(&Recorder::new(empty(), None), None, 1, 1).unwrap();
    let left = AtomicU64::new(THREADS);
    std::thread::scope(|scope| {
        for line in 64..64 + THREADS {
            let (journal, left) = (&journal, &left);
            scope.spawn(move || {
                for number in 1..=COMMITS {
                    store(&journal.memory, line, number);
                    journal.fence();
                    let head = journal.ring.head();
                    journal.sync_to(head).unwrap();
                    assert!(journal.reads.synced.load(Ordering::Acquire) >= head);
                }
                left.fetch_sub(1, Ordering::Release);
            });
        }
        while left.load(Ordering::Acquire) > 0 {
            journal.sync(&mut journal.syncer.lock()).unwrap();
        }
    });
    assert_eq!(journal.reads.synced.load(Ordering::Acquire), THREADS * COMMITS);
}
