//! The DIMMs: a queue, buffers, and two servers, one that reads the media and one that writes them.
//!
//! 1. The queue accepts a line when it has room. Lines leave it for the write buffer in their
//!    order.
//! 2. A unit leaves the write buffer when another unit needs its slot; the least recently used goes
//!    first. If some of its lines are missing, the DIMM reads them from the media before the write.
//! 3. Reads and writes of the media do not slow each other down. Each server handles one unit at a
//!    time.

use super::buffer::Buffers;
use super::cache::Line;
use super::media::{LineWords, MediaState, Unit};
use super::profile::{Persistence, Profile, Time, time};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use std::collections::BTreeMap;

/// The source file that flushed a line; `None` if that is not known, or the cache evicted the line.
pub(super) type Origin = Option<&'static str>;

/// The times at which the servers of a DIMM are free, and their work so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Dimm {
    /// The time at which each slot of the queue is free, in the order of use.
    places: Vec<Time>,
    next: usize,
    drained: Time,
    read_free: Time,
    write_free: Time,
    pub(super) work: Work,
}

/// The busy time of the servers of a DIMM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    pub(super) queue: Time,
    pub(super) read: Time,
    pub(super) write: Time,
}

/// Counts of the traffic of DIMMs and media.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    /// The number of lines that queues accepted.
    pub(super) lines: u64,
    /// The number of accepted lines whose unit was in the write buffer.
    pub(super) combined: u64,
    /// The number of loads that read the media.
    pub(super) reads: u64,
    /// The number of loads that found their line in a buffer.
    pub(super) buffered_reads: u64,
    /// The number of units that were read because only a part of them had been written.
    pub(super) completions: u64,
    /// The number of units written to the media.
    pub(super) writes: u64,
    /// The number of bits that these writes changed.
    pub(super) flips: u64,
}

/// The times and sizes of a profile, in the units of the model.
#[derive(Debug)]
struct Rates {
    domain: Persistence,
    unit_shift: u32,
    interleave_lines: usize,
    line: Time,
    buffer_read: Time,
    read: Time,
    write: Time,
    unit_read: Time,
    unit_write: Time,
}

/// All DIMMs of a device.
#[derive(Debug)]
pub(super) struct Dimms {
    rates: Rates,
    modules: Vec<Dimm>,
    written: Buffers,
    /// For each slot of `written`: a mask of the lines that are present, their words, and the
    /// origin of the first that came.
    masks: Vec<u64>,
    lines: Vec<LineWords>,
    origins: Vec<Origin>,
    recent: Buffers,
    pub(super) media: MediaState,
    pub(super) traffic: Traffic,
    /// The number of units written to the media, by their origin.
    pub(super) writes_by_file: BTreeMap<&'static str, u64>,
}

impl Dimms {
    pub(super) fn new(profile: &Profile) -> Self {
        let Profile { media, buffer, queue, .. } = profile;
        let unit_ns = |gb_per_s: f64| media.unit_bytes as f64 / gb_per_s;
        let rates = Rates {
            domain: profile.domain,
            unit_shift: (media.unit_bytes / LINE_BYTES).trailing_zeros(),
            interleave_lines: media.interleave_bytes as usize / LINE_BYTES,
            line: time(queue.line_ns),
            buffer_read: time(buffer.read_ns),
            read: time(media.read_ns),
            write: time(media.write_ns),
            unit_read: time(unit_ns(media.read_gb_per_s)),
            unit_write: time(unit_ns(media.write_gb_per_s)),
        };
        let dimm = Dimm { places: vec![0; queue.lines], ..Dimm::default() };
        let written = Buffers::new(media.dimms, buffer.write_units);
        let unit_lines = media.unit_bytes / LINE_BYTES;
        Self {
            modules: vec![dimm; media.dimms],
            masks: vec![0; written.len()],
            lines: vec![[0; LINE_WORDS]; written.len() * unit_lines],
            origins: vec![None; written.len()],
            written,
            recent: Buffers::new(media.dimms, buffer.read_units),
            media: MediaState::new(media.unit_bytes),
            traffic: Traffic::default(),
            writes_by_file: BTreeMap::new(),
            rates,
        }
    }

    /// Makes the DIMMs hold `bytes` bytes.
    pub(super) fn grow(&mut self, bytes: u64) {
        let units = self.media.grow(bytes);
        self.written.grow(units);
        self.recent.grow(units);
    }

    /// Writes the contents of the write buffers to the media, from `now` on.
    pub(super) fn settle(&mut self, now: Time) {
        for slot in 0..self.written.len() {
            if let Some(unit) = self.written.unit_of(slot).filter(|_| self.masks[slot] != 0) {
                let (dimm, _, _) = self.place_of(unit << self.rates.unit_shift);
                let _ = self.evict(dimm, unit, slot, now);
                self.written.remove(slot);
                self.masks[slot] = 0;
            }
        }
    }

    /// Resets all counts. Contents stay.
    pub(super) fn reset_counts(&mut self) {
        self.traffic = Traffic::default();
        self.writes_by_file.clear();
        self.media.reset_wear();
        for dimm in &mut self.modules {
            dimm.work = Work::default();
        }
    }

    /// Returns the busy times of each DIMM.
    pub(super) fn work(&self) -> impl Iterator<Item = Work> {
        self.modules.iter().map(|dimm| dimm.work)
    }

    #[inline(always)]
    fn place_of(&self, line: Line) -> (usize, Unit, usize) {
        let dimm = line as usize / self.rates.interleave_lines % self.modules.len();
        let unit = line >> self.rates.unit_shift;
        (dimm, unit, (line - (unit << self.rates.unit_shift)) as usize)
    }

    /// Returns the time at which a load of `line` that leaves the processor at `now` has its
    /// answer.
    pub(super) fn read(&mut self, line: Line, now: Time) -> Time {
        let (dimm, unit, at) = self.place_of(line);
        let is_written = !self.written.is_none()
            && self.written.find(unit).is_some_and(|slot| self.masks[slot] >> at & 1 != 0);
        let slot = if self.recent.is_none() { None } else { self.recent.find(unit) };
        if let Some(slot) = slot {
            self.recent.make_newest(dimm, slot);
        }
        if is_written || slot.is_some() {
            self.traffic.buffered_reads += 1;
            return now + self.rates.buffer_read;
        }
        self.traffic.reads += 1;
        let begin = self.read_unit(dimm, now);
        if !self.recent.is_none() {
            self.recent.insert(dimm, unit);
        }
        begin + self.rates.read
    }

    /// Occupies the read server of `dimm` from `now` on. Returns the time at which the read begins.
    fn read_unit(&mut self, dimm: usize, now: Time) -> Time {
        let dimm = &mut self.modules[dimm];
        let begin = now.max(dimm.read_free);
        dimm.read_free = begin + self.rates.unit_read;
        dimm.work.read += self.rates.unit_read;
        begin
    }

    /// Accepts `line` of `origin` with the contents `words` at `now`. Returns the time at which the
    /// line is persistent.
    pub(super) fn write(
        &mut self,
        line: Line,
        words: &LineWords,
        origin: Origin,
        now: Time,
    ) -> Time {
        let (number, unit, at) = self.place_of(line);
        self.traffic.lines += 1;
        let dimm = &mut self.modules[number];
        dimm.work.queue += self.rates.line;
        let next = dimm.next;
        let accepted = now.max(dimm.places[next]);
        let turn = accepted.max(dimm.drained);
        let begun = if self.written.is_none() {
            self.traffic.flips += self.media.write_line(unit, at, words);
            self.count_write(origin);
            self.write_unit(number, self.media.unit_lines() == 1, turn)
        } else {
            let (slot, begun) = self.place(number, unit, origin, turn);
            self.masks[slot] |= 1 << at;
            self.lines[slot * self.media.unit_lines() + at] = *words;
            begun
        };
        let dimm = &mut self.modules[number];
        dimm.drained = begun.max(turn + self.rates.line);
        dimm.places[next] = dimm.drained;
        dimm.next = if next + 1 == dimm.places.len() { 0 } else { next + 1 };
        if self.rates.domain == Persistence::Media { begun + self.rates.write } else { accepted }
    }

    /// Makes room in the write buffer for a line of `unit`. Returns the slot of the unit, and the
    /// time at which there is room.
    fn place(&mut self, dimm: usize, unit: Unit, origin: Origin, turn: Time) -> (usize, Time) {
        if let Some(slot) = self.written.find(unit) {
            self.traffic.combined += 1;
            self.written.make_newest(dimm, slot);
            return (slot, turn);
        }
        let mut begun = turn;
        let (slot, former) = self.written.oldest(dimm);
        if let Some(former) = former {
            begun = self.evict(dimm, former, slot, turn);
        }
        let slot = self.written.insert(dimm, unit);
        (self.masks[slot], self.origins[slot]) = (0, origin);
        if let (next, Some(unit)) = self.written.oldest(dimm) {
            self.media.prefetch(unit, self.masks[next].trailing_zeros() as usize);
        }
        (slot, begun)
    }

    /// Writes the buffered lines of a unit to the media. Returns the time at which the write
    /// begins.
    fn evict(&mut self, dimm: usize, unit: Unit, slot: usize, now: Time) -> Time {
        let unit_lines = self.media.unit_lines();
        let mask = self.masks[slot];
        let lines = &self.lines[slot * unit_lines..(slot + 1) * unit_lines];
        self.traffic.flips += self.media.write(unit, mask, lines);
        self.count_write(self.origins[slot]);
        self.write_unit(dimm, mask.count_ones() as usize == unit_lines, now)
    }

    fn count_write(&mut self, origin: Origin) {
        if let Some(file) = origin {
            *self.writes_by_file.entry(file).or_default() += 1;
        }
    }

    /// Occupies the write server of `dimm` from `now` on, after the read server if the unit is
    /// incomplete. Returns the time at which the write begins.
    fn write_unit(&mut self, dimm: usize, is_whole: bool, now: Time) -> Time {
        let mut ready = now;
        if !is_whole {
            self.traffic.completions += 1;
            ready = self.read_unit(dimm, now);
        }
        self.traffic.writes += 1;
        let dimm = &mut self.modules[dimm];
        let begin = ready.max(dimm.write_free);
        dimm.write_free = begin + self.rates.unit_write;
        dimm.work.write += self.rates.unit_write;
        begin
    }
}

#[cfg(test)]
mod tests;
