//! Unlinks: an empty leaf leaves its level and its parent. Nodes are not merged.
//!
//! 1. An inner node whose only child is the leaf goes with it, and so on upwards, to the first node
//!    that has an entry for them. So a tree that is emptied gives its blocks back.
//! 2. A leaf that is the leftmost child of a node with entries stays, empty.
//! 3. Latches are taken from the leaves upwards, and on each level from left to right; a split
//!    takes one of an inner node at a time. So no deadlock is possible.
//! 4. An unlink reserves no block.

use super::WoTreeIndex;
use super::descend::LatchedInner;
use super::log::{LogRecord, Op};
use super::node::Node;
use crate::index::TreeError;
use crate::key::{self, Key};
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

/// A node with the leaf as its only descendant, and its left neighbour.
struct Single<'t, M: Medium, const NODE: usize> {
    left: LatchedInner<'t, M, NODE>,
    node: LatchedInner<'t, M, NODE>,
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Unlinks the leaf whose low key has the word `low`, if it is empty and may be unlinked. Then
    /// does the same with its left neighbour, which the unlink may have made the last child of its
    /// parents.
    #[cold]
    pub(super) fn unlink_from(&self, low: u64, guard: &Guard) -> Result<(), TreeError> {
        let mut low = low;
        while low != 0
            && let Some(left) = self.unlink(low, guard)?
        {
            low = left;
        }
        Ok(())
    }

    /// Unlinks one leaf. Returns the low key word of its left neighbour if that is empty, too.
    ///
    /// # Persist order
    /// ```text
    /// C log record, F |             of the left leaf
    /// ancestor: shift out           crash: recovery completes the unlink, or posts the nodes that
    ///                               the ancestor lacks
    /// for each inner node that goes, from the highest
    ///   C left neighbour's next, F |
    /// C left leaf's next, W seq, F |   line 0, in this order
    ///                               -> durable   budget: 2 lines, 2 fences, the shift, and 1 line,
    ///                                  1 fence for each inner node
    /// ```
    fn unlink(&self, low: u64, guard: &Guard) -> Result<Option<u64>, TreeError> {
        let key = K::read(&self.pool, low)?;
        let target = SearchTarget::<K>::Below(K::borrow(&key));
        let (left, left_held) = self.latch_leaf(target)?;
        let Some(leaf) = self.next_with_low(&left, low)? else { return Ok(None) };
        let Some(leaf_held) = leaf.leaf_latch(self.pool.nonce()).lock() else { return Ok(None) };
        if leaf.bitmap() != 0 {
            return Ok(None);
        }
        let line = self.log.lease(&self.pool)?;
        let mut singles: Vec<Single<'_, M, NODE>> = Vec::new();
        let mut child = leaf.at;
        let (parent, parent_held, index) = loop {
            let level = 1 + singles.len() as u32;
            let Some((node, held)) = self.latch_inner(target, level)? else { return Ok(None) };
            if let Some(index) = Self::index_of(&node, child) {
                break (node, held, index);
            }
            let Some(next) = self.next_with_low(&node, low)? else { return Ok(None) };
            let Some(next_held) = next.inner_latch(self.pool.nonce()).lock() else {
                return Ok(None);
            };
            if next.first_child() != child.offset() || next.count() != 0 {
                return Ok(None);
            }
            child = next.at;
            singles.push(Single { left: (node, held), node: (next, next_held) });
        };
        let seq = left.seq().wrapping_add(1);
        let _ = LogRecord { op: Op::Unlink { right: leaf.at }, leaf: left.at, seq }.write(&line);
        let mut fenced = parent.shift_out(parent.count(), index);
        for single in singles.iter().rev() {
            fenced = single.left.0.link(single.node.0.next(), fenced);
        }
        let _ = left.set_next(leaf.next(), seq);
        let mut unlinked = vec![leaf.at];
        leaf_held.obsolete();
        for Single { left, node: (node, held) } in singles {
            unlinked.push(node.at);
            held.obsolete();
            drop(left);
        }
        drop(parent_held);
        let next = (left.bitmap() == 0).then(|| left.low());
        drop((left_held, line));
        for at in unlinked {
            self.pool.retire(at, Self::NODE_BYTES, guard);
        }
        key::retire::<K, M>(&self.pool, low, guard)?;
        Ok(next)
    }

    /// Returns the next node of `node` if its low key has the word `low`.
    fn next_with_low(
        &self,
        node: &Node<'_, M, NODE>,
        low: u64,
    ) -> Result<Option<Node<'_, M, NODE>>, Corrupt> {
        let next: PmPtr = node.next();
        if next.is_null() {
            return Ok(None);
        }
        let next = self.node(next, node.level)?;
        Ok((next.low() == low).then_some(next))
    }
}
