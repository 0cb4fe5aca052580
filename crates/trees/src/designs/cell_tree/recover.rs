//! Creating, opening, recovering and closing an index.
//!
//! 1. An open after a clean close loads the inner nodes, or without them follows the links. After
//!    a crash it follows the links, and threads complete parts of the chain meanwhile. That changes
//!    one leaf alone, and neither its link nor its low key, so the parts are independent. A thread
//!    flushes the cells that it changes, with one fence for each leaf.
//! 2. What it makes of a leaf depends on the leaf and the low key of its right neighbour alone, and
//!    no complete leaf changes when it is completed again. So a crash of a recovery needs nothing
//!    else. A later [epoch](super::epoch) is stored when all leaves are complete.
//! 3. No open makes leaf words: the [first use](super::visit) of a leaf does.

use super::batch::Batches;
use super::cell::NewCell;
use super::epoch::{Ended, epoch_after};
use super::leaf::{CellLeaf, Placed, kind_of};
use super::place::ENTRIES_MAX;
use super::rows::{CELLS_MAX, LeafWordTable, Notes, Tags};
use super::word::{CellKind, CellLayout, CommitWord, with_kind};
use super::{CellTree, CellTreeIndex};
use crate::checkpoint;
use crate::index::{Design, TreeError, find_root};
use crate::inner::{Inner, InnerNodes, SeparatedLeaf};
use crate::key::{Entry, Key};
use crate::leaf_table::LeafBounds;
use crate::parallel::{in_pipeline, thread_count};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool};
use core::marker::PhantomData;
use core::mem;
use std::sync::Arc;

/// The leaves that a thread of a recovery takes at a time, and at a
/// [small scale](Medium::has_small_scale).
const PART_LEAVES: usize = 512;
const SMALL_PART_LEAVES: usize = 2;
/// The number of collected blocks at which they are marked, all under one lock; and at a small
/// scale.
const MARK_BATCH: usize = 1024;
const SMALL_MARK_BATCH: usize = 3;

/// The offset of a block and its bytes.
type Block = (PmPtr, u64);

/// A leaf of the chain, with its low key.
struct Link<K: Key> {
    at: PmPtr,
    /// The separator word of the low key.
    word: u64,
    low: K::Owned,
}

/// A part of the chain: its leaves, and the key that ends the range of the last one.
struct Part<K: Key> {
    links: Vec<Link<K>>,
    high: Option<K::Owned>,
}

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
        let (leaf, medium) = (CellLeaf::new(&pool, at, BYTES)?, pool.medium());
        with_kind!(CellKind::widest::<K>(), C => {
            let cells = vec![NewCell::<C>::default(); leaf.cells()];
            leaf.format(medium, (0, PmPtr::new(0)), &cells);
        });
        pool.create_root(root, Self::KIND, at).inspect_err(|_| pool.release(at, BYTES as u64))?;
        let rows = LeafWordTable::new::<K>()?;
        rows.add::<K, M>(at, BYTES, (Notes::default(), Tags::default()));
        let separated = SeparatedLeaf { prefix: 0, word: 0, leaf: at.offset() };
        Self::build(pool, at, (rows, &[separated]), (0, 0))
    }

    /// Opens an index. After a clean close, loads the checkpoint, or follows the links, in
    /// O(leaves). After a crash, completes each leaf, see [`complete`], in O(n), divided among the
    /// processors. Ends the epoch of the open before, if no close has.
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let first = find_root(&pool, root, Self::KIND)?;
        let crashed = opened == Opened::Crashed;
        let first_leaf = CellLeaf::new(&pool, first, BYTES)?;
        let ended = first_leaf.epoch(pool.medium())?;
        let batch = first_leaf.batch(pool.medium())?;
        let rows = LeafWordTable::new::<K>()?;
        if !crashed && let Some(leaves) = checkpoint::load::<K, M>(&pool, first_leaf.checkpoint()) {
            let last = leaves.iter().map(|leaf| leaf.leaf).max();
            rows.extend(PmPtr::new(last.unwrap_or(0)), BYTES);
            return Self::build(pool, first, (rows, &leaves), (ended, batch));
        }
        if M::INJECTS_DEFECTS && pool.medium().injects(Defect::EpochEarly) && crashed {
            first_leaf.set_epoch(pool.medium(), ended + 1);
        }
        let until = crashed.then_some(Ended { epoch: ended, batch });
        let (leaves, newest) = recover::<K, M>(&pool, (first, BYTES), until)?;
        let last = leaves.iter().map(|leaf| leaf.leaf).max();
        rows.extend(PmPtr::new(last.unwrap_or(0)), BYTES);
        let newest = newest.max(ended);
        if newest > ended {
            first_leaf.set_epoch(pool.medium(), newest);
        }
        if crashed {
            pool.finish_recovery();
        }
        Self::build(pool, first, (rows, &leaves), (newest, batch))
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

    /// Saves the inner nodes. See [`checkpoint::save`].
    pub(super) fn save_checkpoint(&self) -> Result<(), TreeError> {
        let first = CellLeaf::new(&self.pool, self.first, BYTES)?;
        checkpoint::save::<K, M>(&self.pool, &self.inner, first.checkpoint())
    }

    /// Builds inner nodes over `leaves`, whose words are `rows`, and whose newest epoch and batch
    /// are `newest` and `batch`.
    fn build(
        pool: Arc<Pool<M>>,
        first: PmPtr,
        (rows, leaves): (LeafWordTable, &[SeparatedLeaf]),
        (newest, batch): (u64, u64),
    ) -> Result<Self, TreeError> {
        let epoch = epoch_after(first.offset(), newest)?;
        let inner = Inner::build(leaves, K::EXACT)?;
        let batches = Batches::new(batch);
        Ok(Self { pool, first, inner, rows, epoch, batches, key: PhantomData })
    }
}

/// Follows the chain that begins at `first`, of leaves of `bytes` bytes. After a crash, `ended` is
/// what it has not interrupted: all leaves are completed, in parallel, and all blocks that they
/// reach are marked. Returns the leaves, and the newest epoch in them.
fn recover<K: Key, M: Medium>(
    pool: &Pool<M>,
    (first, bytes): (PmPtr, usize),
    ended: Option<Ended>,
) -> Result<(Vec<SeparatedLeaf>, u64), Corrupt> {
    let threads = thread_count::<M>(pool.medium().len());
    let share = if M::has_small_scale() { SMALL_PART_LEAVES } else { PART_LEAVES };
    let (mut leaves, mut newest) = (Vec::new(), 0);
    let walk_parts = |send: &mut dyn FnMut(Part<K>)| {
        let mut links = Vec::with_capacity(share);
        walk::<K, M>(pool, first, bytes, &mut |leaf, (low, word), high| {
            let prefix = K::prefix(K::borrow(low));
            leaves.push(SeparatedLeaf { prefix, word, leaf: leaf.at.offset() });
            if ended.is_none() {
                newest = leaf.newest_epoch::<K, M>(pool.medium()).max(newest);
                return Ok(());
            }
            links.push(Link::<K> { at: leaf.at, word, low: low.clone() });
            if links.len() == share || high.is_none() {
                let links = mem::replace(&mut links, Vec::with_capacity(share));
                send(Part { links, high: high.cloned() });
            }
            Ok(())
        })
    };
    let parts = in_pipeline(threads, walk_parts, |part| {
        complete_part::<K, M>(pool, (&part, bytes), ended.unwrap_or(Ended::ALL))
    })?;
    for newest_of_part in parts {
        newest = newest_of_part?.max(newest);
    }
    Ok((leaves, newest))
}

/// Completes the leaves of a part, and marks them and their blocks. Returns the newest epoch in
/// them. See [`recover`].
fn complete_part<K: Key, M: Medium>(
    pool: &Pool<M>,
    (part, bytes): (&Part<K>, usize),
    ended: Ended,
) -> Result<u64, Corrupt> {
    let mark_batch = if M::has_small_scale() { SMALL_MARK_BATCH } else { MARK_BATCH };
    let (mut newest, mut blocks) = (0, Vec::new());
    for (number, link) in part.links.iter().enumerate() {
        let leaf = CellLeaf::new(pool, link.at, bytes)?;
        let next = part.links.get(number + 1);
        if let Some(next) = next {
            CellLeaf::new(pool, next.at, bytes)?.prefetch_all(pool.medium());
        }
        let high = next.map(|next| &next.low).or(part.high.as_ref());
        complete::<K, M>(pool, leaf, (&link.low, high), (ended, &mut blocks))?;
        blocks.push((link.at, bytes as u64));
        blocks.extend(K::block(pool, link.word)?);
        if blocks.len() >= mark_batch {
            pool.mark_all(&blocks)?;
            blocks.clear();
        }
        newest = newest.max(leaf.newest_epoch::<K, M>(pool.medium()));
    }
    pool.mark_all(&blocks)?;
    Ok(newest)
}

/// A function that gets a leaf of the chain, its low key with the separator word, and the key that
/// ends its range.
pub(super) type LeafVisitor<'v, O> =
    dyn FnMut(CellLeaf<'_>, (&O, u64), Option<&O>) -> Result<(), Corrupt> + 'v;

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
    let mut word = leaf.low(medium)?;
    if word != 0 {
        let what = "separator word of the first leaf";
        return Err(Corrupt { at: first.offset(), what, expected: 0, found: word });
    }
    let mut low = K::least();
    while let Some(next) = leaf.right(pool, bytes)? {
        if let Ok(Some(after)) = next.right(pool, bytes) {
            after.prefetch_header(medium);
        }
        let next_word = next.low(medium)?;
        let high = K::read(pool, next_word)?;
        if high <= low {
            let what = "right neighbour whose low key is not greater";
            return Err(Corrupt { at: leaf.at.offset(), what, expected: 0, found: word });
        }
        visit(leaf, (&low, word), Some(&high))?;
        (leaf, low, word) = (next, high, next_word);
    }
    visit(leaf, (&low, word), None)
}

/// Makes a leaf of a crash image complete: each cell has a sum that fits. Durable on return.
/// Appends the blocks that its entries name to `blocks`. Hidden entries that name blocks are
/// removed, because their blocks may come free. Nothing else of a leaf is compared before its
/// [first use](super::visit).
///
/// ```text
/// W commit word            with the former sum, if a crash has interrupted an update; without a
///                          slot whose record a crash has torn; that before a batch which is not
///                          committed; without hidden entries that name blocks
/// F changed cells |        budget: changed cells, 1 fence
/// ```
///
/// `ended` tells what no crash has interrupted.
///
/// # Errors
/// A cell or a record is damaged.
fn complete<K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    range: (&K::Owned, Option<&K::Owned>),
    (ended, blocks): (Ended, &mut Vec<Block>),
) -> Result<(), Corrupt> {
    let kind = verified_kind::<K, M>(pool.medium(), leaf, range)?;
    with_kind!(kind, C => complete_cells::<C, K, M>(pool, leaf, range, (ended, blocks)))
}

/// As [`complete`], which has found the header whole.
fn complete_cells<C: CellLayout, K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    (low, high): (&K::Owned, Option<&K::Owned>),
    (ended, blocks): (Ended, &mut Vec<Block>),
) -> Result<(), Corrupt> {
    let medium = pool.medium();
    let mut words = [CommitWord::<C>::default(); CELLS_MAX];
    let words = settled_words::<C, K, M>(pool, leaf, ended, &mut words)?;
    let names_block = |word: &CommitWord<C>| {
        let names = |slot| !K::stands_alone(word.encoding(slot)) & (word.valid() >> slot & 1 == 1);
        (0..C::KIND.slots()).fold(false, |any, slot| any | names(slot))
    };
    // One branch for all entries: few leaves have entries of both sorts.
    if words.iter().fold(false, |any, word| any | names_block(word)) {
        let mut placed = [Placed::default(); ENTRIES_MAX + 1];
        let range = LeafBounds::<K>::new(low, high);
        for &Placed { cell: index, slot, entry } in
            valid_entries::<C, K, M>(pool, leaf, words, &mut placed)
        {
            if K::stands_alone(entry.encoding) {
                continue;
            }
            if range.is_behind(pool, leaf.at, entry)? {
                words[index] = leaf.cell::<C>(index).without(medium, words[index], 1 << slot);
            } else {
                blocks.extend(K::entry_block(pool, entry)?);
                blocks.extend(K::value_block(pool, entry)?);
            }
        }
    }
    store_words::<C, M>(medium, leaf, words);
    Ok(())
}

/// Returns the kind of the cells of a leaf with this range.
///
/// # Errors
/// The header is damaged, or its kind is not that of such a leaf.
pub(super) fn verified_kind<K: Key, M: Medium>(
    medium: &M,
    leaf: CellLeaf<'_>,
    (low, high): (&K::Owned, Option<&K::Owned>),
) -> Result<CellKind, Corrupt> {
    let (low_word, kind) = leaf.header(medium)?;
    // The first leaf is wide: a merge of a dense one may link a new leaf to the leaf before it.
    let may_be_dense = low_word != 0 && kind_of::<K>(low, high) == CellKind::Dense;
    if kind != CellKind::widest::<K>() && !(kind == CellKind::Dense && may_be_dense) {
        let what = "kind of a leaf that keys or range do not allow, or whose low key is wrong";
        return Err(Corrupt { at: leaf.at.offset(), what, expected: 0, found: low_word });
    }
    Ok(kind)
}

/// Copies the commit words that count to `words`, and returns them: one for each cell of the leaf.
///
/// # Errors
/// A cell is damaged.
#[inline(always)]
pub(super) fn settled_words<'w, C: CellLayout, K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    ended: Ended,
    words: &'w mut [CommitWord<C>; CELLS_MAX],
) -> Result<&'w mut [CommitWord<C>], Corrupt> {
    leaf.verify_used::<C, M>(pool.medium())?;
    let words = &mut words[..leaf.cells()];
    for (index, word) in words.iter_mut().enumerate() {
        *word = leaf.cell::<C>(index).settled::<K, M>(pool, ended)?;
    }
    Ok(words)
}

/// Copies the entries that are valid in `words` to `placed`, and returns them. No branch depends on
/// them: the slots of a cell that are free would mislead the processor's prediction.
#[inline(always)]
pub(super) fn valid_entries<'p, C: CellLayout, K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    words: &[CommitWord<C>],
    placed: &'p mut [Placed; ENTRIES_MAX + 1],
) -> &'p [Placed] {
    let mut count = 0;
    for (index, word) in words.iter().enumerate() {
        for slot in 0..C::KIND.slots() {
            if M::COMPACT && word.valid() >> slot & 1 == 0 {
                continue;
            }
            let entry = leaf.entry::<C, M>(pool.medium(), index, slot);
            let entry = Entry { encoding: word.encoding(slot), ..entry };
            placed[count] = Placed { cell: index, slot, entry };
            count += (word.valid() >> slot & 1) as usize;
        }
    }
    let placed = &placed[..count];
    if C::KIND == CellKind::Pairs {
        for placed in placed {
            K::prefetch_entry(pool, placed.entry);
        }
    }
    placed
}

/// Stores the commit words that are not those of the leaf. Durable on return.
///
/// ```text
/// W commit word, F cell       of each that differs
/// |                           -> durable      budget: changed cells, 1 fence; else none
/// ```
fn store_words<C: CellLayout, M: Medium>(medium: &M, leaf: CellLeaf<'_>, words: &[CommitWord<C>]) {
    let mut is_changed = false;
    for (index, word) in words.iter().enumerate() {
        let cell = leaf.cell::<C>(index);
        if cell.commit_word(medium) != *word {
            cell.set_commit_word(medium, *word);
            cell.flush(medium);
            is_changed = true;
        }
    }
    if is_changed {
        let _ = medium.fence();
    }
}
