//! Scans: copy and validate one leaf at a time, then call `visit` without a latch.
//!
//! An ascending scan continues at the sibling that the copy names. A descending scan descends
//! again, to the keys below the leaf's low key. Both ignore entries of the next copy beyond the
//! last leaf's bound, so no split or merge in between can repeat or reorder a key.

use super::FastFairTree;
use super::descend::{DescentState, Target};
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

/// A copy of a leaf at one version.
struct LeafCopy {
    entries: Vec<Entry>,
    low: u64,
    /// The sibling and its low key.
    next: Option<(PmPtr, u64)>,
}

/// The result of an attempt to copy a leaf.
enum CopyResult {
    Copied,
    Right(PmPtr),
}

type Bounds<'a, 'b, K> = (Bound<<K as Key>::Ref<'a>>, Bound<<K as Key>::Ref<'b>>);

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
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
            self.copy_leaf(leaf, Target::At(K::borrow(key)), &mut copy)?;
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
                Bound::Included(key) => Target::At(K::borrow(key)),
                Bound::Excluded(key) => Target::Below(K::borrow(key)),
                Bound::Unbounded => Target::Last,
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

    /// Copies the leaf of `target`. Starts at `near` if that is still linked, else descends.
    fn copy_leaf(
        &self,
        near: Option<PmPtr>,
        target: Target<'_, K>,
        copy: &mut LeafCopy,
    ) -> Result<(), Corrupt> {
        let mut state = DescentState::default();
        let pool_bytes = self.pool.medium().len();
        let mut near = near.map(|at| self.node(at, 0)).transpose()?;
        loop {
            let start = match near.take() {
                Some(leaf) => Some(leaf),
                None => self.descend(target, 0, &mut state)?,
            };
            let Some(mut leaf) = start else { continue };
            while let Some(result) =
                self.validated(&leaf, || self.copy_or_move_right(&leaf, target, copy))?
            {
                match result {
                    CopyResult::Copied => return Ok(()),
                    CopyResult::Right(at) => {
                        state.step(&leaf, pool_bytes)?;
                        leaf = self.node(at, 0)?;
                    }
                }
            }
            state.restart(&leaf)?;
        }
    }

    fn copy_or_move_right(
        &self,
        leaf: &ShiftNode<'_, M, NODE>,
        target: Target<'_, K>,
        copy: &mut LeafCopy,
    ) -> Result<CopyResult, Corrupt> {
        if let Some(right) = self.move_right(leaf, target)? {
            return Ok(CopyResult::Right(right));
        }
        copy.entries.clear();
        copy.entries.extend((0..leaf.count()).map(|index| leaf.entry(index)));
        copy.low = leaf.low();
        let next = leaf.sibling();
        copy.next = if next.is_null() {
            None
        } else {
            Some((next, ShiftNode::<M, NODE>::view(&self.pool, next)?.low()))
        };
        Ok(CopyResult::Copied)
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
