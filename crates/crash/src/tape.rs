//! What a recorder writes down.
//!
//! 1. The time of an event is its position on the tape: time 0 is the first.
//! 2. An event knows the place in the code that it came from, as the medium's caller.
//! 3. What lies before [`Tape::begin`] is setup: no crash is tried there, but what it stored and
//!    did not make durable stays as uncertain as it is.

pub(crate) use bristlecone_pmem::medium::{CallSite, StoreRole};

use bristlecone_pmem::Defect;
use core::fmt;
use core::panic::Location;

/// Words of a line, as tapes number them.
const LINE_WORDS: u32 = bristlecone_pmem::line::LINE_WORDS as u32;

/// Something that a thread did to the medium, or a mark of the operation that it did it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A store of one word.
    Store { word: u32, old: u64, new: u64, role: StoreRole },
    /// Stores of consecutive words in no order, flushed.
    Fill { first: u32, new: Vec<u64> },
    /// A flush of so many lines.
    Flush { first: u32, lines: u32 },
    /// A fence.
    Fence,
    /// The medium grew, and is durably so.
    Grow { bytes: u64 },
    /// The operation under test of that number begins.
    Invoke { operation: u32 },
    /// It is acknowledged.
    Return { operation: u32 },
}

/// An event and the thread that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) thread: u32,
    pub(crate) at: CallSite,
    pub(crate) event: Event,
}

/// All that happened to a medium, from its first byte on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    /// Bytes of the medium at the beginning.
    pub(crate) bytes: u64,
    /// The events.
    pub(crate) entries: Vec<Entry>,
    /// Time at which the operations under test begin.
    pub(crate) begin: u32,
}

/// A defect put into what is recorded: as if the code left an ordering step of the operations under
/// test out, or stored in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sabotage {
    /// The flush of that number is left out.
    SkipFlush(u32),
    /// The fence of that number is left out.
    SkipFence(u32),
    /// Every flush from a place in the code is left out, in recoveries too.
    NoFlush(&'static Location<'static>),
    /// Every fence from a place in the code is left out, in recoveries too.
    NoFence(&'static Location<'static>),
    /// Whatever `late` stores next after `early` stored comes right before it instead, in
    /// recoveries too.
    Reorder {
        /// What stores first.
        early: &'static Location<'static>,
        /// What stores next.
        late: &'static Location<'static>,
        /// Whether the code asks for this order: what comes next commits, or is the last store to the
        /// line of both before its flush.
        is_asked: bool,
    },
    /// The check of a version at a place passes always.
    NoCheck(&'static Location<'static>),
    /// A published defect, in recoveries and in what is done after them too.
    Seed(Defect),
}

impl Sabotage {
    /// The published defect, if it is one.
    pub(crate) const fn defect(self) -> Option<Defect> {
        match self {
            Self::Seed(defect) => Some(defect),
            _ => None,
        }
    }

    /// Whether something is wrong with the design, or with the scenarios, if nothing gives it away: not
    /// if it is an order of stores that nobody asks for.
    pub(crate) const fn should_die(self) -> bool {
        !matches!(self, Self::Reorder { is_asked: false, .. })
    }

    /// The same, whether or not anybody asks for the order.
    pub(crate) const fn unasked(self) -> Self {
        match self {
            Self::Reorder { early, late, .. } => Self::Reorder { early, late, is_asked: false },
            other => other,
        }
    }

    /// The place of the check, if it is one.
    pub(crate) const fn check(self) -> Option<CallSite> {
        match self {
            Self::NoCheck(at) => Some(at),
            _ => None,
        }
    }
}

impl fmt::Display for Sabotage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SkipFlush(number) => write!(f, "without flush number {number}"),
            Self::SkipFence(number) => write!(f, "without fence number {number}"),
            Self::NoFlush(at) => write!(f, "without the flush of {}", shown(at)),
            Self::NoFence(at) => write!(f, "without the fence of {}", shown(at)),
            Self::Reorder { early, late, .. } => {
                write!(f, "with the store of {} before that of {}", shown(late), shown(early))
            }
            Self::NoCheck(at) => write!(f, "without the check of {}", shown(at)),
            Self::Seed(defect) => write!(f, "with {}", defect.about().name),
        }
    }
}

/// A place, from the folder of its package on.
fn shown(at: CallSite) -> String {
    let file = at.file();
    let start = file.rfind("crates/").map_or(0, |start| start + "crates/".len());
    format!("{}:{}", &file[start..], at.line())
}

impl Tape {
    /// The sabotages that the events from `begin` on allow, without those of numbers. Stores to a
    /// line count as ordered only if `lines_are_ordered`.
    pub(crate) fn sabotages(&self, lines_are_ordered: bool) -> Vec<Sabotage> {
        let tested = &self.entries[self.begin as usize..];
        let mut found = Vec::new();
        let mut add = |sabotage| {
            if !found.contains(&sabotage) {
                found.push(sabotage);
            }
        };
        for entry in tested {
            match entry.event {
                Event::Flush { .. } => add(Sabotage::NoFlush(entry.at)),
                Event::Fence => add(Sabotage::NoFence(entry.at)),
                _ => {}
            }
        }
        for (early, late) in self.ordered(lines_are_ordered) {
            let commits =
                |entry: &Entry| matches!(entry.event, Event::Store { role: StoreRole::Commit, .. });
            let is_asked = commits(&self.entries[late])
                || self.share_a_line(early, late) && self.ends_its_line(late);
            let (early, late) = (self.entries[early].at, self.entries[late].at);
            add(Sabotage::Reorder { early, late, is_asked });
        }
        found
    }

    /// Whether the operations under test stored anything, latches and versions too.
    pub(crate) fn has_stored(&self) -> bool {
        let mut tested = self.entries[self.begin as usize..].iter();
        tested.any(|entry| matches!(entry.event, Event::Store { .. } | Event::Fill { .. }))
    }

    /// Whether they changed anything but latches and versions.
    pub(crate) fn has_changed(&self) -> bool {
        let mut tested = self.entries[self.begin as usize..].iter();
        tested.any(|entry| entry.event.stored().is_some())
    }

    /// Whether the first of two stores is to the line in which the second one ends.
    fn share_a_line(&self, early: usize, late: usize) -> bool {
        let [former, words] = [early, late].map(|number| self.entries[number].event.stored());
        let of_both = former.zip(words);
        of_both.is_some_and(|(former, words)| {
            former.start / LINE_WORDS == (words.end - 1) / LINE_WORDS
        })
    }

    /// Whether the event of that number is the last store to its line before the line is flushed.
    fn ends_its_line(&self, number: usize) -> bool {
        let Event::Store { word, .. } = self.entries[number].event else { return false };
        let line = word / LINE_WORDS;
        let of_line = self.entries[number + 1..].iter().find_map(|entry| match &entry.event {
            Event::Flush { first, lines } => {
                (*first..first + lines).contains(&line).then_some(true)
            }
            event => {
                let words = event.stored()?;
                (words.start / LINE_WORDS..=(words.end - 1) / LINE_WORDS)
                    .contains(&line)
                    .then_some(false)
            }
        });
        of_line == Some(true)
    }

    /// Neighbours among the stores of each operation that have an order: a fence lies between them,
    /// or both are to the same line. Stores of what is there already do not count.
    fn ordered(&self, lines_are_ordered: bool) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let (mut last, mut fenced) = (None, false);
        for (index, entry) in self.entries.iter().enumerate().skip(self.begin as usize) {
            match entry.event {
                Event::Fence => fenced = true,
                Event::Invoke { .. } => last = None,
                _ => {}
            }
            let Some(words) = entry.event.stored() else { continue };
            if let Some((early, former)) = last.replace((index, words.clone())) {
                let same_line = former.start / LINE_WORDS == (words.end - 1) / LINE_WORDS;
                let disjoint = former.end <= words.start || words.end <= former.start;
                if disjoint && (fenced || (lines_are_ordered && same_line)) {
                    pairs.push((early, index));
                }
            }
            fenced = false;
        }
        pairs
    }

    /// Puts a defect of order into the tape.
    pub(crate) fn reorder(&mut self, sabotage: Sabotage) {
        let Sabotage::Reorder { early, late, .. } = sabotage else { return };
        for (first, second) in self.ordered(true) {
            if self.entries[first].at == early && self.entries[second].at == late {
                self.entries[first..=second].rotate_right(1);
            }
        }
    }
}

impl Event {
    /// The words that the event stores, if it stores data.
    fn stored(&self) -> Option<core::ops::Range<u32>> {
        match self {
            Self::Store { role: StoreRole::Transient, .. } => None,
            Self::Store { old, new, .. } if old == new => None,
            Self::Store { word, .. } => Some(*word..word + 1),
            Self::Fill { first, new } => Some(*first..first + new.len() as u32),
            _ => None,
        }
    }
}

/// How many ordering steps the operations under test took: how many defects can be seeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Calls that flush.
    pub flushes: u32,
    /// Fences.
    pub fences: u32,
}

impl Sites {
    /// Every way in which one of the steps can be left out.
    pub fn sabotages(self) -> impl Iterator<Item = Sabotage> {
        let flushes = (0..self.flushes).map(Sabotage::SkipFlush);
        flushes.chain((0..self.fences).map(Sabotage::SkipFence))
    }
}
