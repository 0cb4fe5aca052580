//! A disk that records what is written to it, and makes what a power cut can leave of that.

use crate::journal::disk::{Breach, Disk, Place};
use crate::journal::frame::SECTOR_BYTES;
use core::fmt;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

const SECTOR: usize = SECTOR_BYTES as usize;

/// The bytes of each file.
pub(super) type Files = BTreeMap<Place, Vec<u8>>;

/// An event, in its order.
#[derive(Clone, Debug)]
enum Event {
    /// A file has these bytes from this sector on, in the cache of the system.
    Write(Place, usize, Vec<u8>),
    /// All that was written to a file is on the device.
    Sync(Place),
    /// All that was written to a file and not synced is dropped, and the system calls it clean.
    Drop(Place),
    Acknowledge(Acknowledged),
}

/// The writes that were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acknowledged {
    /// The number of records of the history.
    pub(super) records: u64,
    /// `true` if those of the other thread were acknowledged too.
    pub(super) intruder: bool,
}

/// The work of another thread before an event.
type Intruder = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// The files at the beginning, all of them on the device.
    before: Files,
    cache: Files,
    device: Files,
    /// The sectors that the device does not have as the cache has them.
    unsynced: BTreeSet<(Place, usize)>,
    events: Vec<Event>,
    /// The call of the disk before which `intruder` runs. A sync counts as two: before the device
    /// takes what was written, and after.
    intrusion: usize,
    intruder: Option<Intruder>,
    has_intruded: bool,
    calls: usize,
    failing_syncs: u32,
    /// The call that fails.
    failing_call: Option<usize>,
    has_failed: bool,
    process: Process,
}

/// The process that uses the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Process {
    #[default]
    Lives,
    /// The process dies in the call that fails.
    Dies,
    /// The process is dead: its calls do nothing.
    Dead,
}

impl State {
    /// Returns `true` if the call that has begun fails.
    fn fails(&mut self) -> bool {
        let fails = self.failing_call == Some(self.calls);
        self.has_failed |= fails;
        if fails && self.process == Process::Dies {
            self.process = Process::Dead;
        }
        fails
    }
}

fn refused() -> io::Result<()> {
    Err(io::Error::other("the device refuses"))
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("breach", &self.breach).finish_non_exhaustive()
    }
}

/// The disk. A clone is the same one.
#[derive(Clone)]
pub(super) struct Recorder {
    state: Arc<Mutex<State>>,
    breach: Option<Breach>,
}

impl Recorder {
    /// Returns a disk that has `files`, for code that breaks a rule.
    pub(super) fn new(files: Files, breach: Option<Breach>) -> Self {
        let state = State {
            cache: files.clone(),
            device: files.clone(),
            before: files,
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(state)), breach }
    }

    /// Lets `intruder` run before the call number `at` from now on.
    pub(super) fn intrude(&self, at: usize, intruder: Intruder) {
        let mut state = self.state.lock();
        state.intrusion = state.calls + at;
        state.intruder = Some(intruder);
    }

    /// Returns the number of calls so far.
    pub(super) fn calls(&self) -> usize {
        self.state.lock().calls
    }

    /// Lets the next sync fail, which drops what was written.
    pub(super) fn fail_sync(&self) {
        self.state.lock().failing_syncs = 1;
    }

    /// Lets the call with this number from now on fail: a sync before the device takes anything, a
    /// write after its first sector. The second call of a sync does not fail.
    pub(super) fn fail_call(&self, call: usize) {
        let mut state = self.state.lock();
        state.failing_call = Some(state.calls + call);
    }

    /// Lets the process die in that call: a sync does nothing, and what was written is not lost.
    pub(super) fn kill_call(&self, call: usize) {
        self.fail_call(call);
        self.state.lock().process = Process::Dies;
    }

    /// Returns `true` if the process is dead.
    pub(super) fn is_dead(&self) -> bool {
        self.state.lock().process == Process::Dead
    }

    /// Lets another process use the disk.
    pub(super) fn revive(&self) {
        let mut state = self.state.lock();
        (state.failing_call, state.process) = (None, Process::Lives);
    }

    /// Returns `true` if a call has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.state.lock().has_failed
    }

    /// Returns `true` if the intruder has run.
    pub(super) fn has_intruded(&self) -> bool {
        self.state.lock().has_intruded
    }

    /// Notes what was acknowledged.
    pub(super) fn acknowledge(&self, acknowledged: Acknowledged) {
        self.state.lock().events.push(Event::Acknowledge(acknowledged));
    }

    /// Returns the number of events.
    pub(super) fn events(&self) -> usize {
        self.state.lock().events.len()
    }

    /// Calls `visit` with what a power cut after `count` events can leave, at most `most` of it,
    /// and with what was acknowledged. All of it if it is no more.
    pub(super) fn cuts(&self, count: usize, most: u64, mut visit: impl FnMut(Files, Acknowledged)) {
        let state = self.state.lock();
        let mut files = state.before.clone();
        let mut unsynced: BTreeMap<(Place, usize), Vec<&[u8]>> = BTreeMap::new();
        let mut acknowledged = Acknowledged::default();
        for event in &state.events[..count] {
            match event {
                Event::Write(place, first, bytes) => {
                    for (sector, bytes) in (*first..).zip(bytes.chunks_exact(SECTOR)) {
                        unsynced.entry((*place, sector)).or_default().push(bytes);
                    }
                }
                Event::Sync(synced) => unsynced.retain(|&(place, sector), versions| {
                    if place == *synced {
                        let bytes = versions.last().expect("a version");
                        sector_of(&mut files, place, sector).copy_from_slice(bytes);
                    }
                    place != *synced
                }),
                Event::Drop(dropped) => unsynced.retain(|&(place, _), _| place != *dropped),
                Event::Acknowledge(new) => acknowledged = *new,
            }
        }
        let choices = unsynced.values().map(|versions| versions.len() as u64 + 1);
        let all = choices.fold(1_u64, u64::saturating_mul);
        let mut random = 0x9E37_79B9_7F4A_7C15_u64 ^ count as u64;
        for number in 0..all.min(most) {
            let mut choice = number;
            if all > most {
                // The first two are the extremes: nothing, and everything.
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                choice = match number {
                    0 => 0,
                    1 => u64::MAX,
                    _ => random >> 8,
                };
            }
            let mut image = files.clone();
            for (index, (&(place, sector), versions)) in unsynced.iter().enumerate() {
                let radix = versions.len() as u64 + 1;
                let version = match choice {
                    u64::MAX => versions.len() as u64,
                    _ if all > most => choice.rotate_right(index as u32 * 7) % radix,
                    _ => choice % radix,
                };
                if all <= most {
                    choice /= radix;
                }
                if version > 0 {
                    let bytes = versions[version as usize - 1];
                    sector_of(&mut image, place, sector).copy_from_slice(bytes);
                }
            }
            visit(image, acknowledged);
        }
    }

    fn call(&self) {
        let intruder = {
            let mut state = self.state.lock();
            state.calls += 1;
            let is_now = state.calls > state.intrusion;
            let intruder = state.intruder.take_if(|_| is_now);
            state.has_intruded |= intruder.is_some();
            intruder
        };
        if let Some(intruder) = intruder {
            intruder();
        }
    }
}

fn sector_of(files: &mut Files, place: Place, sector: usize) -> &mut [u8] {
    let file = files.get_mut(&place).expect("a file of the disk");
    &mut file[sector * SECTOR..(sector + 1) * SECTOR]
}

impl Disk for Recorder {
    fn read(&self, place: Place, at: u64, target: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        target.copy_from_slice(&state.cache[&place][at as usize..at as usize + target.len()]);
        Ok(())
    }

    fn write(&self, place: Place, at: u64, source: &[u8]) -> io::Result<()> {
        self.call();
        let mut state = self.state.lock();
        assert!(source.len().is_multiple_of(SECTOR) && at.is_multiple_of(SECTOR_BYTES));
        if state.process == Process::Dead {
            return refused();
        }
        let is_failing = state.fails();
        let source = if is_failing { &source[..SECTOR] } else { source };
        for (sector, bytes) in (at as usize / SECTOR..).zip(source.chunks_exact(SECTOR)) {
            sector_of(&mut state.cache, place, sector).copy_from_slice(bytes);
            state.unsynced.insert((place, sector));
        }
        state.events.push(Event::Write(place, at as usize / SECTOR, source.into()));
        if is_failing { refused() } else { Ok(()) }
    }

    fn sync(&self, place: Place) -> io::Result<()> {
        self.call();
        let mut state = self.state.lock();
        let is_failing = state.process != Process::Dead && state.fails();
        if state.process == Process::Dead {
            return refused();
        }
        if is_failing || state.failing_syncs > 0 {
            state.failing_syncs = state.failing_syncs.saturating_sub(1);
            state.events.push(Event::Drop(place));
            state.unsynced.retain(|&(other, _)| other != place);
            return refused();
        }
        state.events.push(Event::Sync(place));
        let (synced, rest) = std::mem::take(&mut state.unsynced)
            .into_iter()
            .partition::<BTreeSet<_>, _>(|&(other, _)| other == place);
        state.unsynced = rest;
        for (place, sector) in synced {
            let bytes = sector_of(&mut state.cache, place, sector).to_vec();
            sector_of(&mut state.device, place, sector).copy_from_slice(&bytes);
        }
        drop(state);
        self.call();
        Ok(())
    }

    fn settle(&self, place: Place) -> io::Result<()> {
        self.sync(place)?;
        let mut state = self.state.lock();
        let device = state.device[&place].clone();
        state.cache.insert(place, device);
        Ok(())
    }

    fn breaks(&self, rule: Breach) -> bool {
        self.breach == Some(rule)
    }
}
