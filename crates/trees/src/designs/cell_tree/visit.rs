//! The first use of a leaf after an open that has read none.

use super::CellTreeIndex;
use super::epoch::Ended;
use super::leaf_table::high_of;
use super::recover::settle;
use super::rows::LeafWords;
use super::write::Latched;
use crate::inner::InnerNodes;
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Makes the words of a leaf that no operation has reached since the open, which followed a
    /// clean close. Another thread may do so meanwhile.
    ///
    /// # Errors
    /// The leaf is damaged.
    #[cold]
    pub(super) fn visit_first(&self, row: LeafWords<'_>) -> Result<(), Corrupt> {
        // Nothing unlinks a leaf that was not visited.
        let Some(_held) = row.latch::<M>().lock() else { return Ok(()) };
        self.visit_latched(row)
    }

    /// As [`visit_first`](Self::visit_first), with the latch of the leaf held; does nothing if the
    /// leaf was visited.
    ///
    /// # Errors
    /// The leaf is damaged.
    pub(super) fn visit_latched(&self, row: LeafWords<'_>) -> Result<(), Corrupt> {
        if !row.is_unvisited() {
            return Ok(());
        }
        let leaf = self.leaf(row)?;
        leaf.prefetch_all(self.pool.medium());
        let low = K::read(&self.pool, leaf.low(self.pool.medium())?)?;
        let high = high_of::<K, M>(&self.pool, leaf, BYTES)?.map(|(_, high)| high);
        let range = (&low, high.as_ref());
        let settled = settle::<K, M>(&self.pool, leaf, range, (Ended::ALL, None))?;
        row.set_tags::<M>(settled.tags);
        row.set_notes::<M>(settled.notes);
        Ok(())
    }

    /// Latches the leaf of `row`, and visits it. `None` if it is unlinked.
    pub(super) fn latch_row<'a>(
        &'a self,
        row: LeafWords<'a>,
    ) -> Result<Option<Latched<'a, M>>, Corrupt> {
        let Some(held) = row.latch::<M>().lock() else { return Ok(None) };
        self.visit_latched(row)?;
        Ok(Some((row, held)))
    }

    /// Visits all leaves that no operation has reached.
    ///
    /// # Errors
    /// A leaf is damaged.
    pub(super) fn visit_all(&self) -> Result<(), Corrupt> {
        let mut leaves = Vec::new();
        self.inner.for_each_leaf(&mut |separated| leaves.push(separated.leaf));
        leaves.into_iter().try_for_each(|leaf| {
            let row = self.row_at(PmPtr::new(leaf));
            if row.is_unvisited() { self.visit_first(row) } else { Ok(()) }
        })
    }
}
