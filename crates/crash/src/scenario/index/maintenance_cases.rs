//! Cases of designs that put work off: a keeper does it.
//!
//! Writes while there is a keeper leave the work to it; so more gathers than a write alone would leave, and
//! all of it is done by what is under test.

use crate::scenario::index::session::{IndexSession, Op};
use crate::scenario::index::trial::{CaseList, STRIDE, Trial, few, grown};
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::trace::Event;
use bristlecone_pmem::sync::pin;
use bristlecone_trees::TreeError;

/// Leaves of a tree of which some share a log, if there are no more logs than in any design.
pub(crate) const LEAVES: u64 = 12;
/// Updates after which a design is taken to have put nothing off.
const UPDATES_MAX: u64 = 400;
/// Times that all there is to do is done, after each of which what is left may be another case.
const ROUNDS: usize = 6;
/// Steps under test of one case: states are counted in bits, and two operations may follow.
const STEPS_MAX: usize = 28;

/// Updates after which a log in a small pool has come round to where it was: a block of it has been given up,
/// begun anew, and written again.
const ROUND: u32 = 250;

/// Work that is left to a keeper.
pub(crate) struct PendingWork<K: SampleKey> {
    /// What leaves it.
    pub(crate) ops: Vec<Op<K>>,
    /// Steps that it takes.
    steps: usize,
    /// Words that these store.
    stores: usize,
}

/// Updates of keys in turn, which leave work to a keeper, who does all of it some times and then no more: as often
/// as leaves most to store. `None` if nothing is left to anybody.
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
    // What is retired must not come free at a moment of chance.
    let _pinned = pin();
    let mut trial = Trial::traced(design, setup)?;
    let mut done = 0;
    for (value, &number) in (0..UPDATES_MAX).zip(numbers.iter().cycle()) {
        trial.apply(&Op::WithMaintainer(Box::new(Op::Update(K::sample(number), value))))?;
        trial.medium.begin();
        let mut steps = 0;
        while steps < STEPS_MAX && tends(&trial.session)? {
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

/// Whether there was something to do for a keeper, who has then done a step of it.
fn tends<K: SampleKey>(session: &IndexSession<K>) -> Result<bool, TreeError> {
    match session {
        IndexSession::Index(index) => index.run_maintenance_step(),
        IndexSession::Closed | IndexSession::Pool(_) => Ok(false),
    }
}

impl<K: SampleKey> CaseList<K> {
    /// All that there is to do for a keeper: in one leaf; and in a tree in which the first leaf has changed again
    /// and again, and what was said of the others counts still.
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
        // Another thread goes on where the keeper left the log.
        let updates = Op::Updates(K::sample(numbers[0]), u64::MAX, ROUND);
        let round = [&tested[..], &[Op::Reclaim, updates]].concat();
        self.add(&format!("{name}-round"), setup.clone(), round, &near);
        self.add(name, setup, tested, &near);
        Ok(())
    }
}
