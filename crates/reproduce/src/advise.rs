//! Advice: of all designs, at all their node sizes, which is best for a workload on a device, and why.

use crate::cost::Deeds;
use bristlecone_lab::Result;
use bristlecone_lab::bench::{models, specs};
use bristlecone_lab::device::{Bound, DeviceReport, Profile};
use bristlecone_lab::system::design;
use bristlecone_lab::workload::Recipe;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A design at a node size, as it does on the model.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The design.
    pub design: String,
    /// Bytes of a node.
    pub node_bytes: usize,
    /// Operations a second of all threads, at the most.
    pub ops_per_second: f64,
    /// What allows no more.
    pub bound: Bound,
    /// Nanoseconds of an operation, of one thread alone.
    pub alone_ns: f64,
    /// Lines that reach the device, of an operation.
    pub lines: f64,
    /// Fences of an operation.
    pub fences: f64,
    /// Lines that are not in the cache, of an operation.
    pub misses: f64,
    /// Bytes written to the media, of an operation.
    pub media_bytes: f64,
    /// What the cost model says of `ops_per_second`.
    pub predicted: f64,
    #[serde(skip)]
    report: DeviceReport,
}

impl Advice {
    /// Why this is better than `other`: what `other` spends more on.
    pub fn why(&self, other: &Self) -> String {
        if self.bound != Bound::Threads || other.bound != Bound::Threads {
            return format!(
                "it writes {:.0} B to the media an operation and misses the cache {:.1} times, against {:.0} B and {:.1} times of {} at {} B",
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
            ("work of the core", base.core - own.core),
            ("waiting for loads", base.loads - own.loads),
            ("waiting to send lines", base.issue - own.issue),
            ("waiting at fences", base.fences - own.fences),
        ];
        let most = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("nothing", 0.0));
        format!(
            "an operation takes {:.0} ns, against {:.0} of {} at {} B, which spends {:.0} ns more on {}",
            self.alone_ns, other.alone_ns, other.design, other.node_bytes, most.1, most.0
        )
    }
}

/// Models `recipe` on `profile` for every persistent design at each of its node sizes: every design once, at the size
/// that is best for `threads`, the best design first. `watch` is told what is being modelled.
///
/// As many are modelled at once as there are processors. They put off together what they free, so a figure can
/// differ from that of a model by itself by a block now and then.
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
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        while let Some(&(name, bytes)) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
            watch(&format!("{name} of {bytes} B"));
            let target = design(name, Some(bytes))?;
            let modelled = models(&target, core::slice::from_ref(recipe), profile, threads)?;
            let advice = modelled.into_iter().map(|model| {
                let projection = model.report.demand.project(threads);
                let deeds = Deeds::of(&model.report, profile);
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
                    predicted: deeds.ops_per_second(profile, threads),
                    report: model.report,
                }
            });
            found.lock().expect("no thread panics with it").extend(advice);
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
    let mut found = found.into_inner().expect("no thread panicked with it");
    found.sort_by(|a: &Advice, b| {
        let by_speed = b.ops_per_second.total_cmp(&a.ops_per_second);
        by_speed.then_with(|| (&a.design, a.node_bytes).cmp(&(&b.design, b.node_bytes)))
    });
    let mut named = HashSet::new();
    found.retain(|advice| named.insert(advice.design.clone()));
    Ok(found)
}
