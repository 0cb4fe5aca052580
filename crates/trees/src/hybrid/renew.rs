//! Replacing a full leaf of the kind to which entries are only appended by fresh ones.

use super::{Hybrid, HybridSpec, LeafRef, Restarts};
use crate::index::TreeError;
use crate::inner::Toward;
use crate::key::Key;
use crate::leaf::{Held, Leaf};
use bristlecone_pmem::sync::{Exclusive, Guard, OnMedium};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord};

type Latched<'a, M> = (LeafRef<'a>, Exclusive<OnMedium<'a, M>>);

/// A fresh leaf that takes the upper half, and what separates it from the lower one.
struct Upper<O> {
    leaf: PmPtr,
    separator: O,
    word: u64,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// A leaf that holds no more entries than this is replaced by one leaf, any other by two.
    const RENEWED_MAX: usize = S::Leaf::CAPACITY / 2;

    /// Replaces the leaf that covers `key`, if it is full. Nobody's latch may be held. Durable at
    /// return.
    ///
    /// ```text
    /// N leaf with what counts; N one for the upper half, its low key |   crash before C: free again
    /// C next of the leaf to the left, or the root block's first leaf
    /// F its line |              -> durable   budget: lines of the leaves + 1, 2 fences
    /// ```
    #[cold]
    pub(super) fn renew(&self, key: K::Ref<'_>, guard: &Guard) -> Result<(), TreeError> {
        let (left, (leaf, held)) = self.hold_with_left(key)?;
        let medium = self.pool.medium();
        if S::Leaf::room(medium, leaf.words) > 0 {
            return Ok(()); // Another thread was here first.
        }
        let entries: Vec<_> = self.ordered(&leaf)?.into_iter().map(|(_, held)| held).collect();
        let low = K::read(&self.pool, self.low(&leaf))?;
        let upper = self.fresh_upper(&leaf, &entries)?;
        let kept = if upper.is_some() { &entries[..entries.len() / 2] } else { &entries[..] };
        let next = upper.as_ref().map_or(self.next(&leaf), |upper| upper.leaf);
        let lower = self.fresh(self.low(&leaf), next, kept).inspect_err(|_| {
            if let Some(upper) = &upper {
                self.pool.release(upper.leaf, Self::LEAF_BYTES);
                self.unplant(upper.word);
            }
        })?;
        let (cell, value) = match &left {
            Some((left, _)) => (&left.words[S::Leaf::NEXT], S::Leaf::link(lower.offset())),
            None => (&self.root_words()?[0], lower.offset()),
        };
        self.publish(cell, value);
        // Whoever comes to the full leaf waits for its latch. Nobody may come to the lower one while
        // it is still taken to cover what the upper one does.
        if let Some(Upper { leaf, separator, word }) = upper {
            self.inner.post::<K>(&self.pool, K::borrow(&separator), word, leaf)?;
        }
        self.inner.redirect::<K>(&self.pool, K::borrow(&low), lower)?;
        held.obsolete();
        self.pool.retire(leaf.at, Self::LEAF_BYTES, guard);
        Ok(())
    }

    fn publish(&self, cell: &PmWord, value: u64) {
        let medium = self.pool.medium();
        medium.commit(cell, value, medium.fence());
        let _ = medium.persist(core::slice::from_ref(cell));
    }

    /// The leaf that covers `key` and the one to its left, if there is one, both latched. Latches
    /// are waited for from left to right, so nobody waits in a circle.
    fn hold_with_left(
        &self,
        key: K::Ref<'_>,
    ) -> Result<(Option<Latched<'_, M>>, Latched<'_, M>), Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let found = self.inner.seek::<K>(&self.pool, key, Toward::Key)?;
            let low = self.low(&self.leaf(found.leaf)?);
            let left = if low == 0 { None } else { Some(self.hold_left(low)?) };
            let leaf = self.leaf(found.leaf)?;
            if left.as_ref().is_some_and(|(left, _)| left.at == leaf.at) {
                let (at, what) = (leaf.at.offset(), "low key of a leaf, above its separator");
                return Err(Corrupt { at, what, expected: at, found: low });
            }
            let Some(held) = self.latch(&leaf).lock() else {
                restarts.at(found.leaf)?;
                continue;
            };
            if !self.inner.is_current(&found) {
                continue;
            }
            // Nothing comes between the two but by a change that makes one of them obsolete.
            let linked = match &left {
                Some((left, _)) => self.next(left),
                None => PmPtr::new(self.load(&self.root_words()?[0])),
            };
            if linked != leaf.at {
                let (at, what) = (leaf.at.offset(), "link that leads to a leaf");
                return Err(Corrupt { at, what, expected: at, found: linked.offset() });
            }
            return Ok((left, (leaf, held)));
        }
    }

    /// The leaf that covers the keys just below the separator `low`, latched.
    fn hold_left(&self, low: u64) -> Result<Latched<'_, M>, Corrupt> {
        let low = K::read(&self.pool, low)?;
        let mut restarts = Restarts::default();
        loop {
            let found = self.inner.seek::<K>(&self.pool, K::borrow(&low), Toward::Below)?;
            let leaf = self.leaf(found.leaf)?;
            match self.latch(&leaf).lock() {
                Some(held) => return Ok((leaf, held)),
                None => restarts.at(found.leaf)?,
            }
        }
    }

    /// A leaf for the upper half of `entries`, if these are too many for one; durable after the next
    /// fence.
    fn fresh_upper(
        &self,
        leaf: &LeafRef<'_>,
        entries: &[Held],
    ) -> Result<Option<Upper<K::Owned>>, TreeError> {
        if entries.len() <= Self::RENEWED_MAX {
            return Ok(None);
        }
        let (kept, moved) = entries.split_at(entries.len() / 2);
        let above = K::read_entry(&self.pool, moved[0].entry)?;
        let separator = K::between(&self.pool, kept[kept.len() - 1].entry, K::borrow(&above))?;
        let word = K::plant(&self.pool, K::borrow(&separator))?;
        let leaf = self.fresh(word, self.next(leaf), moved).inspect_err(|_| self.unplant(word))?;
        Ok(Some(Upper { leaf, separator, word }))
    }

    /// A leaf that nothing reaches yet; durable after the next fence.
    fn fresh(&self, low: u64, next: PmPtr, entries: &[Held]) -> Result<PmPtr, TreeError> {
        let at = self.pool.reserve(Self::LEAF_BYTES)?;
        let words = self.pool.words(at, S::Leaf::WORDS)?;
        S::Leaf::format::<K, M>(&self.pool, words, low, next.offset(), entries)?;
        Ok(at)
    }
}
