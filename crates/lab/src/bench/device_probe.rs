//! Bandwidths and latencies of a modelled device without a tree: the figures behind its profile.

use crate::device::{Device, DeviceReport, Profile};
use crate::error::Result;
use crate::workload::mix64;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Mapped, Medium, PmWord, Pool, PoolError};

/// The number of lines that a probe works on.
pub const LINES: usize = 1 << 16;

/// Bandwidths and latencies of a device, as its users measure them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Probed {
    /// The bandwidth of reads by many threads, in GB/s: sequential and random.
    pub read_gb_per_s: [f64; 2],
    /// The bandwidth of non-temporal writes by many threads, in GB/s: sequential and random.
    pub write_gb_per_s: [f64; 2],
    /// The time of a load by one thread, in nanoseconds: sequential and random.
    pub read_ns: [f64; 2],
    /// The time of a non-temporal store and its fence, in nanoseconds.
    pub stream_ns: f64,
    /// The time of the flush of a cached line and its fence, in nanoseconds.
    pub flush_ns: f64,
}

/// Calls `each` with the words of a line, for each line below [`LINES`] that `order` gives.
///
/// # Errors
/// The profile is invalid, or the system refuses the memory.
pub fn lines(
    profile: &Profile,
    order: impl Iterator<Item = usize>,
    each: impl Fn(&Device<Mapped>, &[PmWord]),
) -> Result<DeviceReport> {
    const POOL_BYTES: u64 = 32 << 20;
    let memory = Mapped::anonymous(POOL_BYTES)?;
    let pool = Pool::create(Device::new(memory, profile.clone())?)?;
    let at = pool.reserve((LINES * LINE_BYTES) as u64)?;
    let words = pool.words(at, LINES * LINE_WORDS).map_err(PoolError::from)?;
    let medium = pool.medium();
    medium.reset_counts();
    for line in order {
        each(medium, &words[line * LINE_WORDS..(line + 1) * LINE_WORDS]);
        medium.end_op(LINE_BYTES as u64);
    }
    medium.settle();
    Ok(medium.report())
}

/// Stores to a whole line, past the cache.
pub fn stream(medium: &Device<Mapped>, line: &[PmWord]) {
    medium.fill(line, &[1; LINE_BYTES]);
}

/// Returns the numbers of lines in an order that no prefetcher predicts.
pub fn random() -> impl Iterator<Item = usize> {
    (0..LINES as u64).map(|index| mix64(index) as usize % LINES)
}

/// Measures the device of `profile`, without the time of an operation beside its accesses.
///
/// # Errors
/// The profile is invalid, or the system refuses the memory.
pub fn probe(profile: &Profile) -> Result<Probed> {
    /// So many threads that the busiest part of any device is the limit.
    const MANY: u32 = 1024;
    /// So few lines, at equal distances, that no two are in one media unit.
    const FEW: usize = 512;
    let mut device = profile.clone();
    device.cpu.op_ns = 0.0;
    let mut uncached = device.clone();
    // A small cache, so that reads reach the device.
    uncached.cpu.cache_bytes = (uncached.cpu.cache_ways * LINE_BYTES) as u64 * 64;
    let rate = |report: &DeviceReport| {
        report.demand.project(MANY).ops_per_second * LINE_BYTES as f64 / 1e9
    };
    let load = |medium: &Device<Mapped>, line: &[PmWord]| {
        medium.load(&line[0]);
    };
    let reads = [lines(&uncached, 0..LINES, load)?, lines(&uncached, random(), load)?];
    let writes = [lines(&device, 0..LINES, stream)?, lines(&device, random(), stream)?];
    let far_apart = || (0..FEW).map(|index| index * (LINES / FEW));
    let streamed = lines(&device, far_apart(), |medium, line| {
        stream(medium, line);
        let _ = medium.fence();
    })?;
    let flush = |medium: &Device<Mapped>, line: &[PmWord]| {
        medium.store(&line[0], 1);
        let _ = medium.persist(&line[..1]);
    };
    // The first flush of a line waits for the line to be cached; the second one does not.
    let first = lines(&device, far_apart(), flush)?;
    let both = lines(&device, far_apart().chain(far_apart()), flush)?;
    Ok(Probed {
        read_gb_per_s: [rate(&reads[0]), rate(&reads[1])],
        write_gb_per_s: [rate(&writes[0]), rate(&writes[1])],
        read_ns: [reads[0].time_ns_per_op.loads, reads[1].time_ns_per_op.loads],
        stream_ns: streamed.seconds * 1e9 / streamed.ops as f64,
        flush_ns: 2.0 * both.time_ns_per_op.fences - first.time_ns_per_op.fences
            + device.cpu.fence_ns
            + device.cpu.flush_ns,
    })
}
