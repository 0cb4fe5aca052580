//! Splits, from the highest full node of a path to its leaf, each with a record of its own.
//!
//! Each split is complete before the next one begins, and has space in its parent. So a crash, or
//! a pool that becomes full, leaves a valid tree between two of them.

use super::BTreeNativeIndex;
use super::log::NodeOp;
use super::node::SortedNode;
use super::write::Put;
use crate::index::{TreeError, WriteMode};
use crate::key::{Entry, Key};
use crate::linked_leaves::SearchTarget;
use crate::root_block::ROOT;
use bristlecone_pmem::{Defect, Medium};

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    /// Writes a pair as [`put_into`](Self::put_into), after splitting every full node from the leaf
    /// upwards, if the leaf is full. All latches are kept to the end, so no thread reaches a right
    /// node before its split is durable.
    #[cold]
    pub(super) fn split_and_put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        let path = self.latch_path(key, |count| count < SortedNode::<M, NODE>::CAPACITY)?;
        let leaf = path.nodes.last().expect("a path ends at a leaf").node;
        if let Put::Done(former) = self.put_into(&leaf, key, value, mode)? {
            return Ok(former);
        }
        // All nodes of the path are full, but the first one if it is not the root.
        let top = path.nodes[0].node;
        let (mut half, full) = match path.root {
            Some(_) => (self.grow(&top)?, &path.nodes[..]),
            None => (top, &path.nodes[1..]),
        };
        for below in full {
            half = self.split(&half, &below.node, key)?;
        }
        match self.put_into(&half, key, value, mode)? {
            Put::Done(former) => Ok(former),
            Put::Full => Err(half.damage("entries of half a node", 0, 1).into()),
        }
    }

    /// Puts a root without separators above the present one, which is full, and returns it. The
    /// caller holds the latch of the root block.
    ///
    /// # Persist order
    /// ```text
    /// N new root |           crash before C: free again
    /// C root word            8 B
    /// F root block |         -> durable   budget: 2 lines, 2 fences
    /// ```
    fn grow(&self, root: &SortedNode<'_, M, NODE>) -> Result<SortedNode<'_, M, NODE>, TreeError> {
        let at = self.pool.reserve(Self::NODE_BYTES)?;
        let (level, seq) = (root.level + 1, self.log.above_all());
        SortedNode::<M, NODE>::create(&self.pool, at, (level, seq, root.at.offset()), &[])?;
        let medium = self.pool.medium();
        let words = self.root.words(&self.pool)?;
        medium.commit(&words[ROOT], at.offset(), medium.fence());
        let _ = medium.persist(&words[..=ROOT]);
        Ok(self.node(at, level)?)
    }

    /// Splits `node`, which is full, below `parent`, which is not. Returns the half for `key`.
    ///
    /// # Persist order
    /// ```text
    /// N separator's record       only if the layer has records, and of a leaf
    /// N right node |             crash before C: free again
    /// C log record, F |          crash from here on: recovery completes the split
    /// W link of a leaf, state of the node, F |
    /// parent: insert             -> durable   budget: lines of the right node + 4 and of the
    ///                            moved entries; 5 fences and theirs
    /// ```
    fn split<'t>(
        &'t self,
        parent: &SortedNode<'t, M, NODE>,
        node: &SortedNode<'t, M, NODE>,
        key: K::Ref<'_>,
    ) -> Result<SortedNode<'t, M, NODE>, TreeError> {
        let (above, state) = (parent.state()?, node.state()?);
        let entries = node.entries(state.count);
        let [below, middle] = entries[Self::lower_half(state.count) - 1..][..2] else {
            return Err(node.damage("entries of a full node", 2, state.count).into());
        };
        let upper = &entries[Self::lower_half(state.count)..];
        let (link, upper) = match node.level {
            0 => (node.link().offset(), upper),
            _ => (middle.value, &upper[1..]),
        };
        let at = self.pool.reserve(Self::NODE_BYTES)?;
        let separator = self
            .separator(node, below, middle)
            .inspect_err(|_| self.pool.release(at, Self::NODE_BYTES))?;
        let injects = |defect| M::INJECTS_DEFECTS && self.pool.medium().injects(defect);
        let fresh = if injects(Defect::NativeSeqZero) { 0 } else { self.log.above_all() };
        SortedNode::<M, NODE>::create(&self.pool, at, (node.level, fresh, link), upper)?;
        if !injects(Defect::RightAfterRecord) {
            let _ = self.pool.medium().fence();
        }
        let seq = state.seq.max(above.seq) + 1;
        let place = self.route(parent, above.count, SearchTarget::At(key))?;
        let op = NodeOp::Split { place, low: separator, right: at, parent: parent.at };
        self.logged(op, node, seq, |fenced| {
            let _ = Self::cut(node, at, (state.count, seq), fenced);
            let entry = Entry::plain(separator, at.offset());
            Ok(parent.insert_from(above.count, place, entry, (above.count, seq)))
        })?;
        let is_right = K::order(&self.pool, separator, key)?.is_le();
        Ok(if is_right { self.node(at, node.level)? } else { *node })
    }

    /// Returns the separator word between the halves of a node, whose entries `below` and `middle`
    /// lie at the cut. A leaf gets a new one; an inner node gives that of `middle` away.
    fn separator(
        &self,
        node: &SortedNode<'_, M, NODE>,
        below: Entry,
        middle: Entry,
    ) -> Result<u64, TreeError> {
        if node.level > 0 {
            return Ok(middle.key);
        }
        let above = K::read_entry(&self.pool, middle)?;
        let low = K::between(&self.pool, below, K::borrow(&above))?;
        Ok(K::store_separator(&self.pool, K::borrow(&low))?)
    }
}
