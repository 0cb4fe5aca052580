//! Advice: models all persistent designs at all their node sizes, and ranks them for a workload on
//! a device.

use crate::cost_model::OpProfile;
use bristlecone_lab::Result;
use bristlecone_lab::bench::{models, specs};
use bristlecone_lab::device::{Bound, DeviceReport, Profile};
use bristlecone_lab::system::design;
use bristlecone_lab::workload::Recipe;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A design at its best node size, with its results on the device model.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The name of the design.
    pub design: String,
    /// The size of a node in bytes.
    pub node_bytes: usize,
    /// The projected throughput of all threads; latches are not modelled.
    pub ops_per_second: f64,
    /// The part of the system that limits the throughput.
    pub bound: Bound,
    /// The time of an operation of a single thread, in nanoseconds.
    pub alone_ns: f64,
    /// The number of lines that reach the device, for an operation.
    pub lines: f64,
    /// The number of fences of an operation.
    pub fences: f64,
    /// The number of cache misses of an operation.
    pub misses: f64,
    /// The number of bytes written to the media, for an operation.
    pub media_bytes: f64,
    /// The throughput that the cost model predicts, to compare with `ops_per_second`.
    pub predicted: f64,
    #[serde(skip)]
    report: DeviceReport,
}

impl Advice {
    /// Returns the reason why this design is faster than `other`.
    pub fn why(&self, other: &Self) -> String {
        if self.bound != Bound::Threads || other.bound != Bound::Threads {
            return format!(
                "an operation writes {:.0} B to the media and has {:.1} cache misses; with {4} and nodes of {5} B it writes {2:.0} B and has {3:.1} misses",
                self.media_bytes,
                self.misses,
                other.media_bytes,
                other.misses,
                other.design,
                other.node_bytes
            );
        }
        let (own, base) = (self.report.time_ns_per_op, other.report.time_ns_per_op);
        let parts = [
            ("computation", base.core - own.core),
            ("cache misses", base.loads - own.loads),
            ("writing lines back", base.issue - own.issue),
            ("fences", base.fences - own.fences),
        ];
        let most = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("nothing", 0.0));
        format!(
            "an operation takes {:.0} ns; with {2} and nodes of {3} B it takes {1:.0} ns, of which {4:.0} ns more for {5}",
            self.alone_ns, other.alone_ns, other.design, other.node_bytes, most.1, most.0
        )
    }
}

/// Models `recipe` on `profile` for all persistent designs at all their node sizes.
///
/// Returns each design once, at the size with the highest throughput of `threads` threads, the
/// fastest design first. `watch` receives messages of progress, on any thread.
///
/// One model runs on each processor. All pools of a process share the epochs of reclamation, so
/// models free blocks at varying moments, and figures can differ slightly between runs.
///
/// # Errors
/// A design failed.
pub fn advise(
    recipe: &Recipe,
    profile: &Profile,
    threads: u32,
    watch: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Advice>> {
    let candidates: Vec<(&str, usize)> = specs()
        .iter()
        .flatten()
        .filter(|spec| spec.persistent)
        .map(|spec| (spec.name, spec.node_bytes))
        .filter(|&(name, bytes)| design(name, Some(bytes)).is_ok()) // The sizes of this build.
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        while let Some(&(name, bytes)) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
            watch(&format!("{name} of {bytes} B"));
            let target = design(name, Some(bytes))?;
            let modelled = models(&target, core::slice::from_ref(recipe), profile, threads)?;
            let advice = modelled.into_iter().map(|model| {
                let projection = model.report.demand.project(threads);
                let op = OpProfile::of(&model.report, profile);
                Advice {
                    design: name.to_owned(),
                    node_bytes: bytes,
                    ops_per_second: projection.ops_per_second,
                    bound: projection.bound,
                    alone_ns: model.report.demand.alone_ns,
                    lines: model.report.lines_per_op,
                    fences: model.report.fences_per_op,
                    misses: model.report.misses_per_op,
                    media_bytes: model.report.media_bytes_per_op,
                    predicted: op.ops_per_second(profile, threads),
                    report: model.report,
                }
            });
            found.lock().expect("no thread panics while it holds the lock").extend(advice);
        }
        Ok(())
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().expect("a modelling thread panicked")
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let mut found = found.into_inner().expect("no thread panicked while it held the lock");
    found.sort_by(|a: &Advice, b| {
        let by_speed = b.ops_per_second.total_cmp(&a.ops_per_second);
        by_speed.then_with(|| (&a.design, a.node_bytes).cmp(&(&b.design, b.node_bytes)))
    });
    let mut named = HashSet::new();
    found.retain(|advice| named.insert(advice.design.clone()));
    Ok(found)
}
