//! The walk over a whole tree, for recovery after a crash and for the check.
//!
//! 1. The walk checks every offset, level, key and link against the nodes above before it uses it.
//!    Each step goes down one level, and no block is visited twice, so the walk ends whatever the
//!    pool holds.
//! 2. The transactions in the log have been replayed before, so the nodes agree with each other.
//!    After that a crash can leave only nodes whose derived words need repair.

use super::{AllPm, AllPmSpec};
use crate::index::{TreeError, TreeStats};
use crate::key::Key;
use crate::node::{Image, Layout, View};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::cmp::Ordering;
use std::collections::BTreeSet;

/// The state of a walk.
struct Walk<'c, M: Medium, C> {
    /// The callback for each block of the tree, with its size in bytes.
    claim: C,
    stats: TreeStats,
    /// The previous leaf, and the target of its link.
    chain: Option<(View<'c, M>, PmPtr)>,
    /// Nodes that need repair, each with its contents.
    to_repair: Vec<(View<'c, M>, Image)>,
}

/// The key range of a node: from `low` on, and below `high`.
struct Range<'k, K: Key> {
    low: Option<&'k K::Owned>,
    high: Option<&'k K::Owned>,
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Recovers after a crash: marks every block of the tree, ends the pool's recovery, and repairs
    /// nodes. If this crashes too, the next recovery repeats it.
    pub(super) fn recover(&self) -> Result<(), TreeError> {
        let walk = self.walk(|block, bytes| self.pool.mark(block, bytes))?;
        self.pool.finish_recovery();
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::SlotsUnrepaired) {
            return Ok(());
        }
        for (view, image) in walk.to_repair {
            if M::INJECTS_DEFECTS
                && self.pool.medium().injects(Defect::UnlatchedUnrepaired)
                && view.load(if image.level == 0 { S::Leaf::LATCH } else { S::Inner::LATCH }) & 1
                    == 0
            {
                continue;
            }
            Self::repair(view, &image);
        }
        Ok(())
    }

    /// Checks every invariant and returns the counts.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, TreeError> {
        let mut claimed = BTreeSet::new();
        let walk = self.walk(|block, bytes| {
            let corrupt = |what, found| Corrupt { at: block.offset(), what, expected: 1, found };
            if !self.pool.is_block(block, bytes) {
                return Err(corrupt("block of the tree is free in the pool", 0));
            }
            if !claimed.insert(block) {
                return Err(corrupt("two pointers to one block", 2));
            }
            Ok(())
        })?;
        match walk.to_repair.first() {
            None => Ok(walk.stats),
            Some((view, _)) => Err(view.corrupt(0, "node needs repair", 0, 1).into()),
        }
    }

    fn walk<C: FnMut(PmPtr, u64) -> Result<(), Corrupt>>(
        &self,
        claim: C,
    ) -> Result<Walk<'_, M, C>, Corrupt> {
        let mut walk =
            Walk { claim, stats: TreeStats::default(), chain: None, to_repair: Vec::new() };
        self.claim(&mut walk, self.anchor, Self::anchor_bytes())?;
        let (root, level) = Self::read_root(self.anchor()?)?;
        walk.stats.height = level as u32 + 1;
        self.walk_node(&mut walk, root, level, &Range { low: None, high: None })?;
        match walk.chain {
            Some((view, link)) if !link.is_null() => {
                Err(view.corrupt(0, "link of the last leaf", 0, link.offset()))
            }
            _ => Ok(walk),
        }
    }

    fn claim<C: FnMut(PmPtr, u64) -> Result<(), Corrupt>>(
        &self,
        walk: &mut Walk<'_, M, C>,
        block: PmPtr,
        bytes: u64,
    ) -> Result<(), Corrupt> {
        (walk.claim)(block, bytes)?;
        walk.stats.blocks += 1;
        walk.stats.pm_bytes += self.pool.reserved_bytes(bytes);
        Ok(())
    }

    fn walk_node<'a, C: FnMut(PmPtr, u64) -> Result<(), Corrupt>>(
        &'a self,
        walk: &mut Walk<'a, M, C>,
        at: PmPtr,
        level: u64,
        range: &Range<'_, K>,
    ) -> Result<(), Corrupt> {
        let view = self.node(at)?;
        self.claim(walk, at, Self::NODE_BYTES)?;
        Self::check_level(view, level)?;
        let image = self.image(view, level)?;
        if level == 0 {
            walk.link(view, at, PmPtr::new(image.link))?;
            self.walk_leaf(walk, view, &image, range)?;
        } else {
            self.walk_inner(walk, view, &image, range)?;
        }
        if Self::needs_repair(view, level) {
            walk.to_repair.push((view, image));
        }
        Ok(())
    }

    fn walk_leaf<'a, C: FnMut(PmPtr, u64) -> Result<(), Corrupt>>(
        &'a self,
        walk: &mut Walk<'a, M, C>,
        view: View<'a, M>,
        image: &Image,
        range: &Range<'_, K>,
    ) -> Result<(), Corrupt> {
        let mut previous: Option<K::Owned> = None;
        for slot in &image.slots {
            let entry = slot.entry;
            let key = K::read_entry(&self.pool, entry)?;
            let at_word = S::Leaf::ENTRIES + 2 * slot.index;
            in_order::<M, K>(view, at_word, previous.as_ref(), range, &key)?;
            for (block, bytes) in
                [K::entry_block(&self.pool, entry)?, K::value_block(&self.pool, entry)?]
                    .into_iter()
                    .flatten()
            {
                self.claim(walk, block, bytes)?;
            }
            previous = Some(key);
        }
        walk.stats.leaves += 1;
        walk.stats.keys += image.slots.len() as u64;
        Ok(())
    }

    fn walk_inner<'a, C: FnMut(PmPtr, u64) -> Result<(), Corrupt>>(
        &'a self,
        walk: &mut Walk<'a, M, C>,
        view: View<'a, M>,
        image: &Image,
        range: &Range<'_, K>,
    ) -> Result<(), Corrupt> {
        let mut keys: Vec<K::Owned> = Vec::with_capacity(image.slots.len());
        for slot in &image.slots {
            let key = K::read(&self.pool, slot.entry.key)?;
            let at_word = S::Inner::ENTRIES + 2 * slot.index;
            in_order::<M, K>(view, at_word, keys.last(), range, &key)?;
            if let Some((block, bytes)) = K::block(&self.pool, slot.entry.key)? {
                self.claim(walk, block, bytes)?;
            }
            keys.push(key);
        }
        walk.stats.inner_nodes += 1;
        let children = core::iter::once(image.link);
        let children = children.chain(image.slots.iter().map(|slot| slot.entry.value));
        for (rank, child) in children.enumerate() {
            let low = rank.checked_sub(1).map(|below| &keys[below]).or(range.low);
            let high = keys.get(rank).or(range.high);
            self.walk_node(walk, PmPtr::new(child), image.level - 1, &Range { low, high })?;
        }
        Ok(())
    }
}

/// Checks that a key lies in its node's range and above the previous key.
fn in_order<M: Medium, K: Key>(
    view: View<'_, M>,
    word: usize,
    previous: Option<&K::Owned>,
    range: &Range<'_, K>,
    key: &K::Owned,
) -> Result<(), Corrupt> {
    let compare = |other: &K::Owned| K::compare(K::borrow(key), K::borrow(other));
    let prefix = |key: &K::Owned| K::prefix(K::borrow(key));
    let failed = |what, bound: &K::Owned| view.corrupt(word, what, prefix(bound), prefix(key));
    match (previous, range.low, range.high) {
        (Some(previous), ..) if compare(previous) != Ordering::Greater => {
            Err(failed("key out of order", previous))
        }
        (_, Some(low), _) if compare(low) == Ordering::Less => {
            Err(failed("key below its node's range", low))
        }
        (_, _, Some(high)) if compare(high) != Ordering::Less => {
            Err(failed("key above its node's range", high))
        }
        _ => Ok(()),
    }
}

impl<'c, M: Medium, C> Walk<'c, M, C> {
    /// Checks that the previous leaf links to this one.
    fn link(&mut self, view: View<'c, M>, at: PmPtr, link: PmPtr) -> Result<(), Corrupt> {
        match self.chain.replace((view, link)) {
            Some((previous, expected)) if expected != at => {
                Err(previous.corrupt(0, "link of a leaf", at.offset(), expected.offset()))
            }
            _ => Ok(()),
        }
    }
}
