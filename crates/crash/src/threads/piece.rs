//! A scenario of several threads on an index: plays it in one schedule after the other, and judges
//! what the threads saw and what each crash leaves.

use super::crashes::{Crashes, Span, Wrong};
use super::director::Director;
use super::history::{Act, Answer, Line, Moment, explains, moments};
use super::medium::{Call, Stage};
use super::stage::{self, Abandoned, Part, Played, Troupe};
use super::{Drawn, Tally};
use crate::guard::{guarded, panic_message};
use crate::kind::{Index, Kind, Tells};
use crate::program::{Mode, NEVER, Program};
use crate::refiner::Refiner;
use crate::report::trace;
use crate::scenario::Finding;
use crate::tape::{Entry, Sabotage, Tape};
use crate::tree::{Life, Op, State, apply, check, failed, leaks, open, pairs};
use bristlecone_trees::Key;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Plays after which memory is compared with what the threads said that they stored.
const COMPARE_EVERY: u64 = 64;
/// Violating plays after which the piece is left: it has failed.
const VIOLATING_MAX: u64 = 20;

/// What each player does, and what was there before.
pub(crate) struct Piece<K: Key> {
    pub(crate) name: String,
    /// Makes a pool that is opened anew for each play.
    pub(crate) setup: Vec<Op<K>>,
    /// Done after it was opened, before the players begin.
    pub(crate) prelude: Vec<Op<K>>,
    /// Operations of each player.
    pub(crate) parts: Vec<Vec<Op<K>>>,
    pub(crate) kind: Kind<K>,
}

/// What the players of one play share.
struct Scene<K: Key> {
    index: Box<Index<K>>,
    tells: Tells,
    parts: Vec<Vec<Op<K>>>,
    stage: Stage,
    finding: Mutex<Option<Finding>>,
}

/// What came of one play.
struct Take {
    played: Played,
    preemptions: u32,
    entries: Vec<Entry>,
    calls: Vec<Call>,
    outcome: Result<(), Finding>,
}

/// A piece while it is played.
struct Run<'a, K: Key> {
    piece: &'a Piece<K>,
    stage: Stage,
    troupe: Troupe,
    /// Words when the players begin.
    base: Arc<[u64]>,
    /// Words before the pool is opened.
    before: Vec<u64>,
    /// What the index holds when the players begin.
    model: BTreeMap<K::Owned, u64>,
    crashes: Vec<Crashes>,
    tally: Tally,
}

impl<K: Key> Piece<K> {
    /// Plays it in the schedules of `drawn` and explores their crashes in each of `modes`; gives what
    /// came of it, a mode each. With no mode nothing but what the threads saw is judged, and one
    /// tally is given.
    pub(crate) fn perform(&self, drawn: Drawn, modes: &[Mode]) -> Vec<(Option<Mode>, Tally)> {
        let mut outcome = Err(Finding::new("the piece", "a play", "none"));
        stage::overlook(drawn.sabotage.and_then(Sabotage::check));
        let failure = guarded(|| {
            outcome = Ok(self.perform_in(drawn, modes)?);
            Ok(())
        });
        stage::overlook(None);
        match (outcome, failure) {
            (Ok(tallies), Ok(())) => tallies,
            (_, failure) => {
                let finding = failure.err().unwrap_or_else(|| Finding::new("no play", "", ""));
                let mut tally = Tally::default();
                tally.add(finding, String::new(), (0, 0));
                vec![(modes.first().copied(), tally)]
            }
        }
    }

    fn perform_in(
        &self,
        drawn: Drawn,
        modes: &[Mode],
    ) -> Result<Vec<(Option<Mode>, Tally)>, Finding> {
        let mut run = Run::new(self, modes, drawn.sabotage)?;
        // The first schedule, of one player after the other, tells how many accesses there are.
        let serial = run.play(Director::serial(self.parts.len()))?;
        let accesses = serial.played.accesses;
        run.judge(serial, None);
        for seed in (0..drawn.schedules).map(|number| drawn.seed.wrapping_add(number)) {
            if run.tally.violating >= VIOLATING_MAX {
                run.tally.incomplete = true;
                break;
            }
            let take = run.play(Director::drawn(seed, self.parts.len(), accesses))?;
            run.judge(take, Some(seed));
        }
        let Run { crashes, tally, .. } = run;
        if crashes.is_empty() {
            return Ok(vec![(None, tally)]);
        }
        Ok(crashes.into_iter().map(|crashes| (Some(crashes.mode), tally.with(&crashes))).collect())
    }

    /// The same for the first `players` players.
    pub(crate) fn of(&self, players: usize) -> Self {
        Self {
            name: format!("{}@{players}", self.name),
            setup: self.setup.clone(),
            prelude: self.prelude.clone(),
            parts: self.parts[..players].to_vec(),
            kind: self.kind,
        }
    }

    fn op(&self, call: &Call) -> &Op<K> {
        &self.parts[call.player][call.place]
    }
}

impl<'a, K: Key> Run<'a, K> {
    fn new(
        piece: &'a Piece<K>,
        modes: &[Mode],
        sabotage: Option<Sabotage>,
    ) -> Result<Self, Finding> {
        let stage = Stage::new(crate::run::POOL_BYTES);
        stage.seed(sabotage);
        let defect = sabotage.and_then(Sabotage::defect);
        let mut model = State::<K>::NoPool;
        let mut life = Life::<K>::Closed;
        for op in &piece.setup {
            let _ = model.apply(op);
            life.apply(piece.kind, &(&stage).into(), op)
                .map_err(|error| failed("the setup fails", &error))?;
        }
        drop(life);
        stage.settle();
        for op in &piece.prelude {
            let _ = model.apply(op);
        }
        let State::Index(model) = model else {
            return Err(Finding::new("the setup makes no index", "an index", "none"));
        };
        let troupe = Troupe::new(piece.parts.len());
        let (before, base) = (stage.words(), Arc::default());
        let (crashes, tally) = (Vec::new(), Tally::default());
        let mut run = Self { piece, stage, troupe, base, before, model, crashes, tally };
        // As in each play: what the prelude retires must not be used again in one and not in the other.
        let pinned = bristlecone_pmem::sync::pin();
        drop(run.begin()?);
        drop(pinned);
        run.base = run.stage.words().into();
        run.stage.rewind();
        let crashes = modes.iter().map(|&mode| Crashes::new(mode, Arc::clone(&run.base), defect));
        run.crashes = crashes.collect();
        Ok(run)
    }

    /// Opens the index and does what comes before the players.
    fn begin(&self) -> Result<Box<Index<K>>, Finding> {
        let mut life = if self.piece.setup.is_empty() {
            Life::Closed
        } else {
            let opened = open(self.piece.kind, (&self.stage).into(), |_| {});
            opened.map_err(|error| failed("the index does not open", &error))?
        };
        for op in &self.piece.prelude {
            life.apply(self.piece.kind, &(&self.stage).into(), op)
                .map_err(|error| failed("the setup fails", &error))?;
        }
        match life {
            Life::Index(index) => Ok(index),
            Life::Closed | Life::Pool(_) => {
                Err(Finding::new("the setup makes no index", "an index", "none"))
            }
        }
    }

    /// Plays once, and judges what the players saw.
    fn play(&mut self, mut director: Director) -> Result<Take, Finding> {
        // What is retired must not come free at a moment of chance.
        let pinned = bristlecone_pmem::sync::pin();
        let index = self.begin()?;
        self.stage.record();
        let finding = Mutex::default();
        let parts = self.piece.parts.clone();
        let (tells, stage) = (self.piece.kind.tells, self.stage.clone());
        let scene = Arc::new(Scene::<K> { index, tells, parts, stage, finding });
        let parts = (0..self.piece.parts.len()).map(|player| {
            let scene = Arc::clone(&scene);
            Box::new(move || scene.play(player)) as Part
        });
        let played =
            self.troupe.play(parts.collect(), &mut director, || scene.finding.lock().is_some());
        let (entries, calls) = self.stage.recorded();
        let failed = scene.finding.lock().take();
        // Before anybody looks: who comes to a node first may mark it as seen.
        let is_compared = self.tally.schedules.is_multiple_of(COMPARE_EVERY);
        let around = if is_compared { self.around(&entries) } else { None };
        let mut outcome = match failed {
            Some(finding) => Err(finding),
            None if played.is_abandoned => {
                let what = "threads wait for each other, or one never ends";
                Err(Finding::new(what, "an end", format!("over {} accesses", played.accesses)))
            }
            None => self.seen(&*scene.index, &calls),
        };
        drop(scene);
        drop(pinned);
        self.stage.rewind();
        if is_compared && outcome.is_ok() {
            outcome = self.compare(around);
        }
        let preemptions = director.preemptions;
        Ok(Take { played, preemptions, entries, calls, outcome })
    }

    /// Whether what the index holds now and what the players were told has an explanation.
    fn seen(&self, index: &Index<K>, calls: &[Call]) -> Result<(), Finding> {
        check(index)?;
        let end = Moment { returned: NEVER, invoked: NEVER };
        let wrong = "what the threads were told has no order that explains it";
        self.explain(&pairs(index), calls, &mut core::iter::once((end, wrong)))
    }

    /// Whether the pairs found have an explanation at each moment.
    fn explain(
        &self,
        found: &[(K::Owned, u64)],
        calls: &[Call],
        moments: &mut dyn Iterator<Item = (Moment, &'static str)>,
    ) -> Result<(), Finding> {
        let mut lines: BTreeMap<&K::Owned, Line> = BTreeMap::new();
        for call in calls {
            if let Some((key, act)) = act(self.piece.op(call)) {
                lines.entry(key).or_default().push((act, *call));
            }
        }
        let found: BTreeMap<_, _> = found.iter().map(|(key, value)| (key, *value)).collect();
        for key in self.model.keys().chain(found.keys().copied()) {
            let (before, now) = (self.model.get(key).copied(), found.get(key).copied());
            if before != now && !lines.contains_key(key) {
                let what = "a key that nobody touched has changed";
                return Err(Self::differs(what, key, before, now));
            }
        }
        for (moment, what) in moments {
            for (&key, line) in &lines {
                let (before, now) = (self.model.get(key).copied(), found.get(key).copied());
                if !explains(line, before, now, moment) {
                    return Err(Self::differs(what, key, before, now));
                }
            }
        }
        Ok(())
    }

    fn differs(what: &str, key: &K::Owned, before: Option<u64>, now: Option<u64>) -> Finding {
        let key = K::borrow(key);
        Finding::new(what, format!("{key:?} began as {before:?}"), format!("{key:?} = {now:?}"))
    }

    /// Where memory is not what was stored through the medium, on what was there before.
    fn around(&self, entries: &[Entry]) -> Option<u64> {
        let mut expected = self.base.to_vec();
        for Entry { event, .. } in entries {
            match event {
                crate::tape::Event::Store { word, new, .. } => expected[*word as usize] = *new,
                crate::tape::Event::Fill { first, new } => {
                    let first = *first as usize;
                    expected[first..first + new.len()].copy_from_slice(new);
                }
                _ => {}
            }
        }
        // A volatile index makes its pool anew, which draws a number.
        self.stage.differs(&expected).filter(|_| !self.piece.setup.is_empty())
    }

    /// Whether all that was stored went through the medium, and so could be undone.
    fn compare(&self, around: Option<u64>) -> Result<(), Finding> {
        match around.or_else(|| self.stage.differs(&self.before)) {
            None => Ok(()),
            Some(at) => {
                let what = "a store went around the medium, or the setup is not the same twice";
                let found = format!("the word at {at:#x} differs");
                Err(Finding::new(what, "every store recorded", found))
            }
        }
    }

    /// Counts a play, and explores its crashes if it went well.
    fn judge(&mut self, take: Take, seed: Option<u64>) {
        let Take { preemptions, entries, calls, outcome, .. } = take;
        self.tally.schedules += 1;
        let bytes = self.base.len() as u64 * 8;
        let tape = Tape { bytes, entries, begin: 0 };
        let mut wrong = match outcome {
            Ok(()) => None,
            Err(finding) => Some((None, Wrong { finding, crash: u32::MAX, lost: Vec::new() })),
        };
        let mut crashes = core::mem::take(&mut self.crashes);
        for crashes in &mut crashes {
            if wrong.is_some() {
                break;
            }
            let program = Arc::new(Program::compile(&tape, crashes.mode));
            let judge =
                |medium: &Refiner, span: &dyn Fn() -> Span| self.recovered(medium, &calls, span);
            let found = crashes.explore(&program, &calls, &judge);
            wrong = found.map(|found| (Some(crashes.mode), found));
        }
        self.crashes = crashes;
        if let Some((mode, Wrong { finding, crash, lost })) = wrong {
            let program = Program::compile(&tape, mode.unwrap_or(Mode::Px86));
            let name = |number: u32| {
                let call = &calls[number as usize];
                let answer = match call.returned {
                    NEVER => String::new(),
                    _ => format!("   (its answer: {:?})", call.answer),
                };
                format!("{}{answer}", self.piece.op(call))
            };
            let text = trace(&tape, &program, &name, crash, &lost);
            let text = if crash == u32::MAX { text.trim_end_matches("  crash\n") } else { &text };
            let head = match seed {
                Some(seed) => format!("  schedule of seed {seed:#x}, {preemptions} preemptions\n"),
                None => "  one thread after the other\n".into(),
            };
            let words: u32 = lost.iter().map(|&(_, words)| words.count_ones()).sum();
            self.tally.add(finding, format!("{head}{text}"), (preemptions * 64 + words, crash));
        }
    }

    /// Recovers what a crash left and says whether it is as it must be.
    fn recovered(
        &self,
        medium: &Refiner,
        calls: &[Call],
        span: &dyn Fn() -> Span,
    ) -> Result<(), Finding> {
        let life = open(self.piece.kind, medium.into(), |generation| medium.opened(generation));
        let life =
            life.map_err(|error| Finding::new("it does not open", "an index", error.to_string()))?;
        let Life::Index(index) = life else {
            return Err(Finding::new("it does not open", "an index", "none"));
        };
        let census = check(&*index)?;
        leaks(index.pool(), &census)?;
        let found = pairs(&*index);
        if census.keys != found.len() as u64 {
            let what = "the check and the scan count different keys";
            return Err(Finding::new(what, census.keys.to_string(), found.len().to_string()));
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
        self.used(&*index, &found)
    }

    /// Uses a recovered index at the keys of the players.
    fn used(&self, index: &Index<K>, found: &[(K::Owned, u64)]) -> Result<(), Finding> {
        let mut model = State::<K>::Index(found.iter().cloned().collect());
        let mut try_op = |op: Op<K>| {
            let expected = model.apply(&op);
            let answer = apply(index, &op)
                .map_err(|error| failed("after recovery an operation fails", &error))?;
            let what = "after recovery an operation gives a wrong answer";
            let wrong = || Finding::new(what, format!("{op}: {expected:?}"), format!("{answer:?}"));
            if answer == expected { Ok(()) } else { Err(wrong()) }
        };
        let keys: std::collections::BTreeSet<_> = self
            .piece
            .parts
            .iter()
            .flatten()
            .filter_map(|op| act(op))
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

/// The key of an operation and what it does to it.
fn act<K: Key>(op: &Op<K>) -> Option<(&K::Owned, Act)> {
    match op {
        Op::Insert(key, value) => Some((key, Act::Insert(*value))),
        Op::Update(key, value) | Op::Updates(key, value, _) => Some((key, Act::Update(*value))),
        Op::Upsert(key, value) => Some((key, Act::Upsert(*value))),
        Op::Remove(key) => Some((key, Act::Remove)),
        Op::Get(key) => Some((key, Act::Get)),
        Op::Kept(op) => act(op),
        Op::Found | Op::Create | Op::Close | Op::Die | Op::Open | Op::Reclaim | Op::Tend => None,
    }
}

/// What an operation that answered `found` has told.
fn told<K: Key>(tells: Tells, op: &Op<K>, found: Option<u64>) -> Answer {
    match (tells, op) {
        (Tells::Values, _) | (Tells::Presence, Op::Get(_)) => Answer::Value(found),
        (Tells::Presence, Op::Upsert(..)) => Answer::Silence,
        (Tells::Presence, _) => Answer::Presence(found.is_some()),
    }
}

impl<K: Key> Scene<K> {
    /// Plays the part of one player, who is a keeper until the end of it if there is tending in it.
    fn play(&self, player: usize) {
        let part = || {
            let tends = self.parts[player].iter().any(|op| matches!(op, Op::Tend));
            let _keeper = tends.then(|| self.index.maintainer());
            for (place, op) in self.parts[player].iter().enumerate() {
                let number = self.stage.invoke(place);
                match apply(&*self.index, op) {
                    Ok(found) => self.stage.acknowledge(number, told(self.tells, op, found)),
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
