//! The lead of a tree over others, at two latencies that are added to each flushed line.

use super::finding::{Measured, timing_note};
use crate::interval::Interval;
use crate::speed::Speed;
use crate::workbench::{Named, Work, Workbench};
use bristlecone_lab::Result;

/// The times of designs, the system first, at one latency.
pub(super) struct AtLatency {
    work: Work,
    speeds: Vec<Speed>,
}

/// Times `work` on `designs` at each of `delays_ns`. All runs take turns, so that both latencies
/// can be compared.
pub(super) fn at_latencies(
    bench: &mut Workbench<'_>,
    designs: &[Named<'_>],
    work: &Work,
    delays_ns: [u64; 2],
) -> Result<[AtLatency; 2]> {
    let works = delays_ns.map(|delay_ns| work.clone().with_flush_delay(delay_ns));
    let runs = works.iter().flat_map(|work| designs.iter().map(move |&design| (design, work)));
    let mut speeds = bench.speeds_of(&runs.collect::<Vec<_>>())?.into_iter();
    Ok(works.map(|work| AtLatency { work, speeds: speeds.by_ref().take(designs.len()).collect() }))
}

impl AtLatency {
    /// Returns the time of the design at `at` over that of the system.
    pub(super) fn lead(&self, at: usize) -> Measured {
        let (own, base) = (&self.speeds[0], &self.speeds[at]);
        Measured::timed(own.over(base), self.note(at), &[own, base])
    }

    /// Returns the lead over the design at `at`, relative to that in `other`.
    pub(super) fn growth(&self, other: &Self, at: usize) -> Measured {
        let both = [self, other].map(|run| [&run.speeds[0], &run.speeds[at]]);
        let [here, there] = both.map(|[own, base]| own.ratios(base));
        let note = format!("{}; {}", self.note(at), other.note(at));
        Measured::timed(Interval::paired(&here, &there), note, both.as_flattened())
    }

    fn note(&self, at: usize) -> String {
        let timing = timing_note(&self.speeds[at], &self.speeds[0], &self.work);
        format!("with {} ns {timing}", self.work.delay_ns)
    }
}
