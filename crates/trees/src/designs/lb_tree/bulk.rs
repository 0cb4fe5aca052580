//! Bulk loads: a chain of new leaves takes the place of the only, empty leaf by one store to the
//! root block; rows and inner nodes are built anew.

use super::LbTreeIndex;
use super::layout::{self, CAPACITY};
use super::table::LeafRow;
use crate::bulk::{LeafLoader, LoadedBlocks, NewLeaf, filled, offset_of, write_leaves};
use crate::index::TreeError;
use crate::inner::{InnerNodes, SeparatedLeaf};
use crate::key::{Entry, Key};
use crate::leaf::TaggedEntry;
use crate::leaf_table::latch_leaf;
use bristlecone_pmem::{Medium, PmPtr, Pool, PoolError};

impl<M: Medium, K: Key> LeafLoader<M, K> for LbTreeIndex<M, K> {
    fn loader_pool(&self) -> &Pool<M> {
        &self.pool
    }

    fn reserve_new_leaf(&self) -> Result<PmPtr, PoolError> {
        self.pool.reserve(layout::BYTES)
    }

    /// Returns the key word of the least entry, which owns the record.
    fn new_separator(&self, _: K::Ref<'_>, least: Entry) -> Result<(u64, bool), PoolError> {
        Ok((least.key, false))
    }

    fn write_new_leaf(
        &self,
        leaf: NewLeaf,
        next: Option<NewLeaf>,
        entries: &[TaggedEntry],
    ) -> Result<(), TreeError> {
        let words = self.pool.block(leaf.at, layout::WORDS)?;
        self.pool.medium().fill(words, &layout::image(offset_of(next), entries));
        Ok(())
    }
}

impl<M: Medium, K: Key> LbTreeIndex<M, K> {
    /// Fills the empty index with `pairs`, and each leaf to `fill_percent` of its capacity.
    ///
    /// ```text
    /// N leaves, key records                 crash before C: the index is empty
    /// |
    /// C first leaf in the root block        8 B
    /// F root block |                        -> durable   budget: lines of the leaves + 1, 2 fences
    /// ```
    pub(super) fn load_pairs(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        let most = filled(CAPACITY, fill_percent);
        let mut blocks = LoadedBlocks::default();
        let shown =
            write_leaves(self, pairs, most, &mut blocks).and_then(|leaves| self.show(&leaves));
        shown.inspect_err(|_| blocks.free::<K, M>(&self.pool, layout::BYTES))
    }

    /// Makes `leaves` the leaves of the index, if it is still empty.
    fn show(&self, leaves: &[NewLeaf]) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        let least = K::least();
        let (row, held) = latch_leaf(self, K::borrow(&least), |_| ())?;
        let (medium, only) = (self.pool.medium(), row.leaf::<M>());
        let is_only = row.low::<M>() == 0 && self.table.next::<M>(row).is_none();
        if !is_only || self.leaf(row)?.count(medium) > 0 {
            return Err(TreeError::NotEmpty);
        }
        let separated = self.new_rows(leaves);
        let root = self.root_words()?;
        let child = PmPtr::new(row.index as u64);
        let is_shown = self.inner.load::<K>(&self.pool, child, &separated, &mut || {
            medium.commit(&root[0], leaves[0].at.offset(), medium.fence());
            let _ = medium.persist(root);
            true
        })?;
        if !is_shown {
            for leaf in &separated {
                self.table.put_back(leaf.leaf as usize);
            }
            return Err(TreeError::NotEmpty);
        }
        row.clear_leaf::<M>();
        self.pool.retire(only, layout::BYTES, &guard);
        drop(held);
        self.table.put_back(row.index);
        Ok(())
    }

    /// Takes a row for each of `leaves`.
    fn new_rows(&self, leaves: &[NewLeaf]) -> Vec<SeparatedLeaf> {
        let mut separated = Vec::with_capacity(leaves.len());
        let mut left: Option<LeafRow<'_>> = None;
        for leaf in leaves {
            let row = self.table.take::<M>(leaf.at, leaf.low());
            if let Some(left) = left.replace(row) {
                left.set_next::<M>(Some(row));
            }
            let (prefix, word) = (leaf.prefix, leaf.low());
            separated.push(SeparatedLeaf { prefix, word, leaf: row.index as u64 });
        }
        separated
    }
}
