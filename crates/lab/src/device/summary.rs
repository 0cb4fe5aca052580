//! The report of a run on a device.
//!
//! Amplification has two layers. CLI comes from the line of 64 B, XBI from the unit of the media.
//! Both relate to the bytes that the user changed; their quotient is the DIMM's own amplification.

use super::dimm::{Traffic, Work};
use super::machine::Machine;
use super::profile::{PS_PER_NS, Profile, Time};
use super::threads::Demand;
use bristlecone_pmem::line::LINE_BYTES;
use serde::Serialize;

/// The cost of the operations of a run on a device. Fields named `per_op` are means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The number of operations.
    pub ops: u64,
    /// The virtual time of the run.
    pub seconds: f64,
    /// The mean time of an operation, by its use.
    pub time_ns_per_op: TimeNs,
    /// Cache-line amplification: bytes of lines that reached the DIMMs, for each byte that the user
    /// changed.
    pub cli: Option<f64>,
    /// Media amplification: bytes written to the media, for each byte that the user changed.
    pub xbi: Option<f64>,
    /// Bytes written to the media for each byte that reached the DIMMs.
    pub write_amplification: Option<f64>,
    /// The number of bytes written to the media.
    pub media_bytes_per_op: f64,
    /// The number of bytes read from the media.
    pub media_read_bytes_per_op: f64,
    /// The number of lines loaded, stored to or prefetched that were not in the cache.
    pub misses_per_op: f64,
    /// The number of fences.
    pub fences_per_op: f64,
    /// The number of lines that reached the DIMMs.
    pub lines_per_op: f64,
    /// The number of lines among these that the cache evicted.
    pub evictions_per_op: f64,
    /// The number of bits that changed on the media.
    pub flips_per_op: f64,
    /// The energy of the media.
    pub energy_nj_per_op: f64,
    /// The number of writes of the unit that was written most.
    pub wear_max: u32,
    /// The mean number of writes of the units that were written.
    pub wear_mean: f64,
    /// The number of units that were written once, 2 to 3 times, 4 to 7 times, and so on.
    pub wear_histogram: Vec<u64>,
    /// The time that one operation asks of each part of the machine.
    pub demand: Demand,
}

/// Nanoseconds of an operation, by their use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimeNs {
    /// The work of the core.
    pub core: f64,
    /// The time of waiting for loads.
    pub loads: f64,
    /// The time of waiting until a line in flight has arrived, to send another.
    pub issue: f64,
    /// The time of waiting at fences.
    pub fences: f64,
}

impl DeviceReport {
    pub(super) fn of(machine: &Machine, profile: &Profile) -> Self {
        let counters = machine.counters;
        let Traffic { lines, reads, completions, writes, flips, .. } = machine.dimms.traffic;
        let unit_bytes = profile.media.unit_bytes as u64;
        let (line_bytes, media_bytes) = (lines * LINE_BYTES as u64, writes * unit_bytes);
        let read_bytes = (reads + completions) * unit_bytes;
        let each = |count: u64| count as f64 / counters.ops.max(1) as f64;
        let ns_each = |time: Time| each(time) / PS_PER_NS as f64;
        let spent = counters.spent;
        let total = spent.core + spent.loads + spent.issue + spent.fences;
        let wear = Wear::of(machine.dimms.media.wear_of_units());
        Self {
            ops: counters.ops,
            seconds: total as f64 / PS_PER_NS as f64 / 1e9,
            time_ns_per_op: TimeNs {
                core: ns_each(spent.core),
                loads: ns_each(spent.loads),
                issue: ns_each(spent.issue),
                fences: ns_each(spent.fences),
            },
            cli: ratio(line_bytes, counters.user_bytes),
            xbi: ratio(media_bytes, counters.user_bytes),
            write_amplification: ratio(media_bytes, line_bytes),
            media_bytes_per_op: each(media_bytes),
            media_read_bytes_per_op: each(read_bytes),
            misses_per_op: each(counters.misses),
            fences_per_op: each(counters.fences),
            lines_per_op: each(lines),
            evictions_per_op: each(counters.evictions),
            flips_per_op: each(flips),
            energy_nj_per_op: energy_nj(profile, read_bytes, media_bytes, flips)
                / counters.ops.max(1) as f64,
            wear_max: wear.max,
            wear_mean: wear.mean,
            wear_histogram: wear.histogram,
            demand: demand(ns_each(total), machine.dimms.work(), ns_each),
        }
    }
}

fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn energy_nj(profile: &Profile, read_bytes: u64, written_bytes: u64, flips: u64) -> f64 {
    const PJ_PER_NJ: f64 = 1000.0;
    let energy = &profile.energy;
    let read = (read_bytes / LINE_BYTES as u64) as f64 * energy.read_nj_per_line;
    let written = (written_bytes * 8) as f64 * energy.write_pj_per_bit;
    read + (written + flips as f64 * energy.flip_pj_per_bit) / PJ_PER_NJ
}

/// Returns the demand, which at each kind of server is that of the busiest DIMM.
fn demand(
    alone_ns: f64,
    work: impl Iterator<Item = Work>,
    ns_each: impl Fn(Time) -> f64,
) -> Demand {
    let most = work.fold(Work::default(), |most, work| Work {
        queue: most.queue.max(work.queue),
        read: most.read.max(work.read),
        write: most.write.max(work.write),
    });
    Demand {
        alone_ns,
        queue_ns: ns_each(most.queue),
        read_ns: ns_each(most.read),
        write_ns: ns_each(most.write),
    }
}

struct Wear {
    max: u32,
    mean: f64,
    histogram: Vec<u64>,
}

impl Wear {
    fn of(units: &[u32]) -> Self {
        let (mut written, mut total, mut max) = (0_u64, 0_u64, 0);
        let mut histogram = vec![0; u32::BITS as usize];
        for &wear in units.iter().filter(|&&wear| wear > 0) {
            written += 1;
            total += u64::from(wear);
            max = wear.max(max);
            histogram[wear.ilog2() as usize] += 1;
        }
        histogram.truncate(max.checked_ilog2().map_or(0, |last| last as usize + 1));
        Self { max, mean: total as f64 / written.max(1) as f64, histogram }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_told_by_powers_of_two() {
        let wear = Wear::of(&[0, 1, 1, 2, 3, 9, 0]);
        assert_eq!((wear.max, wear.histogram), (9, vec![2, 2, 0, 1]));
        assert!((wear.mean - 16.0 / 5.0).abs() < 1e-12);
        assert_eq!(Wear::of(&[0]).histogram, []);
    }

    #[test]
    fn energy_is_of_lines_read_and_bits_written_and_changed() {
        let mut profile = Profile::named("pcm").unwrap();
        profile.energy.read_nj_per_line = 2.0;
        profile.energy.write_pj_per_bit = 1.0;
        profile.energy.flip_pj_per_bit = 10.0;
        let found = energy_nj(&profile, 128, 64, 100);
        assert!((found - (4.0 + 0.512 + 1.0)).abs() < 1e-12, "{found}");
    }
}
