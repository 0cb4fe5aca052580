//! Scans: a copy of one leaf at a time, validated, then shown without a latch.
//!
//! Upwards a scan goes on at the sibling that the copy names, downwards it descends to what is
//! below the leaf's low key. Either way the next copy is cut at the bound that the last one ended
//! with, so no split or merge in between can show a key twice or out of order.

use super::FastFairTree;
use super::descend::{Seek, Trail};
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

/// A leaf as it was at one time.
struct Copy {
    entries: Vec<Entry>,
    low: u64,
    /// The sibling, and its low key.
    next: Option<(PmPtr, u64)>,
}

/// What is seen of a leaf on the way to the one that is looked for.
enum Seen {
    Copied,
    Right(PmPtr),
}

type Bounds<'a, 'b, K> = (Bound<<K as Key>::Ref<'a>>, Bound<<K as Key>::Ref<'b>>);

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// Shows the pairs within `bounds`, upwards.
    pub(super) fn scan_up(
        &self,
        bounds: Bounds<'_, '_, K>,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), Corrupt> {
        let _guard = pin();
        // The caller's bound, then the low key of the next leaf.
        let mut start = match bounds.0 {
            Bound::Unbounded => Bound::Included(K::least()),
            bound => bound.map(K::to_owned),
        };
        let mut leaf = None;
        let mut last = None;
        let mut copy = Copy::empty();
        while let Bound::Included(key) | Bound::Excluded(key) = &start {
            self.copy_leaf(leaf, Seek::At(K::borrow(key)), &mut copy)?;
            for &Entry { key: word, value, .. } in &copy.entries {
                if self.is_before(word, start.as_ref().map(K::borrow))? {
                    continue;
                }
                if self.is_after(word, bounds.1)? {
                    return Ok(());
                }
                let key = self.follow(word, &mut last, Ordering::Greater)?;
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

    /// Shows the pairs within `bounds`, downwards.
    pub(super) fn scan_down(
        &self,
        bounds: Bounds<'_, '_, K>,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), Corrupt> {
        let _guard = pin();
        // The caller's bound, then the low key of the last leaf.
        let mut end = bounds.1.map(K::to_owned);
        let mut last = None;
        let mut copy = Copy::empty();
        loop {
            let seek = match &end {
                Bound::Included(key) => Seek::At(K::borrow(key)),
                Bound::Excluded(key) => Seek::Below(K::borrow(key)),
                Bound::Unbounded => Seek::Last,
            };
            self.copy_leaf(None, seek, &mut copy)?;
            for &Entry { key: word, value, .. } in copy.entries.iter().rev() {
                if self.is_after(word, end.as_ref().map(K::borrow))? {
                    continue;
                }
                if self.is_before(word, bounds.0)? {
                    return Ok(());
                }
                let key = self.follow(word, &mut last, Ordering::Less)?;
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

    /// The key of `word`, which must compare to the last one shown as `order` says.
    fn follow<'l>(
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

    /// Whether the key of `word` is below the lower bound `start`.
    fn is_before(&self, word: u64, start: Bound<K::Ref<'_>>) -> Result<bool, Corrupt> {
        Ok(match start {
            Bound::Included(key) => K::order(&self.pool, word, key)?.is_lt(),
            Bound::Excluded(key) => K::order(&self.pool, word, key)?.is_le(),
            Bound::Unbounded => false,
        })
    }

    /// Whether the key of `word` is above the upper bound `end`.
    fn is_after(&self, word: u64, end: Bound<K::Ref<'_>>) -> Result<bool, Corrupt> {
        Ok(match end {
            Bound::Included(key) => K::order(&self.pool, word, key)?.is_gt(),
            Bound::Excluded(key) => K::order(&self.pool, word, key)?.is_ge(),
            Bound::Unbounded => false,
        })
    }

    /// Copies the leaf that `seek` looks for, starting at `near` if that is still linked.
    fn copy_leaf(
        &self,
        near: Option<PmPtr>,
        seek: Seek<'_, K>,
        copy: &mut Copy,
    ) -> Result<(), Corrupt> {
        let mut trail = Trail::default();
        let pool_bytes = self.pool.medium().len();
        let mut near = near.map(|at| self.node(at, 0)).transpose()?;
        loop {
            let start = match near.take() {
                Some(leaf) => Some(leaf),
                None => self.descend(seek, 0, &mut trail)?,
            };
            let Some(mut leaf) = start else { continue };
            while let Some(seen) = self.validated(&leaf, || self.copy_or_pass(&leaf, seek, copy))? {
                match seen {
                    Seen::Copied => return Ok(()),
                    Seen::Right(at) => {
                        trail.step(&leaf, pool_bytes)?;
                        leaf = self.node(at, 0)?;
                    }
                }
            }
            trail.restart(&leaf)?;
        }
    }

    fn copy_or_pass(
        &self,
        leaf: &ShiftNode<'_, M, NODE>,
        seek: Seek<'_, K>,
        copy: &mut Copy,
    ) -> Result<Seen, Corrupt> {
        if let Some(right) = self.beyond(leaf, seek)? {
            return Ok(Seen::Right(right));
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
        Ok(Seen::Copied)
    }
}

impl Copy {
    const fn empty() -> Self {
        Self { entries: Vec::new(), low: 0, next: None }
    }
}

#[cold]
fn out_of_order(word: u64) -> Corrupt {
    let what = "key out of order in a scan (word of the key)";
    Corrupt { at: 0, what, expected: 0, found: word }
}
