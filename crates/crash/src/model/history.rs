//! The store history: a trace as a list of stores to persist units, and of guarantees about them.
//!
//! A persist unit persists as a prefix of its stores. In px86 it is a line of 64 B, in the stricter
//! model a word of 8 B. The size is the only difference between these two. The model of a disk is
//! in [`journal`](super::journal).
//!
//! 1. Units persist independently of each other, at any moment.
//! 2. The next fence of the flushing thread guarantees a flush, for the stores that were in the
//!    unit at the time of the flush. Nothing else guarantees it.
//! 3. The words of a fill have no order among themselves. Each comes after the stores before the
//!    fill and before the stores after it. The next fence of its thread guarantees a fill.
//! 4. An item is one store, or the words that one fill stores in one unit. The items of a unit are
//!    in the order of their times.

use crate::config::PersistenceModel;
use crate::model::items::Changes;
pub(crate) use crate::model::items::{Item, Step};
use crate::model::journal::Copies;
use crate::trace::{Event, NEVER, StoreRole, Trace, TraceEntry, poison};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use std::collections::HashMap;

/// The end of the superblocks. Every open writes them, and the scenarios of opening explore that.
pub(crate) const SUPERBLOCK_BYTES: u64 = 0x2000;

/// A trace, compiled for one persistence model.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreHistory {
    pub(crate) unit_words: usize,
    /// Set if fences go to a journal.
    pub(crate) has_journal: bool,
    pub(crate) items: Vec<Item>,
    /// The steps, each with its time.
    pub(crate) steps: Vec<(u32, Step)>,
    /// The earliest time at which an item or a later one is guaranteed, by item.
    sealed_from: Vec<u32>,
    /// The times of invocation and acknowledgement of each operation under test.
    operations: Vec<(u32, u32)>,
    pub(crate) begin: u32,
    /// The greatest length of the medium, durable or not, in bytes.
    pub(crate) bytes_max: u64,
}

/// The flushes of each thread that no fence guaranteed yet: unit, and time of the flush.
type Pending = HashMap<u32, Vec<(u32, u32)>>;

struct Compiler {
    history: StoreHistory,
    pending: Pending,
    /// The items of each unit that no fence has guaranteed.
    open: HashMap<u32, Vec<u32>>,
}

impl StoreHistory {
    pub(crate) fn compile(trace: &Trace, mode: PersistenceModel) -> Self {
        let history = Self {
            unit_words: mode.unit_words(),
            has_journal: mode == PersistenceModel::Disk,
            items: Vec::new(),
            steps: Vec::new(),
            sealed_from: Vec::new(),
            operations: Vec::new(),
            begin: trace.begin,
            bytes_max: trace.bytes,
        };
        let mut copies = history.has_journal.then(|| Copies::with(trace.defect));
        let mut compiler = Compiler { history, pending: HashMap::new(), open: HashMap::new() };
        for (time, TraceEntry { thread, event, .. }) in (0..).zip(&trace.entries) {
            let StoreHistory { items, steps, .. } = &mut compiler.history;
            let mut to = Changes { items, steps };
            let place = (time, *thread);
            if copies.as_mut().is_none_or(|copies| !copies.take(&mut to, place, event)) {
                compiler.event(time, *thread, event);
            }
        }
        let mut history = compiler.history;
        let mut least = NEVER;
        history.sealed_from = vec![NEVER; history.items.len()];
        for (index, item) in history.items.iter().enumerate().rev() {
            least = least.min(item.sealed);
            history.sealed_from[index] = least;
        }
        history
    }

    /// Returns the first time at which an image without the items from `item` on is ruled out.
    pub(crate) fn sealed_from(&self, item: usize) -> u32 {
        self.sealed_from.get(item).copied().unwrap_or(NEVER)
    }

    /// Returns the items from `first` on that are stored up to the time `crash`, with their words:
    /// an image whose newest item is the one before lacks them. That includes the rest of a fill
    /// which the newest item belongs to.
    pub(crate) fn stored_after(&self, first: usize, crash: u32) -> impl Iterator<Item = (u32, u8)> {
        let later = self.items.iter().enumerate().skip(first);
        let later = later.take_while(move |(_, item)| item.time <= crash);
        later.map(|(index, item)| (index as u32, item.mask))
    }

    /// Returns whether a crash is tried right after `step`, and if so whether its item is then the
    /// newest: items that are guaranteed at once leave no newest one.
    pub(crate) fn event(&self, step: Step) -> Option<bool> {
        match step {
            Step::Store(item) => (!self.items[item as usize].is_whole).then_some(true),
            Step::Whole => Some(false),
            Step::Seal { .. } | Step::Grow(_) => None,
        }
    }

    /// Returns `true` if `step` is a store outside the superblocks.
    pub(crate) fn is_past_superblocks(&self, step: Step) -> bool {
        if matches!(step, Step::Whole) {
            return true;
        }
        let Step::Store(item) = step else { return false };
        let unit = u64::from(self.items[item as usize].unit);
        unit * self.unit_words as u64 * 8 >= SUPERBLOCK_BYTES
    }

    /// Returns the number of operations under test that were invoked before `time`.
    pub(crate) fn invoked_before(&self, time: u32) -> usize {
        self.operations.iter().filter(|&&(invoked, _)| invoked < time).count()
    }

    /// Returns the time at which the first `count` operations under test were acknowledged, or
    /// `None` if there are fewer, or none is asked for.
    pub(crate) fn acknowledgement(&self, count: usize) -> Option<u32> {
        let &(_, returned) = self.operations.get(count.checked_sub(1)?)?;
        Some(returned).filter(|&returned| returned != NEVER)
    }

    /// Returns the number of operations under test that were acknowledged before `time`.
    pub(crate) fn acknowledged_before(&self, time: u32) -> usize {
        self.operations.iter().filter(|&&(_, returned)| returned < time).count()
    }
}

impl Compiler {
    fn event(&mut self, time: u32, thread: u32, event: &Event) {
        match event {
            Event::Store { word, new, role, .. } => {
                self.store(time, *word, &[*new], *role == StoreRole::Transient);
            }
            Event::Fill { first, new } => {
                self.store(time, *first, new, false);
                let bytes = self.history.unit_words * 8;
                let start = *first as usize * 8 / bytes;
                let end = (*first as usize + new.len()) * 8;
                let units = start as u32..end.div_ceil(bytes) as u32;
                self.flush(time, thread, units);
            }
            Event::Flush { first, lines } => {
                let units = (LINE_BYTES / 8 / self.history.unit_words) as u32;
                self.flush(time, thread, first * units..(first + lines) * units);
            }
            Event::Fence => self.fence(time, thread),
            Event::Grow { bytes } => self.history.bytes_max = *bytes,
            Event::SyncLength => {
                self.history.steps.push((time, Step::Grow(self.history.bytes_max)));
            }
            Event::Poison { first, words } => self.poison(time, *first, *words),
            // A fence of persistent memory leaves nothing to wait for.
            Event::Renew { .. } | Event::Rely { .. } | Event::Await(_) => {}
            Event::Invoke { operation } => {
                debug_assert_eq!(self.history.operations.len(), *operation as usize);
                self.history.operations.push((time, NEVER));
            }
            Event::Return { operation } => {
                self.history.operations[*operation as usize].1 = time;
            }
        }
    }

    /// Adds the store of consecutive words: one item for each unit.
    fn store(&mut self, time: u32, first: u32, new: &[u64], is_transient: bool) {
        let unit_words = self.history.unit_words;
        let mut word = first as usize;
        let mut rest = new;
        while !rest.is_empty() {
            let place = word % unit_words;
            let (here, after) = rest.split_at(rest.len().min(unit_words - place));
            let mut values = [0; LINE_WORDS];
            values[place..place + here.len()].copy_from_slice(here);
            let mask = (((1_u32 << here.len()) - 1) << place) as u8;
            let unit = (word / unit_words) as u32;
            let index = self.history.items.len() as u32;
            let (sealed, is_whole) = (NEVER, false);
            let item = Item { unit, time, sealed, mask, is_transient, is_whole, values };
            self.history.items.push(item);
            self.history.steps.push((time, Step::Store(index)));
            self.open.entry(unit).or_default().push(index);
            word += here.len();
            rest = after;
        }
    }

    /// Adds the words of a freed block, which are guaranteed with all before them.
    fn poison(&mut self, time: u32, first: u32, words: u32) {
        let from = self.history.items.len();
        let values: Vec<_> = (first..first + words).map(poison).collect();
        self.store(time, first, &values, false);
        for index in from..self.history.items.len() {
            self.history.items[index].is_whole = true;
            let unit = self.history.items[index].unit;
            for item in self.open.remove(&unit).unwrap_or_default() {
                self.history.items[item as usize].sealed = time;
            }
            self.history.steps.push((time, Step::Seal { unit, upto: time }));
        }
        self.history.steps.push((time, Step::Whole));
    }

    fn flush(&mut self, time: u32, thread: u32, units: core::ops::Range<u32>) {
        let pending = self.pending.entry(thread).or_default();
        pending.extend(units.filter(|unit| self.open.contains_key(unit)).map(|unit| (unit, time)));
    }

    fn fence(&mut self, time: u32, thread: u32) {
        for (unit, upto) in self.pending.remove(&thread).unwrap_or_default() {
            let Some(open) = self.open.get_mut(&unit) else { continue };
            let items = &mut self.history.items;
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
            self.history.steps.push((time, Step::Seal { unit, upto }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::panic::Location;
    use std::collections::BTreeMap;

    const EVENTS: u32 = 5;
    const KINDS: u32 = 9;

    /// Returns an event of `kind` that stores a different value at each time. The events use two
    /// lines and two threads.
    fn event(kind: u32, time: u32) -> (u32, Event) {
        let new = u64::from(time) + 1;
        let store = |word| Event::Store { word, old: 0, new, role: StoreRole::Data };
        let flush = |first| Event::Flush { first, lines: 1 };
        match kind {
            0 => (0, store(0)),
            1 => (0, store(1)),
            2 => (1, store(1)),
            3 => (0, store(8)),
            4 => (0, Event::Fill { first: 7, new: vec![new, new] }),
            5 => (0, flush(0)),
            6 => (1, flush(0)),
            7 => (0, Event::Fence),
            _ => (1, Event::Fence),
        }
    }

    /// Returns every image of two lines, with the time of its newest store and the time at which it
    /// is ruled out. Applies the invariants to each unit by itself.
    fn images(history: &StoreHistory) -> BTreeMap<Vec<u64>, (u32, u32)> {
        let mut found = BTreeMap::new();
        let mut sealed: BTreeMap<u32, usize> = BTreeMap::new();
        let of_unit = |unit, stored: usize| {
            let all = history.items.iter().enumerate().take(stored);
            all.filter(move |(_, item)| item.unit == unit).map(|(index, _)| index)
        };
        for &(time, step) in &history.steps {
            let stored = match step {
                Step::Store(item) => item as usize + 1,
                Step::Seal { unit, upto } => {
                    let before = |&index: &usize| history.items[index].time <= upto;
                    sealed.insert(unit, of_unit(unit, usize::MAX).take_while(before).count());
                    continue;
                }
                Step::Grow(_) | Step::Whole => continue,
            };
            let newest = stored - 1;
            // Each unit multiplies the images of the units before it by its own contents.
            let mut every = vec![(vec![0; 16], history.sealed_from(stored))];
            for unit in 0..16 / history.unit_words as u32 {
                let items: Vec<_> = of_unit(unit, stored).collect();
                let guaranteed = sealed.get(&unit).copied().unwrap_or(0);
                let is_newest = history.items[newest].unit == unit;
                let least = if is_newest { items.len() } else { guaranteed };
                let mut more = Vec::new();
                for count in least..=items.len() {
                    let last = count.checked_sub(1).map(|last| items[last]);
                    let mask = last.map_or(0, |last| history.items[last].mask);
                    // No word of a guaranteed item is missing.
                    let some = |subset: &u8| subset & !mask == 0;
                    let subsets: Vec<u8> = if count == guaranteed {
                        vec![mask]
                    } else {
                        (1..=255).filter(some).collect()
                    };
                    for (image, ended) in &every {
                        for &subset in &subsets {
                            let (mut image, mut ended) = (image.clone(), *ended);
                            for (place, &index) in items.iter().enumerate() {
                                let item = &history.items[index];
                                let there = match (place + 1).cmp(&count) {
                                    core::cmp::Ordering::Less => item.mask,
                                    core::cmp::Ordering::Equal => subset,
                                    core::cmp::Ordering::Greater => 0,
                                };
                                if item.mask & !there != 0 {
                                    ended = ended.min(item.sealed);
                                }
                                let words = (0..8).filter(|word| there & (1 << word) != 0);
                                let first = unit as usize * history.unit_words;
                                words.for_each(|word| image[first + word] = item.values[word]);
                            }
                            more.push((image, ended));
                        }
                    }
                }
                every = more;
            }
            for (image, ended) in every {
                let known = found.entry(image).or_insert((time, ended));
                known.1 = known.1.max(ended);
            }
        }
        found
    }

    #[test]
    fn words_have_every_image_that_lines_have_and_demand_no_less_of_it() {
        let (mut lines, mut words) = (0, 0);
        for number in 0..KINDS.pow(EVENTS) {
            let mut trace = Trace { bytes: 128, ..Trace::default() };
            for time in 0..EVENTS {
                let (thread, event) = event(number / KINDS.pow(time) % KINDS, time);
                trace.entries.push(TraceEntry { thread, at: Location::caller(), event });
            }
            let of_lines = images(&StoreHistory::compile(&trace, PersistenceModel::Px86));
            let of_words = images(&StoreHistory::compile(&trace, PersistenceModel::Word));
            for (image, (since, ended)) in &of_lines {
                let strict = of_words.get(image);
                let &(at, until) = strict.unwrap_or_else(|| panic!("{image:?} of {trace:?}"));
                assert!(at == *since && until >= *ended, "{image:?} of {trace:?}");
            }
            lines += of_lines.len();
            words += of_words.len();
        }
        // The reverse does not hold.
        assert!(words > lines, "{words} and {lines}");
    }
}
