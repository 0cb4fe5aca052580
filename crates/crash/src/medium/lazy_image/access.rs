//! The accesses of a recovery to the lazy image, and the forks at its reads.

use super::Noted;
use super::state::State;
use super::{FRESH_SHIFT, LazyImage, OPEN_AND_FRESH, SLOT_SHIFT, Shared};
use crate::medium::arena::words_of;
use crate::model::history::SUPERBLOCK_BYTES;
use crate::trace::{CallSite, StoreRole};
use bristlecone_pmem::medium::{MediumError, Simulation};
use bristlecone_pmem::{Defect, PmWord, Simulated};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// The number of accesses after which a run counts as one that never ends.
const STEPS_MAX: u64 = 1 << 21;

/// The payload that unwinds a run that would not end.
#[derive(Debug)]
pub(crate) struct StepsExhausted;

impl Shared {
    #[inline(always)]
    fn entry_at(&self, index: usize) -> u64 {
        self.table[index >> self.unit_shift].load(Ordering::Relaxed)
    }

    fn set_entry_at(&self, index: usize, entry: u64) {
        self.table[index >> self.unit_shift].store(entry, Ordering::Relaxed);
    }

    #[inline(always)]
    fn bit_of(&self, index: usize) -> u64 {
        1 << (index & ((1 << self.unit_shift) - 1))
    }

    #[inline(always)]
    fn step(&self) {
        let steps = self.steps.load(Ordering::Relaxed) + 1;
        self.steps.store(steps, Ordering::Relaxed);
        if steps > STEPS_MAX {
            Self::exhausted();
        }
    }

    #[cold]
    fn exhausted() {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(StepsExhausted));
        }
    }

    #[inline(always)]
    fn is_fixed(&self, index: usize) -> bool {
        self.entry_at(index) & (self.bit_of(index) * OPEN_AND_FRESH) == 0
    }

    /// Reads a word for a latch if `of_latch` is set, else for other code.
    fn read(&self, index: usize, of_latch: bool) -> u64 {
        if self.is_fixed(index) { self.arena.get(index) } else { self.read_open(index, of_latch) }
    }

    /// Reads a word of a unit with several contents, and fixes its value in memory. Notes a word
    /// that is to be noted.
    #[cold]
    #[inline(never)]
    fn read_open(&self, index: usize, of_latch: bool) -> u64 {
        let state = &mut *self.state.lock();
        let base = self.arena.get(index);
        let (entry, bit) = (self.entry_at(index), self.bit_of(index));
        // A latch takes a stale word for free whatever it holds, so nothing depends on that word.
        if entry & bit << FRESH_SHIFT != 0 && !(of_latch && state.is_stale_latch(base)) {
            state.noted.push(Noted { word: index as u32, mask: u64::MAX, value: base });
            self.set_entry_at(index, entry & !(bit << FRESH_SHIFT));
        }
        if entry & bit == 0 {
            return base;
        }
        let slot = (entry >> SLOT_SHIFT) as u32;
        let place = index & ((1 << self.unit_shift) - 1);
        let mut now = core::mem::take(&mut state.slots[slot as usize].now);
        if of_latch && let Some(value) = state.free_latch(slot, &now, place, base) {
            state.slots[slot as usize].now = now;
            return value;
        }
        let value = state.decide(slot, &mut now, (index as u32, place), base, u64::MAX);
        state.slots[slot as usize].now = now;
        self.put(state, index, value);
        value
    }

    /// Reads a word with a latch beside the bits `kept`.
    fn read_beside(&self, index: usize, kept: u64) -> u64 {
        if self.is_fixed(index) {
            return self.arena.get(index);
        }
        let state = &mut *self.state.lock();
        let base = self.arena.get(index);
        let (entry, bit) = (self.entry_at(index), self.bit_of(index));
        // The word stays fresh: other code that loads it depends on all of its bits.
        let noted = Noted { word: index as u32, mask: kept, value: base & kept };
        if entry & bit << FRESH_SHIFT != 0 && state.noted_beside.insert(noted) {
            state.noted.push(noted);
        }
        if entry & bit == 0 {
            return base;
        }
        let slot = (entry >> SLOT_SHIFT) as u32;
        let place = index & ((1 << self.unit_shift) - 1);
        let mut now = core::mem::take(&mut state.slots[slot as usize].now);
        let value = state.decide(slot, &mut now, (index as u32, place), base, kept);
        state.slots[slot as usize].now = now;
        state.touch(slot);
        value
    }

    /// Stores a word for the recovery.
    fn write(&self, state: &mut State, index: usize, value: u64) {
        state.has_stored |= index as u64 * 8 >= SUPERBLOCK_BYTES;
        self.put(state, index, value);
    }

    /// Stores a word in memory for the rest of the run.
    fn put(&self, state: &mut State, index: usize, value: u64) {
        let (entry, bit) = (self.entry_at(index), self.bit_of(index));
        let is_fresh = entry & bit << FRESH_SHIFT != 0;
        state.journal.push((index as u32, self.arena.get(index), is_fresh));
        self.arena.set(index, value);
        if entry & (bit * OPEN_AND_FRESH) != 0 {
            self.set_entry_at(index, entry & !(bit * OPEN_AND_FRESH));
        }
        if entry & bit != 0 {
            state.touch((entry >> SLOT_SHIFT) as u32);
        }
    }
}

#[expect(unsafe_code, reason = "Simulation is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and holds its reserve from the
// start; its length shrinks only between runs, when no pool is open on it. 2. Its words are
// initialised and private to the process. 3. Words are atomics, stored with release and loaded with
// acquire ordering; a word that is not fixed yet is fixed by its first load, for the rest of the
// run.
unsafe impl Simulation for Shared {
    fn injects(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn base(&self) -> NonNull<u8> {
        self.arena.base()
    }

    fn len(&self) -> u64 {
        self.arena.len()
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.arena.grow(bytes)
    }

    fn load(&self, word: &PmWord) -> u64 {
        self.step();
        let index = self.arena.index(word);
        if self.is_fixed(index) { self.arena.load(word) } else { self.read_open(index, false) }
    }

    fn load_transient(&self, word: &PmWord) -> u64 {
        self.step();
        self.read(self.arena.index(word), true)
    }

    fn load_beside(&self, word: &PmWord, kept: u64) -> u64 {
        self.step();
        self.read_beside(self.arena.index(word), kept)
    }

    fn store(&self, word: &PmWord, value: u64, _: StoreRole, _: CallSite) {
        self.step();
        let index = self.arena.index(word);
        self.write(&mut self.state.lock(), index, value);
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64, _: CallSite) -> Result<(), u64> {
        self.step();
        let index = self.arena.index(word);
        let found = self.read(index, true);
        if found != old {
            return Err(found);
        }
        self.write(&mut self.state.lock(), index, new);
        Ok(())
    }

    fn cas_beside(
        &self,
        word: &PmWord,
        old: u64,
        new: u64,
        kept: u64,
        _: CallSite,
    ) -> Result<(), u64> {
        self.step();
        let index = self.arena.index(word);
        let found = self.read_beside(index, kept);
        if found != old {
            return Err(found);
        }
        self.write(&mut self.state.lock(), index, new);
        Ok(())
    }

    fn fill(&self, target: &[PmWord], source: &[u8], _: CallSite) {
        assert!(source.len() <= target.len() * 8, "a fill must fit its target");
        let Some(first) = target.first().filter(|_| !source.is_empty()) else { return };
        let first = self.arena.index(first);
        let state = &mut *self.state.lock();
        for (index, value) in (first..).zip(words_of(source)) {
            self.write(state, index, value);
        }
    }

    fn flush(&self, _: &[PmWord], _: CallSite) {}

    fn fence(&self, _: CallSite) {}
}

impl From<&LazyImage> for Simulated {
    fn from(medium: &LazyImage) -> Self {
        Self::new(medium.shared.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PersistenceModel;
    use crate::medium::arena::Arena;
    use crate::model::history::StoreHistory;
    use crate::trace::{Event, Trace, TraceEntry};
    use core::panic::Location;
    use std::sync::Arc;

    const BYTES: u64 = 4096;

    /// Returns a history that stores word 64 and guarantees it, then stores word 72.
    fn history(mode: PersistenceModel) -> Arc<StoreHistory> {
        let store = |word, new| Event::Store { word, old: 0, new, role: StoreRole::Data };
        let events =
            [store(64, 1), Event::Flush { first: 8, lines: 1 }, Event::Fence, store(72, 2)];
        let entries = events.map(|event| TraceEntry { thread: 0, at: Location::caller(), event });
        Arc::new(StoreHistory::compile(
            &Trace { bytes: BYTES, entries: entries.into(), ..Trace::default() },
            mode,
        ))
    }

    /// Returns the noted words, all of whose bits count, with their values.
    fn notes(image: &LazyImage) -> Vec<(u32, u64)> {
        let whole = |noted: &Noted| (noted.mask == u64::MAX).then_some((noted.word, noted.value));
        image.noted().iter().map(|noted| whole(noted).unwrap()).collect()
    }

    fn what_is_read_of_the_start_is_noted_and_nothing_else(mode: PersistenceModel) {
        let history = history(mode);
        let image = LazyImage::new(Arc::clone(&history), BYTES, BYTES, None);
        let start = Arena::new(BYTES, BYTES);
        (0..512).for_each(|index| start.set(index, 1000 + index as u64));
        image.reset(&start);
        history.steps.iter().for_each(|&(_, step)| image.advance(step));
        let _ = image.arm(false);
        let mut found = Vec::new();
        loop {
            image.start(None);
            assert_eq!((image.shared.read(8, false), image.shared.read(64, false)), (1008, 1));
            image.shared.write(&mut image.shared.state.lock(), 16, 5);
            assert_eq!(image.shared.read(16, false), 5);
            found.push(image.shared.read(72, false));
            assert_eq!(image.shared.read(72, false), found[found.len() - 1]);
            image.restore();
            if !image.next_path() {
                break;
            }
        }
        // Word 72 may hold either value. Word 64 holds the guaranteed value, and word 16 the value
        // that each run stored.
        assert_eq!(found, [2, 1072]);
        assert_eq!(notes(&image), [(8, 1008), (72, 1072)]);
        // A run without that store sees the word of the start.
        image.start(None);
        assert_eq!(image.shared.read(16, false), 1016);
        image.restore();
        assert_eq!(notes(&image), [(8, 1008), (72, 1072), (16, 1016)]);
        image.disarm();
        image.reset(&start);
        assert!(image.noted().is_empty());
        assert_eq!(image.shared.read(72, false), 1072);
    }

    #[test]
    fn notes_are_right_where_lines_persist() {
        what_is_read_of_the_start_is_noted_and_nothing_else(PersistenceModel::Px86);
    }

    #[test]
    fn notes_are_right_where_words_persist() {
        what_is_read_of_the_start_is_noted_and_nothing_else(PersistenceModel::Word);
    }

    #[test]
    fn a_latch_word_forks_for_code_that_is_no_latch() {
        const HELD: u64 = 1 << 40 | 1; // held in the first use of the pool
        let latch = Event::Store { word: 64, old: 0, new: HELD, role: StoreRole::Transient };
        let other = Event::Store { word: 72, old: 0, new: 2, role: StoreRole::Data };
        let entry = |event| TraceEntry { thread: 0, at: Location::caller(), event };
        let entries = vec![entry(latch), entry(other)];
        let trace = Trace { bytes: BYTES, entries, ..Trace::default() };
        let history = Arc::new(StoreHistory::compile(&trace, PersistenceModel::Px86));
        let image = LazyImage::new(Arc::clone(&history), BYTES, BYTES, None);
        history.steps.iter().for_each(|&(_, step)| image.advance(step));
        let _ = image.arm(true);
        let mut found = Vec::new();
        loop {
            image.start(None);
            image.opened(2);
            assert_eq!(image.shared.read(64, true), HELD);
            found.push(image.shared.read(64, false));
            assert_eq!(image.shared.read(64, true), found[found.len() - 1]);
            image.restore();
            if !image.next_path() {
                break;
            }
        }
        assert_eq!(found, [HELD, 0]);
        // A latch alone never forks.
        image.start(None);
        image.opened(2);
        assert_eq!(image.shared.read(64, true), HELD);
        image.restore();
        assert!(!image.next_path());
    }

    /// A word with a latch in its low bits beside a link, which alone forks the run, and which
    /// alone is noted.
    #[test]
    fn a_latch_beside_a_link_forks_for_the_link() {
        const LINK: u64 = !0 << 35;
        let link = |units: u64| units << 35;
        let store = |old, new, role| Event::Store { word: 64, old, new, role };
        let entry = |event| TraceEntry { thread: 0, at: Location::caller(), event };
        let entries = vec![
            entry(store(link(3), link(3) | 1, StoreRole::Transient)),
            entry(store(link(3) | 1, link(5) | 1, StoreRole::Data)),
            entry(store(link(5) | 1, link(5) | 4, StoreRole::Transient)),
        ];
        let trace = Trace { bytes: BYTES, entries, ..Trace::default() };
        let history = Arc::new(StoreHistory::compile(&trace, PersistenceModel::Px86));
        let image = LazyImage::new(Arc::clone(&history), BYTES, BYTES, None);
        let start = Arena::new(BYTES, BYTES);
        start.set(64, link(3));
        image.reset(&start);
        history.steps.iter().for_each(|&(_, step)| image.advance(step));
        let _ = image.arm(false);
        let mut found = Vec::new();
        loop {
            image.start(None);
            let value = image.shared.read_beside(64, LINK);
            assert_eq!(image.shared.read_beside(64, LINK), value);
            found.push(value);
            image.restore();
            if !image.next_path() {
                break;
            }
        }
        assert_eq!(found, [link(5) | 4, link(3) | 1]);
        assert_eq!(image.noted(), [Noted { word: 64, mask: LINK, value: link(3) }]);
    }
}
