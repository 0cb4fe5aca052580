//! The processor's cache of persistent lines, and the lines in flight between core and memory.
//!
//! 1. Within a set, ways are ordered by their last use. The last way is evicted first.
//! 2. A hash chooses the set of a line, as in the slices of a last-level cache. So tables at round
//!    distances do not share a few sets. Neighbouring lines have neighbouring sets, so that looking
//!    up a node touches few lines of the tags.

use super::profile::{Cpu, Time};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::sys;

/// The number of a line, counted from the base of the medium.
pub(super) type Line = u32;

/// The tag of an empty way. No line has so great a number.
const EMPTY: u32 = u32::MAX;
const DIRTY: u32 = 1;

/// A write-back cache with least recently used replacement.
#[derive(Debug)]
pub(super) struct Cache {
    /// The line and dirty bit of each way of each set.
    tags: Vec<u32>,
    ways: usize,
    /// The base-2 logarithm of the number of sets of a group. As many neighbouring lines share a
    /// group.
    group_shift: u32,
    groups: u64,
}

/// The greatest group shift; a small cache has fewer sets.
const GROUP_SHIFT: u32 = 3;

/// The result of looking up a line in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The line is in the cache.
    Hit,
    /// The line took a way.
    Miss {
        /// The line that had the way, if it was dirty and must be written.
        evicted: Option<Line>,
    },
}

impl Cache {
    /// Returns an empty cache.
    pub(super) fn new(cpu: &Cpu) -> Self {
        let sets = cpu.cache_bytes / (cpu.cache_ways * LINE_BYTES) as u64;
        let group_shift = GROUP_SHIFT.min(sets.ilog2());
        let groups = sets >> group_shift;
        let ways = cpu.cache_ways;
        let tags = vec![EMPTY; (groups << group_shift) as usize * ways];
        Self { tags, ways, group_shift, groups }
    }

    /// Returns the index of the first way of the set of `line`.
    #[inline(always)]
    pub(super) fn set_of(&self, line: Line) -> usize {
        let hash = (line >> self.group_shift).wrapping_mul(0x9E37_79B1);
        let group = ((u64::from(hash) * self.groups) >> 32) as usize;
        // Other bits of the hash permute the lines of a group over its sets.
        let within = (line ^ hash >> 10) & ((1 << self.group_shift) - 1);
        (group << self.group_shift | within as usize) * self.ways
    }

    /// Makes `line` the most recent of the set at `set`, and dirty if `is_store`.
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

    /// Makes the most recent line of the set at `set` dirty.
    #[inline(always)]
    pub(super) fn mark_dirty(&mut self, set: usize) {
        self.tags[set] |= DIRTY;
    }

    /// Prefetches the tags of the set at `set` into the cache of the host.
    #[inline(always)]
    pub(super) fn prefetch(&self, set: usize) {
        sys::prefetch((&raw const self.tags[set]) as usize);
        sys::prefetch((&raw const self.tags[set + self.ways - 1]) as usize);
    }

    /// Returns `true` if the cache holds `line`.
    #[cfg(test)]
    fn has(&self, line: Line) -> bool {
        let set = self.set_of(line);
        self.tags[set..set + self.ways].iter().any(|tag| tag >> 1 == line)
    }

    /// Writes `line` back and drops it unless `is_kept`. Returns `true` if the line was dirty.
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

/// The lines in flight between a core and memory. Their number is limited.
#[derive(Debug)]
pub(super) struct Flights {
    /// The line and arrival of each flight.
    lines: Vec<(Line, Time)>,
    /// The index of the flight that arrives first, as of the last call of [`room`](Self::room).
    next: usize,
    /// The latest arrival of all flights.
    last: Time,
}

impl Flights {
    pub(super) fn new(cpu: &Cpu) -> Self {
        Self { lines: vec![(EMPTY, 0); cpu.outstanding], next: 0, last: 0 }
    }

    /// Returns the time from `now` on at which one more line can be sent.
    #[inline]
    pub(super) fn room(&mut self, now: Time) -> Time {
        for (index, &(_, arrival)) in self.lines.iter().enumerate() {
            if arrival < self.lines[self.next].1 {
                self.next = index;
            }
        }
        now.max(self.lines[self.next].1)
    }

    /// Sends `line`, to arrive at `arrival`, in the slot that [`room`](Self::room) found.
    pub(super) fn send(&mut self, line: Line, arrival: Time) {
        self.lines[self.next] = (line, arrival);
        self.last = self.last.max(arrival);
    }

    /// Returns the arrival of `line`, or `now` if the line is not in flight.
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
