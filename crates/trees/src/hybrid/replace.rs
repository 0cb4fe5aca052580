//! Replacing a full leaf by one or two new leaves: an append-only leaf, or any leaf of a design
//! with [`Restructuring::Replacement`](super::Restructuring::Replacement).
//!
//! 1. A thread latches the left neighbour of the leaf, then the leaf, and holds no other latch
//!    while it waits. So the latch order of the engine holds.
//! 2. Nothing reaches a new leaf until the link to it is durable. From then on recovery finds the
//!    new leaves. Other threads still reach the old leaf, and wait for its latch, until the inner
//!    nodes lead to the new ones.

use super::{Hybrid, HybridSpec, Latched, LeafRef, Restarts};
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes, Replaced};
use crate::key::{self, Entry, Key};
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::sync::{Exclusive, Guard, OnMedium};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord};

/// The condition on which a leaf is replaced, and by how many leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplaceRule {
    /// The leaf is replaced if it has space for fewer entries than this.
    needed: usize,
    /// The largest number of entries for which one new leaf is enough; more are divided between
    /// two.
    one_leaf_max: usize,
}

/// The left neighbour of a leaf and the guard of its latch; no guard only in the defect
/// [`Defect::LeftUnlatched`].
pub(super) type LeftNeighbour<'a, M> = (LeafRef<'a>, Option<Exclusive<OnMedium<'a, M>>>);

/// A new leaf for the upper half of the entries, and the separator between the two halves.
struct UpperLeaf<O> {
    leaf: PmPtr,
    separator: O,
    word: u64,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// The rule for a leaf that lacks space for `needed` entries. A leaf whose valid entries fill
    /// at most half of it is replaced by one leaf, in which half of the space is then free.
    pub(super) const fn no_room_for(needed: usize) -> ReplaceRule {
        ReplaceRule { needed, one_leaf_max: S::Leaf::CAPACITY / 2 }
    }

    /// The rule for a leaf that shall take `added` more entries; all of them fit into one leaf.
    pub(super) const fn room_for(added: usize) -> ReplaceRule {
        ReplaceRule { needed: added, one_leaf_max: Self::MERGED_MAX }
    }

    /// Replaces the leaf that covers `key`, if `rule` applies to it. The caller holds no latch.
    /// Durable on return.
    ///
    /// ```text
    /// N lower leaf; if two: upper leaf, its low key |   crash before C: unreachable, free again
    /// C next of the left neighbour, or the root block's first leaf   8 B
    /// F its line |              -> durable   budget: lines of the leaves + 1, 2 fences
    /// ```
    #[cold]
    pub(super) fn replace_leaf(
        &self,
        key: K::Ref<'_>,
        rule: ReplaceRule,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let (left, (leaf, latch_guard)) = self.latch_with_left(key)?;
        if S::Leaf::free_slots(self.pool.medium(), leaf.words) >= rule.needed {
            return Ok(()); // another thread has replaced it
        }
        let entries: Vec<_> =
            self.sorted_entries(&leaf)?.into_iter().map(|(_, tagged)| tagged).collect();
        let needs_two = entries.len() > rule.one_leaf_max;
        let (kept, moved) = entries.split_at(entries.len() / if needs_two { 2 } else { 1 });
        let upper = if needs_two { Some(self.write_upper_leaf(&leaf, kept, moved)?) } else { None };
        let next = upper.as_ref().map_or(self.next(&leaf), |upper| upper.leaf);
        let lower = self.write_leaf(self.low(&leaf), next, kept).inspect_err(|_| {
            if let Some(upper) = &upper {
                self.pool.release(upper.leaf, Self::LEAF_BYTES);
                key::free_separator::<K, M>(&self.pool, upper.word);
            }
        })?;
        let (link, value) = match &left {
            Some((left, _)) => (&left.words[S::Leaf::NEXT], S::Leaf::encode_next(lower.offset())),
            None => (&self.root_words()?[0], lower.offset()),
        };
        let upper =
            upper.as_ref().map(|upper| (K::borrow(&upper.separator), upper.word, upper.leaf));
        let replaced = Replaced { full: leaf.at, lower, upper };
        let is_parent_first = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ParentFirst);
        if !is_parent_first {
            self.publish(link, value);
        }
        let replaced = self.inner.replace::<K>(&self.pool, key, replaced);
        if is_parent_first {
            self.publish(link, value);
        }
        // If damage made this fail, the inner nodes still lead to the old leaf. It becomes obsolete
        // all the same, so that no thread writes to it, but it is not freed.
        if !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ObsoleteUnmarked)) {
            latch_guard.obsolete();
        }
        replaced?;
        self.pool.retire(leaf.at, Self::LEAF_BYTES, guard);
        Ok(())
    }

    /// Replaces the full leaf that covers `key` by two, each with half of the entries. Does nothing
    /// if the leaf is not full any more. The caller holds no latch. Durable on return.
    ///
    /// ```text
    /// |                                     nothing in DRAM or PM reaches what follows
    /// N lower leaf, upper leaf, its low key |   crash before C: unreachable, free again
    /// C next of the left neighbour, or the root block's first leaf   8 B
    /// F its line |              -> durable   budget: lines of both leaves + 1, 3 fences
    /// ```
    #[cold]
    pub(super) fn split_by_replacement(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let _ = self.pool.medium().fence(); // the batch of flushes begins
        self.replace_leaf(key, Self::no_room_for(1), guard)
    }

    /// Fences the new leaves, then stores the link that makes them reachable. Durable on return.
    pub(super) fn publish(&self, link: &PmWord, value: u64) {
        let medium = self.pool.medium();
        if M::INJECTS_DEFECTS && medium.injects(Defect::FreshUnfenced) {
            medium.store(link, value);
            let _ = medium.persist(core::slice::from_ref(link));
            return;
        }
        medium.commit(link, value, medium.fence());
        let _ = medium.persist(core::slice::from_ref(link));
    }

    /// Latches the leaf that covers `key` and its left neighbour, if it has one.
    fn latch_with_left(
        &self,
        key: K::Ref<'_>,
    ) -> Result<(Option<LeftNeighbour<'_, M>>, Latched<'_, M>), Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let route = self.inner.seek::<K>(&self.pool, key, Direction::Key)?;
            let leaf = self.leaf(route.leaf)?;
            let low = self.low(&leaf);
            let left = if low == 0 { None } else { Some(self.latch_left(low)?) };
            if left.as_ref().is_some_and(|(left, _)| left.at == leaf.at) {
                let (at, what) =
                    (leaf.at.offset(), "low key of a leaf, which is above its separator");
                return Err(Corrupt { at, what, expected: at, found: low });
            }
            let Some(latch_guard) = self.latch(&leaf).lock() else {
                restarts.count_unlinked(route.leaf)?;
                continue;
            };
            // The leaf still covers `key`: a leaf that is replaced, not cut, loses keys only by
            // becoming obsolete, and `lock` fails then. It is still the right neighbour of `left`:
            // a change between the two would make one of them obsolete.
            let linked = match &left {
                Some((left, _)) => self.next(left),
                None => PmPtr::new(self.load(&self.root_words()?[0])),
            };
            if linked != leaf.at {
                let (at, what) = (leaf.at.offset(), "link of the left neighbour of a leaf");
                return Err(Corrupt { at, what, expected: at, found: linked.offset() });
            }
            return Ok((left, (leaf, latch_guard)));
        }
    }

    /// Latches the leaf that covers the keys just below the separator `low`.
    pub(super) fn latch_left(&self, low: u64) -> Result<LeftNeighbour<'_, M>, Corrupt> {
        let low = K::read(&self.pool, low)?;
        let mut restarts = Restarts::default();
        loop {
            let route = self.inner.seek::<K>(&self.pool, K::borrow(&low), Direction::Below)?;
            let leaf = self.leaf(route.leaf)?;
            match self.latch(&leaf).lock() {
                Some(_)
                    if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LeftUnlatched) =>
                {
                    return Ok((leaf, None));
                }
                Some(latch_guard) => return Ok((leaf, Some(latch_guard))),
                None => restarts.count_unlinked(route.leaf)?,
            }
        }
    }

    /// Writes a new leaf for the entries `moved`, which together with the smaller ones `kept` are
    /// all of `leaf`. Durable after the next fence.
    fn write_upper_leaf(
        &self,
        leaf: &LeafRef<'_>,
        kept: &[TaggedEntry],
        moved: &[TaggedEntry],
    ) -> Result<UpperLeaf<K::Owned>, TreeError> {
        let (Some(below), Some(above)) = (kept.last(), moved.first()) else {
            unreachable!("both halves have entries: only leaves over `one_leaf_max` are halved")
        };
        let above = K::read_entry(&self.pool, above.entry)?;
        let separator = K::between(&self.pool, below.entry, K::borrow(&above))?;
        self.check_separator(leaf, below.entry, K::borrow(&separator))?;
        let word = K::store_separator(&self.pool, K::borrow(&separator))?;
        let leaf = self
            .write_leaf(word, self.next(leaf), moved)
            .inspect_err(|_| key::free_separator::<K, M>(&self.pool, word))?;
        Ok(UpperLeaf { leaf, separator, word })
    }

    /// Checks that the inner nodes lead from `separator` to `leaf`, which the caller has latched.
    /// So they can take the separator once it is durable. `below` is the entry before it.
    ///
    /// # Errors
    /// The inner nodes, or the leaf, are damaged.
    pub(super) fn check_separator(
        &self,
        leaf: &LeafRef<'_>,
        below: Entry,
        separator: K::Ref<'_>,
    ) -> Result<(), Corrupt> {
        let covering = self.inner.seek::<K>(&self.pool, separator, Direction::Key)?.leaf;
        if covering == leaf.at { Ok(()) } else { Err(super::recover::out_of_range(leaf, below)) }
    }

    /// Writes a new leaf that nothing reaches yet. Durable after the next fence.
    pub(super) fn write_leaf(
        &self,
        low: u64,
        next: PmPtr,
        entries: &[TaggedEntry],
    ) -> Result<PmPtr, TreeError> {
        let at = self.pool.reserve(Self::LEAF_BYTES)?;
        let words = self.pool.words(at, S::Leaf::WORDS)?;
        S::Leaf::format::<K, M>(&self.pool, words, low, next.offset(), entries)?;
        Ok(at)
    }
}
