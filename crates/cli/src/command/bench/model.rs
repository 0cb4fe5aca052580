//! The modelled pass: what the operations of a workload cost on a device that is not here.
//!
//! The same records and operations as in the timed pass, by one thread, on a model in virtual time: the
//! figures are the same on every run and every machine.

use super::report::Latency;
use super::run::{self, expect_none, step};
use super::subject::{Actor, Subject, Tree};
use super::target::{Target, room_bytes};
use super::workload::{BATCH, Kind, Plan, Recipe};
use crate::output::{Output, grouped, table, whole};
use anyhow::Result;
use bristlecone::Store;
use bristlecone_lab::device::{Device, Profile, Projection, Report};
use bristlecone_pmem::Mapped;
use bristlecone_trees::registry::{self, Visitor};
use bristlecone_trees::{Design, PmIndex};
use serde::Serialize;
use std::time::Instant;

/// What a device made of a workload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Model {
    device: String,
    #[serde(flatten)]
    report: Report,
    /// In virtual time; of batches, where the workload is in batches.
    latency_ns: Latency,
    /// What more threads could do, at the most.
    projections: Vec<Projection>,
    /// How fast this machine was at it, loading apart.
    host_ops_per_second: f64,
}

/// Numbers of threads that are projected, beside the one that was asked for.
const THREADS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The medium of a modelled pass.
type Medium = Device<Mapped>;

/// A subject on a model.
trait Modelled: Subject {
    fn device(&self) -> &Medium;
}

impl<I: PmIndex<Medium, u64>> Modelled for Tree<Medium, I> {
    fn device(&self) -> &Medium {
        self.medium()
    }
}

impl Modelled for Store<Medium> {
    fn device(&self) -> &Medium {
        self.medium()
    }
}

/// Runs `recipe` on a `target` that is on a device of `profile`; nothing for what is not persistent. A design
/// is run at its default node size: another one is another compilation of it.
pub(super) fn model(
    target: &Target,
    recipe: &Recipe,
    profile: &Profile,
    threads: u32,
) -> Result<Option<Model>> {
    let recipe = Recipe { threads: 1, ..recipe.clone() };
    let pass = Pass { recipe: &recipe, profile, threads };
    match target {
        Target::BTreeMap => Ok(None),
        Target::Store => pass.run(Store::create_on(pass.medium(target)?)?).map(Some),
        Target::Design { name, .. } => {
            let medium = pass.medium(target)?;
            registry::with_default(name, Placed { pass, medium })?.map(Some)
        }
    }
}

struct Pass<'a> {
    recipe: &'a Recipe,
    profile: &'a Profile,
    threads: u32,
}

/// A pass and the medium that it is on.
struct Placed<'a> {
    pass: Pass<'a>,
    medium: Medium,
}

impl Visitor for Placed<'_> {
    type Output = Result<Model>;

    fn visit<D: Design>(self) -> Self::Output {
        self.pass.run(Tree::<Medium, D::Index<_, u64>>::create(self.medium)?)
    }
}

/// Bytes that an operation changes for its caller: a key and its value, or a key that goes.
fn user_bytes(kind: Kind) -> u64 {
    match kind {
        Kind::Get | Kind::Scan => 0,
        Kind::Remove => 8,
        Kind::Insert | Kind::Update | Kind::ReadModifyWrite => 16,
    }
}

impl Pass<'_> {
    /// A device with room enough that its pool does not grow.
    fn medium(&self, target: &Target) -> Result<Medium> {
        /// What fragmentation may take.
        const TIMES: u64 = 2;
        let memory = Mapped::anonymous(TIMES * room_bytes(target, self.recipe))?;
        Ok(Device::new(memory, self.profile.clone())?)
    }

    fn run<S: Modelled>(&self, mut subject: S) -> Result<Model> {
        run::load(&mut subject, self.recipe)?;
        subject.device().renew();
        let mut samples = Vec::new();
        let (mut wrong, mut done) = (0, 0);
        let start = Instant::now();
        for plan in self.recipe.plans() {
            done += plan.ops();
            wrong += follow(&plan, &mut subject, &mut samples)?;
        }
        let elapsed = start.elapsed().as_secs_f64().max(1e-9);
        expect_none(wrong, done)?;
        subject.device().settle();
        let report = subject.device().report();
        let mut threads = THREADS.to_vec();
        if !THREADS.contains(&self.threads) {
            threads.push(self.threads);
        }
        Ok(Model {
            device: self.profile.name.clone(),
            latency_ns: Latency::of(&samples),
            projections: threads.into_iter().map(|n| report.demand.project(n)).collect(),
            report,
            host_ops_per_second: done as f64 / elapsed,
        })
    }
}

/// Follows `plan`; how many answers were wrong.
fn follow<S: Modelled>(plan: &Plan, subject: &mut S, samples: &mut Vec<u32>) -> Result<u64> {
    let mut wrong = 0;
    let mut last = subject.device().now_ns();
    let mut sample = |now| {
        samples.push(u32::try_from(now - last).unwrap_or(u32::MAX));
        last = now;
    };
    match plan {
        Plan::Each(ops) => {
            for op in ops {
                for actor in &mut subject.actors(1) {
                    wrong += u64::from(!step(actor, op)?);
                }
                sample(subject.device().end_op(user_bytes(op.kind)));
            }
        }
        Plan::Batches(keys) => {
            for batch in keys.chunks(BATCH) {
                let mut values = [None; BATCH];
                for actor in &mut subject.actors(1) {
                    actor.multi_get(batch, &mut values[..batch.len()])?;
                }
                wrong += values[..batch.len()].iter().filter(|v| v.is_none()).count() as u64;
                let ends = batch.iter().map(|_| subject.device().end_op(0));
                sample(ends.last().unwrap_or_default());
            }
        }
    }
    Ok(wrong)
}

/// Prints the models for people: `rows` of a design, a workload and what came of them.
pub(super) fn print<'a>(
    rows: impl Iterator<Item = (&'a str, String, &'a Model)>,
    threads: u32,
    output: &mut Output,
) -> std::io::Result<()> {
    let at_threads = format!("ops/s at {threads}");
    let titles = [
        "design",
        "workload",
        "device",
        "ns/op",
        "p99 ns",
        at_threads.as_str(),
        "bound",
        "CLI",
        "XBI",
        "media B/op",
        "nJ/op",
        "wear max",
        "wear mean",
        "host ops/s",
    ];
    let mut shown = table(&titles, 3..14);
    let amplification =
        |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
    for (design, workload, model) in rows {
        let report = &model.report;
        let projection = report.demand.project(threads);
        shown.add_row([
            design.to_owned(),
            workload,
            model.device.clone(),
            format!("{:.0}", report.demand.alone_ns),
            model.latency_ns.p99().to_string(),
            grouped(whole(projection.ops_per_second)),
            projection.bound.name().to_owned(),
            amplification(report.cli),
            amplification(report.xbi),
            format!("{:.1}", report.media_bytes_per_op),
            format!("{:.2}", report.energy_nj_per_op),
            report.wear_max.to_string(),
            format!("{:.2}", report.wear_mean),
            grouped(whole(model.host_ops_per_second)),
        ]);
    }
    output.table(&shown)
}
