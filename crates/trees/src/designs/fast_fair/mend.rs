//! Mending by writers, FAIR's lazy repair: a node that a crash has left in a transient state stays
//! so until a writer latches it.
//!
//! 1. A latch word of an earlier open says that no writer has latched the node since. So it may
//!    hold leftovers: the left one of two entries with one key, which a shift has left, or entries
//!    from the sibling's low key on, which a split or a merge has left. Readers bear both.
//! 2. Entries from the sibling's low key on are copies of the sibling's. They stay equal: while a
//!    node has them no parent has a separator of its sibling, so a writer comes to the sibling
//!    through the node, which it latches and mends.
//! 3. So a writer that has come to a node through its left neighbour mends that one before it posts
//!    the node.
//! 4. In an inner node the left one of two entries with one key has a child at or left of that key,
//!    from where the links lead on.

use super::descend::Reached;
use super::{FastFairSpec, FastFairTree};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::sync::{Exclusive, Guard, OnMedium};
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Waits for the latch of `node` and takes it. The first writer after an open mends the node.
    /// Returns `None` if the node is obsolete.
    ///
    /// ```text
    /// node: mend                only if a crash has left something   -> durable
    /// ```
    #[inline(always)]
    pub(super) fn lock_node<'t>(
        &self,
        node: &ShiftNode<'t, M, S::Form, NODE>,
    ) -> Result<Option<Exclusive<OnMedium<'t, M>>>, Corrupt> {
        let latch = self.latch(node);
        // Two writers may both find it so. The second one, which waits for the first, finds nothing
        // to mend.
        let is_untouched = latch.is_untouched();
        let Some(held) = latch.lock() else { return Ok(None) };
        if is_untouched {
            self.mend(node)?;
        }
        Ok(Some(held))
    }

    #[cold]
    fn mend(&self, node: &ShiftNode<'_, M, S::Form, NODE>) -> Result<(), Corrupt> {
        let limit = self.limit(node)?;
        node.mend::<K>(&self.pool, limit.as_ref().map(K::borrow))
    }

    /// Returns the low key of the sibling of `node`, if there is one.
    fn limit(&self, node: &ShiftNode<'_, M, S::Form, NODE>) -> Result<Option<K::Owned>, Corrupt> {
        let at = node.sibling();
        if at.is_null() {
            return Ok(None);
        }
        let low = ShiftNode::<M, S::Form, NODE>::view(&self.pool, at)?.low();
        K::read(&self.pool, low).map(Some)
    }

    /// Posts a node that a writer has reached without a separator.
    ///
    /// ```text
    /// left neighbour: mend      only if no writer has latched it since the open
    /// post
    /// ```
    #[cold]
    pub(super) fn post_reached(&self, reached: Reached, pinned: &Guard) -> Result<(), TreeError> {
        let left = ShiftNode::view(&self.pool, reached.left)?;
        if self.lock_node(&left)?.is_none() {
            return Ok(()); // The node has another left neighbour. The next writer posts it.
        }
        self.post(reached.at, pinned)
    }

    /// Drops from the `entries` of a node that no writer has latched since the open those that do
    /// not count. `limit` is the sibling's low key. Returns the entries from there on.
    pub(super) fn drop_leftovers(
        &self,
        entries: &mut Vec<Entry>,
        is_inner: bool,
        limit: Option<&K::Owned>,
    ) -> Result<Vec<Entry>, Corrupt> {
        let mut copies = Vec::new();
        if let Some(limit) = limit {
            let mut count = usize::from(is_inner).min(entries.len());
            while let Some(entry) = entries.get(count)
                && K::order(&self.pool, entry.key, K::borrow(limit))?.is_lt()
            {
                count += 1;
            }
            copies = entries.split_off(count);
        }
        entries.dedup_by(|right, left| {
            let is_same = right.key == left.key;
            if is_same {
                *left = *right;
            }
            is_same
        });
        Ok(copies)
    }
}
