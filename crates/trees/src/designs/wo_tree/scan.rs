//! Scans: copy one leaf at a time under its shared latch, then call `visit` without a latch.
//!
//! An ascending scan continues at the next leaf that the copy names. A descending scan descends
//! again, to the keys below the leaf's low key. Both ignore entries of the next copy beyond the
//! last leaf's bound, so no split or merge in between can repeat or reorder a key.

use super::WoTreeIndex;
use super::descend::SearchTarget;
use super::node::Node;
use crate::key::{Entry, Key};
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

/// A copy of a leaf.
struct LeafCopy {
    entries: Vec<Entry>,
    low: u64,
    /// The next leaf and its low key.
    next: Option<(PmPtr, u64)>,
}

type Bounds<'a, 'b, K> = (Bound<<K as Key>::Ref<'a>>, Bound<<K as Key>::Ref<'b>>);

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Visits the pairs within `bounds` in ascending order.
    pub(super) fn scan_ascending(
        &self,
        bounds: Bounds<'_, '_, K>,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), Corrupt> {
        let _guard = self.pool.pin();
        // At first the caller's bound, then the low key of the next leaf.
        let mut start = match bounds.0 {
            Bound::Unbounded => Bound::Included(K::least()),
            bound => bound.map(K::to_owned),
        };
        let mut leaf = None;
        let mut last = None;
        let mut copy = LeafCopy::empty();
        while let Bound::Included(key) | Bound::Excluded(key) = &start {
            self.copy_leaf(leaf, SearchTarget::At(K::borrow(key)), &mut copy)?;
            for &Entry { key: word, value, .. } in &copy.entries {
                if self.is_before(word, start.as_ref().map(K::borrow))? {
                    continue;
                }
                if self.is_after(word, bounds.1)? {
                    return Ok(());
                }
                let key = self.next_key(word, &mut last, Ordering::Greater)?;
                if visit(K::borrow(key), value).is_break() {
                    return Ok(());
                }
            }
            match copy.next {
                Some((at, low)) if !self.is_after(low, bounds.1)? => {
                    if !K::order(&self.pool, low, K::borrow(key))?.is_gt() {
                        return Err(out_of_order(low));
                    }
                    start = Bound::Included(K::read(&self.pool, low)?);
                    leaf = Some(at);
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Visits the pairs within `bounds` in descending order.
    pub(super) fn scan_descending(
        &self,
        bounds: Bounds<'_, '_, K>,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), Corrupt> {
        let _guard = self.pool.pin();
        // At first the caller's bound, then the low key of the last leaf.
        let mut end = bounds.1.map(K::to_owned);
        let mut last = None;
        let mut copy = LeafCopy::empty();
        loop {
            let target = match &end {
                Bound::Included(key) => SearchTarget::At(K::borrow(key)),
                Bound::Excluded(key) => SearchTarget::Below(K::borrow(key)),
                Bound::Unbounded => SearchTarget::Last,
            };
            self.copy_leaf(None, target, &mut copy)?;
            for &Entry { key: word, value, .. } in copy.entries.iter().rev() {
                if self.is_after(word, end.as_ref().map(K::borrow))? {
                    continue;
                }
                if self.is_before(word, bounds.0)? {
                    return Ok(());
                }
                let key = self.next_key(word, &mut last, Ordering::Less)?;
                if visit(K::borrow(key), value).is_break() {
                    return Ok(());
                }
            }
            if copy.low == 0 || self.is_before(copy.low, bounds.0)? {
                return Ok(());
            }
            let low = K::read(&self.pool, copy.low)?;
            let goes_down = match &end {
                Bound::Included(last) => low <= *last,
                Bound::Excluded(last) => low < *last,
                Bound::Unbounded => true,
            };
            if !goes_down {
                return Err(out_of_order(copy.low));
            }
            end = Bound::Excluded(low);
        }
    }

    /// Returns the key of `word`, after checking that it compares to the last visited key as
    /// `order` says.
    fn next_key<'l>(
        &self,
        word: u64,
        last: &'l mut Option<K::Owned>,
        order: Ordering,
    ) -> Result<&'l K::Owned, Corrupt> {
        let key = K::read(&self.pool, word)?;
        if last.as_ref().is_some_and(|last| key.cmp(last) != order) {
            return Err(out_of_order(word));
        }
        Ok(last.insert(key))
    }

    /// Returns `true` if the key of `word` is below the lower bound `start`.
    fn is_before(&self, word: u64, start: Bound<K::Ref<'_>>) -> Result<bool, Corrupt> {
        Ok(match start {
            Bound::Included(key) => K::order(&self.pool, word, key)?.is_lt(),
            Bound::Excluded(key) => K::order(&self.pool, word, key)?.is_le(),
            Bound::Unbounded => false,
        })
    }

    /// Returns `true` if the key of `word` is above the upper bound `end`.
    fn is_after(&self, word: u64, end: Bound<K::Ref<'_>>) -> Result<bool, Corrupt> {
        Ok(match end {
            Bound::Included(key) => K::order(&self.pool, word, key)?.is_gt(),
            Bound::Excluded(key) => K::order(&self.pool, word, key)?.is_ge(),
            Bound::Unbounded => false,
        })
    }

    /// Copies the leaf of `target`, under its shared latch. Starts at `near` if that is still
    /// linked, else descends.
    fn copy_leaf(
        &self,
        near: Option<PmPtr>,
        target: SearchTarget<'_, K>,
        copy: &mut LeafCopy,
    ) -> Result<(), Corrupt> {
        if let Some(near) = near {
            let leaf = self.node(near, 0)?;
            // The target is the low key of this leaf, so the leaf covers it while it is linked.
            if let Some(_held) = leaf.leaf_latch(self.pool.nonce()).share() {
                return self.copy_latched(&leaf, copy);
            }
        }
        let (leaf, _held) = self.share_leaf(target)?;
        self.copy_latched(&leaf, copy)
    }

    fn copy_latched(&self, leaf: &Node<'_, M, NODE>, copy: &mut LeafCopy) -> Result<(), Corrupt> {
        copy.entries.clear();
        copy.entries.extend(leaf.ordered()?.iter().map(|(_, entry)| *entry));
        copy.low = leaf.low();
        let next = leaf.next();
        copy.next = if next.is_null() { None } else { Some((next, self.node(next, 0)?.low())) };
        Ok(())
    }
}

impl LeafCopy {
    const fn empty() -> Self {
        Self { entries: Vec::new(), low: 0, next: None }
    }
}

#[cold]
fn out_of_order(word: u64) -> Corrupt {
    let what = "key out of order in a scan (word of the key)";
    Corrupt { at: 0, what, expected: 0, found: word }
}
