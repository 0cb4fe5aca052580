//! Toys: indexes of one block, each with the essential structure that no design has.
//!
//! 1. A toy is right unless its [`Defect`](bristlecone_pmem::Defect) is injected.
//! 2. One block holds all of it, and a mutex serializes its operations.
//! 3. It is explored with keys of 8 B alone, whose words own no blocks.

pub(super) mod layouts;

use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use bristlecone_trees::index::{Design, Order, PmIndex, TreeError, TreeStats};
use bristlecone_trees::key::Key;
use bristlecone_trees::spec::{Budget, Cost, Spec};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The words of a toy's block.
pub(super) const WORDS: usize = 512;
const BYTES: u64 = WORDS as u64 * 8;
/// The budget of a toy, which no test asserts.
const COST: Cost = Cost::new(0, 0);

/// The block of a toy.
pub(super) struct Node<'a, M> {
    pub(super) medium: &'a M,
    words: &'a [PmWord],
    at: PmPtr,
}

impl<M> Clone for Node<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for Node<'_, M> {}

impl<M: Medium> Node<'_, M> {
    pub(super) fn load(self, word: usize) -> u64 {
        self.medium.load(&self.words[word])
    }
    pub(super) fn store(self, word: usize, value: u64) {
        self.medium.store(&self.words[word], value);
    }
    pub(super) fn flush(self, first: usize, count: usize) {
        self.medium.flush(&self.words[first..first + count]);
    }
    pub(super) fn persist(self, first: usize, count: usize) {
        let _ = self.medium.persist(&self.words[first..first + count]);
    }
    /// Stores a word durably.
    pub(super) fn set(self, word: usize, value: u64) {
        self.store(word, value);
        self.persist(word, 1);
    }
    /// Returns the word, or damage if it is not below `end`.
    pub(super) fn load_below(self, word: usize, end: usize) -> Result<usize, Corrupt> {
        let found = self.load(word);
        if found < end as u64 { Ok(found as usize) } else { Err(self.damage(word, found)) }
    }
    pub(super) fn damage(self, word: usize, found: u64) -> Corrupt {
        let at = self.at.offset() + 8 * word as u64;
        Corrupt { at, what: "a word of a toy", expected: 0, found }
    }
}

/// A key word and a value.
pub(super) type Pair = (u64, u64);

/// The layout of a toy's block.
pub(super) trait ToyLayout: Send + Sync + 'static {
    const NAME: &'static str;
    /// Returns the first words of an empty toy; zeros follow.
    fn init() -> Vec<u64> {
        Vec::new()
    }
    /// Returns all pairs, in any order.
    fn pairs<M: Medium>(node: Node<'_, M>) -> Result<Vec<Pair>, Corrupt>;
    /// Adds a pair or changes its value. Returns `false` if there is no room. Durable on return.
    fn put<M: Medium>(node: Node<'_, M>, pair: Pair) -> Result<bool, Corrupt>;
    /// Removes the pair of a key, which is present. Durable on return.
    fn remove<M: Medium>(node: Node<'_, M>, key: u64) -> Result<bool, Corrupt>;
    /// Repairs the block after a crash.
    fn recover<M: Medium>(_node: Node<'_, M>) -> Result<(), Corrupt> {
        Ok(())
    }
}

/// The design of a toy.
pub(super) struct Toy<S>(PhantomData<S>);

impl<S: ToyLayout> Design for Toy<S> {
    const SPEC: Spec = Spec {
        name: S::NAME,
        source: "none",
        persistent: true,
        node_bytes: WORDS * 8,
        budget: Budget { insert: COST, update: COST, remove: COST },
        relies_on_line_order: false,
        features: &[],
    };
    type Index<M: Medium, K: Key> = ToyIndex<S, M, K>;
}

/// A toy in a pool.
pub(super) struct ToyIndex<S, M, K> {
    pool: Arc<Pool<M>>,
    block: PmPtr,
    turn: Mutex<()>,
    kind: PhantomData<fn() -> (S, K)>,
}

impl<S, M, K> fmt::Debug for ToyIndex<S, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToyIndex").field("block", &self.block).finish_non_exhaustive()
    }
}

impl<S: ToyLayout, M: Medium, K: Key> ToyIndex<S, M, K> {
    fn new(pool: Arc<Pool<M>>, block: PmPtr) -> Self {
        Self { pool, block, turn: Mutex::new(()), kind: PhantomData }
    }

    fn node(&self) -> Result<Node<'_, M>, Corrupt> {
        let words = self.pool.words(self.block, WORDS)?;
        Ok(Node { medium: self.pool.medium(), words, at: self.block })
    }

    fn all(&self) -> Result<BTreeMap<K::Owned, u64>, Corrupt> {
        let mut all = BTreeMap::new();
        for (word, value) in S::pairs(self.node()?)? {
            if all.insert(K::read(&self.pool, word)?, value).is_some() {
                let (at, what) = (self.block.offset(), "a key of a toy is there twice");
                return Err(Corrupt { at, what, expected: 1, found: 2 });
            }
        }
        Ok(all)
    }

    fn value(&self, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        Ok(self.all()?.get(&K::to_owned(key)).copied())
    }

    fn put(&self, key: K::Ref<'_>, value: u64) -> Result<(), TreeError> {
        let word = K::store_separator(&self.pool, key)?;
        room(S::put(self.node()?, (word, value))?)
    }
}

fn room(is_done: bool) -> Result<(), TreeError> {
    if is_done {
        return Ok(());
    }
    let reason = MediumError::Limit { wanted: BYTES + 1, limit: BYTES };
    Err(PoolError::Full { wanted: 1, reason }.into())
}

impl<S: ToyLayout, M: Medium, K: Key> PmIndex<M, K> for ToyIndex<S, M, K> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let block = pool.reserve(BYTES)?;
        let mut words = S::init();
        words.resize(WORDS, 0);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        pool.medium().fill(pool.words(block, WORDS)?, &bytes);
        pool.create_root(root, Toy::<S>::SPEC.kind::<K>(), block)?;
        Ok(Self::new(pool, block))
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let expected = Toy::<S>::SPEC.kind::<K>();
        let found = pool.root(root)?;
        let kind = found.as_ref().map_or(0, |root| root.kind);
        let Some(root) = found.filter(|_| kind == expected) else {
            return Err(TreeError::Foreign { expected, found: kind });
        };
        let index = Self::new(pool, root.block);
        if opened == Opened::Crashed {
            index.pool.mark(index.block, BYTES)?;
            index.pool.finish_recovery();
            S::recover(index.node()?)?;
        }
        Ok(index)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        Ok(self.value(key)?)
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        for (key, value) in keys.iter().zip(values) {
            *value = self.value(*key)?;
        }
        Ok(())
    }

    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _turn = self.turn.lock();
        let former = self.value(key)?;
        if former.is_none() {
            self.put(key, value)?;
        }
        Ok(former)
    }

    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _turn = self.turn.lock();
        let former = self.value(key)?;
        if former.is_some() {
            self.put(key, value)?;
        }
        Ok(former)
    }

    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _turn = self.turn.lock();
        let former = self.value(key)?;
        self.put(key, value)?;
        Ok(former)
    }

    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let _turn = self.turn.lock();
        let former = self.value(key)?;
        if former.is_some() {
            room(S::remove(self.node()?, K::store_separator(&self.pool, key)?)?)?;
        }
        Ok(former)
    }

    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let all = self.all()?;
        let owned = |bound: Bound<K::Ref<'_>>| bound.map(|key| K::to_owned(key));
        let range = all.range((owned(bounds.0), owned(bounds.1)));
        let mut show = |(key, value): (&K::Owned, &u64)| visit(K::borrow(key), *value);
        let _ = match order {
            Order::Ascending => range.into_iter().try_for_each(&mut show),
            Order::Descending => range.rev().try_for_each(&mut show),
        };
        Ok(())
    }

    fn check(&self) -> Result<TreeStats, TreeError> {
        let keys = self.all()?.len() as u64;
        let pm_bytes = self.pool.reserved_bytes(BYTES);
        Ok(TreeStats { keys, leaves: 1, height: 1, blocks: 1, pm_bytes, ..TreeStats::default() })
    }

    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}
