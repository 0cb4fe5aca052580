//! Creating, opening, recovering, closing and checking an index.

use super::layout::{self, LbLeaf};
use super::table::{LeafRow, LeafRows};
use super::{InnerNodes256, LbTree, LbTreeIndex};
use crate::index::{Design, TreeError, TreeStats, find_root};
use crate::inner::{InnerNodes, SeparatedLeaf};
use crate::key::{self, Key};
use crate::leaf_table::{KeyedEntries, LeafTable, check_range};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::marker::PhantomData;
use std::sync::Arc;

/// The root block: the offset of the first leaf.
const ROOT_WORDS: usize = 1;
const ROOT_BYTES: u64 = 8 * ROOT_WORDS as u64;

impl<M: Medium, K: Key> LbTreeIndex<M, K> {
    /// Creates an empty index. Durable on return.
    ///
    /// ```text
    /// N first leaf, root block |    crash before C: both are unreachable and free
    /// C root table entry            -> durable
    /// ```
    pub(super) fn create_at(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let leaf = pool.reserve(layout::BYTES)?;
        let release_leaf = |_: &PoolError| pool.release(leaf, layout::BYTES);
        let block = pool.reserve(ROOT_BYTES).inspect_err(release_leaf)?;
        let first = layout::image(PmPtr::NULL, &[]);
        pool.medium().fill(pool.words(leaf, layout::WORDS)?, &first);
        pool.medium().fill(pool.words(block, ROOT_WORDS)?, &leaf.offset().to_le_bytes());
        pool.create_root(root, LbTree::SPEC.kind::<K>(), block)
            .inspect_err(release_leaf)
            .inspect_err(|_| pool.release(block, ROOT_BYTES))?;
        Self::build(pool, block, &[SeparatedLeaf { prefix: 0, word: 0, leaf: leaf.offset() }])
    }

    /// Opens an index: walks the chain of leaves and builds the leaf table and the inner nodes,
    /// also after a clean close. Takes time O(n). Writes nothing. A low key is the least key of its
    /// leaf, and that of the first leaf is the least of all keys.
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, LbTree::SPEC.kind::<K>())?;
        let crashed = opened == Opened::Crashed;
        if crashed {
            pool.mark(block, ROOT_BYTES)?;
        }
        let mut leaves = Vec::new();
        walk::<K, M>(&pool, block, &mut |leaf, pairs| {
            if crashed {
                pool.mark(leaf.at, layout::BYTES)?;
                pairs.iter().try_for_each(|(_, entry)| key::mark_entry::<K, M>(&pool, *entry))?;
            }
            let least = pairs.first().filter(|_| !leaves.is_empty());
            let (prefix, word) =
                least.map_or((0, 0), |(key, entry)| (K::prefix(K::borrow(key)), entry.key));
            leaves.push(SeparatedLeaf { prefix, word, leaf: leaf.at.offset() });
            Ok(())
        })?;
        if crashed {
            pool.finish_recovery();
        }
        Self::build(pool, block, &leaves)
    }

    /// Builds the leaf table and the inner nodes over `leaves`.
    fn build(pool: Arc<Pool<M>>, root: PmPtr, leaves: &[SeparatedLeaf]) -> Result<Self, TreeError> {
        let table = LeafRows::new()?;
        let mut separated = Vec::with_capacity(leaves.len());
        let mut left: Option<LeafRow<'_>> = None;
        for &leaf in leaves {
            let row = table.take::<M>(PmPtr::new(leaf.leaf), leaf.word);
            if let Some(left) = left {
                left.set_next::<M>(Some(row));
            }
            left = Some(row);
            separated.push(SeparatedLeaf { leaf: row.index as u64, ..leaf });
        }
        let inner = InnerNodes256::build(&separated, K::EXACT)?;
        Ok(Self { pool, root, inner, table, key: PhantomData })
    }

    pub(super) fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, ROOT_WORDS)
    }

    /// Returns the block of a low key that no entry of its leaf owns any more.
    fn orphan(&self, row: LeafRow<'_>) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        let low = row.low::<M>();
        if self.leaf(row)?.entries(self.pool.medium()).any(|entry| entry.key == low) {
            return Ok(None);
        }
        K::block(&self.pool, low)
    }

    /// Releases the records of low keys that no entry owns, which the next open will not need.
    pub(super) fn release_orphans(&self) -> Result<(), Corrupt> {
        let mut orphans = Vec::new();
        self.inner.for_each_leaf(&mut |separated| {
            orphans.push(self.orphan(self.table.row(separated.leaf as usize)));
        });
        for orphan in orphans {
            // In a damaged pool the record may be free already, or belong to another entry.
            if let Some((block, bytes)) = orphan?
                && self.pool.is_block(block, bytes)
            {
                self.pool.release(block, bytes);
            }
        }
        Ok(())
    }

    /// Checks that the chain of leaves, the leaf table and the inner nodes agree, and that a lookup
    /// finds each entry. Returns the counts.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, TreeError> {
        let mut stats = TreeStats {
            height: self.inner.height() + 1,
            inner_nodes: self.inner.node_count(),
            dram_bytes: self.inner.dram_bytes() + self.table.bytes(),
            ..TreeStats::default()
        };
        stats.count_block(&self.pool, Some((self.root, ROOT_BYTES)))?;
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let mut rows = by_descent.iter();
        walk::<K, M>(&self.pool, self.root, &mut |leaf, pairs| {
            let Some(separated) = rows.next() else {
                return Err(disagreement(leaf.at, by_descent.len()));
            };
            let row = self.table.row(separated.leaf as usize);
            let low = K::read(&self.pool, row.low::<M>())?;
            let next = self.table.next::<M>(row).map(|next| next.index as u64);
            let is_same = row.leaf::<M>() == leaf.at
                && separated.word == row.low::<M>()
                && separated.prefix == K::prefix(K::borrow(&low))
                && next == rows.as_slice().first().map(|next| next.leaf);
            if !is_same {
                return Err(disagreement(leaf.at, by_descent.len()));
            }
            self.check_leaf(row, leaf, &pairs, &mut stats)
        })?;
        if stats.leaves != by_descent.len() as u64 || stats.leaves != self.table.in_use() {
            return Err(disagreement(self.root, by_descent.len()).into());
        }
        Ok(stats)
    }

    fn check_leaf(
        &self,
        row: LeafRow<'_>,
        leaf: LbLeaf<'_>,
        pairs: &KeyedEntries<K>,
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let copy = self.copy(row)?;
        check_range::<K>(leaf.at, pairs, &copy.low, copy.high.as_ref())?;
        for (key, entry) in pairs {
            let found = leaf.find::<K, M>(&self.pool, K::borrow(key))?;
            if found.is_none_or(|(_, found)| found != *entry) {
                return Err(layout::unfindable(leaf.at, *entry));
            }
            stats.count_entry::<K, M>(&self.pool, *entry)?;
        }
        stats.leaves += 1;
        stats.keys += pairs.len() as u64;
        stats.count_block(&self.pool, Some((leaf.at, layout::BYTES)))?;
        stats.count_block(&self.pool, self.orphan(row)?)
    }
}

/// A function that gets a leaf of the chain and its pairs.
type LeafVisitor<'v, K> = dyn FnMut(LbLeaf<'_>, KeyedEntries<K>) -> Result<(), Corrupt> + 'v;

/// Calls `visit` with each leaf of the chain and its pairs, in key order. The keys ascend along the
/// chain, so the walk ends whatever the pool holds.
///
/// # Errors
/// The chain, a leaf or a key is damaged; or an error of `visit`.
fn walk<K: Key, M: Medium>(
    pool: &Pool<M>,
    root: PmPtr,
    visit: &mut LeafVisitor<'_, K>,
) -> Result<(), Corrupt> {
    let medium = pool.medium();
    let mut at = PmPtr::new(medium.load(&pool.words(root, ROOT_WORDS)?[0]));
    let (mut low, mut is_first) = (K::least(), true);
    loop {
        let leaf = LbLeaf::new(pool, at)?;
        let next = leaf.next(medium);
        if !next.is_null() {
            LbLeaf::new(pool, next)?.prefetch(medium);
        }
        let pairs = leaf.sorted::<K, M>(pool)?;
        check_range::<K>(at, &pairs, &low, None)?;
        let Some((last, _)) = pairs.last() else {
            // Only the only leaf may be empty.
            if !is_first || !next.is_null() {
                let what = "number of entries of one of several leaves";
                return Err(Corrupt { at: at.offset(), what, expected: 1, found: 0 });
            }
            return visit(leaf, pairs);
        };
        if !is_first && pairs[0].0 == low {
            let what = "least key of a leaf, which is the greatest of its left neighbour";
            return Err(Corrupt { at: at.offset(), what, expected: 0, found: pairs[0].1.key });
        }
        (low, is_first) = (last.clone(), false);
        visit(leaf, pairs)?;
        if next.is_null() {
            return Ok(());
        }
        at = next;
    }
}

#[cold]
fn disagreement(at: PmPtr, leaves: usize) -> Corrupt {
    let what = "inner nodes, leaf table and chain disagree";
    Corrupt { at: at.offset(), what, expected: leaves as u64, found: at.offset() }
}
