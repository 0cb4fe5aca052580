//! A scenario of several threads on an index: executes it in one schedule after the other, and
//! judges the results of the threads and the state after each crash.

mod interrupted;

use crate::config::{POOL_BYTES, PersistenceModel, RESERVE_BYTES};
use crate::explore::trace_text::{CrashImage, trace_text};
use crate::guard::{UnderConditions, guarded, panic_message};
use crate::medium::lazy_image::LazyImage;
use crate::medium::scheduled::ScheduledMedium;
use crate::medium::turns::{Abandoned, skip_check, unpinned};
use crate::model::history::StoreHistory;
use crate::outcome::Finding;
use crate::scenario::checks::{check, everything, failed, leaks, pairs};
use crate::scenario::index::session::{IndexSession, ModelState, Op, apply, open};
use crate::subject::design::{Index, ResultVisibility, SubjectDesign};
use crate::threads::batches;
use crate::threads::coroutines::{CoroutinePool, ExecutionStats, ThreadBody};
use crate::threads::crashes::{Crashes, FailedRecovery, Span};
use crate::threads::linearizability::{KeyHistory, KeyOperation, Moment, explains, moments};
use crate::threads::options::ScheduleOptions;
use crate::threads::scheduler::Scheduler;
use crate::threads::tally::Tally;
use crate::trace::call::{Answer, Call};
use crate::trace::mutation::Mutation;
use crate::trace::{Event, NEVER, Trace, TraceEntry, poison};
use bristlecone_pmem::medium::schedule::Conditions;
use bristlecone_pmem::{Medium, PoolError};
use bristlecone_trees::{Key, Order, TreeError};
use core::ops::ControlFlow;
use interrupted::{Interleaving, returns};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The number of executions between comparisons of memory with the recorded stores.
const COMPARE_EVERY: u64 = 64;
/// The number of executions of which one is continued by one thread.
const PLAY_ON_EVERY: u64 = 4;
/// The number of violating executions after which the scenario is left.
const VIOLATING_MAX: u64 = 20;

/// The free space of the pool when the threads start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Room {
    /// Enough for all operations.
    #[default]
    Enough,
    /// None, but the pool can grow.
    Grows,
    /// None, and the pool cannot grow. An operation that needs some reports it and has no effect.
    Full,
}

/// The operations of each thread, and those before them.
pub(crate) struct ThreadScenario<K: Key> {
    pub(crate) name: String,
    /// The operations that make the pool, which each execution opens.
    pub(crate) setup: Vec<Op<K>>,
    /// The operations between the open and the start of the threads.
    pub(crate) prelude: Vec<Op<K>>,
    /// The operations of each thread.
    pub(crate) threads: Vec<Vec<Op<K>>>,
    /// The keys of the operations of the threads, in order.
    pub(crate) touched: Vec<K::Owned>,
    pub(crate) room: Room,
    pub(crate) conditions: Conditions,
    pub(crate) design: SubjectDesign<K>,
}

/// The state that the threads of one execution share.
struct Execution<K: Key> {
    index: Box<Index<K>>,
    design: SubjectDesign<K>,
    threads: Vec<Vec<Op<K>>>,
    touched: Vec<K::Owned>,
    /// The pairs at the start.
    model: Arc<BTreeMap<K::Owned, u64>>,
    is_full: bool,
    /// Set to overwrite blocks that come free, or else to reuse them with what they held.
    poisons: bool,
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
    model: Arc<BTreeMap<K::Owned, u64>>,
    crashes: Vec<Crashes>,
    tally: Tally,
}

impl<K: Key> ThreadScenario<K> {
    /// Executes the scenario in the schedules of `options`, and explores their crashes in each of
    /// `modes`. Returns a tally for each mode. Without a mode it judges the results of the threads
    /// alone, and returns one tally. Ends after `violating` executions with a violation.
    pub(crate) fn run(
        &self,
        options: ScheduleOptions,
        violating: u64,
        modes: &[PersistenceModel],
    ) -> Vec<(Option<PersistenceModel>, Tally)> {
        let _conditions = UnderConditions::new(self.conditions);
        let mut outcome = Err(Finding::new("the scenario", "an execution", "none"));
        skip_check(options.mutation.and_then(Mutation::check));
        let failure = guarded(|| {
            outcome = Ok(self.run_schedules(options, violating, modes)?);
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
        violating: u64,
        modes: &[PersistenceModel],
    ) -> Result<Vec<(Option<PersistenceModel>, Tally)>, Finding> {
        let mut run = Run::new(self, modes, options)?;
        // The first schedule runs one thread after the other, and measures the number of accesses.
        let serial = run.execute(Scheduler::serial(self.threads.len()), false)?;
        let accesses = serial.stats.accesses;
        run.judge(serial, Interleaving::Serial);
        run.interrupt(options.schedules, accesses)?;
        run.stop(options.schedules)?;
        for seed in (0..options.schedules).map(|number| options.seed.wrapping_add(number)) {
            if run.tally.violating >= violating.min(VIOLATING_MAX) || run.tally.hangs {
                run.tally.incomplete = true;
                break;
            }
            let scheduler = Scheduler::random(seed, self.threads.len(), accesses);
            let result = run.execute(scheduler, !seed.is_multiple_of(2))?;
            run.judge(result, Interleaving::Seed(seed));
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
            touched: touched(&self.threads[..threads]),
            room: self.room,
            conditions: self.conditions,
            design: self.design,
        }
    }

    /// Returns the scenario in a pool without free space, which the prelude occupies.
    pub(crate) fn with_room(mut self, room: Room, name: &str) -> Self {
        self.prelude.push(Op::Occupy);
        self.name = format!("{}/{name}", K::NAME);
        Self { room, ..self }
    }

    /// Returns the scenario under other conditions, with `prefix` before the name of its case.
    pub(crate) fn under(self, conditions: Conditions, prefix: &str) -> Self {
        let case = self.name.split_once('/').map_or("", |(_, case)| case);
        Self { name: format!("{}/{prefix}-{case}", K::NAME), conditions, ..self }
    }

    fn op(&self, call: &Call) -> &Op<K> {
        &self.threads[call.thread][call.place]
    }

    /// Returns the key of a call and its effect on it; `None` without an effect.
    fn effect(&self, call: &Call) -> Option<(&K::Owned, KeyOperation)> {
        match self.op(call) {
            _ if call.answer == Answer::Refused => None,
            Op::Scan(_) => Some((&self.touched[call.part], KeyOperation::Get)),
            Op::MultiGet(keys) => Some((&keys[call.part], KeyOperation::Get)),
            Op::Commit(changes) => {
                let (key, value) = &changes[call.part];
                Some((key, value.map_or(KeyOperation::Remove, KeyOperation::Upsert)))
            }
            op => KeyOperation::of(op),
        }
    }
}

/// Returns the keys of all operations, in order.
pub(crate) fn touched<K: Key>(threads: &[Vec<Op<K>>]) -> Vec<K::Owned> {
    let keys = threads.iter().flatten().flat_map(|op| match op {
        Op::MultiGet(keys) => keys.clone(),
        Op::Commit(changes) => changes.iter().map(|(key, _)| key.clone()).collect(),
        op => op.key().into_iter().collect(),
    });
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

impl<'a, K: Key> Run<'a, K> {
    fn new(
        scenario: &'a ThreadScenario<K>,
        modes: &[PersistenceModel],
        ScheduleOptions { mutation, recoveries, .. }: ScheduleOptions,
    ) -> Result<Self, Finding> {
        let reserve = if scenario.room == Room::Grows { RESERVE_BYTES } else { POOL_BYTES };
        let medium = ScheduledMedium::new(POOL_BYTES, reserve);
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
        let (before, base, model) = (medium.words(), Arc::default(), Arc::new(model));
        let (crashes, tally) = (Vec::new(), Tally::default());
        let mut run = Self { scenario, medium, coroutines, base, before, model, crashes, tally };
        // As in each execution: a block that the prelude retires must not be reused in one and not
        // in the other.
        let pinned = bristlecone_pmem::sync::pin();
        drop(run.begin()?);
        drop(pinned);
        run.base = run.medium.words().into();
        run.medium.rewind();
        let crashes = |&mode| Crashes::new(mode, Arc::clone(&run.base), recoveries, defect);
        run.crashes = modes.iter().map(crashes).collect();
        Ok(run)
    }

    /// Opens the index and runs the prelude. Returns the index, and the number of blocks that the
    /// prelude has occupied.
    fn begin(&self) -> Result<(Box<Index<K>>, u64), Finding> {
        let mut session = if self.scenario.setup.is_empty() {
            IndexSession::Closed
        } else {
            let opened = open(self.scenario.design, (&self.medium).into(), |_| {});
            opened.map_err(|error| failed("the index does not open", &error))?
        };
        let blocks = |session: &IndexSession<K>| match session {
            IndexSession::Index(index) => index.pool().usage().blocks,
            IndexSession::Closed | IndexSession::Pool(_) => 0,
        };
        let mut occupied = 0;
        for op in &self.scenario.prelude {
            let before = blocks(&session);
            session
                .apply(self.scenario.design, &(&self.medium).into(), op)
                .map_err(|error| failed("the setup fails", &error))?;
            if matches!(op, Op::Occupy) {
                occupied += blocks(&session) - before;
            }
        }
        match session {
            IndexSession::Index(index) => Ok((index, occupied)),
            IndexSession::Closed | IndexSession::Pool(_) => {
                Err(Finding::new("the setup makes no index", "an index", "none"))
            }
        }
    }

    /// Executes one schedule, and judges the results of the threads.
    fn execute(
        &mut self,
        mut scheduler: Scheduler,
        poisons: bool,
    ) -> Result<ExecutionResult, Finding> {
        // Retired blocks must not become free at a moment that depends on other threads of the
        // machine. The threads under test free them.
        let pinned = bristlecone_pmem::sync::pin();
        let (index, occupied) = self.begin()?;
        self.medium.record();
        let execution = Arc::new(Execution::<K> {
            index,
            design: self.scenario.design,
            threads: self.scenario.threads.clone(),
            touched: self.scenario.touched.clone(),
            model: Arc::clone(&self.model),
            is_full: self.scenario.room == Room::Full,
            poisons,
            medium: self.medium.clone(),
            finding: Mutex::default(),
        });
        let bodies = (0..self.scenario.threads.len()).map(|thread| {
            let execution = Arc::clone(&execution);
            Box::new(move || execution.execute(thread)) as ThreadBody
        });
        let is_over = || execution.finding.lock().is_some();
        let retirements = || execution.index.pool().retirements();
        let stats = self.coroutines.run(bodies.collect(), &mut scheduler, is_over, retirements);
        let (entries, calls) = self.medium.recorded();
        let failed = execution.finding.lock().take();
        // The comparison comes before the check, which may mark a node at its first visit.
        let is_compared = self.tally.schedules.is_multiple_of(COMPARE_EVERY);
        let find_bypass = if is_compared { self.find_bypass(&entries) } else { None };
        let mut outcome = match failed {
            Some(finding) => Err(finding),
            None if stats.is_abandoned => {
                self.tally.hangs = true;
                let what = "threads wait for each other, or one never ends";
                Err(Finding::new(what, "an end", format!("over {} accesses", stats.accesses)))
            }
            None => self.seen(&*execution.index, &calls, occupied),
        };
        let plays_on = self.tally.schedules.is_multiple_of(PLAY_ON_EVERY);
        if plays_on && outcome.is_ok() && self.scenario.room == Room::Enough {
            outcome = self.play_on(execution);
        } else {
            drop(execution);
        }
        drop(pinned);
        self.medium.rewind();
        if is_compared && outcome.is_ok() {
            outcome = self.compare(find_bypass);
        }
        let preemptions = scheduler.preemptions;
        Ok(ExecutionResult { stats, preemptions, entries, calls, outcome })
    }

    /// Continues an execution by one thread: closes and opens the index, then removes all pairs,
    /// which merges what was split. Nothing may leak.
    fn play_on(&self, execution: Arc<Execution<K>>) -> Result<(), Finding> {
        let Some(Execution { index, .. }) = Arc::into_inner(execution) else { return Ok(()) };
        let design = self.scenario.design;
        let expected = pairs(&*index);
        let mut session = IndexSession::Index(index);
        let mut settled = |ops: &[Op<K>], expected: &[(K::Owned, u64)], when: &str| {
            for op in ops {
                let done = session.apply(design, &(&self.medium).into(), op);
                done.map_err(|error| failed(&format!("{op} fails later"), &error))?;
            }
            let IndexSession::Index(index) = &session else {
                return Err(Finding::new(format!("{when} there is no index"), "one", "none"));
            };
            index.pool().reclaim();
            let at =
                |finding: Finding| Finding { what: format!("{when} {}", finding.what), ..finding };
            leaks(index.pool(), &check(&**index).map_err(at)?).map_err(at)?;
            if pairs(&**index) == expected {
                return Ok(());
            }
            let what = format!("{when} there are other pairs");
            Err(Finding::new(what, format!("{} pairs", expected.len()), "others"))
        };
        settled(&[], &expected, "after the threads")?;
        if !design.form.spec.persistent {
            return Ok(());
        }
        settled(&[Op::Close, Op::Open], &expected, "after a close and an open")?;
        let removes: Vec<_> = expected.iter().map(|(key, _)| Op::Remove(key.clone())).collect();
        settled(&removes, &[], "after removes")
    }

    /// Checks that some order of the calls explains the answers and the pairs of the index, and
    /// that no block leaks.
    fn seen(&self, index: &Index<K>, calls: &[Call], occupied: u64) -> Result<(), Finding> {
        let stats = check(index)?;
        let usage = index.pool().usage();
        let (expected, found) = (stats.blocks + 1 + occupied, usage.blocks - usage.waiting_blocks);
        if found != expected {
            let what = "what is allocated is not what is reachable, without a crash";
            let found = format!("{found} blocks");
            return Err(Finding::new(what, format!("{expected} blocks"), found));
        }
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
            if let Some((key, key_operation)) = self.scenario.effect(call) {
                histories.entry(key).or_default().push((key_operation, *call));
            }
        }
        if !found.is_sorted_by(|(left, _), (right, _)| left < right) {
            let what = "a scan visits a key twice, or out of order";
            return Err(Finding::new(what, "each key once", format!("{} pairs", found.len())));
        }
        for (key, before, now) in changes(&self.model, found) {
            if !histories.contains_key(key) {
                let what = "a key that no thread touched has changed";
                return Err(Self::differs(what, key, before, now));
            }
        }
        let value_of = |key: &K::Owned| {
            let place = found.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
            Some(found[place].1)
        };
        let histories: Vec<_> = histories
            .into_iter()
            .map(|(key, history)| (key, history, self.model.get(key).copied(), value_of(key)))
            .collect();
        batches::check(&self.scenario.threads, calls, &self.model, &value_of)?;
        for (moment, what) in moments {
            for &(key, ref history, before, now) in &histories {
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
                Event::Store { word, new, .. } => expected[*word as usize] = *new,
                Event::Fill { first, new } => {
                    let first = *first as usize;
                    expected[first..first + new.len()].copy_from_slice(new);
                }
                Event::Poison { first, words } => {
                    for word in *first..*first + *words {
                        expected[word as usize] = poison(word);
                    }
                }
                Event::Grow { bytes } => expected.resize(*bytes as usize / 8, 0),
                _ => {} // stores nothing
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

    /// Counts an execution, and explores its crashes if its results are right. Does neither for one
    /// in which a thread is interrupted. Explores the moments alone of one in which it is stopped.
    fn judge(&mut self, result: ExecutionResult, order: Interleaving) {
        let ExecutionResult { preemptions, entries, calls, outcome, .. } = result;
        self.tally.schedules += u64::from(order.is_whole());
        let moments = returns(order, &entries, &calls);
        let explores = order.is_whole() || !moments.is_empty();
        let bytes = self.base.len() as u64 * 8;
        let trace = Trace { bytes, entries, begin: 0, defect: self.medium.defect() };
        let mut wrong = match outcome {
            Ok(()) => None,
            Err(finding) => Some((
                None,
                FailedRecovery { finding, crash: u32::MAX, until: u32::MAX, lost: Vec::new() },
            )),
        };
        let mut crashes = core::mem::take(&mut self.crashes);
        for crashes in &mut crashes {
            if wrong.is_some() || !explores {
                break;
            }
            let history = Arc::new(StoreHistory::compile(&trace, crashes.mode));
            let judge =
                |medium: &LazyImage, span: &dyn Fn() -> Span| self.recovered(medium, &calls, span);
            // On a disk the images of before an answer last until the next copy is waited for.
            let found = if order.is_whole() || crashes.mode == PersistenceModel::Disk {
                crashes.explore(&history, &calls, &judge)
            } else {
                crashes.explore_moments(&history, &calls, &moments, &judge)
            };
            wrong = found.map(|found| (Some(crashes.mode), found));
        }
        self.crashes = crashes;
        if let Some((mode, FailedRecovery { finding, crash, until, lost })) = wrong {
            let history = StoreHistory::compile(&trace, mode.unwrap_or(PersistenceModel::Px86));
            let name = |number: u32| {
                let call = &calls[number as usize];
                let answer = match call.returned {
                    NEVER => String::new(),
                    _ => format!("   (its answer: {:?})", call.answer),
                };
                match (self.scenario.op(call), self.scenario.effect(call)) {
                    (op @ (Op::Scan(_) | Op::MultiGet(_)), Some((key, _))) => {
                        format!("{op}, at {:?}{answer}", K::borrow(key))
                    }
                    (op, _) => format!("{op}{answer}"),
                }
            };
            let image = CrashImage { crash, until, lost: &lost };
            let text = trace_text(&trace, &history, &name, image);
            let text = if crash == u32::MAX { text.trim_end_matches("  crash\n") } else { &text };
            let head = order.describe(preemptions);
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
        medium.recovered();
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
        let used = self.exercise(&*index, &found)?;
        if !medium.has_repaired() {
            return Ok(());
        }
        let mut after: BTreeMap<_, _> = found.into_iter().collect();
        after.retain(|key, _| self.scenario.touched.binary_search(key).is_err());
        after.extend(used);
        // Another crash, in the life after a recovery that repaired something.
        drop(index);
        let session =
            open(self.scenario.design, medium.into(), |generation| medium.opened(generation));
        let when = "after a second life and a crash";
        match session {
            Ok(IndexSession::Index(index)) => {
                leaks(index.pool(), &check(&*index)?)?;
                let found: BTreeMap<_, _> = pairs(&*index).into_iter().collect();
                if found == after {
                    return Ok(());
                }
                let what = format!("{when} there are other pairs");
                Err(Finding::new(what, format!("{} pairs", after.len()), "others"))
            }
            Ok(_) => Err(Finding::new(format!("{when} there is no index"), "one", "none")),
            Err(error) => Err(failed(&format!("{when} it does not open"), &error)),
        }
    }

    /// Uses a recovered index at the keys of the threads. Returns the pairs that it holds then at
    /// these keys.
    fn exercise(
        &self,
        index: &Index<K>,
        found: &[(K::Owned, u64)],
    ) -> Result<BTreeMap<K::Owned, u64>, Finding> {
        let touched = &self.scenario.touched;
        let is_touched = |pair: &&(K::Owned, u64)| touched.binary_search(&pair.0).is_ok();
        let pairs = found.iter().filter(is_touched).cloned().collect();
        let mut model = ModelState::<K>::Index(pairs);
        let mut try_op = |op: Op<K>| {
            let expected = model.apply(&op);
            let answer = apply(index, &op)
                .map_err(|error| failed("after recovery an operation fails", &error))?;
            let what = "after recovery an operation gives a wrong answer";
            let wrong = || Finding::new(what, format!("{op}: {expected:?}"), format!("{answer:?}"));
            if answer == expected { Ok(()) } else { Err(wrong()) }
        };
        for (number, key) in touched.iter().enumerate() {
            let key = || key.clone();
            match number % 2 {
                0 => [Op::Get(key()), Op::Remove(key()), Op::Insert(key(), 9)],
                _ => [Op::Upsert(key(), 8), Op::Get(key()), Op::Remove(key())],
            }
            .into_iter()
            .try_for_each(&mut try_op)?;
        }
        check(index)?;
        match model {
            ModelState::Index(pairs) => Ok(pairs),
            ModelState::NoPool | ModelState::NoIndex => Ok(BTreeMap::new()),
        }
    }
}

/// Returns each key whose value in `found`, which is in order, differs from that in `model`, with
/// both values.
fn changes<'a, O: Ord>(
    model: &'a BTreeMap<O, u64>,
    found: &'a [(O, u64)],
) -> Vec<(&'a O, Option<u64>, Option<u64>)> {
    let mut changes = Vec::new();
    let mut found = found.iter().map(|(key, value)| (key, *value)).peekable();
    for (key, &before) in model {
        while let Some((other, now)) = found.next_if(|(other, _)| *other < key) {
            changes.push((other, None, Some(now)));
        }
        let now = found.next_if(|(other, _)| *other == key).map(|(_, now)| now);
        if now != Some(before) {
            changes.push((key, Some(before), now));
        }
    }
    changes.extend(found.map(|(key, now)| (key, None, Some(now))));
    changes
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
    /// Frees the blocks that no thread may hold any more, which the next operation may reuse.
    fn reclaim(&self) {
        let pool = self.index.pool();
        if pool.waiting_blocks() == 0 {
            return;
        }
        for (at, bytes) in pool.reclaim_until(unpinned(pool.retirements())) {
            if self.poisons {
                self.medium.poison(at.offset(), pool.reserved_bytes(bytes));
            }
        }
    }

    /// Performs an operation. Returns its answer for each of its keys.
    fn perform(&self, op: &Op<K>) -> Result<Vec<Answer>, Finding> {
        let fails = |error: TreeError| failed(&format!("{op} fails"), &error);
        match op {
            Op::Scan(order) => self.scan(*order),
            Op::MultiGet(keys) => {
                let keys: Vec<_> = keys.iter().map(K::borrow).collect();
                let mut values = vec![None; keys.len()];
                self.index.multi_get(&keys, &mut values).map_err(fails)?;
                Ok(values.into_iter().map(Answer::Value).collect())
            }
            Op::Commit(changes) => {
                let changes: Vec<_> =
                    changes.iter().map(|(key, value)| (K::borrow(key), *value)).collect();
                let formers = self.index.commit(&changes).map_err(fails)?;
                let answer = |former| match self.design.visibility {
                    ResultVisibility::Values => Answer::Value(former),
                    ResultVisibility::Presence => Answer::Silence,
                };
                Ok(formers.into_iter().map(answer).collect())
            }
            _ => match apply(&*self.index, op) {
                Ok(found) => Ok(vec![answer_of(self.design.visibility, op, found)]),
                Err(TreeError::Pool(PoolError::Full { .. }))
                    if self.is_full && !matches!(op, Op::Remove(_) | Op::Get(_)) =>
                {
                    Ok(vec![Answer::Refused])
                }
                Err(error) => Err(fails(error)),
            },
        }
    }

    /// Scans all pairs. They must be in order, each key once, and all those that no thread touches
    /// must be there. Returns the values of the others.
    fn scan(&self, order: Order) -> Result<Vec<Answer>, Finding> {
        let mut found: Vec<(K::Owned, u64)> = Vec::new();
        let mut is_ordered = true;
        let outcome = self.index.scan(everything(), order, &mut |key, value| {
            is_ordered &= found.last().is_none_or(|(last, _)| {
                let compared = K::compare(K::borrow(last), key);
                if order == Order::Ascending { compared.is_lt() } else { compared.is_gt() }
            });
            found.push((K::to_owned(key), value));
            ControlFlow::Continue(())
        });
        outcome.map_err(|error| failed("a scan fails", &error))?;
        if !is_ordered {
            let what = "a scan beside writers visits a key twice, or out of order";
            return Err(Finding::new(what, "each key once", format!("{} pairs", found.len())));
        }
        let mut answers = vec![Answer::Value(None); self.touched.len()];
        let mut untouched = 0;
        for (key, value) in &found {
            match self.touched.binary_search(key) {
                Ok(at) => answers[at] = Answer::Value(Some(*value)),
                Err(_) if self.model.get(key) == Some(value) => untouched += 1,
                Err(_) => {
                    let what = "a scan beside writers visits a pair that was never there";
                    let found = format!("{:?} = {value}", K::borrow(key));
                    return Err(Finding::new(what, "pairs that there are", found));
                }
            }
        }
        let is_untouched = |key: &&K::Owned| self.touched.binary_search(key).is_err();
        let expected = self.model.keys().filter(is_untouched).count();
        if untouched == expected {
            return Ok(answers);
        }
        let what = "a scan beside writers misses a pair that is there throughout";
        Err(Finding::new(what, format!("{expected} such pairs"), untouched.to_string()))
    }

    /// Runs the operations of one thread. A thread with maintenance steps is registered as a
    /// maintenance worker until its end.
    fn execute(&self, thread: usize) {
        let part = || {
            let is_maintainer =
                self.threads[thread].iter().any(|op| matches!(op, Op::RunMaintenance));
            let _maintainer = is_maintainer.then(|| self.index.maintainer());
            for (place, op) in self.threads[thread].iter().enumerate() {
                let parts = match op {
                    Op::Scan(_) => self.touched.len(),
                    Op::MultiGet(keys) => keys.len(),
                    Op::Commit(changes) => changes.len(),
                    _ => 1,
                };
                let number = self.medium.invoke(place, parts);
                unpinned(self.index.pool().retirements());
                let answers = self.perform(op)?;
                if !self.design.settles {
                    self.index.pool().medium().settle_reads();
                }
                self.medium.acknowledge(number, &answers);
                self.reclaim();
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
