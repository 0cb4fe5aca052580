//! Checking an index.

use super::CellTreeIndex;
use super::epoch::Ended;
use super::leaf::{CellLeaf, disagreement, unfindable};
use super::leaf_table::sorted_entries;
use super::recover::walk;
use super::rows::{LeafWords, Notes};
use super::word::{CellKind, CellLayout, with_kind};
use crate::index::{TreeError, TreeStats};
use crate::inner::InnerNodes;
use crate::key::Key;
use crate::leaf_table::check_range;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Checks that the chain of leaves, the leaf words and the inner nodes agree, that sums fit,
    /// and that a lookup finds each entry. Returns the counts.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, TreeError> {
        self.visit_all()?;
        let mut stats = TreeStats {
            height: self.inner.height() + 1,
            inner_nodes: self.inner.node_count(),
            dram_bytes: self.inner.dram_bytes() + self.rows.bytes(),
            ..TreeStats::default()
        };
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let mut descents = by_descent.iter();
        walk::<K, M>(&self.pool, self.first, BYTES, &mut |leaf, (low, word), high| {
            leaf.prefetch_all(self.pool.medium());
            let (_, kind) = leaf.header(self.pool.medium())?;
            let is_same = descents.next().is_some_and(|separated| {
                separated.leaf == leaf.at.offset()
                    && separated.word == word
                    && separated.prefix == K::prefix(K::borrow(low))
            });
            if !is_same {
                return Err(disagreement(leaf.at, by_descent.len()));
            }
            let row = self.row_at(leaf.at);
            let notes = row.notes::<M>();
            let prefix = |key| K::prefix(K::borrow(key));
            let is_bound = |bound: u64| bound == kind.kept(high.map_or(0, prefix));
            let bound = notes.bound().filter(|_| kind == CellKind::Dense);
            if kind != notes.kind::<K>() || !bound.is_none_or(is_bound) {
                return Err(disagreement(leaf.at, 0));
            }
            let pairs = sorted_entries::<K, M>(&self.pool, leaf, notes)?;
            check_range::<K>(leaf.at, &pairs, low, high)?;
            let counts = &mut stats;
            with_kind!(kind, C => self.check_leaf::<C>(leaf, (row, notes), counts))?;
            stats.count_block(&self.pool, K::block(&self.pool, word)?)
        })?;
        if stats.leaves != by_descent.len() as u64 {
            return Err(disagreement(self.first, by_descent.len()).into());
        }
        Ok(stats)
    }

    /// Checks one leaf and counts its entries and blocks.
    fn check_leaf<C: CellLayout>(
        &self,
        leaf: CellLeaf<'_>,
        (row, notes): (LeafWords<'_>, Notes),
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        leaf.verify_used::<C, M>(medium)?;
        for cell in 0..leaf.cells() {
            leaf.cell::<C>(cell).settled::<K, M>(&self.pool, Ended::ALL)?;
        }
        let entries: Vec<_> = leaf.entries::<C, M>(medium, notes).collect();
        if notes.count::<C>() != entries.len() {
            return Err(disagreement(leaf.at, entries.len()));
        }
        for placed in &entries {
            let found = K::with_entry(&self.pool, placed.entry, |key| {
                let hash = K::hash(key);
                let place = (Self::candidates(hash), hash);
                leaf.find::<C, K, M>(&self.pool, (row, notes), place, key)
            })??;
            if found != Some(*placed) {
                return Err(unfindable(leaf.at, placed.entry));
            }
            stats.count_entry::<K, M>(&self.pool, placed.entry)?;
        }
        stats.leaves += 1;
        stats.keys += entries.len() as u64;
        stats.count_block(&self.pool, Some((leaf.at, BYTES as u64)))
    }
}
