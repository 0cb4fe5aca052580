//! Creating, opening, recovering and closing an index.
//!
//! 1. An open follows the links. After a crash threads complete parts of the list; each leaf
//!    depends on itself and on the low key of its right neighbour alone. Then they read the chunks
//!    of the logs, and make the rows refer to the records that count.
//! 2. Recovery writes nothing but commit words without entries that the right neighbour has. So a
//!    crash of a recovery needs nothing else.

use super::log::{Logs, ROOT_WORDS};
use super::record::{Position, VersionedChange};
use super::rows::{Pending, REFERENCES, Rows, UnitRow, tag_of};
use super::settle::no_space;
use super::unit::{STAMP_MAX, UNITS, UnitLeaf, UnitWord, check_stamp, home_of};
use super::{UnitTree, UnitTreeIndex};
use crate::index::{Design, TreeError, find_root};
use crate::inner::{BATCH, Direction, Inner, InnerNodes, SeparatedLeaf};
use crate::key::Key;
use crate::leaf_table::misplaced_key;
use crate::maintenance::Maintainers;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use std::sync::Arc;

const ROOT_BYTES: u64 = 8 * ROOT_WORDS as u64;
/// The fewest leaves for each thread of a recovery, and at a
/// [small scale](Medium::has_small_scale).
const PART_LEAVES_MIN: usize = 512;
const SMALL_PART_LEAVES: usize = 2;

/// A leaf of the list, and its low key.
pub(super) struct ListedLeaf<K: Key> {
    pub(super) at: PmPtr,
    pub(super) word: u64,
    pub(super) low: K::Owned,
}

/// A record that an open finds, and its key.
struct FoundRecord<K: Key> {
    position: Position,
    record: VersionedChange,
    key: K::Owned,
}

/// A leaf that is complete: its greatest stamp, and the homes with keys in other units.
#[derive(Clone, Copy, Debug)]
struct Completed {
    stamp: u64,
    spilled: u64,
}

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
        index.build(
            &[ListedLeaf { at: leaf, word: 0, low: K::least() }],
            &[Completed { stamp, spilled: 0 }],
        )?;
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

    /// Builds rows without references, and inner nodes, over `leaves`.
    fn build(
        &mut self,
        leaves: &[ListedLeaf<K>],
        completed: &[Completed],
    ) -> Result<(), PoolError> {
        let separated = leaves.iter().zip(completed).map(|(leaf, completed)| SeparatedLeaf {
            prefix: K::prefix(K::borrow(&leaf.low)),
            word: leaf.word,
            leaf: self.rows.take::<M>(leaf.at, completed.stamp, completed.spilled) as u64,
        });
        self.inner = Inner::build(&separated.collect::<Vec<_>>(), K::EXACT)?;
        Ok(())
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
        let completed = index.complete_all(&leaves, is_crashed)?;
        index.log.find_chunks(&index.pool, index.root_words()?)?;
        if is_crashed {
            index.pool.mark(block, ROOT_BYTES)?;
            index.pool.mark_all(&index.log.blocks())?;
            index.pool.finish_recovery();
        }
        index.build(&leaves, &completed)?;
        let stamp = completed.iter().map(|completed| completed.stamp).max().unwrap_or(0);
        let newest = index.refer_to_all()?.max(stamp);
        let newest = newest.max(index.log.greatest_base(&index.pool)?);
        index.log.set_clocks(newest);
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

    /// Completes all leaves, in parallel; see [`complete`](Self::complete).
    fn complete_all(
        &self,
        leaves: &[ListedLeaf<K>],
        is_crashed: bool,
    ) -> Result<Vec<Completed>, Corrupt> {
        let threads = thread_count::<M>(self.pool.medium().len());
        let share = if M::has_small_scale() {
            SMALL_PART_LEAVES
        } else {
            leaves.len().div_ceil(threads).max(PART_LEAVES_MIN)
        };
        let parts: Vec<_> = (0..leaves.len()).step_by(share).collect();
        let completed = in_parallel(threads, &parts, |&first| {
            let mut blocks = Vec::new();
            let last = leaves.len().min(first + share);
            let mut completed = Vec::with_capacity(share);
            for at in first..last {
                let high = leaves.get(at + 1).map(|next| &next.low);
                completed.push(self.complete(&leaves[at], high, is_crashed, &mut blocks)?);
            }
            if is_crashed {
                self.pool.mark_all(&blocks)?;
            }
            Ok(completed)
        });
        let completed = completed.into_iter().collect::<Result<Vec<_>, Corrupt>>()?;
        Ok(completed.into_iter().flatten().collect())
    }

    /// Makes a leaf of a crash image complete: it has no entry that is not below `high`. Durable on
    /// return. Appends the blocks that it reaches to `blocks`. After a clean close reads the commit
    /// words alone.
    ///
    /// ```text
    /// W commit words without those entries, F their lines |     budget: 4 lines, 1 fence
    /// ```
    ///
    /// # Errors
    /// An entry is out of the leaf's range, or twice in it; a stamp is out of range.
    fn complete(
        &self,
        linked: &ListedLeaf<K>,
        high: Option<&K::Owned>,
        is_crashed: bool,
        blocks: &mut Vec<(PmPtr, u64)>,
    ) -> Result<Completed, Corrupt> {
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
        if !is_crashed {
            return Ok(Completed { stamp, spilled: (1 << UNITS) - 1 });
        }
        let mut kept = words.map(UnitWord::valid);
        let (mut keys, mut spilled) = (Vec::with_capacity(UnitLeaf::<BYTES>::CAPACITY), 0);
        let ignores = M::INJECTS_DEFECTS && medium.injects(Defect::UnitRangeIgnored);
        for (place, entry) in leaf.entries(medium) {
            let key = K::read_entry(pool, entry)?;
            if high.is_some_and(|high| key >= *high) && !ignores {
                kept[place.unit] &= !(1 << place.slot);
                continue;
            }
            let home = Self::home_of_key(&key);
            spilled |= u64::from(place.unit != home) << home;
            blocks.extend(K::entry_block(pool, entry)?);
            blocks.extend(K::value_block(pool, entry)?);
            keys.push((key, entry.key));
        }
        keys.sort_unstable();
        let twice = keys.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| &pair[0]);
        let below = keys.first().filter(|(key, _)| *key < linked.low);
        if let Some((_, word)) = twice.or(below) {
            return Err(misplaced_key(linked.at, *word));
        }
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
        Ok(Completed { stamp, spilled })
    }

    /// Makes the rows refer to all log records that count, in parallel. Returns the greatest
    /// version of a record.
    fn refer_to_all(&self) -> Result<u64, Corrupt> {
        let chunks = self.log.numbers();
        let threads = thread_count::<M>(self.pool.medium().len());
        let newest = in_parallel(threads, &chunks, |&chunk| {
            let mut newest = 0;
            let mut group = Vec::with_capacity(BATCH);
            for (position, record) in self.log.records_in(&self.pool, chunk)? {
                check_stamp(self.root, record.version)?;
                newest = newest.max(record.version);
                let key = K::read_entry(&self.pool, record.change.entry)?;
                group.push(FoundRecord { position, record, key });
                if group.len() == BATCH {
                    self.refer_to_group(&group)?;
                    group.clear();
                }
            }
            self.refer_to_group(&group)?;
            Ok(newest)
        });
        let newest: u64 =
            newest.into_iter().try_fold(0, |newest, found: Result<u64, Corrupt>| {
                found.map(|found| found.max(newest))
            })?;
        let rows: Vec<_> = (0..self.rows.end()).step_by(PART_LEAVES_MIN).collect();
        let checked = in_parallel(threads, &rows, |&first| {
            let last = self.rows.end().min(first + PART_LEAVES_MIN);
            (first..last).try_for_each(|number| self.check_room(self.rows.row(number)))
        });
        checked.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(newest)
    }

    /// Checks that the leaf of a row has slots for the keys that only log records have.
    fn check_room(&self, row: UnitRow<'_>) -> Result<(), Corrupt> {
        let (leaf, fresh) = (self.leaf(row)?, row.pending::<M>().fresh);
        if fresh > 0 && leaf.used(self.pool.medium()) + fresh > UnitLeaf::<BYTES>::CAPACITY {
            return Err(no_space(leaf));
        }
        Ok(())
    }

    /// Makes rows refer to those of at most [`BATCH`] records that count. The reads for one record
    /// overlap with those for others.
    fn refer_to_group(&self, group: &[FoundRecord<K>]) -> Result<(), Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let keys: Vec<_> = group.iter().map(|old| K::borrow(&old.key)).collect();
        let mut routes = [None; BATCH];
        self.inner.seek_batch::<K>(pool, &keys, &mut routes, |leaf, _| {
            self.rows.prefetch(leaf.offset() as usize);
        })?;
        let mut found = Vec::with_capacity(BATCH);
        for (old, route) in group.iter().zip(routes) {
            let key = K::borrow(&old.key);
            // No thread changes an inner node while an index is opened.
            let route = match route {
                Some(route) => route,
                None => self.inner.seek::<K>(pool, key, Direction::Key)?,
            };
            let (row, hash) = (self.rows.row(route.leaf.offset() as usize), K::hash(key));
            let leaf = self.leaf(row)?;
            row.prefetch();
            medium.prefetch(core::slice::from_ref(leaf.commit_word(home_of(hash))));
            found.push((old, row, leaf, hash));
        }
        found.retain(|&(old, _, leaf, hash)| {
            let counts = old.record.version > leaf.word(medium, home_of(hash)).stamp();
            if counts {
                leaf.prefetch(medium, home_of(hash));
            }
            counts
        });
        found.into_iter().try_for_each(|(old, row, leaf, hash)| self.refer_to(old, row, leaf, hash))
    }

    /// Makes a row refer to a record of a key with this hash that counts, if no newer one does.
    ///
    /// # Errors
    /// The row has no room for a reference.
    fn refer_to(
        &self,
        &FoundRecord { position, record, ref key }: &FoundRecord<K>,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
        hash: u64,
    ) -> Result<(), Corrupt> {
        let pool = &*self.pool;
        let _held = loop {
            if let Some(held) = row.latch::<M>().lock() {
                break held; // No row is obsolete while an index is opened.
            }
        };
        row.set_version::<M>(row.version::<M>().max(record.version));
        let state = self.key_state(row, leaf, (K::borrow(key), hash))?;
        let pending = row.pending::<M>();
        let removed = pending.removed + usize::from(record.change.is_removed);
        if let Some((at, former)) = state.reference {
            let other = Position::of_word(row.position::<M>(at));
            let other = self.log.record(pool, other)?.map_or(0, |other| other.version);
            if record.version > other {
                let removed = removed.saturating_sub(usize::from(former.is_removed));
                row.replace::<M>(at, position.word(), Pending { removed, ..pending });
            }
            return Ok(());
        }
        if pending.count == REFERENCES {
            return Err(no_space(leaf));
        }
        let fresh = pending.fresh + usize::from(state.entry.is_none());
        row.add::<M>(tag_of(hash), position.word(), Pending { fresh, removed, ..pending });
        Ok(())
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
