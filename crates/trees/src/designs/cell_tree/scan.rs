//! Scans of leaves whose entries have the prefixes of their keys.
//!
//! 1. A scan copies one leaf at a time, at a validated version, and visits its pairs without a
//!    latch. A copy has entries, not keys: a key is read when it is visited. Its record neither
//!    changes nor is freed while the scan is pinned. So damage to a record is met where its pair
//!    is.
//! 2. Each step visits keys from a bound that the last step left. So a scan visits keys in order,
//!    each at most once, whatever other threads do.
//! 3. An ascending scan follows the chain. It reads the version of the next leaf, and then checks
//!    that the leaf before it has not changed: so the next leaf was the right neighbour at its
//!    version. Otherwise it descends from the root, as a descending scan does for each leaf.
//! 4. A copy is noted as read before its pairs are visited, like the leaf of a lookup.

use super::CellTreeIndex;
use super::leaf::CellLeaf;
use super::rows::LeafWords;
use super::sorted::{settle_ties, shown};
use super::word::{CellLayout, with_kind};
use crate::index::{Order, TreeError};
use crate::inner::{Direction, InnerNodes, LeafRoute};
use crate::key::bounds::{satisfies_end, satisfies_start};
use crate::key::{Entry, Key, Value};
use crate::leaf_table::{LeafTable, misplaced_key, no_progress};
use crate::sorting::sorted_by_keys;
use bristlecone_pmem::sync::Version;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::cmp::Ordering;
use core::ops::{Bound, ControlFlow};

/// A copy of a leaf, made while no writer changed it.
struct LeafCopy<'a, K: Key> {
    row: LeafWords<'a>,
    version: Version,
    /// The entries in key order, with the prefixes of their keys.
    entries: Vec<(u64, Entry)>,
    low: K::Owned,
    /// The right neighbour and its low key.
    next: Option<(PmPtr, K::Owned)>,
}

/// A function that gets each pair of a scan.
type Visit<'v, K> = dyn FnMut(<K as Key>::Ref<'_>, Value) -> ControlFlow<()> + 'v;

/// The bounds of a scan.
type Bounds<'f, 't, K> = (Bound<<K as Key>::Ref<'f>>, Bound<<K as Key>::Ref<'t>>);

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Calls `visit` with each pair between the bounds, in `order`, until it breaks.
    ///
    /// # Errors
    /// A leaf or a record is damaged; the pairs before it have been visited.
    pub(super) fn walk_pairs(
        &self,
        bounds: Bounds<'_, '_, K>,
        order: Order,
        visit: &mut Visit<'_, K>,
    ) -> Result<(), TreeError> {
        match order {
            Order::Ascending => self.scan_up(bounds, visit),
            Order::Descending => self.scan_down(bounds, visit),
        }
    }

    fn scan_up(
        &self,
        (mut from, to): Bounds<'_, '_, K>,
        visit: &mut Visit<'_, K>,
    ) -> Result<(), TreeError> {
        let _guard = self.pool.pin();
        let least = K::least();
        let mut copy = match from {
            Bound::Included(key) | Bound::Excluded(key) => self.copy_at(key, Direction::Key)?,
            Bound::Unbounded => self.copy_at(K::borrow(&least), Direction::Key)?,
        };
        loop {
            if satisfies_start::<K>(from, K::borrow(&copy.low)) {
                from = Bound::Unbounded; // every later key satisfies it, too
            }
            // The prefix alone excludes most entries below the bound, without reading a key.
            // Entries are sorted, so all that follow the first included one are included.
            let from_prefix = prefix_of::<K>(from).unwrap_or(0);
            let below = copy.entries.partition_point(|(prefix, _)| *prefix < from_prefix);
            let mut is_included = false;
            for &(_, entry) in &copy.entries[below..] {
                let visited = K::with_entry(&self.pool, entry, |key| {
                    is_included = is_included || satisfies_start::<K>(from, key);
                    if !is_included {
                        return ControlFlow::Continue(());
                    }
                    if !satisfies_end::<K>(to, key) {
                        return ControlFlow::Break(());
                    }
                    visit(key, entry.held_value())
                })?;
                if visited.is_break() {
                    return Ok(());
                }
            }
            let Some((next, high)) = copy.next.take() else { return Ok(()) };
            if !satisfies_end::<K>(to, K::borrow(&high)) {
                return Ok(());
            }
            let followed = self.copy_next(&copy, next)?;
            copy = match followed {
                Some(followed) => followed,
                None => self.copy_at(K::borrow(&high), Direction::Key)?,
            };
            if copy.next.as_ref().is_some_and(|(_, next)| *next <= high) {
                return Err(no_progress(copy.row.at).into());
            }
            if copy.low < high {
                self.drop_below(&mut copy, &high)?;
            }
        }
    }

    fn scan_down(
        &self,
        (from, to): Bounds<'_, '_, K>,
        visit: &mut Visit<'_, K>,
    ) -> Result<(), TreeError> {
        let _guard = self.pool.pin();
        let mut copy = match to {
            Bound::Included(key) => self.copy_at(key, Direction::Key)?,
            Bound::Excluded(key) => self.copy_at(key, Direction::Below)?,
            Bound::Unbounded => self.copy_from(|| Ok(self.inner.seek_last()))?,
        };
        let mut previous_low: Option<K::Owned> = None;
        loop {
            // The scan has visited all keys from the low key of the previous leaf on.
            let to_prefix = match &previous_low {
                Some(low) => K::prefix(K::borrow(low)),
                None => prefix_of::<K>(to).unwrap_or(u64::MAX),
            };
            let end = copy.entries.partition_point(|(prefix, _)| *prefix <= to_prefix);
            let mut is_included = false;
            for &(_, entry) in copy.entries[..end].iter().rev() {
                let visited = K::with_entry(&self.pool, entry, |key| {
                    let is_new = |low| K::compare(key, K::borrow(low)).is_lt();
                    is_included = is_included
                        || satisfies_end::<K>(to, key) && previous_low.as_ref().is_none_or(is_new);
                    if !is_included {
                        return ControlFlow::Continue(());
                    }
                    if !satisfies_start::<K>(from, key) {
                        return ControlFlow::Break(());
                    }
                    visit(key, entry.held_value())
                })?;
                if visited.is_break() {
                    return Ok(());
                }
            }
            let low = K::borrow(&copy.low);
            if copy.low == K::least() || !satisfies_start::<K>(from, low) {
                return Ok(());
            }
            let next = self.copy_at(low, Direction::Below)?;
            if next.low >= copy.low {
                return Err(no_progress(next.row.at).into());
            }
            previous_low = Some(core::mem::replace(&mut copy, next).low);
        }
    }

    /// Copies the leaf that covers `key` or, for [`Direction::Below`], the keys just below it.
    fn copy_at(&self, key: K::Ref<'_>, toward: Direction) -> Result<LeafCopy<'_, K>, Corrupt> {
        self.copy_from(|| self.inner.seek::<K>(&self.pool, key, toward))
    }

    /// Copies the leaf that `seek` finds, once no writer interferes.
    fn copy_from(
        &self,
        seek: impl Fn() -> Result<LeafRoute, Corrupt>,
    ) -> Result<LeafCopy<'_, K>, Corrupt> {
        loop {
            let route = seek()?;
            let is_current = || self.inner.is_current(&route);
            if let Some(copy) = self.copy_row(self.row_at(route.leaf), is_current)? {
                return Ok(copy);
            }
        }
    }

    /// Copies the right neighbour of `left`, which the link named. `None` if a writer interferes.
    fn copy_next(
        &self,
        left: &LeafCopy<'_, K>,
        next: PmPtr,
    ) -> Result<Option<LeafCopy<'_, K>>, Corrupt> {
        let is_right = || left.row.latch::<M>().validate(left.version);
        self.copy_row(self.row_at(next), is_right)
    }

    /// Copies the leaf of `row`. `None` if a writer changed it meanwhile, or if `is_current`,
    /// called after its version was read, returns `false`.
    fn copy_row<'a>(
        &'a self,
        row: LeafWords<'a>,
        is_current: impl Fn() -> bool,
    ) -> Result<Option<LeafCopy<'a, K>>, Corrupt> {
        // Before the words of the leaf, which are another miss.
        self.leaf(row)?.prefetch_all(self.pool.medium());
        self.visit(row)?;
        let latch = row.latch::<M>();
        let Some(version) = latch.read() else { return Ok(None) };
        if !is_current() {
            return Ok(None);
        }
        let copy = self.copy_entries(row, version);
        if !latch.validate(version) {
            return Ok(None);
        }
        self.note_read(row);
        copy.map(Some)
    }

    /// Copies the leaf of `row`. A writer may run at the same time; the caller validates.
    fn copy_entries<'a>(
        &'a self,
        row: LeafWords<'a>,
        version: Version,
    ) -> Result<LeafCopy<'a, K>, Corrupt> {
        let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
        let low = K::read(&self.pool, leaf.low(medium)?)?;
        let next = leaf.right(&self.pool, BYTES)?;
        if let Some(next) = next {
            // A scan copies it next. It arrives while this one is sorted.
            self.rows.prefetch(next.at, BYTES);
            next.prefetch_all(medium);
        }
        let notes = row.notes::<M>();
        let entries = with_kind!(notes.kind::<K>(), C => self.sorted::<C>(leaf, row))?;
        let high = match next {
            Some(next) => Some((next, K::read(&self.pool, next.low(medium)?)?)),
            None => None,
        };
        // The low key of the leaf behind the next one bounds that.
        if let Some(next) = next
            && let Ok(Some(after)) = next.right(&self.pool, BYTES)
        {
            after.prefetch_header(medium);
        }
        let is_below = |(_, first): &(u64, Entry)| {
            K::order_entry(&self.pool, *first, K::borrow(&low)).map(Ordering::is_lt)
        };
        let is_above = |(_, last): &(u64, Entry), high: &K::Owned| {
            K::order_entry(&self.pool, *last, K::borrow(high)).map(Ordering::is_ge)
        };
        let mut is_misplaced = entries.first().map_or(Ok(false), is_below)?;
        if let (Some(last), Some((_, high))) = (entries.last(), &high) {
            is_misplaced |= is_above(last, high)?;
        }
        if is_misplaced {
            return Err(misplaced_key(leaf.at, entries.len() as u64));
        }
        let next = high.map(|(next, high)| (next.at, high));
        Ok(LeafCopy { row, version, entries, low, next })
    }

    /// Returns the entries of a leaf in key order, with the prefixes of their keys. Reads the keys
    /// of those alone whose prefixes are equal.
    fn sorted<C: CellLayout>(
        &self,
        leaf: CellLeaf<'_>,
        row: LeafWords<'_>,
    ) -> Result<Vec<(u64, Entry)>, Corrupt> {
        let notes = row.notes::<M>();
        let shown = shown::<C, K, M, _>(&self.pool, leaf, notes, |placed| placed.entry)?;
        let (prefixes, entries, count) = shown;
        let mut sorted = sorted_by_keys(&prefixes[..count], &entries[..count]);
        let equal = if K::EXACT {
            sorted.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0)
        } else {
            for &(_, entry) in &sorted {
                K::prefetch_entry(&self.pool, entry);
            }
            settle_ties::<K, M, _>(&self.pool, &mut sorted, |entry| entry)?
        };
        equal.map_or(Ok(sorted), |prefix| Err(misplaced_key(leaf.at, prefix)))
    }

    /// Drops the entries below `bound`, which the scan has passed. That becomes the low key of the
    /// copy.
    fn drop_below(&self, copy: &mut LeafCopy<'_, K>, bound: &K::Owned) -> Result<(), Corrupt> {
        let mut below = 0;
        for (_, entry) in &copy.entries {
            if K::order_entry(&self.pool, *entry, K::borrow(bound))?.is_ge() {
                break;
            }
            below += 1;
        }
        copy.entries.drain(..below);
        copy.low.clone_from(bound);
        Ok(())
    }
}

/// Returns the prefix of the key at a bound, or `None` for an unbounded one.
fn prefix_of<K: Key>(bound: Bound<K::Ref<'_>>) -> Option<u64> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(K::prefix(key)),
        Bound::Unbounded => None,
    }
}
