//! Scans: leaf by leaf, each copied at one version and shown when no latch is held.
//!
//! 1. Upwards, the next leaf is the link of the copy. A pair never moves to the right past a copy:
//!    a split's right half is linked from the left one, and a merge makes the leaf obsolete, upon
//!    which the scan descends again, past the last key shown.
//! 2. Downwards, the next leaf is the one below the separator that the descent went by last.
//! 3. A leaf's keys are never below the separator that leads to it, and all keys to its left are.
//! 4. The last key shown bounds what is shown next, so order is strict whatever happens; and each
//!    step of either kind gets nearer to the end, so a damaged chain cannot go on for ever.

use super::descend::{Interrupted, NodeRef, Target};
use super::{AllPm, AllPmSpec};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::Layout;
use crate::sorting::sort_pairs_stably;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Medium, PmPtr};
use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

/// What a scan shows a pair to.
type Visit<'v, K> = &'v mut dyn FnMut(<K as Key>::Ref<'_>, u64) -> ControlFlow<()>;

/// The pairs of a leaf, in key order.
type Pairs<K> = Vec<(<K as Key>::Owned, u64)>;

/// A copy of a leaf at one version.
struct Copied<'a, M, K: Key> {
    pairs: Pairs<K>,
    leaf: NodeRef<'a, M>,
    link: PmPtr,
    /// The separator below, if the leaf is not the first; unknown if it was reached by a link.
    low: Option<K::Owned>,
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Shows the pairs from `start` up to `end`.
    pub(super) fn ascend(
        &self,
        start: Bound<K::Ref<'_>>,
        end: Bound<K::Ref<'_>>,
        visit: Visit<'_, K>,
    ) -> Result<(), TreeError> {
        let _guard = pin();
        let mut from = start.map(K::to_owned);
        let mut next = None;
        let mut barren = 0;
        loop {
            let linked = next.take().and_then(|leaf| self.copy_linked(leaf).transpose());
            let is_linked = linked.is_some();
            let copied = linked.unwrap_or_else(|| self.copy_at(upward(&from)))?;
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
                    return Err(view.corrupt(0, "key below those of the leaf before", 0, 0).into());
                }
            }
            // LeafUpdate without anything to show are the only steps that get no nearer to the end.
            barren = if shown.is_some() { 0 } else { barren + 1 };
            from = shown.map_or(from, Bound::Excluded);
            if copied.link.is_null() {
                return Ok(());
            }
            if barren > self.medium().len() / Self::NODE_BYTES {
                let link = copied.link.offset();
                return Err(view.corrupt(0, "endless chain of leaves", 0, link).into());
            }
            next = Some(copied.link);
        }
    }

    /// Shows the pairs from `start`, the upper bound, down to `end`.
    pub(super) fn descend_from(
        &self,
        start: Bound<K::Ref<'_>>,
        end: Bound<K::Ref<'_>>,
        visit: Visit<'_, K>,
    ) -> Result<(), TreeError> {
        let _guard = pin();
        let mut from = start.map(K::to_owned);
        loop {
            let copied = self.copy_at(downward(&from))?;
            for (key, value) in copied.pairs.iter().rev() {
                if !is_below::<K>(key, borrow::<K>(&from)) {
                    continue;
                }
                if !is_above::<K>(key, end) || visit(K::borrow(key), *value).is_break() {
                    return Ok(());
                }
            }
            let Some(separator) = copied.low else { return Ok(()) };
            // All keys to the left are below the separator.
            if !is_above::<K>(&separator, end) {
                return Ok(());
            }
            from = Bound::Excluded(separator);
        }
    }

    /// A copy of the leaf of `aim`.
    fn copy_at(&self, aim: Target<'_, K>) -> Result<Copied<'_, M, K>, TreeError> {
        self.retry(|tree, _| {
            let path = tree.leaf(aim)?;
            tree.copy(path.node, path.low)
        })
    }

    /// A copy of the leaf at `at`, to which a copy led; nothing if it is obsolete, or changes.
    fn copy_linked(&self, at: PmPtr) -> Result<Option<Copied<'_, M, K>>, TreeError> {
        let Some(leaf) = self.arrive(at, self.node(at)?, 0)? else { return Ok(None) };
        match self.copy(leaf, None) {
            Ok(copied) => Ok(Some(copied)),
            Err(Interrupted::Restart) => Ok(None),
            Err(Interrupted::Failed(error)) => Err(error),
        }
    }

    /// A copy of a leaf. Its keys are read after the version has been validated: the blocks of key
    /// records stay as they are for as long as the caller is pinned.
    fn copy<'a>(
        &self,
        leaf: NodeRef<'a, M>,
        low: Option<u64>,
    ) -> Result<Copied<'a, M, K>, Interrupted> {
        let entry = |index| leaf.view.entry(S::Leaf::ENTRIES, index);
        let read = S::Leaf::slot_indices(leaf.view);
        let read = read.map(|places| places.into_iter().map(entry).collect::<Vec<Entry>>());
        let link = PmPtr::new(S::Leaf::link(leaf.view));
        let entries = leaf.certify(read)?;
        let mut pairs = Pairs::<K>::with_capacity(entries.len());
        for entry in entries {
            pairs.push((K::read_entry(&self.pool, entry)?, entry.value));
        }
        sort_pairs_stably(&mut pairs);
        let low = low.map(|word| K::read(&self.pool, word)).transpose()?;
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

/// Where a scan upwards begins.
fn upward<K: Key>(from: &Bound<K::Owned>) -> Target<'_, K> {
    match borrow::<K>(from) {
        Bound::Included(key) | Bound::Excluded(key) => Target::At(key),
        Bound::Unbounded => Target::First,
    }
}

/// Where a scan downwards begins.
fn downward<K: Key>(from: &Bound<K::Owned>) -> Target<'_, K> {
    match borrow::<K>(from) {
        Bound::Included(key) => Target::At(key),
        Bound::Excluded(key) => Target::Below(key),
        Bound::Unbounded => Target::Last,
    }
}

/// Whether `key` satisfies the lower bound.
fn is_above<K: Key>(key: &K::Owned, bound: Bound<K::Ref<'_>>) -> bool {
    match bound {
        Bound::Included(least) => K::compare(K::borrow(key), least) != Ordering::Less,
        Bound::Excluded(below) => K::compare(K::borrow(key), below) == Ordering::Greater,
        Bound::Unbounded => true,
    }
}

/// Whether `key` satisfies the upper bound.
fn is_below<K: Key>(key: &K::Owned, bound: Bound<K::Ref<'_>>) -> bool {
    match bound {
        Bound::Included(most) => K::compare(K::borrow(key), most) != Ordering::Greater,
        Bound::Excluded(above) => K::compare(K::borrow(key), above) == Ordering::Less,
        Bound::Unbounded => true,
    }
}
