//! Creating and opening an index.

use super::chain::FoldedChain;
use super::log::{
    AppendedRecord, CircularLogs, NotAppended, ROOT_LINES, RecoveredBuffer, root_words,
};
use super::record::{BaseOrigin, LEAF_MAX, LeafRange, POSITION_MAX, base_image, base_lines};
use super::replay::{FIRST_LEAF, ReplayedLeaf, ReplayedLog, leaves, replay_all};
use super::segment;
use super::table::ChainTable;
use super::tuning::LsOptions;
use super::{BTreeLs, BTreeLsIndex};
use crate::index::{TreeError, find_root};
use crate::inner::{Inner, InnerNodes, SeparatedLeaf};
use crate::key::{self, Entry, Key};
use crate::maintenance::Maintainers;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;
use std::collections::HashSet;
use std::sync::Arc;

/// The first lap of a log in a pool that [is aged](Medium::is_aged), times the lines of a segment.
const POSITION_AGED: u64 = POSITION_MAX - (1 << 20);

/// The results of reading one chain.
struct ReadChain {
    live: usize,
    /// All entries whose key records the chain still needs.
    entries: Vec<Entry>,
}

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> BTreeLsIndex<M, K, NODE, T> {
    const ROOT_BYTES: u64 = 8 * root_words::<T>() as u64;
    /// The lines of the longest record.
    const MAX_RECORD_LINES: usize = base_lines(Self::CAPACITY);

    /// Creates an empty index. Durable on return.
    ///
    /// ```text
    /// N root block |
    /// N C F first segments |, W C F base of the first leaf |    crash before C: unreachable, free
    /// C root table entry                               -> durable
    /// ```
    pub(super) fn create_at(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let lines = segment::lines(pool.usage().pool_bytes, Self::MAX_RECORD_LINES);
        let block = pool.reserve(Self::ROOT_BYTES)?;
        let mut image = vec![0; Self::ROOT_BYTES as usize];
        image[8 * ROOT_LINES..][..8].copy_from_slice(&(lines as u64).to_le_bytes());
        pool.medium().fill(pool.words(block, root_words::<T>())?, &image);
        let mut index = Self::assemble(pool, block, lines)?;
        let made = index.create_first_leaf(root);
        if made.is_err() {
            for at in index.log.segments(T::log_of(FIRST_LEAF)) {
                index.pool.release(at, segment::bytes(lines));
            }
            index.pool.release(block, Self::ROOT_BYTES);
        }
        made.map(|()| index)
    }

    fn create_first_leaf(&mut self, root: &str) -> Result<(), TreeError> {
        let pool = Arc::clone(&self.pool);
        let empty: [Entry; 0] = [];
        let image = base_image(FIRST_LEAF, BaseOrigin::COUNTS, LeafRange::default(), empty.iter());
        let log = T::log_of(FIRST_LEAF);
        let request = AppendedRecord { log, image: &image, replaced: 0, is_gc_copy: false };
        let at = match self.log.append(&pool, self.root_words()?, &request)? {
            Ok(at) => at,
            Err(NotAppended::Full(full) | NotAppended::NeedsCollection(Some(full))) => {
                return Err(full.into());
            }
            Err(NotAppended::NeedsCollection(None)) => return Err(PoolError::Recovering.into()),
        };
        pool.create_root(root, BTreeLs::<NODE, T>::kind::<K>(), self.root)?;
        let index = self.table.take();
        self.table.row(index).set_base::<M>(FIRST_LEAF, at, 0, None);
        self.log.add_leaf(FIRST_LEAF, index);
        let leaf = SeparatedLeaf { leaf: index as u64, ..SeparatedLeaf::default() };
        self.inner = Inner::build(&[leaf], K::EXACT)?;
        Ok(())
    }

    fn assemble(pool: Arc<Pool<M>>, root: PmPtr, lines: usize) -> Result<Self, PoolError> {
        let lap = if M::is_aged() { POSITION_AGED / lines as u64 } else { 1 };
        Ok(Self {
            pool,
            root,
            inner: Inner::build(&[SeparatedLeaf::default()], K::EXACT)?,
            table: ChainTable::new()?,
            log: CircularLogs::new(lines, Self::MAX_RECORD_LINES, lap),
            maintainers: Maintainers::default(),
            next_leaf: AtomicU64::new(FIRST_LEAF + 1),
            key: PhantomData,
        })
    }

    /// Builds the mapping table and the inner nodes over `leaves`, and records in `known` the
    /// leaves and live lines of each log.
    fn build(
        &mut self,
        leaves: &[ReplayedLeaf<K>],
        reads: &[ReadChain],
        known: &mut [RecoveredBuffer],
    ) -> Result<(), PoolError> {
        let mut separated = Vec::with_capacity(leaves.len());
        for (linked, read) in leaves.iter().zip(reads) {
            let index = self.table.take();
            let row = self.table.row(index);
            row.set_base::<M>(linked.leaf, linked.base, linked.items, linked.after);
            for &at in &linked.deltas {
                row.push_delta::<M, T>(at, read.live);
            }
            let of_leaf = &mut known[T::log_of(linked.leaf)];
            of_leaf.live += row.size::<M>().lines;
            of_leaf.leaves.insert(linked.leaf, index);
            if let Some(after) = linked.after {
                let of_end = &mut known[T::log_of(after)];
                let bases = of_end.ended.entry(after).or_insert(0);
                of_end.live += usize::from(*bases == 0);
                *bases += 1;
            }
            separated.push(SeparatedLeaf {
                prefix: K::prefix(K::borrow(&linked.low)),
                word: linked.range.low,
                leaf: index as u64,
            });
        }
        self.inner = Inner::build(&separated, K::EXACT)?;
        Ok(())
    }

    /// Opens an index: reads all logs in parallel, then builds the mapping table and the inner
    /// nodes. Writes nothing, reserves no block, and takes time O(length of the logs).
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, BTreeLs::<NODE, T>::kind::<K>())?;
        let lines = pool.medium().load(&pool.words(block, root_words::<T>())?[ROOT_LINES]);
        if !segment::is_size(lines, Self::MAX_RECORD_LINES) {
            let expected = Self::MAX_RECORD_LINES as u64;
            return Err(damaged(block, "lines of a segment of the logs", expected, lines).into());
        }
        let mut index = Self::assemble(pool, block, lines as usize)?;
        let replayed = replay_all::<M, T>(&index.pool, index.root_words()?, lines as usize)?;
        let leaves = leaves::<M, K, T>(&index.pool, &replayed, block)?;
        let threads = thread_count::<M>(index.pool.medium().len());
        let reads: Result<Vec<_>, _> =
            in_parallel(threads, &leaves, |linked| index.read_chain(linked)).into_iter().collect();
        let reads = reads?;
        let mut last = replayed.iter().map(|log| log.last_leaf).max().unwrap_or(FIRST_LEAF);
        if M::INJECTS_DEFECTS && index.pool.medium().injects(Defect::LsLeafReused) {
            last = leaves.iter().map(|leaf| leaf.leaf).max().unwrap_or(FIRST_LEAF);
        }
        if last > LEAF_MAX / 2 {
            return Err(damaged(block, "number of a leaf out of range", LEAF_MAX / 2, last).into());
        }
        index.next_leaf = AtomicU64::new(last + 1);
        index.claim_segments(&replayed, opened)?;
        if opened == Opened::Crashed {
            index.pool.mark(block, Self::ROOT_BYTES)?;
            for (linked, read) in leaves.iter().zip(&reads) {
                key::mark::<K, M>(&index.pool, linked.range.low)?;
                read.entries.iter().try_for_each(|&at| key::mark_entry::<K, M>(&index.pool, at))?;
            }
            index.pool.finish_recovery();
        }
        let mut known: Vec<_> = (0..T::LOGS).map(|_| RecoveredBuffer::default()).collect();
        index.build(&leaves, &reads, &mut known)?;
        for (log, (known, replayed)) in known.into_iter().zip(replayed).enumerate() {
            let mut ring = replayed.ring;
            if ring.lap == 0 {
                ring.lap = index.log.last_lap(log);
            }
            index.log.resume(log, RecoveredBuffer { ring, ..known });
        }
        Ok(index)
    }

    /// Checks that each segment belongs to one log only. After a crash, also marks it in the pool.
    fn claim_segments(&self, replayed: &[ReplayedLog], opened: Opened) -> Result<(), Corrupt> {
        let (pool, bytes) = (&self.pool, segment::bytes(self.log.lines));
        let mut claimed = HashSet::new();
        for at in replayed.iter().flat_map(|log| &log.ring.linked).copied() {
            if opened == Opened::Crashed {
                pool.mark(at, bytes)?;
            } else if !claimed.insert(at.offset()) || !pool.is_block(at, bytes) {
                return Err(damaged(at, "segment of two logs, or block of another size", bytes, 0));
            }
        }
        Ok(())
    }

    /// Reads the chain of a leaf and checks that it lies in the leaf's range.
    fn read_chain(&self, linked: &ReplayedLeaf<K>) -> Result<ReadChain, Corrupt> {
        let items = linked.items + linked.deltas.len();
        if items > Self::CAPACITY {
            let what = "too many items on the chain of a leaf";
            return Err(damaged(linked.base, what, Self::CAPACITY as u64, items as u64));
        }
        let FoldedChain { contents, .. } = FoldedChain::<K>::read(&self.pool, linked.head())?;
        contents.check(linked.base, &linked.low, linked.high.as_ref())?;
        Ok(ReadChain { live: contents.pairs.len(), entries: contents.entries().collect() })
    }

    pub(super) fn root_block(&self) -> (PmPtr, u64) {
        (self.root, Self::ROOT_BYTES)
    }
}

#[cold]
fn damaged(at: PmPtr, what: &'static str, expected: u64, found: u64) -> Corrupt {
    Corrupt { at: at.offset(), what, expected, found }
}
