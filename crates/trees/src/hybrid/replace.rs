//! Replacing a full leaf by one or two new leaves: an append-only leaf, or any leaf of a design
//! with [`Restructuring::Replacement`](super::Restructuring::Replacement).
//!
//! 1. A thread latches the left neighbour of the leaf, then the leaf, and holds no other latch
//!    while it waits. So the latch order of the engine holds.
//!    With lock arrays it latches the inner node last, before it stores the link.
//! 2. Nothing reaches a new leaf until the link to it is durable. From then on recovery finds the
//!    new leaves. Other threads still reach the old leaf, and wait for its latch, until the inner
//!    nodes lead to the new ones.

use super::{Hybrid, HybridSpec, Latched, LeafRef, Restarts};
use crate::index::TreeError;
use crate::inner::{self, Direction, InnerNodes, Replaced};
use crate::key::{self, Entry, Key};
use crate::leaf::{Leaf, TaggedEntry};
use crate::node_latch::HeldLatch;
use bristlecone_pmem::sync::Guard;
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
pub(super) type LeftNeighbour<'a, M> = (LeafRef<'a>, Option<HeldLatch<'a, M>>);

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

    /// Replaces the leaf that covers `key`, if `rule` applies to it. Returns `false`, and changes
    /// nothing, if a node with a lock array has no room. The caller holds no latch. Durable on
    /// return.
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
    ) -> Result<bool, TreeError> {
        let (left, (leaf, latch_guard)) = self.latch_with_left(key)?;
        if S::Leaf::free_slots(self.pool.medium(), leaf.words) >= rule.needed {
            return Ok(true); // another thread has replaced it
        }
        let entries: Vec<_> =
            self.sorted_entries(&leaf)?.into_iter().map(|(_, tagged)| tagged).collect();
        let needs_two = entries.len() > rule.one_leaf_max;
        let (kept, moved) = entries.split_at(entries.len() / if needs_two { 2 } else { 1 });
        let upper = if needs_two { Some(self.write_upper_leaf(&leaf, kept, moved)?) } else { None };
        let next = upper.as_ref().map_or(self.next(&leaf), |upper| upper.leaf);
        let lower = self
            .write_leaf(self.low(&leaf), next, kept)
            .inspect_err(|_| self.release_upper(upper.as_ref()))?;
        let (link, value) = match &left {
            Some((left, _)) => (&left.words[S::Leaf::NEXT], S::Leaf::encode_next(lower.offset())),
            None => (&self.root_words()?[0], lower.offset()),
        };
        let halves = upper.as_ref().map(|half| (K::borrow(&half.separator), half.word, half.leaf));
        let replaced = Replaced { full: leaf.at, lower, upper: halves };
        let shown = self.show_replaced(key, replaced, (link, value));
        if Self::HAS_LOCKS && !matches!(shown, Ok(true)) {
            self.pool.release(lower, Self::LEAF_BYTES);
            self.release_upper(upper.as_ref());
            return Ok(shown?);
        }
        // If damage made this fail, the inner nodes still lead to the old leaf. It becomes obsolete
        // all the same, so that no thread writes to it, but it is not freed.
        if !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ObsoleteUnmarked)) {
            latch_guard.obsolete();
        }
        shown?;
        self.pool.retire(leaf.at, Self::LEAF_BYTES, guard);
        Ok(true)
    }

    /// Publishes new leaves, and puts them in the place of the old one in the inner nodes. Returns
    /// `false`, and does neither, if the node above has a lock array and no room. Such a node is
    /// latched from before the link is stored, so that no other thread takes the room.
    fn show_replaced(
        &self,
        key: K::Ref<'_>,
        replaced: Replaced<K::Ref<'_>>,
        (link, value): (&PmWord, u64),
    ) -> Result<bool, Corrupt> {
        let is_parent_first = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ParentFirst);
        let publish_if = |is_time: bool| {
            if is_time {
                self.publish(link, value);
            }
        };
        if Self::HAS_LOCKS {
            let publish = || publish_if(!is_parent_first);
            let shown =
                inner::replace_leaf::<M, K, _>(&self.inner, &self.pool, key, &replaced, publish)?;
            publish_if(shown && is_parent_first);
            return Ok(shown);
        }
        publish_if(!is_parent_first);
        let replaced = self.inner.replace::<K>(&self.pool, key, replaced);
        publish_if(is_parent_first);
        replaced.map(|()| true)
    }

    /// Frees an upper leaf that nothing leads to.
    fn release_upper(&self, upper: Option<&UpperLeaf<K::Owned>>) {
        if let Some(upper) = upper {
            self.pool.release(upper.leaf, Self::LEAF_BYTES);
            key::free_separator::<K, M>(&self.pool, upper.word);
        }
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
        loop {
            self.inner.make_room::<K>(&self.pool, key)?;
            if self.replace_leaf(key, Self::no_room_for(1), guard)? {
                return Ok(());
            }
        }
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
            let leaf = self.leaf_on(&route)?;
            let low = self.low(&leaf);
            let left = if low == 0 { None } else { Some(self.latch_left(low)?) };
            if left.as_ref().is_some_and(|(left, _)| left.at == leaf.at) {
                let (at, what) =
                    (leaf.at.offset(), "low key of a leaf, which is above its separator");
                return Err(Corrupt { at, what, expected: at, found: low });
            }
            let latched = self.wait_at(&route, key, Direction::Key, &mut restarts)?;
            let Ok((latched, latch_guard)) = latched else { continue };
            if latched.at != leaf.at {
                continue; // the lock is now that of a leaf which has replaced it
            }
            // The leaf still covers `key`: a leaf that is replaced, not cut, loses keys only by
            // being unlinked, which `wait_at` finds. It is still the right neighbour of `left`: a
            // change between the two would unlink one of them.
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
            let latched = self.wait_at(&route, K::borrow(&low), Direction::Below, &mut restarts)?;
            let Ok((leaf, latch_guard)) = latched else { continue };
            let is_open = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LeftUnlatched);
            return Ok((leaf, (!is_open).then_some(latch_guard)));
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
        let route = self.inner.seek::<K>(&self.pool, separator, Direction::Key)?;
        if self.leaf_on(&route)?.at == leaf.at {
            Ok(())
        } else {
            Err(super::recover::out_of_range(leaf, below))
        }
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
