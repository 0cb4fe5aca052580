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
//! 7. Memory holds what is guaranteed. The words of a unit with several contents are in its items,
//!    until a run has decided or stored them: from then on, and until the run is over, they are in
//!    memory too.

pub(crate) mod access;
mod state;

pub(crate) use state::{LostWords, Undecided};

use crate::medium::arena::Arena;
use crate::model::contents::{Cube, UnitContents, count};
use crate::model::history::{Step, StoreHistory};
use crate::model::residue::Residue;
use bristlecone_pmem::Defect;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use state::State;
use std::sync::Arc;

/// An entry of the table: from here on its slot, below it two bits for each word of the unit.
const SLOT_SHIFT: u32 = 16;
/// From here on the bits of words that are fresh: as they were at the start, and to be noted once read.
const FRESH_SHIFT: u32 = 8;
const FRESH: u64 = 0xff << FRESH_SHIFT;
/// The bits of words that are open: not in memory, for they are not decided.
const OPEN: u64 = 0xff;
/// Both bits of a word, times its bit.
const OPEN_AND_FRESH: u64 = 1 | 1 << FRESH_SHIFT;

/// A medium in a state that is not wholly decided. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LazyImage {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    /// For each unit its slot, and which of its words are [open](OPEN), and [fresh](FRESH).
    table: Box<[AtomicU64]>,
    unit_shift: u32,
    steps: AtomicU64,
    core: Mutex<State>,
    /// What is seeded in what runs on it.
    defect: Option<Defect>,
}

impl LazyImage {
    /// A zeroed medium of `bytes`, before the first step of `program`.
    ///
    /// `defect` is put into what runs on it.
    pub(crate) fn new(
        history: Arc<StoreHistory>,
        bytes: u64,
        reserve_bytes: u64,
        defect: Option<Defect>,
    ) -> Self {
        let arena = Arena::new(bytes, reserve_bytes);
        let unit_shift = history.unit_words.trailing_zeros();
        let units = arena.cells().len() >> unit_shift;
        let table = core::iter::repeat_with(AtomicU64::default).take(units).collect();
        let core = Mutex::new(State::new(history, bytes));
        let steps = AtomicU64::new(0);
        Self { shared: Arc::new(Shared { arena, table, unit_shift, steps, core, defect }) }
    }

    /// Begins anew with the image in `source`, all of it durable. Nothing may be open on this medium.
    /// From here on it notes what is read of `source`.
    pub(crate) fn reset(&self, source: &Arena) {
        let core = &mut *self.shared.core.lock();
        for unit in &core.slots {
            self.shared.table[unit.number as usize].store(0, Ordering::Relaxed);
        }
        *core = State::new(Arc::clone(&core.history), source.len());
        self.shared.arena.copy_from(source);
        let units = (source.len() as usize / 8) >> self.shared.unit_shift;
        for entry in &self.shared.table[..units] {
            entry.store(FRESH, Ordering::Relaxed);
        }
    }

    /// The words of the image of the last [`reset`](Self::reset) that were read in any run since, before
    /// anything was stored in them, with what they held: no run depends on any other.
    pub(crate) fn noted(&self) -> Vec<(u32, u64)> {
        self.shared.core.lock().noted.clone()
    }

    /// The program whose steps are to be taken.
    pub(crate) fn follow(&self, history: &Arc<StoreHistory>) {
        self.shared.core.lock().history = Arc::clone(history);
    }

    /// Forgets the program, and puts memory back to `base`, between events.
    pub(crate) fn end(&self, base: &[u64]) {
        let core = &mut *self.shared.core.lock();
        debug_assert!(core.journal.is_empty() && core.touched.is_empty() && core.armed.is_none());
        for unit in &core.slots {
            self.shared.table[unit.number as usize].store(0, Ordering::Relaxed);
            let first = (unit.number as usize) << self.shared.unit_shift;
            for (index, &word) in (first..).zip(&base[first..first + (1 << self.shared.unit_shift)])
            {
                self.shared.arena.set(index, word);
            }
        }
        *core = State::new(Arc::clone(&core.history), core.len);
    }

    /// The memory, as it is decided now.
    pub(crate) fn arena(&self) -> &Arena {
        &self.shared.arena
    }

    /// Takes a step of the program, between events.
    pub(crate) fn advance(&self, step: Step) {
        let core = &mut *self.shared.core.lock();
        debug_assert!(core.journal.is_empty() && core.touched.is_empty() && core.armed.is_none());
        match step {
            Step::Store(item) => {
                let slot = core.slot(core.history.items[item as usize].unit);
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
    fn seal(&self, core: &mut State, slot: u32, upto: u32) {
        let unit = &mut core.slots[slot as usize];
        let all = &core.history.items;
        let sealed = unit.items.partition_point(|&item| all[item as usize].time <= upto);
        for item in unit.items.drain(..sealed) {
            let item = &all[item as usize];
            let first = (unit.number as usize) << self.shared.unit_shift;
            for place in (0..8).filter(|place| item.mask & (1 << place) != 0) {
                self.shared.arena.set(first + place, item.values[place]);
            }
            let entry = &self.shared.table[unit.number as usize];
            let stored = u64::from(item.mask) << FRESH_SHIFT;
            entry.store(entry.load(Ordering::Relaxed) & !stored, Ordering::Relaxed);
        }
    }

    fn rebuild(&self, core: &mut State, slot: u32) {
        let unit = &mut core.slots[slot as usize];
        unit.base.clear();
        unit.base.push(Cube::BASE);
        for (number, &item) in (1..).zip(&unit.items) {
            unit.base.push(Cube::newest(number, core.history.items[item as usize].mask));
        }
        unit.now.clone_from(&unit.base);
        unit.entry = if unit.items.is_empty() { 0 } else { u64::from(slot) << SLOT_SHIFT | OPEN };
        self.refresh(unit);
    }

    /// Gives a unit the entry with which a run begins, as to what is open of it.
    fn refresh(&self, unit: &state::Unit) {
        let entry = &self.shared.table[unit.number as usize];
        let fresh = entry.load(Ordering::Relaxed) & FRESH;
        entry.store(unit.entry | fresh, Ordering::Relaxed);
    }

    /// Begins an event: a crash right after the newest store, which is there, or, with `newest`
    /// false, at a moment without a store. Gives how many images that is.
    pub(crate) fn arm(&self, newest: bool) -> (u128, Residue) {
        let core = &mut *self.shared.core.lock();
        if newest {
            let unit = core.history.items[core.stored - 1].unit;
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
        for unit in core.slots.iter().filter(|unit| !unit.items.is_empty()) {
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
        (core.has_stored, core.has_repaired) = (false, false);
        self.shared.steps.store(0, Ordering::Relaxed);
    }

    /// The images that the run stands for.
    pub(crate) fn undecided(&self) -> Undecided {
        let core = self.shared.core.lock();
        let open = (0..).zip(&core.slots).filter(|(_, unit)| !unit.items.is_empty());
        let units = open.map(|(slot, unit)| (slot, unit.now.clone())).collect();
        Undecided { units, depth: core.depth, generation: core.generation }
    }

    /// Takes what is left of the path of a run that is over and [restored](Self::restore): the forks at
    /// which its images were [told apart](Self::tell_apart) before.
    pub(crate) fn take_rest(&self, run: &mut Undecided) {
        let core = &mut *self.shared.core.lock();
        while let Some(fork) = core.path.get(run.depth).copied() {
            let depth = run.depth;
            self.fork(core, run, fork.word);
            if run.depth == depth {
                core.is_deterministic = false;
                return;
            }
        }
    }

    /// Forks a run that is over and [restored](Self::restore) wherever its images differ in one of
    /// `words`. It goes on with the newest.
    pub(crate) fn tell_apart(&self, run: &mut Undecided, words: impl Iterator<Item = u32>) {
        let core = &mut *self.shared.core.lock();
        words.for_each(|word| self.fork(core, run, word));
    }

    fn fork(&self, core: &mut State, run: &mut Undecided, word: u32) {
        let Some(slot) = core.known_slot(word >> self.shared.unit_shift) else { return };
        let Some((_, cubes)) = run.units.iter_mut().find(|unit| unit.0 == slot) else { return };
        let place = word as usize & ((1 << self.shared.unit_shift) - 1);
        (core.depth, core.generation) = (run.depth, run.generation);
        core.decide(slot, cubes, (word, place), self.shared.arena.get(word as usize));
        run.depth = core.depth;
    }

    /// Goes back to the end of a run that was [restored](Self::restore), as to the images that it stands
    /// for.
    pub(crate) fn go_back(&self, run: Undecided) {
        let core = &mut *self.shared.core.lock();
        for (slot, cubes) in run.units {
            core.touch(slot);
            core.slots[slot as usize].now = cubes;
        }
    }

    /// Decides the image at once: each unit takes the content that is said, at the beginning of a
    /// run. [`restore`](Self::restore) undoes it.
    pub(crate) fn decide(&self, contents: &[(u32, Cube)]) {
        let core = &mut *self.shared.core.lock();
        for &(slot, cube) in contents {
            core.touch(slot);
            let unit = &mut core.slots[slot as usize];
            unit.now.clear();
            unit.now.push(cube);
            let first = (unit.number as usize) << self.shared.unit_shift;
            for place in 0..1 << self.shared.unit_shift {
                let base = self.shared.arena.get(first + place);
                let all = &core.history.items;
                let contents = UnitContents { items: &unit.items, all, base };
                core.values.clear();
                contents.values(&unit.now, place, &mut core.values);
                core.journal.push(((first + place) as u32, base, false));
                self.shared.arena.set(first + place, core.values[0]);
            }
        }
    }

    /// Tells that the recovery is over; what the run stores from now on is no repair.
    pub(crate) fn recovered(&self) {
        let mut core = self.shared.core.lock();
        core.has_repaired |= core.has_stored;
    }

    /// Whether the run's recovery stored anything but the superblocks.
    pub(crate) fn has_repaired(&self) -> bool {
        self.shared.core.lock().has_repaired
    }

    /// Tells that the pool is open, and for which time: latch words of earlier times are stale.
    pub(crate) fn opened(&self, generation: u64) {
        self.shared.core.lock().generation = generation;
    }

    /// Undoes what the run did.
    pub(crate) fn restore(&self) {
        let core = &mut *self.shared.core.lock();
        for (word, value, is_fresh) in core.journal.drain(..).rev() {
            self.shared.arena.set(word as usize, value);
            if is_fresh {
                let bit = 1 << (word & ((1 << self.shared.unit_shift) - 1)) << FRESH_SHIFT;
                let entry = &self.shared.table[word as usize >> self.shared.unit_shift];
                entry.store(entry.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
            }
        }
        for slot in core.touched.drain(..) {
            let unit = &mut core.slots[slot as usize];
            unit.now.clone_from(&unit.base);
            unit.is_touched = false;
            self.refresh(unit);
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

    /// For how many images the run stands; saturating.
    pub(crate) fn images(&self) -> u128 {
        let core = self.shared.core.lock();
        let counts = core.slots.iter().map(|unit| u128::from(count(&unit.now)));
        counts.fold(1, u128::saturating_mul)
    }

    /// The first time at which all images that agree with the run are ruled out.
    pub(crate) fn ruled_out(&self) -> u32 {
        let core = self.shared.core.lock();
        let first = core.history.sealed_from(core.stored);
        core.touched.iter().fold(first, |first, &slot| {
            let missing = core.lost(slot).next();
            missing.map_or(first, |(item, _)| first.min(core.history.items[item as usize].sealed))
        })
    }

    /// What is missing in the newest image that agrees with the run.
    pub(crate) fn lost(&self) -> LostWords {
        let core = self.shared.core.lock();
        let mut lost: LostWords = core.touched.iter().flat_map(|&slot| core.lost(slot)).collect();
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
}
