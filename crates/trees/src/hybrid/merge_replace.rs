//! Replacing two sparse leaves by one new leaf.
//!
//! 1. A thread latches the left neighbour, then the two leaves, from left to right, and only then
//!    the inner node above them. It holds all four until the new leaf is durable and linked. So the
//!    latch order of the engine holds, and no other thread changes one of the two links that the
//!    new leaf takes over.
//! 2. Both leaves are under one inner node, as the paper of Isle-Tree has it. So one change of that
//!    node replaces both.

use super::replace::LeftNeighbour;
use super::{Hybrid, HybridSpec, Latched, LeafRef, Restarts};
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes, LeafRoute, Restart};
use crate::key::Key;
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PoolError};

/// The left neighbour of two leaves, if they have one, and the two.
type LatchedThree<'a, M> = (Option<LeftNeighbour<'a, M>>, [Latched<'a, M>; 2]);

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Merges the leaf that covers `key` with a neighbour if both are sparse, and the merged leaf
    /// with the next one for as long as that is sparse too. The caller holds no latch.
    #[cold]
    pub(super) fn merge_by_replacement(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let mut restarts = Restarts::default();
        'again: loop {
            let [left, leaf, right] = self.inner.siblings::<K>(&self.pool, key)?;
            let is_sparse = |route: &LeafRoute| -> Result<bool, Corrupt> {
                let leaf = self.leaf_on(route)?;
                Ok(S::Leaf::count(self.pool.medium(), leaf.words) <= Self::SPARSE_MAX)
            };
            for (left, right) in [left.zip(leaf), leaf.zip(right)].into_iter().flatten() {
                // Read without a latch: only a hint that spares most attempts their latches.
                if !is_sparse(&left)? || !is_sparse(&right)? {
                    continue;
                }
                match self.merge_into_fresh(&left, &right, guard, &mut restarts) {
                    // A remove must not need space; the leaves stay sparse. The other pair has no
                    // more space, and its route is out of date: the attempt latched the node.
                    Err(TreeError::Pool(PoolError::Full { .. })) => return Ok(()),
                    merged => match merged? {
                        Ok(false) => {}
                        Ok(true) => {
                            self.inner.merge_path::<K>(&self.pool, key)?;
                            continue 'again;
                        }
                        Err(Restart) => continue 'again,
                    },
                }
            }
            return Ok(());
        }
    }

    /// Replaces the leaves at the ends of two routes by one new leaf, if both are sparse and under
    /// one inner node. Returns `true` if it did. Durable on return.
    ///
    /// ```text
    /// |                                     nothing in DRAM or PM reaches what follows
    /// N new leaf |                          crash before C: unreachable, free again
    /// C next of the left neighbour, or the root block's first leaf   8 B
    /// F its line |              -> durable   budget: lines of the leaf + 1, 3 fences
    /// ```
    fn merge_into_fresh(
        &self,
        left_route: &LeafRoute,
        right_route: &LeafRoute,
        guard: &Guard,
        restarts: &mut Restarts,
    ) -> Result<Result<bool, Restart>, TreeError> {
        let Some((before, [left, right])) =
            self.latch_three([left_route, right_route], restarts)?
        else {
            return Ok(Err(Restart));
        };
        let ((left, left_guard), (right, right_guard)) = (left, right);
        let low = self.low(&left);
        let medium = self.pool.medium();
        let counts = [&left, &right].map(|leaf| S::Leaf::count(medium, leaf.words));
        if counts.iter().any(|&count| count > Self::SPARSE_MAX) {
            return Ok(Ok(false));
        }
        // The leaves are linked, so they still are neighbours: each replacement of one of the three
        // leaves would have unlinked it.
        let link = match &before {
            Some((before, _)) => &before.words[S::Leaf::NEXT],
            None => &self.root_words()?[0],
        };
        let linked = match &before {
            Some((before, _)) => self.next(before),
            None => PmPtr::new(self.load(link)),
        };
        if linked != left.at || self.next(&left) != right.at {
            return Err(wrong_link(&left, linked).into());
        }
        let mut entries: Vec<TaggedEntry> = Vec::with_capacity(S::Leaf::CAPACITY);
        for leaf in [&left, &right] {
            entries.extend(self.sorted_entries(leaf)?.into_iter().map(|(_, tagged)| tagged));
        }
        if entries.len() > S::Leaf::CAPACITY {
            let (at, what) = (left.at.offset(), "number of entries of two sparse leaves");
            let (expected, found) = (S::Leaf::CAPACITY as u64, entries.len() as u64);
            return Err(Corrupt { at, what, expected, found }.into());
        }
        let key = K::read(&self.pool, low)?;
        let dropped_low = K::block(&self.pool, self.low(&right))?;
        let pair = (left.at, right.at);
        let is_merged =
            self.inner.replace_two::<K, TreeError>(&self.pool, K::borrow(&key), pair, || {
                let _ = medium.fence(); // the batch of flushes begins
                let fresh = self.write_leaf(low, self.next(&right), &entries)?;
                let to_fresh = match &before {
                    Some(_) => S::Leaf::encode_next(fresh.offset()),
                    None => fresh.offset(),
                };
                self.publish(link, to_fresh);
                Ok(fresh)
            })?;
        if is_merged {
            left_guard.obsolete();
            right_guard.obsolete();
            self.pool.retire(left.at, Self::LEAF_BYTES, guard);
            self.pool.retire(right.at, Self::LEAF_BYTES, guard);
            if let Some((block, bytes)) = dropped_low {
                // Fails only if the record's length is damaged. The block then stays in use until
                // recovery.
                let _ = self.pool.try_retire(block, bytes, guard);
            }
        }
        Ok(Ok(is_merged))
    }

    /// Latches the left neighbour of the first of two leaves, then the leaves at the ends of the
    /// routes, which lie side by side. Returns `None` if one of them has been unlinked.
    fn latch_three(
        &self,
        [left_route, right_route]: [&LeafRoute; 2],
        restarts: &mut Restarts,
    ) -> Result<Option<LatchedThree<'_, M>>, Corrupt> {
        let (left, right) = (self.leaf_on(left_route)?, self.leaf_on(right_route)?);
        let lows = [&left, &right].map(|leaf| self.low(leaf));
        let before = if lows[0] == 0 { None } else { Some(self.latch_left(lows[0])?) };
        // Damage may lead to one of the two leaves itself, and a second latch would wait for ever.
        if before.as_ref().is_some_and(|(at, _)| at.at == left.at || at.at == right.at) {
            return Err(wrong_link(&left, left.at));
        }
        let latch = |route, low, restarts: &mut Restarts| {
            let key = K::read(&self.pool, low)?;
            self.wait_at(route, K::borrow(&key), Direction::Key, restarts)
        };
        let Ok(first) = latch(left_route, lows[0], restarts)? else { return Ok(None) };
        let Ok(second) = latch(right_route, lows[1], restarts)? else { return Ok(None) };
        // The locks may by now be those of leaves that have replaced them.
        let are_same = first.0.at == left.at && second.0.at == right.at;
        Ok(are_same.then_some((before, [first, second])))
    }
}

#[cold]
fn wrong_link(leaf: &LeafRef<'_>, found: PmPtr) -> Corrupt {
    let (at, what) = (leaf.at.offset(), "link of the left neighbour of a leaf");
    Corrupt { at, what, expected: at, found: found.offset() }
}
