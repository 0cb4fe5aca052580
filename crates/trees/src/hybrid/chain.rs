//! Going through the chain of leaves: to recover them after a crash, and to list them.
//!
//! 1. The chain is followed first, by its links alone: see `links`. Then parts of it are gone through at
//!    the same time. What is done to a leaf needs that leaf and the low key of its right neighbour, and changes
//!    that leaf alone.
//! 2. A leaf is verified before its low key is believed: that key is about to say what is dropped from
//!    the leaf to its left.
//! 3. Leaves to come are asked for ahead of time, and then what comparing their entries reads: so nobody
//!    waits for one record after the other.

use super::recover::out_of_range;
use super::{Hybrid, HybridSpec, LeafRef, ROOT_BYTES};
use crate::index::TreeError;
use crate::inner::Separated;
use crate::key::Key;
use crate::leaf::{Leaf, TaggedEntry};
use crate::parallel::{in_parallel, width};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::cmp::Ordering;

/// The fewest leaves that are worth a thread.
const PART_LEAVES_MIN: usize = 512;
/// How many leaves ahead of the one at hand a leaf is asked for, and what it names.
const LEAF_AHEAD: usize = 8;
const NAMED_AHEAD: usize = 3;
/// Blocks that are marked under one lock, at the least.
const BLOCKS_AT_ONCE: usize = 1024;

/// Leaves that one thread goes through.
struct Part<'a, K: Key> {
    leaves: &'a [PmPtr],
    /// Low key of the first of them.
    low: K::Owned,
    /// Low key of the leaf behind them.
    bound: Option<K::Owned>,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Lists the leaves. After a crash, every leaf is repaired and all that it reaches is marked.
    pub(super) fn load_chain(&self, opened: Opened) -> Result<Vec<Separated>, TreeError> {
        let crashed = opened == Opened::Crashed;
        if crashed {
            self.pool.mark(self.root, ROOT_BYTES)?;
        }
        let chain = self.leaves(crashed)?;
        if self.low(&self.leaf(chain[0])?) != 0 {
            let what = "low key of the first leaf";
            return Err(Corrupt { at: chain[0].offset(), what, expected: 0, found: 1 }.into());
        }
        let width = width::<M>(self.pool.medium().len());
        let share = chain.len().div_ceil(width).max(PART_LEAVES_MIN);
        let parts = chain.chunks(share);
        let lows: Vec<K::Owned> =
            parts.clone().map(|leaves| self.low_key(leaves[0])).collect::<Result<_, _>>()?;
        let bounds = lows.iter().skip(1).cloned().map(Some).chain([None]);
        let parts: Vec<_> = parts
            .zip(lows.iter().cloned())
            .zip(bounds)
            .map(|((leaves, low), bound)| Part { leaves, low, bound })
            .collect();
        let lists = in_parallel(width, &parts, |part| self.go_through_part(part, crashed));
        Ok(lists.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Goes through some leaves; what the inner nodes need of them.
    fn go_through_part(
        &self,
        part: &Part<'_, K>,
        crashed: bool,
    ) -> Result<Vec<Separated>, Corrupt> {
        let mut separated = Vec::with_capacity(part.leaves.len());
        let mut low = part.low.clone();
        let mut entries = Vec::with_capacity(S::Leaf::CAPACITY);
        let mut blocks = Vec::new();
        for (i, &at) in part.leaves.iter().enumerate() {
            if !M::CONTROLS_SCHEDULE {
                self.ask_ahead(&part.leaves[i..], &mut entries)?;
            }
            let leaf = self.leaf(at)?;
            let prefix = K::prefix(K::borrow(&low));
            separated.push(Separated { prefix, word: self.low(&leaf), leaf: at.offset() });
            let bound = match part.leaves.get(i + 1) {
                Some(&next) => Some(self.low_key(next)?),
                None => part.bound.clone(),
            };
            if bound.as_ref().is_some_and(|bound| *bound <= low) {
                let what = "low keys of neighbouring leaves do not increase";
                return Err(Corrupt { at: at.offset(), what, expected: 1, found: 0 });
            }
            if crashed {
                self.recover_leaf(&leaf, &low, bound.as_ref(), &mut entries)?;
                self.reached_from(&leaf, &entries, &mut blocks)?;
                if blocks.len() >= BLOCKS_AT_ONCE {
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

    /// Asks for memory that the leaves to come need; `leaves` begins with the one at hand.
    fn ask_ahead(&self, leaves: &[PmPtr], scratch: &mut Vec<TaggedEntry>) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        if let Some(&far) = leaves.get(LEAF_AHEAD) {
            medium.prefetch(self.leaf(far)?.words);
        }
        if let Some(&near) = leaves.get(NAMED_AHEAD) {
            let leaf = self.leaf(near)?;
            K::prefetch(&self.pool, self.low(&leaf));
            scratch.clear();
            S::Leaf::collect(medium, leaf.words, scratch);
            K::prefetch_last(&self.pool, scratch.iter().map(|held| held.entry));
        }
        Ok(())
    }

    /// The low key of the leaf at `at`, once that is verified.
    fn low_key(&self, at: PmPtr) -> Result<K::Owned, Corrupt> {
        let leaf = self.leaf(at)?;
        S::Leaf::verify(self.pool.medium(), at.offset(), leaf.words)?;
        K::read(&self.pool, self.low(&leaf))
    }

    /// Repairs a leaf; `entries` are those that it has then.
    fn recover_leaf(
        &self,
        leaf: &LeafRef<'_>,
        low: &K::Owned,
        bound: Option<&K::Owned>,
        entries: &mut Vec<TaggedEntry>,
    ) -> Result<(), Corrupt> {
        let pool = &*self.pool;
        self.latch(leaf).reset();
        if let Some(bound) = bound {
            S::Leaf::retain(pool.medium(), leaf.words, &mut |entry| {
                let is_kept = K::order_entry(pool, entry, K::borrow(bound))? == Ordering::Less;
                if !is_kept {
                    // Its neighbour has it, unless damage alone makes it look so.
                    K::verify_entry(pool, entry)?;
                }
                Ok(is_kept)
            })?;
        }
        S::Leaf::repair::<K, M>(pool, leaf.at.offset(), leaf.words)?;
        entries.clear();
        S::Leaf::collect(pool.medium(), leaf.words, entries);
        // The sum has the low word and the entries: what is below the low key was put there by nobody.
        let unsure = if S::Leaf::HAS_CHECKSUM { &[][..] } else { entries };
        for held in unsure {
            if K::order_entry(pool, held.entry, K::borrow(low))? == Ordering::Less {
                return Err(out_of_range(leaf, held.entry));
            }
        }
        Ok(())
    }

    /// Adds the blocks that a leaf with these entries reaches, itself among them.
    fn reached_from(
        &self,
        leaf: &LeafRef<'_>,
        entries: &[TaggedEntry],
        blocks: &mut Vec<(PmPtr, u64)>,
    ) -> Result<(), Corrupt> {
        blocks.push((leaf.at, Self::LEAF_BYTES));
        blocks.extend(K::block(&self.pool, self.low(leaf))?);
        for held in entries {
            blocks.extend(K::entry_block(&self.pool, held.entry)?);
            blocks.extend(K::value_block(&self.pool, held.entry)?);
        }
        Ok(())
    }
}
