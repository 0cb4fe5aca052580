//! The state behind the lock of a lazy image: the units, their contents, and the path of a run.

use crate::model::contents::{Cube, UnitContents};
use crate::model::history::StoreHistory;
use bristlecone_pmem::sync::nonce_of;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct State {
    pub(super) history: Arc<StoreHistory>,
    pub(super) slots: Vec<Unit>,
    slot_of: HashMap<u32, u32>,
    /// The slots to restore after the run.
    pub(super) touched: Vec<u32>,
    /// The words that the run overwrote, with their former values, and whether they were fresh.
    pub(super) journal: Vec<(u32, u64, bool)>,
    /// The fresh words that runs have read, with their values.
    pub(super) noted: Vec<Noted>,
    /// The noted words that were read beside a latch. They stay fresh, and are read again.
    pub(super) noted_beside: HashSet<Noted>,
    pub(super) path: Vec<Fork>,
    pub(super) depth: usize,
    /// The state of the random choices, if the run makes its choices at random.
    pub(super) sampling: Option<u64>,
    pub(super) is_deterministic: bool,
    pub(super) first: FirstValue,
    pub(super) len: u64,
    /// The number of items stored so far.
    pub(super) stored: usize,
    /// The slot whose newest item must be present in the event.
    pub(super) armed: Option<u32>,
    pub(super) values: Vec<u64>,
    /// The low 24 bits of the pool's nonce in this run; 0, which is no nonce, until it is known.
    pub(super) nonce: u64,
    /// Set once the run has stored anything outside the superblocks.
    pub(super) has_stored: bool,
    /// The value of `has_stored` at the end of the recovery.
    pub(super) has_repaired: bool,
}

/// The value of a word that the first run of an event takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum FirstValue {
    Newest,
    Oldest,
}

#[derive(Debug)]
pub(super) struct Unit {
    pub(super) number: u32,
    /// The items that are stored and not guaranteed, oldest first.
    pub(super) items: Vec<u32>,
    /// All contents that are possible at this event.
    pub(super) base: Vec<Cube>,
    /// The contents that agree with the words that the run has read.
    pub(super) now: Vec<Cube>,
    /// The unit's entry in the table at the beginning of a run, without the bits of fresh words.
    pub(super) entry: u64,
    pub(super) is_touched: bool,
}

/// A word of the start that a run has read: its value in the bits that the run depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Noted {
    pub(crate) word: u32,
    pub(crate) mask: u64,
    pub(crate) value: u64,
}

impl Noted {
    /// Returns `true` if `value` has the noted bits.
    pub(crate) fn agrees(&self, value: u64) -> bool {
        (value ^ self.value) & self.mask == 0
    }
}

/// A fork of the path: the value that was taken for a word, and the number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fork {
    pub(super) word: u32,
    /// The bits of the word that the run depends on.
    pub(super) mask: u64,
    pub(super) taken: u32,
    pub(super) of: u32,
}

/// The lost words of a crash image: items, and their missing words.
pub(crate) type LostWords = Vec<(u32, u8)>;

/// The images that a run stands for, and its position on the path.
#[derive(Clone, Debug)]
pub(crate) struct Undecided {
    /// The contents that agree with the run, for each open unit.
    pub(super) units: Vec<(u32, Vec<Cube>)>,
    pub(super) depth: usize,
    pub(super) nonce: u64,
}

impl Undecided {
    /// Returns the newest content of each open unit.
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
            noted_beside: HashSet::new(),
            path: Vec::new(),
            depth: 0,
            sampling: None,
            is_deterministic: true,
            first: FirstValue::Newest,
            len: bytes,
            stored: 0,
            armed: None,
            values: Vec::new(),
            nonce: 0,
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

    /// Returns the slot of a unit, if it has one.
    pub(super) fn known_slot(&self, unit: u32) -> Option<u32> {
        self.slot_of.get(&unit).copied()
    }

    /// Returns the newest value of a word whose unit can have the contents `now` if a latch takes
    /// each of its values for free. Fixes nothing: other code that loads the word forks.
    pub(super) fn free_latch(
        &mut self,
        slot: u32,
        now: &[Cube],
        place: usize,
        base: u64,
    ) -> Option<u64> {
        let items = &self.slots[slot as usize].items;
        let contents = UnitContents { items, all: &self.history.items, base };
        self.values.clear();
        contents.values(now, place, &mut self.values);
        let is_free =
            contents.is_latch(place) && self.values.iter().all(|&value| self.is_stale_latch(value));
        is_free.then(|| self.values[0])
    }

    /// Returns a value of a word, in the first run that of [`State::first`]. Its unit can have the
    /// contents `now`, which are narrowed to those that agree in the bits `mask` of the word.
    /// `base` is the word below all items. Forks the run if these bits have several values.
    pub(super) fn decide(
        &mut self,
        slot: u32,
        now: &mut Vec<Cube>,
        (word, place): (u32, usize),
        base: u64,
        mask: u64,
    ) -> u64 {
        let items = &self.slots[slot as usize].items;
        let contents = UnitContents { items, all: &self.history.items, base };
        self.values.clear();
        contents.values(now, place, &mut self.values);
        if mask != u64::MAX {
            let mut first = Vec::new();
            for &value in &self.values {
                if first.iter().all(|other| (other ^ value) & mask != 0) {
                    first.push(value);
                }
            }
            self.values = first;
        }
        let of = self.values.len() as u32;
        if of == 1 {
            return self.values[0];
        }
        let taken = self.choose(word, mask, of);
        let from_newest = match self.first {
            FirstValue::Newest => taken,
            FirstValue::Oldest => of - 1 - taken,
        };
        let value = self.values[from_newest as usize];
        let items = &self.slots[slot as usize].items;
        UnitContents { items, all: &self.history.items, base }.keep(now, place, mask, value);
        value
    }

    /// Returns `true` if `word` is the word of a latch that reads as free because no thread of the
    /// open pool has taken it.
    pub(super) fn is_stale_latch(&self, word: u64) -> bool {
        let found = nonce_of(word);
        word == 0 || (self.nonce != 0 && found != 0 && found != self.nonce)
    }

    pub(super) fn touch(&mut self, slot: u32) {
        let unit = &mut self.slots[slot as usize];
        if !unit.is_touched {
            unit.is_touched = true;
            self.touched.push(slot);
        }
    }

    /// Returns the number of the value, out of `of`, that the run takes for the bits `mask` of
    /// `word`.
    pub(super) fn choose(&mut self, word: u32, mask: u64, of: u32) -> u32 {
        self.depth += 1;
        if let Some(seed) = &mut self.sampling {
            return (split_mix(seed) % u64::from(of)) as u32;
        }
        if self.path.len() < self.depth {
            self.path.push(Fork { word, mask, taken: 0, of });
        }
        let fork = self.path[self.depth - 1];
        if (fork.word, fork.mask, fork.of) != (word, mask, of) {
            self.is_deterministic = false;
        }
        fork.taken.min(of - 1)
    }

    /// Returns the words that are missing in the newest content of a unit, the oldest item first.
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

/// Returns the next number of a `SplitMix64` stream.
pub(super) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
