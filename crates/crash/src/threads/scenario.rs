//! A scenario of several threads on an index: executes it in one schedule after the other, and
//! judges the results of the threads and the state after each crash.

use crate::config::POOL_BYTES;
use crate::config::PersistenceModel;
use crate::explore::trace_text::trace_text;
use crate::guard::{guarded, panic_message};
use crate::medium::lazy_image::LazyImage;
use crate::medium::scheduled::ScheduledMedium;
use crate::medium::turns::{Abandoned, skip_check};
use crate::model::history::StoreHistory;
use crate::outcome::Finding;
use crate::scenario::checks::{check, failed, leaks, pairs};
use crate::scenario::index::session::{IndexSession, ModelState, Op, apply, open};
use crate::subject::design::{Index, ResultVisibility, SubjectDesign};
use crate::threads::coroutines::{CoroutinePool, ExecutionStats, ThreadBody};
use crate::threads::crashes::{Crashes, FailedRecovery, Span};
use crate::threads::linearizability::{KeyHistory, KeyOperation, Moment, explains, moments};
use crate::threads::options::ScheduleOptions;
use crate::threads::scheduler::Scheduler;
use crate::threads::tally::Tally;
use crate::trace::call::{Answer, Call};
use crate::trace::mutation::Mutation;
use crate::trace::{NEVER, Trace, TraceEntry};
use bristlecone_trees::Key;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The number of executions between comparisons of memory with the recorded stores.
const COMPARE_EVERY: u64 = 64;
/// The number of violating executions after which the scenario is left.
const VIOLATING_MAX: u64 = 20;

/// The operations of each thread, and those before them.
pub(crate) struct ThreadScenario<K: Key> {
    pub(crate) name: String,
    /// The operations that make the pool, which each execution opens.
    pub(crate) setup: Vec<Op<K>>,
    /// The operations between the open and the start of the threads.
    pub(crate) prelude: Vec<Op<K>>,
    /// The operations of each thread.
    pub(crate) threads: Vec<Vec<Op<K>>>,
    pub(crate) design: SubjectDesign<K>,
}

/// The state that the threads of one execution share.
struct Execution<K: Key> {
    index: Box<Index<K>>,
    visibility: ResultVisibility,
    threads: Vec<Vec<Op<K>>>,
    medium: ScheduledMedium,
    finding: Mutex<Option<Finding>>,
}

/// The result of one execution.
struct ExecutionResult {
    stats: ExecutionStats,
    preemptions: u32,
    entries: Vec<TraceEntry>,
    calls: Vec<Call>,
    outcome: Result<(), Finding>,
}

/// A scenario under way.
struct Run<'a, K: Key> {
    scenario: &'a ThreadScenario<K>,
    medium: ScheduledMedium,
    coroutines: CoroutinePool,
    /// The words when the threads start.
    base: Arc<[u64]>,
    /// The words before the pool is opened.
    before: Vec<u64>,
    /// The pairs of the index when the threads start.
    model: BTreeMap<K::Owned, u64>,
    crashes: Vec<Crashes>,
    tally: Tally,
}

impl<K: Key> ThreadScenario<K> {
    /// Executes the scenario in the schedules of `options`, and explores their crashes in each of
    /// `modes`. Returns a tally for each mode. Without a mode it judges the results of the threads
    /// alone, and returns one tally.
    pub(crate) fn run(
        &self,
        options: ScheduleOptions,
        modes: &[PersistenceModel],
    ) -> Vec<(Option<PersistenceModel>, Tally)> {
        let mut outcome = Err(Finding::new("the scenario", "an execution", "none"));
        skip_check(options.mutation.and_then(Mutation::check));
        let failure = guarded(|| {
            outcome = Ok(self.run_schedules(options, modes)?);
            Ok(())
        });
        skip_check(None);
        match (outcome, failure) {
            (Ok(tallies), Ok(())) => tallies,
            (_, failure) => {
                let finding = failure.err().unwrap_or_else(|| Finding::new("no execution", "", ""));
                let mut tally = Tally::default();
                tally.add(finding, String::new(), (0, 0));
                vec![(modes.first().copied(), tally)]
            }
        }
    }

    fn run_schedules(
        &self,
        options: ScheduleOptions,
        modes: &[PersistenceModel],
    ) -> Result<Vec<(Option<PersistenceModel>, Tally)>, Finding> {
        let mut run = Run::new(self, modes, options.mutation)?;
        // The first schedule runs one thread after the other, and measures the number of accesses.
        let serial = run.execute(Scheduler::serial(self.threads.len()))?;
        let accesses = serial.stats.accesses;
        run.judge(serial, None);
        for seed in (0..options.schedules).map(|number| options.seed.wrapping_add(number)) {
            if run.tally.violating >= VIOLATING_MAX {
                run.tally.incomplete = true;
                break;
            }
            let result = run.execute(Scheduler::random(seed, self.threads.len(), accesses))?;
            run.judge(result, Some(seed));
        }
        let Run { crashes, tally, .. } = run;
        if crashes.is_empty() {
            return Ok(vec![(None, tally)]);
        }
        Ok(crashes.into_iter().map(|crashes| (Some(crashes.mode), tally.with(&crashes))).collect())
    }

    /// Returns the scenario with the first `threads` threads.
    pub(crate) fn of(&self, threads: usize) -> Self {
        Self {
            name: format!("{}@{threads}", self.name),
            setup: self.setup.clone(),
            prelude: self.prelude.clone(),
            threads: self.threads[..threads].to_vec(),
            design: self.design,
        }
    }

    fn op(&self, call: &Call) -> &Op<K> {
        &self.threads[call.thread][call.place]
    }
}

impl<'a, K: Key> Run<'a, K> {
    fn new(
        scenario: &'a ThreadScenario<K>,
        modes: &[PersistenceModel],
        mutation: Option<Mutation>,
    ) -> Result<Self, Finding> {
        let medium = ScheduledMedium::new(POOL_BYTES, POOL_BYTES);
        medium.set_mutation(mutation);
        let defect = mutation.and_then(Mutation::defect);
        let mut model = ModelState::<K>::NoPool;
        let mut session = IndexSession::<K>::Closed;
        for op in &scenario.setup {
            let _ = model.apply(op);
            session
                .apply(scenario.design, &(&medium).into(), op)
                .map_err(|error| failed("the setup fails", &error))?;
        }
        drop(session);
        medium.settle();
        for op in &scenario.prelude {
            let _ = model.apply(op);
        }
        let ModelState::Index(model) = model else {
            return Err(Finding::new("the setup makes no index", "an index", "none"));
        };
        let coroutines = CoroutinePool::new(scenario.threads.len());
        let (before, base) = (medium.words(), Arc::default());
        let (crashes, tally) = (Vec::new(), Tally::default());
        let mut run = Self { scenario, medium, coroutines, base, before, model, crashes, tally };
        // As in each execution: a block that the prelude retires must not be reused in one and not
        // in the other.
        let pinned = bristlecone_pmem::sync::pin();
        drop(run.begin()?);
        drop(pinned);
        run.base = run.medium.words().into();
        run.medium.rewind();
        let crashes = modes.iter().map(|&mode| Crashes::new(mode, Arc::clone(&run.base), defect));
        run.crashes = crashes.collect();
        Ok(run)
    }

    /// Opens the index and runs the prelude.
    fn begin(&self) -> Result<Box<Index<K>>, Finding> {
        let mut session = if self.scenario.setup.is_empty() {
            IndexSession::Closed
        } else {
            let opened = open(self.scenario.design, (&self.medium).into(), |_| {});
            opened.map_err(|error| failed("the index does not open", &error))?
        };
        for op in &self.scenario.prelude {
            session
                .apply(self.scenario.design, &(&self.medium).into(), op)
                .map_err(|error| failed("the setup fails", &error))?;
        }
        match session {
            IndexSession::Index(index) => Ok(index),
            IndexSession::Closed | IndexSession::Pool(_) => {
                Err(Finding::new("the setup makes no index", "an index", "none"))
            }
        }
    }

    /// Executes one schedule, and judges the results of the threads.
    fn execute(&mut self, mut scheduler: Scheduler) -> Result<ExecutionResult, Finding> {
        // Retired blocks must not become free at a moment that depends on other threads.
        let pinned = bristlecone_pmem::sync::pin();
        let index = self.begin()?;
        self.medium.record();
        let finding = Mutex::default();
        let threads = self.scenario.threads.clone();
        let (visibility, medium) = (self.scenario.design.visibility, self.medium.clone());
        let execution = Arc::new(Execution::<K> { index, visibility, threads, medium, finding });
        let bodies = (0..self.scenario.threads.len()).map(|thread| {
            let execution = Arc::clone(&execution);
            Box::new(move || execution.execute(thread)) as ThreadBody
        });
        let stats = self
            .coroutines
            .run(bodies.collect(), &mut scheduler, || execution.finding.lock().is_some());
        let (entries, calls) = self.medium.recorded();
        let failed = execution.finding.lock().take();
        // The comparison comes before the check, which may mark a node at its first visit.
        let is_compared = self.tally.schedules.is_multiple_of(COMPARE_EVERY);
        let find_bypass = if is_compared { self.find_bypass(&entries) } else { None };
        let mut outcome = match failed {
            Some(finding) => Err(finding),
            None if stats.is_abandoned => {
                let what = "threads wait for each other, or one never ends";
                Err(Finding::new(what, "an end", format!("over {} accesses", stats.accesses)))
            }
            None => self.seen(&*execution.index, &calls),
        };
        drop(execution);
        drop(pinned);
        self.medium.rewind();
        if is_compared && outcome.is_ok() {
            outcome = self.compare(find_bypass);
        }
        let preemptions = scheduler.preemptions;
        Ok(ExecutionResult { stats, preemptions, entries, calls, outcome })
    }

    /// Checks that some order of the calls explains the answers and the pairs of the index.
    fn seen(&self, index: &Index<K>, calls: &[Call]) -> Result<(), Finding> {
        check(index)?;
        let end = Moment { returned: NEVER, invoked: NEVER };
        let wrong = "what the threads were told has no order that explains it";
        self.explain(&pairs(index), calls, &mut core::iter::once((end, wrong)))
    }

    /// Checks that some order of the calls explains the pairs at each moment.
    fn explain(
        &self,
        found: &[(K::Owned, u64)],
        calls: &[Call],
        moments: &mut dyn Iterator<Item = (Moment, &'static str)>,
    ) -> Result<(), Finding> {
        let mut histories: BTreeMap<&K::Owned, KeyHistory> = BTreeMap::new();
        for call in calls {
            if let Some((key, key_operation)) = key_operation(self.scenario.op(call)) {
                histories.entry(key).or_default().push((key_operation, *call));
            }
        }
        let found: BTreeMap<_, _> = found.iter().map(|(key, value)| (key, *value)).collect();
        for key in self.model.keys().chain(found.keys().copied()) {
            let (before, now) = (self.model.get(key).copied(), found.get(key).copied());
            if before != now && !histories.contains_key(key) {
                let what = "a key that nobody touched has changed";
                return Err(Self::differs(what, key, before, now));
            }
        }
        for (moment, what) in moments {
            for (&key, history) in &histories {
                let (before, now) = (self.model.get(key).copied(), found.get(key).copied());
                if !explains(history, before, now, moment) {
                    // A moment after an acknowledgement begins directly after it.
                    let crash = moment
                        .returned
                        .checked_sub(1)
                        .filter(|_| moment.returned != moment.invoked);
                    return Err(Self::differs(what, key, before, now).at(crash));
                }
            }
        }
        Ok(())
    }

    fn differs(what: &str, key: &K::Owned, before: Option<u64>, now: Option<u64>) -> Finding {
        let key = K::borrow(key);
        Finding::new(what, format!("{key:?} began as {before:?}"), format!("{key:?} = {now:?}"))
    }

    /// Returns the offset of a word that was stored without the medium.
    fn find_bypass(&self, entries: &[TraceEntry]) -> Option<u64> {
        let mut expected = self.base.to_vec();
        for TraceEntry { event, .. } in entries {
            match event {
                crate::trace::Event::Store { word, new, .. } => expected[*word as usize] = *new,
                crate::trace::Event::Fill { first, new } => {
                    let first = *first as usize;
                    expected[first..first + new.len()].copy_from_slice(new);
                }
                _ => {}
            }
        }
        // A volatile index creates its pool in each execution, with another random number.
        self.medium.differs(&expected).filter(|_| !self.scenario.setup.is_empty())
    }

    /// Checks that every store went through the medium, and so was undone.
    fn compare(&self, find_bypass: Option<u64>) -> Result<(), Finding> {
        match find_bypass.or_else(|| self.medium.differs(&self.before)) {
            None => Ok(()),
            Some(at) => {
                let what = "a store went around the medium, or the setup is not the same twice";
                let found = format!("the word at {at:#x} differs");
                Err(Finding::new(what, "every store recorded", found))
            }
        }
    }

    /// Counts an execution, and explores its crashes if its results are right.
    fn judge(&mut self, result: ExecutionResult, seed: Option<u64>) {
        let ExecutionResult { preemptions, entries, calls, outcome, .. } = result;
        self.tally.schedules += 1;
        let bytes = self.base.len() as u64 * 8;
        let trace = Trace { bytes, entries, begin: 0 };
        let mut wrong = match outcome {
            Ok(()) => None,
            Err(finding) => {
                Some((None, FailedRecovery { finding, crash: u32::MAX, lost: Vec::new() }))
            }
        };
        let mut crashes = core::mem::take(&mut self.crashes);
        for crashes in &mut crashes {
            if wrong.is_some() {
                break;
            }
            let history = Arc::new(StoreHistory::compile(&trace, crashes.mode));
            let judge =
                |medium: &LazyImage, span: &dyn Fn() -> Span| self.recovered(medium, &calls, span);
            let found = crashes.explore(&history, &calls, &judge);
            wrong = found.map(|found| (Some(crashes.mode), found));
        }
        self.crashes = crashes;
        if let Some((mode, FailedRecovery { finding, crash, lost })) = wrong {
            let history = StoreHistory::compile(&trace, mode.unwrap_or(PersistenceModel::Px86));
            let name = |number: u32| {
                let call = &calls[number as usize];
                let answer = match call.returned {
                    NEVER => String::new(),
                    _ => format!("   (its answer: {:?})", call.answer),
                };
                format!("{}{answer}", self.scenario.op(call))
            };
            let text = trace_text(&trace, &history, &name, crash, &lost);
            let text = if crash == u32::MAX { text.trim_end_matches("  crash\n") } else { &text };
            let head = match seed {
                Some(seed) => format!("  schedule of seed {seed:#x}, {preemptions} preemptions\n"),
                None => "  one thread after the other\n".into(),
            };
            let words: u32 = lost.iter().map(|&(_, words)| words.count_ones()).sum();
            self.tally.add(finding, format!("{head}{text}"), (preemptions * 64 + words, crash));
        }
    }

    /// Recovers from a crash and checks the recovered state.
    fn recovered(
        &self,
        medium: &LazyImage,
        calls: &[Call],
        span: &dyn Fn() -> Span,
    ) -> Result<(), Finding> {
        let session = open(self.scenario.design, medium.into(), |nonce| medium.opened(nonce));
        let session = session
            .map_err(|error| Finding::new("it does not open", "an index", error.to_string()))?;
        let IndexSession::Index(index) = session else {
            return Err(Finding::new("it does not open", "an index", "none"));
        };
        let stats = check(&*index)?;
        leaks(index.pool(), &stats)?;
        let found = pairs(&*index);
        if stats.keys != found.len() as u64 {
            let what = "the check and the scan count different keys";
            return Err(Finding::new(what, stats.keys.to_string(), found.len().to_string()));
        }
        let Span { since, until } = span();
        let mut moments = moments(calls, since, until).map(|moment| {
            let what = if moment.returned == moment.invoked {
                "what is recovered is no state that there was"
            } else {
                "what was acknowledged, or read, is lost"
            };
            (moment, what)
        });
        self.explain(&found, calls, &mut moments)?;
        self.exercise(&*index, &found)
    }

    /// Uses a recovered index at the keys of the threads.
    fn exercise(&self, index: &Index<K>, found: &[(K::Owned, u64)]) -> Result<(), Finding> {
        let mut model = ModelState::<K>::Index(found.iter().cloned().collect());
        let mut try_op = |op: Op<K>| {
            let expected = model.apply(&op);
            let answer = apply(index, &op)
                .map_err(|error| failed("after recovery an operation fails", &error))?;
            let what = "after recovery an operation gives a wrong answer";
            let wrong = || Finding::new(what, format!("{op}: {expected:?}"), format!("{answer:?}"));
            if answer == expected { Ok(()) } else { Err(wrong()) }
        };
        let keys: std::collections::BTreeSet<_> = self
            .scenario
            .threads
            .iter()
            .flatten()
            .filter_map(|op| key_operation(op))
            .map(|(key, _)| key)
            .collect();
        for (number, &key) in keys.iter().enumerate() {
            let key = || (*key).clone();
            match number % 2 {
                0 => [Op::Get(key()), Op::Remove(key()), Op::Insert(key(), 9)],
                _ => [Op::Upsert(key(), 8), Op::Get(key()), Op::Remove(key())],
            }
            .into_iter()
            .try_for_each(&mut try_op)?;
        }
        check(index).map(|_| ())
    }
}

/// Returns the key of an operation and its effect on it.
fn key_operation<K: Key>(op: &Op<K>) -> Option<(&K::Owned, KeyOperation)> {
    match op {
        Op::Insert(key, value) => Some((key, KeyOperation::Insert(*value))),
        Op::Update(key, value) | Op::Updates(key, value, _) => {
            Some((key, KeyOperation::Update(*value)))
        }
        Op::Upsert(key, value) => Some((key, KeyOperation::Upsert(*value))),
        Op::Remove(key) => Some((key, KeyOperation::Remove)),
        Op::Get(key) => Some((key, KeyOperation::Get)),
        Op::WithMaintainer(op) => key_operation(op),
        Op::CreatePool
        | Op::Create
        | Op::Close
        | Op::Crash
        | Op::Open
        | Op::Reclaim
        | Op::RunMaintenance => None,
    }
}

/// Returns the answer of an operation that found `found`.
fn answer_of<K: Key>(visibility: ResultVisibility, op: &Op<K>, found: Option<u64>) -> Answer {
    match (visibility, op) {
        (ResultVisibility::Values, _) | (ResultVisibility::Presence, Op::Get(_)) => {
            Answer::Value(found)
        }
        (ResultVisibility::Presence, Op::Upsert(..)) => Answer::Silence,
        (ResultVisibility::Presence, _) => Answer::Presence(found.is_some()),
    }
}

impl<K: Key> Execution<K> {
    /// Runs the operations of one thread. A thread with maintenance steps is registered as a
    /// maintenance worker until its end.
    fn execute(&self, thread: usize) {
        let part = || {
            let is_maintainer =
                self.threads[thread].iter().any(|op| matches!(op, Op::RunMaintenance));
            let _maintainer = is_maintainer.then(|| self.index.maintainer());
            for (place, op) in self.threads[thread].iter().enumerate() {
                let number = self.medium.invoke(place);
                match apply(&*self.index, op) {
                    Ok(found) => {
                        self.medium.acknowledge(number, answer_of(self.visibility, op, found));
                    }
                    Err(error) => return Err(failed(&format!("{op} fails"), &error)),
                }
            }
            Ok(())
        };
        let outcome = match catch_unwind(AssertUnwindSafe(part)) {
            Ok(outcome) => outcome,
            Err(payload) if payload.is::<Abandoned>() => Ok(()),
            Err(_) => Err(Finding::new("panic", "no panic", panic_message())),
        };
        if let Err(finding) = outcome {
            self.finding.lock().get_or_insert(finding);
        }
    }
}
