//! A device that refuses one write or one sync, each of a history in turn: no more is
//! acknowledged, and nothing that was is lost.

use super::file::{answer, create, open as open_pool, options, put};
use super::recorder::Recorder;
use super::words_of;
use super::{HISTORIES, IMAGES_MAX, Lines, Run, SHORT, Search, Step, empty, judge, open, read};
use crate::journal::folder::Folder;
use crate::journal::mark::{MARK_BYTES, Mark};
use crate::journal::{DiskFiles, DiskTrace, Durability, JournalError, Journaled};
use crate::medium::{LockedFile, MediumError};
use crate::pool::Pool;
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs `steps` until a call fails, or returns `None` if that is one of an open.
fn run(disk: &Recorder, steps: &[Step]) -> Option<Run> {
    let mut run = match Run::new(disk.clone(), None, 100, 1) {
        Ok(run) => run,
        Err(error) => {
            assert!(disk.has_failed(), "{error}");
            return None;
        }
    };
    for &step in steps {
        let opens_again = match step {
            Step::Put(index) => {
                run.put(&[index]);
                false
            }
            // As a store does at the end of a write.
            Step::Sync => {
                if run.journal.check().is_ok() {
                    run.sync();
                }
                false
            }
            Step::Checkpoint => {
                let _ = run.journal.checkpoint(&mut run.journal.syncer.lock());
                false
            }
            Step::Free => {
                let _ = run.free();
                false
            }
            Step::Close => {
                let is_closed = run.journal.finish().is_ok();
                if is_closed {
                    run.acknowledge(false);
                }
                is_closed
            }
            Step::Kill => true,
            Step::FailSync | Step::MakeWhole => break,
        };
        if opens_again && let Err(error) = run.reopen() {
            assert!(disk.has_failed(), "{error}");
            break;
        }
        if disk.has_failed() {
            if !disk.is_dead() {
                check_ended(&mut run);
            }
            break;
        }
    }
    Some(run)
}

/// Checks that nothing is written any more, and that reads go on.
fn check_ended(run: &mut Run) {
    let (journal, events) = (run.journal.clone(), run.disk.events());
    assert!(matches!(journal.check(), Err(MediumError::Poisoned)));
    run.put(&[0, 2]);
    assert_eq!(read(&journal).as_ref(), Ok(run.states.last().unwrap()));
    // As the thread of the journal does, if it waited for the lock while a step failed.
    let step = journal.checkpoint_step(&mut journal.syncer.lock());
    assert!(matches!(step, Err(MediumError::Poisoned)), "{step:?}");
    assert!(matches!(journal.checkpoint(&mut journal.syncer.lock()), Err(MediumError::Poisoned)));
    assert!(matches!(journal.finish(), Err(MediumError::Poisoned)));
    assert_eq!(run.disk.events(), events, "a write or sync after one that failed");
}

#[test]
fn whichever_write_or_sync_fails_nothing_acknowledged_is_lost() {
    let mut failures = 0;
    for (name, steps) in HISTORIES {
        for call in 1.. {
            let disk = Recorder::new(empty(), None);
            disk.fail_call(call);
            let run = run(&disk, steps);
            if !disk.has_failed() {
                if disk.calls() < call {
                    break;
                }
                continue; // The second half of a sync.
            }
            failures += 1;
            let nothing = vec![Lines::default()];
            let states = run.as_ref().map_or(&nothing, |run| &run.states);
            let all = Search { breach: None, then: SHORT, depth: 0, images: IMAGES_MAX };
            let mut acknowledged = 0;
            disk.cuts(disk.events(), IMAGES_MAX, |image, done| {
                acknowledged = done.records as usize;
                let found = judge(image, done, states, all, 2, None, &mut 0);
                found.unwrap_or_else(|e| panic!("{name}, call {call}, a cut: {e}"));
            });
            let ring = run.as_ref().map(|run| words_of(&run.journal.ring));
            let journal = open(&disk, ring.as_deref(), 300, 1);
            let found = read(&journal.unwrap_or_else(|e| panic!("{name}, call {call}: {e}")));
            let allowed = &states[acknowledged..];
            assert!(allowed.contains(&found.unwrap()), "{name}, call {call}, a kill");
        }
    }
    assert!(failures > 100, "{failures} failures");
}

/// The next process of the same boot reads what the cache has, and the device perhaps not.
#[test]
fn a_cut_in_the_process_after_one_that_died_or_failed_loses_nothing() {
    let mut cuts = 0;
    for (name, steps) in HISTORIES {
        for (call, dies) in (1..).flat_map(|call| [(call, true), (call, false)]) {
            let disk = Recorder::new(empty(), None);
            if dies {
                disk.kill_call(call);
            } else {
                disk.fail_call(call);
            }
            let first = run(&disk, steps);
            if !disk.has_failed() {
                if disk.calls() < call {
                    break;
                }
                continue; // The second half of a sync.
            }
            disk.revive();
            let nothing = vec![Lines::default()];
            let states = first.as_ref().map_or(&nothing, |run| &run.states);
            let ring = first.as_ref().map(|run| words_of(&run.journal.ring));
            let events = disk.events();
            let place = format!("{name}, call {call}, dies: {dies}");
            let second = Run::new(disk.clone(), ring.as_deref(), 300, 1);
            let mut second = second.unwrap_or_else(|e| panic!("{place}: {e}"));
            let found = states.iter().rposition(|state| *state == second.states[0]);
            let found = found.unwrap_or_else(|| panic!("{place}: found {:?}", second.states[0]));
            assert!(!dies || found + 1 == states.len(), "{place}: a kill lost something");
            second.states = states[..=found].to_vec();
            for step in [Step::Put(0), Step::Sync, Step::Put(2)] {
                second.step(step).unwrap();
            }
            for count in events..=disk.events() {
                disk.cuts(count, 12, |image, done| {
                    cuts += 1;
                    let all = Search { breach: None, then: SHORT, depth: 0, images: 8 };
                    let states = if count == events { states } else { &second.states };
                    let judged = judge(image, done, states, all, 2, None, &mut 0);
                    judged.unwrap_or_else(|e| panic!("{place}, a cut after event {count}: {e}"));
                });
            }
        }
    }
    assert!(cuts > 10_000, "{cuts} cuts");
}

#[test]
fn an_open_whose_recovery_the_device_refuses_is_an_error_and_loses_nothing() {
    let disk = Recorder::new(empty(), None);
    let mut before = Run::new(disk.clone(), None, 1, 1).unwrap();
    for step in [Step::Put(0), Step::Sync, Step::Put(2)] {
        before.step(step).unwrap();
    }
    let ring = words_of(&before.journal.ring);
    let mut failures = 0;
    for call in 1.. {
        let calls = disk.calls();
        disk.fail_call(call);
        match open(&disk, Some(&ring), 2, 1) {
            Ok(journal) => {
                assert_eq!(read(&journal).as_ref(), Ok(before.states.last().unwrap()));
                if disk.calls() - calls < call {
                    break;
                }
            }
            Err(error) => {
                assert!(matches!(error, JournalError::Medium(MediumError::System { .. })));
                failures += 1;
            }
        }
    }
    assert!(failures > 10, "{failures} failures");
}

/// A device that refuses the sync of a mark that says "whole", and keeps the marks that it gets.
#[derive(Debug, Default)]
struct Marks {
    refuses: AtomicBool,
    is_whole: AtomicBool,
    written: Mutex<Vec<Vec<u8>>>,
}

impl DiskTrace for Marks {
    fn begin(&self, _: DiskFiles) {}
    fn write(&self, file: Option<u64>, at: u64, bytes: &[u8]) -> io::Result<()> {
        let is_mark = file.is_none() && MARK_BYTES.contains(&(at as usize));
        self.is_whole.store(is_mark && bytes[24] == 0, Ordering::Relaxed);
        if is_mark {
            self.written.lock().push(bytes.to_vec());
        }
        Ok(())
    }
    fn written(&self, _: Option<u64>) {}
    fn sync(&self, _: Option<u64>) -> io::Result<()> {
        let fails = self.is_whole.load(Ordering::Relaxed) && self.refuses.load(Ordering::Relaxed);
        if fails { Err(io::Error::other("the device refuses")) } else { Ok(()) }
    }
    fn synced(&self, _: Option<u64>) {}
    fn grow(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn grown(&self, _: u64) {}
}

/// The next open in this boot reads the cache. It once removed the journal of a pool whose mark on
/// the device said that it needs it, or stamped the ring beside a mark that was not there.
#[test]
fn a_mark_whose_sync_failed_decides_nothing_in_the_next_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let device = Arc::new(Marks::default());
    let open = || {
        let locked = LockedFile::open_within(&path, Duration::ZERO).unwrap();
        let medium =
            Journaled::on_traced(locked, &options(Durability::Commit), Some(device.clone()));
        Pool::open(medium.unwrap()).unwrap().0
    };
    let pool = open();
    device.refuses.store(true, Ordering::Relaxed);
    pool.close().unwrap_err();
    assert!(Journaled::is_needed_by(&File::open(&path).unwrap()).unwrap());
    let found = std::fs::read(&path).unwrap()[MARK_BYTES].to_vec();
    device.written.lock().clear();
    drop(open());
    let again = device.written.lock()[0].clone();
    assert!(found.windows(again.len()).any(|mark| mark == again), "the mark that was found");
}

/// A process that is killed in a close leaves a mark that says "whole" in the cache. The next open
/// once removed the journal by it: if the power was cut then, the mark on the device needed it.
#[test]
fn a_journal_stays_until_the_mark_that_needs_none_is_on_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let (pool, _) = open_pool(&path, Durability::Commit);
    put(&pool, 7);
    drop(pool);
    let needs = Mark::read(&std::fs::read(&path).unwrap()).unwrap().unwrap();
    let whole = Mark { sequence: needs.sequence + 1, needs: false, ..needs };
    // It takes every write, and refuses every sync.
    let device = File::options().read(true).write(true).open("/dev/null").unwrap();
    let made = Folder::create(&path, device, Some(&whole), &options(Durability::Commit));
    assert!(matches!(made, Err(JournalError::Medium(MediumError::System { .. }))), "{made:?}");
    assert_eq!(answer(&open_pool(&path, Durability::Commit).0), 7);
}
