//! The cost model: the time of an operation, from its counts and the parameters of a device.
//!
//! ```text
//! one thread    time = core + overlap * (misses * read) + lines * flush + fences * wait
//!                      + (lines - fences) * line
//! N threads     throughput <= 1 / max(bytes written / write bandwidth,
//!                                     bytes read / read bandwidth,
//!                                     lines * line)             for the busiest DIMM
//! ```
//!
//! The counts belong to the design: they are taken once, on one device, and used for all devices.
//! The formula therefore leaves out caches and buffers that differ between devices, and lines that
//! wait for each other.

use bristlecone_lab::device::{DeviceReport, Persistence, Profile};

/// The average counts of an operation of a design.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OpProfile {
    /// The time of the processor core in nanoseconds, without cache misses and flushes.
    pub core_ns: f64,
    /// The number of cache misses.
    pub misses: f64,
    /// The share of the misses' latency that the thread waits for. The rest overlaps, because of
    /// prefetches.
    pub overlap: f64,
    /// The number of lines written to the device.
    pub lines: f64,
    /// The number of fences.
    pub fences: f64,
    /// The number of media blocks (256 B) written.
    pub units_written: f64,
    /// The number of media blocks (256 B) read.
    pub units_read: f64,
    /// The load of the busiest DIMM relative to the mean of all: for writes, reads, and lines.
    pub skew: [f64; 3],
}

/// The size of a cache line in bytes.
const LINE_BYTES: f64 = 64.0;

impl OpProfile {
    /// Derives the counts from a report on `profile`, whose media blocks have 256 B.
    pub fn of(report: &DeviceReport, profile: &Profile) -> Self {
        let unit_bytes = profile.media.unit_bytes as f64;
        let mut op = Self {
            // The core's time for a flush is a parameter of the device, not a count of the design.
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
        op.overlap = over(report.time_ns_per_op.loads, op.reading_ns(profile));
        let [write, read, queue] = op.servers_ns(profile);
        let demand = report.demand;
        op.skew = [
            over(demand.write_ns, write),
            over(demand.read_ns, read),
            over(demand.queue_ns, queue),
        ];
        op
    }

    /// Returns `true` if `profile` has media blocks larger than a line, as the counts assume.
    fn has_units(profile: &Profile) -> bool {
        profile.media.unit_bytes as f64 > LINE_BYTES
    }

    /// Returns the nanoseconds of all cache misses, if none overlapped.
    fn reading_ns(&self, profile: &Profile) -> f64 {
        if !Self::has_units(profile) {
            return self.misses * profile.media.read_ns;
        }
        // The first line of a media block comes from the media, further ones from the buffer.
        let from_media = self.units_read.min(self.misses);
        from_media * profile.media.read_ns + (self.misses - from_media) * profile.buffer.read_ns
    }

    /// Returns the nanoseconds of an operation of a single thread on `profile`.
    pub fn alone_ns(&self, profile: &Profile) -> f64 {
        let Profile { cpu, queue, media, .. } = profile;
        // The lines before a fence leave one after another, and the fence waits for the last.
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

    /// Returns the nanoseconds of a DIMM's work for one operation, if all DIMMs have equal load:
    /// for writes of the media, reads of the media, and the queue.
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

    /// Returns the nanoseconds of work of the busiest part of `profile` for one operation.
    pub fn busiest_ns(&self, profile: &Profile) -> f64 {
        // In the worst case one DIMM has all the work: the number of DIMMs times its equal share.
        let most = profile.media.dimms as f64;
        let servers = self.servers_ns(profile);
        let busy = servers.iter().zip(self.skew).map(|(ns, skew)| ns * skew.min(most));
        busy.fold(0.0, f64::max)
    }

    /// Returns an upper bound of the operations a second of `threads` threads on `profile`.
    pub fn ops_per_second(&self, profile: &Profile, threads: u32) -> f64 {
        const NS_PER_SECOND: f64 = 1e9;
        let alone = self.alone_ns(profile) / f64::from(threads.max(1));
        NS_PER_SECOND / alone.max(self.busiest_ns(profile)).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an operation with a media block for each line and for each miss.
    fn op(misses: f64, lines: f64, fences: f64) -> OpProfile {
        OpProfile {
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
    fn each_count_has_the_latency_of_the_device() {
        let profile = Profile::named("optane-100").unwrap();
        let alone = |misses, lines, fences| op(misses, lines, fences).alone_ns(&profile);
        assert!(is(alone(0.0, 0.0, 0.0), 100.0));
        assert!(is(alone(2.0, 0.0, 0.0), 100.0 + 2.0 * 305.0));
        assert!(is(alone(0.0, 1.0, 1.0), 100.0 + 5.0 + 57.0));
        assert!(is(alone(0.0, 3.0, 1.0), 100.0 + 3.0 * 5.0 + 57.0 + 2.0 * 3.0));
        // Of three lines of a media block, two come from the buffer; half of the latency overlaps.
        let buffered = OpProfile { units_read: 1.0, overlap: 0.5, ..op(3.0, 0.0, 0.0) };
        assert!(is(buffered.alone_ns(&profile), 100.0 + 0.5 * (305.0 + 2.0 * 124.0)));
        // If the cache is inside the persistence domain, flushes and fences cost nothing.
        let safe = Profile::named("nvdimm-n").unwrap();
        assert!(is(op(0.0, 3.0, 2.0).alone_ns(&safe), 100.0));
    }

    #[test]
    fn the_busiest_part_bounds_many_threads() {
        let profile = Profile::named("optane-100").unwrap();
        let one = op(0.0, 1.0, 1.0);
        let few = one.ops_per_second(&profile, 2) / one.ops_per_second(&profile, 1);
        assert!(is(few, 2.0));
        // A media block of 256 B for each operation, at 1.917 GB/s on each of 6 DIMMs.
        let most = one.ops_per_second(&profile, 1024);
        assert!((most / (6.0 * 1.917e9 / 256.0) - 1.0).abs() < 1e-9);
        let skewed = OpProfile { skew: [100.0, 1.0, 1.0], ..one };
        let all_on_one = skewed.ops_per_second(&profile, 1024);
        assert!((all_on_one / (1.917e9 / 256.0) - 1.0).abs() < 1e-9);
    }
}
