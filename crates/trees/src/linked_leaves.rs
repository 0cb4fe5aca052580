//! Scans over leaves that link to the next one and have a low key, for trees without inner nodes in
//! DRAM: copy one leaf at a time, then call `visit` without a latch.
//!
//! An ascending scan continues at the next leaf that the copy names. A descending scan descends
//! again, to the keys below the leaf's low key. Both ignore entries of the next copy beyond the
//! last leaf's bound, so no split or merge in between can repeat or reorder a key.

use crate::index::Order;
use crate::key::{Entry, Key};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};
use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

/// The node that a descent looks for.
pub(crate) enum SearchTarget<'k, K: Key> {
    /// The node whose key range contains the key.
    At(K::Ref<'k>),
    /// The node whose key range contains the keys just below this one.
    Below(K::Ref<'k>),
    /// The last node of the level.
    Last,
}

impl<K: Key> Clone for SearchTarget<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Key> Copy for SearchTarget<'_, K> {}

/// A copy of a leaf as it was at one time; if the reader took no latch, each entry is as it was at
/// some time during the call.
#[derive(Debug, Default)]
pub(crate) struct CopiedLeaf {
    /// The entries that count, in key order.
    pub(crate) entries: Vec<Entry>,
    /// The word of the low key.
    pub(crate) low: u64,
    /// The next leaf and the word of its low key.
    pub(crate) next: Option<(PmPtr, u64)>,
}

type Bounds<'a, 'b, K> = (Bound<<K as Key>::Ref<'a>>, Bound<<K as Key>::Ref<'b>>);

/// A tree whose leaves can be copied one at a time.
pub(crate) trait LinkedLeaves<M: Medium, K: Key> {
    /// Returns the pool of the tree.
    fn pool_ref(&self) -> &Pool<M>;

    /// Copies the leaf of `target`. Starts at `near`, whose low key the target is, if that is still
    /// linked; else descends. The caller is pinned.
    ///
    /// # Errors
    /// A node or a key record is damaged.
    fn copy_leaf(
        &self,
        near: Option<PmPtr>,
        target: SearchTarget<'_, K>,
        copy: &mut CopiedLeaf,
    ) -> Result<(), Corrupt>;
}

impl<M: Medium, K: Key> dyn LinkedLeaves<M, K> + '_ {
    /// Visits the pairs within `bounds` in `order`, until `visit` breaks.
    ///
    /// # Errors
    /// A node or a key record is damaged, or keys are out of order.
    pub(crate) fn scan(
        &self,
        bounds: Bounds<'_, '_, K>,
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), Corrupt> {
        match order {
            Order::Ascending => self.scan_ascending(bounds, visit),
            Order::Descending => self.scan_descending(bounds, visit),
        }
    }

    /// Visits the pairs within `bounds` in ascending order.
    fn scan_ascending(
        &self,
        bounds: Bounds<'_, '_, K>,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), Corrupt> {
        let _guard = self.pool_ref().pin();
        // At first the caller's bound, then the low key of the next leaf.
        let mut start = match bounds.0 {
            Bound::Unbounded => Bound::Included(K::least()),
            bound => bound.map(K::to_owned),
        };
        let mut leaf = None;
        let mut last = None;
        let mut copy = CopiedLeaf::default();
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
                    if !K::order(self.pool_ref(), low, K::borrow(key))?.is_gt() {
                        return Err(out_of_order(low));
                    }
                    start = Bound::Included(K::read(self.pool_ref(), low)?);
                    leaf = Some(at);
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Visits the pairs within `bounds` in descending order.
    fn scan_descending(
        &self,
        bounds: Bounds<'_, '_, K>,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), Corrupt> {
        let _guard = self.pool_ref().pin();
        // At first the caller's bound, then the low key of the last leaf.
        let mut end = bounds.1.map(K::to_owned);
        let mut last = None;
        let mut copy = CopiedLeaf::default();
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
            let low = K::read(self.pool_ref(), copy.low)?;
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
        let key = K::read(self.pool_ref(), word)?;
        if last.as_ref().is_some_and(|last| key.cmp(last) != order) {
            return Err(out_of_order(word));
        }
        Ok(last.insert(key))
    }

    /// Returns `true` if the key of `word` is below the lower bound `start`.
    fn is_before(&self, word: u64, start: Bound<K::Ref<'_>>) -> Result<bool, Corrupt> {
        Ok(match start {
            Bound::Included(key) => K::order(self.pool_ref(), word, key)?.is_lt(),
            Bound::Excluded(key) => K::order(self.pool_ref(), word, key)?.is_le(),
            Bound::Unbounded => false,
        })
    }

    /// Returns `true` if the key of `word` is above the upper bound `end`.
    fn is_after(&self, word: u64, end: Bound<K::Ref<'_>>) -> Result<bool, Corrupt> {
        Ok(match end {
            Bound::Included(key) => K::order(self.pool_ref(), word, key)?.is_gt(),
            Bound::Excluded(key) => K::order(self.pool_ref(), word, key)?.is_ge(),
            Bound::Unbounded => false,
        })
    }
}

#[cold]
fn out_of_order(word: u64) -> Corrupt {
    let what = "key out of order in a scan (word of the key)";
    Corrupt { at: 0, what, expected: 0, found: word }
}
