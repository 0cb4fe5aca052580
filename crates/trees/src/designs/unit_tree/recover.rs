//! Creating, opening, recovering and closing an index.
//!
//! 1. An open follows the links. After a crash threads complete parts of the list; each leaf
//!    depends on itself and on the low key of its right neighbour alone. They make the rows of each
//!    part [refer](super::refer) to the log records that count.
//! 2. Recovery writes nothing but commit words without entries that the right neighbour has. So a
//!    crash of a recovery needs nothing else.

use super::log::{Logs, ROOT_WORDS};
use super::rows::Rows;
use super::unit::{STAMP_MAX, UNITS, UnitLeaf, UnitWord, check_stamp, home_of};
use super::{UnitTree, UnitTreeIndex};
use crate::index::{Design, TreeError, find_root};
use crate::inner::{Inner, InnerNodes, SeparatedLeaf};
use crate::key::Key;
use crate::leaf_table::LeafBounds;
use crate::maintenance::Maintainers;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use std::sync::Arc;

const ROOT_BYTES: u64 = 8 * ROOT_WORDS as u64;
/// The fewest leaves of a part of the list, which fit into a processor's cache; and at a
/// [small scale](Medium::has_small_scale).
const PART_LEAVES_MIN: usize = 256;
const SMALL_PART_LEAVES: usize = 2;
/// The most parts.
const PARTS_MAX: usize = 1024;

/// A leaf of the list, and its low key.
pub(super) struct ListedLeaf<K: Key> {
    pub(super) at: PmPtr,
    pub(super) word: u64,
    pub(super) low: K::Owned,
}

/// A block that a leaf reaches, and its bytes.
type Block = (PmPtr, u64);

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Creates an empty index. Durable on return.
    ///
    /// ```text
    /// N first leaf, root block |    crash before C: both are unreachable and free
    /// C root table entry            -> durable
    /// ```
    pub(super) fn create_at(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let leaf = pool.reserve(BYTES as u64)?;
        let release_leaf = |_: &PoolError| pool.release(leaf, BYTES as u64);
        let block = pool.reserve(ROOT_BYTES).inspect_err(release_leaf)?;
        let stamp = if M::is_aged() { STAMP_MAX - (1 << 20) } else { 0 };
        let first = UnitLeaf::<BYTES>::new(&pool, leaf)?;
        first.format(pool.medium(), (0, PmPtr::NULL, stamp), core::iter::empty());
        let mut image = vec![0; ROOT_BYTES as usize];
        image[..8].copy_from_slice(&leaf.offset().to_le_bytes());
        pool.medium().fill(pool.words(block, ROOT_WORDS)?, &image);
        pool.create_root(root, UnitTree::<BYTES>::SPEC.kind::<K>(), block)
            .inspect_err(release_leaf)
            .inspect_err(|_| pool.release(block, ROOT_BYTES))?;
        let mut index = Self::assemble(pool, block)?;
        let row = index.rows.take::<M>(leaf, stamp, 0);
        let separated = SeparatedLeaf { leaf: row as u64, ..SeparatedLeaf::default() };
        index.inner = Inner::build(&[separated], K::EXACT)?;
        index.log.set_clocks(stamp);
        Ok(index)
    }

    fn assemble(pool: Arc<Pool<M>>, root: PmPtr) -> Result<Self, PoolError> {
        Ok(Self {
            inner: Inner::build(&[SeparatedLeaf::default()], K::EXACT)?,
            rows: Rows::new()?,
            log: Logs::new(&pool, pool.words(root, ROOT_WORDS)?)?,
            pool,
            root,
            maintainers: Maintainers::default(),
            key: PhantomData,
        })
    }

    /// Opens an index. After a clean close, which leaves no logs, follows the links, in O(leaves).
    /// After a crash completes each leaf and reads the logs, in O(n), divided among the processors.
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, UnitTree::<BYTES>::SPEC.kind::<K>())?;
        let mut index = Self::assemble(pool, block)?;
        let is_crashed = opened == Opened::Crashed;
        let leaves = index.walk()?;
        index.log.find_chunks(&index.pool, index.root_words()?)?;
        let first = index.rows.take_all(leaves.len());
        let separated = leaves.iter().enumerate().map(|(number, leaf)| SeparatedLeaf {
            prefix: K::prefix(K::borrow(&leaf.low)),
            word: leaf.word,
            leaf: (first + number) as u64,
        });
        let separated: Vec<_> = separated.collect();
        let newest = index.recover(&leaves, &separated, is_crashed)?;
        if is_crashed {
            index.pool.mark(block, ROOT_BYTES)?;
            index.pool.mark_all(&index.log.blocks())?;
            index.pool.finish_recovery();
        }
        index.inner = Inner::build(&separated, K::EXACT)?;
        index.log.set_clocks(newest.max(index.log.greatest_base(&index.pool)?));
        Ok(index)
    }

    /// Returns the leaves of the list. Low keys ascend along it, so the walk ends whatever the pool
    /// holds.
    ///
    /// # Errors
    /// The list or a header is damaged.
    pub(super) fn walk(&self) -> Result<Vec<ListedLeaf<K>>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let mut leaves = Vec::<ListedLeaf<K>>::new();
        let mut at = PmPtr::new(medium.load(&self.root_words()?[0]));
        loop {
            let leaf = UnitLeaf::<BYTES>::new(pool, at)?;
            let word = leaf.low(medium)?;
            let low = if leaves.is_empty() { K::least() } else { K::read(pool, word)? };
            let follows = leaves.last().map_or(word == 0, |left| low > left.low);
            if !follows {
                let what = "low key of a leaf in the list";
                return Err(Corrupt { at: at.offset(), what, expected: 0, found: word });
            }
            leaves.push(ListedLeaf { at, word, low });
            at = leaf.next(medium)?;
            if at.is_null() {
                return Ok(leaves);
            }
        }
    }

    /// Completes all leaves, whose rows are those of `separated`, and makes the rows refer to the
    /// log records that count, in parallel. Returns the greatest stamp or version. After a crash
    /// marks all blocks that the leaves reach.
    fn recover(
        &self,
        leaves: &[ListedLeaf<K>],
        separated: &[SeparatedLeaf],
        is_crashed: bool,
    ) -> Result<u64, Corrupt> {
        let threads = thread_count::<M>(self.pool.medium().len());
        let share = if M::has_small_scale() {
            SMALL_PART_LEAVES
        } else {
            leaves.len().div_ceil(PARTS_MAX).max(PART_LEAVES_MIN)
        };
        let divided = self.divide_records(separated, share, threads)?;
        let parts: Vec<_> = (0..leaves.len()).step_by(share).enumerate().collect();
        let newest = in_parallel(threads, &parts, |&(part, first)| {
            let (mut blocks, mut newest) = (Vec::new(), 0);
            let last = leaves.len().min(first + share);
            for at in first..last {
                let linked = (&leaves[at], leaves.get(at + 1));
                let row = separated[at].leaf as usize;
                newest = self.complete(linked, row, is_crashed.then_some(&mut blocks))?.max(newest);
            }
            if is_crashed {
                self.pool.mark_all(&blocks)?;
            }
            Ok(self.refer_part((part, &separated[first..last]), &divided)?.max(newest))
        });
        newest
            .into_iter()
            .try_fold(0, |newest, found: Result<u64, Corrupt>| found.map(|found| found.max(newest)))
    }

    /// Makes a leaf of a crash image complete: it has no entry that its right neighbour has. Begins
    /// its row, and returns its greatest stamp. Durable on return. Appends the blocks that it
    /// reaches to `blocks`. After a clean close, without `blocks`, reads the commit words alone.
    ///
    /// ```text
    /// W commit words without those entries, F their lines |     budget: 4 lines, 1 fence
    /// ```
    ///
    /// # Errors
    /// An entry is below the leaf's range; a stamp is out of range.
    fn complete(
        &self,
        (linked, next): (&ListedLeaf<K>, Option<&ListedLeaf<K>>),
        row: usize,
        blocks: Option<&mut Vec<Block>>,
    ) -> Result<u64, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let leaf = UnitLeaf::<BYTES>::new(pool, linked.at)?;
        let words = leaf.unit_words(medium);
        let mut stamp = 0;
        for word in words {
            if word.valid() & !UnitLeaf::<BYTES>::ALL != 0 {
                let what = "valid slots of a unit";
                let (expected, found) = (UnitLeaf::<BYTES>::ALL, word.valid());
                return Err(Corrupt { at: linked.at.offset(), what, expected, found });
            }
            stamp = check_stamp(linked.at, word.stamp())?.max(stamp);
        }
        let row = self.rows.row(row);
        let Some(blocks) = blocks else {
            row.begin::<M>(linked.at, stamp, (1 << UNITS) - 1);
            return Ok(stamp);
        };
        if let Some(next) = next {
            medium.prefetch(UnitLeaf::<BYTES>::new(pool, next.at)?.words);
        }
        let ignores = M::INJECTS_DEFECTS && medium.injects(Defect::UnitRangeIgnored);
        let high = next.map(|next| &next.low).filter(|_| !ignores);
        let range = LeafBounds::<K>::new(&linked.low, high);
        let (mut kept, mut spilled) = (words.map(UnitWord::valid), 0);
        for (place, entry) in leaf.entries(medium) {
            if range.is_behind(pool, linked.at, entry)? {
                kept[place.unit] &= !(1 << place.slot);
                continue;
            }
            let home = home_of(K::hash_entry(pool, entry)?);
            spilled |= u64::from(place.unit != home) << home;
            blocks.extend(K::entry_block(pool, entry)?);
            blocks.extend(K::value_block(pool, entry)?);
        }
        row.begin::<M>(linked.at, stamp, spilled);
        let mut is_changed = false;
        for (unit, word) in words.into_iter().enumerate() {
            let complete = UnitWord::new(kept[unit], word.stamp());
            if complete != word {
                medium.store(leaf.commit_word(unit), complete.bits());
                medium.flush(core::slice::from_ref(leaf.commit_word(unit)));
                is_changed = true;
            }
        }
        if is_changed {
            let _ = medium.fence();
        }
        blocks.push((linked.at, BYTES as u64));
        blocks.extend(K::block(pool, linked.word)?);
        Ok(stamp)
    }

    /// Settles all leaves and frees the logs. Durable on return. No other thread uses the index.
    pub(super) fn settle_all(&self) -> Result<(), TreeError> {
        for number in 0..self.rows.end() {
            let row = self.rows.row(number);
            if row.pending::<M>().count > 0 {
                self.settle_leaf(row, self.leaf(row)?)?;
            }
        }
        self.log.remove_all(&self.pool, self.root_words()?);
        Ok(())
    }

    pub(super) fn root_block(&self) -> (PmPtr, u64) {
        (self.root, ROOT_BYTES)
    }
}
