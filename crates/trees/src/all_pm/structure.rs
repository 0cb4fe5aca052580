//! The tree without its design: the nodes behind a virtual table.
//!
//! Splits, merges, scans, recovery and the check see the tree as a [`Structure`]. So they are
//! compiled once for each medium and kind of key, not for each layout and node size. Only the
//! operations on single keys know the layouts: they are the hot paths.
//!
//! Level 0 uses the leaf layout, higher levels the inner layout.

use super::descend::{DescentTarget, Interrupted, NodeRef, Path, Siblings, start};
use super::locks::LockArrays;
use super::node_wal::LOG;
use super::reader_counts::ReaderCounts;
use super::{ANCHOR_LINE_BYTES, AllPm, AllPmSpec, LeafUpdate, Protocol, anchor_view, read_root};
use crate::key::{Entry, Key};
use crate::node::{Changes, Entries, Image, Layout, Ordered, Slot, View};
use crate::node_latch::NodeLatch;
use crate::sorting::sort_pairs_stably;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::pool::HEADER_BYTES;
use bristlecone_pmem::sync::{Guard, Latch, LatchBits, OnMedium};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool, PoolError};
use core::ops::Range;

/// The sizes of a tree's blocks.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// The size of a node in bytes.
    pub(super) node_bytes: u64,
    /// The size of the root block in bytes.
    pub(super) anchor_bytes: u64,
    /// The size of the log of a node in bytes; 0 if nodes have none.
    pub(super) log_bytes: u64,
    /// The largest offset of a node: [`Layout::OFFSET_MAX`].
    offset_max: u64,
}

/// The blocks of a fresh node. Nothing points to them.
#[derive(Clone, Copy)]
pub(super) struct NewNode {
    pub(super) at: PmPtr,
    /// The log of the node; null if it has none.
    log: PmPtr,
}

impl NewNode {
    /// Returns the log of the node, if it has one.
    pub(super) fn log(self) -> Option<PmPtr> {
        (!self.log.is_null()).then_some(self.log)
    }
}

impl From<PmPtr> for NewNode {
    fn from(at: PmPtr) -> Self {
        Self { at, log: PmPtr::NULL }
    }
}

/// Reserves a block of `bytes` bytes at an offset of at most `offset_max`.
///
/// # Errors
/// [`PoolError::Full`]: the pool has no such block.
pub(super) fn reserve_within<M: Medium>(
    pool: &Pool<M>,
    bytes: u64,
    offset_max: u64,
) -> Result<PmPtr, PoolError> {
    let at = pool.reserve(bytes)?;
    if at.offset() <= offset_max {
        return Ok(at);
    }
    pool.release(at, bytes);
    let reason = MediumError::Limit { wanted: at.offset() + bytes, limit: offset_max };
    Err(PoolError::Full { wanted: bytes, reason })
}

/// The fields of a layout that are numbers.
#[derive(Clone, Copy)]
pub(super) struct NodeShape {
    /// The most entries of a node.
    pub(super) capacity: usize,
    /// The place of the entries.
    pub(super) entries: Entries,
    /// The index of the latch word.
    pub(super) latch: usize,
    /// The bits of that word that are the latch.
    pub(super) latch_bits: LatchBits,
    /// The number of words to prefetch.
    prefetch_words: usize,
}

impl NodeShape {
    const fn of<L: Layout>(prefetch_words: usize) -> Self {
        Self {
            capacity: L::CAPACITY,
            entries: L::ENTRIES,
            latch: L::LATCH,
            latch_bits: L::LATCH_BITS,
            prefetch_words,
        }
    }
}

/// A tree, seen without its design. Each method with a level calls the method of the layout for
/// that level, or of the protocol, that has its name.
pub(super) trait Structure<M: Medium, K: Key> {
    fn pool_ref(&self) -> &Pool<M>;
    fn anchor_at(&self) -> PmPtr;
    fn sizes(&self) -> Sizes;
    fn shape(&self, level: u64) -> NodeShape;
    fn count(&self, view: View<'_, M>, level: u64) -> usize;
    fn stated_level(&self, view: View<'_, M>, level: u64) -> Result<u64, Corrupt>;
    fn slot_indices(&self, view: View<'_, M>, level: u64) -> Result<Vec<usize>, Corrupt>;
    fn is_sorted(&self, view: View<'_, M>, level: u64) -> bool;
    fn check_order(&self, view: View<'_, M>, level: u64, slots: &[Slot]) -> Result<(), Corrupt>;
    fn link(&self, view: View<'_, M>, level: u64) -> u64;
    fn plan<'a>(&self, view: View<'a, M>, image: &Image, changes: &mut Changes<'a>);
    fn apply(&self, view: View<'_, M>, image: &Image);
    fn write_free_slots(&self, view: View<'_, M>, level: u64, slots: &[Slot]);
    fn needs_repair(&self, view: View<'_, M>, level: u64) -> bool;
    /// Returns `false` if the nodes of `level` are left to operations:
    /// [`Layout::REPAIRS_ON_USE`].
    fn recovery_repairs(&self, level: u64) -> bool;
    fn repair(&self, view: View<'_, M>, image: &Image);
    /// Calls [`Protocol::place`] of the inner layout.
    fn place_separator(&self, view: View<'_, M>, slot: Slot);
    /// Writes the bytes of a fresh node, whose log is at `log`.
    fn fill(&self, view: View<'_, M>, level: u64, link: u64, entries: &[Entry], log: PmPtr);
    /// Calls [`Protocol::stage`].
    fn stage<'a>(
        &self,
        view: View<'a, M>,
        level: u64,
        link: u64,
        entries: &[Entry],
        fresh: &mut Changes<'a>,
    );
    /// Writes the bytes of a fresh leaf, with its low key word if leaves have one.
    fn fill_leaf(&self, leaf: View<'_, M>, low: u64, link: u64, entries: &[Entry]);
    /// Calls [`Layout::apply_key`] of the inner layout.
    fn apply_separator(&self, view: View<'_, M>, index: usize, key: u64);
    /// Calls [`Ordered::nth`] of the inner layout.
    fn nth_separator(&self, view: View<'_, M>, rank: usize) -> Result<Slot, Corrupt>;
    /// Returns the number of separators in an inner node at or below `target`.
    fn rank_of(&self, view: View<'_, M>, target: DescentTarget<'_, K>) -> Result<usize, Corrupt>;
    /// Descends to the leaf of `target`.
    fn leaf_of<'a>(&'a self, target: DescentTarget<'_, K>) -> Result<Path<'a, M>, Interrupted>;
    fn transact(
        &self,
        log: PmPtr,
        fresh: &Changes<'_>,
        changes: &Changes<'_>,
        store_in_place: &mut dyn FnMut(),
    );
    /// Calls [`Protocol::replay`].
    fn replay_log(&self, log: PmPtr) -> Result<(), Corrupt>;
    /// Calls [`Protocol::clear_log`].
    fn clear_log(&self, log: PmPtr) -> Result<(), Corrupt>;
    fn apply_word(&self, change: (&PmWord, u64));
    fn set_word(&self, word: &PmWord, value: u64);
    fn publish_word(&self, word: &PmWord, value: u64);
    /// Calls [`Layout::plan_entry`].
    fn plan_entry<'a>(&self, view: View<'a, M>, level: u64, slot: Slot, changes: &mut Changes<'a>);
    /// Calls [`Protocol::apply_entry`].
    fn apply_entry(&self, view: View<'_, M>, level: u64, slot: Slot);
    /// Returns [`Protocol::STORES_PAIRS_UNLOGGED`].
    fn stores_pairs_unlogged(&self) -> bool;
    /// Returns the most levels that one insert may split: [`Protocol::split_levels_max`].
    fn split_levels_max(&self) -> usize;
    /// Splits a full node whose parent has space, as the leaves of the design do it.
    fn split_full<'a>(
        &'a self,
        path: &Path<'a, M>,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), Interrupted>;
    /// Merges two siblings, as the leaves of the design do it.
    fn merge_siblings<'a>(
        &'a self,
        path: &Path<'a, M>,
        pair: &Siblings<'a, M>,
        guard: &Guard,
    ) -> Result<(), Interrupted>;
    /// Returns [`LeafUpdate::MERGES_HALVES`].
    fn merges_halves(&self) -> bool;
    /// Returns [`AllPmSpec::FLUSHES_LEFT_HALF`].
    fn flushes_left_half(&self) -> bool;
    /// Returns the low key word of a leaf, if leaves have one.
    fn low_word(&self, leaf: View<'_, M>) -> Option<u64>;
    /// Returns the lock arrays, if the design has them.
    fn arrays(&self) -> Option<&LockArrays>;
    /// Returns the numbers of readers, if the design counts them.
    fn readers(&self) -> Option<&ReaderCounts>;
}

impl<M: Medium, K: Key, S: AllPmSpec> Structure<M, K> for AllPm<M, K, S> {
    fn pool_ref(&self) -> &Pool<M> {
        &self.pool
    }

    fn anchor_at(&self) -> PmPtr {
        self.anchor
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            node_bytes: Self::NODE_BYTES,
            anchor_bytes: Self::anchor_bytes(),
            log_bytes: Self::node_log_bytes(),
            offset_max: Self::OFFSET_MAX,
        }
    }

    fn shape(&self, level: u64) -> NodeShape {
        if level == 0 {
            NodeShape::of::<S::Leaf>(S::LEAF_PREFETCH_WORDS)
        } else {
            NodeShape::of::<S::Inner>(S::INNER_PREFETCH_WORDS)
        }
    }

    fn count(&self, view: View<'_, M>, level: u64) -> usize {
        if level == 0 { S::Leaf::count(view) } else { S::Inner::count(view) }
    }

    fn stated_level(&self, view: View<'_, M>, level: u64) -> Result<u64, Corrupt> {
        if level == 0 { S::Leaf::level(view) } else { S::Inner::level(view) }
    }

    fn slot_indices(&self, view: View<'_, M>, level: u64) -> Result<Vec<usize>, Corrupt> {
        if level == 0 { S::Leaf::slot_indices(view) } else { S::Inner::slot_indices(view) }
    }

    fn is_sorted(&self, view: View<'_, M>, level: u64) -> bool {
        if level == 0 { S::Leaf::is_sorted(view) } else { S::Inner::is_sorted(view) }
    }

    fn check_order(&self, view: View<'_, M>, level: u64, slots: &[Slot]) -> Result<(), Corrupt> {
        if level == 0 {
            S::Leaf::check_order(view, slots)
        } else {
            S::Inner::check_order(view, slots)
        }
    }

    fn link(&self, view: View<'_, M>, level: u64) -> u64 {
        if level == 0 { S::Leaf::link(view) } else { S::Inner::link(view) }
    }

    fn plan<'a>(&self, view: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        if image.level == 0 {
            S::Leaf::plan(view, image, changes);
        } else {
            S::Inner::plan(view, image, changes);
        }
    }

    fn apply(&self, view: View<'_, M>, image: &Image) {
        if image.level == 0 {
            S::Leaf::apply(view, image);
        } else {
            S::Inner::apply(view, image);
        }
    }

    fn write_free_slots(&self, view: View<'_, M>, level: u64, slots: &[Slot]) {
        if level == 0 {
            S::Protocol::write_free_slots::<M, S::Leaf>(view, slots);
        } else {
            S::Protocol::write_free_slots::<M, S::Inner>(view, slots);
        }
    }

    fn needs_repair(&self, view: View<'_, M>, level: u64) -> bool {
        if level == 0 { S::Leaf::needs_repair(view) } else { S::Inner::needs_repair(view) }
    }

    fn recovery_repairs(&self, level: u64) -> bool {
        !if level == 0 { S::Leaf::REPAIRS_ON_USE } else { S::Inner::REPAIRS_ON_USE }
    }

    fn repair(&self, view: View<'_, M>, image: &Image) {
        if image.level == 0 {
            S::Leaf::repair(view, image);
        } else {
            S::Inner::repair(view, image);
        }
    }

    fn place_separator(&self, view: View<'_, M>, slot: Slot) {
        S::Protocol::place::<M, S::Inner>(view, slot);
    }

    fn fill(&self, view: View<'_, M>, level: u64, link: u64, entries: &[Entry], log: PmPtr) {
        let encode = if level == 0 { S::Leaf::encode } else { S::Inner::encode };
        let mut bytes = encode(level, link, entries);
        if S::Protocol::HAS_NODE_LOGS && level > 0 {
            bytes[8 * LOG..][..8].copy_from_slice(&log.offset().to_le_bytes());
        }
        S::Protocol::fill(view, &bytes);
    }

    fn stage<'a>(
        &self,
        view: View<'a, M>,
        level: u64,
        link: u64,
        entries: &[Entry],
        fresh: &mut Changes<'a>,
    ) {
        let encode = if level == 0 { S::Leaf::encode } else { S::Inner::encode };
        S::Protocol::stage(view, &encode(level, link, entries), fresh);
    }

    fn fill_leaf(&self, leaf: View<'_, M>, low: u64, link: u64, entries: &[Entry]) {
        let mut bytes = S::Leaf::encode(0, link, entries);
        if let Some(word) = S::LeafUpdate::LOW {
            bytes[8 * word..][..8].copy_from_slice(&low.to_le_bytes());
        }
        S::Protocol::fill(leaf, &bytes);
    }

    fn apply_separator(&self, view: View<'_, M>, index: usize, key: u64) {
        S::Inner::apply_key(view, index, key);
    }

    fn nth_separator(&self, view: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        S::Inner::nth(view, rank)
    }

    fn rank_of(&self, view: View<'_, M>, target: DescentTarget<'_, K>) -> Result<usize, Corrupt> {
        self.rank(view, target)
    }

    fn leaf_of<'a>(&'a self, target: DescentTarget<'_, K>) -> Result<Path<'a, M>, Interrupted> {
        self.leaf_called(target)
    }

    fn transact(
        &self,
        log: PmPtr,
        fresh: &Changes<'_>,
        changes: &Changes<'_>,
        store_in_place: &mut dyn FnMut(),
    ) {
        self.protocol.transact(&self.pool, log, fresh, changes, store_in_place);
    }

    fn replay_log(&self, log: PmPtr) -> Result<(), Corrupt> {
        S::Protocol::replay(&self.pool, log, Self::NODE_BYTES)
    }

    fn clear_log(&self, log: PmPtr) -> Result<(), Corrupt> {
        S::Protocol::clear_log(&self.pool, log, Self::NODE_BYTES)
    }

    fn apply_word(&self, change: (&PmWord, u64)) {
        S::Protocol::apply(&self.pool, change);
    }

    fn set_word(&self, word: &PmWord, value: u64) {
        S::Protocol::set(&self.pool, word, value);
    }

    fn publish_word(&self, word: &PmWord, value: u64) {
        S::Protocol::publish(&self.pool, word, value);
    }
    fn plan_entry<'a>(&self, view: View<'a, M>, level: u64, slot: Slot, changes: &mut Changes<'a>) {
        if level == 0 {
            S::Leaf::plan_entry(view, slot, changes);
        } else {
            S::Inner::plan_entry(view, slot, changes);
        }
    }
    fn apply_entry(&self, view: View<'_, M>, level: u64, slot: Slot) {
        S::Protocol::apply_entry(view, self.shape(level).entries, slot);
    }
    fn stores_pairs_unlogged(&self) -> bool {
        S::Protocol::STORES_PAIRS_UNLOGGED
    }
    fn split_levels_max(&self) -> usize {
        S::Protocol::split_levels_max(S::Leaf::COMMIT_WORDS.max(S::Inner::COMMIT_WORDS))
    }

    fn split_full<'a>(
        &'a self,
        path: &Path<'a, M>,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        S::LeafUpdate::split(self, path, key, guard)
    }

    fn merge_siblings<'a>(
        &'a self,
        path: &Path<'a, M>,
        pair: &Siblings<'a, M>,
        guard: &Guard,
    ) -> Result<(), Interrupted> {
        S::LeafUpdate::merge(self, path, pair, guard)
    }

    fn merges_halves(&self) -> bool {
        S::LeafUpdate::MERGES_HALVES
    }

    fn flushes_left_half(&self) -> bool {
        S::FLUSHES_LEFT_HALF
    }

    fn low_word(&self, leaf: View<'_, M>) -> Option<u64> {
        S::LeafUpdate::LOW.map(|word| leaf.load(word))
    }

    fn arrays(&self) -> Option<&LockArrays> {
        self.lock_arrays()
    }

    fn readers(&self) -> Option<&ReaderCounts> {
        self.reader_counts()
    }
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    pub(super) fn medium(&self) -> &M {
        self.pool_ref().medium()
    }

    pub(super) fn node_bytes(&self) -> u64 {
        self.sizes().node_bytes
    }

    pub(super) fn anchor(&self) -> Result<View<'_, M>, Corrupt> {
        anchor_view(self.pool_ref(), self.anchor_at())
    }

    /// Returns the latch of a node.
    pub(super) fn latch<'a>(&self, view: View<'a, M>, level: u64) -> Latch<OnMedium<'a, M>> {
        let shape = self.shape(level);
        let word = view.word(shape.latch);
        OnMedium::latch_in(view.medium(), word, shape.latch_bits, self.pool_ref().nonce())
    }

    /// Reserves the block of a node. Nothing points to it.
    ///
    /// # Errors
    /// [`PoolError::Full`]: the pool is full, as far as links reach.
    pub(super) fn reserve_node(&self) -> Result<PmPtr, PoolError> {
        let Sizes { node_bytes, offset_max, .. } = self.sizes();
        reserve_within(self.pool_ref(), node_bytes, offset_max)
    }

    /// Reserves the blocks of a node on `level`. Nothing points to them.
    ///
    /// # Errors
    /// [`PoolError::Full`]: the pool is full, as far as links reach.
    pub(super) fn reserve_on(&self, level: u64) -> Result<NewNode, PoolError> {
        let (at, log_bytes) = (self.reserve_node()?, self.sizes().log_bytes);
        if level == 0 || log_bytes == 0 {
            return Ok(at.into());
        }
        let log = self.pool_ref().reserve(log_bytes);
        let log = log.inspect_err(|_| self.pool_ref().release(at, self.node_bytes()))?;
        Ok(NewNode { at, log })
    }

    /// Frees the blocks of a fresh node.
    pub(super) fn release_new(&self, node: NewNode) {
        self.pool_ref().release(node.at, self.node_bytes());
        if !node.log.is_null() {
            self.pool_ref().release(node.log, self.sizes().log_bytes);
        }
    }

    /// Returns the log of the root block or of an inner node; null if nodes have none.
    ///
    /// # Errors
    /// The node leads to no block of a log's size.
    pub(super) fn log_of(&self, node: &NodeRef<'_, M>) -> Result<PmPtr, Corrupt> {
        let log_bytes = self.sizes().log_bytes;
        if log_bytes == 0 || node.level == 0 {
            return Ok(PmPtr::NULL);
        }
        if node.key().is_none() {
            return Ok(PmPtr::new(node.at.offset() + ANCHOR_LINE_BYTES));
        }
        let log = PmPtr::new(node.view.load(LOG));
        if self.pool_ref().is_block(log, log_bytes) {
            Ok(log)
        } else {
            Err(node.view.corrupt(LOG, "log of a node", log_bytes, log.offset()))
        }
    }

    /// Retires an unlinked node and its log. A pointer that leads to no block is dropped: it is
    /// damaged, it belongs to the unlinked node, and no operation uses it.
    pub(super) fn retire_node(&self, at: PmPtr, log: PmPtr, guard: &Guard) {
        let _ = self.pool_ref().try_retire(at, self.node_bytes(), guard);
        if !log.is_null() {
            let _ = self.pool_ref().try_retire(log, self.sizes().log_bytes, guard);
        }
    }

    /// Returns the node at `at` without checking its contents.
    pub(super) fn node(&self, at: PmPtr) -> Result<View<'_, M>, Corrupt> {
        let words = self.pool_ref().block(at, self.node_bytes() as usize / 8)?;
        Ok(View::new(self.medium(), words))
    }

    /// Checks that the node's header names `level`.
    ///
    /// # Errors
    /// The header names another level, or belongs to no node of this layout.
    pub(super) fn check_level(&self, view: View<'_, M>, level: u64) -> Result<(), Corrupt> {
        let found = self.stated_level(view, level)?;
        if found == level { Ok(()) } else { Err(view.corrupt(0, "level of a node", level, found)) }
    }

    /// Returns the contents of a node, in key order.
    ///
    /// # Errors
    /// The contents break the rules of the layout, or a pointer lies outside the pool.
    pub(super) fn image(&self, view: View<'_, M>, level: u64) -> Result<Image, Corrupt> {
        let entries = self.shape(level).entries;
        let places = self.slot_indices(view, level)?;
        let slot = |index| Slot { index, entry: view.entry(entries, index) };
        let mut slots: Vec<_> = places.into_iter().map(slot).collect();
        if !self.is_sorted(view, level) {
            if level == 0 {
                sort_slots_by(&mut slots, |slot| K::read_entry(self.pool_ref(), slot.entry))?;
                self.check_order(view, level, &slots)?;
            } else {
                sort_slots_by(&mut slots, |slot| K::read(self.pool_ref(), slot.entry.key))?;
            }
        }
        let image = Image { level, link: self.link(view, level), slots };
        if level > 0 {
            for slot in &image.slots {
                self.check_pointer(view, slot.entry.value)?;
            }
        }
        self.check_pointer(view, image.link)?;
        Ok(image)
    }

    /// Restores what the layout derives from the entries of a leaf. The caller holds its latch.
    #[cold]
    pub(super) fn repair_leaf(&self, view: View<'_, M>) -> Result<(), Corrupt> {
        self.repair(view, &self.image(view, 0)?);
        Ok(())
    }

    /// Repairs an inner node, whose derived fields a crash has left invalid, if it has not changed
    /// since the descent reached it. Returns the reason to end the descent: a restart, unless the
    /// node is damaged. Durable before the latch is free; persist order: that of
    /// [`Layout::repair`].
    #[cold]
    pub(super) fn repair_inner(&self, node: &NodeRef<'_, M>) -> Interrupted {
        let repair = || -> Result<(), Interrupted> {
            let _held = node.upgrade()?;
            if M::INJECTS_DEFECTS && self.medium().injects(Defect::InnerUnrepaired) {
                return Err(node.view.corrupt(0, "node needs repair", 0, 1).into());
            }
            if !self.pool_ref().is_block(node.at, self.node_bytes()) {
                let what = "block of the tree is free in the pool";
                return Err(node.view.corrupt(0, what, 1, 0).into());
            }
            self.repair(node.view, &self.image(node.view, node.level)?);
            Ok(())
        };
        repair().err().unwrap_or(Interrupted::Restart)
    }

    /// Checks that `offset` is null or an offset at which a node can lie.
    fn check_pointer(&self, view: View<'_, M>, offset: u64) -> Result<(), Corrupt> {
        let (bytes, offset_max) = (self.node_bytes(), self.sizes().offset_max);
        let end = (self.medium().len() - bytes).min(offset_max);
        if offset > end || !offset.is_multiple_of(bytes) {
            return Err(view.corrupt(0, "pointer to a node", end, offset));
        }
        Ok(())
    }

    /// Writes a fresh node with `entries`, which are in key order. Durable after the next fence.
    ///
    /// # Errors
    /// No node can lie at `at`.
    pub(super) fn write_new(
        &self,
        new: impl Into<NewNode>,
        level: u64,
        link: u64,
        entries: &[Entry],
    ) -> Result<(), Corrupt> {
        let NewNode { at, log } = new.into();
        self.fill(self.node(at)?, level, link, entries, log);
        if log.is_null() { Ok(()) } else { self.clear_log(log) }
    }

    /// Writes a fresh node, as [`write_new`](Self::write_new) does, or adds its words to `fresh`
    /// for the transaction that publishes it.
    ///
    /// # Errors
    /// No node can lie at `at`.
    pub(super) fn stage_new<'a>(
        &'a self,
        new: impl Into<NewNode>,
        level: u64,
        link: u64,
        entries: &[Entry],
        fresh: &mut Changes<'a>,
    ) -> Result<(), Corrupt> {
        let new = new.into();
        if !new.log.is_null() {
            return self.write_new(new, level, link, entries);
        }
        self.stage(self.node(new.at)?, level, link, entries, fresh);
        Ok(())
    }

    /// Returns the child of `rank` in an inner node, and the separator before it, if any.
    pub(super) fn child(
        &self,
        node: View<'_, M>,
        rank: usize,
    ) -> Result<(PmPtr, Option<u64>), Corrupt> {
        Ok(match rank.checked_sub(1) {
            None => (PmPtr::new(self.link(node, 1)), None),
            Some(last) => {
                let entry = self.nth_separator(node, last)?.entry;
                (PmPtr::new(entry.value), Some(entry.key))
            }
        })
    }

    /// Enters the child at `at`. The caller has validated the pointer, which was read in `parent`.
    pub(super) fn enter<'a>(
        &'a self,
        at: PmPtr,
        level: u64,
        parent: &NodeRef<'_, M>,
    ) -> Result<NodeRef<'a, M>, Interrupted> {
        let view = self.node(at)?;
        let ahead = self.shape(level).prefetch_words;
        if ahead > 0 {
            self.medium().prefetch(&view.words()[..ahead]);
        }
        let node = self.arrive(at, view, level, parent)?;
        NodeRef::entered(node, at, view, parent)
    }

    /// Reads the version of the node at `at`, a child of `parent`, and checks its level. Returns
    /// `None` if the node is obsolete.
    pub(super) fn arrive<'a>(
        &'a self,
        at: PmPtr,
        view: View<'a, M>,
        level: u64,
        parent: &NodeRef<'_, M>,
    ) -> Result<Option<NodeRef<'a, M>>, Corrupt> {
        let latch = match self.arrays() {
            Some(arrays) => NodeLatch::of(arrays.lock(parent.key(), at)),
            None => self.latch(view, level).map(NodeLatch::InNode),
        };
        self.arrive_at(at, view, level, latch)
    }

    /// Reads the version of the node at `at`, whose latch is `latch`, and checks its level. Returns
    /// `None` if the node is obsolete.
    pub(super) fn arrive_at<'a>(
        &'a self,
        at: PmPtr,
        view: View<'a, M>,
        level: u64,
        latch: Latch<NodeLatch<'a, M>>,
    ) -> Result<Option<NodeRef<'a, M>>, Corrupt> {
        let check = || self.check_latched(at, view, level);
        let Some(version) = latch.read_checked(check)? else { return Ok(None) };
        self.check_level(view, level)?;
        let readers = self.readers().map(|counts| counts.of(at));
        Ok(Some(NodeRef::new(at, view, level, (latch, version), readers)))
    }

    /// Checks place and level of a node before a thread waits for its latch. A log has links with
    /// held latches beside them, which no thread releases there. A damaged pointer may lead there.
    #[cold]
    pub(super) fn check_latched(
        &self,
        at: PmPtr,
        view: View<'_, M>,
        level: u64,
    ) -> Result<(), Corrupt> {
        let anchor = self.anchor_at().offset();
        let logs = anchor..anchor + self.sizes().anchor_bytes;
        let is_of_node =
            self.sizes().log_bytes == 0 || self.pool_ref().is_block_in_use(at, self.node_bytes());
        if at.offset() < HEADER_BYTES || logs.contains(&at.offset()) || !is_of_node {
            return Err(view.corrupt(0, "pointer to a node", logs.end, at.offset()));
        }
        self.check_level(view, level)
    }

    /// Returns the children of an inner node that are about to get another parent: those of the
    /// ranks that `ranks` chooses, given the number of separators. The caller must latch them and
    /// [count their turns](Self::count_turns). Returns none if the design has no lock arrays: their
    /// latches move with them.
    pub(super) fn movers<'a>(
        &'a self,
        node: &NodeRef<'a, M>,
        ranks: impl Fn(usize) -> Range<usize>,
    ) -> Result<Vec<NodeRef<'a, M>>, Interrupted> {
        if self.arrays().is_none() {
            return Ok(Vec::new());
        }
        let count = node.certify(Ok(self.count(node.view, node.level)))?;
        let enter = |rank| {
            let (at, _) = node.certify(self.child(node.view, rank))?;
            self.enter(at, node.level - 1, node)
        };
        ranks(count).map(enter).collect()
    }

    /// Counts a turn of `loser`, which loses keys or is unlinked, and of each of `moved`. The
    /// caller has latched all of them.
    pub(super) fn count_turns(&self, loser: &NodeRef<'_, M>, moved: &[NodeRef<'_, M>]) {
        let Some(arrays) = self.arrays() else { return };
        arrays.count_turn::<M>(loser.key());
        for child in moved.iter().filter(|child| child.level > 0) {
            arrays.count_turn::<M>(child.key());
        }
    }

    /// Descends towards the leaf of `target`, and ends early at the first node for which `stop`
    /// returns `true`. Returns `true` if it ended early.
    pub(super) fn descend<'a>(
        &'a self,
        target: DescentTarget<'_, K>,
        stop: &mut dyn FnMut(&Path<'a, M>) -> Result<bool, Interrupted>,
    ) -> Result<(Path<'a, M>, bool), Interrupted> {
        let parent = start(self.pool_ref(), self.anchor_at(), self.readers())?;
        let (at, level) = parent.certify(read_root(parent.view))?;
        let node = self.enter(at, level, &parent)?;
        let mut path = Path { parent, node, rank: 0, low: None, is_root: true };
        loop {
            let stopped = stop(&path)?;
            if stopped || path.node.level == 0 {
                return Ok((path, stopped));
            }
            let Path { node, low, .. } = path;
            let step = self.rank_of(node.view, target);
            let step = step.and_then(|rank| Ok((rank, self.child(node.view, rank)?)));
            if step.is_err()
                && !self.recovery_repairs(node.level)
                && self.needs_repair(node.view, node.level)
            {
                return Err(self.repair_inner(&node));
            }
            let (rank, (at, separator)) = node.certify(step)?;
            let child = self.enter(at, node.level - 1, &node)?;
            let low = separator.or(low);
            path = Path { parent: node, node: child, rank, low, is_root: false };
        }
    }
}

/// Sorts slots by their keys.
fn sort_slots_by<T: Ord>(
    slots: &mut Vec<Slot>,
    key: impl Fn(&Slot) -> Result<T, Corrupt>,
) -> Result<(), Corrupt> {
    let mut keyed = Vec::with_capacity(slots.len());
    for slot in slots.iter() {
        keyed.push((key(slot)?, *slot));
    }
    sort_pairs_stably(&mut keyed);
    slots.clear();
    slots.extend(keyed.into_iter().map(|(_, slot)| slot));
    Ok(())
}
