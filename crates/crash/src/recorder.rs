//! The medium that writes down everything that is done to it.
//!
//! 1. Memory always holds the newest state; the tape says in which order it came about.
//! 2. A store that goes around the medium leaves memory and the recorder's own image different:
//!    they are compared at the fences of the operations under test and at the end.
//! 3. A compare-and-swap is recorded as a plain store. On x86 a locked instruction would complete
//!    the flushes before it as a fence does; on other processors it does not, so nothing may rely
//!    on it.

use crate::arena::{Arena, words_of};
use crate::tape::{Entry, Event, Role, Sabotage, Sites, Tape};
use bristlecone_pmem::line::{LINE_BYTES, lines};
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Domain, Fenced, Medium, PmWord};
use core::ptr::NonNull;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::ThreadId;

/// A medium that records. Clones share memory and tape, so that a test can keep one while a pool
/// owns another.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    tape: Tape,
    threads: Vec<ThreadId>,
    /// What memory should hold.
    image: Vec<u64>,
    /// The first word found to differ from the image.
    bypassed: Option<u32>,
    /// Whether anything is written down at all.
    recording: bool,
    /// Whether the operations under test have begun.
    begun: bool,
    sabotage: Option<Sabotage>,
    sites: Sites,
}

/// A store went around the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bypassed {
    /// Offset of the word.
    pub(crate) at: u64,
}

impl Recorder {
    /// A zeroed medium of `bytes` that can grow to `reserve_bytes`, recording from the first store.
    pub(crate) fn new(bytes: u64, reserve_bytes: u64, sabotage: Option<Sabotage>) -> Self {
        Self::with(Arena::new(bytes, reserve_bytes), Vec::new(), sabotage, true)
    }

    /// The same, without a tape: for finding out what an operation does.
    pub(crate) fn blank(bytes: u64, reserve_bytes: u64) -> Self {
        Self::with(Arena::new(bytes, reserve_bytes), Vec::new(), None, false)
    }

    /// A medium of `bytes` that begins as `initial`, all of it durable.
    pub(crate) fn resume(initial: Vec<u64>, bytes: u64, reserve_bytes: u64) -> Self {
        let arena = Arena::new(bytes, reserve_bytes);
        for (index, &word) in initial.iter().enumerate() {
            arena.set(index, word);
        }
        Self::with(arena, initial, None, true)
    }

    fn with(arena: Arena, initial: Vec<u64>, sabotage: Option<Sabotage>, recording: bool) -> Self {
        let mut image = if recording { vec![0; arena.cells().len()] } else { Vec::new() };
        image[..initial.len()].copy_from_slice(&initial);
        let tape = Tape { initial, bytes: arena.len(), ..Tape::default() };
        let log = Log {
            tape,
            threads: Vec::new(),
            image,
            bypassed: None,
            recording,
            begun: false,
            sabotage,
            sites: Sites::default(),
        };
        Self { shared: Arc::new(Shared { arena, log: Mutex::new(log) }) }
    }

    /// Ends the setup: the operations under test come next.
    pub(crate) fn begin(&self) {
        let mut log = self.shared.log.lock();
        log.compare(&self.shared.arena);
        log.tape.begin = log.tape.entries.len() as u32;
        log.begun = true;
    }

    /// Marks the beginning of an operation under test.
    pub(crate) fn invoke(&self, operation: u32) {
        self.shared.log.lock().write(Event::Invoke { operation });
    }

    /// Marks that an operation under test is acknowledged.
    pub(crate) fn acknowledge(&self, operation: u32) {
        self.shared.log.lock().write(Event::Return { operation });
    }

    /// The tape so far, and how many ordering steps the operations under test took.
    pub(crate) fn finish(&self) -> Result<(Tape, Sites), Bypassed> {
        let mut log = self.shared.log.lock();
        log.compare(&self.shared.arena);
        match log.bypassed {
            Some(word) => Err(Bypassed { at: u64::from(word) * 8 }),
            None => Ok((core::mem::take(&mut log.tape), log.sites)),
        }
    }

    fn line_of(&self, line: usize) -> u32 {
        ((line - self.shared.arena.base().as_ptr().addr()) / LINE_BYTES) as u32
    }

    fn put(&self, word: &PmWord, new: u64, role: Role) {
        let index = self.shared.arena.index(word);
        let mut log = self.shared.log.lock();
        let old = self.shared.arena.get(index);
        self.shared.arena.set(index, new);
        if log.recording {
            log.image[index] = new;
            log.write(Event::Store { word: index as u32, old, new, role });
        }
    }
}

impl Log {
    fn write(&mut self, event: Event) {
        if !self.recording {
            return;
        }
        let thread = std::thread::current().id();
        let known = self.threads.iter().position(|&known| known == thread);
        let thread = known.unwrap_or_else(|| {
            self.threads.push(thread);
            self.threads.len() - 1
        });
        self.tape.entries.push(Entry { thread: thread as u32, event });
    }

    /// Looks for a word that was stored without the medium. The first one found stays.
    fn compare(&mut self, arena: &Arena) {
        if self.bypassed.is_none() && self.recording {
            let mut pairs = arena.cells().iter().zip(&self.image);
            let differs = pairs
                .position(|(cell, &word)| cell.load(core::sync::atomic::Ordering::Relaxed) != word);
            self.bypassed = differs.map(|index| index as u32);
        }
    }

    /// Counts a step of the operations under test; whether it is the one to leave out.
    fn is_sabotaged(
        &mut self,
        step: fn(u32) -> Sabotage,
        count: fn(&mut Sites) -> &mut u32,
    ) -> bool {
        if !self.begun {
            return false;
        }
        let number = count(&mut self.sites);
        *number += 1;
        self.sabotage == Some(step(*number - 1))
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and holds its reserve from the start.
// 2. Its words start as zeros or the initial image; it is private to the process. 3. Words are
// atomics, stored with release and loaded with acquire ordering.
unsafe impl Medium for Recorder {
    fn base(&self) -> NonNull<u8> {
        self.shared.arena.base()
    }

    fn len(&self) -> u64 {
        self.shared.arena.len()
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        let mut log = self.shared.log.lock();
        self.shared.arena.grow(bytes)?;
        log.write(Event::Grow { bytes: self.shared.arena.len() });
        Ok(())
    }

    fn domain(&self) -> Domain {
        Domain::Adr
    }

    fn load(&self, word: &PmWord) -> u64 {
        self.shared.arena.get(self.shared.arena.index(word))
    }

    fn store(&self, word: &PmWord, value: u64) {
        self.put(word, value, Role::Data);
    }

    fn store_transient(&self, word: &PmWord, value: u64) {
        self.put(word, value, Role::Transient);
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        let index = self.shared.arena.index(word);
        let mut log = self.shared.log.lock();
        let found = self.shared.arena.get(index);
        if found != old {
            return Err(found);
        }
        self.shared.arena.set(index, new);
        if log.recording {
            log.image[index] = new;
            log.write(Event::Store { word: index as u32, old, new, role: Role::Transient });
        }
        Ok(())
    }

    fn fill(&self, target: &[PmWord], source: &[u8]) {
        assert!(source.len() <= target.len() * 8, "a fill must fit its target");
        let Some(first) = target.first().filter(|_| !source.is_empty()) else { return };
        let first = self.shared.arena.index(first);
        let new: Vec<u64> = words_of(source).collect();
        let mut log = self.shared.log.lock();
        for (index, &word) in (first..).zip(&new) {
            self.shared.arena.set(index, word);
        }
        if log.recording {
            log.image[first..first + new.len()].copy_from_slice(&new);
            log.write(Event::Fill { first: first as u32, new });
        }
    }

    fn flush(&self, words: &[PmWord]) {
        let mut touched = lines(words.as_ptr().addr(), core::mem::size_of_val(words));
        let Some(first) = touched.next().map(|line| self.line_of(line)) else { return };
        let mut log = self.shared.log.lock();
        if !log.is_sabotaged(Sabotage::SkipFlush, |sites| &mut sites.flushes) {
            log.write(Event::Flush { first, lines: 1 + touched.count() as u32 });
        }
    }

    fn fence(&self) -> Fenced {
        let mut log = self.shared.log.lock();
        if log.begun {
            log.compare(&self.shared.arena);
        }
        if !log.is_sabotaged(Sabotage::SkipFence, |sites| &mut sites.fences) {
            log.write(Event::Fence);
        }
        Fenced::witness()
    }

    fn commit(&self, word: &PmWord, value: u64, _published: Fenced) {
        self.put(word, value, Role::Commit);
    }
}
