//! A design to test the suite with: one node, as large as necessary, and correct.
//!
//! The node is a block of the pool: words that are a bitmap, then entries of two words each. An
//! entry counts if its bit is set, so the bit is the commit. A map in DRAM, behind a lock, leads
//! from keys to slots; every open rebuilds it. When no slot is free the node is copied to a block
//! of twice the size, when few are taken to one of half the size.
//!
//! Insert: W entry, F entry |, C bit, F bitmap | : 2 lines, 2 fences. Update: C value, F |. Remove:
//! C bit, F |.
//!
//! `FLAW` is the number of its flaw, or 0 for none: see `flaws.rs`. A flaw is a line or two at the
//! place where a real design would have it.

mod recover;

use crate::flaws;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use bristlecone_trees::key::{self, Entry};
use bristlecone_trees::maintenance::{Maintainer, Maintainers};
use bristlecone_trees::{
    Budget, Cost, Design, Key, MaintenanceCost, Order, PmIndex, Spec, TreeError, TreeStats,
};
use core::ops::{Bound, ControlFlow};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// The toy with a flaw, or with none.
#[derive(Debug)]
pub(crate) struct Toy<const FLAW: u32>;

impl<const FLAW: u32> Design for Toy<FLAW> {
    const SPEC: Spec = Spec {
        name: "toy",
        source: "made for the suite",
        persistent: true,
        node_bytes: 4 << 20,
        budget: Budget {
            insert: Cost::new(if FLAW == flaws::BOASTS { 1 } else { 2 }, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(if FLAW == flaws::UNDERSELLS { 2 } else { 1 }, 1),
        },
        relies_on_line_order: false,
        features: &[],
    };
    const MAINTENANCE: Option<MaintenanceCost> = match FLAW {
        flaws::DEFERS_TOO_MUCH => Some(MaintenanceCost { most: Cost::new(0, 0), every: 1 }),
        flaws::DEFERS_TOO_OFTEN => Some(MaintenanceCost { most: Cost::new(1, 0), every: 1000 }),
        flaws::HAS_NO_MAINTAINER.. => {
            Some(MaintenanceCost { most: Cost::new(0, 1), every: UPKEEP_EVERY })
        }
        _ => None,
    };
    type Index<M: Medium, K: Key> = ToyIndex<M, K, FLAW>;
}

/// A toy in a pool.
pub(crate) struct ToyIndex<M, K: Key, const FLAW: u32> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    state: Mutex<State<K>>,
    maintainers: Maintainers,
}

/// The state behind the lock.
struct State<K: Key> {
    node: PmPtr,
    slots: u64,
    places: BTreeMap<K::Owned, u64>,
    free: BTreeSet<u64>,
    /// The value before the last, which a flaw needs.
    former: BTreeMap<K::Owned, u64>,
    gets: u64,
    put_off: PutOff,
}

/// The deferred work, for the flaws that defer: updates, and what they accumulated.
#[derive(Default)]
struct PutOff {
    updates: u64,
    gathered_bytes: u64,
}

/// The number of updates of which one fences once more, in a toy that defers work.
const UPKEEP_EVERY: u64 = 20;

/// The least number of slots: a line of bits, so that no entry lies in two lines.
const SLOTS_MIN: u64 = 512;
const SLOTS_MAX: u64 = 1 << 24;
/// The bytes of the root block: the place of the node, and the number of its slots.
const ROOT_BYTES: u64 = 64;

fn node_bytes(slots: u64) -> u64 {
    slots / 8 + slots * 16
}

impl<M: Medium, K: Key, const FLAW: u32> ToyIndex<M, K, FLAW> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // Waits in rounds that load, as a wait for a latch in the pool does, so that waits are
        // bounded too.
        loop {
            match self.state.try_lock() {
                Ok(state) => return state,
                Err(TryLockError::Poisoned(state)) => return state.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    let _ =
                        self.pool.words(self.root, 1).map(|word| self.pool.medium().load(&word[0]));
                    std::thread::yield_now();
                }
            }
        }
    }

    /// Returns the words of a node: its bitmap, its entries.
    fn node(&self, at: PmPtr, slots: u64) -> Result<(&[PmWord], &[PmWord]), Corrupt> {
        let words = self.pool.words(at, (node_bytes(slots) / 8) as usize)?;
        Ok(words.split_at((slots / 64) as usize))
    }

    fn entry(&self, state: &State<K>, slot: u64) -> Result<Entry, Corrupt> {
        let (_, entries) = self.node(state.node, state.slots)?;
        let words = &entries[slot as usize * 2..][..2];
        let medium = self.pool.medium();
        Ok(Entry::plain(medium.load(&words[0]), medium.load(&words[1])))
    }

    /// Sets or clears the bit of `slot`: the commit.
    fn commit_bit(&self, state: &State<K>, slot: u64, on: bool) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        let word = &self.node(state.node, state.slots)?.0[slot as usize / 64];
        let bit = 1 << (slot % 64);
        let bits = medium.load(word);
        medium.store(word, if on { bits | bit } else { bits & !bit });
        let _ = medium.persist(core::slice::from_ref(word));
        Ok(())
    }

    /// Moves to a node of `slots` slots.
    fn resize(&self, state: &mut State<K>, slots: u64) -> Result<(), TreeError> {
        let to = self.pool.reserve(node_bytes(slots))?;
        let mut words = vec![0; (node_bytes(slots) / 8) as usize];
        let mut places = BTreeMap::new();
        for ((key, &from), slot) in state.places.iter().zip(0..) {
            let entry = self.entry(state, from)?;
            words[(slot / 64) as usize] |= 1 << (slot % 64);
            let at = (slots / 64 + slot * 2) as usize;
            words[at..at + 2].copy_from_slice(&[entry.key, entry.value]);
            places.insert(key.clone(), slot);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let medium = self.pool.medium();
        medium.fill(self.pool.words(to, words.len())?, &bytes);
        let root = self.pool.words(self.root, 1)?;
        // Both in one word, so that one store moves: blocks are multiples of 64.
        medium.commit(&root[0], to.offset() | u64::from(slots.trailing_zeros()), medium.fence());
        let _ = medium.persist(root);
        if FLAW != flaws::LEAKS_NODES {
            self.pool.retire(state.node, node_bytes(state.slots), &self.pool.pin());
        }
        (state.node, state.slots) = (to, slots);
        state.free = (places.len() as u64..slots).collect();
        state.places = places;
        Ok(())
    }

    fn put(&self, state: &mut State<K>, key: K::Ref<'_>, value: u64) -> Result<(), TreeError> {
        if state.free.is_empty() {
            if FLAW == flaws::LOSES_WHEN_FULL {
                state.places.pop_first();
            }
            self.resize(state, state.slots * 2)?;
        }
        let word = K::store_entry_key(&self.pool, key, value)?;
        let slot = state.free.pop_first().expect("there is one now");
        let (_, entries) = self.node(state.node, state.slots)?;
        let medium = self.pool.medium();
        let words = &entries[slot as usize * 2..][..2];
        medium.store(&words[0], word);
        medium.store(&words[1], value);
        let _ = medium.persist(words);
        let flushes_twice =
            matches!(FLAW, flaws::FLUSHES_TWICE | flaws::DEFERS_TOO_MUCH | flaws::DEFERS_TOO_OFTEN);
        if flushes_twice && value.is_multiple_of(50) {
            medium.flush(words);
        }
        if FLAW != flaws::FORGETS_AT_DEATH || state.places.len() % 50 != 49 {
            self.commit_bit(state, slot, true)?;
        }
        state.places.insert(K::to_owned(key), slot);
        Ok(())
    }

    fn set(&self, state: &mut State<K>, slot: u64, value: u64) -> Result<u64, TreeError> {
        let former = self.entry(state, slot)?;
        let (_, entries) = self.node(state.node, state.slots)?;
        let word = &entries[slot as usize * 2 + 1..][..1];
        self.pool.medium().store(&word[0], value);
        let _ = self.pool.medium().persist(word);
        self.maintain(&mut state.put_off);
        Ok(former.value)
    }

    /// Does deferred work: a fence after some updates.
    fn maintain(&self, put_off: &mut PutOff) {
        if FLAW < flaws::HAS_NO_MAINTAINER {
            return;
        }
        put_off.updates += 1;
        if FLAW != flaws::IGNORES_MAINTAINERS && self.maintainers.are_registered::<M>() {
            put_off.gathered_bytes += if FLAW == flaws::GATHERS_FOR_EVER { 64 } else { 0 };
        } else if put_off.updates.is_multiple_of(UPKEEP_EVERY) {
            let _ = self.pool.medium().fence();
        }
    }

    fn unloaded(pool: Arc<Pool<M>>, root: PmPtr) -> Self {
        let state = State {
            node: PmPtr::NULL,
            slots: 0,
            places: BTreeMap::new(),
            free: BTreeSet::new(),
            former: BTreeMap::new(),
            gets: 0,
            put_off: PutOff::default(),
        };
        Self { pool, root, state: Mutex::new(state), maintainers: Maintainers::default() }
    }
}

impl<M: Medium, K: Key, const FLAW: u32> PmIndex<M, K> for ToyIndex<M, K, FLAW> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let block = pool.reserve(ROOT_BYTES)?;
        let node = pool.reserve(node_bytes(SLOTS_MIN))?;
        let medium = pool.medium();
        medium.fill(pool.words(block, 8)?, &[0; 64]);
        medium.fill(
            pool.words(node, (node_bytes(SLOTS_MIN) / 8) as usize)?,
            &vec![0; node_bytes(SLOTS_MIN) as usize],
        );
        let word = pool.words(block, 1)?;
        medium.store(&word[0], node.offset() | u64::from(SLOTS_MIN.trailing_zeros()));
        medium.flush(word);
        pool.create_root(root, <Toy<FLAW>>::SPEC.kind::<K>(), block)?;
        let index = Self::unloaded(pool, block);
        index.load(&mut index.lock(), false)?;
        Ok(index)
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let expected = <Toy<FLAW>>::SPEC.kind::<K>();
        let found = pool.root(root).map_err(TreeError::from)?;
        let found = match found {
            Some(found) if found.kind == expected => found.block,
            other => {
                let found = other.map_or(0, |root| root.kind);
                return Err(TreeError::Foreign { expected, found });
            }
        };
        let index = Self::unloaded(pool, found);
        index.load(&mut index.lock(), opened == Opened::Crashed)?;
        if opened == Opened::Crashed {
            index.pool.finish_recovery();
        }
        Ok(index)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let mut state = self.lock();
        let owned = K::to_owned(key);
        state.gets += 1;
        if FLAW == flaws::READS_STALE
            && state.gets.is_multiple_of(37)
            && let Some(&former) = state.former.get(&owned)
        {
            return Ok(Some(former));
        }
        let Some(&slot) = state.places.get(&owned) else { return Ok(None) };
        if FLAW == flaws::FLUSHES_READS {
            let _ = self.pool.medium().fence();
        }
        let value = self.entry(&state, slot)?.value;
        Ok((FLAW != flaws::ZERO_IS_NONE || value != 0).then_some(value))
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(*key)?;
        }
        Ok(())
    }

    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        if FLAW == flaws::CHECKS_BEFORE_IT_LOCKS {
            if let Some(there) = self.get(key)? {
                return Ok(Some(there));
            }
            std::thread::yield_now();
            return self.upsert(key, value).map(|_| None);
        }
        let mut state = self.lock();
        match state.places.get(&K::to_owned(key)) {
            Some(&slot) => Ok(Some(self.entry(&state, slot)?.value)),
            None => self.put(&mut state, key, value).map(|()| None),
        }
    }

    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let mut state = self.lock();
        let Some(&slot) = state.places.get(&K::to_owned(key)) else { return Ok(None) };
        let former = self.set(&mut state, slot, value)?;
        if FLAW == flaws::READS_STALE {
            state.former.insert(K::to_owned(key), former);
        }
        Ok(Some(former))
    }

    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let mut state = self.lock();
        match state.places.get(&K::to_owned(key)) {
            Some(&slot) => self.set(&mut state, slot, value).map(Some),
            None => self.put(&mut state, key, value).map(|()| None),
        }
    }

    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let mut state = self.lock();
        let Some(slot) = state.places.remove(&K::to_owned(key)) else { return Ok(None) };
        if FLAW == flaws::REMOVES_NEED_ROOM {
            let spare = self.pool.reserve(node_bytes(state.slots))?;
            self.pool.release(spare, node_bytes(state.slots));
        }
        let entry = self.entry(&state, slot)?;
        self.commit_bit(&state, slot, false)?;
        state.free.insert(slot);
        state.former.remove(&K::to_owned(key));
        if FLAW != flaws::LEAKS_KEYS {
            key::retire_entry::<K, M>(&self.pool, entry, &self.pool.pin())?;
        }
        if state.slots > SLOTS_MIN && state.places.len() as u64 * 4 < state.slots {
            // In a full pool the node stays large for now.
            let half = state.slots / 2;
            let _ = self.resize(&mut state, half);
        }
        Ok(Some(entry.value))
    }

    fn bulk_load(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        _fill_percent: u32,
    ) -> Result<(), TreeError> {
        let mut state = self.lock();
        if !state.places.is_empty() {
            return Err(TreeError::NotEmpty);
        }
        let pairs: Vec<_> = pairs.collect();
        if !pairs.is_sorted_by(|before, after| before.0 < after.0) {
            return Err(TreeError::Unsorted);
        }
        for (key, value) in pairs.iter().skip(usize::from(FLAW == flaws::LOADS_TOO_FEW)) {
            self.put(&mut state, K::borrow(key), *value)?;
        }
        Ok(())
    }

    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        // Searches for each key anew from the one before: the scan holds nothing while it shows a
        // pair.
        let (mut from, mut to) = (bounds.0.map(K::to_owned), bounds.1.map(K::to_owned));
        let mut by_rank = 0;
        loop {
            let state = self.lock();
            let next = match order {
                _ if is_empty_range(&from, &to) => None,
                Order::Ascending if FLAW == flaws::SCANS_BY_RANK => {
                    let range = state.places.range((from.clone(), to.clone()));
                    range.into_iter().nth(by_rank)
                }
                Order::Ascending => state.places.range((from.clone(), to.clone())).next(),
                Order::Descending => state.places.range((from.clone(), to.clone())).next_back(),
            };
            by_rank += 1;
            let Some((key, &slot)) = next else { return Ok(()) };
            let key = key.clone();
            let value = self.entry(&state, slot)?.value;
            if FLAW != flaws::SHOWS_UNDER_THE_LOCK {
                drop(state);
            }
            if visit(K::borrow(&key), value).is_break() && FLAW != flaws::NEVER_BREAKS {
                return Ok(());
            }
            match order {
                Order::Ascending if FLAW == flaws::SCANS_BY_RANK => {}
                Order::Ascending => from = Bound::Excluded(key),
                Order::Descending => to = Bound::Excluded(key),
            }
        }
    }

    fn run_maintenance_step(&self) -> Result<bool, TreeError> {
        let mut state = self.lock();
        if FLAW == flaws::LOSES_WHEN_TENDED && !self.maintainers.are_registered::<M>() {
            state.places.pop_first();
        }
        Ok(FLAW == flaws::TENDS_FOR_EVER)
    }

    fn maintainer(&self) -> Option<Maintainer> {
        (FLAW > flaws::HAS_NO_MAINTAINER).then(|| self.maintainers.register())
    }

    fn check(&self) -> Result<TreeStats, TreeError> {
        let state = self.lock();
        let mut census = TreeStats { leaves: 1, height: 1, blocks: 2, ..TreeStats::default() };
        census.pm_bytes = ROOT_BYTES + node_bytes(state.slots) + state.put_off.gathered_bytes;
        for (key, &slot) in &state.places {
            let entry = self.entry(&state, slot)?;
            if let Some((block, bytes)) = K::entry_block(&self.pool, entry)? {
                census.blocks += 1;
                census.pm_bytes += bytes;
                if !self.pool.is_reserved(block) || K::read_entry(&self.pool, entry)? != *key {
                    let (at, what) = (state.node.offset(), "an entry is not where it should be");
                    return Err(Corrupt { at, what, expected: 1, found: slot }.into());
                }
            }
            census.keys += u64::from(FLAW != flaws::MISCOUNTS || slot != 3);
        }
        Ok(census)
    }

    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}

/// Returns `true` for a range that is empty, or for which `BTreeMap::range` would panic.
fn is_empty_range<T: Ord>(from: &Bound<T>, to: &Bound<T>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
        _ => false,
    }
}
