//! Splits and merges of leaves.

use super::BTreeLsRIndex;
use super::chain::fingerprint_of;
use super::log::lock;
use super::record::{self, Range, base_lines};
use super::table::Row;
use super::tuning::Tuning;
use super::write::{PendingChange, WriteError};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Key};
use crate::leaf_table::Contents;
use crate::leaf_table::KeyedEntries;
use bristlecone_pmem::sync::{Exclusive, Guard, OnDram};
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::cell::Cell;
use core::cmp::Ordering;
use core::sync::atomic::Ordering::Relaxed;

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsRIndex<M, K, NODE, T> {
    /// A leaf with at most this many keys is merged with a neighbour.
    pub(super) const SPARSE: usize = Self::CAPACITY / 4;

    /// The most keys of a merged leaf, so that the next insert does not split it again.
    const MERGED_MAX: usize = Self::CAPACITY * 3 / 4;

    /// Splits a full leaf and inserts a new key. Durable on return.
    ///
    /// ```text
    /// N record of the key, low key, base of the right leaf |   crash before C: unreachable
    /// W C F base of the left leaf: lower half, right leaf
    /// |                          -> durable      budget: lines of both bases, 2 fences
    /// ```
    ///
    /// A key beyond the last one of the rightmost leaf gets a leaf of its own, so ascending inserts
    /// leave full leaves behind.
    #[cold]
    pub(super) fn split(
        &self,
        row: Row<'_>,
        key: K::Ref<'_>,
        incoming: &PendingChange,
        guard: &Guard,
    ) -> Result<(), WriteError> {
        let pool = &*self.pool;
        let range = row.base_in(pool)?.range(pool.medium());
        let mut contents = row.contents::<K, M>(pool)?;
        contents.apply(K::to_owned(key), incoming.change);
        let is_last = |(last, _): &(K::Owned, _)| K::compare(K::borrow(last), key).is_eq();
        let appends = range.right.is_none() && contents.pairs.last().is_some_and(is_last);
        let count = contents.pairs.len();
        let middle = if appends { count - 1 } else { count / 2 };
        let (_, below) = contents.pairs[middle - 1];
        let separator = K::between(pool, below, K::borrow(&contents.pairs[middle].0))?;
        let separator = K::borrow(&separator);
        let upper = contents.pairs.split_off(middle);

        let low =
            K::store_separator(pool, separator).map_err(|full| WriteError::Error(full.into()))?;
        let right = self.next_leaf.fetch_add(1, Relaxed);
        let (index, held) = self.begin_leaf(right);
        let made = self.right_base(right, Range { low, ..range }, &upper).and_then(|at| {
            let _ = pool.medium().fence();
            let range = Range { right: Some(right), low: range.low, high: low };
            let left = self.rewrite(row, row.sequence::<M>() + 1, range, &contents, guard);
            left.inspect_err(|_| self.log.drop_lines(T::log_of(right), base_lines(upper.len())))?;
            Ok(at)
        });
        let Ok(at) = made else {
            self.forget_leaf(right, index, held);
            key::free_separator::<K, M>(pool, low);
            return made.map(drop);
        };
        let fingerprints = upper.iter().map(|(key, _)| fingerprint_of::<K>(key));
        self.table.row(index).set_base::<M>(at, fingerprints, Self::FIRST_SEQUENCE);
        drop(held);
        Ok(self.inner.post::<K>(pool, separator, low, PmPtr::new(index as u64))?)
    }

    /// Takes a row for a new leaf and latches it. So log GC finds the leaf from its first record
    /// on, and waits until the row points to it.
    pub(super) fn begin_leaf(&self, leaf: u64) -> (usize, Exclusive<OnDram<'_, M>>) {
        let index = self.table.take::<M>(leaf);
        let held = lock(&self.table.row(index).latch::<M>());
        self.log.add_leaf(leaf, index);
        (index, held)
    }

    /// Takes back [`begin_leaf`](Self::begin_leaf).
    pub(super) fn forget_leaf(&self, leaf: u64, index: usize, held: Exclusive<OnDram<'_, M>>) {
        self.log.remove_leaf(leaf);
        self.table.row(index).clear_leaf::<M>();
        drop(held);
        self.table.put_back(index);
    }

    /// Appends the base of a leaf that nothing points to yet.
    pub(super) fn right_base(
        &self,
        leaf: u64,
        range: Range,
        upper: &KeyedEntries<K>,
    ) -> Result<PmPtr, WriteError> {
        let items = upper.iter().map(|(_, entry)| entry);
        let image = record::base_image(leaf, Self::FIRST_SEQUENCE, range, items);
        self.append(leaf, &image, 0, false)?
            .map_err(|error| WriteError::of_append(T::log_of(leaf), error))
    }

    /// Merges the leaf that covers `key` with a neighbour, if both fit in one and no thread holds
    /// their latches. Returns the log of the removed leaf.
    #[cold]
    pub(super) fn merge_at(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<Option<usize>, TreeError> {
        let merged = Cell::new(None);
        self.inner.merge_leaves::<K, TreeError>(&self.pool, key, |left, right| {
            let log = self.merge(left.offset() as usize, right.offset() as usize, guard)?;
            merged.set(log);
            Ok(log.is_some())
        })?;
        Ok(merged.get())
    }

    /// Moves the contents of the right leaf to the left one, if all fits and no thread holds a
    /// latch. Returns the right leaf's log if it did. Durable on return.
    ///
    /// ```text
    /// W C F base of the left leaf: all of both, right's right   crash before C: both as before
    /// |              -> durable: the right leaf is unlinked     budget: lines of the base, 1 fence
    /// ```
    fn merge(&self, left: usize, right: usize, guard: &Guard) -> Result<Option<usize>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let (target, source) = (self.table.row(left), self.table.row(right));
        let Some(_left_held) = target.latch::<M>().try_lock() else { return Ok(None) };
        let Some(right_held) = source.latch::<M>().try_lock() else { return Ok(None) };
        let dead = source.leaf::<M>();
        let range = target.base_in(pool)?.range(medium);
        let total = target.size::<M>().live() + source.size::<M>().live();
        if total > Self::MERGED_MAX || range.right != Some(dead) {
            return Ok(None);
        }
        let beyond = source.base_in(pool)?.range(medium);
        let mut contents = target.contents::<K, M>(pool)?;
        let Contents { mut pairs, removed } = source.contents::<K, M>(pool)?;
        let (last, first) = (contents.pairs.last(), pairs.first());
        if last.zip(first).is_some_and(|(last, first)| last.0.cmp(&first.0) != Ordering::Less) {
            let (at, what) =
                (source.base::<M>().offset(), "keys of neighbouring leaves out of order");
            return Err(Corrupt { at, what, expected: 0, found: dead });
        }
        contents.pairs.append(&mut pairs);
        let joined = Range { right: beyond.right, low: range.low, high: beyond.high };
        match self.rewrite(target, target.sequence::<M>() + 1, joined, &contents, guard) {
            Ok(()) => {}
            Err(WriteError::Error(TreeError::Pool(bristlecone_pmem::PoolError::Corrupt(
                corrupt,
            )))) => {
                return Err(corrupt);
            }
            Err(_) => return Ok(None),
        }
        self.log.drop_lines(T::log_of(dead), source.size::<M>().lines());
        self.log.remove_leaf(dead);
        source.clear_leaf::<M>();
        drop(right_held);
        self.table.put_back(right);
        self.retire_all(&removed, guard);
        let _ = key::retire::<K, M>(pool, beyond.low, guard);
        Ok(Some(T::log_of(dead)))
    }
}
