//! Insert, update and upsert; splits.

use super::LbTreeIndex;
use super::layout::{self, CAPACITY, LbLeaf, SPLIT};
use super::table::LeafRow;
use crate::fingerprint;
use crate::index::{TreeError, WriteMode};
use crate::inner::InnerNodes;
use crate::key::{self, Entry, Key};
use crate::leaf::TaggedEntry;
use crate::leaf_table::{LeafTable, Operation, key_word, latch_leaf};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

impl<M: Medium, K: Key> LbTreeIndex<M, K> {
    /// Prefetches the leaf of `row`.
    #[inline(always)]
    pub(super) fn prefetch_leaf(&self, row: LeafRow<'_>) {
        if let Ok(leaf) = self.leaf(row) {
            leaf.prefetch(self.pool.medium());
        }
    }

    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        let _guard = self.pool.pin();
        let (row, held) = latch_leaf(self, key, |row| self.prefetch_leaf(row))?;
        let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
        let found = leaf.find::<K, M>(&self.pool, key)?;
        let old = found.map(|(_, entry)| entry.value);
        let Some(value) = Operation::Write(mode, value).value(old) else { return Ok(old) };
        if let Some((slot, _)) = found {
            leaf.update(medium, slot, value);
            return Ok(old);
        }
        self.insert_absent(row, leaf, key, value)?;
        if M::INJECTS_DEFECTS && medium.injects(Defect::LatchEarly) {
            drop(held);
            leaf.persist_late(medium);
        }
        Ok(None)
    }

    /// Inserts an absent key into its latched leaf, and splits the leaf first if it is full.
    /// Durable on return. See [`LbLeaf::insert`] and [`LbLeaf::cut`].
    fn insert_absent(
        &self,
        row: LeafRow<'_>,
        leaf: LbLeaf<'_>,
        key: K::Ref<'_>,
        value: u64,
    ) -> Result<(), TreeError> {
        let medium = self.pool.medium();
        let (word, is_stored) = key_word(self, key, value, None)?;
        let fingerprint = fingerprint::of(K::hash(key));
        let new = TaggedEntry { entry: Entry::plain(word, value), fingerprint };
        if leaf.count(medium) == CAPACITY {
            return self.split(row, leaf, key, new);
        }
        if M::INJECTS_DEFECTS && medium.injects(Defect::LockBitKept) {
            leaf.set_lock_bit(medium);
        }
        leaf.insert(medium, new, is_stored);
        Ok(())
    }

    /// Splits a full leaf in halves and inserts `new`, whose key is `key`. Durable on return.
    ///
    /// ```text
    /// A cut                     6 lines, 2 fences   the right leaf holds a greater new key
    /// A insert into the left leaf                   if the new key belongs there
    /// ```
    #[cold]
    fn split(
        &self,
        row: LeafRow<'_>,
        leaf: LbLeaf<'_>,
        key: K::Ref<'_>,
        new: TaggedEntry,
    ) -> Result<(), TreeError> {
        let right = self.cut(row, leaf, key, new.entry);
        let right = right.inspect_err(|_| key::free_entry_key::<K, M>(&self.pool, new.entry))?;
        if K::compare(key, K::borrow(&right.separator)).is_lt() {
            leaf.insert(self.pool.medium(), new, false);
        }
        let right_row = self.table.take::<M>(right.leaf, right.word);
        right_row.set_next::<M>(self.table.next::<M>(row));
        row.set_next::<M>(Some(right_row));
        let child = PmPtr::new(right_row.index as u64);
        Ok(self.inner.post::<K>(&self.pool, K::borrow(&right.separator), right.word, child)?)
    }

    /// Moves the upper half of a full leaf to a new leaf, with the entry `new` of `key` if that
    /// belongs there. The key word of the least moved entry becomes the separator word.
    fn cut(
        &self,
        row: LeafRow<'_>,
        leaf: LbLeaf<'_>,
        key: K::Ref<'_>,
        new: Entry,
    ) -> Result<RightLeaf<K>, TreeError> {
        let medium = self.pool.medium();
        let copy = self.copy(row)?; // Checks that each entry lies in the range of the leaf.
        let mut pairs = copy.pairs;
        let moved = pairs.split_off(SPLIT);
        let (separator, entry) = &moved[0];
        let right = self.pool.reserve(layout::BYTES)?;
        let tagged = |hash, entry| TaggedEntry { entry, fingerprint: fingerprint::of(hash) };
        let mut held: Vec<_> =
            moved.iter().map(|(key, entry)| tagged(K::hash(K::borrow(key)), *entry)).collect();
        if K::compare(key, K::borrow(separator)).is_ge() {
            held.insert(0, tagged(K::hash(key), new));
        }
        let image = layout::image(leaf.next(medium), &held);
        medium.fill(self.pool.block(right, layout::WORDS)?, &image);
        leaf.cut::<K, M>(&self.pool, &moved, right)
            .inspect_err(|_: &Corrupt| self.pool.release(right, layout::BYTES))?;
        Ok(RightLeaf { leaf: right, word: entry.key, separator: separator.clone() })
    }
}

/// A new leaf and its low key.
struct RightLeaf<K: Key> {
    leaf: PmPtr,
    word: u64,
    separator: K::Owned,
}
