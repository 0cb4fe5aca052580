//! Loading the chain of leaves: repairs them after a crash, and lists them for the inner nodes.
//!
//! 1. First, `links` finds the order of the leaves and their low keys from their links alone. Then
//!    threads load parts of the chain in parallel. Loading a leaf changes that leaf alone, so the
//!    parts are independent.
//! 2. A thread loads the leaves of its part in the order of their offsets, because neighbours in
//!    key order lie all over the pool. So it reads the pool once from its beginning to its end.
//! 3. A leaf may thus be loaded before its right neighbour is verified. The neighbour's low key
//!    decides which entries the leaf drops, so the neighbour is verified before any is dropped. If
//!    none is, a damaged low key has changed nothing, and loading the neighbour finds the damage.
//! 4. Leaves are prefetched, then the records that comparing their keys will read, so that cache
//!    misses overlap.

use super::links::Link;
use super::recover::out_of_range;
use super::{Hybrid, HybridSpec, LeafRef};
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
/// The number of leaves that are prefetched while as many are loaded.
const BATCH_LEAVES: usize = 16;
/// The distance, in leaves, at which the record of a low key is prefetched.
const LOW_DISTANCE: usize = 16;
/// The number of collected blocks at which they are marked, all under one lock.
const MARK_BATCH: usize = 1024;

/// A part of the chain, for one thread.
struct Part<'a> {
    /// The leaves of the part, and the one behind them, if there is one.
    links: &'a [Link],
    /// The number of leaves of the part.
    count: usize,
}

/// A leaf that is being loaded.
#[derive(Default)]
struct Loaded {
    entries: Vec<TaggedEntry>,
    /// `true` if some entries may lie at or above the low key of the right neighbour.
    may_drop: bool,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Returns all leaves with their separators, in key order. After a crash this also repairs
    /// every leaf and marks every block that the index reaches.
    pub(super) fn load_chain(&self, opened: Opened) -> Result<Vec<SeparatedLeaf>, TreeError> {
        let crashed = opened == Opened::Crashed;
        if crashed {
            self.pool.mark(self.root, Self::ROOT_BYTES)?;
        }
        let chain = self.links(crashed)?;
        if chain[0].low != 0 {
            let what = "low key of the first leaf";
            return Err(Corrupt { at: chain[0].at.offset(), what, expected: 0, found: 1 }.into());
        }
        let threads = thread_count::<M>(self.pool.medium().len());
        let least = if M::has_small_scale() { SMALL_PART_LEAVES } else { PART_LEAVES_MIN };
        let share = if M::has_small_scale() { least } else { chain.len().div_ceil(threads) };
        let share = share.max(least);
        let parts: Vec<_> = (0..chain.len())
            .step_by(share)
            .map(|first| {
                let mut links = &chain[first..chain.len().min(first + share + 1)];
                let count = links.len().min(share);
                if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::PartUnbounded) {
                    links = &links[..count];
                }
                Part { links, count }
            })
            .collect();
        let lists = in_parallel(threads, &parts, |part| self.load_part(part, crashed));
        Ok(lists.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Loads one part of the chain; see [`load_chain`](Self::load_chain).
    fn load_part(&self, part: &Part<'_>, crashed: bool) -> Result<Vec<SeparatedLeaf>, Corrupt> {
        let mut separated = self.separators(part.links)?;
        let mut order: Vec<usize> = (0..part.count).collect();
        if !M::CONTROLS_SCHEDULE || M::has_small_scale() {
            order.sort_unstable_by_key(|&at| separated[at].leaf);
        }
        let mut batch: [Loaded; BATCH_LEAVES] = Default::default();
        let mut blocks = Vec::new();
        for (number, leaves) in order.chunks(BATCH_LEAVES).enumerate() {
            if !M::CONTROLS_SCHEDULE {
                for &at in order.iter().skip((number + 1) * BATCH_LEAVES).take(BATCH_LEAVES) {
                    let leaf = self.leaf(PmPtr::new(separated[at].leaf))?;
                    self.pool.medium().prefetch(leaf.words);
                }
            }
            for (&at, loaded) in leaves.iter().zip(&mut batch) {
                self.verify_and_collect(separated[at], separated.get(at + 1), crashed, loaded)?;
            }
            if !crashed {
                continue;
            }
            for (&at, loaded) in leaves.iter().zip(&mut batch) {
                let leaf = self.recover_leaf(separated[at], separated.get(at + 1), loaded)?;
                self.collect_blocks(&leaf, &loaded.entries, &mut blocks)?;
            }
            let batch = if M::has_small_scale() { SMALL_MARK_BATCH } else { MARK_BATCH };
            if blocks.len() >= batch {
                self.pool.mark_all(&blocks)?;
                blocks.clear();
            }
        }
        if crashed {
            self.pool.mark_all(&blocks)?;
        }
        separated.truncate(part.count);
        Ok(separated)
    }

    /// Returns the separators of leaves that follow each other in the chain. Reads no leaf.
    fn separators(&self, links: &[Link]) -> Result<Vec<SeparatedLeaf>, Corrupt> {
        let mut separated = Vec::with_capacity(links.len());
        let mut previous: Option<(PmPtr, K::Owned)> = None;
        for (number, &Link { at, low: word }) in links.iter().enumerate() {
            if let Some(ahead) = links.get(number + LOW_DISTANCE) {
                K::prefetch(&self.pool, ahead.low);
            }
            let low = K::read(&self.pool, word).or_else(|damage| {
                self.verify_checksum(at)?; // the word may be damaged, and not the key that it names
                Err(damage)
            })?;
            if let Some((left, left_low)) = &previous
                && low <= *left_low
            {
                self.verify_checksum(*left)?;
                self.verify_checksum(at)?;
                let what = "low keys of neighbouring leaves do not increase";
                return Err(Corrupt { at: left.offset(), what, expected: 1, found: 0 });
            }
            let prefix = K::prefix(K::borrow(&low));
            separated.push(SeparatedLeaf { prefix, word, leaf: at.offset() });
            previous = Some((at, low));
        }
        Ok(separated)
    }

    fn verify_checksum(&self, at: PmPtr) -> Result<(), Corrupt> {
        S::Leaf::verify_torn(self.pool.medium(), at.offset(), self.leaf(at)?.words)
    }

    /// Verifies a leaf. After a crash also settles it, collects its entries, and prefetches what
    /// comparing them with the low key of the right neighbour will read.
    fn verify_and_collect(
        &self,
        leaf: SeparatedLeaf,
        right: Option<&SeparatedLeaf>,
        crashed: bool,
        loaded: &mut Loaded,
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        let at = PmPtr::new(leaf.leaf);
        let words = self.leaf(at)?.words;
        if !crashed {
            return S::Leaf::verify(medium, at.offset(), words);
        }
        S::Leaf::settle(medium, at.offset(), words)?;
        let Loaded { entries, may_drop } = loaded;
        entries.clear();
        S::Leaf::collect(medium, words, entries);
        *may_drop = match right {
            Some(right) if S::Leaf::HAS_CHECKSUM && K::PREFIX_IN_ENTRY => {
                let mut is_any_above = false;
                for tagged in &*entries {
                    is_any_above |= K::entry_prefix(&self.pool, tagged.entry)? >= right.prefix;
                }
                is_any_above
            }
            right => right.is_some(),
        };
        if let Some(right) = right
            && *may_drop
            && !M::CONTROLS_SCHEDULE
        {
            K::prefetch(&self.pool, right.word);
            K::prefetch_bound_comparison(&self.pool, entries.iter().map(|tagged| tagged.entry));
        }
        Ok(())
    }

    /// Repairs a leaf after a crash. The loaded entries become those that are left.
    fn recover_leaf(
        &self,
        separated: SeparatedLeaf,
        right: Option<&SeparatedLeaf>,
        loaded: &mut Loaded,
    ) -> Result<LeafRef<'_>, Corrupt> {
        let pool = &*self.pool;
        let leaf = self.leaf(PmPtr::new(separated.leaf))?;
        self.latch(&leaf).reset();
        let vouches = M::INJECTS_DEFECTS
            && pool.medium().injects(Defect::LatchVouches)
            && pool.medium().load(&leaf.words[S::Leaf::LATCH]) & 1 == 0;
        let Loaded { entries, may_drop } = loaded;
        if let Some(right) = right
            && *may_drop
            && !vouches
        {
            let bound = K::read(pool, right.word)?;
            let mut is_right_verified = false;
            S::Leaf::retain(pool.medium(), leaf.words, &mut |entry| {
                let is_kept = K::order_entry(pool, entry, K::borrow(&bound))? == Ordering::Less;
                if !is_kept {
                    // The right neighbour has this entry, too. But if its low key or the key of the
                    // entry is damaged, the comparison may be wrong, and dropping the entry would
                    // lose a pair.
                    if !is_right_verified {
                        self.verify_checksum(PmPtr::new(right.leaf))?;
                        is_right_verified = true;
                    }
                    K::verify_mismatch(pool, entry, K::borrow(&bound))?;
                }
                Ok(is_kept)
            })?;
        }
        S::Leaf::repair::<K, M>(pool, leaf.at.offset(), leaf.words)?;
        if *may_drop || !S::Leaf::HAS_CHECKSUM {
            entries.clear();
            S::Leaf::collect(pool.medium(), leaf.words, entries);
        }
        // Not needed with a checksum: it covers low key and entries, and no operation stores an
        // entry below the low key.
        if !S::Leaf::HAS_CHECKSUM {
            let low = K::read(pool, separated.word)?;
            for tagged in &*entries {
                if K::order_entry(pool, tagged.entry, K::borrow(&low))? == Ordering::Less {
                    return Err(out_of_range(&leaf, tagged.entry));
                }
            }
        }
        Ok(leaf)
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
