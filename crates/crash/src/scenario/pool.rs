//! Scenarios of a pool without an index: creation, roots, growth, logs, close and open.
//!
//! Each root has one block of [`BLOCK_WORDS`] words, whose contents belong to the state.

use crate::config::{POOL_BYTES, RESERVE_BYTES};
use crate::medium::recorder::Recorder;
use crate::outcome::Finding;
use crate::scenario::Scenario;
use crate::scenario::checks::saved;
use crate::scenario::probe::{Mismatch, Probe};
use bristlecone_pmem::Simulated;
use bristlecone_pmem::medium::schedule::Conditions;
use bristlecone_pmem::pool::{HEADER_BYTES, Opened, POOL_BYTES_MIN};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The words of a root's block: four lines.
const BLOCK_WORDS: usize = 32;
const BLOCK_BYTES: u64 = BLOCK_WORDS as u64 * 8;
/// The words that a transaction changes, in three lines of the block. They fill two lines of a log.
const CHANGED: [usize; 4] = [0, 9, 10, 25];
const KIND: u64 = 7;
/// The difference between the two values of a word that a transaction changes twice.
const PASSING: u64 = 1 << 20;

/// An operation on a pool.
#[derive(Clone, Copy, Debug)]
enum Op {
    Create,
    /// A new root: a reserved block that is filled with a value.
    Publish(&'static str, u64),
    /// The reservation and the release of a block.
    ReserveAndRelease,
    /// Reservations until the pool has grown, and the release of their blocks.
    GrowByReserving,
    Grow(u64),
    /// A transaction of the redo log on words of a root's block.
    Redo(&'static str, u64),
    /// A transaction of the undo-redo log on words of a root's block.
    Undo(&'static str, u64),
    /// A transaction of the undo-redo log that is abandoned before its commit.
    Abandon(&'static str, u64),
    /// As `Redo`, but each word changes twice: first to another value.
    RedoTwice(&'static str, u64),
    /// As `Undo`, but each word changes twice: first to another value.
    UndoTwice(&'static str, u64),
    /// As `Abandon`, but each word changes twice.
    AbandonTwice(&'static str, u64),
    Close,
    Die,
    Open,
    /// Another thread goes on: its fences make nothing durable that this one has flushed.
    HandOver,
}

/// The state of the pool: its length, 0 without a pool, and the blocks of its roots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    bytes: u64,
    roots: BTreeMap<String, Vec<u64>>,
}

impl State {
    fn apply(&mut self, op: Op) {
        match op {
            Op::Create => self.bytes = POOL_BYTES_MIN,
            Op::Publish(name, value) => {
                self.roots.insert(name.into(), vec![value; BLOCK_WORDS]);
            }
            Op::GrowByReserving => self.bytes += HEADER_BYTES,
            Op::Grow(bytes) => self.bytes = bytes,
            Op::Redo(name, value)
            | Op::Undo(name, value)
            | Op::RedoTwice(name, value)
            | Op::UndoTwice(name, value) => {
                let words = self.roots.get_mut(name).expect("the root was published");
                for word in CHANGED {
                    words[word] = value;
                }
            }
            Op::ReserveAndRelease
            | Op::Abandon(..)
            | Op::AbandonTwice(..)
            | Op::Close
            | Op::Die
            | Op::Open
            | Op::HandOver => {}
        }
    }
}

struct PoolScenario {
    name: &'static str,
    setup: Vec<Op>,
    tested: Vec<Op>,
    states: Vec<State>,
    relies_on_line_order: bool,
    conditions: Conditions,
}

/// Returns all scenarios of the pool.
pub(crate) fn scenarios() -> Vec<Arc<dyn Scenario>> {
    use Op::{Abandon, AbandonTwice, Close, Create, Die, Grow, GrowByReserving, Open};
    use Op::{Publish, Redo, RedoTwice, Undo, UndoTwice};
    let larger = POOL_BYTES_MIN + HEADER_BYTES;
    let used = [Create, Publish("a", 5), Publish("b", 6)];
    let then = |last: &[Op]| [&used[..], last].concat();
    let cases: Vec<(&'static str, Vec<Op>, Vec<Op>)> = vec![
        ("create", vec![], vec![Create]),
        ("create-publish", vec![], vec![Create, Publish("a", 5)]),
        ("publish", used.to_vec(), vec![Publish("c", 7)]),
        ("reserve-release", used.to_vec(), vec![Op::ReserveAndRelease, Publish("c", 7)]),
        ("grow", used.to_vec(), vec![Grow(larger)]),
        ("grow-publish", used.to_vec(), vec![Grow(larger), Publish("c", 7)]),
        ("grow-by-reserving", used.to_vec(), vec![GrowByReserving, Publish("c", 7)]),
        // Once the two copies of the superblock differ, it matters which one is written next.
        ("grow-close", used.to_vec(), vec![Grow(larger), Close]),
        ("grow-die-open-close", then(&[Grow(larger), Die]), vec![Open, Close]),
        ("close", used.to_vec(), vec![Close]),
        ("open-closed", then(&[Close]), vec![Open]),
        ("open-killed", then(&[Die]), vec![Open]),
        ("open-close-open", then(&[Close]), vec![Open, Publish("c", 7), Close, Open]),
        ("log-redo", used.to_vec(), vec![Redo("a", 8)]),
        ("log-redo-twice", used.to_vec(), vec![Redo("a", 8), Redo("a", 9)]),
        ("log-redo-reopened", then(&[Redo("b", 3), Die, Open]), vec![Redo("a", 8)]),
        ("log-undo", used.to_vec(), vec![Undo("a", 8)]),
        ("log-undo-twice", used.to_vec(), vec![Undo("a", 8), Undo("a", 9)]),
        ("log-undo-abandoned", used.to_vec(), vec![Abandon("a", 8), Undo("a", 9)]),
        ("log-undo-reopened", then(&[Undo("b", 3), Die, Open]), vec![Undo("a", 8)]),
        ("log-redo-repeated", used.to_vec(), vec![RedoTwice("a", 8)]),
        ("log-undo-repeated", used.to_vec(), vec![UndoTwice("a", 8)]),
        ("log-undo-repeated-abandoned", used.to_vec(), vec![AbandonTwice("a", 8), Undo("b", 9)]),
    ];
    // In an aged pool the transactions of the setup pass the number from which on an open begins
    // again; the later opens and transactions get small numbers, some of them twice.
    let passed = then(&[Undo("b", 1), Undo("b", 2), Redo("a", 3), Undo("b", 4), Undo("b", 5)]);
    let again = vec![Open, Redo("a", 8), Die, Open, Redo("b", 9)];
    let both = vec![Open, Undo("a", 8), Die, Open, Undo("b", 9)];
    let elsewhere = vec![Open, Op::HandOver, Undo("a", 8)];
    let aged: Vec<(&'static str, Vec<Op>, Vec<Op>)> = vec![
        ("aged-open", [&passed[..], &[Die]].concat(), vec![Open]),
        ("aged-redo", [&passed[..], &[Die]].concat(), again),
        ("aged-undo", [&passed[..], &[Die]].concat(), both),
        ("aged-undo-elsewhere", [&passed[..], &[Die]].concat(), elsewhere),
        ("aged-close", used.to_vec(), vec![Redo("a", 8), Close, Open, Redo("b", 9)]),
    ];
    let young = cases.into_iter().map(|case| (case, Conditions::USUAL));
    let aged = aged.into_iter().map(|case| (case, Conditions { aged: true, ..Conditions::USUAL }));
    let scenario = |((name, setup, tested), conditions)| PoolScenario {
        conditions,
        ..PoolScenario::new(name, setup, tested)
    };
    let all = young.chain(aged);
    all.map(|case| Arc::new(scenario(case)) as Arc<dyn Scenario>).collect()
}

impl PoolScenario {
    fn new(name: &'static str, setup: Vec<Op>, tested: Vec<Op>) -> Self {
        let mut state = State::default();
        for &op in &setup {
            state.apply(op);
        }
        let mut states = vec![state.clone()];
        for &op in &tested {
            state.apply(op);
            states.push(state.clone());
        }
        let is_logged = |op: &Op| {
            use Op::{Abandon, AbandonTwice, Redo, RedoTwice, Undo, UndoTwice};
            matches!(
                op,
                Redo(..)
                    | RedoTwice(..)
                    | Undo(..)
                    | UndoTwice(..)
                    | Abandon(..)
                    | AbandonTwice(..)
            )
        };
        let relies_on_line_order = setup.iter().chain(&tested).any(is_logged);
        let conditions = Conditions::USUAL;
        Self { name, setup, tested, states, relies_on_line_order, conditions }
    }

    /// Returns the states that equal `seen`, one bit each.
    fn those(&self, seen: &State) -> u32 {
        let states = self.states.iter().enumerate();
        states.map(|(number, state)| u32::from(state == seen) << number).sum()
    }

    fn describe(&self, number: usize) -> String {
        match number.checked_sub(1) {
            None => format!("{:?}", brief(&self.states[0])),
            Some(done) => {
                format!("{:?}, after {:?}", brief(&self.states[number]), self.tested[done])
            }
        }
    }
}

impl Scenario for PoolScenario {
    fn name(&self) -> &str {
        self.name
    }

    fn bytes(&self) -> u64 {
        POOL_BYTES_MIN
    }

    fn conditions(&self) -> Conditions {
        self.conditions
    }

    fn relies_on_line_order(&self) -> bool {
        self.relies_on_line_order
    }

    fn record(&self, recorder: &Recorder) -> Result<(), Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        let (mut pool, medium) = (None, Simulated::from(recorder));
        let mut step = |op: Op| {
            apply(&mut pool, &medium, op).map_err(|error| {
                Finding::new(format!("{op:?} fails"), "no error", error.to_string())
            })
        };
        self.setup.iter().try_for_each(|&op| step(op))?;
        recorder.begin();
        for (number, &op) in (0..).zip(&self.tested) {
            recorder.invoke(number);
            step(op)?;
            medium.settle_reads();
            recorder.acknowledge(number);
        }
        Ok(())
    }

    fn reopen(&self, recorder: &Recorder) -> Result<u32, Finding> {
        recorder.begin();
        recorder.invoke(0);
        let medium = Simulated::from(recorder);
        let pool = open(medium.clone()).map_err(|error| failed("it does not open", &error))?;
        medium.settle_reads();
        recorder.acknowledge(0);
        let equals = self.those(&look(pool.as_ref())?);
        recorder.invoke(1);
        let closed = pool.map_or(Ok(()), Pool::close);
        closed.map_err(|error| failed("it does not close", &error))?;
        medium.settle_reads();
        recorder.acknowledge(1);
        Ok(equals)
    }

    fn judge(&self, probe: &Probe) -> Result<(), Finding> {
        let recover = || -> Result<_, Finding> {
            let pool =
                open((&probe.medium).into()).map_err(|error| failed("it does not open", &error))?;
            probe.medium.recovered();
            let seen = look(pool.as_ref())?;
            Ok((pool, seen))
        };
        let (pool, first) = recover()?;
        let wrong = |wrong: Mismatch, seen| {
            let found = format!("{:?}", brief(seen));
            Finding::new(wrong.what, wrong.expected(|state| self.describe(state)), found)
                .at(wrong.crash)
        };
        probe.verdict(self.those(&first)).map_err(|how| wrong(how, &first))?;
        drop(pool);
        let (pool, second) = recover()?;
        if second != first {
            let what = "recovering twice is not the same as once";
            return Err(Finding::new(what, format!("{first:?}"), format!("{second:?}")));
        }
        pool.map_or(Ok(()), |pool| use_further(pool, &(&probe.medium).into(), second))
    }

    fn operation(&self, number: u32) -> String {
        format!("{:?}", self.tested[number as usize])
    }
}

/// Returns the state with one word of each line, for a message.
fn brief(state: &State) -> (u64, BTreeMap<&str, Vec<u64>>) {
    let words = |words: &[u64]| CHANGED.iter().map(|&word| words[word]).collect();
    let roots = state.roots.iter().map(|(name, block)| (name.as_str(), words(block)));
    (state.bytes, roots.collect())
}

fn failed(what: &str, error: &PoolError) -> Finding {
    Finding::new(what, "no error", error.to_string())
}

/// Opens the pool on `medium`, marks the blocks of its roots, and finishes recovery. Returns `None`
/// without a pool.
fn open(medium: Simulated) -> Result<Option<Pool<Simulated>>, PoolError> {
    let (pool, opened) = match Pool::open(medium) {
        Ok(pool) => pool,
        Err(PoolError::NotAPool { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    if opened == Opened::Crashed {
        for root in pool.roots()? {
            pool.mark(root.block, BLOCK_BYTES)?;
        }
        pool.finish_recovery();
    }
    Ok(Some(pool))
}

/// Returns the state of a pool, after checks of it.
fn look(pool: Option<&Pool<Simulated>>) -> Result<State, Finding> {
    let Some(pool) = pool else { return Ok(State::default()) };
    saved(pool)?;
    let what = "a root cannot be read";
    let damaged = |corrupt: Corrupt| failed(what, &corrupt.into());
    let mut roots = BTreeMap::new();
    for root in pool.roots().map_err(damaged)? {
        let words = pool.words(root.block, BLOCK_WORDS).map_err(damaged)?;
        let words = words.iter().map(|word| pool.medium().load(word)).collect();
        if root.kind != KIND || roots.insert(root.name, words).is_some() {
            return Err(Finding::new(what, "a root of its kind, once", root.kind.to_string()));
        }
    }
    let usage = pool.usage();
    let expected = roots.len() as u64 + 1;
    if usage.blocks != expected {
        let what = "what is allocated is not what is reachable";
        return Err(Finding::new(what, format!("{expected} blocks"), usage.blocks.to_string()));
    }
    Ok(State { bytes: usage.pool_bytes, roots })
}

/// Publishes, changes and closes a recovered pool, and opens it once more.
fn use_further(pool: Pool<Simulated>, medium: &Simulated, mut state: State) -> Result<(), Finding> {
    let mut pool = Some(pool);
    let larger = Op::Grow(state.bytes + HEADER_BYTES);
    let ops =
        [Op::Publish("y", 1), Op::Redo("y", 2), larger, Op::Undo("y", 3), Op::Close, Op::Open];
    for op in ops {
        state.apply(op);
        apply(&mut pool, medium, op)
            .map_err(|error| failed(&format!("then {op:?} fails"), &error))?;
    }
    let found = look(pool.as_ref())?;
    if found == state {
        return Ok(());
    }
    let what = "after recovery the pool loses or invents something";
    Err(Finding::new(what, format!("{:?}", brief(&state)), format!("{:?}", brief(&found))))
}

fn apply(slot: &mut Option<Pool<Simulated>>, medium: &Simulated, op: Op) -> Result<(), PoolError> {
    match op {
        Op::Create => *slot = Some(Pool::create(medium.clone())?),
        Op::Open => *slot = open(medium.clone())?,
        Op::Die => *slot = None,
        Op::HandOver => medium.hand_over(),
        Op::Close => {
            if let Some(pool) = slot.take() {
                pool.close()?;
            }
        }
        _ => {
            if let Some(pool) = slot {
                change(pool, op)?;
            }
        }
    }
    Ok(())
}

fn change(pool: &Pool<Simulated>, op: Op) -> Result<(), PoolError> {
    match op {
        Op::Publish(name, value) => {
            let block = pool.reserve(BLOCK_BYTES)?;
            publish(pool, name, block, value)?;
        }
        Op::ReserveAndRelease => {
            let block = pool.reserve(BLOCK_BYTES)?;
            pool.medium().fill(pool.words(block, 1)?, &[1]);
            pool.release(block, BLOCK_BYTES);
        }
        Op::GrowByReserving => {
            let before = pool.usage().pool_bytes;
            pool.limit(before + HEADER_BYTES);
            let mut reserved = Vec::new();
            while pool.usage().pool_bytes == before {
                reserved.push(pool.reserve(BLOCK_BYTES)?);
            }
            for block in reserved {
                pool.release(block, BLOCK_BYTES);
            }
        }
        Op::Grow(bytes) => pool.grow(bytes)?,
        Op::Redo(name, value) => {
            let words = block_of(pool, name)?;
            let changes = CHANGED.map(|word| (&words[word], value));
            pool.redo_log().commit(&changes, pool.medium().fence()).finish();
        }
        Op::RedoTwice(name, value) => {
            let words = block_of(pool, name)?;
            let changes = [value ^ PASSING, value];
            let changes = changes.map(|value| CHANGED.map(|word| (&words[word], value)));
            pool.redo_log().commit(&changes.concat(), pool.medium().fence()).finish();
        }
        Op::Undo(name, value)
        | Op::Abandon(name, value)
        | Op::UndoTwice(name, value)
        | Op::AbandonTwice(name, value) => {
            let words = block_of(pool, name)?;
            let mut log = pool.undo_log();
            if let Op::UndoTwice(..) | Op::AbandonTwice(..) = op {
                for word in CHANGED {
                    log.write_undo_redo(&words[word], value ^ PASSING);
                }
            }
            let [first @ .., last] = CHANGED;
            for word in first {
                log.write_undo_redo(&words[word], value);
            }
            if let Op::Undo(..) | Op::UndoTwice(..) = op {
                log.commit(&words[last], value).finish();
            }
        }
        Op::Create | Op::Close | Op::Die | Op::Open | Op::HandOver => {}
    }
    Ok(())
}

fn publish(pool: &Pool<Simulated>, name: &str, block: PmPtr, value: u64) -> Result<(), PoolError> {
    let content = [value; BLOCK_WORDS].map(u64::to_le_bytes).concat();
    pool.medium().fill(pool.words(block, BLOCK_WORDS)?, &content);
    pool.create_root(name, KIND, block)
}

fn block_of<'p>(pool: &'p Pool<Simulated>, name: &str) -> Result<&'p [PmWord], PoolError> {
    let root = pool.root(name)?;
    let block = root.map_or(PmPtr::NULL, |root| root.block);
    Ok(pool.words(block, BLOCK_WORDS)?)
}

const _: () = assert!(POOL_BYTES <= RESERVE_BYTES && 2 * POOL_BYTES_MIN <= RESERVE_BYTES);
