//! Checks an index that is not registered: it implements the trait, and `main` is the whole
//! harness.
//!
//! The index here is as small as one can be: a table of pairs in one block, in no order, behind a
//! word of bits that says which of them are there.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bits | commit | bit i: pair i is there |
//! | 64 | 16 each | pairs | data | key word, value word |
//!
//! 1. A pair is durable before its bit is set; a key has one pair at the most.
//! 2. Key words of a layer with records own their blocks: freed after the bit is gone.

use bristlecone_crash::{Request, Subject, run, run_crash_mutants};
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use bristlecone_trees::index::{Design, Order, PmIndex, TreeError, TreeStats};
use bristlecone_trees::key::{Entry, Key, mark_entry, retire_entry};
use bristlecone_trees::spec::{Budget, Cost, Spec};
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// Explores every crash of every scenario, then runs every mutant.
fn main() -> ExitCode {
    let (table, request) = ([Subject::of::<Table>()], Request::default());
    let summary = run(&table, &request, &mut |outcome| {
        for violation in &outcome.violations {
            eprintln!("{}: {violation}", outcome.scenario);
        }
    });
    eprintln!("{summary:?}");
    // A survivor is a step that no scenario needs, or a scenario that is missing.
    run_crash_mutants(&table, &request, &mut |mutant| {
        let is_ours = mutant.mutation.to_string().contains("own_tree.rs");
        if is_ours && mutant.killed.is_none() {
            eprintln!("no scenario detects {}", mutant.mutation);
        }
    });
    if summary.is_pass() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Enough entries for every case, except those that need a tree of several nodes.
const PAIRS: usize = 63;
const FIRST: usize = 8;
const WORDS: usize = FIRST + 2 * PAIRS;
const BYTES: u64 = WORDS as u64 * 8;

/// The design, as the registry would list it.
struct Table;

impl Design for Table {
    const SPEC: Spec = Spec {
        name: "table",
        source: "an example",
        persistent: true,
        node_bytes: WORDS * 8,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: false,
        features: &[],
    };
    type Index<M: Medium, K: Key> = TableIndex<M, K>;
}

struct TableIndex<M, K> {
    pool: Arc<Pool<M>>,
    block: PmPtr,
    writer: Mutex<()>,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key> TableIndex<M, K> {
    fn new(pool: Arc<Pool<M>>, block: PmPtr) -> Self {
        Self { pool, block, writer: Mutex::new(()), key: PhantomData }
    }

    fn words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.block, WORDS)
    }

    /// Returns the bits. Only the bits of pairs may be set.
    fn bits(&self) -> Result<u64, Corrupt> {
        let found = self.pool.medium().load(&self.words()?[0]);
        if found >> PAIRS != 0 {
            let (at, expected) = (self.block.offset(), (1 << PAIRS) - 1);
            return Err(Corrupt { at, what: "bits of pairs", expected, found });
        }
        Ok(found)
    }

    /// Returns the pairs that are present, with their places.
    fn entries(&self) -> Result<Vec<(usize, Entry)>, Corrupt> {
        let (words, bits) = (self.words()?, self.bits()?);
        let load = |word: usize| self.pool.medium().load(&words[FIRST + word]);
        let there = (0..PAIRS).filter(|place| bits & (1 << place) != 0);
        let entry = |place| Entry::plain(load(2 * place), load(2 * place + 1));
        Ok(there.map(|place| (place, entry(place))).collect())
    }

    fn find(&self, key: K::Ref<'_>) -> Result<Option<(usize, Entry)>, TreeError> {
        for (place, entry) in self.entries()? {
            if K::order_entry(&self.pool, entry, key)?.is_eq() {
                return Ok(Some((place, entry)));
            }
        }
        Ok(None)
    }

    /// ```text
    /// W pair              1 line     crash before C: the bit is not set
    /// F pair |
    /// C bits              8 B
    /// F bits |            -> durable budget: 2 lines, 2 fences
    /// ```
    fn add(&self, key: K::Ref<'_>, value: u64) -> Result<(), TreeError> {
        let (words, bits) = (self.words()?, self.bits()?);
        let place = bits.trailing_ones() as usize;
        if place == PAIRS {
            let limit = PAIRS as u64;
            let reason = MediumError::Limit { wanted: limit + 1, limit };
            return Err(PoolError::Full { wanted: 1, reason }.into());
        }
        let medium = self.pool.medium();
        let pair = &words[FIRST + 2 * place..][..2];
        medium.store(&pair[0], K::store_entry_key(&self.pool, key, value)?);
        medium.store(&pair[1], value);
        let fenced = medium.persist(pair);
        medium.commit(&words[0], bits | 1 << place, fenced);
        let _ = medium.persist(&words[..1]);
        Ok(())
    }

    /// ```text
    /// W value             8 B        crash before: the former value; after: the new one
    /// F value |           -> durable budget: 1 line, 1 fence
    /// ```
    fn replace(&self, place: usize, value: u64) -> Result<(), TreeError> {
        let word = FIRST + 2 * place + 1;
        let words = &self.words()?[word..=word];
        self.pool.medium().store(&words[0], value);
        let _ = self.pool.medium().persist(words);
        Ok(())
    }

    fn pairs(&self) -> Result<BTreeMap<K::Owned, u64>, TreeError> {
        let entries = self.entries()?.into_iter();
        let pair = |(_, entry)| Ok((K::read_entry(&self.pool, entry)?, entry.value));
        entries.map(pair).collect()
    }
}

impl<M: Medium, K: Key> PmIndex<M, K> for TableIndex<M, K> {
    /// ```text
    /// N bits, all clear
    /// the root            -> durable   see `Pool::create_root`, which fences both
    /// ```
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let block = pool.reserve(BYTES)?;
        pool.medium().fill(pool.words(block, 1)?, &[0; 8]);
        pool.create_root(root, Table::SPEC.kind::<K>(), block)?;
        Ok(Self::new(pool, block))
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let expected = Table::SPEC.kind::<K>();
        let (found, block) =
            pool.root(root)?.map_or((0, PmPtr::NULL), |root| (root.kind, root.block));
        if found != expected {
            return Err(TreeError::Foreign { expected, found });
        }
        let index = Self::new(pool, block);
        if opened == Opened::Crashed {
            index.pool.mark(block, BYTES)?;
            for (_, entry) in index.entries()? {
                mark_entry::<K, M>(&index.pool, entry)?;
            }
            index.pool.finish_recovery();
        }
        Ok(index)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        Ok(self.find(key)?.map(|(_, entry)| entry.value))
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(*key)?;
        }
        Ok(())
    }

    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let former = self.get(key)?;
        if former.is_none() {
            self.add(key, value)?;
        }
        Ok(former)
    }

    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((place, entry)) = self.find(key)? else { return Ok(None) };
        self.replace(place, value)?;
        Ok(Some(entry.value))
    }

    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match self.find(key)? {
            Some((place, entry)) => self.replace(place, value).map(|()| Some(entry.value)),
            None => self.add(key, value).map(|()| None),
        }
    }

    /// ```text
    /// C bits              8 B        crash before C: the pair is there; after: it is not
    /// F bits |            -> durable budget: 1 line, 1 fence
    /// ```
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = pin();
        let Some((place, entry)) = self.find(key)? else { return Ok(None) };
        let (words, bits) = (self.words()?, self.bits()?);
        self.pool.medium().store(&words[0], bits & !(1 << place));
        let _ = self.pool.medium().persist(&words[..1]);
        retire_entry::<K, M>(&self.pool, entry, &guard)?; // I2
        Ok(Some(entry.value))
    }

    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let pairs = self.pairs()?;
        let owned = |bound: Bound<K::Ref<'_>>| bound.map(|key| K::to_owned(key));
        let range = pairs.range((owned(bounds.0), owned(bounds.1)));
        let mut show = |(key, value): (&K::Owned, &u64)| visit(K::borrow(key), *value);
        let _ = match order {
            Order::Ascending => range.into_iter().try_for_each(&mut show),
            Order::Descending => range.rev().try_for_each(&mut show),
        };
        Ok(())
    }

    fn check(&self) -> Result<TreeStats, TreeError> {
        let keys = self.pairs()?.len() as u64;
        let entries = self.entries()?;
        let mut census =
            TreeStats { keys, leaves: 1, height: 1, blocks: 1, ..TreeStats::default() };
        census.pm_bytes = self.pool.reserved_bytes(BYTES);
        for (_, entry) in &entries {
            if let Some((_, bytes)) = K::entry_block(&self.pool, *entry)? {
                census.blocks += 1;
                census.pm_bytes += self.pool.reserved_bytes(bytes);
            }
        }
        if keys != entries.len() as u64 {
            let (at, what, found) = (self.block.offset(), "a key is there twice", keys);
            return Err(Corrupt { at, what, expected: entries.len() as u64, found }.into()); // I1
        }
        Ok(census)
    }

    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}
