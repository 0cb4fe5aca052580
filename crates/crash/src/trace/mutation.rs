//! Mutations of the code under test: an ordering step left out, two stores exchanged, a check that
//! passes always, or a published defect.

use crate::trace::{CallSite, Event, StoreRole, Trace, TraceEntry};
use bristlecone_pmem::Defect;
use core::fmt;
use core::panic::Location;

const LINE_WORDS: u32 = bristlecone_pmem::line::LINE_WORDS as u32;

/// A mutation of the code under test: an ordering step removed or changed, or a published defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// The removal of the flush with this number, counted over the operations under test.
    SkipFlush(u32),
    /// The removal of the fence with this number, counted over the operations under test.
    SkipFence(u32),
    /// The removal of every flush of a call site, also from recoveries.
    NoFlush(&'static Location<'static>),
    /// The removal of every fence of a call site, also from recoveries.
    NoFence(&'static Location<'static>),
    /// The removal of every sync of the medium's length at a call site, also from recoveries.
    NoSync(&'static Location<'static>),
    /// The exchange of two stores, also in recoveries: each store of `late` that directly follows
    /// one of `early` comes before it.
    Reorder {
        /// The call site of the first store.
        early: &'static Location<'static>,
        /// The call site of the next store.
        late: &'static Location<'static>,
        /// Set if the code relies on the order: the second store commits, or is the last to the
        /// line of both before its flush.
        is_required: bool,
    },
    /// The version check at a call site, which then passes always.
    NoCheck(&'static Location<'static>),
    /// A published defect, injected also into recoveries and the operations after them.
    Inject(Defect),
}

impl Mutation {
    /// Returns the injected defect, or `None` for another mutation.
    pub(crate) const fn defect(self) -> Option<Defect> {
        match self {
            Self::Inject(defect) => Some(defect),
            _ => None,
        }
    }

    /// Returns `true` if a surviving mutant points to a fault of the design or to a missing
    /// scenario. `false` for an order of stores that no code relies on.
    pub(crate) const fn is_expected_to_die(self) -> bool {
        !matches!(self, Self::Reorder { is_required: false, .. })
    }

    /// Returns this mutation with [`is_required`](Self::Reorder::is_required) cleared, as a key
    /// that is the same for both.
    pub(crate) const fn without_requirement(self) -> Self {
        match self {
            Self::Reorder { early, late, .. } => Self::Reorder { early, late, is_required: false },
            other => other,
        }
    }

    /// Returns the call site of a mutated version check, or `None` for another mutation.
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
            Self::NoSync(at) => write!(f, "without the sync of {}", shown(at)),
            Self::Reorder { early, late, .. } => {
                write!(f, "with the store of {} before that of {}", shown(late), shown(early))
            }
            Self::NoCheck(at) => write!(f, "without the check of {}", shown(at)),
            Self::Inject(defect) => write!(f, "with {}", defect.about().name),
        }
    }
}

/// Returns a call site with its path from the folder of the package on.
fn shown(at: CallSite) -> String {
    let file = at.file();
    let start = file.rfind("crates/").map_or(0, |start| start + "crates/".len());
    format!("{}:{}", &file[start..], at.line())
}

/// The number of ordering steps of the operations under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MutationSites {
    /// The number of calls that flush.
    pub flushes: u32,
    /// The number of fences.
    pub fences: u32,
}

impl MutationSites {
    /// Returns every mutation that removes one of these steps by its number.
    pub fn mutations(self) -> impl Iterator<Item = Mutation> {
        let flushes = (0..self.flushes).map(Mutation::SkipFlush);
        flushes.chain((0..self.fences).map(Mutation::SkipFence))
    }
}

impl Trace {
    /// Returns the mutations by call site that the events from `begin` on allow. Two stores to one
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
                Event::SyncLength => add(Mutation::NoSync(entry.at)),
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

    /// Returns `true` if the first of two stores is to the line in which the second one ends.
    fn share_a_line(&self, early: usize, late: usize) -> bool {
        let [former, words] = [early, late].map(|number| self.entries[number].event.stored());
        let of_both = former.zip(words);
        of_both.is_some_and(|(former, words)| {
            former.start / LINE_WORDS == (words.end - 1) / LINE_WORDS
        })
    }

    /// Returns `true` if the event is the last store to its line before the flush of that line.
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

    /// Returns the pairs of consecutive stores of an operation that have an order: a fence lies
    /// between them, or both are to one line. A store of the value that is there already does not
    /// count.
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

    /// Exchanges the stores of a [`Reorder`](Mutation::Reorder).
    pub(crate) fn reorder(&mut self, mutation: Mutation) {
        let Mutation::Reorder { early, late, .. } = mutation else { return };
        for (first, second) in self.ordered(true) {
            if self.entries[first].at == early && self.entries[second].at == late {
                self.entries[first..=second].rotate_right(1);
            }
        }
    }
}
