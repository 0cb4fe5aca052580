//! Cases of designs with deferred work, which a maintenance worker does.
//!
//! Writes beside a maintenance worker leave the work to it, so more accumulates than without one.
//! The operations under test do all of it.

use crate::scenario::index::session::{IndexSession, Op};
use crate::scenario::index::trial::{CaseList, STRIDE, Trial, few, grown};
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::trace::Event;
use bristlecone_pmem::sync::pin;
use bristlecone_trees::TreeError;

/// The number of leaves with which, in every design, some leaves share a log.
pub(crate) const LEAVES: u64 = 12;
/// The number of updates after which a design counts as one without deferred work.
const UPDATES_MAX: u64 = 400;
/// The number of times that all pending work is done; the work left after each may be another case.
const ROUNDS: usize = 6;
/// The steps under test of one case. States are bits of a word, and two operations may follow.
const STEPS_MAX: usize = 28;

/// The number of updates after which a log in a small pool has wrapped: a block of it was freed,
/// reused and written again.
const ROUND: u32 = 250;

/// Work that waits for a maintenance worker.
pub(crate) struct PendingWork<K: SampleKey> {
    /// The operations that leave it.
    pub(crate) ops: Vec<Op<K>>,
    /// The number of maintenance steps.
    steps: usize,
    /// The number of words that these steps store.
    stores: usize,
}

/// Returns updates of keys in turn that leave work to a maintenance worker. The worker does all of
/// it up to [`ROUNDS`] times, as often as leaves the most stores. Returns `None` without pending
/// work.
pub(crate) fn pending_work<K: SampleKey>(
    design: SubjectDesign<K>,
    setup: &[Op<K>],
    numbers: &[u64],
) -> Result<Option<PendingWork<K>>, TreeError> {
    let mut most: Option<PendingWork<K>> = None;
    for rounds in 0..ROUNDS {
        let pending_work = pending_after(design, setup, numbers, rounds)?;
        let stores = most.as_ref().map_or(0, |most| most.stores);
        most = pending_work.filter(|pending_work| pending_work.stores > stores).or(most);
    }
    Ok(most)
}

fn pending_after<K: SampleKey>(
    design: SubjectDesign<K>,
    setup: &[Op<K>],
    numbers: &[u64],
    rounds: usize,
) -> Result<Option<PendingWork<K>>, TreeError> {
    // Retired blocks must not become free at a moment that depends on other threads.
    let _pinned = pin();
    let mut trial = Trial::traced(design, setup)?;
    let mut done = 0;
    for (value, &number) in (0..UPDATES_MAX).zip(numbers.iter().cycle()) {
        trial.apply(&Op::WithMaintainer(Box::new(Op::Update(K::sample(number), value))))?;
        trial.medium.begin();
        let mut steps = 0;
        while steps < STEPS_MAX && run_step(&trial.session)? {
            steps += 1;
        }
        if steps > 0 && done == rounds {
            let Ok((trace, _)) = trial.medium.finish() else { return Ok(None) };
            let of_steps = &trace.entries[trace.begin as usize..];
            let is_store = |event: &Event| matches!(event, Event::Store { .. });
            let stores = of_steps.iter().filter(|entry| is_store(&entry.event)).count();
            let ops = trial.done.split_off(setup.len());
            return Ok(Some(PendingWork { ops, steps, stores }));
        }
        done += usize::from(steps > 0);
        trial.done.extend(vec![Op::RunMaintenance; steps]);
    }
    Ok(None)
}

/// Runs a maintenance step. Returns `false` if none was due.
fn run_step<K: SampleKey>(session: &IndexSession<K>) -> Result<bool, TreeError> {
    match session {
        IndexSession::Index(index) => index.run_maintenance_step(),
        IndexSession::Closed | IndexSession::Pool(_) => Ok(false),
    }
}

impl<K: SampleKey> CaseList<K> {
    /// Adds all pending work of one leaf; and that of a tree in which the first leaf has changed
    /// many times while the records of other leaves are still live.
    pub(super) fn maintenance(&mut self) -> Result<(), TreeError> {
        if self.design.form.maintenance.is_none() {
            return Ok(());
        }
        let updates = Op::Updates(K::sample(20), u64::MAX, ROUND);
        self.add("update-round", few(), vec![updates], &[20, 19, 21, STRIDE]);
        self.maintenance_after("tend", few(), &[20, 10, 40])?;
        let Some((setup, _)) = grown(self.design, 2, LEAVES)? else { return Ok(()) };
        self.maintenance_after("tend-beside", setup, &[STRIDE, 2 * STRIDE])
    }

    fn maintenance_after(
        &mut self,
        name: &str,
        setup: Vec<Op<K>>,
        numbers: &[u64],
    ) -> Result<(), TreeError> {
        let Some(pending_work) = pending_work(self.design, &setup, numbers)? else { return Ok(()) };
        let near = [numbers[0], numbers[0] + 1, numbers[1], LEAVES * STRIDE];
        let setup = [setup, pending_work.ops].concat();
        let tested = vec![Op::RunMaintenance; pending_work.steps];
        // Another thread continues where the maintenance worker left the log.
        let updates = Op::Updates(K::sample(numbers[0]), u64::MAX, ROUND);
        let round = [&tested[..], &[Op::Reclaim, updates]].concat();
        self.add(&format!("{name}-round"), setup.clone(), round, &near);
        self.add(name, setup, tested, &near);
        Ok(())
    }
}
