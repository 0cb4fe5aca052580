//! Creating and opening an index.

use super::chain::fingerprint_of;
use super::chunk::{self, LogChunk};
use super::log::{AppendRequest, LeafLogs, ROOT_LINES, RecoveredLog, root_words};
use super::record::{Base, LEAF_MAX, Range, SEQUENCE_AGED, base_image, base_lines, delta};
use super::replay::{FIRST_LEAF, LeafChain, Replayed, leaves, replay_all};
use super::table::Table;
use super::tuning::Tuning;
use super::{BTreeLsR, BTreeLsRIndex};
use crate::index::{TreeError, find_root};
use crate::inner::{Inner, InnerNodes, SeparatedLeaf};
use crate::key::{self, Entry, Key};
use crate::leaf_table::Contents;
use crate::maintenance::Maintainers;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;
use std::collections::HashSet;
use std::sync::Arc;

/// The results of reading one chain.
struct Read {
    live: usize,
    /// Fingerprints of the base's items, then of the deltas.
    fingerprints: Vec<u8>,
    /// All entries whose key records the chain still needs.
    entries: Vec<Entry>,
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsRIndex<M, K, NODE, T> {
    /// The sequence number of a leaf's first base.
    pub(super) const FIRST_SEQUENCE: u64 = 1;
    const ROOT_BYTES: u64 = 8 * root_words::<T>() as u64;
    /// The lines of the longest record.
    const MAX_RECORD_LINES: usize = base_lines(Self::CAPACITY);

    /// Creates an empty index. Durable on return.
    ///
    /// ```text
    /// N root block |
    /// N C F first chunks |, W C F base of the first leaf |    crash before C: unreachable, free
    /// C root table entry                               -> durable
    /// ```
    pub(super) fn create_at(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let lines = chunk::lines(pool.usage().pool_bytes, Self::MAX_RECORD_LINES);
        let block = pool.reserve(Self::ROOT_BYTES)?;
        let mut image = vec![0; Self::ROOT_BYTES as usize];
        image[8 * ROOT_LINES..][..8].copy_from_slice(&(lines as u64).to_le_bytes());
        pool.medium().fill(pool.words(block, root_words::<T>())?, &image);
        let mut index = Self::assemble(pool, block, lines)?;
        let made = index.create_first_leaf(root);
        if made.is_err() {
            for at in index.log.chunks(T::log_of(FIRST_LEAF)) {
                index.pool.release(at, chunk::bytes(lines));
            }
            index.pool.release(block, Self::ROOT_BYTES);
        }
        made.map(|()| index)
    }

    fn create_first_leaf(&mut self, root: &str) -> Result<(), TreeError> {
        let pool = Arc::clone(&self.pool);
        let empty: [Entry; 0] = [];
        let first = if M::is_aged() { SEQUENCE_AGED } else { Self::FIRST_SEQUENCE };
        let image = base_image(FIRST_LEAF, first, Range::default(), empty.iter());
        let request = AppendRequest {
            log: T::log_of(FIRST_LEAF),
            image: &image,
            replaced: 0,
            is_gc_copy: false,
        };
        let at = match self.log.append(&pool, self.root_words()?, &request)? {
            Ok(at) => at,
            Err(error) => return Err(error.into_error()),
        };
        pool.create_root(root, BTreeLsR::<NODE, T>::kind::<K>(), self.root)?;
        let index = self.table.take::<M>(FIRST_LEAF);
        self.table.row(index).set_base::<M>(at, core::iter::empty(), first);
        self.log.add_leaf(FIRST_LEAF, index);
        let leaf = SeparatedLeaf { leaf: index as u64, ..SeparatedLeaf::default() };
        self.inner = Inner::build(&[leaf], K::EXACT)?;
        Ok(())
    }

    fn assemble(pool: Arc<Pool<M>>, root: PmPtr, lines: usize) -> Result<Self, PoolError> {
        Ok(Self {
            pool,
            root,
            inner: Inner::build(&[SeparatedLeaf::default()], K::EXACT)?,
            table: Table::new()?,
            log: LeafLogs::new(lines, Self::MAX_RECORD_LINES),
            maintainers: Maintainers::default(),
            next_leaf: AtomicU64::new(FIRST_LEAF + 1),
            key: PhantomData,
        })
    }

    /// Builds the mapping table and the inner nodes over `leaves`, and records in `known` the
    /// leaves and live lines of each log.
    fn build(
        &mut self,
        leaves: &[LeafChain<K>],
        reads: &[Read],
        known: &mut [RecoveredLog],
    ) -> Result<(), PoolError> {
        let mut separated = Vec::with_capacity(leaves.len());
        for (linked, read) in leaves.iter().zip(reads) {
            let index = self.table.take::<M>(linked.leaf);
            let row = self.table.row(index);
            let (of_items, of_deltas) = read.fingerprints.split_at(linked.items);
            row.set_base::<M>(linked.base, of_items.iter().copied(), linked.base_sequence);
            for (&at, &fingerprint) in linked.deltas.iter().zip(of_deltas) {
                row.push_delta::<M>(at, fingerprint, read.live);
            }
            let known = &mut known[T::log_of(linked.leaf)];
            known.live += row.size::<M>().lines();
            known.leaves.insert(linked.leaf, index);
            separated.push(SeparatedLeaf {
                prefix: K::prefix(K::borrow(&linked.low)),
                word: linked.word,
                leaf: index as u64,
            });
        }
        self.inner = Inner::build(&separated, K::EXACT)?;
        Ok(())
    }

    /// Opens an index: reads all logs in parallel, then builds the mapping table and the inner
    /// nodes. Takes time O(length of the logs) and reserves no block.
    ///
    /// ```text
    /// for each log whose reserve chunk was being filled:
    ///   C F its use |      crash before or after C: nothing in it is valid
    /// ```
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, BTreeLsR::<NODE, T>::kind::<K>())?;
        let lines = pool.medium().load(&pool.words(block, root_words::<T>())?[ROOT_LINES]);
        if !chunk::is_size(lines, Self::MAX_RECORD_LINES) {
            let (at, what) = (block.offset(), "lines of a chunk of the logs");
            return Err(Corrupt {
                at,
                what,
                expected: Self::MAX_RECORD_LINES as u64,
                found: lines,
            }
            .into());
        }
        let mut index = Self::assemble(pool, block, lines as usize)?;
        let mut replayed = replay_all::<M, T>(&index.pool, index.root_words()?, lines as usize)?;
        let leaves = leaves::<M, K, T>(&index.pool, &mut replayed, block)?;
        let threads = thread_count::<M>(index.pool.medium().len());
        let reads: Result<Vec<_>, _> =
            in_parallel(threads, &leaves, |linked| index.read_chain(linked)).into_iter().collect();
        let reads = reads?;
        let last = replayed.iter().map(|log| log.last_leaf).max().unwrap_or(FIRST_LEAF);
        if last > LEAF_MAX / 2 {
            let (at, what) = (block.offset(), "number of a leaf out of range");
            return Err(Corrupt { at, what, expected: LEAF_MAX / 2, found: last }.into());
        }
        index.next_leaf = AtomicU64::new(last + 1);
        index.claim_chunks(&replayed, lines as usize, opened)?;
        if opened == Opened::Crashed {
            index.pool.mark(block, Self::ROOT_BYTES)?;
            for (linked, read) in leaves.iter().zip(&reads) {
                key::mark::<K, M>(&index.pool, linked.word)?;
                read.entries.iter().try_for_each(|&at| key::mark_entry::<K, M>(&index.pool, at))?;
            }
            index.pool.finish_recovery();
        }
        let mut known: Vec<_> = (0..T::LOGS).map(|_| RecoveredLog::default()).collect();
        index.build(&leaves, &reads, &mut known)?;
        for (log, (known, replayed)) in known.into_iter().zip(replayed).enumerate() {
            let Replayed { mut ring, is_reserve_dirty, .. } = replayed;
            if let Some(&newest) = ring.chunks.last().filter(|_| is_reserve_dirty) {
                ring.newest += 1;
                let newest = LogChunk::open(&index.pool, newest, index.log.lines())?;
                newest.begin_use(index.pool.medium(), ring.newest);
            }
            index.log.resume(log, RecoveredLog { ring, ..known });
        }
        Ok(index)
    }

    /// Checks that each chunk belongs to one log only. After a crash, also marks it in the pool.
    fn claim_chunks(
        &self,
        replayed: &[Replayed],
        lines: usize,
        opened: Opened,
    ) -> Result<(), Corrupt> {
        let (pool, bytes) = (&self.pool, chunk::bytes(lines));
        let mut claimed = HashSet::new();
        for &at in replayed.iter().flat_map(|log| &log.ring.chunks) {
            if opened == Opened::Crashed {
                pool.mark(at, bytes)?;
            } else if !claimed.insert(at.offset()) || !pool.is_block(at, bytes) {
                let what = "chunk of two logs, or block of another size";
                return Err(Corrupt { at: at.offset(), what, expected: bytes, found: 0 });
            }
        }
        Ok(())
    }

    /// Reads the chain of a leaf and checks that it lies in the leaf's range.
    fn read_chain(&self, linked: &LeafChain<K>) -> Result<Read, Corrupt> {
        let pool = &*self.pool;
        if linked.items > Self::CAPACITY {
            return Err(too_many(linked.base, Self::CAPACITY, linked.items));
        }
        let base = Base::new(pool, linked.base, linked.items)?;
        let mut contents = Contents::<K>::read(pool, &base, core::iter::empty())?;
        let mut fingerprints: Vec<_> = contents.fingerprints().collect();
        for &at in &linked.deltas {
            let change = delta(pool, at)?;
            let key = K::read_entry(pool, change.entry)?;
            fingerprints.push(fingerprint_of::<K>(&key));
            contents.apply(key, change);
        }
        contents.check(linked.base, &linked.low, linked.high.as_ref())?;
        let live = contents.pairs.len();
        if live > Self::CAPACITY {
            return Err(too_many(linked.base, Self::CAPACITY, live));
        }
        Ok(Read { live, fingerprints, entries: contents.entries().collect() })
    }

    pub(super) fn root_block(&self) -> (PmPtr, u64) {
        (self.root, Self::ROOT_BYTES)
    }
}

#[cold]
fn too_many(base: PmPtr, expected: usize, found: usize) -> Corrupt {
    let (expected, found) = (expected as u64, found as u64);
    Corrupt { at: base.offset(), what: "too many keys in a leaf", expected, found }
}
