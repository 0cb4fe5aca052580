//! A pool and its index in use, and the model that determines the right answers.

use crate::medium::cut::Cut;
use crate::subject::design::{Index, SubjectDesign};
use bristlecone_pmem::Simulated;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Pool, PoolError};
use bristlecone_trees::{Key, Order, TreeError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the index among the roots of its pool.
const ROOT: &str = "index";

/// An operation on a pool and its index.
pub(crate) enum Op<K: Key> {
    /// The creation of the pool.
    CreatePool,
    /// The creation of the index in the pool.
    Create,
    Insert(K::Owned, u64),
    Update(K::Owned, u64),
    /// A number of updates to the same value. A reader cannot tell how many were done.
    Updates(K::Owned, u64, u32),
    Upsert(K::Owned, u64),
    /// A bulk load of sorted pairs into full nodes.
    Load(Vec<(K::Owned, u64)>),
    Remove(K::Owned),
    /// A batch of writes, in the order of the keys; `None` removes a key.
    Commit(Vec<(K::Owned, Option<u64>)>),
    Get(K::Owned),
    /// A scan of all pairs in an order.
    Scan(Order),
    /// Lookups of several keys in one call.
    MultiGet(Vec<K::Owned>),
    /// Reservations of all free space, so that the next one finds none. A crash frees it.
    Occupy,
    /// An operation beside a maintenance worker that does nothing.
    WithMaintainer(Box<Self>),
    /// One step of deferred work.
    RunMaintenance,
    /// The reclamation of retired blocks, as no reader is left.
    Reclaim,
    /// The close of the index and of the pool.
    Close,
    /// The end of the process: nothing is closed, nothing is written back.
    Crash,
    /// An operation of another process, which ends after that number of stores. They do not
    /// complete it.
    CutShort(Box<Self>, u32),
    /// An operation that is cut short like that, after its change of the pairs is durable.
    CutLate(Box<Self>, u32),
    /// The open of the pool and of the index.
    Open,
}

impl<K: Key> Clone for Op<K> {
    fn clone(&self) -> Self {
        match self {
            Self::CreatePool => Self::CreatePool,
            Self::Create => Self::Create,
            Self::Insert(key, value) => Self::Insert(key.clone(), *value),
            Self::Update(key, value) => Self::Update(key.clone(), *value),
            Self::Updates(key, value, times) => Self::Updates(key.clone(), *value, *times),
            Self::Upsert(key, value) => Self::Upsert(key.clone(), *value),
            Self::Load(pairs) => Self::Load(pairs.clone()),
            Self::Remove(key) => Self::Remove(key.clone()),
            Self::Commit(changes) => Self::Commit(changes.clone()),
            Self::Get(key) => Self::Get(key.clone()),
            Self::Scan(order) => Self::Scan(*order),
            Self::MultiGet(keys) => Self::MultiGet(keys.clone()),
            Self::Occupy => Self::Occupy,
            Self::WithMaintainer(op) => Self::WithMaintainer(op.clone()),
            Self::RunMaintenance => Self::RunMaintenance,
            Self::Reclaim => Self::Reclaim,
            Self::Close => Self::Close,
            Self::Crash => Self::Crash,
            Self::CutShort(op, stores) => Self::CutShort(op.clone(), *stores),
            Self::CutLate(op, stores) => Self::CutLate(op.clone(), *stores),
            Self::Open => Self::Open,
        }
    }
}

impl<K: Key> Op<K> {
    /// Returns the single operations that it consists of, each of which may fail by itself.
    pub(crate) fn singly(&self) -> Vec<Self> {
        match self {
            Self::Updates(key, value, times) => {
                vec![Self::Update(key.clone(), *value); *times as usize]
            }
            op => vec![op.clone()],
        }
    }

    /// Returns `true` for an operation of the index, `false` for one of its pool.
    pub(crate) fn is_on_index(&self) -> bool {
        !matches!(
            self,
            Self::CreatePool
                | Self::Create
                | Self::Occupy
                | Self::Reclaim
                | Self::Close
                | Self::Crash
                | Self::CutShort(..)
                | Self::CutLate(..)
                | Self::Open
        )
    }

    /// Returns the key of the operation, if it has one.
    pub(crate) fn key(&self) -> Option<K::Owned> {
        match self {
            Self::Insert(key, _)
            | Self::Update(key, _)
            | Self::Updates(key, _, _)
            | Self::Upsert(key, _)
            | Self::Remove(key)
            | Self::Get(key) => Some(key.clone()),
            Self::WithMaintainer(op) => op.key(),
            _ => None,
        }
    }
}

impl<K: Key> core::fmt::Display for Op<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::CreatePool => f.write_str("create the pool"),
            Self::Create => f.write_str("create the index"),
            Self::Insert(key, value) => write!(f, "insert {} = {value}", show::<K>(key)),
            Self::Update(key, value) => write!(f, "update {} = {value}", show::<K>(key)),
            Self::Updates(key, value, times) => {
                write!(f, "update {} = {value}, {times} times", show::<K>(key))
            }
            Self::Upsert(key, value) => write!(f, "upsert {} = {value}", show::<K>(key)),
            Self::Load(pairs) => write!(f, "load {} pairs", pairs.len()),
            Self::Remove(key) => write!(f, "remove {}", show::<K>(key)),
            Self::Commit(changes) => {
                let (first, last) = (changes.first(), changes.last());
                let ends = [first, last].map(|end| end.map_or(String::new(), |c| show::<K>(&c.0)));
                write!(f, "commit {} changes, {} to {}", changes.len(), ends[0], ends[1])
            }
            Self::Get(key) => write!(f, "get {}", show::<K>(key)),
            Self::Scan(Order::Ascending) => f.write_str("scan upwards"),
            Self::Scan(Order::Descending) => f.write_str("scan downwards"),
            Self::MultiGet(keys) => {
                let keys: Vec<_> = keys.iter().map(show::<K>).collect();
                write!(f, "get {} at once", keys.join(", "))
            }
            Self::Occupy => f.write_str("occupy all free space"),
            Self::WithMaintainer(op) => write!(f, "{op}, with a keeper"),
            Self::RunMaintenance => f.write_str("tend"),
            Self::Reclaim => f.write_str("free what was retired"),
            Self::Close => f.write_str("close"),
            Self::Crash => f.write_str("die"),
            Self::CutShort(op, stores) | Self::CutLate(op, stores) => {
                write!(f, "die in {op}, after {stores} stores")
            }
            Self::Open => f.write_str("open"),
        }
    }
}

/// Returns a key as a text for messages.
pub(crate) fn show<K: Key>(key: &K::Owned) -> String {
    format!("{:?}", K::borrow(key))
}

/// The state of the model.
#[derive(Debug)]
pub(crate) enum ModelState<K: Key> {
    /// There is no pool.
    NoPool,
    /// There is a pool without an index.
    NoIndex,
    /// There is an index with these pairs.
    Index(BTreeMap<K::Owned, u64>),
}

impl<K: Key> Clone for ModelState<K> {
    fn clone(&self) -> Self {
        match self {
            Self::NoPool => Self::NoPool,
            Self::NoIndex => Self::NoIndex,
            Self::Index(pairs) => Self::Index(pairs.clone()),
        }
    }
}

impl<K: Key> ModelState<K> {
    /// Applies `op`, and returns the right answer of an index.
    pub(crate) fn apply(&mut self, op: &Op<K>) -> Option<u64> {
        match (op, &mut *self) {
            (Op::WithMaintainer(op), _) => return self.apply(op),
            (Op::CutLate(op, _), _) => _ = self.apply(op),
            (Op::CreatePool, _) => *self = Self::NoIndex,
            (Op::Create, _) => *self = Self::Index(BTreeMap::new()),
            (Op::Insert(key, value), Self::Index(pairs)) => {
                let former = pairs.get(key).copied();
                pairs.entry(key.clone()).or_insert(*value);
                return former;
            }
            (Op::Update(key, value) | Op::Updates(key, value, _), Self::Index(pairs)) => {
                return pairs.get_mut(key).map(|old| core::mem::replace(old, *value));
            }
            (Op::Upsert(key, value), Self::Index(pairs)) => {
                return pairs.insert(key.clone(), *value);
            }
            (Op::Load(loaded), Self::Index(pairs)) => pairs.extend(loaded.iter().cloned()),
            (Op::Remove(key), Self::Index(pairs)) => return pairs.remove(key),
            (Op::Commit(changes), Self::Index(pairs)) => {
                for (key, value) in changes {
                    match value {
                        Some(value) => drop(pairs.insert(key.clone(), *value)),
                        None => drop(pairs.remove(key)),
                    }
                }
            }
            (Op::Get(key), Self::Index(pairs)) => return pairs.get(key).copied(),
            _ => {}
        }
        None
    }
}

/// A pool and its index in use.
pub(crate) enum IndexSession<K: Key> {
    /// No pool is open.
    Closed,
    /// A pool without an index is open.
    Pool(Arc<Pool<Simulated>>),
    Index(Box<Index<K>>),
}

impl<K: Key> IndexSession<K> {
    /// Applies `op` to the open session, or to `medium`. Returns the answer of the index.
    ///
    /// # Errors
    /// As the operation.
    pub(crate) fn apply(
        &mut self,
        design: SubjectDesign<K>,
        medium: &Simulated,
        op: &Op<K>,
    ) -> Result<Option<u64>, TreeError> {
        match op {
            Op::CreatePool => *self = Self::Pool(Arc::new(Pool::create(medium.clone())?)),
            Op::Create => {
                if let Self::Pool(pool) = self {
                    *self = Self::Index((design.form.create)(Arc::clone(pool), ROOT)?);
                }
            }
            Op::Close => {
                if let Self::Index(index) = core::mem::replace(self, Self::Closed) {
                    // In an application different threads may open the index, close the index and
                    // close the pool.
                    medium.hand_over();
                    let pool = Arc::into_inner(index.close()?);
                    medium.hand_over();
                    pool.expect("the index was the last owner of the pool").close()?;
                }
            }
            Op::Reclaim => {
                if let Self::Index(index) = self {
                    index.pool().reclaim();
                }
                // The thread that allocates a block need not be the one that freed it.
                medium.hand_over();
            }
            Op::Crash => *self = Self::Closed,
            Op::CutShort(op, stores) | Op::CutLate(op, stores) => {
                *self = Self::Closed;
                let cut = Arc::new(Cut::new(medium.clone()));
                let mut other = open(design, Simulated::new(cut.clone()), |_| {})?;
                cut.after(*stores);
                // The process is dead by then, so its answer or error tells nothing.
                let _ = other.apply(design, medium, op);
            }
            Op::Open => {
                *self = open(design, medium.clone(), |_| {})?;
                // The thread that uses an index need not be the one that opened it.
                medium.hand_over();
            }
            _ => {
                if let Self::Index(index) = self {
                    return apply(&**index, op);
                }
            }
        }
        Ok(None)
    }
}

/// Applies an operation to an index, and returns the answer.
pub(crate) fn apply<K: Key>(index: &Index<K>, op: &Op<K>) -> Result<Option<u64>, TreeError> {
    match op {
        Op::Insert(key, value) => index.insert(K::borrow(key), *value),
        Op::Update(key, value) => index.update(K::borrow(key), *value),
        Op::Updates(key, value, times) => {
            let former = index.update(K::borrow(key), *value)?;
            for _ in 1..*times {
                index.update(K::borrow(key), *value)?;
            }
            Ok(former)
        }
        Op::Upsert(key, value) => index.upsert(K::borrow(key), *value),
        Op::Load(pairs) => index.bulk_load(&mut pairs.iter().cloned(), 100).map(|()| None),
        Op::Remove(key) => index.remove(K::borrow(key)),
        Op::Commit(changes) => {
            let changes: Vec<_> =
                changes.iter().map(|(key, value)| (K::borrow(key), *value)).collect();
            index.commit(&changes).map(|_| None)
        }
        Op::Get(key) => index.get(K::borrow(key)),
        Op::WithMaintainer(op) => {
            let _maintainer = index.maintainer();
            apply(index, op)
        }
        Op::RunMaintenance => index.run_maintenance_step().map(|_| None),
        Op::Occupy => {
            occupy(index.pool());
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// Reserves all free space of a pool without growing it.
fn occupy(pool: &Pool<Simulated>) {
    const CHUNK_BYTES: u64 = 32 << 10;
    pool.limit(pool.usage().pool_bytes);
    let small = (1..=CHUNK_BYTES / 128).rev().map(|lines| lines * 64);
    for bytes in [CHUNK_BYTES].into_iter().chain(small) {
        while pool.reserve(bytes).is_ok() {}
    }
    pool.limit(u64::MAX);
}

/// Opens the pool on `medium`, if there is one, and calls `opened_as` with its nonce as soon as
/// that is known. A pool whose creation was interrupted counts as none.
pub(crate) fn open<K: Key>(
    design: SubjectDesign<K>,
    medium: Simulated,
    opened_as: impl FnOnce(u64),
) -> Result<IndexSession<K>, TreeError> {
    let (pool, opened) = match Pool::open(medium) {
        Ok(pool) => pool,
        Err(PoolError::NotAPool { .. }) => return Ok(IndexSession::Closed),
        Err(error) => return Err(error.into()),
    };
    opened_as(pool.nonce());
    let pool = Arc::new(pool);
    match (design.form.open)(Arc::clone(&pool), ROOT, opened) {
        Ok(index) => Ok(IndexSession::Index(index)),
        Err(TreeError::Foreign { found: 0, .. }) => {
            if opened == Opened::Crashed && pool.is_recovering() {
                pool.finish_recovery();
            }
            Ok(IndexSession::Pool(pool))
        }
        Err(error) => Err(error),
    }
}
