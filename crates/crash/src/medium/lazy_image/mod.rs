//! The lazy image: a crash image that fixes the value of a word when recovery first reads it
//! (constraint refinement, as in Jaaru; Gorjiara et al., ASPLOS 2021).
//!
//! 1. A unit begins with all contents that it can have. A load of a word on which they differ forks
//!    the run: the run continues with one value, and a replay from the start takes each of the
//!    others.
//! 2. A replay takes the choices of its path, then the first value at each new fork. A recovery
//!    that reads differently for the same contents is not deterministic, and is reported.
//! 3. A store to a unit lies on top of any of its contents, and fixes none of them.
//! 4. A latch word with the nonce of an earlier open reads as free with any value. So a load
//!    through `Latch` needs no fork: the run takes the newest value, and fixes nothing. If one
//!    content has the nonce of this open, or if code loads the word in another way, the run forks
//!    as for any word.
//!    Of a word with a latch beside other bits these alone fork the run.
//! 5. One memory serves all runs: stores and fixed values of a run are undone after it.
//! 6. One thread at a time runs on it, so a replay meets the same forks.
//! 7. Memory holds the guaranteed words. A word of a unit with several contents is in the unit's
//!    items until a run fixes or stores it. For the rest of the run it is in memory too.

pub(crate) mod access;
mod state;

pub(crate) use state::{LostWords, Noted, Undecided};

use crate::medium::arena::Arena;
use crate::model::contents::{Cube, UnitContents, count};
use crate::model::history::{Step, StoreHistory};
use crate::model::residue::Residue;
use bristlecone_pmem::Defect;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use state::{FirstValue, State};
use std::sync::Arc;

/// The position of the slot in an entry of the table. Below it are two bits for each word of the
/// unit.
const SLOT_SHIFT: u32 = 16;
/// The position of the bits of fresh words: unchanged since the start, and to be noted when read.
const FRESH_SHIFT: u32 = 8;
const FRESH: u64 = 0xff << FRESH_SHIFT;
/// The bits of open words, whose value is not fixed in memory.
const OPEN: u64 = 0xff;
/// Both bits of word 0; a multiple by the word's bit selects those of another word.
const OPEN_AND_FRESH: u64 = 1 | 1 << FRESH_SHIFT;

/// A crash image that is not wholly fixed. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LazyImage {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    /// The slot of each unit, with its [open](OPEN) and [fresh](FRESH) words.
    table: Box<[AtomicU64]>,
    unit_shift: u32,
    steps: AtomicU64,
    state: Mutex<State>,
    /// The defect that is injected into the code that runs on the image.
    defect: Option<Defect>,
}

impl LazyImage {
    /// Returns a zeroed medium of `bytes`, before the first step of `history`, with `defect`
    /// injected into the code that runs on it.
    pub(crate) fn new(
        history: Arc<StoreHistory>,
        bytes: u64,
        reserve_bytes: u64,
        defect: Option<Defect>,
    ) -> Self {
        let arena = Arena::new(bytes, reserve_bytes);
        arena.admit(history.bytes_max);
        let unit_shift = history.unit_words.trailing_zeros();
        let units = arena.cells().len() >> unit_shift;
        let table = core::iter::repeat_with(AtomicU64::default).take(units).collect();
        let state = Mutex::new(State::new(history, bytes));
        let steps = AtomicU64::new(0);
        Self { shared: Arc::new(Shared { arena, table, unit_shift, steps, state, defect }) }
    }

    /// Starts again with the image in `source`, all of it durable, and notes which of its words are
    /// read from now on. No pool may be open on this medium.
    pub(crate) fn reset(&self, source: &Arena) {
        let state = &mut *self.shared.state.lock();
        for unit in &state.slots {
            self.shared.table[unit.number as usize].store(0, Ordering::Relaxed);
        }
        *state = State::new(Arc::clone(&state.history), source.len());
        self.shared.arena.copy_from(source);
        let units = (source.len() as usize / 8) >> self.shared.unit_shift;
        for entry in &self.shared.table[..units] {
            entry.store(FRESH, Ordering::Relaxed);
        }
    }

    /// Returns the words of the image of the last [`reset`](Self::reset) that a run read before
    /// anything was stored in them, with their values. The result of a run depends on no other
    /// word.
    pub(crate) fn noted(&self) -> Vec<Noted> {
        self.shared.state.lock().noted.clone()
    }

    /// Sets the history whose steps follow.
    pub(crate) fn follow(&self, history: &Arc<StoreHistory>) {
        self.shared.arena.admit(history.bytes_max);
        self.shared.state.lock().history = Arc::clone(history);
    }

    /// Forgets the history, and resets memory to `base`, between events.
    pub(crate) fn end(&self, base: &[u64]) {
        let state = &mut *self.shared.state.lock();
        debug_assert!(
            state.journal.is_empty() && state.touched.is_empty() && state.armed.is_none()
        );
        for unit in &state.slots {
            self.shared.table[unit.number as usize].store(0, Ordering::Relaxed);
            let first = (unit.number as usize) << self.shared.unit_shift;
            for index in first..first + (1 << self.shared.unit_shift) {
                self.shared.arena.set(index, base.get(index).copied().unwrap_or(0));
            }
        }
        let bytes = base.len() as u64 * 8;
        self.shared.arena.set_len(bytes);
        *state = State::new(Arc::clone(&state.history), bytes);
    }

    /// Returns the memory, with the values that are fixed now.
    pub(crate) fn arena(&self) -> &Arena {
        &self.shared.arena
    }

    /// Takes a step of the history, between events.
    pub(crate) fn advance(&self, step: Step) {
        let state = &mut *self.shared.state.lock();
        debug_assert!(
            state.journal.is_empty() && state.touched.is_empty() && state.armed.is_none()
        );
        match step {
            Step::Store(item) => {
                let slot = state.slot(state.history.items[item as usize].unit);
                state.slots[slot as usize].items.push(item);
                state.stored = item as usize + 1;
                self.rebuild(state, slot);
            }
            Step::Seal { unit, upto } => {
                let slot = state.slot(unit);
                self.seal(state, slot, upto);
                self.rebuild(state, slot);
            }
            Step::Whole => {}
            Step::Grow(bytes) => {
                state.len = bytes;
                self.shared.arena.set_len(bytes);
            }
        }
    }

    /// Moves the items up to the time `upto` into memory.
    fn seal(&self, state: &mut State, slot: u32, upto: u32) {
        let unit = &mut state.slots[slot as usize];
        let all = &state.history.items;
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

    fn rebuild(&self, state: &mut State, slot: u32) {
        let unit = &mut state.slots[slot as usize];
        unit.base.clear();
        unit.base.push(Cube::BASE);
        for (number, &item) in (1..).zip(&unit.items) {
            unit.base.push(Cube::newest(number, state.history.items[item as usize].mask));
        }
        unit.now.clone_from(&unit.base);
        unit.entry = if unit.items.is_empty() { 0 } else { u64::from(slot) << SLOT_SHIFT | OPEN };
        self.refresh(unit);
    }

    /// Sets a unit's entry to the one with which a run begins, apart from its fresh words.
    fn refresh(&self, unit: &state::Unit) {
        let entry = &self.shared.table[unit.number as usize];
        let fresh = entry.load(Ordering::Relaxed) & FRESH;
        entry.store(unit.entry | fresh, Ordering::Relaxed);
    }

    /// Begins an event, a crash: with `newest` directly after the newest store, which is then
    /// present, else at a moment without a store. Returns the number of images.
    pub(crate) fn arm(&self, newest: bool) -> (u128, Residue) {
        let state = &mut *self.shared.state.lock();
        if newest {
            let unit = state.history.items[state.stored - 1].unit;
            let slot = state.slot(unit);
            state.armed = Some(slot);
            let unit = &mut state.slots[slot as usize];
            let last = unit.base.pop().expect("the newest store has a cube");
            unit.base.clear();
            unit.base.push(last);
            unit.now.clone_from(&unit.base);
        }
        state.is_deterministic = true;
        let mut total = (1_u128, Residue::ONE);
        for unit in state.slots.iter().filter(|unit| !unit.items.is_empty()) {
            let contents = count(&unit.base);
            total.0 = total.0.saturating_mul(u128::from(contents));
            total.1 = total.1.times(Residue::of(contents));
        }
        total
    }

    /// Makes the first run of each event that follows, up to the [end](Self::end), lose all that is
    /// not guaranteed.
    pub(crate) fn lose_first(&self) {
        self.shared.state.lock().first = FirstValue::Oldest;
    }

    /// Ends the event, and its choices.
    pub(crate) fn disarm(&self) {
        let state = &mut *self.shared.state.lock();
        state.path.clear();
        state.sampling = None;
        if let Some(slot) = state.armed.take() {
            self.rebuild(state, slot);
        }
    }

    /// Begins a run. With a seed the run makes its choices at random.
    pub(crate) fn start(&self, seed: Option<u64>) {
        let mut state = self.shared.state.lock();
        state.depth = 0;
        state.nonce = 0;
        state.sampling = seed;
        (state.has_stored, state.has_repaired) = (false, false);
        self.shared.steps.store(0, Ordering::Relaxed);
    }

    /// Returns the images that the run stands for.
    pub(crate) fn undecided(&self) -> Undecided {
        let state = self.shared.state.lock();
        let open = (0..).zip(&state.slots).filter(|(_, unit)| !unit.items.is_empty());
        let units = open.map(|(slot, unit)| (slot, unit.now.clone())).collect();
        Undecided { units, depth: state.depth, nonce: state.nonce }
    }

    /// Takes the rest of the path of a run that is over and [restored](Self::restore): the forks at
    /// which its images were [told apart](Self::tell_apart) before.
    pub(crate) fn take_rest(&self, run: &mut Undecided) {
        let state = &mut *self.shared.state.lock();
        while let Some(fork) = state.path.get(run.depth).copied() {
            let depth = run.depth;
            self.fork(state, run, (fork.word, fork.mask));
            if run.depth == depth {
                state.is_deterministic = false;
                return;
            }
        }
    }

    /// Forks a run that is over and [restored](Self::restore) at each of `words`, with the bits
    /// that count, in which its images differ. The run continues with the newest.
    pub(crate) fn tell_apart(&self, run: &mut Undecided, words: impl Iterator<Item = (u32, u64)>) {
        let state = &mut *self.shared.state.lock();
        words.for_each(|word| self.fork(state, run, word));
    }

    fn fork(&self, state: &mut State, run: &mut Undecided, (word, mask): (u32, u64)) {
        let Some(slot) = state.known_slot(word >> self.shared.unit_shift) else { return };
        let Some((_, cubes)) = run.units.iter_mut().find(|unit| unit.0 == slot) else { return };
        let place = word as usize & ((1 << self.shared.unit_shift) - 1);
        (state.depth, state.nonce) = (run.depth, run.nonce);
        state.decide(slot, cubes, (word, place), self.shared.arena.get(word as usize), mask);
        run.depth = state.depth;
    }

    /// Returns to the end of a run that was [restored](Self::restore), as to the images that it
    /// stands for.
    pub(crate) fn go_back(&self, run: Undecided) {
        let state = &mut *self.shared.state.lock();
        for (slot, cubes) in run.units {
            state.touch(slot);
            state.slots[slot as usize].now = cubes;
        }
    }

    /// Fixes the image at the beginning of a run: each unit takes the given content.
    /// [`restore`](Self::restore) undoes it.
    pub(crate) fn decide(&self, contents: &[(u32, Cube)]) {
        let state = &mut *self.shared.state.lock();
        for &(slot, cube) in contents {
            state.touch(slot);
            let unit = &mut state.slots[slot as usize];
            unit.now.clear();
            unit.now.push(cube);
            let first = (unit.number as usize) << self.shared.unit_shift;
            for place in 0..1 << self.shared.unit_shift {
                let base = self.shared.arena.get(first + place);
                let all = &state.history.items;
                let contents = UnitContents { items: &unit.items, all, base };
                state.values.clear();
                contents.values(&unit.now, place, &mut state.values);
                state.journal.push(((first + place) as u32, base, false));
                self.shared.arena.set(first + place, state.values[0]);
            }
        }
    }

    /// Notes that the recovery is over: later stores of the run are no repairs.
    pub(crate) fn recovered(&self) {
        let mut state = self.shared.state.lock();
        state.has_repaired |= state.has_stored;
    }

    /// Returns `true` if the run's recovery stored anything outside the superblocks.
    pub(crate) fn has_repaired(&self) -> bool {
        self.shared.state.lock().has_repaired
    }

    /// Notes the nonce of the open pool: latch words with other nonces are stale.
    pub(crate) fn opened(&self, nonce: u64) {
        self.shared.state.lock().nonce = nonce & 0xff_ffff;
    }

    /// Undoes the stores and the fixed values of the run.
    pub(crate) fn restore(&self) {
        let state = &mut *self.shared.state.lock();
        for (word, value, is_fresh) in state.journal.drain(..).rev() {
            self.shared.arena.set(word as usize, value);
            if is_fresh {
                let bit = 1 << (word & ((1 << self.shared.unit_shift) - 1)) << FRESH_SHIFT;
                let entry = &self.shared.table[word as usize >> self.shared.unit_shift];
                entry.store(entry.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
            }
        }
        for slot in state.touched.drain(..) {
            let unit = &mut state.slots[slot as usize];
            unit.now.clone_from(&unit.base);
            unit.is_touched = false;
            self.refresh(unit);
        }
        self.shared.arena.set_len(state.len);
        if state.sampling.is_some() {
            state.path.clear();
        }
    }

    /// Continues with the next path. Returns `false` if all have been taken.
    pub(crate) fn next_path(&self) -> bool {
        let mut state = self.shared.state.lock();
        while let Some(fork) = state.path.last_mut() {
            fork.taken += 1;
            if fork.taken < fork.of {
                return true;
            }
            state.path.pop();
        }
        false
    }

    /// Returns the number of images that the run stands for, of the `total` of the event.
    pub(crate) fn weight(&self, total: Residue) -> Residue {
        let state = self.shared.state.lock();
        state.touched.iter().fold(total, |weight, &slot| {
            let unit = &state.slots[slot as usize];
            let (now, base) = (count(&unit.now), count(&unit.base));
            if now == base {
                weight
            } else {
                weight.times(Residue::of(now)).times(Residue::of(base).inverse())
            }
        })
    }

    /// Returns the number of images that the run stands for; saturating.
    pub(crate) fn images(&self) -> u128 {
        let state = self.shared.state.lock();
        let counts = state.slots.iter().map(|unit| u128::from(count(&unit.now)));
        counts.fold(1, u128::saturating_mul)
    }

    /// Returns the first time at which all images that agree with the run are ruled out.
    pub(crate) fn ruled_out(&self) -> u32 {
        let state = self.shared.state.lock();
        let first = state.history.sealed_from(state.stored);
        state.touched.iter().fold(first, |first, &slot| {
            let missing = state.lost(slot).next();
            missing.map_or(first, |(item, _)| first.min(state.history.items[item as usize].sealed))
        })
    }

    /// Returns the words that are missing in the newest image that agrees with the run.
    pub(crate) fn lost(&self) -> LostWords {
        let state = self.shared.state.lock();
        let mut lost: LostWords = state.touched.iter().flat_map(|&slot| state.lost(slot)).collect();
        lost.sort_unstable();
        lost
    }

    /// Returns `true` if all runs of this event read the same where their contents were the same.
    pub(crate) fn is_deterministic(&self) -> bool {
        self.shared.state.lock().is_deterministic
    }

    /// Returns the number of items stored so far.
    pub(crate) fn stored(&self) -> usize {
        self.shared.state.lock().stored
    }
}
