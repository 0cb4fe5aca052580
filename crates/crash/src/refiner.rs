//! The medium that recovery runs on: memory after a crash, decided only where it is looked at.
//!
//! 1. A unit begins with all contents that it may have. A load of a word on which they differ forks
//!    the run: it goes on with one value, and a replay from the start takes each of the others.
//! 2. A replay takes the choices of the path so far, then the first value at each new fork. A
//!    recovery that reads differently for the same contents is not deterministic: that is reported.
//! 3. A store to a unit lies on top of whatever it holds, and decides nothing.
//! 4. A latch word of an earlier generation reads as free whatever else it says, so its contents need
//!    no fork: the newest is taken for good, and decides nothing. Where one content is of this
//!    generation, or no latch word, the run forks as for any word.
//! 5. One memory serves all runs: what a run stored or decided is undone after it.
//! 6. One thread at a time runs on it, so that a replay meets the same forks.
//! 7. Memory holds what is guaranteed. The words of a unit with several contents are in its items.

use crate::arena::{Arena, words_of};
use crate::candidates::{Contents, Cube, count};
use crate::program::{Program, Step};
use crate::residue::Residue;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::sync::generation_of;
use bristlecone_pmem::{Domain, Fenced, Medium, PmWord};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Accesses after which a run counts as one that never ends.
const STEPS_MAX: u64 = 1 << 21;

/// Carried by the unwinding out of a run that would not end.
#[derive(Debug)]
pub(crate) struct StepsExhausted;

/// A medium in a state that is not wholly decided. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Refiner {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    /// For each unit, its slot plus one, or 0 if it has one content, which is in memory.
    table: Box<[AtomicU32]>,
    unit_shift: u32,
    steps: AtomicU64,
    core: Mutex<Core>,
}

#[derive(Debug)]
struct Core {
    program: Arc<Program>,
    slots: Vec<Unit>,
    slot_of: HashMap<u32, u32>,
    /// Slots to be put back after the run.
    touched: Vec<u32>,
    /// Words that the run overwrote, with what they held.
    journal: Vec<(u32, u64)>,
    path: Vec<Fork>,
    depth: usize,
    /// Choices at random instead, from this state.
    sampling: Option<u64>,
    is_deterministic: bool,
    len: u64,
    /// Items stored so far.
    stored: usize,
    /// The slot whose newest item must be there, while an event is explored.
    armed: Option<u32>,
    values: Vec<u64>,
    /// The pool's generation in this run; 0 until it is known.
    generation: u64,
}

#[derive(Debug)]
struct Unit {
    number: u32,
    /// What is stored and not guaranteed, oldest first.
    items: Vec<u32>,
    /// All contents that are possible at this event.
    base: Vec<Cube>,
    /// Those that agree with what the run has seen.
    now: Vec<Cube>,
    /// Words that the run has stored.
    overlay: u8,
    is_touched: bool,
}

/// A fork on the path: which of how many values was taken for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fork {
    word: u32,
    taken: u32,
    of: u32,
}

/// What was lost in the contents that a run ended with, at the least: item and words.
pub(crate) type Lost = Vec<(u32, u8)>;

impl Refiner {
    /// A medium of `bytes` that begins as `initial`, before the first step of `program`.
    pub(crate) fn new(
        program: Arc<Program>,
        initial: &[u64],
        bytes: u64,
        reserve_bytes: u64,
    ) -> Self {
        let arena = Arena::new(bytes, reserve_bytes);
        for (index, &word) in initial.iter().enumerate() {
            arena.set(index, word);
        }
        let unit_shift = program.unit_words.trailing_zeros();
        let units = arena.cells().len() >> unit_shift;
        let table = core::iter::repeat_with(AtomicU32::default).take(units).collect();
        let core = Core {
            program,
            slots: Vec::new(),
            slot_of: HashMap::new(),
            touched: Vec::new(),
            journal: Vec::new(),
            path: Vec::new(),
            depth: 0,
            sampling: None,
            is_deterministic: true,
            len: bytes,
            stored: 0,
            armed: None,
            values: Vec::new(),
            generation: 0,
        };
        let steps = AtomicU64::new(0);
        Self {
            shared: Arc::new(Shared { arena, table, unit_shift, steps, core: Mutex::new(core) }),
        }
    }

    /// Begins another program on the same memory, after [`end`](Self::end) or as new.
    pub(crate) fn begin(&self, program: Arc<Program>) {
        let core = &mut *self.shared.core.lock();
        debug_assert!(core.slots.is_empty() && core.journal.is_empty());
        core.program = program;
    }

    /// Forgets the program, and puts memory back to `base`, between events.
    pub(crate) fn end(&self, base: &[u64]) {
        let core = &mut *self.shared.core.lock();
        debug_assert!(core.journal.is_empty() && core.touched.is_empty() && core.armed.is_none());
        for unit in core.slots.drain(..) {
            self.shared.table[unit.number as usize].store(0, Ordering::Relaxed);
            let first = (unit.number as usize) << self.shared.unit_shift;
            for (index, &word) in (first..).zip(&base[first..first + (1 << self.shared.unit_shift)])
            {
                self.shared.arena.set(index, word);
            }
        }
        core.slot_of.clear();
        core.stored = 0;
    }

    /// Takes a step of the program, between events.
    pub(crate) fn advance(&self, step: Step) {
        let core = &mut *self.shared.core.lock();
        debug_assert!(core.journal.is_empty() && core.touched.is_empty() && core.armed.is_none());
        match step {
            Step::Store(item) => {
                let slot = core.slot(core.program.items[item as usize].unit);
                core.slots[slot as usize].items.push(item);
                core.stored = item as usize + 1;
                self.rebuild(core, slot);
            }
            Step::Seal { unit, upto } => {
                let slot = core.slot(unit);
                self.seal(core, slot, upto);
                self.rebuild(core, slot);
            }
            Step::Grow(bytes) => {
                core.len = bytes;
                self.shared.arena.set_len(bytes);
            }
        }
    }

    /// Puts the items up to that time into memory.
    fn seal(&self, core: &mut Core, slot: u32, upto: u32) {
        let unit = &mut core.slots[slot as usize];
        let all = &core.program.items;
        let sealed = unit.items.partition_point(|&item| all[item as usize].time <= upto);
        for item in unit.items.drain(..sealed) {
            let item = &all[item as usize];
            let first = (unit.number as usize) << self.shared.unit_shift;
            for place in (0..8).filter(|place| item.mask & (1 << place) != 0) {
                self.shared.arena.set(first + place, item.values[place]);
            }
        }
    }

    fn rebuild(&self, core: &mut Core, slot: u32) {
        let unit = &mut core.slots[slot as usize];
        unit.base.clear();
        unit.base.push(Cube::BASE);
        for (number, &item) in (1..).zip(&unit.items) {
            unit.base.push(Cube::newest(number, core.program.items[item as usize].mask));
        }
        unit.now.clone_from(&unit.base);
        let entry = if unit.items.is_empty() { 0 } else { slot + 1 };
        self.shared.table[unit.number as usize].store(entry, Ordering::Relaxed);
    }

    /// Begins an event: a crash right after the newest store, which is there, or, with `newest`
    /// false, at a moment without a store. Gives how many images that is.
    pub(crate) fn arm(&self, newest: bool) -> (u128, Residue) {
        let core = &mut *self.shared.core.lock();
        if newest {
            let unit = core.program.items[core.stored - 1].unit;
            let slot = core.slot(unit);
            core.armed = Some(slot);
            let unit = &mut core.slots[slot as usize];
            let last = unit.base.pop().expect("the newest store has a cube");
            unit.base.clear();
            unit.base.push(last);
            unit.now.clone_from(&unit.base);
        }
        core.is_deterministic = true;
        let mut total = (1_u128, Residue::ONE);
        for unit in &core.slots {
            let contents = count(&unit.base);
            total.0 = total.0.saturating_mul(u128::from(contents));
            total.1 = total.1.times(Residue::of(contents));
        }
        total
    }

    /// Ends the event.
    pub(crate) fn disarm(&self) {
        let core = &mut *self.shared.core.lock();
        core.path.clear();
        core.sampling = None;
        if let Some(slot) = core.armed.take() {
            self.rebuild(core, slot);
        }
    }

    /// Begins a run. With a seed the run takes its choices at random.
    pub(crate) fn start(&self, seed: Option<u64>) {
        let mut core = self.shared.core.lock();
        core.depth = 0;
        core.generation = 0;
        core.sampling = seed;
        self.shared.steps.store(0, Ordering::Relaxed);
    }

    /// Decides everything at once: each unit takes the newest of its contents, or the oldest. Gives
    /// the words of the image and its length; [`restore`](Self::restore) undoes it.
    pub(crate) fn decide_all(&self, newest: bool) -> (Vec<u64>, u64) {
        let core = &mut *self.shared.core.lock();
        for slot in 0..core.slots.len() as u32 {
            core.touch(slot);
            let unit = &mut core.slots[slot as usize];
            let cube = if newest { unit.now.last() } else { unit.now.first() };
            let cube = cube.copied().unwrap_or(Cube::BASE).least_or_most(newest);
            unit.now.clear();
            unit.now.push(cube);
            let first = (unit.number as usize) << self.shared.unit_shift;
            for place in 0..1 << self.shared.unit_shift {
                let base = self.shared.arena.get(first + place);
                let all = &core.program.items;
                let contents = Contents { items: &unit.items, all, base };
                core.values.clear();
                contents.values(&unit.now, place, &mut core.values);
                core.journal.push(((first + place) as u32, base));
                self.shared.arena.set(first + place, core.values[0]);
            }
        }
        let words = (core.len / 8) as usize;
        ((0..words).map(|index| self.shared.arena.get(index)).collect(), core.len)
    }

    /// How many writes the run has done so far, its decisions included.
    pub(crate) fn writes(&self) -> usize {
        self.shared.core.lock().journal.len()
    }

    /// Whether a write after that many went to `offset` or past it.
    pub(crate) fn has_stored_past(&self, offset: u64, writes: usize) -> bool {
        let core = self.shared.core.lock();
        core.journal[writes..].iter().any(|&(word, _)| u64::from(word) * 8 >= offset)
    }

    /// Tells that the pool is open, and for which time: latch words of earlier times are stale.
    pub(crate) fn opened(&self, generation: u64) {
        self.shared.core.lock().generation = generation;
    }

    /// Undoes what the run did.
    pub(crate) fn restore(&self) {
        let core = &mut *self.shared.core.lock();
        for (word, value) in core.journal.drain(..).rev() {
            self.shared.arena.set(word as usize, value);
        }
        for slot in core.touched.drain(..) {
            let unit = &mut core.slots[slot as usize];
            unit.now.clone_from(&unit.base);
            unit.overlay = 0;
            unit.is_touched = false;
        }
        self.shared.arena.set_len(core.len);
        if core.sampling.is_some() {
            core.path.clear();
        }
    }

    /// Goes to the next path; false when all have been taken.
    pub(crate) fn next_path(&self) -> bool {
        let mut core = self.shared.core.lock();
        while let Some(fork) = core.path.last_mut() {
            fork.taken += 1;
            if fork.taken < fork.of {
                return true;
            }
            core.path.pop();
        }
        false
    }

    /// For how many of the event's images the run stands, the event having `total`.
    pub(crate) fn weight(&self, total: Residue) -> Residue {
        let core = self.shared.core.lock();
        core.touched.iter().fold(total, |weight, &slot| {
            let unit = &core.slots[slot as usize];
            let (now, base) = (count(&unit.now), count(&unit.base));
            if now == base {
                weight
            } else {
                weight.times(Residue::of(now)).times(Residue::of(base).inverse())
            }
        })
    }

    /// The first time at which all images that agree with the run are ruled out.
    pub(crate) fn ruled_out(&self) -> u32 {
        let core = self.shared.core.lock();
        let first = core.program.sealed_from(core.stored);
        core.touched.iter().fold(first, |first, &slot| {
            let missing = core.lost(slot).next();
            missing.map_or(first, |(item, _)| first.min(core.program.items[item as usize].sealed))
        })
    }

    /// What is missing in the newest image that agrees with the run.
    pub(crate) fn lost(&self) -> Lost {
        let core = self.shared.core.lock();
        let mut lost: Lost = core.touched.iter().flat_map(|&slot| core.lost(slot)).collect();
        lost.sort_unstable();
        lost
    }

    /// Whether the runs of this event read the same wherever they were the same.
    pub(crate) fn is_deterministic(&self) -> bool {
        self.shared.core.lock().is_deterministic
    }

    /// The items stored so far.
    pub(crate) fn stored(&self) -> usize {
        self.shared.core.lock().stored
    }

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
            _ => self.decide(index),
        }
    }

    /// Reads a word of a unit with several contents.
    #[cold]
    fn decide(&self, index: usize) -> u64 {
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
            self.write(core, index, newest);
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

    fn write(&self, core: &mut Core, index: usize, value: u64) {
        core.journal.push((index as u32, self.shared.arena.get(index)));
        self.shared.arena.set(index, value);
        if let Some(slot) = self.slot_at(index).checked_sub(1) {
            let place = index & ((1 << self.shared.unit_shift) - 1);
            core.slots[slot as usize].overlay |= 1 << place;
            core.touch(slot);
        }
    }
}

impl Core {
    fn slot(&mut self, unit: u32) -> u32 {
        *self.slot_of.entry(unit).or_insert_with(|| {
            let base = vec![Cube::BASE];
            let now = base.clone();
            let (items, overlay, is_touched) = (Vec::new(), 0, false);
            self.slots.push(Unit { number: unit, items, base, now, overlay, is_touched });
            self.slots.len() as u32 - 1
        })
    }

    fn touch(&mut self, slot: u32) {
        let unit = &mut self.slots[slot as usize];
        if !unit.is_touched {
            unit.is_touched = true;
            self.touched.push(slot);
        }
    }

    /// Which of `of` values the run takes for `word`.
    fn choose(&mut self, word: u32, of: u32) -> u32 {
        self.depth += 1;
        if let Some(seed) = &mut self.sampling {
            return (split_mix(seed) % u64::from(of)) as u32;
        }
        if self.path.len() < self.depth {
            self.path.push(Fork { word, taken: 0, of });
        }
        let fork = self.path[self.depth - 1];
        if (fork.word, fork.of) != (word, of) {
            self.is_deterministic = false;
        }
        fork.taken.min(of - 1)
    }

    /// The words missing in the newest of the contents that a unit may have, oldest item first.
    fn lost(&self, slot: u32) -> impl Iterator<Item = (u32, u8)> {
        let unit = &self.slots[slot as usize];
        let newest = unit.now.last().copied().unwrap_or(Cube::BASE);
        let items = unit.items.iter().enumerate().skip(newest.item.saturating_sub(1) as usize);
        items.filter_map(move |(index, &item)| {
            let there = if index as u32 + 1 == newest.item { newest.set | newest.free } else { 0 };
            let missing = self.program.items[item as usize].mask & !there;
            (missing != 0).then_some((item, missing))
        })
    }
}

/// The next of a stream of numbers without pattern (`SplitMix64`).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and holds its reserve from the start;
// its length shrinks only between runs, when no pool is open on it. 2. Its words are initialised and
// private to the process. 3. Words are atomics, stored with release and loaded with acquire
// ordering; a word that is not decided yet is decided by its first load, for the rest of the run.
unsafe impl Medium for Refiner {
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
