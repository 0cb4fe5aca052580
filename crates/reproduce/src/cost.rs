//! The cost model: from what an operation does, and what a device is, to how long it takes.
//!
//! ```text
//! alone   = core + overlap * (misses * read) + lines * flush + fences * wait + lines behind * line
//! N of it = at the most 1 / busiest, the time for which it keeps the busiest part of the device at work:
//!           bytes written / write bandwidth, bytes read / read bandwidth, or lines * line, on one DIMM
//! ```
//!
//! What an operation does is a property of the design: it is counted once, on one device, and carried over to
//! the others. What is left is what the formula leaves out: caches and buffers that one device has and another
//! has not, and lines that wait for each other.

use bristlecone_lab::device::{DeviceReport, Persistence, Profile};

/// What an operation of a design does, on the average.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Deeds {
    /// Nanoseconds of the processor, with all that is in the cache.
    pub core_ns: f64,
    /// Lines that were not in the cache.
    pub misses: f64,
    /// The part of the time of these that was waited for: others were on their way already.
    pub overlap: f64,
    /// Lines flushed.
    pub lines: f64,
    /// Fences.
    pub fences: f64,
    /// Units of 256 B written to the media.
    pub units_written: f64,
    /// Units of 256 B read from the media.
    pub units_read: f64,
    /// How much more than its share the busiest DIMM has to do: of writes, reads, and lines.
    pub skew: [f64; 3],
}

/// Bytes of a line.
const LINE_BYTES: f64 = 64.0;

impl Deeds {
    /// What was done on `profile`, which has units of 256 B.
    pub fn of(report: &DeviceReport, profile: &Profile) -> Self {
        let unit_bytes = profile.media.unit_bytes as f64;
        let mut deeds = Self {
            // What a flush costs the core is the device's, and not the design's.
            core_ns: report.time_ns_per_op.core - report.lines_per_op * profile.cpu.flush_ns,
            misses: report.misses_per_op,
            overlap: 1.0,
            lines: report.lines_per_op,
            fences: report.fences_per_op,
            units_written: report.media_bytes_per_op / unit_bytes,
            units_read: report.media_read_bytes_per_op / unit_bytes,
            skew: [1.0; 3],
        };
        let over = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        deeds.overlap = over(report.time_ns_per_op.loads, deeds.reading_ns(profile));
        let [write, read, queue] = deeds.servers_ns(profile);
        let demand = report.demand;
        deeds.skew = [
            over(demand.write_ns, write),
            over(demand.read_ns, read),
            over(demand.queue_ns, queue),
        ];
        deeds
    }

    /// Whether `profile` has the units of 256 B that were counted.
    fn has_units(profile: &Profile) -> bool {
        profile.media.unit_bytes as f64 > LINE_BYTES
    }

    /// Nanoseconds of the loads that miss the cache, one after the other.
    fn reading_ns(&self, profile: &Profile) -> f64 {
        if !Self::has_units(profile) {
            return self.misses * profile.media.read_ns;
        }
        // The first line of a unit comes from the media, and the others from the buffer.
        let from_media = self.units_read.min(self.misses);
        from_media * profile.media.read_ns + (self.misses - from_media) * profile.buffer.read_ns
    }

    /// Nanoseconds of one operation by one thread on `profile`.
    pub fn alone_ns(&self, profile: &Profile) -> f64 {
        let Profile { cpu, queue, media, .. } = profile;
        // Lines of one fence go out one behind the other; a fence waits for the last.
        let behind = (self.lines - self.fences).max(0.0);
        let line_ns = LINE_BYTES / media.write_gb_per_s;
        let flushing = match profile.domain {
            Persistence::Cache => 0.0,
            Persistence::Queue => {
                self.lines * cpu.flush_ns + self.fences * queue.flush_ns + behind * queue.line_ns
            }
            Persistence::Media => {
                self.lines * cpu.flush_ns + self.fences * media.write_ns + behind * line_ns
            }
        };
        self.core_ns + self.overlap * self.reading_ns(profile) + flushing
    }

    /// Nanoseconds for which one operation keeps the parts of a DIMM of `profile` at work, if all DIMMs do the
    /// same: the writing of the media, their reading, the queue.
    fn servers_ns(&self, profile: &Profile) -> [f64; 3] {
        let media = &profile.media;
        let unit = media.unit_bytes as f64;
        let (written, read) = if Self::has_units(profile) {
            (self.units_written * unit, self.units_read * unit)
        } else {
            (self.lines * LINE_BYTES, self.misses * LINE_BYTES)
        };
        let busy = [
            written / media.write_gb_per_s,
            read / media.read_gb_per_s,
            self.lines * profile.queue.line_ns,
        ];
        busy.map(|ns| ns / media.dimms as f64)
    }

    /// Nanoseconds for which one operation keeps the busiest part of `profile` at work.
    pub fn busiest_ns(&self, profile: &Profile) -> f64 {
        // One DIMM has all of the work, however it is spread over several.
        let most = profile.media.dimms as f64;
        let servers = self.servers_ns(profile);
        let busy = servers.iter().zip(self.skew).map(|(ns, skew)| ns * skew.min(most));
        busy.fold(0.0, f64::max)
    }

    /// Operations a second of `threads` threads on `profile`, at the most.
    pub fn ops_per_second(&self, profile: &Profile, threads: u32) -> f64 {
        const NS_PER_SECOND: f64 = 1e9;
        let alone = self.alone_ns(profile) / f64::from(threads.max(1));
        NS_PER_SECOND / alone.max(self.busiest_ns(profile)).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation with so many misses, lines and fences, a unit for each line and each miss.
    fn deeds(misses: f64, lines: f64, fences: f64) -> Deeds {
        Deeds {
            core_ns: 100.0,
            misses,
            overlap: 1.0,
            lines,
            fences,
            units_written: lines,
            units_read: misses,
            skew: [1.0; 3],
        }
    }

    fn is(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    #[test]
    fn each_part_is_paid_for_at_the_price_of_the_device() {
        let profile = Profile::named("optane-100").unwrap();
        let alone = |misses, lines, fences| deeds(misses, lines, fences).alone_ns(&profile);
        assert!(is(alone(0.0, 0.0, 0.0), 100.0));
        assert!(is(alone(2.0, 0.0, 0.0), 100.0 + 2.0 * 305.0));
        assert!(is(alone(0.0, 1.0, 1.0), 100.0 + 5.0 + 57.0));
        assert!(is(alone(0.0, 3.0, 1.0), 100.0 + 3.0 * 5.0 + 57.0 + 2.0 * 3.0));
        // Of three lines of a unit, two come from the buffer; half of the time nobody waits.
        let buffered = Deeds { units_read: 1.0, overlap: 0.5, ..deeds(3.0, 0.0, 0.0) };
        assert!(is(buffered.alone_ns(&profile), 100.0 + 0.5 * (305.0 + 2.0 * 124.0)));
        // Where the cache is safe, flushes and fences cost nothing.
        let safe = Profile::named("nvdimm-n").unwrap();
        assert!(is(deeds(0.0, 3.0, 2.0).alone_ns(&safe), 100.0));
    }

    #[test]
    fn many_threads_do_what_the_busiest_part_allows() {
        let profile = Profile::named("optane-100").unwrap();
        let one = deeds(0.0, 1.0, 1.0);
        let few = one.ops_per_second(&profile, 2) / one.ops_per_second(&profile, 1);
        assert!(is(few, 2.0));
        // A unit of 256 B for each operation, at 1.917 GB/s on each of 6 DIMMs.
        let most = one.ops_per_second(&profile, 1024);
        assert!((most / (6.0 * 1.917e9 / 256.0) - 1.0).abs() < 1e-9);
        let skewed = Deeds { skew: [100.0, 1.0, 1.0], ..one };
        let all_on_one = skewed.ops_per_second(&profile, 1024);
        assert!((all_on_one / (1.917e9 / 256.0) - 1.0).abs() < 1e-9);
    }
}
