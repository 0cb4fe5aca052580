//! Merges: a sparse node merges with a sibling under the same parent, and a root with a single
//! child gives way to it. No step needs a new block, so this works in a full pool.

use super::descend::{DescentState, LatchedNode};
use super::{FastFairSpec, FastFairTree};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::{ShiftForm, ShiftNode};
use crate::root_block::ROOT;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// Unlinked blocks and their sizes. The caller frees them: recovery at once, other callers when no
/// reader can be left.
pub(super) type Unlinked = Vec<(PmPtr, u64)>;

/// The result of one merge.
struct Merge<K: Key> {
    /// The low key of the removed node.
    low_key: K::Owned,
    /// The number of entries left in the parent.
    parent_count: usize,
}

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// The largest number of entries of a sparse node.
    pub(super) const SPARSE_MAX: usize =
        if S::MERGES_QUARTERS { ShiftNode::<M, S::Form, NODE>::CAPACITY / 4 } else { 0 };

    /// Merges the node of `level` that covers `key` with a sibling if one of them is sparse and
    /// both fit in one node. Then merges the nodes that became sparse by this.
    #[cold]
    pub(super) fn merge(
        &self,
        level: u32,
        key: K::Owned,
        unlinked: &mut Unlinked,
    ) -> Result<(), TreeError> {
        let mut sparse = vec![(level, key)];
        let mut merged_any = false;
        // Each round that adds to the list has removed a node, so the loop ends.
        while let Some((level, key)) = sparse.pop() {
            let Some(merged) = self.merge_one(level, K::borrow(&key), unlinked)? else { continue };
            merged_any = true;
            if merged.parent_count <= Self::SPARSE_MAX.max(1) {
                sparse.push((level + 1, key));
            }
            if level > 0 {
                // The children next to the removed separator are now siblings under one parent.
                sparse.push((level - 1, merged.low_key));
            }
        }
        if merged_any { self.collapse(unlinked) } else { Ok(()) }
    }

    fn merge_one(
        &self,
        level: u32,
        key: K::Ref<'_>,
        unlinked: &mut Unlinked,
    ) -> Result<Option<Merge<K>>, TreeError> {
        let found = self.lock(key, level + 1, &mut DescentState::default())?;
        let Some(LatchedNode { node: parent, held: _held, pos }) = found else { return Ok(None) };
        let count = parent.count();
        let child = if pos.equal { pos.index } else { pos.index.saturating_sub(1) };
        for right in [child + 1, child] {
            if (1..count).contains(&right)
                && let Some(low_key) = self.merge_pair(&parent, count, right, unlinked)?
            {
                return Ok(Some(Merge { low_key, parent_count: count - 1 }));
            }
        }
        Ok(None)
    }

    /// Merges child `right` of `parent` into the child before it, if that saves enough. `parent` is
    /// latched and has `count` children. Returns the low key of the removed node.
    ///
    /// A reader without a latch may have passed the end of the left node before the entries came,
    /// and read the link after it changed. The shift counter, which changes in between, tells it. A
    /// change before the first store tells a reader that is still beyond a former end.
    ///
    /// ```text
    /// parent: remove separator      crash: the right node lacks a separator
    /// R shifts of left
    /// left: append its entries      crash: they are at or above its low key and do not count
    /// R shifts of left
    /// C sibling of left             8 B   they do, and the right node is unlinked
    /// F header |                    -> durable   budget: remove + append + 1 line, 1 flush
    /// ```
    fn merge_pair(
        &self,
        parent: &ShiftNode<'_, M, S::Form, NODE>,
        count: usize,
        right: usize,
        unlinked: &mut Unlinked,
    ) -> Result<Option<K::Owned>, TreeError> {
        let level = parent.level().saturating_sub(1);
        let separator = parent.entry(right);
        let left = self.node(PmPtr::new(parent.value(right - 1)), level)?;
        let right_node = self.node(PmPtr::new(separator.value), level)?;
        let Some(_left_held) = self.lock_node(&left)? else { return Ok(None) };
        if left.sibling() != right_node.at() {
            return Ok(None); // A node without a separator lies between the two.
        }
        let Some(right_held) = self.lock_node(&right_node)? else { return Ok(None) };
        let counts = [left.count(), right_node.count()];
        if !Self::should_merge(counts, level) {
            return Ok(None);
        }
        let mut moved: Vec<Entry> = (0..counts[1]).map(|i| right_node.entry(i)).collect();
        let low = right_node.low();
        let low_key = K::read(&self.pool, low)?;
        if level > 0
            && let Some(first) = moved.first_mut()
        {
            first.key = low; // Only a leftmost child has no separator.
        }
        self.shift_out(parent, right, count);
        let is_counted =
            !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::MergeUncounted));
        let counter = self.shifts(&left);
        if is_counted {
            counter.advance();
        }
        let appended = left.append(counts[0], &moved);
        if is_counted {
            counter.advance();
        }
        let _ = left.link(right_node.sibling(), appended);
        right_held.obsolete();
        unlinked.extend(K::block(&self.pool, separator.key)?);
        if level == 0 {
            unlinked.extend(K::block(&self.pool, low)?);
        }
        unlinked.push((right_node.at(), Self::NODE_BYTES));
        Ok(Some(low_key))
    }

    /// Returns `true` if two nodes with these entry counts should merge: one is sparse and space is
    /// left afterwards, or one is empty or has a single child.
    fn should_merge(counts: [usize; 2], level: u32) -> bool {
        let capacity = ShiftNode::<M, S::Form, NODE>::CAPACITY;
        let (least, sum) = (counts[0].min(counts[1]), counts[0] + counts[1]);
        let nothing = usize::from(level > 0);
        sum <= capacity
            && (least <= nothing || least <= Self::SPARSE_MAX && sum <= capacity / 4 * 3)
    }

    /// Replaces the root by its child while the root has a single child.
    ///
    /// ```text
    /// C root            8 B     crash before C: a root with a single child, which is valid
    /// F root block |            -> durable   budget: 1 line, 1 flush
    /// ```
    pub(super) fn collapse(&self, unlinked: &mut Unlinked) -> Result<(), TreeError> {
        let words = self.root.words(&self.pool)?;
        loop {
            let _held = self.root_latch()?.lock();
            let root = self.root_node()?;
            if root.level() == 0 {
                return Ok(());
            }
            let Some(root_held) = self.lock_node(&root)? else {
                let (at, what) = (root.at().offset() + 32, "root node is marked obsolete");
                return Err(Corrupt { at, what, expected: 0, found: 2 }.into());
            };
            if root.count() != 1 || !root.sibling().is_null() {
                return Ok(());
            }
            let child = self.node(PmPtr::new(root.value(0)), root.level() - 1)?;
            let medium = self.pool.medium();
            // No fence is needed before: earlier writers made root and child durable under their
            // latches.
            medium.store(&words[ROOT], child.at().offset());
            S::Form::before_flush(medium);
            let _ = medium.persist(&words[..=ROOT]);
            root_held.obsolete();
            unlinked.push((root.at(), Self::NODE_BYTES));
        }
    }
}
