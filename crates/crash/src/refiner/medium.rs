//! What a recovery does to the medium, and where it forks.

use super::Refiner;
use super::core::Core;
use crate::arena::words_of;
use crate::candidates::Contents;
use crate::program::SUPERBLOCK_BYTES;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::sync::generation_of;
use bristlecone_pmem::{Defect, Domain, Fenced, Medium, PmWord};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// Accesses after which a run counts as one that never ends.
const STEPS_MAX: u64 = 1 << 21;

/// Carried by the unwinding out of a run that would not end.
#[derive(Debug)]
pub(crate) struct StepsExhausted;

impl Refiner {
    #[inline(always)]
    fn slot_at(&self, index: usize) -> u32 {
        self.shared.table[index >> self.shared.unit_shift].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn step(&self) {
        let steps = self.shared.steps.load(Ordering::Relaxed) + 1;
        self.shared.steps.store(steps, Ordering::Relaxed);
        if steps > STEPS_MAX && !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(StepsExhausted));
        }
    }

    #[inline(always)]
    fn read(&self, index: usize) -> u64 {
        match self.slot_at(index) {
            0 => self.shared.arena.get(index),
            _ => self.decide_word(index),
        }
    }

    /// Reads a word of a unit with several contents.
    #[cold]
    fn decide_word(&self, index: usize) -> u64 {
        let core = &mut *self.shared.core.lock();
        let base = self.shared.arena.get(index);
        let Some(slot) = self.slot_at(index).checked_sub(1) else { return base };
        let place = index & ((1 << self.shared.unit_shift) - 1);
        let unit = &mut core.slots[slot as usize];
        if unit.overlay & (1 << place) != 0 {
            return base;
        }
        let contents = Contents { items: &unit.items, all: &core.program.items, base };
        core.values.clear();
        contents.values(&unit.now, place, &mut core.values);
        let of = core.values.len() as u32;
        if of == 1 {
            return core.values[0];
        }
        let is_stale =
            |&value: &u64| value == 0 || (1..core.generation).contains(&generation_of(value));
        if core.values.iter().all(is_stale) && contents.is_latch(place) {
            let newest = core.values[0];
            self.put(core, index, newest);
            return newest;
        }
        let taken = core.choose(index as u32, of);
        let value = core.values[taken as usize];
        let unit = &mut core.slots[slot as usize];
        let contents = Contents { items: &unit.items, all: &core.program.items, base };
        contents.keep(&mut unit.now, place, value);
        core.touch(slot);
        value
    }

    /// Stores a word, as the recovery asks for it.
    fn write(&self, core: &mut Core, index: usize, value: u64) {
        core.has_stored |= index as u64 * 8 >= SUPERBLOCK_BYTES;
        self.put(core, index, value);
    }

    fn put(&self, core: &mut Core, index: usize, value: u64) {
        core.journal.push((index as u32, self.shared.arena.get(index)));
        self.shared.arena.set(index, value);
        if let Some(slot) = self.slot_at(index).checked_sub(1) {
            let place = index & ((1 << self.shared.unit_shift) - 1);
            core.slots[slot as usize].overlay |= 1 << place;
            core.touch(slot);
        }
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and holds its reserve from the start;
// its length shrinks only between runs, when no pool is open on it. 2. Its words are initialised and
// private to the process. 3. Words are atomics, stored with release and loaded with acquire
// ordering; a word that is not decided yet is decided by its first load, for the rest of the run.
unsafe impl Medium for Refiner {
    const SEEDED: bool = true;

    fn seeded(&self, defect: Defect) -> bool {
        self.shared.defect == Some(defect)
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
        self.step();
        self.read(self.shared.arena.index(word))
    }

    fn store(&self, word: &PmWord, value: u64) {
        self.step();
        let index = self.shared.arena.index(word);
        self.write(&mut self.shared.core.lock(), index, value);
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.step();
        let index = self.shared.arena.index(word);
        let found = self.read(index);
        if found != old {
            return Err(found);
        }
        self.write(&mut self.shared.core.lock(), index, new);
        Ok(())
    }

    fn fill(&self, target: &[PmWord], source: &[u8]) {
        assert!(source.len() <= target.len() * 8, "a fill must fit its target");
        let Some(first) = target.first().filter(|_| !source.is_empty()) else { return };
        let first = self.shared.arena.index(first);
        let core = &mut *self.shared.core.lock();
        for (index, value) in (first..).zip(words_of(source)) {
            self.write(core, index, value);
        }
    }

    fn flush(&self, _words: &[PmWord]) {}

    fn fence(&self) -> Fenced {
        Fenced::witness()
    }
}
