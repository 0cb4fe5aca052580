//! wB+-Trees, Fig. 4: the cost of `clflush` without an index.

use crate::claims::Claim;
use crate::interval::Interval;
use crate::papers::finding::{ClaimResult, Measured, comparison_chart, measure_each, timed};
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::bench::{Flushing, LineWrites};

/// The number of lines in the paper: 1 GB.
const LINES: u64 = 1 << 24;

/// The runs: in the order of addresses or not, flushed or not.
const RUNS: [(bool, bool); 4] = [(true, false), (true, true), (false, false), (false, true)];

pub(in crate::papers) fn clflush(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    // Ten times the scale at the most: fewer lines fit the cache.
    let lines = (10 * bench.scaled(LINES)).min(LINES);
    let writes = LineWrites::new(lines as usize, Flushing::Serial)?;
    bench.say("lines of memory");
    let seconds = bench.in_turns(RUNS.len(), |at| {
        let (is_sequential, is_flushed) = RUNS[at];
        Ok(writes.write(is_sequential, is_flushed)?.as_secs_f64())
    })?;
    let measurements = measure_each(claim, |number| {
        let first = if number.case.starts_with("sequential") { 0 } else { 2 };
        let (plain, flushed) = (&seconds[first], &seconds[first + 1]);
        let ns = |seconds: &[f64]| Interval::of_ratios(seconds).value * 1e9 / lines as f64;
        let note = format!(
            "{:.1} ns a line flushed, {:.1} not; {lines} lines of 64 B, the paper has {LINES}",
            ns(flushed),
            ns(plain)
        );
        Measured::repeated(Interval::paired(flushed, plain), note)
    });
    let bars = comparison_chart(claim, &measurements, "time, relative to no flush", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}
