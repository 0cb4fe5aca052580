//! Creating, opening and checking an index.

use super::micro_log::{LogQueue, MAGIC, MAGIC_AT};
use super::{Hybrid, HybridSpec, LeafRef, Restructuring};
use crate::checkpoint;
use crate::index::{TreeError, TreeStats, find_root};
use crate::inner::{InnerNodes, SeparatedLeaf};
use crate::key::{Entry, Key};
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use std::sync::Arc;

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Creates an empty index. Durable on return.
    ///
    /// ```text
    /// N first leaf, root block      crash before C: both are unreachable, and free again
    /// C root table entry            -> durable
    /// ```
    pub(super) fn create_at(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let leaf = pool.reserve(Self::LEAF_BYTES)?;
        let release_leaf = |_: &PoolError| pool.release(leaf, Self::LEAF_BYTES);
        let block = pool.reserve(Self::ROOT_BYTES).inspect_err(release_leaf)?;
        S::Leaf::format::<K, M>(&pool, pool.words(leaf, S::Leaf::WORDS)?, 0, 0, &[])?;
        let mut root_bytes = vec![0; Self::ROOT_BYTES as usize];
        root_bytes[..8].copy_from_slice(&leaf.offset().to_le_bytes());
        if S::RESTRUCTURING == Restructuring::MicroLogged {
            root_bytes[8 * MAGIC_AT..8 * MAGIC_AT + 8].copy_from_slice(&MAGIC.to_le_bytes());
        }
        pool.medium().fill(pool.words(block, root_bytes.len() / 8)?, &root_bytes);
        pool.create_root(root, S::SPEC.kind::<K>(), block)
            .inspect_err(release_leaf)
            .inspect_err(|_| pool.release(block, Self::ROOT_BYTES))?;
        let first = SeparatedLeaf { prefix: 0, word: 0, leaf: leaf.offset() };
        Ok(Self::assemble(pool, block, S::Inner::build(&[first], K::EXACT)?))
    }

    fn assemble(pool: Arc<Pool<M>>, root: PmPtr, inner: S::Inner<M>) -> Self {
        Self { pool, root, inner, spec: PhantomData, micro_logs: LogQueue::default() }
    }

    /// Opens an index. After a crash, replays micro-logs, repairs and marks every leaf and builds
    /// the inner nodes: O(n), divided among the processors. After a clean close, loads the
    /// checkpoint.
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, S::SPEC.kind::<K>())?;
        let mut index =
            Self::assemble(pool, block, S::Inner::build(&[SeparatedLeaf::default()], K::EXACT)?);
        let saved = match opened {
            Opened::Clean => {
                index.check_micro_logs()?;
                checkpoint::load::<K, M>(&index.pool, &index.root_words()?[1..])
            }
            Opened::Crashed => {
                index.replay_micro_logs()?;
                None
            }
        };
        let leaves = match saved {
            Some(leaves) => leaves,
            None => index.load_chain(opened)?,
        };
        index.inner = S::Inner::build(&leaves, K::EXACT)?;
        if opened == Opened::Crashed {
            index.pool.finish_recovery();
        }
        Ok(index)
    }

    /// Checks invariants 1 and 2 of the engine, and that every block is reserved. Returns the size
    /// of the index.
    pub(super) fn check_all(&self) -> Result<TreeStats, TreeError> {
        let mut stats = TreeStats {
            height: self.inner.height() + 1,
            inner_nodes: self.inner.node_count(),
            dram_bytes: self.inner.dram_bytes(),
            ..TreeStats::default()
        };
        stats.count_block(&self.pool, Some((self.root, Self::ROOT_BYTES)))?;
        self.check_micro_logs()?;
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let by_chain = self.load_chain(Opened::Clean)?;
        if let Some((a, b)) = by_chain.iter().zip(&by_descent).find(|(a, b)| a != b) {
            let what = "descent and chain reach different leaves";
            return Err(Corrupt { at: a.leaf, what, expected: a.leaf, found: b.leaf }.into());
        }
        if by_chain.len() != by_descent.len() {
            let (expected, found) = (by_chain.len() as u64, by_descent.len() as u64);
            let what = "descent and chain reach different numbers of leaves";
            return Err(Corrupt { at: self.root.offset(), what, expected, found }.into());
        }
        for (at, separated) in by_chain.iter().enumerate() {
            let bound = match by_chain.get(at + 1) {
                Some(next) => Some(K::read(&self.pool, next.word)?),
                None => None,
            };
            self.check_leaf(PmPtr::new(separated.leaf), bound.as_ref(), &mut stats)?;
        }
        Ok(stats)
    }

    fn check_leaf(
        &self,
        at: PmPtr,
        bound: Option<&K::Owned>,
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let leaf = self.leaf(at)?;
        S::Leaf::verify(self.pool.medium(), at.offset(), leaf.words)?;
        let low = K::read(&self.pool, self.low(&leaf))?;
        let entries = self.sorted_entries(&leaf)?;
        for &(_, TaggedEntry { entry, .. }) in &entries {
            let key = K::read_entry(&self.pool, entry)?;
            let found = S::Leaf::find::<K, M>(&self.pool, leaf.words, K::borrow(&key))?;
            let is_lost = found.is_none_or(|(_, value)| value != entry.held_value());
            if key < low || bound.is_some_and(|bound| key >= *bound) || is_lost {
                return Err(out_of_range(&leaf, entry));
            }
            stats.count_entry::<K, M>(&self.pool, entry)?;
        }
        stats.leaves += 1;
        stats.keys += entries.len() as u64;
        stats.count_block(&self.pool, Some((at, Self::LEAF_BYTES)))?;
        stats.count_block(&self.pool, K::block(&self.pool, self.low(&leaf))?)
    }
}

pub(super) fn out_of_range(leaf: &LeafRef<'_>, entry: Entry) -> Corrupt {
    let what = "an entry outside its leaf's range, twice in it, or not found by a lookup";
    Corrupt { at: leaf.at.offset(), what, expected: 0, found: entry.key }
}
