//! The medium on which threads under test meet: it records what each does, gives up the turn before
//! each access, and is as it was at the beginning once a play is over.

use super::history::Answer;
use super::stage;
use crate::arena::{Arena, words_of};
use crate::tape::{Entry, Event, Role, Sabotage};
use bristlecone_pmem::line::{LINE_BYTES, lines};
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Defect, Domain, Fenced, Medium, PmWord};
use core::panic::Location;
use core::ptr::NonNull;
use parking_lot::Mutex;
use std::sync::Arc;

/// A medium for players and for what comes before them. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    entries: Vec<Entry>,
    /// Words that were overwritten, with what they held.
    undo: Vec<(u32, u64)>,
    /// Whether events are written down.
    is_recording: bool,
    calls: Vec<Call>,
    /// What is wrong with what the players do.
    sabotage: Option<Sabotage>,
}

/// An operation under test, as it went. Its number is its place among all, in the order in which
/// they were invoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The player, counted from 0.
    pub(crate) player: usize,
    /// Its place in the player's part.
    pub(crate) place: usize,
    pub(crate) invoked: u32,
    /// When it was acknowledged; [`NEVER`](crate::program::NEVER) if it was not.
    pub(crate) returned: u32,
    pub(crate) answer: Answer,
}

impl Stage {
    /// A zeroed medium of `bytes`, which does not grow.
    pub(crate) fn new(bytes: u64) -> Self {
        let arena = Arena::new(bytes, bytes);
        Self { shared: Arc::new(Shared { arena, log: Mutex::default() }) }
    }

    /// Takes what there is for the beginning, to which [`rewind`](Self::rewind) goes back.
    pub(crate) fn settle(&self) {
        self.shared.log.lock().undo.clear();
    }

    /// Puts `sabotage` into what the players do.
    pub(crate) fn seed(&self, sabotage: Option<Sabotage>) {
        self.shared.log.lock().sabotage = sabotage;
    }

    /// Goes back to the beginning.
    pub(crate) fn rewind(&self) {
        let mut log = self.shared.log.lock();
        for (word, value) in log.undo.drain(..).rev() {
            self.shared.arena.set(word as usize, value);
        }
    }

    /// The words as they are.
    pub(crate) fn words(&self) -> Vec<u64> {
        let count = (self.shared.arena.len() / 8) as usize;
        (0..count).map(|index| self.shared.arena.get(index)).collect()
    }

    /// The first word that is not as in `expected`.
    pub(crate) fn differs(&self, expected: &[u64]) -> Option<u64> {
        let differs = (0..expected.len()).find(|&i| self.shared.arena.get(i) != expected[i]);
        differs.map(|index| index as u64 * 8)
    }

    /// Begins to write down events.
    pub(crate) fn record(&self) {
        let mut log = self.shared.log.lock();
        log.is_recording = true;
        log.entries.clear();
        log.calls.clear();
    }

    /// Ends that, and gives what was written down.
    pub(crate) fn recorded(&self) -> (Vec<Entry>, Vec<Call>) {
        let mut log = self.shared.log.lock();
        log.is_recording = false;
        (core::mem::take(&mut log.entries), core::mem::take(&mut log.calls))
    }

    /// A player invokes the operation at that place of its part; gives the operation's number.
    pub(crate) fn invoke(&self, place: usize) -> usize {
        stage::access();
        let mut log = self.shared.log.lock();
        let player = stage::player() as usize - 1;
        let (number, invoked) = (log.calls.len(), log.entries.len() as u32);
        let returned = crate::program::NEVER;
        log.calls.push(Call { player, place, invoked, returned, answer: Answer::Silence });
        log.write(Event::Invoke { operation: number as u32 });
        number
    }

    /// It is acknowledged.
    pub(crate) fn acknowledge(&self, number: usize, answer: Answer) {
        let mut log = self.shared.log.lock();
        let returned = log.entries.len() as u32;
        let call = &mut log.calls[number];
        (call.returned, call.answer) = (returned, answer);
        log.write(Event::Return { operation: number as u32 });
    }

    fn line_of(&self, line: usize) -> u32 {
        ((line - self.shared.arena.base().as_ptr().addr()) / LINE_BYTES) as u32
    }

    fn put(&self, word: &PmWord, new: u64, role: Role) {
        stage::access();
        let index = self.shared.arena.index(word);
        self.replace(&mut self.shared.log.lock(), index, new, role);
    }

    fn replace(&self, log: &mut Log, index: usize, new: u64, role: Role) {
        let old = self.shared.arena.get(index);
        self.shared.arena.set(index, new);
        log.undo.push((index as u32, old));
        log.write(Event::Store { word: index as u32, old, new, role });
    }
}

impl Log {
    /// Writes it down, unless it is what is to be left out.
    fn write_unless(&mut self, skipped: Sabotage, event: Event) {
        if self.sabotage != Some(skipped) {
            self.write(event);
        }
    }

    fn write(&mut self, event: Event) {
        if self.is_recording {
            let at = Location::caller(); // What is left out is asked for before.
            self.entries.push(Entry { thread: stage::player(), at, event });
        }
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and never grows. 2. Its words start
// as zeros; it is private to the process. 3. Words are atomics, stored with release and loaded with
// acquire ordering.
unsafe impl Medium for Stage {
    const INJECTS_DEFECTS: bool = true;

    fn injects(&self, defect: Defect) -> bool {
        let log = self.shared.log.lock();
        log.is_recording && log.sabotage == Some(Sabotage::Seed(defect))
    }

    fn base(&self) -> NonNull<u8> {
        self.shared.arena.base()
    }

    #[inline(always)]
    fn len(&self) -> u64 {
        self.shared.arena.len()
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.shared.arena.grow(bytes)
    }

    fn domain(&self) -> Domain {
        Domain::Adr
    }

    #[inline]
    fn load(&self, word: &PmWord) -> u64 {
        stage::access();
        self.shared.arena.get(self.shared.arena.index(word))
    }

    fn store(&self, word: &PmWord, value: u64) {
        self.put(word, value, Role::Data);
    }

    fn store_transient(&self, word: &PmWord, value: u64) {
        self.put(word, value, Role::Transient);
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        stage::access();
        let index = self.shared.arena.index(word);
        let found = self.shared.arena.get(index);
        if found != old {
            return Err(found);
        }
        self.replace(&mut self.shared.log.lock(), index, new, Role::Transient);
        Ok(())
    }

    /// At once: nobody else reaches the words yet.
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        assert!(source.len() <= target.len() * 8, "a fill must fit its target");
        let Some(first) = target.first().filter(|_| !source.is_empty()) else { return };
        stage::access();
        let first = self.shared.arena.index(first);
        let new: Vec<u64> = words_of(source).collect();
        let mut log = self.shared.log.lock();
        for (index, &word) in (first..).zip(&new) {
            log.undo.push((index as u32, self.shared.arena.get(index)));
            self.shared.arena.set(index, word);
        }
        log.write(Event::Fill { first: first as u32, new });
    }

    #[track_caller]
    fn flush(&self, words: &[PmWord]) {
        let skipped = Sabotage::NoFlush(Location::caller());
        let mut touched = lines(words.as_ptr().addr(), core::mem::size_of_val(words));
        let Some(first) = touched.next().map(|line| self.line_of(line)) else { return };
        stage::access();
        let lines = 1 + touched.count() as u32;
        self.shared.log.lock().write_unless(skipped, Event::Flush { first, lines });
    }

    #[track_caller]
    fn fence(&self) -> Fenced {
        let skipped = Sabotage::NoFence(Location::caller());
        stage::access();
        self.shared.log.lock().write_unless(skipped, Event::Fence);
        Fenced::after_fence()
    }

    #[track_caller]
    fn persist(&self, words: &[PmWord]) -> Fenced {
        self.flush(words);
        self.fence()
    }

    fn commit(&self, word: &PmWord, value: u64, _published: Fenced) {
        self.put(word, value, Role::Commit);
    }
}
