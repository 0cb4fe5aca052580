//! Allocation-failure injection for an index.
//!
//! For each number n, the allocation n of the operations under test is refused, once alone, then
//! with all after it. The operation must report a full pool and change nothing, or do without the
//! block. No block may leak, at once or through a recovery. All pairs can be removed while every
//! allocation is refused.

use crate::config::{POOL_BYTES, RESERVE_BYTES};
use crate::medium::fault::{FaultMedium, Refusal};
use crate::outcome::Finding;
use crate::scenario::AllocFaultRun;
use crate::scenario::checks::leaks;
use crate::scenario::checks::{check, failed, pairs};
use crate::scenario::index::scenario::IndexScenario;
use crate::scenario::index::session::{IndexSession, ModelState, Op};
use crate::subject::design::SubjectDesign;
use bristlecone_pmem::Simulated;
use bristlecone_pmem::{Pool, PoolError};
use bristlecone_trees::{Key, TreeError, TreeStats};

/// A bound that no operation reaches.
const RESERVATIONS_MAX: u32 = 1000;

/// A scenario under way.
struct Run<K: Key> {
    design: SubjectDesign<K>,
    session: IndexSession<K>,
    model: ModelState<K>,
    medium: FaultMedium,
}

impl<K: Key> IndexScenario<K> {
    /// Refuses each allocation in turn.
    pub(super) fn refuse_each(&self, progress: &mut AllocFaultRun) -> Result<(), Finding> {
        for make in [Refusal::Once, Refusal::From] {
            for number in 0..RESERVATIONS_MAX {
                progress.refusal = Some(make(number));
                if !self.refuse(make(number), progress)? {
                    break;
                }
            }
        }
        progress.refusal = None;
        Ok(())
    }

    /// Runs the scenario with one refusal. Returns `false` if the operations allocate less often.
    fn refuse(&self, refusal: Refusal, progress: &mut AllocFaultRun) -> Result<bool, Finding> {
        let medium = FaultMedium::blank(POOL_BYTES, RESERVE_BYTES);
        let mut run = Run {
            design: self.design,
            session: IndexSession::Closed,
            model: ModelState::NoPool,
            medium: medium.clone(),
        };
        for op in &self.setup {
            run.perform(op)?;
        }
        medium.inject(progress.defect);
        medium.refuse(Some(refusal));
        let mut full = false;
        for op in self.tested.iter().flat_map(Op::singly) {
            full |= !run.attempt(&op, refusal)?;
        }
        if medium.refused() == 0 {
            return Ok(false);
        }
        progress.refused += 1;
        progress.full += u64::from(full);
        run.verify("after a refusal")?;
        if let Refusal::From(_) = refusal {
            run.empty()?;
        }
        medium.refuse(None);
        run.session = IndexSession::Closed;
        run.session
            .apply(self.design, &(&medium).into(), &Op::Open)
            .map_err(|error| failed("it does not open", &error))?;
        run.verify("after a refusal and a recovery")?;
        run.use_again()?;
        Ok(true)
    }
}

impl<K: Key> Run<K> {
    /// Runs an operation that must succeed.
    fn perform(&mut self, op: &Op<K>) -> Result<(), Finding> {
        let expected = self.model.apply(op);
        match self.session.apply(self.design, &(&self.medium).into(), op) {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => Err(wrong_answer(op, expected, found)),
            Err(error) => Err(failed(&format!("{op} fails"), &error)),
        }
    }

    /// Runs an operation that may find the pool full. Returns `true` if it did not. If one
    /// allocation alone is refused, a repetition must succeed.
    fn attempt(&mut self, op: &Op<K>, refusal: Refusal) -> Result<bool, Finding> {
        let before = self.model.clone();
        let expected = self.model.apply(op);
        match self.session.apply(self.design, &(&self.medium).into(), op) {
            Ok(found) if found == expected => return Ok(true),
            Ok(found) => return Err(wrong_answer(op, expected, found)),
            Err(TreeError::Pool(PoolError::Full { .. })) => self.model = before,
            Err(error) => {
                let what = "an operation that finds no room fails in another way";
                return Err(Finding::new(what, format!("{op}: full"), error.to_string()));
            }
        }
        if matches!(op, Op::Remove(_) | Op::Get(_)) {
            let what = "an operation that needs no room finds none";
            return Err(Finding::new(what, op.to_string(), "full"));
        }
        self.verify("after a refusal")?;
        if matches!(refusal, Refusal::Once(_)) && !matches!(op, Op::Close) {
            self.perform(op)?;
        }
        Ok(false)
    }

    /// Compares with the model, checks, and looks for leaks.
    fn verify(&self, when: &str) -> Result<(), Finding> {
        let (found, expected) = match (&self.session, &self.model) {
            (IndexSession::Index(index), ModelState::Index(model)) => {
                let stats = check(&**index)?;
                Self::leaks(index.pool(), &stats)?;
                let model: Vec<_> =
                    model.iter().map(|(key, value)| (key.clone(), *value)).collect();
                (pairs(&**index), model)
            }
            (IndexSession::Pool(pool), ModelState::NoIndex) => {
                return leaks(pool, &TreeStats::default());
            }
            // The operation under test closed it, or a close found no space.
            (IndexSession::Closed, _) => return Ok(()),
            _ => return Err(Finding::new(format!("{when} it is in another state"), "", "")),
        };
        if found == expected {
            return Ok(());
        }
        let what = format!("{when} there are other pairs");
        Err(Finding::new(what, format!("{expected:?}"), format!("{found:?}")))
    }

    /// Checks that the reserved blocks, without those that wait for readers, are the reachable
    /// ones.
    fn leaks(pool: &Pool<Simulated>, stats: &TreeStats) -> Result<(), Finding> {
        let usage = pool.usage();
        if usage.waiting_blocks == 0 {
            return leaks(pool, stats);
        }
        let (expected, found) = (stats.blocks + 1, usage.blocks - usage.waiting_blocks);
        if found == expected {
            return Ok(());
        }
        let what = "what is allocated is not what is reachable";
        let waiting = usage.waiting_blocks;
        let found = format!("{found} blocks, and {waiting} that wait for readers");
        Err(Finding::new(what, format!("{expected} blocks"), found))
    }

    /// Removes every pair while allocations are refused.
    fn empty(&mut self) -> Result<(), Finding> {
        let (IndexSession::Index(_), ModelState::Index(model)) = (&self.session, &self.model)
        else {
            return Ok(());
        };
        let keys: Vec<_> = model.keys().cloned().collect();
        for key in keys {
            let op = Op::Remove(key);
            self.perform(&op)?;
        }
        self.verify("after removes without room")
    }

    /// Checks that the recovered index is usable.
    fn use_again(&mut self) -> Result<(), Finding> {
        if matches!(self.session, IndexSession::Closed) {
            self.perform(&Op::CreatePool)?;
        }
        if matches!(self.session, IndexSession::Pool(_)) {
            self.perform(&Op::Create)?;
        }
        let key = K::least();
        for op in [Op::Upsert(key.clone(), 1), Op::Update(key.clone(), 2), Op::Get(key)] {
            self.perform(&op)?;
        }
        self.verify("after a recovery and an update")
    }
}

fn wrong_answer<K: Key>(op: &Op<K>, expected: Option<u64>, found: Option<u64>) -> Finding {
    let what = "an operation gives a wrong answer while there is no room";
    Finding::new(what, format!("{op}: {expected:?}"), format!("{found:?}"))
}
