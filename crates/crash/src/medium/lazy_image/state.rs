//! The state behind the refiner's lock: units, what they may hold, and the path of a run.

use crate::model::contents::{Cube, UnitContents};
use crate::model::history::StoreHistory;
use bristlecone_pmem::sync::generation_of;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct State {
    pub(super) history: Arc<StoreHistory>,
    pub(super) slots: Vec<Unit>,
    slot_of: HashMap<u32, u32>,
    /// Slots to be put back after the run.
    pub(super) touched: Vec<u32>,
    /// Words that the run overwrote, with what they held and whether that was from the start.
    pub(super) journal: Vec<(u32, u64, bool)>,
    /// Words that runs have read as they were at the start, with what they held.
    pub(super) noted: Vec<(u32, u64)>,
    pub(super) path: Vec<Fork>,
    pub(super) depth: usize,
    /// Choices at random instead, from this state.
    pub(super) sampling: Option<u64>,
    pub(super) is_deterministic: bool,
    pub(super) len: u64,
    /// Items stored so far.
    pub(super) stored: usize,
    /// The slot whose newest item must be there, while an event is explored.
    pub(super) armed: Option<u32>,
    pub(super) values: Vec<u64>,
    /// The pool's generation in this run; 0 until it is known.
    pub(super) generation: u64,
    /// Whether the run has stored anything but the superblocks.
    pub(super) has_stored: bool,
    /// Whether it had when its recovery was over.
    pub(super) has_repaired: bool,
}

#[derive(Debug)]
pub(super) struct Unit {
    pub(super) number: u32,
    /// What is stored and not guaranteed, oldest first.
    pub(super) items: Vec<u32>,
    /// All contents that are possible at this event.
    pub(super) base: Vec<Cube>,
    /// Those that agree with what the run has seen.
    pub(super) now: Vec<Cube>,
    /// Its entry in the table when a run begins, but for the words that are to be noted.
    pub(super) entry: u64,
    pub(super) is_touched: bool,
}

/// A fork on the path: which of how many values was taken for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fork {
    pub(super) word: u32,
    pub(super) taken: u32,
    pub(super) of: u32,
}

/// What was lost in the contents that a run ended with, at the least: item and words.
pub(crate) type LostWords = Vec<(u32, u8)>;

/// The images that a run stands for, and where it is on its path.
#[derive(Clone, Debug)]
pub(crate) struct Undecided {
    /// Of each unit that is open the contents that agree with the run.
    pub(super) units: Vec<(u32, Vec<Cube>)>,
    pub(super) depth: usize,
    pub(super) generation: u64,
}

impl Undecided {
    /// Of each unit that is open the newest content.
    pub(crate) fn newest(&self) -> Vec<(u32, Cube)> {
        let newest = |cubes: &[Cube]| cubes.last().copied().unwrap_or(Cube::BASE).full();
        self.units.iter().map(|(slot, cubes)| (*slot, newest(cubes))).collect()
    }
}

impl State {
    pub(super) fn new(history: Arc<StoreHistory>, bytes: u64) -> Self {
        Self {
            history,
            slots: Vec::new(),
            slot_of: HashMap::new(),
            touched: Vec::new(),
            journal: Vec::new(),
            noted: Vec::new(),
            path: Vec::new(),
            depth: 0,
            sampling: None,
            is_deterministic: true,
            len: bytes,
            stored: 0,
            armed: None,
            values: Vec::new(),
            generation: 0,
            has_stored: false,
            has_repaired: false,
        }
    }

    pub(super) fn slot(&mut self, unit: u32) -> u32 {
        *self.slot_of.entry(unit).or_insert_with(|| {
            let base = vec![Cube::BASE];
            let now = base.clone();
            let (items, entry, is_touched) = (Vec::new(), 0, false);
            self.slots.push(Unit { number: unit, items, base, now, entry, is_touched });
            self.slots.len() as u32 - 1
        })
    }

    /// The slot of a unit, if it has one.
    pub(super) fn known_slot(&self, unit: u32) -> Option<u32> {
        self.slot_of.get(&unit).copied()
    }

    /// What a word holds of a unit that may have the contents `now`, which are narrowed to those that
    /// agree; it held `base` before anything in the unit's slot. Forks the run if it takes that.
    pub(super) fn decide(
        &mut self,
        slot: u32,
        now: &mut Vec<Cube>,
        (word, place): (u32, usize),
        base: u64,
    ) -> u64 {
        let items = &self.slots[slot as usize].items;
        let contents = UnitContents { items, all: &self.history.items, base };
        self.values.clear();
        contents.values(now, place, &mut self.values);
        let is_stale =
            |&value: &u64| value == 0 || (1..self.generation).contains(&generation_of(value));
        let of = self.values.len() as u32;
        if of == 1 || (self.values.iter().all(is_stale) && contents.is_latch(place)) {
            return self.values[0];
        }
        let taken = self.choose(word, of);
        let value = self.values[taken as usize];
        let items = &self.slots[slot as usize].items;
        UnitContents { items, all: &self.history.items, base }.keep(now, place, value);
        value
    }

    pub(super) fn touch(&mut self, slot: u32) {
        let unit = &mut self.slots[slot as usize];
        if !unit.is_touched {
            unit.is_touched = true;
            self.touched.push(slot);
        }
    }

    /// Which of `of` values the run takes for `word`.
    pub(super) fn choose(&mut self, word: u32, of: u32) -> u32 {
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
    pub(super) fn lost(&self, slot: u32) -> impl Iterator<Item = (u32, u8)> {
        let unit = &self.slots[slot as usize];
        let newest = unit.now.last().copied().unwrap_or(Cube::BASE);
        let items = unit.items.iter().enumerate().skip(newest.item.saturating_sub(1) as usize);
        items.filter_map(move |(index, &item)| {
            let there = if index as u32 + 1 == newest.item { newest.set | newest.free } else { 0 };
            let missing = self.history.items[item as usize].mask & !there;
            (missing != 0).then_some((item, missing))
        })
    }
}

/// The next of a stream of numbers without pattern (`SplitMix64`).
pub(super) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
