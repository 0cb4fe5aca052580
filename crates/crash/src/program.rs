//! The persistence model: a tape as a list of stores to units, and of guarantees about them.
//!
//! A unit is what persists as a prefix of its stores: a line of 64 B (px86), or a word of 8 B in the
//! stricter mode. Its size is the only difference between the modes.
//!
//! 1. Units persist independently of each other, at any moment.
//! 2. A flush by a thread is guaranteed at that thread's next fence, for the stores that were in the
//!    unit when it was flushed; by nothing else.
//! 3. The words of a fill have no order among themselves, but each comes after the stores before the
//!    fill and before those after it. A fill is guaranteed at the next fence of its thread.
//! 4. An item is one store, or the words that one fill stores in one unit. All items of a unit are
//!    in the order of their times.

use crate::tape::{Event, Role, Tape};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use std::collections::HashMap;

/// What persists as one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A line persists a prefix of its stores: what the processors give.
    Px86,
    /// Each word persists by itself: stricter, for designs that do not rely on the order of stores
    /// within a line.
    Word,
}

impl Mode {
    /// The name that commands use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Px86 => "px86",
            Self::Word => "word",
        }
    }

    pub(crate) const fn unit_words(self) -> usize {
        match self {
            Self::Px86 => LINE_WORDS,
            Self::Word => 1,
        }
    }
}

/// Every open writes the superblocks, which lie below this; the scenarios of opening explore that.
pub(crate) const SUPERBLOCK_BYTES: u64 = 0x2000;
/// A time that never comes.
pub(crate) const NEVER: u32 = u32::MAX;

/// One store, or the words of one fill, in one unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    pub(crate) unit: u32,
    /// When it was stored.
    pub(crate) time: u32,
    /// When a fence guaranteed it; [`NEVER`] if none did.
    pub(crate) sealed: u32,
    /// Which words of the unit it stores, a bit each.
    pub(crate) mask: u8,
    /// Whether it is a store to a latch or a version.
    pub(crate) is_transient: bool,
    /// What it stores in them.
    pub(crate) values: [u64; LINE_WORDS],
}

/// A step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The item of that index is stored.
    Store(u32),
    /// Items of the unit up to that time are guaranteed from now on.
    Seal { unit: u32, upto: u32 },
    /// The medium has so many bytes.
    Grow(u64),
}

/// A tape, compiled for one mode.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    pub(crate) unit_words: usize,
    pub(crate) items: Vec<Item>,
    /// Steps with their times.
    pub(crate) steps: Vec<(u32, Step)>,
    /// For each item, the earliest time at which it or a later item of any unit is guaranteed.
    sealed_from: Vec<u32>,
    /// When each operation under test was invoked and acknowledged.
    operations: Vec<(u32, u32)>,
    pub(crate) begin: u32,
}

/// Flushes that a thread has begun and not fenced: the unit and the time up to which.
type Pending = HashMap<u32, Vec<(u32, u32)>>;

struct Compiler {
    program: Program,
    pending: Pending,
    /// Items of each unit that no fence has guaranteed.
    open: HashMap<u32, Vec<u32>>,
}

impl Program {
    pub(crate) fn compile(tape: &Tape, mode: Mode) -> Self {
        let program = Self {
            unit_words: mode.unit_words(),
            items: Vec::new(),
            steps: Vec::new(),
            sealed_from: Vec::new(),
            operations: Vec::new(),
            begin: tape.begin,
        };
        let mut compiler = Compiler { program, pending: HashMap::new(), open: HashMap::new() };
        for (time, entry) in tape.entries.iter().enumerate() {
            compiler.event(time as u32, entry.thread, &entry.event);
        }
        let mut program = compiler.program;
        let mut least = NEVER;
        program.sealed_from = vec![NEVER; program.items.len()];
        for (index, item) in program.items.iter().enumerate().rev() {
            least = least.min(item.sealed);
            program.sealed_from[index] = least;
        }
        program
    }

    /// The first time at which an image that lacks every item from `item` on is ruled out.
    pub(crate) fn sealed_from(&self, item: usize) -> u32 {
        self.sealed_from.get(item).copied().unwrap_or(NEVER)
    }

    /// Whether `step` stores anything but the superblocks.
    pub(crate) fn is_past_superblocks(&self, step: Step) -> bool {
        let Step::Store(item) = step else { return false };
        let unit = u64::from(self.items[item as usize].unit);
        unit * self.unit_words as u64 * 8 >= SUPERBLOCK_BYTES
    }

    /// Operations under test that were invoked before `time`.
    pub(crate) fn invoked_before(&self, time: u32) -> usize {
        self.operations.iter().filter(|&&(invoked, _)| invoked < time).count()
    }

    /// Operations under test that were acknowledged before `time`.
    pub(crate) fn acknowledged_before(&self, time: u32) -> usize {
        self.operations.iter().filter(|&&(_, returned)| returned < time).count()
    }
}

impl Compiler {
    fn event(&mut self, time: u32, thread: u32, event: &Event) {
        match event {
            Event::Store { word, new, role, .. } => {
                self.store(time, *word, &[*new], *role == Role::Transient);
            }
            Event::Fill { first, new } => {
                self.store(time, *first, new, false);
                let bytes = self.program.unit_words * 8;
                let start = *first as usize * 8 / bytes;
                let end = (*first as usize + new.len()) * 8;
                let units = start as u32..end.div_ceil(bytes) as u32;
                self.flush(time, thread, units);
            }
            Event::Flush { first, lines } => {
                let units = (LINE_BYTES / 8 / self.program.unit_words) as u32;
                self.flush(time, thread, first * units..(first + lines) * units);
            }
            Event::Fence => self.fence(time, thread),
            Event::Grow { bytes } => self.program.steps.push((time, Step::Grow(*bytes))),
            Event::Invoke { operation } => {
                debug_assert_eq!(self.program.operations.len(), *operation as usize);
                self.program.operations.push((time, NEVER));
            }
            Event::Return { operation } => {
                self.program.operations[*operation as usize].1 = time;
            }
        }
    }

    /// Stores consecutive words: one item for each unit that they touch.
    fn store(&mut self, time: u32, first: u32, new: &[u64], is_transient: bool) {
        let unit_words = self.program.unit_words;
        let mut word = first as usize;
        let mut rest = new;
        while !rest.is_empty() {
            let place = word % unit_words;
            let (here, after) = rest.split_at(rest.len().min(unit_words - place));
            let mut values = [0; LINE_WORDS];
            values[place..place + here.len()].copy_from_slice(here);
            let mask = (((1_u32 << here.len()) - 1) << place) as u8;
            let unit = (word / unit_words) as u32;
            let index = self.program.items.len() as u32;
            let item = Item { unit, time, sealed: NEVER, mask, is_transient, values };
            self.program.items.push(item);
            self.program.steps.push((time, Step::Store(index)));
            self.open.entry(unit).or_default().push(index);
            word += here.len();
            rest = after;
        }
    }

    fn flush(&mut self, time: u32, thread: u32, units: core::ops::Range<u32>) {
        let pending = self.pending.entry(thread).or_default();
        pending.extend(units.filter(|unit| self.open.contains_key(unit)).map(|unit| (unit, time)));
    }

    fn fence(&mut self, time: u32, thread: u32) {
        for (unit, upto) in self.pending.remove(&thread).unwrap_or_default() {
            let Some(open) = self.open.get_mut(&unit) else { continue };
            let items = &mut self.program.items;
            let sealed = open.partition_point(|&item| items[item as usize].time <= upto);
            if sealed == 0 {
                continue;
            }
            for item in open.drain(..sealed) {
                items[item as usize].sealed = time;
            }
            if open.is_empty() {
                self.open.remove(&unit);
            }
            self.program.steps.push((time, Step::Seal { unit, upto }));
        }
    }
}
