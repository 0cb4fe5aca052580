//! A chain of leaves that threads share: readers without latches, leaves that split. In one right
//! version and in several with a defect that only threads can meet.
//!
//! The root block is a word: the first leaf. A leaf:
//!
//! | word | field | class | meaning |
//! | --- | --- | --- | --- |
//! | 0 | next | commit | the leaf to the right |
//! | 1 | low | data | separator of its least key |
//! | 2 | bitmap | commit | which entries are there |
//! | 3 | latch | transient | |
//! | 8 | entries | data | key word, value |
//!
//! An entry at or above the low key of the next leaf is a leftover of a split; recovery drops it.

use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Latch, OnMedium, Version, pin};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use bristlecone_trees::index::{Design, Order, PmIndex, TreeError, TreeStats};
use bristlecone_trees::key::{Entry, Key, mark, mark_entry, retire_entry};
use bristlecone_trees::spec::{Budget, Cost, Spec};
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The defect that a version has.
pub(crate) const NONE: u8 = 0;
/// The latch is released before the commit word is flushed: readers see what a crash loses.
pub(crate) const EARLY_RELEASE: u8 = 1;
/// A reader does not validate the version of what it read.
pub(crate) const NO_VALIDATION: u8 = 2;
/// A writer waits for the latch of a leaf that it found before, whatever happened to it meanwhile.
pub(crate) const STALE_LEAF: u8 = 3;
/// A writer leaves the fence to the thread that fences next.
pub(crate) const FENCE_OF_ANOTHER: u8 = 4;
/// A writer latches a neighbour too, before its leaf or after it in the chain: in either order.
pub(crate) const CIRCLE: u8 = 5;

const CAPACITY: usize = 6;
const NEXT: usize = 0;
const LOW: usize = 1;
const BITMAP: usize = 2;
const LATCH: usize = 3;
const ENTRIES: usize = 8;
const LEAF_WORDS: usize = 24;
const LEAF_BYTES: u64 = 8 * LEAF_WORDS as u64;
const ROOT_BYTES: u64 = 64;

/// The design with a defect.
pub(crate) struct Chain<const DEFECT: u8>;

impl<const DEFECT: u8> Design for Chain<DEFECT> {
    const SPEC: Spec = Spec {
        name: "chain",
        source: "none",
        persistent: true,
        node_bytes: LEAF_BYTES as usize,
        budget: Budget { insert: COST, update: COST, remove: COST },
        relies_on_line_order: false,
        features: &[],
    };
    type Index<M: Medium, K: Key> = ChainIndex<DEFECT, M, K>;
}

const COST: Cost = Cost::new(2, 2);

pub(crate) struct ChainIndex<const DEFECT: u8, M, K> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    key: PhantomData<fn() -> K>,
}

/// The leaf at which a descent arrived.
struct Hop<'a, M> {
    words: &'a [PmWord],
    latch: Latch<OnMedium<'a, M>>,
    seen: Version,
}

impl<const DEFECT: u8, M: Medium, K: Key> ChainIndex<DEFECT, M, K> {
    fn load(&self, word: &PmWord) -> u64 {
        self.pool.medium().load(word)
    }

    fn first(&self) -> Result<PmPtr, Corrupt> {
        Ok(PmPtr::new(self.load(&self.pool.words(self.root, 1)?[0])))
    }

    /// Returns the leaf of `key`, and the version at which it was read.
    fn hop(&self, key: K::Ref<'_>) -> Result<Hop<'_, M>, Corrupt> {
        let mut at = self.first()?;
        loop {
            let words = self.pool.words(at, LEAF_WORDS)?;
            let latch = OnMedium::latch(self.pool.medium(), &words[LATCH], self.pool.nonce());
            let seen = latch.read().expect("no leaf is ever unlinked");
            let next = PmPtr::new(self.load(&words[NEXT]));
            let goes_on = !next.is_null() && {
                let low = self.load(&self.pool.words(next, LEAF_WORDS)?[LOW]);
                K::order(&self.pool, low, key)?.is_le()
            };
            if !goes_on {
                return Ok(Hop { words, latch, seen });
            }
            at = next;
        }
    }

    fn entry(&self, words: &[PmWord], slot: usize) -> Entry {
        let at = ENTRIES + 2 * slot;
        let (key, value) = (self.load(&words[at]), self.load(&words[at + 1]));
        Entry::plain(key, value)
    }

    /// Returns the entries of a leaf with their slots.
    fn entries(&self, words: &[PmWord]) -> Vec<(usize, Entry)> {
        let bitmap = self.load(&words[BITMAP]);
        let slots = (0..CAPACITY).filter(|slot| bitmap & (1 << slot) != 0);
        slots.map(|slot| (slot, self.entry(words, slot))).collect()
    }

    fn find(&self, words: &[PmWord], key: K::Ref<'_>) -> Result<Option<(usize, Entry)>, Corrupt> {
        for (slot, entry) in self.entries(words) {
            if K::order_entry(&self.pool, entry, key)?.is_eq() {
                return Ok(Some((slot, entry)));
            }
        }
        Ok(None)
    }

    /// Does `change` to the latched leaf of `key`; again if it says so.
    fn write<T>(
        &self,
        key: K::Ref<'_>,
        mut change: impl FnMut(&[PmWord]) -> Result<Change<T>, TreeError>,
    ) -> Result<T, TreeError> {
        loop {
            let Hop { words, latch, seen } = self.hop(key)?;
            let held = if DEFECT == STALE_LEAF { latch.lock() } else { latch.upgrade(seen) };
            let Some(held) = held else { continue };
            let _neighbour = match DEFECT {
                CIRCLE => self.neighbour(words)?.and_then(|neighbour| neighbour.lock()),
                _ => None,
            };
            match change(words)? {
                Change::None(answer) => return Ok(answer),
                Change::Again => {}
                Change::Commit(bitmap, answer) => {
                    let medium = self.pool.medium();
                    let word = &words[BITMAP..=BITMAP];
                    medium.commit(&word[0], bitmap, medium.fence());
                    if DEFECT == EARLY_RELEASE {
                        drop(held);
                    } else if DEFECT == FENCE_OF_ANOTHER {
                        medium.flush(word);
                        return Ok(answer);
                    }
                    let _ = medium.persist(word);
                    return Ok(answer);
                }
            }
        }
    }

    /// Returns the latch of the next leaf, or of the first if there is none.
    fn neighbour(&self, words: &[PmWord]) -> Result<Option<Latch<OnMedium<'_, M>>>, Corrupt> {
        let next = PmPtr::new(self.load(&words[NEXT]));
        let at = if next.is_null() { self.first()? } else { next };
        let other = self.pool.words(at, LEAF_WORDS)?;
        let latch = OnMedium::latch(self.pool.medium(), &other[LATCH], self.pool.nonce());
        Ok((!core::ptr::eq(other, words)).then_some(latch))
    }

    fn put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        replace: bool,
        add: bool,
    ) -> Result<Option<u64>, TreeError> {
        let _guard = pin();
        self.write(key, |words| {
            let medium = self.pool.medium();
            if let Some((slot, Entry { value: former, .. })) = self.find(words, key)? {
                if replace {
                    let word = &words[ENTRIES + 2 * slot + 1..][..1];
                    medium.store(&word[0], value);
                    let _ = medium.persist(word);
                }
                return Ok(Change::None(Some(former)));
            }
            let bitmap = self.load(&words[BITMAP]);
            if !add {
                return Ok(Change::None(None));
            }
            let Some(slot) = (0..CAPACITY).find(|slot| bitmap & (1 << slot) == 0) else {
                self.split(words)?;
                return Ok(Change::Again);
            };
            let word = K::store_entry_key(&self.pool, key, value)?;
            let place = &words[ENTRIES + 2 * slot..][..2];
            medium.store(&place[0], word);
            medium.store(&place[1], value);
            medium.flush(place);
            Ok(Change::Commit(bitmap | 1 << slot, None))
        })
    }

    /// ```text
    /// N right leaf, its low key |
    /// C next, F |
    /// C bitmap, F |
    /// ```
    fn split(&self, words: &[PmWord]) -> Result<(), TreeError> {
        let mut entries = Vec::new();
        for (slot, entry) in self.entries(words) {
            entries.push((K::read_entry(&self.pool, entry)?, slot, entry));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let upper = entries.split_off(CAPACITY / 2);
        let right = self.pool.reserve(LEAF_BYTES)?;
        let low = K::store_separator(&self.pool, K::borrow(&upper[0].0))?;
        let mut image = [0; LEAF_WORDS];
        (image[NEXT], image[LOW]) = (self.load(&words[NEXT]), low);
        image[BITMAP] = (1 << upper.len()) - 1;
        for (place, &(_, _, entry)) in upper.iter().enumerate() {
            (image[ENTRIES + 2 * place], image[ENTRIES + 2 * place + 1]) = (entry.key, entry.value);
        }
        let bytes: Vec<u8> = image.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let medium = self.pool.medium();
        medium.fill(self.pool.words(right, LEAF_WORDS)?, &bytes);
        medium.commit(&words[NEXT], right.offset(), medium.fence());
        let fenced = medium.persist(&words[NEXT..=NEXT]);
        let kept = entries.iter().map(|&(_, slot, _)| 1 << slot).sum();
        medium.commit(&words[BITMAP], kept, fenced);
        let _ = medium.persist(&words[BITMAP..=BITMAP]);
        Ok(())
    }

    /// Calls `visit` with each leaf and the separator of the next one.
    fn walk(
        &self,
        mut visit: impl FnMut(PmPtr, &[PmWord], Option<u64>) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let mut at = self.first()?;
        while !at.is_null() {
            let words = self.pool.words(at, LEAF_WORDS)?;
            let next = PmPtr::new(self.load(&words[NEXT]));
            let low = if next.is_null() {
                None
            } else {
                Some(self.load(&self.pool.words(next, LEAF_WORDS)?[LOW]))
            };
            visit(at, words, low)?;
            at = next;
        }
        Ok(())
    }

    /// Returns the pairs of all leaves, each leaf as it was while no writer held it.
    fn certified_pairs(&self) -> Result<BTreeMap<K::Owned, u64>, TreeError> {
        let (mut pairs, mut at) = (BTreeMap::new(), self.first()?);
        while !at.is_null() {
            let words = self.pool.words(at, LEAF_WORDS)?;
            let latch = OnMedium::latch(self.pool.medium(), &words[LATCH], self.pool.nonce());
            loop {
                let seen = latch.read().expect("no leaf is ever unlinked");
                let read = |(_, entry): (usize, Entry)| {
                    Ok::<_, Corrupt>((K::read_entry(&self.pool, entry)?, entry.value))
                };
                let found: Result<Vec<_>, _> = self.entries(words).into_iter().map(read).collect();
                let next = PmPtr::new(self.load(&words[NEXT]));
                if latch.validate(seen) {
                    pairs.extend(found?);
                    at = next;
                    break;
                }
            }
        }
        Ok(pairs)
    }

    fn recover(&self) -> Result<(), TreeError> {
        self.pool.mark(self.root, ROOT_BYTES)?;
        self.walk(|at, words, above| {
            self.pool.mark(at, LEAF_BYTES)?;
            mark::<K, M>(&self.pool, self.load(&words[LOW]))?;
            let (mut bitmap, found) = (self.load(&words[BITMAP]), self.load(&words[BITMAP]));
            for (slot, entry) in self.entries(words) {
                let key = K::read_entry(&self.pool, entry)?;
                let is_left = match above {
                    Some(low) => K::order(&self.pool, low, K::borrow(&key))?.is_le(),
                    None => false,
                };
                if is_left {
                    bitmap &= !(1 << slot);
                } else {
                    mark_entry::<K, M>(&self.pool, entry)?;
                }
            }
            if bitmap != found {
                self.pool.medium().store(&words[BITMAP], bitmap);
                let _ = self.pool.medium().persist(&words[BITMAP..=BITMAP]);
            }
            Ok(())
        })?;
        self.pool.finish_recovery();
        Ok(())
    }
}

/// The change that a writer makes to its leaf.
enum Change<T> {
    /// The bitmap stays as it is.
    None(T),
    /// A new bitmap, which commits the change.
    Commit(u64, T),
    /// The leaf was split: begin again.
    Again,
}

impl<const DEFECT: u8, M: Medium, K: Key> PmIndex<M, K> for ChainIndex<DEFECT, M, K> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let (block, leaf) = (pool.reserve(ROOT_BYTES)?, pool.reserve(LEAF_BYTES)?);
        let medium = pool.medium();
        medium.fill(pool.words(block, 1)?, &leaf.offset().to_le_bytes());
        medium.fill(pool.words(leaf, LEAF_WORDS)?, &[0; LEAF_BYTES as usize]);
        pool.create_root(root, Chain::<DEFECT>::SPEC.kind::<K>(), block)?;
        Ok(Self { pool, root: block, key: PhantomData })
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let expected = Chain::<DEFECT>::SPEC.kind::<K>();
        let found = pool.root(root)?.filter(|root| root.kind == expected);
        let Some(found) = found else { return Err(TreeError::Foreign { expected, found: 0 }) };
        let index = Self { pool, root: found.block, key: PhantomData };
        if opened == Opened::Crashed {
            index.recover()?;
        }
        Ok(index)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let _guard = pin();
        loop {
            let Hop { words, latch, seen } = self.hop(key)?;
            let found = self.find(words, key);
            if DEFECT == NO_VALIDATION || latch.validate(seen) {
                return Ok(found?.map(|(_, entry)| entry.value));
            }
        }
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        keys.iter().zip(values).try_for_each(|(key, value)| {
            *value = self.get(*key)?;
            Ok(())
        })
    }

    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, false, true)
    }

    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, true, false)
    }

    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, true, true)
    }

    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let guard = pin();
        let removed = self.write(key, |words| {
            Ok(match self.find(words, key)? {
                None => Change::None(None),
                Some((slot, entry)) => {
                    Change::Commit(self.load(&words[BITMAP]) & !(1 << slot), Some(entry))
                }
            })
        })?;
        let Some(entry) = removed else { return Ok(None) };
        retire_entry::<K, M>(&self.pool, entry, &guard)?;
        Ok(Some(entry.value))
    }

    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let _guard = pin();
        let pairs = self.certified_pairs()?;
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
        let mut stats = TreeStats { height: 1, ..TreeStats::default() };
        let mut blocks = vec![(self.root, ROOT_BYTES)];
        let mut last: Option<K::Owned> = None;
        self.walk(|at, words, above| {
            stats.leaves += 1;
            blocks.push((at, LEAF_BYTES));
            blocks.extend(K::block(&self.pool, self.load(&words[LOW]))?);
            let mut keys = Vec::new();
            for (_, entry) in self.entries(words) {
                stats.keys += 1;
                blocks.extend(K::entry_block(&self.pool, entry)?);
                keys.push(K::read_entry(&self.pool, entry)?);
            }
            keys.sort();
            for key in keys {
                let corrupt = |what| Corrupt { at: at.offset(), what, expected: 0, found: 1 };
                if last.as_ref().is_some_and(|last| *last >= key) {
                    return Err(corrupt("key out of order").into());
                }
                if let Some(above) = above
                    && K::order(&self.pool, above, K::borrow(&key))?.is_le()
                {
                    return Err(corrupt("key above its leaf").into());
                }
                last = Some(key);
            }
            Ok(())
        })?;
        for (block, bytes) in blocks {
            if !self.pool.is_block(block, bytes) {
                let (at, what) = (block.offset(), "block is free");
                return Err(Corrupt { at, what, expected: 1, found: 0 }.into());
            }
            stats.blocks += 1;
            stats.pm_bytes += self.pool.reserved_bytes(bytes);
        }
        Ok(stats)
    }

    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}
