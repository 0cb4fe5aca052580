//! Splits and merges of leaves.

use super::BTreeLsIndex;
use super::chain::{Contents, print};
use super::record::{self, Range, base_lines};
use super::table::Row;
use super::tuning::Tuning;
use super::write::{PendingChange, WriteError};
use crate::index::TreeError;
use crate::key::{self, Key};
use crate::leaf_table::KeyedEntries;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::cell::Cell;
use core::cmp::Ordering;
use core::sync::atomic::Ordering::Relaxed;

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsIndex<M, K, NODE, T> {
    /// A leaf is merged with a neighbour once there are no more keys in it than this.
    pub(super) const SPARSE: usize = Self::CAPACITY / 4;

    /// A merged leaf is left with room, so that the next insert does not split it again.
    const MERGED_MAX: usize = Self::CAPACITY * 3 / 4;

    /// Puts a new key into a leaf that is full. Durable at return.
    ///
    /// ```text
    /// N record of the key, low key, base of the right leaf |   crash before C: no leaf leads to it
    /// W C F base of the left leaf: lower half, right leaf
    /// |                          -> durable      budget: lines of both bases, 2 fences
    /// ```
    ///
    /// A key that lies beyond all others gets a leaf of its own, so that ascending inserts leave full
    /// leaves behind.
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
        let made = self.right_base(right, Range { low, ..range }, &upper).and_then(|at| {
            let _ = pool.medium().fence();
            let range = Range { right: Some(right), low: range.low, high: low };
            let left = self.rewrite(row, row.sequence::<M>() + 1, range, &contents, guard);
            left.inspect_err(|_| self.log.drop_lines(T::log_of(right), base_lines(upper.len())))?;
            Ok(at)
        });
        let at = made.inspect_err(|_| key::free_separator::<K, M>(pool, low))?;

        let index = self.table.take::<M>(right);
        let prints = upper.iter().map(|(key, _)| print::<K>(key));
        self.table.row(index).set_base::<M>(at, prints, Self::FIRST_SEQUENCE);
        self.log.add_leaf(right, index);
        Ok(self.inner.post::<K>(pool, separator, low, PmPtr::new(index as u64))?)
    }

    /// Appends the base of a leaf that nothing leads to yet.
    fn right_base(
        &self,
        leaf: u64,
        range: Range,
        upper: &KeyedEntries<K>,
    ) -> Result<PmPtr, WriteError> {
        let items = upper.iter().map(|(_, entry)| entry);
        let image = record::base_image(leaf, Self::FIRST_SEQUENCE, range, items);
        self.append(leaf, &image, 0, false)?
            .map_err(|refused| WriteError::refused(T::log_of(leaf), refused))
    }

    /// Joins the leaf that covers `key` with a neighbour, if they fit and nobody is at them; gives the
    /// log of the leaf that is no more.
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

    /// Takes what the right leaf holds into the left one, which takes its place, if all fits and nobody
    /// holds a latch; gives the right leaf's log if it did. Durable at return.
    ///
    /// ```text
    /// W C F base of the left leaf: all of both, leaf after the right one   crash before C: both as before
    /// |              -> durable: no leaf leads to the right one     budget: lines of the base, 1 fence
    /// ```
    fn merge(&self, left: usize, right: usize, guard: &Guard) -> Result<Option<usize>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let (target, source) = (self.table.row(left), self.table.row(right));
        let Some(_left_held) = target.latch::<M>().try_lock() else { return Ok(None) };
        let Some(right_held) = source.latch::<M>().try_lock() else { return Ok(None) };
        let dead = source.leaf::<M>();
        let range = target.base_in(pool)?.range(medium);
        let total = target.shape::<M>().live() + source.shape::<M>().live();
        if total > Self::MERGED_MAX || range.right != Some(dead) {
            return Ok(None);
        }
        let beyond = source.base_in(pool)?.range(medium);
        let mut contents = target.contents::<K, M>(pool)?;
        let Contents { mut pairs, gone } = source.contents::<K, M>(pool)?;
        let (last, first) = (contents.pairs.last(), pairs.first());
        if last.zip(first).is_some_and(|(last, first)| last.0.cmp(&first.0) != Ordering::Less) {
            let (at, what) = (source.base::<M>().offset(), "keys of neighbouring leaves");
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
        self.log.drop_lines(T::log_of(dead), source.shape::<M>().lines());
        self.log.remove_leaf(dead);
        source.leave::<M>();
        drop(right_held);
        self.table.put_back(right);
        self.retire_all(&gone, guard);
        let _ = key::retire::<K, M>(pool, beyond.low, guard);
        Ok(Some(T::log_of(dead)))
    }
}
