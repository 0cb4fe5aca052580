//! The machine: a core with its clock, the cache, and the DIMMs. Events happen one after the other.
//!
//! 1. Time is virtual: only events move the clock, by amounts from the profile.
//! 2. A load that misses waits, and so does a compare-and-swap. A store, a prefetch, a flush and a
//!    non-temporal store continue at once, up to the number of lines that a core can have in
//!    flight. A load of a line in flight waits for what is left of the flight, whatever sent it. A
//!    fence waits for flushes and non-temporal stores.
//! 3. Each moment of the clock is counted once: as work of the core, or as waiting for one cause.

use super::cache::{Cache, Flights, Line, Lookup};
use super::dimm::{Dimms, Origin};
use super::media::LineWords;
use super::profile::{Persistence, Profile, Time, time};
use bristlecone_pmem::PmWord;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use core::ops::Range;

/// Counts of the program's events, and the use of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) ops: u64,
    pub(super) user_bytes: u64,
    /// The number of lines loaded, stored to or prefetched that were not in the cache.
    pub(super) misses: u64,
    /// The number of dirty lines that the cache evicted.
    pub(super) evictions: u64,
    pub(super) fences: u64,
    pub(super) spent: Spent,
}

/// The use of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) core: Time,
    /// The time of waiting for loads.
    pub(super) loads: Time,
    /// The time of waiting until a line in flight has arrived, to send another.
    pub(super) issue: Time,
    /// The time of waiting at fences.
    pub(super) fences: Time,
}

/// The times of a profile as virtual time.
#[derive(Debug)]
struct Costs {
    word: Time,
    line: Time,
    flush: Time,
    fence: Time,
    op: Time,
    queue_flush: Time,
    queue_stream: Time,
    needs_flush: bool,
    keeps_line: bool,
}

/// The kind of an access to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Load,
    Store,
    /// A compare-and-swap: it needs the old value as a load does, and changes the line.
    Swap,
}

impl Access {
    #[inline(always)]
    fn is_store(self) -> bool {
        self != Self::Load
    }

    #[inline(always)]
    fn needs_value(self) -> bool {
        self != Self::Store
    }
}

/// The state of the model.
#[derive(Debug)]
pub(super) struct Machine {
    costs: Costs,
    pub(super) clock: Time,
    /// The line that was accessed last, and the index of its set, where it is the most recent.
    last: usize,
    last_set: usize,
    /// The arrival of the line that was accessed last; no later than the clock if it has arrived.
    last_arrival: Time,
    /// The number of lines of the medium.
    lines: usize,
    cache: Cache,
    flights: Flights,
    /// The time at which all flushes since the last fence have reached the persistence domain.
    safe: Time,
    /// The origin of the next flush.
    pub(super) origin: Origin,
    pub(super) dimms: Dimms,
    pub(super) counters: Counters,
}

/// A line number that no address has.
const NO_LINE: usize = usize::MAX;
/// The limit of a medium: line numbers have 31 bits.
pub(super) const BYTES_LIMIT: u64 = (LINE_BYTES as u64) << 31;

impl Machine {
    pub(super) fn new(profile: &Profile) -> Self {
        let Profile { cpu, queue, .. } = profile;
        let costs = Costs {
            word: time(cpu.word_ns),
            line: time(cpu.line_ns),
            flush: time(cpu.flush_ns),
            fence: time(cpu.fence_ns),
            op: time(cpu.op_ns),
            queue_flush: time(queue.flush_ns),
            queue_stream: time(queue.stream_ns),
            needs_flush: profile.domain != Persistence::Cache,
            keeps_line: cpu.flush_keeps_line,
        };
        Self {
            costs,
            clock: 0,
            last: NO_LINE,
            last_set: 0,
            last_arrival: 0,
            lines: 0,
            cache: Cache::new(cpu),
            flights: Flights::new(cpu),
            safe: 0,
            origin: None,
            dimms: Dimms::new(profile),
            counters: Counters::default(),
        }
    }

    /// Makes the model as large as its medium, whose new bytes are zero.
    pub(super) fn grow(&mut self, bytes: u64) {
        assert!(bytes < BYTES_LIMIT, "the caller has checked");
        self.dimms.grow(bytes);
        self.lines = bytes as usize / LINE_BYTES;
    }

    /// Sets the contents of the media to those of `memory`.
    pub(super) fn place(&mut self, memory: &[PmWord]) {
        for line in 0..self.lines {
            self.dimms.media.place(line, &words_of(memory, line as Line));
        }
    }

    /// Writes the contents of the write buffers to the media.
    pub(super) fn settle(&mut self) {
        self.dimms.settle(self.clock);
    }

    /// Resets all counts. Contents of cache and buffers stay.
    pub(super) fn reset_counts(&mut self) {
        self.counters = Counters::default();
        self.dimms.reset_counts();
    }

    /// Records the end of an operation that changed `user_bytes` for its caller.
    pub(super) fn end_op(&mut self, user_bytes: u64) {
        self.counters.ops += 1;
        self.counters.user_bytes += user_bytes;
        self.work(self.costs.op);
    }

    #[inline(always)]
    fn work(&mut self, time: Time) {
        self.clock += time;
        self.counters.spent.core += time;
    }

    /// Models an access to a word of `line`.
    #[inline(always)]
    pub(super) fn access(&mut self, line: usize, access: Access, memory: &[PmWord]) {
        if line == self.last {
            if access.is_store() {
                self.cache.mark_dirty(self.last_set);
            }
            self.work(self.costs.word);
            if access.needs_value() && self.last_arrival > self.clock {
                self.wait_for_load(self.last_arrival);
            }
            return;
        }
        // A word beyond the medium is in DRAM, which the time of an operation includes.
        if line < self.lines {
            self.access_other(line as Line, access, memory);
        }
    }

    fn access_other(&mut self, line: Line, access: Access, memory: &[PmWord]) {
        let set = self.cache.set_of(line);
        (self.last, self.last_set) = (line as usize, set);
        self.work(self.costs.line);
        self.last_arrival = match self.cache.access(set, line, access.is_store()) {
            Lookup::Hit => self.flights.arrival(line, self.clock),
            Lookup::Miss { evicted } => {
                self.counters.misses += 1;
                self.evict(evicted, memory);
                if access.needs_value() {
                    self.dimms.read(line, self.clock)
                } else {
                    self.fetch(line)
                }
            }
        };
        if access.needs_value() {
            self.wait_for_load(self.last_arrival);
        }
    }

    fn evict(&mut self, evicted: Option<Line>, memory: &[PmWord]) {
        if let Some(line) = evicted {
            self.counters.evictions += 1;
            let _ = self.dimms.write(line, &words_of(memory, line), None, self.clock);
        }
    }

    fn wait_for_load(&mut self, arrival: Time) {
        self.counters.spent.loads += arrival - self.clock;
        self.clock = arrival;
    }

    /// Waits until one more line can be in flight.
    fn wait_to_issue(&mut self) {
        let room = self.flights.room(self.clock);
        self.counters.spent.issue += room - self.clock;
        self.clock = room;
    }

    /// Fetches a line without waiting for it, and returns its arrival.
    fn fetch(&mut self, line: Line) -> Time {
        self.wait_to_issue();
        let arrival = self.dimms.read(line, self.clock);
        self.flights.send(line, arrival);
        arrival
    }

    /// Models a prefetch of `lines`.
    pub(super) fn prefetch(&mut self, lines: Range<usize>, memory: &[PmWord]) {
        if lines.end > self.lines {
            return;
        }
        for line in lines.clone() {
            self.cache.prefetch(self.cache.set_of(line as Line));
        }
        for line in lines {
            self.work(self.costs.word);
            let line = line as Line;
            let set = self.cache.set_of(line);
            if let Lookup::Miss { evicted } = self.cache.access(set, line, false) {
                self.counters.misses += 1;
                self.evict(evicted, memory);
                self.fetch(line);
            }
            // The line that was accessed last stays it, unless it is no longer the most recent of
            // its set. A load of a prefetched line so finds its flight.
            if set == self.last_set && line as usize != self.last {
                self.last = NO_LINE;
            }
        }
    }

    /// Models a flush of `line`.
    pub(super) fn flush(&mut self, line: usize, memory: &[PmWord]) {
        if !self.costs.needs_flush || line >= self.lines {
            return;
        }
        self.work(self.costs.flush);
        if !self.costs.keeps_line && self.last == line {
            self.last = NO_LINE;
        }
        let line = line as Line;
        if self.cache.clean(line, self.costs.keeps_line) {
            let arrival = self.flights.arrival(line, self.clock);
            self.write_back(line, arrival, self.costs.queue_flush, memory);
        }
    }

    /// Models a non-temporal store to all of `line`.
    pub(super) fn stream(&mut self, line: usize, memory: &[PmWord]) {
        if line >= self.lines {
            return;
        }
        self.work(self.costs.word * LINE_WORDS as Time);
        if self.last == line {
            self.last = NO_LINE;
        }
        let line = line as Line;
        self.cache.clean(line, false);
        self.write_back(line, self.clock, self.costs.queue_stream, memory);
    }

    /// Sends `line` to the queue after its arrival. The next fence waits until it is persistent.
    fn write_back(&mut self, line: Line, arrival: Time, delay: Time, memory: &[PmWord]) {
        self.wait_to_issue();
        let at = self.clock.max(arrival) + delay;
        let safe = self.dimms.write(line, &words_of(memory, line), self.origin, at);
        // A load of the line meanwhile hits the cache, so it must not find this flight.
        self.flights.send(Line::MAX, safe);
        self.safe = self.safe.max(safe);
    }

    /// Models a fence, which waits for all flushes before it.
    pub(super) fn fence(&mut self) {
        self.counters.fences += 1;
        self.work(self.costs.fence);
        let safe = self.safe.max(self.clock);
        self.counters.spent.fences += safe - self.clock;
        self.clock = safe;
        self.safe = 0;
    }
}

/// Returns the current words of `line`.
fn words_of(memory: &[PmWord], line: Line) -> LineWords {
    let first = line as usize * LINE_WORDS;
    let words = &memory[first..first + LINE_WORDS];
    core::array::from_fn(|at| words[at].cell().load(core::sync::atomic::Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a machine of a megabyte with a cold cache, the time of a read of the media, and the
    /// costs of an access to the line of the last access and to another.
    fn machine() -> (Machine, [Time; 3]) {
        let mut profile = Profile::named("optane-100").unwrap();
        profile.cpu.cache_bytes = 1 << 16;
        let mut machine = Machine::new(&profile);
        machine.grow(1 << 20);
        let costs = [profile.media.read_ns, profile.cpu.word_ns, profile.cpu.line_ns];
        (machine, costs.map(time))
    }

    #[test]
    fn a_load_after_a_prefetch_waits_for_what_is_left_of_it() {
        let (mut machine, [read, _, line]) = machine();
        machine.prefetch(8..9, &[]);
        let sent = machine.clock;
        let between = time(100.0);
        machine.work(between);
        machine.access(8, Access::Load, &[]);
        assert_eq!(machine.clock, sent + read);
        assert_eq!(machine.counters.spent.loads, read - between - line);
        // Once the line is there, loads of it do not wait.
        machine.access(8, Access::Load, &[]);
        assert_eq!(machine.counters.spent.loads, read - between - line);
    }

    #[test]
    fn a_load_after_a_store_that_missed_waits_for_the_line() {
        let (mut machine, [read, word, line]) = machine();
        machine.access(8, Access::Store, &[]);
        assert_eq!((machine.clock, machine.counters.spent.loads), (line, 0));
        machine.access(8, Access::Store, &[]);
        assert_eq!(machine.counters.spent.loads, 0, "a store does not wait");
        machine.access(8, Access::Load, &[]);
        assert_eq!(machine.clock, line + read);
        assert_eq!(machine.counters.spent.loads, read - 2 * word);
    }

    #[test]
    fn a_compare_and_swap_waits_as_a_load_does_and_changes_the_line() {
        let ((mut swapped, [read, ..]), (mut loaded, _)) = (machine(), machine());
        swapped.access(8, Access::Swap, &[]);
        loaded.access(8, Access::Load, &[]);
        assert_eq!((swapped.clock, swapped.counters.spent.loads), (loaded.clock, read));
        let is_dirty = |machine: &mut Machine| machine.cache.clean(8, true);
        assert!(is_dirty(&mut swapped) && !is_dirty(&mut loaded));
    }

    #[test]
    fn a_prefetch_leaves_the_line_that_was_accessed_last() {
        let (mut machine, [_, word, _]) = machine();
        machine.access(8, Access::Load, &[]);
        machine.prefetch(64..66, &[]);
        let before = machine.clock;
        machine.access(8, Access::Load, &[]);
        assert_eq!(machine.clock, before + word);
    }

    #[test]
    fn a_prefetch_into_the_set_of_the_last_line_does_not_take_its_store() {
        let (mut machine, _) = machine();
        machine.access(8, Access::Load, &[]);
        let set = machine.cache.set_of(8);
        let mut others = 9..machine.lines as Line;
        let other = others.find(|&line| machine.cache.set_of(line) == set);
        let other = other.expect("a megabyte has more lines than sets") as usize;
        machine.prefetch(other..other + 1, &[]);
        machine.access(8, Access::Store, &[]);
        assert!(machine.cache.clean(8, true), "the stored line is dirty");
        assert!(!machine.cache.clean(other as Line, true), "the prefetched line is clean");
    }
}
