//! The leaves of a bulk load: sorted pairs become a chain of new leaves, which an engine then makes
//! the content of its empty tree.
//!
//! 1. Nothing points to a new leaf before the engine publishes the first one. A crash before that
//!    leaves the empty tree, and recovery frees the leaves.
//! 2. A leaf's block is reserved before the leaf to its left is written, whose link names it.

use crate::fingerprint;
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf::TaggedEntry;
use bristlecone_pmem::{Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;

/// A new leaf of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewLeaf {
    pub(crate) at: PmPtr,
    /// The separator word of its least key; `None` for the first leaf.
    pub(crate) separator: Option<u64>,
    /// The prefix of that key; 0 for the first leaf.
    pub(crate) prefix: u64,
}

impl NewLeaf {
    /// Returns the separator word, or 0 for the first leaf.
    pub(crate) fn low(&self) -> u64 {
        self.separator.unwrap_or(0)
    }
}

/// The blocks of a load, to be freed if it fails.
#[derive(Debug, Default)]
pub(crate) struct LoadedBlocks {
    pub(crate) nodes: Vec<PmPtr>,
    /// The logs of nodes, which the engine frees.
    pub(crate) logs: Vec<PmPtr>,
    separators: Vec<u64>,
    /// The entries whose keys may own records.
    entries: Vec<Entry>,
}

impl LoadedBlocks {
    /// Frees the blocks of a load that failed; nodes have `node_bytes` bytes. Nothing points to
    /// them.
    #[cold]
    pub(crate) fn free<K: Key, M: Medium>(&self, pool: &Pool<M>, node_bytes: u64) {
        for &at in &self.nodes {
            pool.release(at, node_bytes);
        }
        for &separator in &self.separators {
            key::free_separator::<K, M>(pool, separator);
        }
        for &entry in &self.entries {
            key::free_entry_key::<K, M>(pool, entry);
        }
    }
}

/// Returns the offset of a leaf's right neighbour, or null.
pub(crate) fn offset_of(next: Option<NewLeaf>) -> PmPtr {
    next.map_or(PmPtr::NULL, |next| next.at)
}

/// An engine, as a load sees its leaves.
pub(crate) trait LeafLoader<M: Medium, K: Key> {
    /// Returns the pool of the tree.
    fn loader_pool(&self) -> &Pool<M>;
    /// Reserves the block of a leaf.
    ///
    /// # Errors
    /// The pool is full.
    fn reserve_new_leaf(&self) -> Result<PmPtr, PoolError>;
    /// Returns the word of a separator for the leaf with the least entry `least`, whose key is
    /// `key`; and `true` if the word may have a record of its own. Default: a new word.
    ///
    /// # Errors
    /// The pool is full.
    fn new_separator(&self, key: K::Ref<'_>, _least: Entry) -> Result<(u64, bool), PoolError> {
        Ok((K::store_separator(self.loader_pool(), key)?, true))
    }
    /// Fills a new leaf, whose entries are in key order. Durable after the next fence.
    ///
    /// # Errors
    /// No leaf can lie at this offset.
    fn write_new_leaf(
        &self,
        leaf: NewLeaf,
        next: Option<NewLeaf>,
        entries: &[TaggedEntry],
    ) -> Result<(), TreeError>;
}

/// Returns the number of entries that make `fill_percent` of `capacity`, at least one.
///
/// # Panics
/// `fill_percent` is not within 1 and 100.
pub(crate) fn filled(capacity: usize, fill_percent: u32) -> usize {
    assert!((1..=100).contains(&fill_percent), "a node is filled to 1 to 100 %");
    (capacity * fill_percent as usize / 100).max(1)
}

/// Writes leaves of `most` of the `pairs` each, the last one with the rest, and returns them in key
/// order. Notes in `blocks` what it has reserved. Durable after the next fence.
///
/// # Errors
/// [`TreeError::Unsorted`], or the pool is full.
pub(crate) fn write_leaves<M: Medium, K: Key, T: LeafLoader<M, K> + ?Sized>(
    tree: &T,
    pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
    most: usize,
    blocks: &mut LoadedBlocks,
) -> Result<Vec<NewLeaf>, TreeError> {
    let pool = tree.loader_pool();
    let reserve =
        |blocks: &mut LoadedBlocks| tree.reserve_new_leaf().inspect(|&at| blocks.nodes.push(at));
    let mut leaves = Vec::new();
    let mut leaf = NewLeaf { at: reserve(blocks)?, separator: None, prefix: 0 };
    let mut entries = Vec::with_capacity(most);
    let mut last: Option<K::Owned> = None;
    for (key, value) in pairs {
        let here = K::borrow(&key);
        if last.is_some_and(|last| K::compare(K::borrow(&last), here) != Ordering::Less) {
            return Err(TreeError::Unsorted);
        }
        let entry = Entry::plain(K::store_entry_key(pool, here, value)?, value);
        if !K::EXACT {
            blocks.entries.push(entry);
        }
        if entries.len() == most {
            let at = reserve(blocks)?;
            let (separator, is_owned) = tree.new_separator(here, entry)?;
            if is_owned {
                blocks.separators.push(separator);
            }
            let next = NewLeaf { at, separator: Some(separator), prefix: K::prefix(here) };
            tree.write_new_leaf(leaf, Some(next), &entries)?;
            leaves.push(core::mem::replace(&mut leaf, next));
            entries.clear();
        }
        entries.push(TaggedEntry { entry, fingerprint: fingerprint::of(K::hash(here)) });
        last = Some(key);
    }
    tree.write_new_leaf(leaf, None, &entries)?;
    leaves.push(leaf);
    Ok(leaves)
}

#[cfg(test)]
mod tests;
