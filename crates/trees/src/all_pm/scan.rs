//! Scans: copy one leaf at a time at one version, then call `visit` without a latch.
//!
//! 1. Ascending, the next leaf is the link of the copied leaf. No pair moves past the scan: a split
//!    links its right half from the left one, and a merge makes the right leaf obsolete. The scan
//!    then descends again, to the first key above the last visited one.
//! 2. Descending, the next leaf is the one below the separator that bounds the copied leaf.
//! 3. No key of a leaf is below the separator that leads to it, and all keys of leaves to its left
//!    are.
//! 4. The last visited key bounds the next one, so the order is strict even in a damaged tree. Each
//!    step visits a key, moves the bound, or is counted, so a damaged chain cannot make a scan
//!    endless.

use super::descend::{DescentTarget, Interrupted, NodeRef, retry};
use super::structure::Structure;
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node_latch::NodeLatch;
use crate::sorting::sort_pairs_stably;
use bristlecone_pmem::{Medium, PmPtr};
use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

/// The callback that a scan calls with each pair.
type Visit<'v, K> = &'v mut dyn FnMut(<K as Key>::Ref<'_>, u64) -> ControlFlow<()>;

/// The pairs of a leaf, in key order.
type Pairs<K> = Vec<(<K as Key>::Owned, u64)>;

/// A copy of a leaf at one version.
struct Copied<'a, M, K: Key> {
    pairs: Pairs<K>,
    leaf: NodeRef<'a, M>,
    link: PmPtr,
    /// The leaf's lower separator; `None` for the first leaf, and for a leaf that was reached by a
    /// link.
    low: Option<K::Owned>,
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    /// Visits the pairs from `start` to `end` in ascending order.
    pub(super) fn ascend(
        &self,
        start: Bound<K::Ref<'_>>,
        end: Bound<K::Ref<'_>>,
        visit: Visit<'_, K>,
    ) -> Result<(), TreeError> {
        let _guard = self.pool_ref().pin();
        let mut from = start.map(K::to_owned);
        let mut next = None;
        let mut empty_leaves = 0;
        loop {
            let linked = next.take().and_then(|leaf| self.copy_linked(leaf).transpose());
            let is_linked = linked.is_some() && self.arrays().is_none();
            let copied = linked.unwrap_or_else(|| self.copy_at(ascending_target(&from)))?;
            if !copied.link.is_null() {
                self.medium().prefetch(self.node(copied.link)?.words());
            }
            let (mut shown, view) = (None, copied.leaf.view);
            for (key, value) in copied.pairs {
                if is_above::<K>(&key, borrow::<K>(&from)) {
                    if !is_below::<K>(&key, end) || visit(K::borrow(&key), value).is_break() {
                        return Ok(());
                    }
                    shown = Some(key);
                } else if is_linked {
                    return Err(view
                        .corrupt(0, "key below those of the previous leaf", 0, 0)
                        .into());
                }
            }
            // Only a leaf without a visited pair does not advance the bound. A sound chain has at
            // most as many leaves as the pool has node blocks.
            empty_leaves = if shown.is_some() { 0 } else { empty_leaves + 1 };
            from = shown.map_or(from, Bound::Excluded);
            if copied.link.is_null() {
                return Ok(());
            }
            if empty_leaves > self.medium().len() / self.node_bytes() {
                let link = copied.link.offset();
                return Err(view.corrupt(0, "endless chain of leaves", 0, link).into());
            }
            next = Some(copied.link);
        }
    }

    /// Visits the pairs from `start`, the upper bound, down to `end`.
    pub(super) fn descend_from(
        &self,
        start: Bound<K::Ref<'_>>,
        end: Bound<K::Ref<'_>>,
        visit: Visit<'_, K>,
    ) -> Result<(), TreeError> {
        let _guard = self.pool_ref().pin();
        let mut from = start.map(K::to_owned);
        loop {
            let copied = self.copy_at(descending_target(&from))?;
            for (key, value) in copied.pairs.iter().rev() {
                if !is_below::<K>(key, borrow::<K>(&from)) {
                    continue;
                }
                if !is_above::<K>(key, end) || visit(K::borrow(key), *value).is_break() {
                    return Ok(());
                }
            }
            let Some(separator) = copied.low else { return Ok(()) };
            // All keys of the leaves to the left are below the separator.
            if !is_above::<K>(&separator, end) {
                return Ok(());
            }
            from = Bound::Excluded(separator);
        }
    }

    /// Copies the leaf of `target`.
    fn copy_at(&self, target: DescentTarget<'_, K>) -> Result<Copied<'_, M, K>, TreeError> {
        retry(self.pool_ref(), |_| {
            let path = self.leaf_of(target)?;
            self.copy(path.node, path.low)
        })
    }

    /// Copies the leaf at `at`, which a copied leaf links to. Returns `None` if it is obsolete or
    /// changes. With lock arrays, copies the leaf that covers its low key, which never changes: a
    /// descent finds the latch.
    fn copy_linked(&self, at: PmPtr) -> Result<Option<Copied<'_, M, K>>, TreeError> {
        let view = self.node(at)?;
        if self.arrays().is_some() {
            let low = K::read(self.pool_ref(), self.low_word(view).unwrap_or_default())?;
            return self.copy_at(DescentTarget::At(K::borrow(&low))).map(Some);
        }
        let latch = self.latch(view, 0).map(NodeLatch::InNode);
        let Some(leaf) = self.arrive_at(at, view, 0, latch)? else { return Ok(None) };
        match self.copy(leaf, None) {
            Ok(copied) => Ok(Some(copied)),
            Err(Interrupted::Restart) => Ok(None),
            Err(Interrupted::Failed(error)) => Err(error),
        }
    }

    /// Copies a leaf. The keys are read after the validation: key records do not change or go away
    /// while the caller is pinned.
    fn copy<'a>(
        &self,
        leaf: NodeRef<'a, M>,
        low: Option<u64>,
    ) -> Result<Copied<'a, M, K>, Interrupted> {
        let entries = self.shape(0).entries;
        let entry = |index| leaf.view.entry(entries, index);
        let read = self.slot_indices(leaf.view, 0);
        let read = read.map(|places| places.into_iter().map(entry).collect::<Vec<Entry>>());
        let link = PmPtr::new(self.link(leaf.view, 0));
        let entries = leaf.certify(read)?;
        let mut pairs = Pairs::<K>::with_capacity(entries.len());
        for entry in entries {
            pairs.push((K::read_entry(self.pool_ref(), entry)?, entry.value));
        }
        sort_pairs_stably(&mut pairs);
        let low = low.map(|word| K::read(self.pool_ref(), word)).transpose()?;
        let in_range = low.as_ref().zip(pairs.first()).is_none_or(|(low, (key, _))| low <= key);
        if !in_range || pairs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(leaf.view.corrupt(0, "keys of a leaf overlap", 0, 0).into());
        }
        Ok(Copied { pairs, leaf, link, low })
    }
}

fn borrow<K: Key>(bound: &Bound<K::Owned>) -> Bound<K::Ref<'_>> {
    bound.as_ref().map(K::borrow)
}

/// Returns the target from which an ascending scan starts.
fn ascending_target<K: Key>(from: &Bound<K::Owned>) -> DescentTarget<'_, K> {
    match borrow::<K>(from) {
        Bound::Included(key) | Bound::Excluded(key) => DescentTarget::At(key),
        Bound::Unbounded => DescentTarget::First,
    }
}

/// Returns the target from which a descending scan starts.
fn descending_target<K: Key>(from: &Bound<K::Owned>) -> DescentTarget<'_, K> {
    match borrow::<K>(from) {
        Bound::Included(key) => DescentTarget::At(key),
        Bound::Excluded(key) => DescentTarget::Below(key),
        Bound::Unbounded => DescentTarget::Last,
    }
}

/// Returns `true` if `key` satisfies the lower bound.
fn is_above<K: Key>(key: &K::Owned, bound: Bound<K::Ref<'_>>) -> bool {
    match bound {
        Bound::Included(least) => K::compare(K::borrow(key), least) != Ordering::Less,
        Bound::Excluded(below) => K::compare(K::borrow(key), below) == Ordering::Greater,
        Bound::Unbounded => true,
    }
}

/// Returns `true` if `key` satisfies the upper bound.
fn is_below<K: Key>(key: &K::Owned, bound: Bound<K::Ref<'_>>) -> bool {
    match bound {
        Bound::Included(most) => K::compare(K::borrow(key), most) != Ordering::Greater,
        Bound::Excluded(above) => K::compare(K::borrow(key), above) == Ordering::Less,
        Bound::Unbounded => true,
    }
}
