//! The store history of a disk with a journal of lines beneath the medium, as
//! `bristlecone_pmem::journal` keeps it.
//!
//! 1. A fence copies the lines that its thread has flushed and filled since its fence before, each
//!    as it is at the fence. The copies are in the order of the fences, and within one in that of
//!    the flushes.
//! 2. A crash leaves the copies before some point of that order, and nothing else: no store that
//!    was not flushed, and no copy without all before it. So each copy has one image.
//! 3. A wait guarantees all copies so far (`Durability::Commit`), or, if it is one for what the
//!    thread has read, those up to the newest copy of a line that the thread relies on. The journal
//!    enters a position for each line of a fence, also if nothing was stored to it since the last.
//! 4. A freed block is overwritten at once, as in the other models: by copies like any other.

use crate::model::items::{Changes, Item, Step};
use crate::trace::{Awaited, Event, NEVER, StoreRole, poison};
use bristlecone_pmem::Defect;
use bristlecone_pmem::line::LINE_WORDS;
use std::collections::HashMap;

/// A line of working memory.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The words that the trace has stored, one bit each.
    mask: u8,
    values: [u64; LINE_WORDS],
    /// The values of these words before the trace.
    before: [u64; LINE_WORDS],
    /// Set if all stored words are latches or versions.
    is_transient: bool,
    /// Set if a store came after the last copy.
    is_new: bool,
    /// The number of copies up to the newest one of this line.
    copied: usize,
}

/// The copies of lines that fences make.
#[derive(Default)]
pub(super) struct Copies {
    memory: HashMap<u32, Line>,
    /// The lines that each thread has noted, each once, with their contents at the flush.
    noted: HashMap<u32, Vec<(u32, Line)>>,
    /// The number of copies that each thread relies on.
    relied_on: HashMap<u32, usize>,
    /// The number of copies that a wait has guaranteed.
    guaranteed: usize,
    /// The rule of the journal that is broken.
    defect: Option<Defect>,
}

impl Copies {
    pub(super) fn with(defect: Option<Defect>) -> Self {
        Self { defect, ..Self::default() }
    }

    /// Adds what `event` does to a history whose units are lines. Returns `false` for an event that
    /// is the same in all models.
    pub(super) fn take(
        &mut self,
        to: &mut Changes<'_>,
        (time, thread): (u32, u32),
        event: &Event,
    ) -> bool {
        match event {
            Event::Store { word, old, new, role } => {
                self.store(*word, *old, *new, *role == StoreRole::Transient);
            }
            Event::Fill { first, new } => {
                for (word, &new) in (*first..).zip(new) {
                    self.store(word, 0, new, false);
                }
                lines(*first, new.len() as u32).for_each(|line| self.note(thread, line));
            }
            Event::Flush { first, lines } | Event::Renew { first, lines } => {
                (*first..first + lines).for_each(|line| self.note(thread, line));
            }
            Event::Fence => {
                let is_early = self.defect == Some(Defect::CopyFirst);
                for (line, flushed) in self.noted.remove(&thread).unwrap_or_default() {
                    self.copy(to, time, line, is_early.then_some(flushed)); // I1
                }
            }
            Event::Poison { first, words } => {
                (*first..first + words).for_each(|word| self.store(word, 0, poison(word), false));
                lines(*first, *words).for_each(|line| self.copy(to, time, line, None)); // I4
            }
            Event::Rely { first, lines } => {
                let copied = |line| self.memory.get(&line).map_or(0, |line| line.copied);
                let newest = (*first..first + lines).map(copied).max().unwrap_or(0);
                let relied_on = self.relied_on.entry(thread).or_default();
                *relied_on = newest.max(*relied_on);
            }
            Event::Await(awaited) => {
                let noted = self.relied_on.remove(&thread).unwrap_or(0);
                let all = to.items.len();
                self.guarantee(to, time, if *awaited == Awaited::All { all } else { noted }); // I3
            }
            Event::Grow { .. }
            | Event::SyncLength
            | Event::Invoke { .. }
            | Event::Return { .. } => return false,
        }
        true
    }

    fn store(&mut self, word: u32, old: u64, new: u64, is_transient: bool) {
        let line = self.memory.entry(word / LINE_WORDS as u32).or_default();
        let place = word as usize % LINE_WORDS;
        if line.mask & (1 << place) == 0 {
            line.before[place] = old;
        }
        line.is_transient = is_transient && (line.is_transient || line.mask == 0);
        line.mask |= 1 << place;
        line.values[place] = new;
        line.is_new = true;
    }

    fn note(&mut self, thread: u32, line: u32) {
        let now = self.memory.get(&line).copied().unwrap_or_default();
        let noted = self.noted.entry(thread).or_default();
        match noted.iter_mut().find(|(known, _)| *known == line) {
            Some((_, flushed)) => *flushed = now,
            None => noted.push((line, now)),
        }
    }

    /// Adds the copy of a line, which every later crash has. If the last copy of the line is the
    /// same, there is no new image, but who relies on the line waits for all copies before this.
    /// An `early` copy takes the place of the line as it is now.
    fn copy(&mut self, to: &mut Changes<'_>, time: u32, unit: u32, early: Option<Line>) {
        let line = self.memory.entry(unit).or_default();
        if line.mask == 0 || !line.is_new && early.is_none() {
            line.copied = to.items.len();
            return;
        }
        let index = to.items.len();
        (line.is_new, line.copied) = (early.is_some(), index + 1);
        let Line { mask, mut values, before, is_transient, .. } = *line;
        if let Some(early) = early {
            let was_stored = |place: usize| early.mask & (1 << place) != 0;
            values = core::array::from_fn(|place| {
                if was_stored(place) { early.values[place] } else { before[place] }
            });
        }
        let (sealed, is_whole) = (NEVER, true);
        to.items.push(Item { unit, time, sealed, mask, is_transient, is_whole, values });
        to.steps.push((time, Step::Store(index as u32)));
        to.steps.push((time, Step::Seal { unit, upto: time }));
        to.steps.push((time, Step::Whole)); // I2
    }

    /// Guarantees the first `count` copies from `time` on.
    fn guarantee(&mut self, to: &mut Changes<'_>, time: u32, count: usize) {
        if count > self.guaranteed {
            to.items[self.guaranteed..count].iter_mut().for_each(|item| item.sealed = time);
            self.guaranteed = count;
        }
    }
}

/// Returns the lines of `count` words from `first` on.
fn lines(first: u32, count: u32) -> core::ops::Range<u32> {
    first / LINE_WORDS as u32..(first + count).div_ceil(LINE_WORDS as u32)
}
