//! The processor's cache of persistent lines, and the lines that are under way to or from it.
//!
//! 1. Within a set the way that was used last comes first, so the last one is the one to evict.
//! 2. A set is chosen by a hash, as the slices of a last-level cache are: tables that lie at round
//!    distances do not meet in a few sets. Lines that are neighbours have sets that are: so a node is
//!    looked up without a walk through all of the tags.

use super::profile::{Cpu, Time};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::sys::prefetch;

/// Number of a line, from the base of the medium.
pub(super) type Line = u32;

/// A way that holds nothing; no line has so high a number.
const EMPTY: u32 = u32::MAX;
const DIRTY: u32 = 1;

/// A write-back cache with least recently used replacement.
#[derive(Debug)]
pub(super) struct Cache {
    /// Line and dirty bit of each way of each set.
    tags: Vec<u32>,
    ways: usize,
    /// Sets of a group, as a power of two: as many lines that are neighbours share a group.
    group_shift: u32,
    groups: u64,
}

/// Sets of a group, where there are as many.
const GROUP_SHIFT: u32 = 3;

/// What a line found in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Itself.
    Hit,
    /// A way, whose line was dirty and has to be written.
    Miss {
        /// That line.
        evicted: Option<Line>,
    },
}

impl Cache {
    /// An empty one.
    pub(super) fn new(cpu: &Cpu) -> Self {
        let sets = cpu.cache_bytes / (cpu.cache_ways * LINE_BYTES) as u64;
        let group_shift = GROUP_SHIFT.min(sets.ilog2());
        let groups = sets >> group_shift;
        let ways = cpu.cache_ways;
        let tags = vec![EMPTY; (groups << group_shift) as usize * ways];
        Self { tags, ways, group_shift, groups }
    }

    /// Index of the first way of the set of `line`.
    #[inline(always)]
    pub(super) fn set_of(&self, line: Line) -> usize {
        let hash = (line >> self.group_shift).wrapping_mul(0x9E37_79B1);
        let group = ((u64::from(hash) * self.groups) >> 32) as usize;
        // Within a group other bits of the hash say in which order lines and sets go together.
        let within = (line ^ hash >> 10) & ((1 << self.group_shift) - 1);
        (group << self.group_shift | within as usize) * self.ways
    }

    /// Makes `line` the newest of the set at `set`, and dirty if it is stored to.
    #[inline(always)]
    pub(super) fn access(&mut self, set: usize, line: Line, is_store: bool) -> Lookup {
        let ways = &mut self.tags[set..set + self.ways];
        let stored = u32::from(is_store);
        let found = ways.iter().position(|tag| tag >> 1 == line);
        let last = ways.len() - 1;
        let at = found.unwrap_or(last);
        let former = ways[at];
        ways.copy_within(..at, 1);
        if found.is_some() {
            ways[0] = former | stored;
            return Lookup::Hit;
        }
        ways[0] = line << 1 | stored;
        let is_dirty = former != EMPTY && former & DIRTY != 0;
        Lookup::Miss { evicted: is_dirty.then_some(former >> 1) }
    }

    /// Makes the newest line of the set at `set` dirty.
    #[inline(always)]
    pub(super) fn soil(&mut self, set: usize) {
        self.tags[set] |= DIRTY;
    }

    /// Has the tags of the set at `set` brought near to the processor that runs the model.
    #[inline(always)]
    pub(super) fn near(&self, set: usize) {
        prefetch((&raw const self.tags[set]) as usize);
        prefetch((&raw const self.tags[set + self.ways - 1]) as usize);
    }

    /// Whether it holds `line`.
    #[cfg(test)]
    fn has(&self, line: Line) -> bool {
        let set = self.set_of(line);
        self.tags[set..set + self.ways].iter().any(|tag| tag >> 1 == line)
    }

    /// Writes `line` back, and forgets it unless it is kept; whether it was dirty.
    #[inline]
    pub(super) fn clean(&mut self, line: Line, is_kept: bool) -> bool {
        let set = self.set_of(line);
        let ways = &mut self.tags[set..set + self.ways];
        let Some(at) = ways.iter().position(|tag| tag >> 1 == line) else { return false };
        let is_dirty = ways[at] & DIRTY != 0;
        if is_kept {
            ways[at] &= !DIRTY;
        } else {
            ways.copy_within(at + 1.., at);
            ways[self.ways - 1] = EMPTY;
        }
        is_dirty
    }
}

/// Lines under way between a core and memory: there are only so many at a time.
#[derive(Debug)]
pub(super) struct Flights {
    /// Line and arrival of each.
    lines: Vec<(Line, Time)>,
    /// The one that arrives first, when it was last looked for.
    next: usize,
    /// The last arrival of all.
    last: Time,
}

impl Flights {
    pub(super) fn new(cpu: &Cpu) -> Self {
        Self { lines: vec![(EMPTY, 0); cpu.outstanding], next: 0, last: 0 }
    }

    /// When there is room for one more at `now`, or once one of those under way has arrived.
    #[inline]
    pub(super) fn room(&mut self, now: Time) -> Time {
        for (index, &(_, arrival)) in self.lines.iter().enumerate() {
            if arrival < self.lines[self.next].1 {
                self.next = index;
            }
        }
        now.max(self.lines[self.next].1)
    }

    /// Sends `line` off, to arrive at `arrival`, in the place that [`room`](Self::room) found.
    pub(super) fn send(&mut self, line: Line, arrival: Time) {
        self.lines[self.next] = (line, arrival);
        self.last = self.last.max(arrival);
    }

    /// When `line` is there; now, if it is not under way.
    #[inline(always)]
    pub(super) fn arrival(&self, line: Line, now: Time) -> Time {
        if self.last <= now {
            return now;
        }
        let under_way = self.lines.iter().filter(|flight| flight.0 == line);
        under_way.map(|flight| flight.1).fold(now, Time::max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;

    fn cache(lines: u64, ways: usize) -> Cache {
        let cpu = Profile::named("optane-100").unwrap().cpu;
        Cache::new(&Cpu { cache_bytes: lines * 64, cache_ways: ways, ..cpu })
    }

    fn access(cache: &mut Cache, line: Line, is_store: bool) -> Lookup {
        cache.access(cache.set_of(line), line, is_store)
    }

    #[test]
    fn the_line_that_was_used_least_recently_is_evicted() {
        let mut cache = cache(4, 4);
        for line in 0..4 {
            assert_eq!(access(&mut cache, line, true), Lookup::Miss { evicted: None });
        }
        assert_eq!(access(&mut cache, 0, false), Lookup::Hit);
        assert_eq!(access(&mut cache, 9, false), Lookup::Miss { evicted: Some(1) });
        assert_eq!(access(&mut cache, 0, false), Lookup::Hit);
        assert!(!cache.has(1) && cache.has(2));
    }

    #[test]
    fn a_line_that_was_flushed_is_clean_and_still_there_if_it_is_kept() {
        let mut cache = cache(4, 4);
        access(&mut cache, 7, true);
        assert!(cache.clean(7, true) && cache.has(7));
        assert!(!cache.clean(7, true), "clean already");
        access(&mut cache, 7, true);
        assert!(cache.clean(7, false) && !cache.has(7));
        assert!(!cache.clean(7, false), "not there");
        for line in 0..4 {
            assert_eq!(access(&mut cache, line, false), Lookup::Miss { evicted: None });
        }
    }

    #[test]
    fn lines_at_round_distances_spread_over_the_sets() {
        let cache = cache(1024, 4);
        let sets: std::collections::HashSet<_> = (0..256).map(|i| cache.set_of(i * 64)).collect();
        assert!(sets.len() > 128, "{}", sets.len());
    }

    #[test]
    fn a_core_waits_when_too_many_lines_are_under_way() {
        let cpu = Profile::named("optane-100").unwrap().cpu;
        let mut flights = Flights::new(&Cpu { outstanding: 2, ..cpu });
        assert_eq!(flights.room(0), 0);
        flights.send(1, 100);
        assert_eq!(flights.room(10), 10);
        flights.send(2, 50);
        assert_eq!((flights.arrival(1, 20), flights.arrival(3, 20)), (100, 20));
        assert_eq!(flights.room(20), 50);
        flights.send(3, 200);
        assert_eq!((flights.arrival(1, 150), flights.room(150)), (150, 150));
    }
}
