//! Chains: the walk from the newest record to the base, the search on the way, and the contents.

use super::record::{self, BaseRecord, DeltaRecord, RecordHeader, RecordKind};
use super::table::{ChainRow, ITEMS_MAX};
use super::tuning::LsOptions;
use crate::key::Key;
use crate::leaf_table::{Contents, EntryChange};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};
use core::cmp::Ordering;
use core::ops::ControlFlow;

/// Visits the deltas of the chain that begins at `head`, the newest first, and returns its base;
/// `None` if `visit` ends the walk. A writer may run at the same time; the caller validates.
#[inline(always)]
pub(super) fn walk<M: Medium>(
    pool: &Pool<M>,
    head: PmPtr,
    mut visit: impl FnMut(PmPtr, DeltaRecord) -> Result<ControlFlow<()>, Corrupt>,
) -> Result<Option<BaseRecord<'_>>, Corrupt> {
    let mut at = head;
    // The number of items bounds a chain, also one that a concurrent writer or damage has changed.
    for _ in 0..=ITEMS_MAX {
        match RecordHeader::read(pool, at)?.kind {
            RecordKind::Base(items) => return Ok(Some(BaseRecord::new(pool, at, items)?)),
            RecordKind::Put | RecordKind::Removed => {
                let delta = record::delta(pool, at)?;
                if visit(at, delta)?.is_break() {
                    return Ok(None);
                }
                at = delta.previous;
            }
            RecordKind::End => break,
        }
    }
    let what = "chain of a leaf without a base";
    Err(Corrupt { at: at.offset(), what, expected: ITEMS_MAX as u64, found: head.offset() })
}

/// The base of a chain, and what it means with the deltas.
#[derive(Debug)]
pub(super) struct FoldedChain<'a, K: Key> {
    pub(super) base: BaseRecord<'a>,
    pub(super) contents: Contents<K>,
}

impl<'a, K: Key> FoldedChain<'a, K> {
    /// Reads the chain that begins at `head`. A writer may run at the same time; the caller
    /// validates.
    pub(super) fn read<M: Medium>(pool: &'a Pool<M>, head: PmPtr) -> Result<Self, Corrupt> {
        let mut changes = Vec::new();
        let base = walk(pool, head, |_, delta| {
            changes.push(delta.change);
            Ok(ControlFlow::Continue(()))
        })?;
        let Some(base) = base else { unreachable!("the visitor never ends the walk") };
        base.prefetch(pool.medium());
        let items = (0..base.items).map(|at| base.item(pool.medium(), at));
        let mut contents = Contents::of_items(pool, items)?;
        for &change in changes.iter().rev() {
            contents.apply(K::read_entry(pool, change.entry)?, change);
        }
        Ok(Self { base, contents })
    }
}

/// Returns the item of `base` with this key: compares from the front, up to the first greater key.
#[inline(always)]
fn find_in_base<K: Key, M: Medium>(
    pool: &Pool<M>,
    base: &BaseRecord<'_>,
    key: K::Ref<'_>,
) -> Result<Option<EntryChange>, Corrupt> {
    for at in 0..base.items {
        let entry = base.item(pool.medium(), at);
        match K::order_entry(pool, entry, key)? {
            Ordering::Less => {}
            Ordering::Equal => return Ok(Some(EntryChange { entry, is_removed: false })),
            Ordering::Greater => break,
        }
    }
    Ok(None)
}

impl ChainRow<'_> {
    /// Prefetches the records that the row points to.
    #[inline(always)]
    pub(super) fn prefetch<M: Medium, T: LsOptions>(self, pool: &Pool<M>) {
        for at in self.recent::<M, T>() {
            if let Ok(words) = pool.words(at, LINE_WORDS) {
                pool.medium().prefetch(words);
            }
        }
    }

    /// Returns the newest change of `key` on the chain; an item of the base counts as a put. A
    /// writer may run at the same time; the caller validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Option<EntryChange>, Corrupt> {
        let mut found = None;
        let base = walk(pool, self.head::<M>(), |_, DeltaRecord { change, .. }| {
            if K::order_entry(pool, change.entry, key)?.is_ne() {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some(change);
            Ok(ControlFlow::Break(()))
        })?;
        base.map_or(Ok(found), |base| find_in_base::<K, M>(pool, &base, key))
    }
}
