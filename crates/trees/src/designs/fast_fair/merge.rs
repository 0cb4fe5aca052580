//! Reclamation: sparse nodes are merged with a neighbour under the same parent, and a root with one
//! child gives way to it. Nothing here needs a new block, so it works in a full pool.

use super::descend::{Locked, Trail};
use super::{FastFairTree, ROOT};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

/// Blocks that merges have unlinked, and their bytes: for whoever asked for them to free, at once
/// if it is alone, or else when no reader is left.
pub(super) type Unlinked = Vec<(PmPtr, u64)>;

/// A merge that was done.
struct Merged<K: Key> {
    /// Low key of the node that is gone.
    seam: K::Owned,
    /// Entries that the parent has left.
    parent_count: usize,
}

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// Merges the node of `level` to which `key` belongs, if it or its neighbour is sparse and both
    /// fit in one; then whatever has become sparse by it.
    #[cold]
    pub(super) fn merge(
        &self,
        level: u32,
        key: K::Owned,
        unlinked: &mut Unlinked,
    ) -> Result<(), TreeError> {
        let mut sparse = vec![(level, key)];
        let mut merged_any = false;
        // Each turn that adds to the list has taken a node away, so it ends.
        while let Some((level, key)) = sparse.pop() {
            let Some(merged) = self.merge_one(level, K::borrow(&key), unlinked)? else { continue };
            merged_any = true;
            if merged.parent_count <= ShiftNode::<M, NODE>::CAPACITY / 4 {
                sparse.push((level + 1, key));
            }
            if level > 0 {
                // Its children are neighbours under one parent now.
                sparse.push((level - 1, merged.seam));
            }
        }
        if merged_any { self.collapse(unlinked) } else { Ok(()) }
    }

    fn merge_one(
        &self,
        level: u32,
        key: K::Ref<'_>,
        unlinked: &mut Unlinked,
    ) -> Result<Option<Merged<K>>, TreeError> {
        let found = self.lock(key, level + 1, &mut Trail::default())?;
        let Some(Locked { node: parent, held: _held, place }) = found else { return Ok(None) };
        let count = parent.count();
        let child = if place.equal { place.index } else { place.index.saturating_sub(1) };
        for right in [child + 1, child] {
            if (1..count).contains(&right)
                && let Some(seam) = self.merge_pair(&parent, count, right, unlinked)?
            {
                return Ok(Some(Merged { seam, parent_count: count - 1 }));
            }
        }
        Ok(None)
    }

    /// Merges child `right` of `parent`, which is latched and has `count` children, into the child
    /// before it, if that is worth it. Gives the low key of the node that is gone.
    ///
    /// ```text
    /// parent: remove separator      crash: the right node lacks a separator; recovery posts it
    /// left: append its entries      crash: they are at or above its low key and do not count
    /// C sibling of left             8 B   they do, and the right node is unlinked
    /// F header |                    -> durable   budget: the remove's, the append's, 1 line, 1 fence
    /// ```
    fn merge_pair(
        &self,
        parent: &ShiftNode<'_, M, NODE>,
        count: usize,
        right: usize,
        unlinked: &mut Unlinked,
    ) -> Result<Option<K::Owned>, TreeError> {
        let level = parent.level().saturating_sub(1);
        let separator = parent.entry(right);
        let left = self.node(PmPtr::new(parent.value(right - 1)), level)?;
        let right_node = self.node(PmPtr::new(separator.value), level)?;
        let Some(_left_held) = self.latch(&left).lock() else { return Ok(None) };
        if left.sibling() != right_node.at() {
            return Ok(None); // There is one between them that has no separator yet.
        }
        let Some(right_held) = self.latch(&right_node).lock() else { return Ok(None) };
        let counts = [left.count(), right_node.count()];
        if !Self::worth_merging(counts, level) {
            return Ok(None);
        }
        let mut moved: Vec<Entry> = (0..counts[1]).map(|i| right_node.entry(i)).collect();
        let low = right_node.low();
        let seam = K::read(&self.pool, low)?;
        if level > 0
            && let Some(first) = moved.first_mut()
        {
            first.key = low; // Only a leftmost child does without a separator.
        }
        let _ = parent.remove(right, count);
        let appended = left.append(counts[0], &moved);
        let _ = left.link(right_node.sibling(), appended);
        right_held.obsolete();
        unlinked.extend(K::block(&self.pool, separator.key)?);
        if level == 0 {
            unlinked.extend(K::block(&self.pool, low)?);
        }
        unlinked.push((right_node.at(), Self::NODE_BYTES));
        Ok(Some(seam))
    }

    /// Whether nodes with so many entries are to be one: one of them is down to a quarter, and
    /// there is room left afterwards, or one of them holds next to nothing.
    fn worth_merging(counts: [usize; 2], level: u32) -> bool {
        let capacity = ShiftNode::<M, NODE>::CAPACITY;
        let (least, sum) = (counts[0].min(counts[1]), counts[0] + counts[1]);
        let nothing = usize::from(level > 0);
        sum <= capacity && (least <= nothing || least <= capacity / 4 && sum <= capacity / 4 * 3)
    }

    /// While the root has a single child, makes the child the root.
    ///
    /// ```text
    /// C root            8 B     crash before: a root with a single child, which is no harm
    /// F root block |            -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn collapse(&self, unlinked: &mut Unlinked) -> Result<(), TreeError> {
        let words = self.root_words()?;
        loop {
            let _held = self.root_latch()?.lock();
            let root = self.root_node()?;
            if root.level() == 0 {
                return Ok(());
            }
            let Some(root_held) = self.latch(&root).lock() else {
                let (at, what) = (root.at().offset() + 32, "latch of the root says it is none");
                return Err(Corrupt { at, what, expected: 0, found: 2 }.into());
            };
            if root.count() != 1 || !root.sibling().is_null() {
                return Ok(());
            }
            let child = self.node(PmPtr::new(root.value(0)), root.level() - 1)?;
            let medium = self.pool.medium();
            // It publishes nothing: whoever changed root and child made them durable under their latches.
            medium.store(&words[ROOT], child.at().offset());
            let _ = medium.persist(&words[..=ROOT]);
            root_held.obsolete();
            unlinked.push((root.at(), Self::NODE_BYTES));
        }
    }
}
