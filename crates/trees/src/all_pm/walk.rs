//! The walk over a whole tree, for recovery after a crash and for the check.
//!
//! 1. The walk checks every offset, level, key and link against the nodes above before it uses it.
//!    Each step goes down one level, and no block is visited twice, so the walk ends whatever the
//!    pool holds.
//! 2. Transactions have been replayed before, or are before the walk reads the topmost node that
//!    they change, so the nodes agree with each other. After that a crash can leave only nodes
//!    whose derived words need repair.

use super::locks::LockArrays;
use super::node_wal::LOG;
use super::read_root;
use super::reader_counts::ReaderCounts;
use super::structure::Structure;
use crate::index::{TreeError, TreeStats};
use crate::key::Key;
use crate::node::{Image, View, check_order};
use bristlecone_pmem::sync::LatchBits;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use std::collections::BTreeSet;

/// A callback for each block of the tree, with its size in bytes.
type Claim<'f> = &'f mut dyn FnMut(PmPtr, u64) -> Result<(), Corrupt>;

/// The state of a walk.
struct Walk<'c, 'f, M: Medium> {
    claim: Claim<'f>,
    stats: TreeStats,
    /// The previous leaf, and the target of its link.
    chain: Option<(View<'c, M>, PmPtr)>,
    /// Nodes that need repair, each with its contents.
    to_repair: Vec<(View<'c, M>, Image)>,
    /// `true` after a crash: the walk replays the logs of nodes, and frees latches whose nonce is
    /// too short to tell this open from another.
    recovers: bool,
}

/// The key range of a node: from `low` on, and below `high`.
struct Range<'k, K: Key> {
    low: Option<&'k K::Owned>,
    /// The separator word of `low`; 0 if there is none.
    low_word: u64,
    high: Option<&'k K::Owned>,
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    /// Recovers after a crash: marks every block of the tree, ends the pool's recovery, and repairs
    /// nodes, unless operations do. If this crashes too, the next recovery repeats it.
    pub(super) fn recover(&self) -> Result<(), TreeError> {
        let mut mark = |block, bytes| self.pool_ref().mark(block, bytes);
        let walk = self.walk(&mut mark, true)?;
        self.pool_ref().finish_recovery();
        for (view, image) in walk.to_repair {
            if M::INJECTS_DEFECTS
                && self.pool_ref().medium().injects(Defect::UnlatchedUnrepaired)
                && view.load(self.shape(image.level).latch) & 1 == 0
            {
                continue;
            }
            self.repair(view, &image);
        }
        Ok(())
    }

    /// Checks every invariant and returns the counts.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, TreeError> {
        let mut claimed = BTreeSet::new();
        let mut claim = |block: PmPtr, bytes| {
            let corrupt = |what, found| Corrupt { at: block.offset(), what, expected: 1, found };
            if !self.pool_ref().is_block(block, bytes) {
                return Err(corrupt("block of the tree is free in the pool", 0));
            }
            if !claimed.insert(block) {
                return Err(corrupt("two pointers to one block", 2));
            }
            Ok(())
        };
        let walk = self.walk(&mut claim, false)?;
        match walk.to_repair.first() {
            None => Ok(walk.stats),
            Some((view, _)) => Err(view.corrupt(0, "node needs repair", 0, 1).into()),
        }
    }

    fn walk<'a, 'f>(
        &'a self,
        claim: Claim<'f>,
        recovers: bool,
    ) -> Result<Walk<'a, 'f, M>, Corrupt> {
        let readers = self.readers().map_or(0, ReaderCounts::bytes);
        let dram_bytes = self.arrays().map_or(0, LockArrays::bytes) + readers;
        let stats = TreeStats { dram_bytes, ..TreeStats::default() };
        let mut walk = Walk { claim, stats, chain: None, to_repair: Vec::new(), recovers };
        self.claim(&mut walk, self.anchor_at(), self.sizes().anchor_bytes)?;
        let (root, level) = read_root(self.anchor()?)?;
        walk.stats.height = level as u32 + 1;
        self.walk_node(&mut walk, root, level, &Range { low: None, low_word: 0, high: None })?;
        match walk.chain {
            Some((view, link)) if !link.is_null() => {
                Err(view.corrupt(0, "link of the last leaf", 0, link.offset()))
            }
            _ => Ok(walk),
        }
    }

    fn claim(&self, walk: &mut Walk<'_, '_, M>, block: PmPtr, bytes: u64) -> Result<(), Corrupt> {
        (walk.claim)(block, bytes)?;
        walk.stats.blocks += 1;
        walk.stats.pm_bytes += self.pool_ref().reserved_bytes(bytes);
        Ok(())
    }

    fn walk_node<'a>(
        &'a self,
        walk: &mut Walk<'a, '_, M>,
        at: PmPtr,
        level: u64,
        range: &Range<'_, K>,
    ) -> Result<(), Corrupt> {
        let view = self.node(at)?;
        self.claim(walk, at, self.node_bytes())?;
        let log_bytes = self.sizes().log_bytes;
        if level > 0 && log_bytes > 0 {
            let log = PmPtr::new(view.load(LOG));
            self.claim(walk, log, log_bytes)?;
            if walk.recovers {
                self.replay_log(log)?;
            }
        }
        self.check_level(view, level)?;
        if walk.recovers && self.shape(level).latch_bits != LatchBits::Whole {
            self.latch(view, level).reset();
        }
        let image = self.image(view, level)?;
        if level == 0 {
            walk.link(view, at, PmPtr::new(image.link))?;
            match self.low_word(view) {
                Some(low) if low != range.low_word => {
                    let what = "low key of a leaf that is not its separator";
                    return Err(view.corrupt(0, what, range.low_word, low));
                }
                _ => {}
            }
            self.walk_leaf(walk, view, &image, range)?;
        } else {
            self.walk_inner(walk, view, &image, range)?;
        }
        if self.recovery_repairs(level) && self.needs_repair(view, level) {
            walk.to_repair.push((view, image));
        }
        Ok(())
    }

    fn walk_leaf<'a>(
        &'a self,
        walk: &mut Walk<'a, '_, M>,
        view: View<'a, M>,
        image: &Image,
        range: &Range<'_, K>,
    ) -> Result<(), Corrupt> {
        let mut previous: Option<K::Owned> = None;
        for slot in &image.slots {
            let entry = slot.entry;
            let key = K::read_entry(self.pool_ref(), entry)?;
            let at_word = self.shape(0).entries.word(slot.index);
            check_order::<M, K>(view, at_word, previous.as_ref(), (range.low, range.high), &key)?;
            for (block, bytes) in
                [K::entry_block(self.pool_ref(), entry)?, K::value_block(self.pool_ref(), entry)?]
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

    fn walk_inner<'a>(
        &'a self,
        walk: &mut Walk<'a, '_, M>,
        view: View<'a, M>,
        image: &Image,
        range: &Range<'_, K>,
    ) -> Result<(), Corrupt> {
        let mut keys: Vec<K::Owned> = Vec::with_capacity(image.slots.len());
        for slot in &image.slots {
            let key = K::read(self.pool_ref(), slot.entry.key)?;
            let at_word = self.shape(image.level).entries.word(slot.index);
            check_order::<M, K>(view, at_word, keys.last(), (range.low, range.high), &key)?;
            if let Some((block, bytes)) = K::block(self.pool_ref(), slot.entry.key)? {
                self.claim(walk, block, bytes)?;
            }
            keys.push(key);
        }
        walk.stats.inner_nodes += 1;
        let children = core::iter::once(image.link);
        let children = children.chain(image.slots.iter().map(|slot| slot.entry.value));
        for (rank, child) in children.enumerate() {
            let low = rank.checked_sub(1).map(|below| &keys[below]).or(range.low);
            let low_word =
                rank.checked_sub(1).map_or(range.low_word, |below| image.slots[below].entry.key);
            let high = keys.get(rank).or(range.high);
            let range = Range { low, low_word, high };
            self.walk_node(walk, PmPtr::new(child), image.level - 1, &range)?;
        }
        Ok(())
    }
}

impl<'c, M: Medium> Walk<'c, '_, M> {
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
