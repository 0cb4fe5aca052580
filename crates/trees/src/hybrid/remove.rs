//! Remove; merges of leaves.

use super::{Hybrid, HybridSpec};
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf::Leaf;
use bristlecone_pmem::sync::{Guard, pin};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PoolError};

/// What came of an attempt to merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Merged {
    Done,
    Not,
    /// All would fit into the left leaf, if it had room for so many entries.
    Crowded {
        added: usize,
    },
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// A leaf is merged with a neighbour once it has no more entries than this.
    const SPARSE: usize = S::Leaf::CAPACITY / 4;
    /// A merged leaf is left with room, so that the next insert does not split it again.
    pub(super) const MERGED_MAX: usize = S::Leaf::CAPACITY * 3 / 4;

    #[inline]
    pub(super) fn remove_entry(&self, key: K::Ref<'_>) -> Result<Option<Entry>, TreeError> {
        let guard = pin();
        let (leaf, held) = self.latch_leaf(key)?;
        let Some((slot, _)) = S::Leaf::find::<K, M>(&self.pool, leaf.words, key)? else {
            return Ok(None);
        };
        let entry = S::Leaf::remove(&self.pool, leaf.words, slot);
        let sparse = S::Leaf::count(self.pool.medium(), leaf.words) <= Self::SPARSE;
        drop(held);
        key::retire_entry::<K, M>(&self.pool, entry, &guard)?;
        if sparse {
            self.merge_around(key, &guard)?;
        }
        Ok(Some(entry))
    }

    /// Merges the leaf that covers `key` with a neighbour. A left leaf that could take the right one in but
    /// for what it still stores of entries that are gone is replaced first.
    #[cold]
    fn merge_around(&self, key: K::Ref<'_>, guard: &Guard) -> Result<(), TreeError> {
        let mut crowded = None;
        self.merge_once(key, guard, &mut crowded)?;
        let Some((left, added)) = crowded else { return Ok(()) };
        let low = K::read(&self.pool, self.low(&self.leaf(left)?))?;
        match self.replace_leaf(K::borrow(&low), Self::room_for(added), guard) {
            // The leaves stay sparse: a remove needs no room.
            Err(TreeError::Pool(PoolError::Full { .. })) => Ok(()),
            renewed => {
                renewed?;
                self.merge_once(key, guard, &mut None)
            }
        }
    }

    /// Merges the leaf that covers `key` with a neighbour, if both fit into the left one; else
    /// `crowded` is a left leaf that needs room for as many entries.
    fn merge_once(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
        crowded: &mut Option<(PmPtr, usize)>,
    ) -> Result<(), TreeError> {
        self.inner.merge_leaves::<K, TreeError>(&self.pool, key, |left, right| {
            let merged = self.merge(left, right, guard)?;
            match merged {
                Merged::Done => *crowded = None,
                Merged::Crowded { added } => *crowded = Some((left, added)),
                Merged::Not => {}
            }
            Ok(merged == Merged::Done)
        })
    }

    /// Takes the right leaf's entries into the left one and unlinks it, if they fit and nobody holds
    /// a latch. Durable at return.
    ///
    /// ```text
    /// A left absorbs the right's entries     crash here: hidden by the right's low key, dropped
    /// C next                   8 B           unlinks the right leaf: the bound moves, they are seen
    /// F next |                 -> durable    budget: lines of the entries + 2, 3 fences; 1 line and
    ///                                        1 fence if the right leaf is empty
    /// ```
    fn merge(&self, left: PmPtr, right: PmPtr, guard: &Guard) -> Result<Merged, Corrupt> {
        let (left, right) = (self.leaf(left)?, self.leaf(right)?);
        let (left_latch, right_latch) = (self.latch(&left), self.latch(&right));
        let Some(_left_held) = left_latch.try_lock() else { return Ok(Merged::Not) };
        let Some(right_held) = right_latch.try_lock() else { return Ok(Merged::Not) };
        let medium = self.pool.medium();
        let added = S::Leaf::count(medium, right.words);
        let total = S::Leaf::count(medium, left.words) + added;
        if total > Self::MERGED_MAX || self.next(&left) != right.at {
            return Ok(Merged::Not);
        }
        if added > S::Leaf::free_slots(medium, left.words) {
            return Ok(Merged::Crowded { added });
        }
        // What could fail is done before the right leaf is unlinked. A leaf that nobody has come to
        // since the pool was opened may be damaged: its sum must not be made good.
        S::Leaf::verify(medium, left.at.offset(), left.words)?;
        S::Leaf::verify(medium, right.at.offset(), right.words)?;
        let low = K::block(&self.pool, self.low(&right))?;
        let mut moved = Vec::with_capacity(S::Leaf::CAPACITY);
        S::Leaf::collect(medium, right.words, &mut moved);
        let next = &left.words[S::Leaf::NEXT..=S::Leaf::NEXT];
        let after = S::Leaf::encode_next(self.next(&right).offset());
        if moved.is_empty() {
            medium.store(&next[0], after); // It publishes nothing.
        } else {
            let absorbed = S::Leaf::absorb::<K, M>(&self.pool, left.words, &moved)?;
            medium.commit(&next[0], after, absorbed);
        }
        let _ = medium.persist(next);
        right_held.obsolete();
        self.pool.retire(right.at, Self::LEAF_BYTES, guard);
        if let Some((block, bytes)) = low {
            // A record whose length is damaged stays in use until the next recovery.
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        Ok(Merged::Done)
    }
}
