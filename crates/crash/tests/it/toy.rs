//! A small index to test the explorer with: an append-only log of puts and removes behind a count,
//! right in one version and wrong in the others.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | count | commit | records that are there |
//! | 64 | 32 each | records | data | kind, key word, value, value again |

use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use bristlecone_trees::index::{Design, Order, PmIndex, TreeError, TreeStats};
use bristlecone_trees::key::{Entry, Key, mark_entry};
use bristlecone_trees::spec::{Budget, Cost, Spec};
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The defect that a version has.
pub(crate) const NONE: u8 = 0;
/// The count is stored before the record is fenced.
pub(crate) const COMMIT_EARLY: u8 = 1;
/// An operation returns before its count is fenced.
pub(crate) const NO_LAST_FENCE: u8 = 2;
/// The record is never flushed.
pub(crate) const NO_RECORD_FLUSH: u8 = 3;
/// An update changes two words in place, without a log.
pub(crate) const TWO_WORDS: u8 = 4;
/// The count is stored without the medium.
pub(crate) const BYPASS: u8 = 5;
/// Recovery reserves a block that no pointer reaches.
pub(crate) const LEAK: u8 = 6;
/// Recovery waits for a record that a crash cut off.
pub(crate) const SPIN: u8 = 7;
/// Recovery panics on a record that a crash cut off.
pub(crate) const PANIC: u8 = 8;
/// A read changes the pool: recovering twice is not the same as once.
pub(crate) const FORGET: u8 = 9;

/// Recovery takes the count away for a moment: a crash just then loses every pair.
pub(crate) const TORN_REPAIR: u8 = 10;
/// The right version of a recovery that repairs: it stores the count that is there once more.
pub(crate) const WHOLE_REPAIR: u8 = 11;
/// Recovery notes that it is under way. After an interrupted one, an uncounted record with a value
/// counts.
pub(crate) const COUNTS_AGAIN: u8 = 14;
/// Recovery counts the next record too, if it has an end and no beginning.
pub(crate) const COUNTS_TAILS: u8 = 15;
/// An operation that finds no room for its key keeps a block that it had reserved before.
pub(crate) const HOARD: u8 = 12;
/// An upsert removes the former pair before it knows that there is room for the new one.
pub(crate) const RASH: u8 = 13;

const RECORDS: usize = 120;
const RECORD_WORDS: usize = 4;
const HEADER_WORDS: usize = 8;
const BLOCK_WORDS: usize = HEADER_WORDS + RECORDS * RECORD_WORDS;
const PUT: u64 = 1;
const REMOVE: u64 = 2;

/// The design with a defect.
pub(crate) struct Toy<const DEFECT: u8>;

impl<const DEFECT: u8> Design for Toy<DEFECT> {
    const SPEC: Spec = Spec {
        name: "toy",
        source: "none",
        persistent: true,
        node_bytes: BLOCK_WORDS * 8,
        budget: Budget { insert: COST, update: COST, remove: COST },
        relies_on_line_order: false,
        features: &[],
    };
    type Index<M: Medium, K: Key> = ToyIndex<DEFECT, M, K>;
}

const COST: Cost = Cost::new(2, 2);

pub(crate) struct ToyIndex<const DEFECT: u8, M, K> {
    pool: Arc<Pool<M>>,
    block: PmPtr,
    writer: Mutex<()>,
    key: PhantomData<fn() -> K>,
}

impl<const DEFECT: u8, M: Medium, K: Key> ToyIndex<DEFECT, M, K> {
    fn new(pool: Arc<Pool<M>>, block: PmPtr) -> Self {
        Self { pool, block, writer: Mutex::new(()), key: PhantomData }
    }

    fn words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.block, BLOCK_WORDS)
    }

    fn count(&self) -> Result<usize, Corrupt> {
        let found = self.pool.medium().load(&self.words()?[0]);
        if found > RECORDS as u64 {
            let (at, expected) = (self.block.offset(), RECORDS as u64);
            return Err(Corrupt { at, what: "record count", expected, found });
        }
        Ok(found as usize)
    }

    fn record(&self, index: usize) -> Result<&[PmWord], Corrupt> {
        let first = HEADER_WORDS + index * RECORD_WORDS;
        Ok(&self.words()?[first..first + RECORD_WORDS])
    }

    fn read(&self, index: usize) -> Result<(u64, Entry), Corrupt> {
        let record = self.record(index)?;
        let [kind, key, value, again] =
            core::array::from_fn(|word| self.pool.medium().load(&record[word]));
        let at = self.pool.offset_of(&record[3]).offset();
        if !(PUT..=REMOVE).contains(&kind) {
            return Err(Corrupt { at, what: "record kind", expected: PUT, found: kind });
        }
        if value != again {
            return Err(Corrupt { at, what: "second value", expected: value, found: again });
        }
        Ok((kind, Entry::plain(key, value)))
    }

    /// Returns the newest record of `key`: its place and its contents.
    fn find(&self, key: K::Ref<'_>) -> Result<Option<(usize, u64, u64)>, TreeError> {
        for index in (0..self.count()?).rev() {
            let (kind, entry) = self.read(index)?;
            if K::order_entry(&self.pool, entry, key)?.is_eq() {
                return Ok(Some((index, kind, entry.value)));
            }
        }
        Ok(None)
    }

    fn value(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        Ok(self.find(key)?.filter(|&(_, kind, _)| kind == PUT).map(|(_, _, value)| value))
    }

    /// ```text
    /// W record            1 line     crash before C: the record is not counted
    /// F record |
    /// C count             8 B
    /// F count |           -> durable
    /// ```
    fn append(&self, kind: u64, key: K::Ref<'_>, value: u64) -> Result<(), TreeError> {
        let count = self.count()?;
        if count == RECORDS {
            let limit = RECORDS as u64;
            let reason = MediumError::Limit { wanted: limit + 1, limit };
            return Err(PoolError::Full { wanted: 1, reason }.into());
        }
        let medium = self.pool.medium();
        let hoard = if DEFECT == HOARD { Some(self.pool.reserve(64)?) } else { None };
        let word = K::store_entry_key(&self.pool, key, value)?;
        if let Some(block) = hoard {
            self.pool.release(block, 64);
        }
        let record = self.record(count)?;
        for (target, value) in record.iter().zip([kind, word, value, value]) {
            medium.store(target, value);
        }
        let counter = &self.words()?[..1];
        if DEFECT == COMMIT_EARLY {
            medium.store(&counter[0], count as u64 + 1);
            medium.flush(record);
            medium.flush(counter);
            let _ = medium.fence();
            return Ok(());
        }
        if DEFECT != NO_RECORD_FLUSH {
            medium.flush(record);
        }
        let fenced = medium.fence();
        if DEFECT == BYPASS {
            counter[0].cell().store(count as u64 + 1, Ordering::Release);
        } else {
            medium.commit(&counter[0], count as u64 + 1, fenced);
        }
        medium.flush(counter);
        if DEFECT != NO_LAST_FENCE {
            let _ = medium.fence();
        }
        Ok(())
    }

    fn pairs(&self) -> Result<BTreeMap<K::Owned, u64>, TreeError> {
        let mut pairs = BTreeMap::new();
        for index in 0..self.count()? {
            let (kind, entry) = self.read(index)?;
            let key = K::read_entry(&self.pool, entry)?;
            match kind {
                PUT => pairs.insert(key, entry.value),
                _ => pairs.remove(&key),
            };
        }
        Ok(pairs)
    }

    fn recover(&self) -> Result<(), TreeError> {
        self.pool.mark(self.block, BLOCK_WORDS as u64 * 8)?;
        let count = self.count()?;
        for index in 0..count {
            mark_entry::<K, M>(&self.pool, self.read(index)?.1)?;
        }
        self.pool.finish_recovery();
        let medium = self.pool.medium();
        let cut_off = || -> Result<u64, Corrupt> { Ok(medium.load(&self.record(count)?[0])) };
        match DEFECT {
            LEAK if cut_off()? != 0 => drop(self.pool.reserve(64)?),
            SPIN => while cut_off()? != 0 {},
            PANIC => assert_eq!(cut_off()?, 0, "a record is cut off"),
            TORN_REPAIR | WHOLE_REPAIR if count > 0 => {
                let counter = &self.words()?[..1];
                if DEFECT == TORN_REPAIR {
                    medium.store(&counter[0], 0);
                }
                medium.store(&counter[0], count as u64);
                let _ = medium.persist(counter);
            }
            COUNTS_AGAIN | COUNTS_TAILS => {
                let under_way = &self.words()?[1..2];
                if medium.load(&under_way[0]) == 1 {
                    let record = self.record(count)?;
                    let has = |word: usize| medium.load(&record[word]) != 0;
                    let counts = if DEFECT == COUNTS_AGAIN { has(2) } else { has(3) && !has(0) };
                    medium.store(&self.words()?[0], (count + usize::from(counts)) as u64);
                }
                for state in [1, 0] {
                    medium.store(&under_way[0], state);
                    let _ = medium.persist(under_way);
                }
            }
            FORGET if count > 0 => medium.store(&self.words()?[0], count as u64 - 1),
            _ => {}
        }
        Ok(())
    }
}

impl<const DEFECT: u8, M: Medium, K: Key> PmIndex<M, K> for ToyIndex<DEFECT, M, K> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let block = pool.reserve(BLOCK_WORDS as u64 * 8)?;
        let medium = pool.medium();
        medium.fill(pool.words(block, 1)?, &[0; 8]);
        pool.create_root(root, Toy::<DEFECT>::SPEC.kind::<K>(), block)?;
        Ok(Self::new(pool, block))
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let expected = Toy::<DEFECT>::SPEC.kind::<K>();
        let Some(root) = pool.root(root)? else {
            return Err(TreeError::Foreign { expected, found: 0 });
        };
        if root.kind != expected {
            return Err(TreeError::Foreign { expected, found: root.kind });
        }
        let index = Self::new(pool, root.block);
        if opened == Opened::Crashed {
            index.recover()?;
        }
        Ok(index)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.value(key)
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        for (key, value) in keys.iter().zip(values) {
            *value = self.value(*key)?;
        }
        Ok(())
    }

    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let former = self.value(key)?;
        if former.is_none() {
            self.append(PUT, key, value)?;
        }
        Ok(former)
    }

    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((index, PUT, former)) = self.find(key)? else { return Ok(None) };
        if DEFECT == TWO_WORDS {
            let record = self.record(index)?;
            let medium = self.pool.medium();
            medium.store(&record[2], value);
            medium.store(&record[3], value);
            let _ = medium.persist(record);
        } else {
            self.append(PUT, key, value)?;
        }
        Ok(Some(former))
    }

    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let former = self.value(key)?;
        if DEFECT == RASH && former.is_some() {
            self.append(REMOVE, key, 0)?;
        }
        self.append(PUT, key, value)?;
        Ok(former)
    }

    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let former = self.value(key)?;
        if former.is_some() {
            self.append(REMOVE, key, 0)?;
        }
        Ok(former)
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
        let mut stats = TreeStats { leaves: 1, height: 1, blocks: 1, ..TreeStats::default() };
        stats.keys = self.pairs()?.len() as u64;
        stats.pm_bytes = reserved(BLOCK_WORDS as u64 * 8);
        for index in 0..self.count()? {
            if let Some((block, bytes)) = K::entry_block(&self.pool, self.read(index)?.1)? {
                if !self.pool.is_reserved(block) {
                    let (at, what) = (block.offset(), "a key's block is free");
                    return Err(Corrupt { at, what, expected: 1, found: 0 }.into());
                }
                stats.blocks += 1;
                stats.pm_bytes += reserved(bytes);
            }
        }
        Ok(stats)
    }

    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}

/// Returns the size of a block for `bytes`: whole lines up to eight, and steps above.
fn reserved(bytes: u64) -> u64 {
    const SMALL: u64 = 8 * 64;
    const STEP: u64 = 8 * 64;
    if bytes <= SMALL { bytes.next_multiple_of(64) } else { bytes.next_multiple_of(STEP) }
}
