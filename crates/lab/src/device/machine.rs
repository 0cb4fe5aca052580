//! The machine: a core with its clock, the cache, and the DIMMs. Events happen one after the other.
//!
//! 1. Time is virtual: only events move the clock, by amounts from the profile.
//! 2. A load that misses waits. A store, a prefetch, a flush and a non-temporal store continue at
//!    once, up to the number of lines that a core can have in flight. A fence waits for flushes and
//!    non-temporal stores.
//! 3. Each moment of the clock is counted once: as work of the core, or as waiting for one cause.

use super::cache::{Cache, Flights, Line, Lookup};
use super::dimm::Dimms;
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

/// The state of the model.
#[derive(Debug)]
pub(super) struct Machine {
    costs: Costs,
    pub(super) clock: Time,
    /// The line that was accessed last, and the index of its set, where it is the most recent.
    last: usize,
    last_set: usize,
    /// The number of lines of the medium.
    lines: usize,
    cache: Cache,
    flights: Flights,
    /// The time at which all flushes since the last fence have reached the persistence domain.
    safe: Time,
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
            lines: 0,
            cache: Cache::new(cpu),
            flights: Flights::new(cpu),
            safe: 0,
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

    /// Models a load or a store of a word of `line`.
    #[inline(always)]
    pub(super) fn access(&mut self, line: usize, is_store: bool, memory: &[PmWord]) {
        if line == self.last {
            if is_store {
                self.cache.mark_dirty(self.last_set);
            }
            return self.work(self.costs.word);
        }
        // A word beyond the medium is in DRAM, which the time of an operation includes.
        if line < self.lines {
            self.access_other(line as Line, is_store, memory);
        }
    }

    fn access_other(&mut self, line: Line, is_store: bool, memory: &[PmWord]) {
        let set = self.cache.set_of(line);
        (self.last, self.last_set) = (line as usize, set);
        self.work(self.costs.line);
        match self.cache.access(set, line, is_store) {
            Lookup::Hit if is_store => {}
            Lookup::Hit => {
                let arrival = self.flights.arrival(line, self.clock);
                self.wait_for_load(arrival);
            }
            Lookup::Miss { evicted } => {
                self.counters.misses += 1;
                self.evict(evicted, memory);
                if is_store {
                    self.fetch(line);
                } else {
                    let arrival = self.dimms.read(line, self.clock);
                    self.wait_for_load(arrival);
                }
            }
        }
    }

    fn evict(&mut self, evicted: Option<Line>, memory: &[PmWord]) {
        if let Some(line) = evicted {
            self.counters.evictions += 1;
            let _ = self.dimms.write(line, &words_of(memory, line), self.clock);
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

    /// Fetches a line without waiting for it.
    fn fetch(&mut self, line: Line) {
        self.wait_to_issue();
        let arrival = self.dimms.read(line, self.clock);
        self.flights.send(line, arrival);
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
            (self.last, self.last_set) = (line as usize, set);
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
        let safe = self.dimms.write(line, &words_of(memory, line), at);
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
