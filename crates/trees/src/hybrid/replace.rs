//! Replacing a full leaf of the kind to which entries are only appended by fresh ones.
//!
//! 1. The latches of a leaf and of the one to its left are waited for from left to right, and no
//!    other is held meanwhile. So nobody waits in a circle.
//! 2. Until the link is durable nothing leads to a fresh leaf. From then on the full one is obsolete
//!    to whoever opens the pool; everybody else comes to it, and waits, until the inner nodes lead to
//!    the fresh ones.

use super::{Hybrid, HybridSpec, Latched, LeafRef, Restarts};
use crate::index::TreeError;
use crate::inner::{Direction, Replaced};
use crate::key::{self, Key};
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord};

/// What a leaf must be like to be replaced, and by how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewal {
    /// It has room for less than this.
    room: usize,
    /// If it holds more entries than this, by two leaves.
    one_max: usize,
}

/// A fresh leaf that takes the upper half, and what separates it from the lower one.
struct Upper<O> {
    leaf: PmPtr,
    separator: O,
    word: u64,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// For a leaf that has no room: one that is at most half full of what counts is replaced by one
    /// leaf, which then has as much room again.
    pub(super) const NO_ROOM: Renewal = Renewal { room: 1, one_max: S::Leaf::CAPACITY / 2 };

    /// For a leaf that is to take in `added` entries more, all of which fit.
    pub(super) const fn room_for(added: usize) -> Renewal {
        Renewal { room: added, one_max: Self::MERGED_MAX }
    }

    /// Replaces the leaf that covers `key`, if `renewal` says so. The caller holds no latch. Durable at
    /// return.
    ///
    /// ```text
    /// N leaf with what counts; N one for the upper half, its low key |   crash before C: free again
    /// C next of the leaf to the left, or the root block's first leaf
    /// F its line |              -> durable   budget: lines of the leaves + 1, 2 fences
    /// ```
    #[cold]
    pub(super) fn replace_leaf(
        &self,
        key: K::Ref<'_>,
        renewal: Renewal,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let (left, (leaf, held)) = self.hold_with_left(key)?;
        if S::Leaf::free_slots(self.pool.medium(), leaf.words) >= renewal.room {
            return Ok(()); // Another thread was here first.
        }
        let entries: Vec<_> = self.ordered(&leaf)?.into_iter().map(|(_, held)| held).collect();
        let is_two = entries.len() > renewal.one_max;
        let (kept, moved) = entries.split_at(entries.len() / if is_two { 2 } else { 1 });
        let upper = if is_two { Some(self.fresh_upper(&leaf, kept, moved)?) } else { None };
        let next = upper.as_ref().map_or(self.next(&leaf), |upper| upper.leaf);
        let lower = self.fresh(self.low(&leaf), next, kept).inspect_err(|_| {
            if let Some(upper) = &upper {
                self.pool.release(upper.leaf, Self::LEAF_BYTES);
                key::free_separator::<K, M>(&self.pool, upper.word);
            }
        })?;
        match &left {
            Some((left, _)) => {
                self.lead_to(&left.words[S::Leaf::NEXT], S::Leaf::encode_next(lower.offset()));
            }
            None => self.lead_to(&self.root_words()?[0], lower.offset()),
        }
        let upper =
            upper.as_ref().map(|upper| (K::borrow(&upper.separator), upper.word, upper.leaf));
        let replaced = Replaced { full: leaf.at, lower, upper };
        let replaced = self.inner.replace::<K>(&self.pool, key, replaced);
        // Where damage keeps the inner nodes from leading on, nothing more may be written to it. Then
        // it is not freed: they still lead to it.
        held.obsolete();
        replaced?;
        self.pool.retire(leaf.at, Self::LEAF_BYTES, guard);
        Ok(())
    }

    /// Stores the link that reaches fresh leaves, once they are durable. Durable at return.
    fn lead_to(&self, link: &PmWord, value: u64) {
        let medium = self.pool.medium();
        medium.commit(link, value, medium.fence());
        let _ = medium.persist(core::slice::from_ref(link));
    }

    /// The leaf that covers `key` and the one to its left, if there is one, both latched.
    fn hold_with_left(
        &self,
        key: K::Ref<'_>,
    ) -> Result<(Option<Latched<'_, M>>, Latched<'_, M>), Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let found = self.inner.seek::<K>(&self.pool, key, Direction::Key)?;
            let leaf = self.leaf(found.leaf)?;
            let low = self.low(&leaf);
            let left = if low == 0 { None } else { Some(self.hold_left(low)?) };
            if left.as_ref().is_some_and(|(left, _)| left.at == leaf.at) {
                let (at, what) = (leaf.at.offset(), "low key of a leaf, above its separator");
                return Err(Corrupt { at, what, expected: at, found: low });
            }
            let Some(held) = self.latch(&leaf).lock() else {
                restarts.at(found.leaf)?;
                continue;
            };
            // It covers `key` still: a leaf of this kind gives keys away only as it becomes obsolete. And
            // nothing comes between the two but by a change that makes one of them obsolete.
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
            let found = self.inner.seek::<K>(&self.pool, K::borrow(&low), Direction::Below)?;
            let leaf = self.leaf(found.leaf)?;
            match self.latch(&leaf).lock() {
                Some(held) => return Ok((leaf, held)),
                None => restarts.at(found.leaf)?,
            }
        }
    }

    /// A leaf for the `moved` entries, which are above the `kept` ones, all of `leaf`; durable after the
    /// next fence.
    fn fresh_upper(
        &self,
        leaf: &LeafRef<'_>,
        kept: &[TaggedEntry],
        moved: &[TaggedEntry],
    ) -> Result<Upper<K::Owned>, TreeError> {
        let (Some(below), Some(above)) = (kept.last(), moved.first()) else {
            unreachable!("a leaf is halved if it holds more than half of its capacity")
        };
        let above = K::read_entry(&self.pool, above.entry)?;
        let separator = K::between(&self.pool, below.entry, K::borrow(&above))?;
        let covering =
            self.inner.seek::<K>(&self.pool, K::borrow(&separator), Direction::Key)?.leaf;
        if covering != leaf.at {
            return Err(super::recover::out_of_range(leaf, below.entry).into());
        }
        let word = K::store_separator(&self.pool, K::borrow(&separator))?;
        let leaf = self
            .fresh(word, self.next(leaf), moved)
            .inspect_err(|_| key::free_separator::<K, M>(&self.pool, word))?;
        Ok(Upper { leaf, separator, word })
    }

    /// A leaf that nothing reaches yet; durable after the next fence.
    fn fresh(&self, low: u64, next: PmPtr, entries: &[TaggedEntry]) -> Result<PmPtr, TreeError> {
        let at = self.pool.reserve(Self::LEAF_BYTES)?;
        let words = self.pool.words(at, S::Leaf::WORDS)?;
        S::Leaf::format::<K, M>(&self.pool, words, low, next.offset(), entries)?;
        Ok(at)
    }
}
