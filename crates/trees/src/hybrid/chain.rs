//! Loading the chain of leaves: repairs them after a crash, and lists them for the inner nodes.
//!
//! 1. First, `links` finds the order of the leaves from their links alone. Then threads load parts
//!    of the chain in parallel. Loading a leaf reads that leaf and the low key of its right
//!    neighbour, and changes that leaf alone, so the parts are independent.
//! 2. A leaf is verified before its low key is used, because that key decides which entries the
//!    left neighbour drops.
//! 3. The walk prefetches leaves, then the records that comparing their keys will read, so that
//!    cache misses overlap.

use super::recover::out_of_range;
use super::{Hybrid, HybridSpec, LeafRef, ROOT_BYTES};
use crate::index::TreeError;
use crate::inner::SeparatedLeaf;
use crate::key::Key;
use crate::leaf::{Leaf, TaggedEntry};
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::cmp::Ordering;

/// The fewest leaves for each thread.
const PART_LEAVES_MIN: usize = 512;
/// The leaves of each part, and the blocks that are marked at once, at a
/// [small scale](Medium::has_small_scale).
const SMALL_PART_LEAVES: usize = 2;
const SMALL_MARK_BATCH: usize = 3;
/// The distance, in leaves, at which a leaf is prefetched before it is loaded.
const LEAF_DISTANCE: usize = 8;
/// The distance, in leaves, at which the records that a leaf names are prefetched.
const RECORD_DISTANCE: usize = 3;
/// The number of collected blocks at which they are marked, all under one lock.
const MARK_BATCH: usize = 1024;

/// A part of the chain, for one thread.
struct Part<'a, K: Key> {
    leaves: &'a [PmPtr],
    /// The low key of the first of these leaves.
    low: K::Owned,
    /// The low key of the leaf behind the last of them; `None` at the end of the chain.
    bound: Option<K::Owned>,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Returns all leaves with their separators, in key order. After a crash this also repairs
    /// every leaf and marks every block that the index reaches.
    pub(super) fn load_chain(&self, opened: Opened) -> Result<Vec<SeparatedLeaf>, TreeError> {
        let crashed = opened == Opened::Crashed;
        if crashed {
            self.pool.mark(self.root, ROOT_BYTES)?;
        }
        let chain = self.leaves(crashed)?;
        if self.low(&self.leaf(chain[0])?) != 0 {
            let what = "low key of the first leaf";
            return Err(Corrupt { at: chain[0].offset(), what, expected: 0, found: 1 }.into());
        }
        let threads = thread_count::<M>(self.pool.medium().len());
        let least = if M::has_small_scale() { SMALL_PART_LEAVES } else { PART_LEAVES_MIN };
        let share = if M::has_small_scale() { least } else { chain.len().div_ceil(threads) };
        let share = share.max(least);
        let parts = chain.chunks(share);
        let lows: Vec<K::Owned> =
            parts.clone().map(|leaves| self.low_key(leaves[0])).collect::<Result<_, _>>()?;
        let bounds = lows.iter().skip(1).cloned().map(Some).chain([None]);
        let parts: Vec<_> = parts
            .zip(lows.iter().cloned())
            .zip(bounds)
            .map(|((leaves, low), bound)| Part { leaves, low, bound })
            .collect();
        let lists = in_parallel(threads, &parts, |part| self.load_part(part, crashed));
        Ok(lists.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Loads one part of the chain; see [`load_chain`](Self::load_chain).
    fn load_part(&self, part: &Part<'_, K>, crashed: bool) -> Result<Vec<SeparatedLeaf>, Corrupt> {
        let mut separated = Vec::with_capacity(part.leaves.len());
        let mut low = part.low.clone();
        let mut entries = Vec::with_capacity(S::Leaf::CAPACITY);
        let mut blocks = Vec::new();
        for (i, &at) in part.leaves.iter().enumerate() {
            if !M::CONTROLS_SCHEDULE {
                self.prefetch_ahead(&part.leaves[i..], &mut entries)?;
            }
            let leaf = self.leaf(at)?;
            let prefix = K::prefix(K::borrow(&low));
            separated.push(SeparatedLeaf { prefix, word: self.low(&leaf), leaf: at.offset() });
            let bound = match part.leaves.get(i + 1) {
                Some(&next) => Some(self.low_key(next)?),
                None if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::PartUnbounded) => {
                    None
                }
                None => part.bound.clone(),
            };
            if bound.as_ref().is_some_and(|bound| *bound <= low) {
                let what = "low keys of neighbouring leaves do not increase";
                return Err(Corrupt { at: at.offset(), what, expected: 1, found: 0 });
            }
            if crashed {
                self.recover_leaf(&leaf, &low, bound.as_ref(), &mut entries)?;
                self.collect_blocks(&leaf, &entries, &mut blocks)?;
                let batch = if M::has_small_scale() { SMALL_MARK_BATCH } else { MARK_BATCH };
                if blocks.len() >= batch {
                    self.pool.mark_all(&blocks)?;
                    blocks.clear();
                }
            }
            let Some(bound) = bound else { break };
            low = bound;
        }
        if crashed {
            self.pool.mark_all(&blocks)?;
        }
        Ok(separated)
    }

    /// Prefetches what loading the next leaves will read. `leaves` begins with the current leaf.
    fn prefetch_ahead(
        &self,
        leaves: &[PmPtr],
        scratch: &mut Vec<TaggedEntry>,
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        if let Some(&far) = leaves.get(LEAF_DISTANCE) {
            medium.prefetch(self.leaf(far)?.words);
        }
        if let Some(&near) = leaves.get(RECORD_DISTANCE) {
            let leaf = self.leaf(near)?;
            K::prefetch(&self.pool, self.low(&leaf));
            scratch.clear();
            S::Leaf::collect(medium, leaf.words, scratch);
            K::prefetch_bound_comparison(&self.pool, scratch.iter().map(|tagged| tagged.entry));
        }
        Ok(())
    }

    /// Verifies the leaf at `at` and returns its low key.
    fn low_key(&self, at: PmPtr) -> Result<K::Owned, Corrupt> {
        let leaf = self.leaf(at)?;
        S::Leaf::verify(self.pool.medium(), at.offset(), leaf.words)?;
        K::read(&self.pool, self.low(&leaf))
    }

    /// Repairs a leaf after a crash. `entries` becomes the list of its valid entries.
    fn recover_leaf(
        &self,
        leaf: &LeafRef<'_>,
        low: &K::Owned,
        bound: Option<&K::Owned>,
        entries: &mut Vec<TaggedEntry>,
    ) -> Result<(), Corrupt> {
        let pool = &*self.pool;
        self.latch(leaf).reset();
        let vouches = M::INJECTS_DEFECTS
            && pool.medium().injects(Defect::LatchVouches)
            && pool.medium().load(&leaf.words[S::Leaf::LATCH]) & 1 == 0;
        if let Some(bound) = bound.filter(|_| !vouches) {
            S::Leaf::retain(pool.medium(), leaf.words, &mut |entry| {
                let is_kept = K::order_entry(pool, entry, K::borrow(bound))? == Ordering::Less;
                if !is_kept {
                    // The right neighbour has this entry, too. But if its key is damaged the
                    // comparison may be wrong, and dropping the entry would lose a pair.
                    K::verify_mismatch(pool, entry, K::borrow(bound))?;
                }
                Ok(is_kept)
            })?;
        }
        S::Leaf::repair::<K, M>(pool, leaf.at.offset(), leaf.words)?;
        entries.clear();
        S::Leaf::collect(pool.medium(), leaf.words, entries);
        // Not needed with a checksum: it covers low key and entries, and no operation stores an
        // entry below the low key.
        let unchecked = if S::Leaf::HAS_CHECKSUM { &[][..] } else { entries };
        for tagged in unchecked {
            if K::order_entry(pool, tagged.entry, K::borrow(low))? == Ordering::Less {
                return Err(out_of_range(leaf, tagged.entry));
            }
        }
        Ok(())
    }

    /// Appends the blocks that a leaf with these entries reaches, its own block included.
    fn collect_blocks(
        &self,
        leaf: &LeafRef<'_>,
        entries: &[TaggedEntry],
        blocks: &mut Vec<(PmPtr, u64)>,
    ) -> Result<(), Corrupt> {
        blocks.push((leaf.at, Self::LEAF_BYTES));
        blocks.extend(K::block(&self.pool, self.low(leaf))?);
        for tagged in entries {
            blocks.extend(K::entry_block(&self.pool, tagged.entry)?);
            blocks.extend(K::value_block(&self.pool, tagged.entry)?);
        }
        Ok(())
    }
}
