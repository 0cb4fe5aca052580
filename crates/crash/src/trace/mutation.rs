//! Mutations of the code under test: an ordering step left out, two stores exchanged, a check that
//! passes always, or a published defect.

use crate::trace::{CallSite, Event, StoreRole, Trace, TraceEntry};
use bristlecone_pmem::Defect;
use core::fmt;
use core::panic::Location;

const LINE_WORDS: u32 = bristlecone_pmem::line::LINE_WORDS as u32;

/// A defect put into what is recorded: as if the code left an ordering step of the operations under
/// test out, or stored in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutation {
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
        is_required: bool,
    },
    /// The check of a version at a place passes always.
    NoCheck(&'static Location<'static>),
    /// A published defect, in recoveries and in what is done after them too.
    Inject(Defect),
}

impl Mutation {
    /// The published defect, if it is one.
    pub(crate) const fn defect(self) -> Option<Defect> {
        match self {
            Self::Inject(defect) => Some(defect),
            _ => None,
        }
    }

    /// Whether something is wrong with the design, or with the scenarios, if nothing gives it away: not
    /// if it is an order of stores that nobody asks for.
    pub(crate) const fn is_expected_to_die(self) -> bool {
        !matches!(self, Self::Reorder { is_required: false, .. })
    }

    /// The same, whether or not anybody asks for the order.
    pub(crate) const fn without_requirement(self) -> Self {
        match self {
            Self::Reorder { early, late, .. } => Self::Reorder { early, late, is_required: false },
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

impl fmt::Display for Mutation {
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
            Self::Inject(defect) => write!(f, "with {}", defect.about().name),
        }
    }
}

/// A place, from the folder of its package on.
fn shown(at: CallSite) -> String {
    let file = at.file();
    let start = file.rfind("crates/").map_or(0, |start| start + "crates/".len());
    format!("{}:{}", &file[start..], at.line())
}

/// How many ordering steps the operations under test took: how many defects can be seeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MutationSites {
    /// Calls that flush.
    pub flushes: u32,
    /// Fences.
    pub fences: u32,
}

impl MutationSites {
    /// Every way in which one of the steps can be left out.
    pub fn mutations(self) -> impl Iterator<Item = Mutation> {
        let flushes = (0..self.flushes).map(Mutation::SkipFlush);
        flushes.chain((0..self.fences).map(Mutation::SkipFence))
    }
}

impl Trace {
    /// The sabotages that the events from `begin` on allow, without those of numbers. Stores to a
    /// line count as ordered only if `lines_are_ordered`.
    pub(crate) fn mutations(&self, lines_are_ordered: bool) -> Vec<Mutation> {
        let tested = &self.entries[self.begin as usize..];
        let mut found = Vec::new();
        let mut add = |mutation| {
            if !found.contains(&mutation) {
                found.push(mutation);
            }
        };
        for entry in tested {
            match entry.event {
                Event::Flush { .. } => add(Mutation::NoFlush(entry.at)),
                Event::Fence => add(Mutation::NoFence(entry.at)),
                _ => {}
            }
        }
        for (early, late) in self.ordered(lines_are_ordered) {
            let commits = |entry: &TraceEntry| {
                matches!(entry.event, Event::Store { role: StoreRole::Commit, .. })
            };
            let is_required = commits(&self.entries[late])
                || self.share_a_line(early, late) && self.ends_its_line(late);
            let (early, late) = (self.entries[early].at, self.entries[late].at);
            add(Mutation::Reorder { early, late, is_required });
        }
        found
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
    pub(crate) fn reorder(&mut self, mutation: Mutation) {
        let Mutation::Reorder { early, late, .. } = mutation else { return };
        for (first, second) in self.ordered(true) {
            if self.entries[first].at == early && self.entries[second].at == late {
                self.entries[first..=second].rotate_right(1);
            }
        }
    }
}
