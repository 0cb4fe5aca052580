//! Splits of leaves and inner nodes, and the separators that they post.

use super::WoTreeIndex;
use super::descend::Progress;
use super::leaf::LeafBitmap;
use super::log::{LogRecord, Op};
use super::node::Node;
use super::node::Separated;
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::linked_leaves::SearchTarget;
use crate::root_block::ROOT;
use bristlecone_pmem::sync::{OnMedium, Unshared};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool, PoolError};

/// The blocks that a split has reserved for the nodes above it.
pub(super) struct Spare<'p, M: Medium> {
    pool: &'p Pool<M>,
    bytes: u64,
    blocks: Vec<PmPtr>,
}

impl<'p, M: Medium> Spare<'p, M> {
    /// Reserves `count` blocks of `bytes` bytes.
    pub(super) fn reserve(pool: &'p Pool<M>, bytes: u64, count: usize) -> Result<Self, PoolError> {
        let mut spare = Self { pool, bytes, blocks: Vec::with_capacity(count) };
        for _ in 0..count {
            spare.blocks.push(pool.reserve(bytes)?);
        }
        Ok(spare)
    }

    /// Returns a reserved block, or reserves one more.
    fn take(&mut self) -> Result<PmPtr, PoolError> {
        self.blocks.pop().map_or_else(|| self.pool.reserve(self.bytes), Ok)
    }
}

impl<M: Medium> Drop for Spare<'_, M> {
    fn drop(&mut self) {
        for &block in &self.blocks {
            self.pool.release(block, self.bytes);
        }
    }
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Splits a full leaf, whose latch is `held`.
    ///
    /// The right leaf is latched until the link is durable: else a crash could lose an insert there
    /// that was acknowledged. The left leaf stays latched until the parent has the right one: while
    /// its sequence number is that of the record, recovery posts the right leaf if need be.
    ///
    /// # Persist order
    /// ```text
    /// N low key's record             only if the layer has records
    /// C log record, F |              crash: no link, so the split is undone
    /// W right leaf, F all lines |
    /// C next, W bitmap, W seq        line 0 of the left leaf, in this order
    /// W number of slots
    /// F all lines of left leaf |     -> durable   budget: 2 * NODE / 64 + 1 lines, 3 fences
    /// parent: post                   crash before: recovery posts the right leaf
    /// ```
    #[cold]
    pub(super) fn split(
        &self,
        left: &Node<'_, M, NODE>,
        held: Unshared<OnMedium<'_, M>>,
    ) -> Result<(), TreeError> {
        let ordered = left.ordered()?;
        let [below, ..] = ordered[..] else {
            return Err(left.damage("number of entries of a full leaf", 2, 0).into());
        };
        let middle = ordered.len() / 2;
        let last = ordered.get(middle.wrapping_sub(1)).unwrap_or(&below).1;
        let above = K::read_entry(&self.pool, ordered[middle].1)?;
        let low_key = K::between(&self.pool, last, K::borrow(&above))?;
        let mut spare = self.reserve_for_split(K::borrow(&low_key))?;
        let at = spare.take()?;
        let low = K::store_separator(&self.pool, K::borrow(&low_key))
            .inspect_err(|_| self.pool.release(at, Self::NODE_BYTES))?;
        let line = self.log.lease(&self.pool)?;
        let seq = left.seq().wrapping_add(1);
        let _ = LogRecord { op: Op::Split { right: at }, leaf: left.at, seq }.write(&line);
        let mut upper: Vec<Entry> = ordered[middle..].iter().map(|(_, entry)| *entry).collect();
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::HalfUncounted) {
            upper.pop();
        }
        let injects = |defect| M::INJECTS_DEFECTS && self.pool.medium().injects(defect);
        let seq_of_right = if injects(Defect::FreshSeqZero) { 0 } else { self.log.above_all() };
        let header = (low, left.next(), seq_of_right);
        let right = Node::<M, NODE>::create_leaf(&self.pool, at, header, &upper)?;
        let is_open = injects(Defect::RightLeafOpen);
        let right_held = if is_open { None } else { right.leaf_latch(self.pool.nonce()).lock() };
        let _ = self.pool.medium().fence();
        let moved = ordered[middle..].iter().fold(0, |bits: LeafBitmap, (at, _)| bits | 1 << at);
        let old = left.slots();
        let mut slots = old;
        slots[0] = middle as u8;
        let _ = left.cut_leaf(at, (left.bitmap() & !moved, &old, &slots), seq);
        drop(right_held);
        let mut held = Some(held);
        if injects(Defect::PostUnlatched) {
            held = None;
        }
        let posted = self.post(low, K::borrow(&low_key), at, 1, &mut spare);
        drop((held, line));
        posted
    }

    /// Reserves the right leaf of a split at `key`, a node for the level above, and one for each
    /// further level that the split will reach, so that a full pool stops it before it has changed
    /// anything.
    fn reserve_for_split(&self, key: K::Ref<'_>) -> Result<Spare<'_, M>, TreeError> {
        let mut count = 2;
        let mut level = 1;
        while let Some(node) =
            self.descend(SearchTarget::At(key), level, &mut Progress::default())?
        {
            if node.count() < Node::<M, NODE>::FANOUT {
                break;
            }
            count += 1;
            level += 1;
        }
        Ok(Spare::reserve(&self.pool, Self::NODE_BYTES, count)?)
    }

    /// Ensures that `level` has an entry for the node `child`, whose low key is `key` and has the
    /// word `low`. Splits the node there if it is full, and posts what that makes.
    ///
    /// # Persist order
    /// ```text
    /// parent: shift in             -> durable   budget: lines from the entry to the last one
    /// ```
    ///
    /// # Errors
    /// The pool is full and `level` is 1. Further up a node without a separator is no error: its
    /// left neighbour leads to it, and a recovery posts it.
    pub(super) fn post(
        &self,
        low: u64,
        key: K::Ref<'_>,
        child: PmPtr,
        level: u32,
        spare: &mut Spare<'_, M>,
    ) -> Result<(), TreeError> {
        loop {
            let Some((node, held)) = self.latch_inner(SearchTarget::At(key), level)? else {
                match self.grow(low, child, level, spare) {
                    Ok(true) => return Ok(()),
                    Ok(false) => continue,
                    Err(error) => return or_unposted(Err(error), level),
                }
            };
            let count = node.count();
            let place = self.place_of(&node, count, key)?;
            let equal = |word| Ok::<_, Corrupt>(K::order(&self.pool, word, key)?.is_eq());
            if place < count && equal(node.key(place))? || equal(node.low())? {
                return Ok(()); // It is posted.
            }
            if count < Node::<M, NODE>::FANOUT {
                let _ = node.shift_in(count, place, Separated { key: low, child: child.offset() });
                return Ok(());
            }
            let right = match spare.take() {
                Ok(right) => right,
                Err(error) => return or_unposted(Err(error.into()), level),
            };
            let middle = self.split_inner(&node, right)?;
            drop(held);
            let middle_key = K::read(&self.pool, middle)?;
            self.post(middle, K::borrow(&middle_key), right, level + 1, spare)?;
        }
    }

    /// Splits an inner node, which is full and latched: its upper half moves to the block `at`.
    /// Returns the low key word of the right node.
    ///
    /// The right node is latched until the link is durable: else a crash could lose an entry there
    /// whose leaf split was complete, and recovery would free that leaf.
    ///
    /// # Persist order
    /// ```text
    /// W right node, F all lines |
    /// C next, F header |             crash before: the right node is free again
    /// W child[m] = null              crash before: recovery cuts the node at the next low key
    /// F all other lines |            -> durable   budget: 2 * NODE / 64 lines, 3 fences
    /// ```
    #[cold]
    fn split_inner(&self, node: &Node<'_, M, NODE>, at: PmPtr) -> Result<u64, Corrupt> {
        let entries = node.separated();
        let middle = entries.len() / 2;
        let Separated { key: low, child } = entries[middle];
        let header = (node.level, low, node.next());
        let right =
            Node::<M, NODE>::create_inner(&self.pool, at, header, child, &entries[middle + 1..])?;
        let medium = self.pool.medium();
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        let is_open = injects(Defect::RightInnerOpen);
        let right_held = if is_open { None } else { right.inner_latch(self.pool.nonce()).lock() };
        let fenced = medium.fence();
        if injects(Defect::InnerLinkWithCut) {
            let _ = node.link_and_cut(at, middle);
            return Ok(low);
        }
        let _ = node.link(at, fenced);
        drop(right_held);
        let _ = node.cut_upper(middle);
        Ok(low)
    }

    /// Puts a new root above the present one, with a separator for `child`. Returns `false` if the
    /// tree has `level` by now.
    ///
    /// # Persist order
    /// ```text
    /// N new root |           crash before C: free again; recovery grows the tree
    /// C root word            8 B
    /// F root block |         -> durable   budget: NODE / 64 + 1 lines, 2 fences
    /// ```
    fn grow(
        &self,
        low: u64,
        child: PmPtr,
        level: u32,
        spare: &mut Spare<'_, M>,
    ) -> Result<bool, TreeError> {
        let _held = self.root_latch()?.lock();
        let root = self.root_node()?;
        if root.level >= level {
            return Ok(false);
        }
        let at = spare.take()?;
        let header = (root.level + 1, 0, PmPtr::NULL);
        let entry = Separated { key: low, child: child.offset() };
        Node::<M, NODE>::create_inner(&self.pool, at, header, root.at.offset(), &[entry])?;
        let medium = self.pool.medium();
        let words = self.root.words(&self.pool)?;
        medium.commit(&words[ROOT], at.offset(), medium.fence());
        let _ = medium.persist(&words[..=ROOT]);
        Ok(true)
    }
}

/// Turns the error of a full pool into `Ok` above level 1.
fn or_unposted(done: Result<(), TreeError>, level: u32) -> Result<(), TreeError> {
    match done {
        Err(TreeError::Pool(PoolError::Full { .. })) if level > 1 => Ok(()),
        other => other,
    }
}
