//! What is done under the eyes of the witness: one script for all designs, one for the pool by itself.
//!
//! 1. A script is the same every time: the keys are fixed, and there is one thread.
//! 2. It is pinned from beginning to end, and frees by itself what was retired. So which block an
//!    operation gets does not depend on what other threads of the process do.

use crate::run::POOL;
use crate::store::{STORE, StoreDesign};
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Medium, PmPtr, PmWord, Pool, PoolError};
use bristlecone_registry::{DesignEntry, Forms, default_size};
use bristlecone_trees::erased::BoxedIndex;
use bristlecone_trees::names::UnknownDesign;
use bristlecone_trees::{ErasedDesign, PmIndex, TreeError, TreeStats};
use core::fmt;
use std::sync::Arc;

/// The name of the index in its pool.
const ROOT: &str = "witness";

/// Something that is done to the pool beside the script, on one of its two stages alone. It must be
/// noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A store of another value, around the medium.
    Store,
    /// A store of the value that is there, around the medium.
    Same,
    /// A byte written to the file by the system.
    Write,
    /// A flush too many.
    Flush,
    /// A fence too many.
    Fence,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Store, Self::Same, Self::Write, Self::Flush, Self::Fence];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Same => "same",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Fence => "fence",
        }
    }

    /// The plant of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| plant.name() == name)
    }
}

/// Where a script is played.
pub trait Stage {
    /// What the pool is on.
    type Medium: Medium;

    /// Returns the forms of a design on that medium.
    fn forms(row: &'static DesignEntry) -> &'static Forms<Self::Medium>;

    /// The medium, as the last use left it.
    ///
    /// # Errors
    /// The system refuses it.
    fn open(&mut self) -> Result<Self::Medium, MediumError>;

    /// Called before each operation, with its number.
    fn before(&mut self, _number: u32) {}

    /// Called after each operation on an open index, which `census` looks at.
    ///
    /// # Errors
    /// As `census`.
    fn after(
        &mut self,
        _census: &mut dyn FnMut() -> Result<TreeStats, TreeError>,
    ) -> Result<(), TreeError> {
        Ok(())
    }

    /// What to do beside the script.
    fn plant(&self) -> Option<Plant> {
        None
    }

    /// Writes a byte at `offset` by way of the system.
    ///
    /// # Errors
    /// The system refuses.
    fn write(&mut self, _offset: u64, _byte: u8) -> std::io::Result<()> {
        Ok(())
    }
}

/// Plays the script of the design called `name`, at its smallest node size; also of the pool, and of
/// the store.
///
/// # Errors
/// There is no such design, or an operation fails.
pub(super) fn play<S: Stage>(
    name: &str,
    stage: &mut S,
) -> Result<Result<(), TreeError>, UnknownDesign> {
    match name {
        POOL => Ok(play_pool(stage).map_err(TreeError::from)),
        STORE => Ok(play_index(stage, ErasedDesign::of::<StoreDesign>())),
        _ => match S::forms(default_size(name)?).numbers {
            Some(design) => Ok(play_index(stage, design)),
            None => Err(UnknownDesign::new(name, None)),
        },
    }
}

/// How many operations there are, and what each is.
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

/// Keys that come in no order.
const MIXED: u64 = 96;
/// Keys that come in descending order, above them.
const DESCENDING: u64 = 24;

/// The key of a number below [`MIXED`]: 37 generates all residues of the prime above.
fn mixed(number: u64) -> u64 {
    (number + 1) * 37 % (MIXED + 1) * 10
}

/// Every operation, present and absent; leaves and roots that split, merge and collapse; a recovery,
/// and an open of what was closed; blocks that are used again.
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

/// Where in the script something is planted: in the middle of its inserts.
const PLANTED_AFTER: u32 = 50;

/// Does what is planted, to words at the end of the pool that nothing else uses.
fn sow<S: Stage>(stage: &mut S, pool: &Pool<S::Medium>) -> Result<(), PoolError> {
    let Some(plant) = stage.plant() else { return Ok(()) };
    let at = pool.medium().len() - 8;
    let word = &pool.words(PmPtr::new(at), 1)?[0];
    let ordering = core::sync::atomic::Ordering::Release;
    match plant {
        Plant::Store => word.cell().store(1, ordering),
        Plant::Same => word.cell().store(0, ordering),
        Plant::Write => stage
            .write(at, 1)
            .map_err(|source| MediumError::System { action: "write around the medium", source })?,
        Plant::Flush => pool.medium().flush(core::slice::from_ref(word)),
        Plant::Fence => {
            let _ = pool.medium().fence();
        }
    }
    Ok(())
}

fn play_index<S: Stage>(
    stage: &mut S,
    design: ErasedDesign<S::Medium, u64>,
) -> Result<(), TreeError> {
    {
        let _pinned = pin(); // 2
        let mut life: Option<BoxedIndex<S::Medium, u64>> = None;
        for (number, op) in (0..).zip(tree_script()) {
            stage.before(number);
            match op {
                Op::Create | Op::Open => {
                    let medium = stage.open().map_err(PoolError::from)?;
                    let (pool, opened) = Pool::open(medium)?;
                    let pool = Arc::new(pool);
                    life = Some(match op {
                        Op::Create => (design.create)(pool, ROOT)?,
                        _ => (design.open)(pool, ROOT, opened)?,
                    });
                }
                Op::Die => life = None,
                Op::Close => {
                    let pool = life.take().map(|index| index.close()).transpose()?;
                    if let Some(pool) = pool.and_then(Arc::into_inner) {
                        pool.close()?;
                    }
                }
                _ => {
                    let Some(index) = &life else { continue };
                    apply(&**index, op)?;
                    index.pool().reclaim(); // 2
                    if number == PLANTED_AFTER {
                        sow(stage, index.pool())?;
                    }
                }
            }
            if let Some(index) = &life {
                stage.after(&mut || index.check())?;
            }
        }
        Ok(())
    }
}

/// Does an operation that answers.
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

/// An operation on the pool by itself.
#[derive(Clone, Copy, Debug)]
enum PoolOp {
    Create,
    /// Reserves a block of so many words, fills it, and makes it a root.
    Publish(&'static str, usize),
    /// Changes words of a root's block through the sealed log.
    Redo(&'static str, u64),
    /// Changes words of a root's block through the undo-redo log.
    Undo(&'static str, u64),
    /// The same, but gives it up before the commit.
    Abandon(&'static str, u64),
    Grow(u64),
    Close,
    Die,
    Open,
}

/// Words of a block that is filled through the cache.
const SHORT: usize = 32;
/// Words of a block that is filled past the cache.
const LONG: usize = 256;
/// Words that a transaction changes.
const CHANGED: [usize; 4] = [0, 9, 10, 25];

/// The life of a pool with both of its logs.
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

fn play_pool<S: Stage>(stage: &mut S) -> Result<(), PoolError> {
    let mut life: Option<Pool<S::Medium>> = None;
    for (number, &op) in (0..).zip(POOL_SCRIPT) {
        stage.before(number);
        match op {
            PoolOp::Create => life = Some(Pool::create(stage.open()?)?),
            PoolOp::Open => life = Some(open(stage.open()?)?),
            PoolOp::Die => life = None,
            PoolOp::Close => life.take().map(Pool::close).transpose()?.unwrap_or(()),
            _ => life.iter().try_for_each(|pool| change(pool, op))?,
        }
        if let (PoolOp::Redo(..), Some(pool)) = (op, &life) {
            sow(stage, pool)?;
        }
    }
    Ok(())
}

/// Opens a pool, whose roots reach a block each.
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

/// Does an operation on an open pool.
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
            for word in CHANGED {
                log.write_undo_redo(&words[word], value);
            }
            if let PoolOp::Undo(..) = op {
                log.commit_new_redo().finish();
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
