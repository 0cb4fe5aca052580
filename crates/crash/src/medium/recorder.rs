//! The recorder: a medium that records every access.
//!
//! 1. Memory always holds the newest state; the trace has the order in which it came about.
//! 2. A store that bypasses the medium leaves memory and the recorder's own image different. They
//!    are compared at the fences of the operations under test and at the end.
//! 3. Each event carries its call site.
//! 4. A compare-and-swap is recorded as a plain store. On x86 a locked instruction would complete
//!    the flushes before it as a fence does; on other processors it does not, so no design may rely
//!    on it.

use crate::medium::arena::{Arena, words_of};
use crate::medium::lazy_image::access::StepsExhausted;
use crate::trace::mutation::{Mutation, MutationSites};
use crate::trace::{Awaited, CallSite, Event, StoreRole, Trace, TraceEntry, poison};
use bristlecone_pmem::medium::{MediumError, Simulation};
use bristlecone_pmem::{Defect, PmWord, Simulated};
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::ThreadId;

/// The number of loads in a row after which a thread counts as one that waits forever.
const LOADS_MAX: u64 = 1 << 22;

/// A medium that records. Clones share memory and trace: a pool owns one, the scenario another.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    log: Mutex<Log>,
    /// The number of loads since the last store.
    loads: AtomicU64,
}

#[derive(Debug)]
struct Log {
    trace: Trace,
    threads: Vec<ThreadId>,
    /// The number of times that the pool was handed over to another thread.
    handed_over: u32,
    /// The contents that memory should have, if bypasses are looked for.
    image: Option<Arena>,
    /// The first word that differs from the image.
    bypassed: Option<u32>,
    /// Cleared for a medium without a trace.
    recording: bool,
    /// Set once the operations under test have begun.
    begun: bool,
    mutation: Option<Mutation>,
    sites: MutationSites,
}

/// A store that bypassed the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bypassed {
    /// The offset of the word in bytes.
    pub(crate) at: u64,
}

impl Recorder {
    /// Returns a zeroed medium of `bytes` that can grow to `reserve_bytes` and records from the
    /// first store.
    pub(crate) fn new(bytes: u64, reserve_bytes: u64, mutation: Option<Mutation>) -> Self {
        let recorder = Self::with(Arena::new(bytes, reserve_bytes), mutation, true);
        recorder.shared.log.lock().image = Some(Arena::new(bytes, reserve_bytes));
        recorder
    }

    /// Returns a medium that records nothing, for a trial of operations.
    pub(crate) fn blank(bytes: u64, reserve_bytes: u64) -> Self {
        Self::with(Arena::new(bytes, reserve_bytes), None, false)
    }

    /// Returns a medium that [`reset`](Self::reset) fills, for the many recoveries. It does not
    /// look for bypasses.
    pub(crate) fn spare(reserve_bytes: u64, mutation: Option<Mutation>) -> Self {
        Self::with(Arena::new(0, reserve_bytes), mutation, true)
    }

    /// Starts again with the image in `source`, all of it durable.
    pub(crate) fn reset(&self, source: &Arena) {
        let mut log = self.shared.log.lock();
        self.shared.arena.copy_from(source);
        let mutation = log.mutation;
        *log = Log::new(source.len(), mutation, true);
    }

    fn with(arena: Arena, mutation: Option<Mutation>, recording: bool) -> Self {
        let log = Mutex::new(Log::new(arena.len(), mutation, recording));
        Self { shared: Arc::new(Shared { arena, log, loads: AtomicU64::new(0) }) }
    }

    /// Returns the length of the medium, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.shared.arena.len()
    }

    /// Ends the setup: the operations under test follow.
    pub(crate) fn begin(&self) {
        let mut log = self.shared.log.lock();
        log.compare(&self.shared.arena);
        log.trace.begin = log.trace.entries.len() as u32;
        log.begun = true;
    }

    /// Records the invocation of an operation under test.
    pub(crate) fn invoke(&self, operation: u32) {
        self.shared.log.lock().write(Event::Invoke { operation }, Location::caller());
    }

    /// Records the acknowledgement of an operation under test.
    pub(crate) fn acknowledge(&self, operation: u32) {
        self.shared.log.lock().write(Event::Return { operation }, Location::caller());
    }

    /// Returns the trace, and the number of ordering steps of the operations under test.
    pub(crate) fn finish(&self) -> Result<(Trace, MutationSites), Bypassed> {
        let mut log = self.shared.log.lock();
        log.compare(&self.shared.arena);
        if let Some(word) = log.bypassed {
            return Err(Bypassed { at: u64::from(word) * 8 });
        }
        let mut trace = core::mem::take(&mut log.trace);
        if let Some(mutation) = log.mutation {
            trace.defect = mutation.defect();
            trace.reorder(mutation);
        }
        Ok((trace, log.sites))
    }

    /// Attributes later accesses to another thread: see [`Simulation::hand_over`].
    pub(crate) fn hand_over(&self) {
        self.shared.log.lock().handed_over += 1;
    }

    /// Ends the operations under test. The trace stays as it is; the medium stays usable.
    pub(crate) fn end(&self) {
        let mut log = self.shared.log.lock();
        log.compare(&self.shared.arena);
        log.image = None;
        log.recording = false;
    }

    /// Overwrites a block that is free again: nothing may rely on what it held.
    pub(crate) fn poison(&self, at: u64, bytes: u64) {
        let mut log = self.shared.log.lock();
        let (first, words) = ((at / 8) as u32, (bytes / 8) as u32);
        for index in first..first + words {
            self.shared.arena.set(index as usize, poison(index));
            log.expect(index as usize, poison(index));
        }
        log.write(Event::Poison { first, words }, Location::caller());
    }
}

impl Shared {
    /// Ends a run that loads forever.
    #[cold]
    fn exhausted() {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(StepsExhausted));
        }
    }

    fn put(&self, word: &PmWord, new: u64, role: StoreRole, at: CallSite) {
        let index = self.arena.index(word);
        let mut log = self.log.lock();
        self.loads.store(0, Ordering::Relaxed);
        let old = self.arena.get(index);
        self.arena.set(index, new);
        if log.recording {
            log.expect(index, new);
            log.write(Event::Store { word: index as u32, old, new, role }, at);
        }
    }
}

impl Log {
    fn new(bytes: u64, mutation: Option<Mutation>, recording: bool) -> Self {
        Self {
            trace: Trace { bytes, ..Trace::default() },
            threads: Vec::new(),
            handed_over: 0,
            image: None,
            bypassed: None,
            recording,
            begun: false,
            mutation,
            sites: MutationSites::default(),
        }
    }

    /// Notes that the word at `index` should hold `value`.
    fn expect(&mut self, index: usize, value: u64) {
        if let Some(image) = &self.image {
            image.set(index, value);
        }
    }

    fn write(&mut self, event: Event, at: CallSite) {
        if !self.recording {
            return;
        }
        let thread = std::thread::current().id();
        let known = self.threads.iter().position(|&known| known == thread);
        let thread = known.unwrap_or_else(|| {
            self.threads.push(thread);
            self.threads.len() - 1
        });
        let thread = thread as u32 + self.handed_over;
        self.trace.entries.push(TraceEntry { thread, at, event });
    }

    /// Looks for a word that was stored without the medium, and keeps the first.
    fn compare(&mut self, arena: &Arena) {
        if let (None, Some(image)) = (self.bypassed, &self.image) {
            self.bypassed = arena.first_difference(image).map(|index| index as u32);
        }
    }

    /// Counts a step of the operations under test. Returns `true` if the mutation removes it.
    fn is_skipped(
        &mut self,
        by_number: fn(u32) -> Mutation,
        by_place: Mutation,
        count: fn(&mut MutationSites) -> &mut u32,
    ) -> bool {
        if !self.begun {
            return false;
        }
        let number = count(&mut self.sites);
        *number += 1;
        self.mutation == Some(by_number(*number - 1)) || self.mutation == Some(by_place)
    }
}

#[expect(unsafe_code, reason = "Simulation is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and holds its reserve from the
// start.
// 2. Its words start as zeros or the initial image; it is private to the process. 3. Words are
//    atomics, stored with release and loaded with acquire ordering.
unsafe impl Simulation for Shared {
    fn hand_over(&self) {
        self.log.lock().handed_over += 1;
    }

    fn injects(&self, defect: Defect) -> bool {
        let log = self.log.lock();
        log.begun && log.mutation == Some(Mutation::Inject(defect))
    }

    fn base(&self) -> NonNull<u8> {
        self.arena.base()
    }

    fn len(&self) -> u64 {
        self.arena.len()
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        let mut log = self.log.lock();
        self.arena.grow(bytes)?;
        if let Some(image) = &log.image {
            image.grow(bytes)?;
        }
        log.write(Event::Grow { bytes: self.arena.len() }, Location::caller());
        Ok(())
    }

    fn sync_length(&self, at: CallSite) -> Result<(), MediumError> {
        let mut log = self.log.lock();
        if !(log.begun && log.mutation == Some(Mutation::NoSync(at))) {
            log.write(Event::SyncLength, at);
        }
        Ok(())
    }

    fn load(&self, word: &PmWord) -> u64 {
        let loads = self.loads.load(Ordering::Relaxed) + 1;
        self.loads.store(loads, Ordering::Relaxed);
        if loads > LOADS_MAX {
            Self::exhausted();
        }
        self.arena.load(word)
    }

    fn store(&self, word: &PmWord, value: u64, role: StoreRole, at: CallSite) {
        self.put(word, value, role, at);
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64, at: CallSite) -> Result<(), u64> {
        let index = self.arena.index(word);
        let mut log = self.log.lock();
        let found = self.arena.get(index);
        if found != old {
            return Err(found);
        }
        self.arena.set(index, new);
        if log.recording {
            log.expect(index, new);
            let event = Event::Store { word: index as u32, old, new, role: StoreRole::Transient };
            log.write(event, at);
        }
        Ok(())
    }

    fn fill(&self, target: &[PmWord], source: &[u8], at: CallSite) {
        assert!(source.len() <= target.len() * 8, "a fill must fit its target");
        let Some(first) = target.first().filter(|_| !source.is_empty()) else { return };
        let first = self.arena.index(first);
        let new: Vec<u64> = words_of(source).collect();
        let mut log = self.log.lock();
        for (index, &word) in (first..).zip(&new) {
            self.arena.set(index, word);
        }
        if log.recording {
            (first..).zip(&new).for_each(|(index, &word)| log.expect(index, word));
            log.write(Event::Fill { first: first as u32, new }, at);
        }
    }

    fn flush(&self, words: &[PmWord], at: CallSite) {
        let Some((first, lines)) = self.arena.lines_of(words) else { return };
        let mut log = self.log.lock();
        let by_place = Mutation::NoFlush(at);
        if !log.is_skipped(Mutation::SkipFlush, by_place, |sites| &mut sites.flushes) {
            log.write(Event::Flush { first, lines }, at);
        }
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
        self.log.lock().write(Event::Await(awaited), Location::caller());
    }

    fn fence(&self, at: CallSite) {
        let mut log = self.log.lock();
        if log.begun {
            log.compare(&self.arena);
        }
        let by_place = Mutation::NoFence(at);
        if !log.is_skipped(Mutation::SkipFence, by_place, |sites| &mut sites.fences) {
            log.write(Event::Fence, at);
        }
    }
}

impl From<&Recorder> for Simulated {
    fn from(medium: &Recorder) -> Self {
        Self::new(medium.shared.clone())
    }
}
