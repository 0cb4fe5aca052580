//! Bandwidths and latencies: the model reproduces the table from which the profile is made.

use crate::{Dram, assert_near, profile};
use bristlecone_lab::bench::device_probe::{self, LINES, random, stream};
use bristlecone_lab::device::{Bound, DeviceReport, Profile};
use bristlecone_pmem::{Medium, PmWord};

const GB: f64 = 1e9;

/// Calls `each` with the words of a line, for the lines that `order` gives.
fn run(
    profile: &Profile,
    order: impl Iterator<Item = usize>,
    each: impl Fn(&Dram, &[PmWord]),
) -> DeviceReport {
    device_probe::lines(profile, order, each).expect("the profile is sound, and there is memory")
}

/// Returns the profile without the time of an operation beside its accesses.
fn bare(name: &str) -> Profile {
    let mut profile = profile(name);
    profile.cpu.op_ns = 0.0;
    profile
}

/// Returns the bytes in a second that `threads` threads move, in lines of 64 B.
fn rate(report: &DeviceReport, threads: u32) -> f64 {
    report.demand.project(threads).ops_per_second * 64.0 / GB
}

#[test]
fn random_writes_have_a_quarter_of_the_bandwidth_of_sequential_ones() {
    let profile = bare("optane-100");
    let sequential = run(&profile, 0..LINES, stream);
    let random = run(&profile, random(), stream);
    assert_near("sequential GB/s", rate(&sequential, 48), 11.5, 0.02);
    assert_near("random GB/s", rate(&random, 48), 2.8, 0.08);
    assert_eq!(sequential.demand.project(48).bound, Bound::Writes);
    assert_near("sequential amplification", sequential.write_amplification.unwrap(), 1.0, 0.01);
    assert_near("random amplification", random.write_amplification.unwrap(), 4.0, 0.03);
    // Random writes limit even one thread that never waits for a fence.
    let alone = 64.0 * LINES as f64 / random.seconds / GB;
    assert!((2.2..2.9).contains(&alone), "{alone}");
}

#[test]
fn random_reads_have_a_quarter_of_the_bandwidth_of_sequential_ones() {
    let mut profile = bare("optane-100");
    // A small cache, so that reads reach the device.
    profile.cpu.cache_bytes = 1 << 16;
    let load = |medium: &Dram, line: &[PmWord]| {
        medium.load(&line[0]);
    };
    let sequential = run(&profile, 0..LINES, load);
    let random = run(&profile, random(), load);
    assert_near("sequential GB/s", rate(&sequential, 1024), 38.9, 0.02);
    assert_near("random GB/s", rate(&random, 1024), 10.3, 0.1);
    assert_eq!(random.demand.project(1024).bound, Bound::Reads);
    assert_near("sequential ns", sequential.time_ns_per_op.loads, 169.0, 0.01);
    assert_near("random ns", random.time_ns_per_op.loads, 305.0, 0.06);
}

#[test]
fn a_write_that_is_waited_for_takes_what_was_measured() {
    let profile = bare("optane-100");
    let far_apart = || (0..512).map(|index| index * 128);
    let streamed = run(&profile, far_apart(), |medium, line| {
        stream(medium, line);
        let _ = medium.fence();
    });
    assert_near("streamed ns", streamed.seconds * 1e9 / 512.0, 90.0, 0.01);
    let flushed = run(&profile, far_apart().chain(far_apart()), |medium, line| {
        medium.store(&line[0], 1);
        let _ = medium.persist(&line[..1]);
    });
    // The first flush of each line waits for the line to be cached, so half of the flushes include
    // a load.
    let fences = flushed.time_ns_per_op.fences;
    assert_near(
        "flushed ns",
        fences + profile.cpu.fence_ns + profile.cpu.flush_ns,
        62.0 + 305.0 / 2.0,
        0.05,
    );
}

#[test]
fn a_crowd_shares_the_buffers_and_nothing_else() {
    let alone = bare("optane-100");
    let crowded = alone.crowded(48);
    assert_eq!((crowded.buffer.write_units, crowded.media), (1, alone.media));
    assert_eq!(alone.crowded(1), alone);
    assert_eq!(bare("nvdimm-n").crowded(48).buffer.write_units, 0, "there is nothing to share");
    // The four lines of a unit alternate with those of other units. One thread alone combines them
    // in the buffer.
    let strided = || {
        (0..64).flat_map(|group| {
            (0..4).flat_map(move |line| (0..16).map(move |unit| (group * 16 + unit) * 4 + line))
        })
    };
    let amplified = |profile: &Profile| run(profile, strided(), stream).write_amplification;
    assert_near("alone", amplified(&alone).unwrap(), 1.0, 0.01);
    assert_near("in a crowd", amplified(&crowded).unwrap(), 4.0, 0.01);
}

#[test]
fn a_line_of_each_unit_costs_as_many_writes_as_the_whole_unit() {
    let profile = bare("optane-100");
    for (stride, units, lines) in [(1, LINES / 4, 4.0), (4, LINES / 4, 1.0)] {
        let report = run(&profile, (0..LINES).step_by(stride), stream);
        let writes = report.media_bytes_per_op * report.ops as f64 / 256.0;
        assert_near("units", writes, units as f64, 0.001);
        assert_near("amplification", report.write_amplification.unwrap(), 4.0 / lines, 0.001);
        let is_read = report.media_read_bytes_per_op > 0.0;
        assert_eq!(is_read, stride == 4, "a unit that is written in part is read first");
    }
}

#[test]
fn the_write_buffer_ends_where_the_profile_says() {
    let profile = bare("optane-100");
    let capacity = profile.buffer.write_units * profile.media.dimms;
    // Whole chunks of 16 units go to the DIMMs in turn, so they fill all buffers equally.
    let writes = |units: usize| {
        let rounds = (0..32).flat_map(|_| (0..units).map(|unit| unit * 4));
        let report = run(&profile, rounds, stream);
        report.media_bytes_per_op / 256.0
    };
    let (below, above) = (writes(capacity), writes(capacity + 6 * 16));
    assert!(below < 0.04, "{below}");
    assert!(above > 0.95, "{above}");
}

#[test]
fn where_the_cache_is_safe_nothing_waits_and_little_is_written() {
    let rewrite = |medium: &Dram, line: &[PmWord]| {
        medium.store(&line[0], 1);
        let _ = medium.persist(line);
    };
    let few = || (0..10_000).map(|index| index % 100);
    let adr = run(&bare("optane-100"), few(), rewrite);
    let eadr = run(&bare("nvdimm-n"), few(), rewrite);
    assert_near("lines", adr.lines_per_op, 1.0, 0.001);
    assert!(eadr.lines_per_op < 1e-9 && eadr.time_ns_per_op.fences < 1e-9);
    let pcm = run(&bare("pcm"), few(), rewrite);
    assert!(pcm.time_ns_per_op.fences > 440.0, "{:?}", pcm.time_ns_per_op);
    let delayed = run(&bare("dram-300ns"), few(), rewrite);
    assert!(delayed.time_ns_per_op.core > 300.0, "{:?}", delayed.time_ns_per_op);
}

#[test]
fn prefetches_overlap_and_loads_do_not() {
    let profile = bare("optane-100");
    let far_apart = || (0..512).map(|index| index * 128);
    let one_by_one = run(&profile, far_apart(), |medium, line| {
        medium.load(&line[0]);
    });
    let ahead = run(&profile, far_apart(), Medium::prefetch);
    let factor = one_by_one.seconds / ahead.seconds;
    let outstanding = profile.cpu.outstanding as f64;
    assert!((outstanding * 0.7..outstanding * 1.2).contains(&factor), "{factor}");
}

#[test]
fn a_line_in_flight_is_waited_for_whatever_sent_it() {
    let profile = bare("optane-100");
    let far_apart = || (0..512).map(|index| index * 128);
    let waits = |each: &dyn Fn(&Dram, &[PmWord])| {
        run(&profile, far_apart(), |medium, line| each(medium, line)).time_ns_per_op.loads
    };
    let loaded = waits(&|medium, line| {
        medium.load(&line[0]);
    });
    let prefetched = waits(&|medium, line| {
        medium.prefetch(&line[..1]);
        medium.load(&line[0]);
    });
    let stored = waits(&|medium, line| {
        medium.store(&line[0], 1);
        medium.load(&line[1]);
    });
    let swapped = waits(&|medium, line| {
        let _ = medium.cas_transient(&line[0], 0, 1);
    });
    // The core's time for the load passes while the line is in flight.
    assert_near("after a prefetch", prefetched, loaded - profile.cpu.line_ns, 0.01);
    assert_near("after a store", stored, loaded - profile.cpu.word_ns, 0.01);
    assert_near("a compare-and-swap", swapped, loaded, 1e-9);
}

#[test]
fn bits_that_stay_as_they_are_are_not_counted() {
    let profile = bare("pcm");
    let twice = (0..100).chain(0..100);
    let report = run(&profile, twice, |medium, line| {
        medium.store(&line[0], 0xFF);
        let _ = medium.persist(line);
    });
    assert_near("bits", report.flips_per_op, 4.0, 1e-9);
    assert_eq!((report.wear_max, report.wear_histogram), (2, vec![0, 100]));
}

#[test]
fn a_probe_gives_the_table_that_the_profile_is_made_from() {
    let probed = device_probe::probe(&profile("optane-100")).unwrap();
    assert_near("sequential reads", probed.read_gb_per_s[0], 38.9, 0.02);
    assert_near("random reads", probed.read_gb_per_s[1], 10.3, 0.1);
    assert_near("sequential writes", probed.write_gb_per_s[0], 11.5, 0.02);
    assert_near("random writes", probed.write_gb_per_s[1], 2.8, 0.08);
    assert_near("sequential latency", probed.read_ns[0], 169.0, 0.01);
    assert_near("random latency", probed.read_ns[1], 305.0, 0.06);
    assert_near("streamed", probed.stream_ns, 90.0, 0.01);
    assert_near("flushed", probed.flush_ns, 62.0, 0.1);
}
