//! Splits and merges of leaves.

use super::BTreeLsIndex;
use super::chain::FoldedChain;
use super::record::{self, BaseOrigin, LeafRange};
use super::table::ChainRow;
use super::tuning::LsOptions;
use super::write::NotWritten;
use crate::designs::btree_ls_r::log::lock;
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Entry, Key};
use crate::leaf_table::{Contents, KeyedEntries};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::cell::RefCell;
use core::cmp::Ordering;
use core::sync::atomic::Ordering::Relaxed;

/// A leaf that replaces another one: its number, its base in the log, and the base's lines.
#[derive(Clone, Copy, Debug)]
struct NewHalf {
    leaf: u64,
    at: PmPtr,
    lines: usize,
}

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> BTreeLsIndex<M, K, NODE, T> {
    /// A leaf with at most this many keys is merged with a neighbour.
    pub(super) const SPARSE: usize = Self::CAPACITY / 4;

    /// The most keys of a merged leaf, so that the next insert does not split it again.
    const MERGED_MAX: usize = Self::CAPACITY / 2;

    /// Splits a leaf into two new ones of equal size, with the contents after a change. Durable on
    /// return.
    ///
    /// ```text
    /// N low key of the second leaf
    /// W C F bases of both leaves |       crash before C: they wait for the end of the old leaf
    /// W C F end record of the old leaf
    /// |                          -> durable      budget: lines of both bases + 1, 2 fences
    /// ```
    #[cold]
    pub(super) fn split(
        &self,
        row: ChainRow<'_>,
        range: LeafRange,
        contents: &Contents<K>,
        guard: &Guard,
        touched: &mut Vec<usize>,
    ) -> Result<(), NotWritten> {
        let pool = &*self.pool;
        let (lower, upper) = contents.pairs.split_at(contents.pairs.len() / 2);
        let separator = K::between(pool, lower[lower.len() - 1].1, K::borrow(&upper[0].0))?;
        let separator = K::borrow(&separator);
        let low =
            K::store_separator(pool, separator).map_err(|full| NotWritten::Error(full.into()))?;
        let ranges =
            [LeafRange { low: range.low, high: Some(low) }, LeafRange { low, high: range.high }];
        let leaves = [0; 2].map(|_| self.next_leaf.fetch_add(1, Relaxed));
        let old = row.leaf::<M>();
        // Log GC finds both leaves from their first record on, and waits for the latches of their
        // rows.
        let second = self.table.take();
        let second_row = self.table.row(second);
        let second_held = lock(&second_row.latch::<M>());
        second_row.begin::<M>(leaves[1]);
        if let Some(index) = self.log.leaf(old) {
            self.log.add_leaf(leaves[0], index);
        }
        self.log.add_leaf(leaves[1], second);
        match self.write_halves(old, leaves, ranges, [lower, upper]) {
            Ok([first, second_half]) => {
                self.log.drop_lines(T::log_of(old), row.size::<M>().lines);
                self.log.remove_leaf(old);
                let former = row.after::<M>();
                row.set_base::<M>(first.leaf, first.at, lower.len(), Some(old));
                second_row.set_base::<M>(second_half.leaf, second_half.at, upper.len(), Some(old));
                drop(second_held);
                self.confirm(former, touched);
                touched.extend(leaves.map(T::log_of));
                self.retire_all(&contents.removed, guard);
                let index = PmPtr::new(second as u64);
                Ok(self.inner.post::<K>(pool, separator, low, index)?)
            }
            Err(error) => {
                for leaf in leaves {
                    self.log.remove_leaf(leaf);
                }
                second_row.clear_leaf::<M>();
                drop(second_held);
                self.table.put_back(second);
                key::free_separator::<K, M>(pool, low);
                Err(error)
            }
        }
    }

    /// Makes the two leaves that replace leaf `old` durable, and its end.
    fn write_halves(
        &self,
        old: u64,
        leaves: [u64; 2],
        ranges: [LeafRange; 2],
        pairs: [&[(K::Owned, Entry)]; 2],
    ) -> Result<[NewHalf; 2], NotWritten> {
        let origin = BaseOrigin { previous: PmPtr::NULL, after: Some(old) };
        let drop_half = |half: NewHalf| self.log.drop_lines(T::log_of(half.leaf), half.lines);
        let first = self.append_base(leaves[0], origin, ranges[0], pairs[0])?;
        let second = self
            .append_base(leaves[1], origin, ranges[1], pairs[1])
            .inspect_err(|_| drop_half(first))?;
        let _ = self.pool.medium().fence();
        self.end(old, leaves.map(Some)).inspect_err(|_| {
            drop_half(first);
            drop_half(second);
        })?;
        Ok([first, second])
    }

    /// Appends a base of a leaf that does not count yet.
    fn append_base(
        &self,
        leaf: u64,
        origin: BaseOrigin,
        range: LeafRange,
        pairs: &[(K::Owned, Entry)],
    ) -> Result<NewHalf, NotWritten> {
        let items = pairs.iter().map(|(_, entry)| entry);
        let image = record::base_image(leaf, origin, range, items);
        let at = self.append(leaf, &image, 0, false)?.map_err(|error| Self::failed(leaf, error))?;
        Ok(NewHalf { leaf, at, lines: record::lines_of(&image) })
    }

    /// Ends leaf `leaf`: the bases of its successors count. Durable on return.
    fn end(&self, leaf: u64, successors: [Option<u64>; 2]) -> Result<(), NotWritten> {
        self.log.add_end(leaf, successors.iter().flatten().count() as u8);
        let image = record::end_image(leaf, successors);
        let ended = self.append(leaf, &image, 0, false).map_err(NotWritten::from);
        let ended = ended.and_then(|ended| ended.map_err(|error| Self::failed(leaf, error)));
        ended.inspect_err(|_| self.log.remove_end(leaf))?;
        let _ = self.pool.medium().fence();
        Ok(())
    }

    /// Merges the leaf that covers `key` with a neighbour, if both fit in one and no thread holds
    /// their latches.
    #[cold]
    pub(super) fn merge_at(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
        touched: &mut Vec<usize>,
    ) -> Result<(), TreeError> {
        let touched = RefCell::new(touched);
        self.inner.merge_leaves::<K, TreeError>(&self.pool, key, |left, right| {
            let (left, right) = (left.offset() as usize, right.offset() as usize);
            Ok(self.merge(left, right, guard, &mut touched.borrow_mut())?)
        })
    }

    /// Moves the contents of the right leaf to the left one, if all fits and no thread holds a
    /// latch. Returns `true` if it did. Durable on return.
    ///
    /// ```text
    /// W C F base of the left leaf: all of both |   crash before C: it waits for the right's end
    /// W C F end record of the right leaf
    /// |              -> durable               budget: lines of the base + 1, 2 fences
    /// ```
    fn merge(
        &self,
        left: usize,
        right: usize,
        guard: &Guard,
        touched: &mut Vec<usize>,
    ) -> Result<bool, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let (target, source) = (self.table.row(left), self.table.row(right));
        let Some(_left_held) = target.latch::<M>().try_lock() else { return Ok(false) };
        let Some(right_held) = source.latch::<M>().try_lock() else { return Ok(false) };
        let [into, dead] = [target, source].map(ChainRow::leaf::<M>);
        if target.size::<M>().live + source.size::<M>().live > Self::MERGED_MAX {
            return Ok(false);
        }
        let [target_chain, source_chain] =
            [target, source].map(|row| FoldedChain::<K>::read(pool, row.head::<M>()));
        let (target_chain, source_chain) = (target_chain?, source_chain?);
        let (mut contents, beyond) = (target_chain.contents, source_chain.base.range(medium));
        let Contents { pairs, removed } = source_chain.contents;
        let joined = LeafRange { high: beyond.high, ..target_chain.base.range(medium) };
        Self::check_order(&contents.pairs, &pairs, source_chain.base.at)?;
        contents.pairs.extend(pairs);
        let is_cut = M::INJECTS_DEFECTS && medium.injects(Defect::LsMergeCut);
        let previous = if is_cut { PmPtr::NULL } else { target.head::<M>() };
        let origin = BaseOrigin { previous, after: Some(dead) };
        let base = match self.append_base(into, origin, joined, &contents.pairs) {
            Ok(base) => base,
            Err(error) => return error.lacks_space().map(|()| false),
        };
        let _ = medium.fence();
        if let Err(error) = self.end(dead, [Some(into), None]) {
            self.log.drop_lines(T::log_of(into), base.lines);
            return error.lacks_space().map(|()| false);
        }
        self.replace(target, base.at, &contents, Some(dead), touched);
        self.log.drop_lines(T::log_of(dead), source.size::<M>().lines);
        self.log.remove_leaf(dead);
        self.confirm(source.after::<M>(), touched);
        touched.extend([into, dead].map(T::log_of));
        source.clear_leaf::<M>();
        drop(right_held);
        self.table.put_back(right);
        self.retire_all(&contents.removed, guard);
        self.retire_all(&removed, guard);
        let _ = key::retire::<K, M>(pool, beyond.low, guard);
        Ok(true)
    }

    /// Checks that the keys of a leaf are below those of its right neighbour.
    fn check_order(
        left: &KeyedEntries<K>,
        right: &KeyedEntries<K>,
        at: PmPtr,
    ) -> Result<(), Corrupt> {
        let ends = left.last().zip(right.first());
        if ends.is_none_or(|(last, first)| last.0.cmp(&first.0) == Ordering::Less) {
            return Ok(());
        }
        let what = "keys of neighbouring leaves out of order";
        Err(Corrupt { at: at.offset(), what, expected: 0, found: 1 })
    }
}
