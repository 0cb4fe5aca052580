//! Bulk loads: the bases of new leaves, then a base of the first leaf that links them.
//!
//! 1. A record of a leaf that is not in the list does not count. So a crash before the new base of
//!    leaf 0 is durable leaves the empty index.
//! 2. A new leaf has a row before leaf 0 leads to it, so that log GC keeps its base.

use super::BTreeLsRIndex;
use super::log::lock;
use super::record::{self, Range};
use super::replay::FIRST_LEAF;
use super::tuning::Tuning;
use super::write::WriteError;
use crate::bulk::{LeafLoader, LoadedBlocks, NewLeaf, filled, write_leaves};
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes, SeparatedLeaf};
use crate::key::{Entry, Key};
use crate::leaf::TaggedEntry;
use crate::leaf_table::Contents;
use crate::leaf_table::{KeyedEntries, latch_leaf};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Medium, PmPtr, Pool, PoolError};
use core::cell::RefCell;
use core::sync::atomic::Ordering::Relaxed;

/// A load. Here the offset of a new leaf is its number.
struct Loader<'t, M: Medium, K: Key, const NODE: usize, T: Tuning> {
    tree: &'t BTreeLsRIndex<M, K, NODE, T>,
    guard: &'t Guard,
    state: RefCell<State<K>>,
}

struct State<K: Key> {
    is_begun: bool,
    /// The entries of the first leaf, and its range.
    first: (KeyedEntries<K>, Range),
    /// The numbers of the other leaves, and their rows.
    rows: Vec<(u64, usize)>,
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> LeafLoader<M, K>
    for Loader<'_, M, K, NODE, T>
{
    fn loader_pool(&self) -> &Pool<M> {
        &self.tree.pool
    }

    fn reserve_new_leaf(&self) -> Result<PmPtr, PoolError> {
        let is_begun = core::mem::replace(&mut self.state.borrow_mut().is_begun, true);
        let number = if is_begun { self.tree.next_leaf.fetch_add(1, Relaxed) } else { FIRST_LEAF };
        Ok(PmPtr::new(number))
    }

    fn write_new_leaf(
        &self,
        leaf: NewLeaf,
        next: Option<NewLeaf>,
        entries: &[TaggedEntry],
    ) -> Result<(), TreeError> {
        let range = Range {
            right: next.map(|next| next.at.offset()),
            low: leaf.low(),
            high: next.map_or(0, |next| next.low()),
        };
        let number = leaf.at.offset();
        if number == FIRST_LEAF {
            let keyed = |tagged: &TaggedEntry| {
                Ok((K::read_entry(&self.tree.pool, tagged.entry)?, tagged.entry))
            };
            let pairs: Result<_, TreeError> = entries.iter().map(keyed).collect();
            self.state.borrow_mut().first = (pairs?, range);
            return Ok(());
        }
        let fingerprints = entries.iter().map(|tagged| tagged.fingerprint);
        let entries: Vec<Entry> = entries.iter().map(|tagged| tagged.entry).collect();
        let image = record::base_image(
            number,
            BTreeLsRIndex::<M, K, NODE, T>::FIRST_SEQUENCE,
            range,
            entries.iter(),
        );
        let mut attempts = 0;
        loop {
            let (index, held) = self.tree.begin_leaf(number);
            let failed = match self.tree.append(number, &image, 0, false) {
                Ok(Ok(at)) => {
                    let first = BTreeLsRIndex::<M, K, NODE, T>::FIRST_SEQUENCE;
                    self.tree.table.row(index).set_base::<M>(at, fingerprints, first);
                    self.state.borrow_mut().rows.push((number, index));
                    return Ok(());
                }
                Ok(Err(error)) => WriteError::of_append(T::log_of(number), error),
                Err(corrupt) => corrupt.into(),
            };
            self.tree.forget_leaf(number, index, held);
            attempts += 1;
            self.tree.ensure_space(failed, attempts, self.guard)?;
        }
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsRIndex<M, K, NODE, T> {
    /// Fills the empty index with `pairs`, and each leaf to `fill_percent` of its capacity.
    ///
    /// ```text
    /// N key records, low keys
    /// W C F bases of all leaves but leaf 0    crash: nothing leads to them
    /// |
    /// W C F base of leaf 0, which leads to the second leaf
    /// |                      -> durable       budget: lines of the bases, 2 fences; chunks
    /// ```
    pub(super) fn load_pairs(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        let state = State { is_begun: false, first: Default::default(), rows: Vec::new() };
        let loader = Loader { tree: self, guard: &guard, state: RefCell::new(state) };
        let mut blocks = LoadedBlocks::default();
        let most = filled(Self::CAPACITY, fill_percent);
        let written = write_leaves(&loader, pairs, most, &mut blocks);
        let state = loader.state.into_inner();
        let loaded = written.and_then(|leaves| self.show(&leaves, &state, &guard));
        loaded.inspect_err(|_| {
            for &(number, index) in &state.rows {
                self.drop_row(number, index);
            }
            blocks.nodes.clear(); // These are numbers of leaves, not blocks.
            blocks.free::<K, M>(&self.pool, 0);
        })
    }

    /// Frees the row of a leaf of a load that failed. Its base becomes garbage.
    #[cold]
    fn drop_row(&self, number: u64, index: usize) {
        let row = self.table.row(index);
        let held = lock(&row.latch::<M>());
        self.log.drop_lines(T::log_of(number), row.size::<M>().lines());
        self.forget_leaf(number, index, held);
    }

    /// Links `leaves` behind leaf 0, if the index is still empty.
    fn show(&self, leaves: &[NewLeaf], state: &State<K>, guard: &Guard) -> Result<(), TreeError> {
        let mut attempts = 0;
        loop {
            match self.try_show(leaves, state, guard) {
                Ok(()) => return Ok(()),
                Err(failed) => {
                    attempts += 1;
                    self.ensure_space(failed, attempts, guard)?;
                }
            }
        }
    }

    fn try_show(
        &self,
        leaves: &[NewLeaf],
        state: &State<K>,
        guard: &Guard,
    ) -> Result<(), WriteError> {
        let (pool, least) = (&*self.pool, K::least());
        let (row, _held) = latch_leaf(self, K::borrow(&least), |_| {})?;
        let former = row.contents::<K, M>(pool)?;
        let range = row.base_in(pool)?.range(pool.medium());
        if range.right.is_some() || !former.pairs.is_empty() {
            return Err(WriteError::Error(TreeError::NotEmpty));
        }
        // The only leaf is latched, so no other takes its place in the inner nodes.
        let only = self.inner.seek::<K>(pool, K::borrow(&least), Direction::Key)?.leaf;
        let indices =
            core::iter::once(only.offset()).chain(state.rows.iter().map(|row| row.1 as u64));
        let separated: Vec<_> = leaves
            .iter()
            .zip(indices)
            .map(|(leaf, index)| SeparatedLeaf {
                prefix: leaf.prefix,
                word: leaf.low(),
                leaf: index,
            })
            .collect();
        let (pairs, range) = state.first.clone();
        let contents = Contents { pairs, removed: former.removed };
        let mut linked = Ok(());
        let is_shown = self.inner.load::<K>(pool, only, &separated, &mut || {
            let _ = pool.medium().fence();
            linked = self.rewrite(row, row.sequence::<M>() + 1, range, &contents, guard);
            linked.is_ok()
        })?;
        linked?;
        if is_shown { Ok(()) } else { Err(WriteError::Error(TreeError::NotEmpty)) }
    }
}
