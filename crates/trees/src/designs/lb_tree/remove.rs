//! Remove, and unlinking a leaf with its last entry.

use super::LbTreeIndex;
use super::layout;
use super::table::LeafRow;
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes};
use crate::key::{self, Entry, Key};
use crate::leaf_table::latch_leaf;
use bristlecone_pmem::sync::{Exclusive, Guard, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// A row and the guard of its latch.
type Latched<'a, M> = (LeafRow<'a>, Exclusive<OnDram<'a, M>>);

impl<M: Medium, K: Key> LbTreeIndex<M, K> {
    /// Removes `key` and returns its value. Unlinks the leaf with its last entry, unless it is the
    /// only leaf. Durable on return.
    pub(super) fn remove_key(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        loop {
            let (row, held) = latch_leaf(self, key, |row| self.prefetch_leaf(row))?;
            let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
            let Some((slot, entry)) = leaf.find::<K, M>(&self.pool, key)? else {
                return Ok(None);
            };
            let is_first = row.low::<M>() == 0;
            if leaf.count(medium) > 1 || is_first && self.table.next::<M>(row).is_none() {
                leaf.remove(medium, slot);
                let low = row.low::<M>();
                drop(held);
                let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
                if injects(Defect::LatchEarly) {
                    leaf.persist_late(medium);
                }
                if entry.key != low || injects(Defect::SeparatorFreed) {
                    key::retire_entry::<K, M>(&self.pool, entry, &guard)?;
                }
                return Ok(Some(entry.value));
            }
            let entry = if is_first {
                Some(self.unlink_first(key, (row, held), entry, &guard)?)
            } else {
                self.unlink(key, (row, held), &guard)?
            };
            if let Some(entry) = entry {
                return Ok(Some(entry.value));
            }
        }
    }

    /// Unlinks a leaf, which is not the first one, with its only entry, that of `key`. Returns the
    /// entry, or `None` if another thread has changed the leaf or its left neighbour. Durable on
    /// return.
    ///
    /// ```text
    /// C sibling alt of the left neighbour   8 B   crash before C: the leaf with its entry
    /// F its line 3 |                        -> durable   budget: 1 line, 1 fence
    /// ```
    #[cold]
    fn unlink(
        &self,
        key: K::Ref<'_>,
        (row, held): Latched<'_, M>,
        guard: &Guard,
    ) -> Result<Option<Entry>, TreeError> {
        let low = K::read(&self.pool, row.low::<M>())?;
        drop(held); // Latches are taken from left to right.
        let Some((left, left_held)) = self.latch_left(K::borrow(&low))? else { return Ok(None) };
        let mut left_held = Some(left_held);
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::UnlinkUnlatched) {
            left_held = None;
        }
        // Without this latch no thread unlinks the right neighbour, so its row stays its row.
        if self.table.next::<M>(left).is_none_or(|next| next.index != row.index) {
            return Ok(None);
        }
        let Some(held) = row.latch().lock() else { return Ok(None) };
        let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
        let found = leaf.find::<K, M>(&self.pool, key)?;
        let Some((_, entry)) = found.filter(|_| leaf.count(medium) == 1) else { return Ok(None) };
        self.leaf(left)?.set_next(medium, leaf.next(medium));
        left.set_next::<M>(self.table.next::<M>(row));
        let low = row.low::<M>();
        self.free_unlinked(key, (row, held), guard)?;
        drop(left_held);
        if low != entry.key {
            key::retire::<K, M>(&self.pool, low, guard)?;
        }
        key::retire_entry::<K, M>(&self.pool, entry, guard)?;
        Ok(Some(entry))
    }

    /// Latches the leaf that covers the keys just below `low`. Returns `None` if another thread
    /// changed it meanwhile.
    fn latch_left(&self, low: K::Ref<'_>) -> Result<Option<Latched<'_, M>>, Corrupt> {
        let route = self.inner.seek::<K>(&self.pool, low, Direction::Below)?;
        let left = self.table.row(route.leaf.offset() as usize);
        let Some(version) = left.latch::<M>().read() else { return Ok(None) };
        if !self.inner.is_current(&route) {
            return Ok(None);
        }
        Ok(left.latch().upgrade(version).map(|held| (left, held)))
    }

    /// Unlinks the first leaf with its only entry, that of `key`. There is a second leaf, which
    /// becomes the first one. Durable on return.
    ///
    /// ```text
    /// C root block: first leaf  8 B   crash before C: the leaf with its entry
    /// F root block |            -> durable   budget: 1 line, 1 fence
    /// ```
    #[cold]
    fn unlink_first(
        &self,
        key: K::Ref<'_>,
        (row, held): Latched<'_, M>,
        entry: Entry,
        guard: &Guard,
    ) -> Result<Entry, TreeError> {
        let (medium, second) = (self.pool.medium(), self.table.next::<M>(row));
        let Some((second, _second_held)) =
            second.and_then(|second| Some((second, second.latch::<M>().lock()?)))
        else {
            unreachable!("the caller has checked for a right neighbour, under the latch")
        };
        let root = self.root_words()?;
        medium.store(&root[0], second.leaf::<M>().offset());
        let _ = medium.persist(root);
        let former_low = second.low::<M>();
        second.set_low::<M>(0);
        self.free_unlinked(key, (row, held), guard)?;
        if !self.leaf(second)?.entries(medium).any(|entry| entry.key == former_low) {
            key::retire::<K, M>(&self.pool, former_low, guard)?;
        }
        key::retire_entry::<K, M>(&self.pool, entry, guard)?;
        Ok(entry)
    }

    /// Removes the row of an unlinked leaf from the inner nodes, and frees row and leaf. The caller
    /// holds the latch of the leaf that takes over the range.
    fn free_unlinked(
        &self,
        key: K::Ref<'_>,
        (row, held): Latched<'_, M>,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let leaf = row.leaf::<M>();
        row.clear_leaf::<M>();
        self.inner.unlink::<K>(&self.pool, key, PmPtr::new(row.index as u64))?;
        self.pool.retire(leaf, layout::BYTES, guard);
        drop(held);
        self.table.put_back(row.index);
        Ok(())
    }
}
