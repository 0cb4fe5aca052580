//! The medium of threads under test: it records the accesses of each thread, passes a yield point
//! before each access, and can be rewound to its contents before an execution.

use super::turns::running_thread;
use crate::medium::arena::{Arena, words_of};
use crate::trace::call::{Answer, Call};
use crate::trace::mutation::Mutation;
use crate::trace::{Awaited, CallSite, Event, NEVER, StoreRole, TraceEntry, poison};
use bristlecone_pmem::medium::schedule::{set_slice, yield_point};
use bristlecone_pmem::medium::{MediumError, Simulation};
use bristlecone_pmem::{Defect, PmWord, Simulated};
use core::panic::Location;
use core::ptr::NonNull;
use parking_lot::Mutex;
use std::sync::Arc;

/// A medium for threads under test and for the setup before them. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledMedium {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    log: Mutex<Log>,
    /// The length to which [`ScheduledMedium::rewind`] returns.
    bytes: u64,
}

#[derive(Debug, Default)]
struct Log {
    entries: Vec<TraceEntry>,
    /// The words that were overwritten, with their former values.
    undo: Vec<(u32, u64)>,
    /// Set while events are recorded.
    is_recording: bool,
    calls: Vec<Call>,
    /// The mutation of the code that the threads run.
    mutation: Option<Mutation>,
    stop: Option<Stop>,
}

/// The exposed point at which a thread loses its turn. A point is *exposed* if others may see a
/// store that no fence of the thread has followed, or whose copy it has not waited for: right
/// before its next fence, right after it lets a latch go, and right before it waits.
#[derive(Debug)]
struct Stop {
    /// The thread, counted from 1.
    thread: u32,
    /// The number of exposed points before it.
    before: u64,
    /// The number of exposed points so far.
    passed: u64,
    /// Set while no fence has followed a store of the thread.
    is_exposed: bool,
    /// Set from a fence that has followed one until the thread waits for its copies.
    is_copied: bool,
    /// The number of events before the point, once the thread has come there.
    reached: Option<u32>,
}

impl ScheduledMedium {
    /// Returns a zeroed medium of `bytes`, which grows to at most `reserve_bytes`.
    pub(crate) fn new(bytes: u64, reserve_bytes: u64) -> Self {
        let arena = Arena::new(bytes, reserve_bytes);
        Self { shared: Arc::new(Shared { arena, log: Mutex::default(), bytes }) }
    }

    /// Overwrites a block that is free again: no thread may read it, and nothing may rely on what
    /// it held.
    pub(crate) fn poison(&self, at: u64, bytes: u64) {
        let mut log = self.shared.log.lock();
        let (first, words) = ((at / 8) as u32, (bytes / 8) as u32);
        for index in first..first + words {
            log.undo.push((index, self.shared.arena.get(index as usize)));
            self.shared.arena.set(index as usize, poison(index));
        }
        log.write(Event::Poison { first, words }, Location::caller());
    }

    /// Takes the present contents as those to which [`rewind`](Self::rewind) returns.
    pub(crate) fn settle(&self) {
        self.shared.log.lock().undo.clear();
    }

    /// Sets the mutation of the code that the threads run.
    pub(crate) fn set_mutation(&self, mutation: Option<Mutation>) {
        self.shared.log.lock().mutation = mutation;
    }

    /// Ends the turn of `thread`, counted from 0, at the exposed point behind `before` others.
    pub(crate) fn stop_at(&self, thread: usize, before: u64) {
        let thread = thread as u32 + 1;
        let (is_exposed, is_copied) = (false, false);
        let stop = Stop { thread, before, passed: 0, is_exposed, is_copied, reached: None };
        self.shared.log.lock().stop = Some(stop);
    }

    /// Returns the number of exposed points of the thread of [`stop_at`](Self::stop_at), and
    /// forgets the one at which it stops.
    pub(crate) fn exposed_points(&self) -> u64 {
        self.shared.log.lock().stop.take().map_or(0, |stop| stop.passed)
    }

    /// Returns the number of events before the point of [`stop_at`](Self::stop_at), if the thread
    /// has come there, and forgets that point.
    pub(crate) fn stopped(&self) -> Option<u32> {
        self.shared.log.lock().stop.take()?.reached
    }

    /// Returns the defect that is injected into the code that the threads run.
    pub(crate) fn defect(&self) -> Option<Defect> {
        self.shared.log.lock().mutation.and_then(Mutation::defect)
    }

    /// Undoes all stores since [`settle`](Self::settle).
    pub(crate) fn rewind(&self) {
        let mut log = self.shared.log.lock();
        for (word, value) in log.undo.drain(..).rev() {
            self.shared.arena.set(word as usize, value);
        }
        self.shared.arena.set_len(self.shared.bytes);
    }

    /// Returns all words up to the length of the medium.
    pub(crate) fn words(&self) -> Vec<u64> {
        let count = (self.shared.arena.len() / 8) as usize;
        (0..count).map(|index| self.shared.arena.get(index)).collect()
    }

    /// Returns the offset of the first word that differs from `expected`.
    pub(crate) fn differs(&self, expected: &[u64]) -> Option<u64> {
        let differs = (0..expected.len()).find(|&i| self.shared.arena.get(i) != expected[i]);
        differs.map(|index| index as u64 * 8)
    }

    /// Starts to record events.
    pub(crate) fn record(&self) {
        let mut log = self.shared.log.lock();
        log.is_recording = true;
        log.entries.clear();
        log.calls.clear();
    }

    /// Ends the recording, and returns the events and the calls.
    pub(crate) fn recorded(&self) -> (Vec<TraceEntry>, Vec<Call>) {
        let mut log = self.shared.log.lock();
        log.is_recording = false;
        (core::mem::take(&mut log.entries), core::mem::take(&mut log.calls))
    }

    /// Records that the running thread invokes the operation at `place` of its list, as one call
    /// for each of its `parts`. Returns the number of the first call.
    pub(crate) fn invoke(&self, place: usize, parts: usize) -> usize {
        yield_point();
        let mut log = self.shared.log.lock();
        let thread = running_thread() as usize - 1;
        let first = log.calls.len();
        for part in 0..parts {
            let (invoked, returned) = (log.entries.len() as u32, NEVER);
            let answer = Answer::Silence;
            log.calls.push(Call { thread, place, part, invoked, returned, answer });
            log.write(Event::Invoke { operation: (first + part) as u32 }, Location::caller());
        }
        first
    }

    /// Records the acknowledgement of the calls from `first` on, which were invoked together.
    pub(crate) fn acknowledge(&self, first: usize, answers: &[Answer]) {
        let mut log = self.shared.log.lock();
        for (number, &answer) in (first..).zip(answers) {
            let returned = log.entries.len() as u32;
            let call = &mut log.calls[number];
            (call.returned, call.answer) = (returned, answer);
            log.write(Event::Return { operation: number as u32 }, Location::caller());
        }
    }
}

impl Shared {
    fn put(&self, word: &PmWord, new: u64, role: StoreRole, at: CallSite) {
        yield_point();
        let index = self.arena.index(word);
        let mut log = self.log.lock();
        self.replace(&mut log, index, new, role, at);
        match role {
            StoreRole::Transient => log.pass(|stop| stop.is_exposed),
            _ => log.expose(true),
        }
    }

    fn replace(&self, log: &mut Log, index: usize, new: u64, role: StoreRole, at: CallSite) {
        let old = self.arena.get(index);
        self.arena.set(index, new);
        log.undo.push((index as u32, old));
        log.write(Event::Store { word: index as u32, old, new, role }, at);
    }
}

impl Log {
    /// Returns the stop of the running thread.
    fn own_stop(&mut self) -> Option<&mut Stop> {
        self.stop.as_mut().filter(|stop| stop.thread == running_thread())
    }

    /// Notes that the running thread has stored, or that its fence has followed its stores.
    fn expose(&mut self, is_exposed: bool) {
        if let Some(stop) = self.own_stop() {
            stop.is_copied |= stop.is_exposed && !is_exposed;
            stop.is_exposed = is_exposed;
        }
    }

    /// Ends the turn of the running thread, at its next access, if this is where it stops, and if
    /// the point is `exposed`.
    fn pass(&mut self, exposed: impl Fn(&Stop) -> bool) {
        let time = self.entries.len() as u32;
        let Some(stop) = self.own_stop().filter(|stop| exposed(stop)) else { return };
        if stop.passed == stop.before {
            stop.reached = Some(time);
            set_slice(0);
        }
        stop.passed += 1;
    }

    /// Records an event, unless the mutation removes it.
    fn write_unless(&mut self, skipped: Mutation, event: Event, at: CallSite) {
        if self.mutation != Some(skipped) {
            self.write(event, at);
        }
    }

    fn write(&mut self, event: Event, at: CallSite) {
        if self.is_recording {
            self.entries.push(TraceEntry { thread: running_thread(), at, event });
        }
    }
}

#[expect(unsafe_code, reason = "Simulation is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and holds its reserve from the
// start; its length shrinks only between executions, when no pool is open on it. 2. Its words start
// as zeros; it is private to the process. 3. Words are atomics, stored with release and loaded with
// acquire ordering.
unsafe impl Simulation for Shared {
    fn injects(&self, defect: Defect) -> bool {
        let log = self.log.lock();
        log.is_recording && log.mutation == Some(Mutation::Inject(defect))
    }

    fn base(&self) -> NonNull<u8> {
        self.arena.base()
    }

    fn len(&self) -> u64 {
        self.arena.len()
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        yield_point();
        self.arena.grow(bytes)?;
        let event = Event::Grow { bytes: self.arena.len() };
        self.log.lock().write(event, Location::caller());
        Ok(())
    }

    fn sync_length(&self, at: CallSite) -> Result<(), MediumError> {
        yield_point();
        self.log.lock().write(Event::SyncLength, at);
        Ok(())
    }

    fn load(&self, word: &PmWord) -> u64 {
        yield_point();
        self.arena.load(word)
    }

    fn store(&self, word: &PmWord, value: u64, role: StoreRole, at: CallSite) {
        self.put(word, value, role, at);
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64, at: CallSite) -> Result<(), u64> {
        yield_point();
        let index = self.arena.index(word);
        let found = self.arena.get(index);
        if found != old {
            return Err(found);
        }
        self.replace(&mut self.log.lock(), index, new, StoreRole::Transient, at);
        Ok(())
    }

    /// Passes one yield point for all words: no other thread can reach fresh words.
    fn fill(&self, target: &[PmWord], source: &[u8], at: CallSite) {
        assert!(source.len() <= target.len() * 8, "a fill must fit its target");
        let Some(first) = target.first().filter(|_| !source.is_empty()) else { return };
        yield_point();
        let first = self.arena.index(first);
        let new: Vec<u64> = words_of(source).collect();
        let mut log = self.log.lock();
        for (index, &word) in (first..).zip(&new) {
            log.undo.push((index as u32, self.arena.get(index)));
            self.arena.set(index, word);
        }
        log.write(Event::Fill { first: first as u32, new }, at);
        log.expose(true);
    }

    fn flush(&self, words: &[PmWord], at: CallSite) {
        let skipped = Mutation::NoFlush(at);
        let Some((first, lines)) = self.arena.lines_of(words) else { return };
        yield_point();
        self.log.lock().write_unless(skipped, Event::Flush { first, lines }, at);
    }

    fn note_read(&self, words: &[PmWord]) {
        let Some((first, lines)) = self.arena.lines_of(words) else { return };
        self.log.lock().write(Event::Rely { first, lines }, Location::caller());
    }

    fn flush_for_readers(&self, words: &[PmWord], at: CallSite) {
        let Some((first, lines)) = self.arena.lines_of(words) else { return };
        self.log.lock().write(Event::Renew { first, lines }, at);
    }

    fn settle(&self, awaited: Awaited) {
        if awaited == Awaited::All {
            self.log.lock().pass(|stop| stop.is_copied);
        }
        yield_point();
        let mut log = self.log.lock();
        log.write(Event::Await(awaited), Location::caller());
        if let Some(stop) = log.own_stop() {
            stop.is_copied = false;
        }
    }

    fn fence(&self, at: CallSite) {
        let skipped = Mutation::NoFence(at);
        self.log.lock().pass(|stop| stop.is_exposed);
        yield_point();
        let mut log = self.log.lock();
        log.write_unless(skipped, Event::Fence, at);
        log.expose(false);
    }
}

impl From<&ScheduledMedium> for Simulated {
    fn from(medium: &ScheduledMedium) -> Self {
        Self::new(medium.shared.clone())
    }
}
