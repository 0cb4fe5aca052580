//! The scripts that are traced: one for all designs, one for the pool.
//!
//! 1. A script is the same each time: the keys are fixed, and one thread runs it.
//! 2. The thread is pinned from beginning to end, and frees retired blocks itself. So the blocks
//!    that an operation gets do not depend on other threads of the process.

use crate::config::{POOL, STORE};
use crate::subject::store::StoreDesign;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Medium, PmPtr, PmWord, Pool, PoolError};
use bristlecone_registry::{DesignEntry, Forms, default_size, is_built};
use bristlecone_trees::erased::BoxedIndex;
use bristlecone_trees::names::UnknownDesign;
use bristlecone_trees::{ErasedDesign, PmIndex, TreeError, TreeStats};
use core::fmt;
use std::sync::Arc;

/// The name of the index among the roots of its pool.
const ROOT: &str = "script";

/// An access that only the traced process makes. The comparison must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// A store of another value that bypasses the medium.
    Store,
    /// A store of the present value that bypasses the medium.
    Same,
    /// A byte written to the file by the system.
    Write,
    /// One flush more than recorded.
    Flush,
    /// One fence more than recorded.
    Fence,
}

impl Injection {
    /// All injections, in the order of their list.
    pub const ALL: [Self; 5] = [Self::Store, Self::Same, Self::Write, Self::Flush, Self::Fence];

    /// Returns the name that commands use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Same => "same",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Fence => "fence",
        }
    }

    /// Returns the injection called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|injection| injection.name() == name)
    }
}

/// The process and the medium on which a script runs.
pub trait ScriptHost {
    /// The medium of the pool.
    type Medium: Medium;

    /// Returns the forms of a design on that medium.
    fn forms(row: &'static DesignEntry) -> &'static Forms<Self::Medium>;

    /// Returns the medium as the last use left it.
    ///
    /// # Errors
    /// The system refuses it.
    fn open(&mut self) -> Result<Self::Medium, MediumError>;

    /// Called before each operation, with the number of the operation.
    fn before(&mut self, _number: u32) {}

    /// Called after each operation on an open index, whose statistics `stats` returns.
    ///
    /// # Errors
    /// As `stats`.
    fn after(
        &mut self,
        _census: &mut dyn FnMut() -> Result<TreeStats, TreeError>,
    ) -> Result<(), TreeError> {
        Ok(())
    }

    /// Returns the access to make beside the script.
    fn injection(&self) -> Option<Injection> {
        None
    }

    /// Writes a byte at `offset` of the file through the system.
    ///
    /// # Errors
    /// The system refuses it.
    fn write(&mut self, _offset: u64, _byte: u8) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs the script of a subject, a design at its default node size.
///
/// # Errors
/// No subject has this name, or an operation fails.
pub(super) fn run_script<S: ScriptHost>(
    name: &str,
    host: &mut S,
) -> Result<Result<(), TreeError>, UnknownDesign> {
    match name {
        POOL => Ok(run_pool_script(host).map_err(TreeError::from)),
        STORE if const { is_built(STORE) } => {
            Ok(run_index_script(host, ErasedDesign::of::<StoreDesign<false>>()))
        }
        _ => match S::forms(default_size(name)?).numbers {
            Some(design) => Ok(run_index_script(host, design)),
            None => Err(UnknownDesign::new(name, None)),
        },
    }
}

/// Returns the operations of a script as texts.
pub(super) fn describe(name: &str) -> Vec<String> {
    if name == POOL {
        POOL_SCRIPT.iter().map(|op| format!("{op:?}")).collect()
    } else {
        tree_script().iter().map(ToString::to_string).collect()
    }
}

/// An operation on an index.
#[derive(Clone, Copy, Debug)]
enum Op {
    Create,
    Insert(u64, u64),
    Update(u64, u64),
    Upsert(u64, u64),
    Remove(u64),
    Get(u64),
    Close,
    Die,
    Open,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => f.write_str("create the index"),
            Self::Insert(key, value) => write!(f, "insert {key} = {value}"),
            Self::Update(key, value) => write!(f, "update {key} = {value}"),
            Self::Upsert(key, value) => write!(f, "upsert {key} = {value}"),
            Self::Remove(key) => write!(f, "remove {key}"),
            Self::Get(key) => write!(f, "get {key}"),
            Self::Close => f.write_str("close"),
            Self::Die => f.write_str("die"),
            Self::Open => f.write_str("open"),
        }
    }
}

/// The number of keys in no order.
const MIXED: u64 = 96;
/// The number of keys in descending order, above the others.
const DESCENDING: u64 = 24;

/// Returns key `number` of those in no order: 37 generates all residues of the prime above.
fn mixed(number: u64) -> u64 {
    (number + 1) * 37 % (MIXED + 1) * 10
}

/// Returns every operation, on present and absent keys; leaves and roots that split, merge and
/// collapse; a recovery, and an open after a close; blocks that are reused.
fn tree_script() -> Vec<Op> {
    use Op::{Close, Create, Die, Get, Insert, Open, Remove, Update, Upsert};
    let all = || (1..=MIXED).map(|number| number * 10);
    let above = || (1..=DESCENDING).rev().map(|number| 5000 + number);
    let mut script = vec![Create, Remove(7)];
    script.extend((0..MIXED).map(mixed).map(|key| Insert(key, key * 3)));
    script.extend([Insert(0, 0), Insert(u64::MAX, u64::MAX), Insert(20, 1), Get(20)]);
    script.extend([Update(20, 8), Update(21, 8), Upsert(30, 9), Upsert(31, 256), Remove(32)]);
    script.extend([Die, Open]);
    script.extend(above().map(|key| Insert(key, key << 20)));
    script.extend(all().take(MIXED as usize * 3 / 4).map(Remove));
    script.extend([Close, Open]);
    script.extend((1..=8).map(|number| Insert(number * 10 + 1, number)));
    script.extend(above().rev().map(Remove));
    script.extend(all().map(Remove));
    script.extend([Insert(5, 5), Die, Open, Insert(6, 6), Close]);
    script
}

/// The number of the operation of the injection, in the middle of the inserts.
const INJECTED_AFTER: u32 = 50;

/// Makes the injected access, at words at the end of the pool that no block uses.
fn inject<S: ScriptHost>(host: &mut S, pool: &Pool<S::Medium>) -> Result<(), PoolError> {
    let Some(injection) = host.injection() else { return Ok(()) };
    let at = pool.medium().len() - 8;
    let word = &pool.words(PmPtr::new(at), 1)?[0];
    let ordering = core::sync::atomic::Ordering::Release;
    match injection {
        Injection::Store => word.cell().store(1, ordering),
        Injection::Same => word.cell().store(0, ordering),
        Injection::Write => host
            .write(at, 1)
            .map_err(|source| MediumError::System { action: "write around the medium", source })?,
        Injection::Flush => pool.medium().flush(core::slice::from_ref(word)),
        Injection::Fence => {
            let _ = pool.medium().fence();
        }
    }
    Ok(())
}

fn run_index_script<S: ScriptHost>(
    host: &mut S,
    design: ErasedDesign<S::Medium, u64>,
) -> Result<(), TreeError> {
    {
        let _pinned = pin(); // 2
        let mut session: Option<BoxedIndex<S::Medium, u64>> = None;
        for (number, op) in (0..).zip(tree_script()) {
            host.before(number);
            match op {
                Op::Create | Op::Open => {
                    let medium = host.open().map_err(PoolError::from)?;
                    let (pool, opened) = Pool::open(medium)?;
                    let pool = Arc::new(pool);
                    session = Some(match op {
                        Op::Create => (design.create)(pool, ROOT)?,
                        _ => (design.open)(pool, ROOT, opened)?,
                    });
                }
                Op::Die => session = None,
                Op::Close => {
                    let pool = session.take().map(PmIndex::close).transpose()?;
                    if let Some(pool) = pool.and_then(Arc::into_inner) {
                        pool.close()?;
                    }
                }
                _ => {
                    let Some(index) = &session else { continue };
                    apply(&**index, op)?;
                    index.pool().reclaim(); // 2
                    if number == INJECTED_AFTER {
                        inject(host, index.pool())?;
                    }
                }
            }
            if let Some(index) = &session {
                host.after(&mut || index.check())?;
            }
        }
        Ok(())
    }
}

/// Runs an operation that returns an answer.
fn apply<M: Medium>(index: &dyn PmIndex<M, u64>, op: Op) -> Result<Option<u64>, TreeError> {
    match op {
        Op::Insert(key, value) => index.insert(key, value),
        Op::Update(key, value) => index.update(key, value),
        Op::Upsert(key, value) => index.upsert(key, value),
        Op::Remove(key) => index.remove(key),
        Op::Get(key) => index.get(key),
        Op::Create | Op::Close | Op::Die | Op::Open => Ok(None),
    }
}

/// An operation on a pool without an index.
#[derive(Clone, Copy, Debug)]
enum PoolOp {
    Create,
    /// A new root: a reserved block of this many words, which is filled.
    Publish(&'static str, usize),
    /// A transaction of the redo log on words of a root's block.
    Redo(&'static str, u64),
    /// A transaction of the undo-redo log on words of a root's block.
    Undo(&'static str, u64),
    /// A transaction of the undo-redo log that is abandoned before its commit.
    Abandon(&'static str, u64),
    Grow(u64),
    Close,
    Die,
    Open,
}

/// The words of a block that is filled through the cache.
const SHORT: usize = 32;
/// The words of a block whose fill bypasses the cache.
const LONG: usize = 256;
/// The words that a transaction changes.
const CHANGED: [usize; 4] = [0, 9, 10, 25];

/// The use of a pool with both of its logs.
const POOL_SCRIPT: &[PoolOp] = &[
    PoolOp::Create,
    PoolOp::Publish("short", SHORT),
    PoolOp::Publish("long", LONG),
    PoolOp::Redo("short", 3),
    PoolOp::Undo("long", 4),
    PoolOp::Abandon("short", 5),
    PoolOp::Grow(bristlecone_pmem::pool::HEADER_BYTES),
    PoolOp::Die,
    PoolOp::Open,
    PoolOp::Redo("long", 6),
    PoolOp::Undo("short", 7),
    PoolOp::Close,
    PoolOp::Open,
    PoolOp::Publish("late", SHORT),
    PoolOp::Close,
];

fn run_pool_script<S: ScriptHost>(host: &mut S) -> Result<(), PoolError> {
    let mut session: Option<Pool<S::Medium>> = None;
    for (number, &op) in (0..).zip(POOL_SCRIPT) {
        host.before(number);
        match op {
            PoolOp::Create => session = Some(Pool::create(host.open()?)?),
            PoolOp::Open => session = Some(open(host.open()?)?),
            PoolOp::Die => session = None,
            PoolOp::Close => session.take().map(Pool::close).transpose()?.unwrap_or(()),
            _ => session.iter().try_for_each(|pool| change(pool, op))?,
        }
        if let (PoolOp::Redo(..), Some(pool)) = (op, &session) {
            inject(host, pool)?;
        }
    }
    Ok(())
}

/// Opens a pool, and marks the blocks of its roots.
fn open<M: Medium>(medium: M) -> Result<Pool<M>, PoolError> {
    let (pool, opened) = Pool::open(medium)?;
    if opened == Opened::Crashed {
        for root in pool.roots()? {
            pool.mark(root.block, root.kind * 8)?;
        }
        pool.finish_recovery();
    }
    Ok(pool)
}

fn change<M: Medium>(pool: &Pool<M>, op: PoolOp) -> Result<(), PoolError> {
    match op {
        PoolOp::Publish(name, words) => {
            let block = pool.reserve(words as u64 * 8)?;
            let content: Vec<u8> = (1..=words as u64).flat_map(u64::to_le_bytes).collect();
            pool.medium().fill(pool.words(block, words)?, &content);
            pool.create_root(name, words as u64, block)?;
        }
        PoolOp::Redo(name, value) => {
            let words = block_of(pool, name)?;
            let changes = CHANGED.map(|word| (&words[word], value));
            pool.redo_log().commit(&changes, pool.medium().fence()).finish();
        }
        PoolOp::Undo(name, value) | PoolOp::Abandon(name, value) => {
            let words = block_of(pool, name)?;
            let mut log = pool.undo_log();
            let [first @ .., last] = CHANGED;
            for word in first {
                log.write_undo_redo(&words[word], value);
            }
            if let PoolOp::Undo(..) = op {
                log.commit(&words[last], value).finish();
            }
        }
        PoolOp::Grow(bytes) => pool.grow(pool.usage().pool_bytes + bytes)?,
        PoolOp::Create | PoolOp::Close | PoolOp::Die | PoolOp::Open => {}
    }
    Ok(())
}

fn block_of<'p, M: Medium>(pool: &'p Pool<M>, name: &str) -> Result<&'p [PmWord], PoolError> {
    let root = pool.root(name)?;
    let block = root.map_or(PmPtr::NULL, |root| root.block);
    Ok(pool.words(block, SHORT)?)
}
