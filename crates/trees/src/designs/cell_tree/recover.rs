//! Creating, opening, recovering and closing an index.
//!
//! 1. Recovery settles one leaf after another. It flushes the cells that it changes, with one fence
//!    for each leaf.
//! 2. Settling depends on the leaf and the low key of its right neighbour alone, and no settled
//!    leaf changes when it is settled again. So a crash of a recovery needs nothing else. A later
//!    [epoch](super::epoch) is stored when all leaves are settled.

use super::cell::NewCell;
use super::epoch::{EPOCH_MAX, epoch_after};
use super::leaf::{CellLeaf, kind_of, unfindable};
use super::leaf_table::{high_of, sorted_entries};
use super::place::Candidates;
use super::rows::{LeafWordTable, Notes};
use super::word::{CellKind, CellLayout, CommitWord, WideCells, with_kind};
use super::{CellTree, CellTreeIndex};
use crate::index::{Design, TreeError, find_root};
use crate::inner::{Inner, InnerNodes, SeparatedLeaf};
use crate::key::{self, Key};
use crate::leaf::slots;
use crate::leaf_table::check_range;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool};
use core::marker::PhantomData;
use std::sync::Arc;

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    const KIND: u64 = CellTree::<BYTES>::SPEC.kind::<K>();

    /// Creates an empty index. Durable on return.
    ///
    /// ```text
    /// N first leaf |          crash before C: it is unreachable and free
    /// C root table entry      -> durable
    /// ```
    pub(super) fn create_at(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let at = pool.reserve(BYTES as u64)?;
        let leaf = CellLeaf::new(&pool, at, BYTES)?;
        let cells = vec![NewCell::<WideCells>::default(); leaf.cells()];
        leaf.format(pool.medium(), (0, PmPtr::new(0)), &cells);
        pool.create_root(root, Self::KIND, at).inspect_err(|_| pool.release(at, BYTES as u64))?;
        let separated = SeparatedLeaf { prefix: 0, word: 0, leaf: at.offset() };
        Self::build(pool, at, &[(separated, Notes::default())], 0)
    }

    /// Opens an index: walks the chain of leaves and builds leaf words and inner nodes, also after
    /// a clean close. Takes time O(n). Writes nothing after a clean close; after a crash it settles
    /// each leaf, see [`settle`], and then ends the epoch that the crash has ended.
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let first = find_root(&pool, root, Self::KIND)?;
        let crashed = opened == Opened::Crashed;
        let first_leaf = CellLeaf::new(&pool, first, BYTES)?;
        let ended = first_leaf.epoch(pool.medium())?;
        let durable = if crashed { ended } else { EPOCH_MAX };
        let (mut found, mut newest) = (Vec::new(), ended);
        if M::INJECTS_DEFECTS && pool.medium().injects(Defect::EpochEarly) && crashed {
            first_leaf.set_epoch(pool.medium(), ended + 1);
        }
        walk::<K, M>(&pool, first, BYTES, &mut |leaf, low, high| {
            let notes = settle::<K, M>(&pool, leaf, (low, high), durable)?;
            newest = newest.max(leaf.newest_epoch(pool.medium()));
            let pairs = sorted_entries::<K, M>(&pool, leaf, notes)?;
            check_range::<K>(leaf.at, &pairs, low, high)?;
            let word = leaf.low(pool.medium())?;
            if crashed {
                pool.mark(leaf.at, BYTES as u64)?;
                key::mark::<K, M>(&pool, word)?;
                pairs.iter().try_for_each(|(_, entry)| key::mark_entry::<K, M>(&pool, *entry))?;
            }
            let (prefix, count) = (K::prefix(K::borrow(low)), pairs.len());
            let separated = SeparatedLeaf { prefix, word, leaf: leaf.at.offset() };
            let notes = with_kind!(notes.kind::<K>(), C => notes.with_count::<C>(count));
            found.push((separated, notes));
            Ok(())
        })?;
        if crashed {
            if newest > ended {
                first_leaf.set_epoch(pool.medium(), newest);
            }
            pool.finish_recovery();
        }
        Self::build(pool, first, &found, newest)
    }

    /// Stores that all inserts have been fenced, if keys have records. Durable on return. No other
    /// thread uses the index.
    ///
    /// ```text
    /// W epoch, F header of the first leaf |      -> durable      budget: 1 line, 1 fence
    /// ```
    pub(super) fn end_epoch(&self) -> Result<(), Corrupt> {
        if !K::EXACT {
            CellLeaf::new(&self.pool, self.first, BYTES)?.set_epoch(self.pool.medium(), self.epoch);
        }
        Ok(())
    }

    /// Builds leaf words and inner nodes over the leaves `found`, whose newest epoch is `newest`.
    fn build(
        pool: Arc<Pool<M>>,
        first: PmPtr,
        found: &[(SeparatedLeaf, Notes)],
        newest: u64,
    ) -> Result<Self, TreeError> {
        let epoch = epoch_after(first.offset(), newest)?;
        let rows = LeafWordTable::new()?;
        for (leaf, notes) in found {
            rows.add::<M>(PmPtr::new(leaf.leaf), BYTES, *notes);
        }
        let separated: Vec<_> = found.iter().map(|(leaf, _)| *leaf).collect();
        let inner = Inner::build(&separated, K::EXACT)?;
        Ok(Self { pool, first, inner, rows, epoch, key: PhantomData })
    }
}

/// A function that gets a leaf of the chain, its low key and the key that ends its range.
pub(super) type LeafVisitor<'v, O> =
    dyn FnMut(CellLeaf<'_>, &O, Option<&O>) -> Result<(), Corrupt> + 'v;

/// Calls `visit` with each leaf of the chain that begins at `first`, in key order. Low keys ascend
/// along the chain, so the walk ends whatever the pool holds.
///
/// # Errors
/// The chain or a header is damaged; or an error of `visit`.
pub(super) fn walk<K: Key, M: Medium>(
    pool: &Pool<M>,
    first: PmPtr,
    bytes: usize,
    visit: &mut LeafVisitor<'_, K::Owned>,
) -> Result<(), Corrupt> {
    let medium = pool.medium();
    let mut leaf = CellLeaf::new(pool, first, bytes)?;
    let found = leaf.low(medium)?;
    if found != 0 {
        let what = "separator word of the first leaf";
        return Err(Corrupt { at: first.offset(), what, expected: 0, found });
    }
    let mut low = K::least();
    loop {
        let next = high_of::<K, M>(pool, leaf, bytes)?;
        let high = next.as_ref().map(|(_, high)| high);
        if high.is_some_and(|high| *high <= low) {
            let (what, found) = ("right neighbour whose low key is not greater", leaf.low(medium)?);
            return Err(Corrupt { at: leaf.at.offset(), what, expected: 0, found });
        }
        if let Some((next, _)) = &next {
            next.prefetch_all(medium);
        }
        visit(leaf, &low, high)?;
        let Some((next, high)) = next else { return Ok(()) };
        (leaf, low) = (next, high);
    }
}

/// Makes a leaf of a crash image complete: each cell has a sum that fits. Durable on return.
/// Returns notes of the hidden entries, and of the keys in far cells. Hidden entries of keys with
/// records are removed, because their records may come free.
///
/// ```text
/// W commit word            with the former sum, if a crash has interrupted an update; without a
///                          slot whose record a crash has torn; without hidden entries that
///                          cannot stay
/// F changed cells |        budget: changed cells, 1 fence
/// ```
///
/// `durable` is the newest epoch whose inserts have all been fenced.
///
/// # Errors
/// A cell is damaged, or a lookup would not find one of its entries.
fn settle<K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    (low, high): (&K::Owned, Option<&K::Owned>),
    durable: u64,
) -> Result<Notes, Corrupt> {
    let (low_word, kind) = leaf.header(pool.medium())?;
    // The first leaf is wide: a merge of a dense one may link a new leaf to the leaf before it.
    let may_be_dense = low_word != 0 && kind_of::<K>(low, high) == CellKind::Dense;
    if kind == CellKind::Dense && !may_be_dense {
        let what = "low key of a leaf of dense cells, whose range is too wide, or the first";
        return Err(Corrupt { at: leaf.at.offset(), what, expected: 0, found: low_word });
    }
    with_kind!(kind, C => settle_cells::<C, K, M>(pool, leaf, high, durable))
}

/// As [`settle`], which has found the header whole.
fn settle_cells<C: CellLayout, K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    high: Option<&K::Owned>,
    durable: u64,
) -> Result<Notes, Corrupt> {
    let medium = pool.medium();
    let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
    let (mut words, mut notes) = (Vec::with_capacity(leaf.cells()), Notes::of(C::KIND));
    for index in 0..leaf.cells() {
        let cell = leaf.cell::<C>(index);
        let mut word = cell.settled::<K, M>(pool, durable)?;
        for slot in slots(word.valid()) {
            let entry = leaf.entry::<C, M>(medium, index, slot);
            let Some(high) = high.filter(|_| !injects(Defect::RangeIgnored)) else { continue };
            if K::order_entry(pool, entry, K::borrow(high))?.is_lt() {
                continue;
            }
            if K::EXACT {
                notes = notes.with_hidden::<C>((index, 1 << slot), K::prefix(K::borrow(high)));
            } else {
                word = cell.without(medium, word, 1 << slot);
            }
        }
        words.push(word);
    }
    if !injects(Defect::FarForgotten) {
        notes = note_far::<C, K, M>(pool, leaf, &words, notes)?;
    }
    let mut is_changed = false;
    for (index, word) in words.into_iter().enumerate() {
        let cell = leaf.cell::<C>(index);
        if cell.commit_word(medium) != word {
            cell.set_commit_word(medium, word);
            cell.flush(medium);
            is_changed = true;
        }
    }
    if is_changed {
        let _ = medium.fence();
    }
    Ok(notes)
}

/// Returns `notes` with those keys of a leaf with these commit words that lie in far cells.
///
/// # Errors
/// An entry has not the tag of its key.
fn note_far<C: CellLayout, K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    words: &[CommitWord<C>],
    mut notes: Notes,
) -> Result<Notes, Corrupt> {
    let medium = pool.medium();
    for (index, word) in words.iter().enumerate() {
        for slot in slots(word.valid() & !leaf.hidden_in::<C, M>(medium, notes, index)) {
            let entry = leaf.entry::<C, M>(medium, index, slot);
            let hash = K::with_entry(pool, entry, K::hash)?;
            if !word.has_tag(slot, hash) {
                return Err(unfindable(leaf.at, entry));
            }
            if !Candidates::of(hash, words.len()).is_near(index) {
                notes = notes.with_far::<C>(hash);
            }
        }
    }
    Ok(notes)
}
