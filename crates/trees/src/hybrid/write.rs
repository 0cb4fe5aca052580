//! Insert, update and upsert, and splitting leaves.

use super::recover::out_of_range;
use super::{Hybrid, HybridSpec, Latched, LeafRef, Restarts, Restructuring};
use crate::fingerprint;
use crate::index::{TreeError, WriteMode};
use crate::inner::{Direction, InnerNodes, LeafRoute, Restart, lock_leaf};
use crate::key::{self, Entry, Key, Value};
use crate::leaf::{InsertResult, Leaf, TaggedEntry};
use crate::sorting::{sort_pairs, sorted_by_keys};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::cmp::Ordering;

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Latches the leaf that covers `key`.
    #[inline(always)]
    pub(super) fn latch_leaf(&self, key: K::Ref<'_>) -> Result<Latched<'_, M>, Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let route = self.inner.seek::<K>(&self.pool, key, Direction::Key)?;
            let latched = if Self::HAS_LOCKS {
                self.wait_at(&route, key, Direction::Key, &mut restarts)?
            } else {
                let leaf = self.leaf(route.leaf)?;
                self.prefetch(leaf.words);
                self.latch_at(leaf, &route, &mut restarts)?
            };
            if let Ok(latched) = latched {
                return Ok(latched);
            }
        }
    }

    /// Waits for the latch of the leaf at the end of `route` and takes it. If the latch is a lock
    /// of the node above, the result is the leaf that `key` leads to by then: see [`lock_leaf`].
    /// Else it may not cover `key` any more; `Restart` if it is obsolete.
    #[inline(always)]
    pub(super) fn wait_at(
        &self,
        route: &LeafRoute,
        key: K::Ref<'_>,
        direction: Direction,
        restarts: &mut Restarts,
    ) -> Result<Result<Latched<'_, M>, Restart>, Corrupt> {
        let leaf = self.leaf_on(route)?;
        if let Some(locks) = self.inner.locks(route.parent) {
            self.prefetch(leaf.words);
            let locked =
                lock_leaf::<M, K, _>(&self.inner, &self.pool, route, locks, key, direction)?;
            return match locked {
                Ok((at, guard)) => Ok(Ok((self.leaf(at)?, guard))),
                Err(Restart) => Ok(Err(Restart)),
            };
        }
        let Some(guard) = self.latch(&leaf).lock() else {
            restarts.count_unlinked(leaf.at)?;
            return Ok(Err(Restart));
        };
        Ok(Ok((leaf, guard)))
    }

    /// Latches `leaf`, which is at the end of `route`. Returns `Restart` if a writer changed the
    /// leaf, or the inner node above it, meanwhile.
    #[inline(always)]
    pub(super) fn latch_at<'a>(
        &'a self,
        leaf: LeafRef<'a>,
        route: &LeafRoute,
        restarts: &mut Restarts,
    ) -> Result<Result<Latched<'a, M>, Restart>, Corrupt> {
        let latch = self.latch(&leaf);
        let Some(version) = self.read_version(&leaf)? else {
            restarts.count_unlinked(route.leaf)?;
            return Ok(Err(Restart));
        };
        let skips_validation = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LeafStale);
        if !skips_validation && !self.inner.is_current(route) {
            return Ok(Err(Restart));
        }
        // `version` was read before `is_current`: at that version the leaf covered the key, and the
        // upgrade fails at any other.
        let latch_guard = if skips_validation { latch.lock() } else { latch.upgrade(version) };
        if S::Leaf::IS_MENDED_BY_WRITERS && latch_guard.is_some() && latch.is_stale(version) {
            S::Leaf::mend(&self.pool, leaf.words);
        }
        Ok(latch_guard.map(|latch_guard| (leaf, latch_guard)).ok_or(Restart))
    }

    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        value: Value,
        mode: WriteMode,
    ) -> Result<Option<Value>, TreeError> {
        let guard = self.pool.pin();
        loop {
            let (leaf, latch_guard) = self.latch_leaf(key)?;
            let found = S::Leaf::find::<K, M>(&self.pool, leaf.words, key)?;
            let Some((slot, old)) = found else {
                if mode != WriteMode::Update {
                    let inserted = S::Leaf::insert::<K, M>(&self.pool, leaf.words, key, value)?;
                    if matches!(inserted, InsertResult::Full)
                        && !self.ensure_space(key, (leaf, latch_guard), Some(value), &guard)?
                    {
                        continue;
                    }
                }
                return Ok(None);
            };
            if mode == WriteMode::Insert
                || S::Leaf::update::<K, M>(&self.pool, leaf.words, slot, value).is_some()
            {
                return Ok(Some(old));
            }
            self.ensure_space(key, (leaf, latch_guard), None, &guard)?;
        }
    }

    /// Makes space in the full leaf that covers `key`. Returns `true` if this has inserted `new` as
    /// well.
    #[cold]
    pub(super) fn ensure_space(
        &self,
        key: K::Ref<'_>,
        (leaf, latch_guard): Latched<'_, M>,
        new: Option<Value>,
        guard: &Guard,
    ) -> Result<bool, TreeError> {
        if S::Leaf::IS_APPEND_ONLY {
            drop(latch_guard);
            let needed = if new.is_some() { 1 } else { S::Leaf::UPDATE_SLOTS };
            self.replace_leaf(key, Self::no_room_for(needed), guard)?;
            return Ok(false);
        }
        if S::RESTRUCTURING == Restructuring::Replacement {
            drop(latch_guard);
            self.split_by_replacement(key, guard)?;
            return Ok(false);
        }
        if S::RESTRUCTURING == Restructuring::MicroLogged {
            self.split_logged(&leaf, latch_guard)?;
            return Ok(false);
        }
        self.split(&leaf, new.map(|value| (key, value)))?;
        Ok(new.is_some())
    }

    /// Splits a full leaf, whose latch the caller holds, and inserts `new`, if there is one.
    /// Durable on return.
    ///
    /// ```text
    /// N right leaf, low key |   its lines   crash before C1: unreachable, free again
    /// C1 next                  8 B          reaches the right leaf; its low key hides the entries
    /// F next |                              of the left leaf from there on
    /// C2 left entries dropped  8 B          crash before C2: recovery drops them
    /// F header |               -> durable   budget: lines of the right leaf + 2, 3 fences
    /// ```
    ///
    /// A new key that belongs in the right leaf is written with it; the fence of C1 then copies a
    /// line of it again if reads wait for a journal. Else the key is inserted into the left leaf
    /// after C2. A new key above all others gets a right leaf of its own, so that ascending inserts
    /// leave full leaves behind.
    ///
    /// # Errors
    /// The pool is full, or damaged. All that a split reads it reads before C1, so that it does not
    /// fail with the link set and the inner nodes without the right leaf.
    #[cold]
    fn split(&self, leaf: &LeafRef<'_>, new: Option<(K::Ref<'_>, Value)>) -> Result<(), TreeError> {
        let entries = self.sorted_entries(leaf)?;
        let [.., _, (_, TaggedEntry { entry: last, .. })] = entries[..] else {
            let (at, what) = (leaf.at.offset(), "number of entries of a full leaf");
            return Err(Corrupt { at, what, expected: 2, found: entries.len() as u64 }.into());
        };
        let appends = match new {
            Some((key, _)) if self.next(leaf).is_null() => {
                K::order_entry(&self.pool, last, key)? == Ordering::Less
            }
            _ => false,
        };
        let middle = if appends { entries.len() } else { entries.len() / 2 };
        let above = match (entries.get(middle), new) {
            (Some((_, tagged)), _) => K::read_entry(&self.pool, tagged.entry)?,
            (None, Some((key, _))) => K::to_owned(key),
            (None, None) => unreachable!("without a new key there is an entry at the middle"),
        };
        let separator = K::between(&self.pool, entries[middle - 1].1.entry, K::borrow(&above))?;
        let separator = K::borrow(&separator);
        let (right_new, left_new) = match new {
            Some((key, _)) if K::compare(key, separator) == Ordering::Less => (None, new),
            _ => (new, None),
        };
        self.check_separator(leaf, entries[middle - 1].1.entry, separator)?;
        let upper: Vec<_> = entries[middle..].iter().map(|(_, tagged)| *tagged).collect();
        let moved: Vec<_> = upper.iter().map(|tagged| tagged.entry).collect();
        let mut is_left = |entry| Ok(!moved.contains(&entry));
        let word = K::store_separator(&self.pool, separator)?;
        let right = self.right_leaf(word, leaf, upper, right_new);
        let medium = self.pool.medium();
        if right.is_err() && M::INJECTS_DEFECTS && medium.injects(Defect::CutWithoutRoom) {
            S::Leaf::retain(medium, leaf.words, &mut is_left)?;
        }
        let right = right.inspect_err(|_| key::free_separator::<K, M>(&self.pool, word))?;
        let right_words = self.pool.words(right, S::Leaf::WORDS)?;
        let next = &leaf.words[S::Leaf::NEXT..=S::Leaf::NEXT];
        medium.commit(&next[0], S::Leaf::encode_next(right.offset()), medium.fence());
        S::Leaf::flush_link(medium, next);
        if right_new.is_some() {
            // Who finds the new key there relies on the link, too.
            medium.flush_for_readers(&right_words[..1]);
        }
        let _ = medium.fence();
        S::Leaf::retain(medium, leaf.words, &mut is_left)?;
        let inserted = match left_new {
            Some((key, value)) => {
                S::Leaf::insert::<K, M>(&self.pool, leaf.words, key, value).map(|_| ())
            }
            None => Ok(()),
        };
        self.inner.post::<K>(&self.pool, separator, word, right)?;
        Ok(inserted?)
    }

    /// Writes the right leaf of a split. Durable after the next fence. Releases what it has
    /// reserved if the pool is full.
    fn right_leaf(
        &self,
        low: u64,
        left: &LeafRef<'_>,
        mut upper: Vec<TaggedEntry>,
        new: Option<(K::Ref<'_>, Value)>,
    ) -> Result<PmPtr, TreeError> {
        let right = self.pool.reserve(Self::LEAF_BYTES)?;
        if let Some((key, value)) = new {
            let word = K::store_entry_key(&self.pool, key, value.word)
                .inspect_err(|_| self.pool.release(right, Self::LEAF_BYTES))?;
            let entry = Entry { key: word, value: value.word, encoding: value.encoding };
            upper.push(TaggedEntry { entry, fingerprint: fingerprint::of(K::hash(key)) });
        }
        let words = self.pool.words(right, S::Leaf::WORDS)?;
        let next = self.next(left).offset();
        let keeps_latch = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::FormerLatch);
        let latch = &words[S::Leaf::LATCH];
        let former = keeps_latch.then(|| self.pool.medium().load(latch));
        S::Leaf::format::<K, M>(&self.pool, words, low, next, &upper)?;
        if let Some(former) = former {
            self.pool.medium().store_transient(latch, former);
        }
        Ok(right)
    }

    /// Returns the entries of a leaf in key order, with the prefixes of their keys. May run while a
    /// writer changes the leaf.
    ///
    /// Reads keys only where prefixes are equal, because reading a record is a cache miss.
    ///
    /// # Errors
    /// An entry is damaged, or two entries have the same key.
    pub(super) fn sorted_entries(
        &self,
        leaf: &LeafRef<'_>,
    ) -> Result<Vec<(u64, TaggedEntry)>, Corrupt> {
        let mut raw = Vec::with_capacity(S::Leaf::CAPACITY);
        S::Leaf::collect(self.pool.medium(), leaf.words, &mut raw);
        for tagged in &raw {
            K::prefetch_entry(&self.pool, tagged.entry);
        }
        let mut prefixes = Vec::with_capacity(raw.len());
        for tagged in &raw {
            prefixes.push(K::entry_prefix(&self.pool, tagged.entry)?);
        }
        let mut sorted = sorted_by_keys(&prefixes, &raw);
        for tied in sorted.chunk_by_mut(|a, b| a.0 == b.0).filter(|tied| tied.len() > 1) {
            let mut keyed = Vec::with_capacity(tied.len());
            for &(prefix, tagged) in &*tied {
                let key = K::read_entry(&self.pool, tagged.entry)?;
                Self::check_fingerprint(leaf.at, tagged, K::borrow(&key))?;
                keyed.push((key, (prefix, tagged)));
            }
            sort_pairs(&mut keyed);
            if let Some(equal) = keyed.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(out_of_range(leaf, equal[1].1.1.entry));
            }
            for (slot, (_, entry)) in tied.iter_mut().zip(keyed) {
                *slot = entry;
            }
        }
        Ok(sorted)
    }
}
