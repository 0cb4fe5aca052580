//! Creating, opening, recovering and closing an index.

use super::buffer::Buffers;
use super::layout::{self, LeafView};
use super::log::{self, LaneLogs, ROOT_WORDS};
use super::settle::{SettleOptions, settle};
use super::techniques::Techniques;
use super::{CclBTree, CclBTreeIndex, InnerFast};
use crate::index::{Design, TreeError, find_root};
use crate::inner::{InnerNodes, SeparatedLeaf};
use crate::key::{self, Key};
use crate::leaf_table::{EntryChange, check_range};
use crate::maintenance::Maintainers;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use std::sync::Arc;

const ROOT_BYTES: u64 = 8 * ROOT_WORDS as u64;

/// A leaf of the list, and its range.
pub(super) struct LinkedLeaf<K: Key> {
    pub(super) at: PmPtr,
    pub(super) word: u64,
    pub(super) low: K::Owned,
    pub(super) high: Option<K::Owned>,
}

/// A live log entry. `leaf` is the position of its leaf in the list.
struct LiveEntry<K: Key> {
    leaf: usize,
    stamp: u64,
    key: K::Owned,
    change: EntryChange,
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> CclBTreeIndex<M, K, BATCH, T> {
    /// Creates an empty index. Durable on return.
    ///
    /// ```text
    /// N first leaf, root block |    crash before C: both are unreachable and free
    /// C root table entry            -> durable
    /// ```
    pub(super) fn create_at(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let leaf = pool.reserve(layout::BYTES)?;
        let release_leaf = |_: &PoolError| pool.release(leaf, layout::BYTES);
        let block = pool.reserve(ROOT_BYTES).inspect_err(release_leaf)?;
        let stamp = if M::is_aged() { layout::STAMP_AGED } else { 0 };
        let first = layout::image(0, 0, stamp, &[]);
        pool.medium().fill(pool.words(leaf, layout::WORDS)?, &first);
        let mut image = vec![0; ROOT_BYTES as usize];
        image[..8].copy_from_slice(&leaf.offset().to_le_bytes());
        pool.medium().fill(pool.words(block, ROOT_WORDS)?, &image);
        pool.create_root(root, CclBTree::<BATCH, T>::SPEC.kind::<K>(), block)
            .inspect_err(release_leaf)
            .inspect_err(|_| pool.release(block, ROOT_BYTES))?;
        let mut index = Self::assemble(pool, block)?;
        index.build(&[LinkedLeaf { at: leaf, word: 0, low: K::least(), high: None }])?;
        Ok(index)
    }

    fn assemble(pool: Arc<Pool<M>>, root: PmPtr) -> Result<Self, PoolError> {
        Ok(Self {
            pool,
            root,
            inner: InnerFast::build(&[SeparatedLeaf::default()], K::EXACT)?,
            buffers: Buffers::new(BATCH)?,
            log: LaneLogs::new(),
            maintainers: Maintainers::default(),
            key: PhantomData,
        })
    }

    /// Builds empty buffers and inner nodes over `leaves`.
    fn build(&mut self, leaves: &[LinkedLeaf<K>]) -> Result<(), PoolError> {
        let separated = leaves.iter().map(|leaf| SeparatedLeaf {
            prefix: K::prefix(K::borrow(&leaf.low)),
            word: leaf.word,
            leaf: self.buffers.take::<M>(leaf.at) as u64,
        });
        self.inner = InnerFast::build(&separated.collect::<Vec<_>>(), K::EXACT)?;
        Ok(())
    }

    /// Opens an index: walks the list of leaves, replays the logs, and builds buffers and inner
    /// nodes. Takes time O(leaves + log entries). After a clean close there are no logs.
    ///
    /// ```text
    /// for each leaf with live log entries:
    ///   settle it, with the greatest stamp of its entries   crash: the next open replays the rest
    /// unlink all logs, F |                 -> the chunks are free
    /// ```
    pub(super) fn open_at(
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, CclBTree::<BATCH, T>::SPEC.kind::<K>())?;
        let mut index = Self::assemble(pool, block)?;
        let crashed = opened == Opened::Crashed;
        if crashed {
            index.pool.mark(block, ROOT_BYTES)?;
        }
        let leaves = index.walk(crashed)?;
        let chunks = index.replay(&leaves, crashed)?;
        if crashed {
            for leaf in &leaves {
                index.mark_entries(leaf)?;
            }
        }
        log::clear_all(index.pool.medium(), index.root_words()?);
        if crashed {
            index.pool.finish_recovery();
        }
        for (at, bytes) in chunks {
            // In a damaged pool two logs may share a chunk.
            if index.pool.is_block(at, bytes) {
                index.pool.release(at, bytes);
            }
        }
        index.build(&leaves)?;
        Ok(index)
    }

    /// Returns the leaves of the list. After a crash, marks each of them and its low key. The
    /// pool's size bounds the number of leaves, so the walk ends whatever the pool holds.
    pub(super) fn walk(&self, crashed: bool) -> Result<Vec<LinkedLeaf<K>>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let most = medium.len() / layout::BYTES;
        let mut leaves = Vec::<LinkedLeaf<K>>::new();
        let mut at = PmPtr::new(medium.load(&self.root_words()?[0]));
        loop {
            let leaf = self.leaf(at)?;
            layout::check_stamp(at, leaf.stamp(medium))?;
            let word = leaf.low(medium);
            let low = K::read(pool, word)?;
            let follows = match leaves.last_mut() {
                None => word == 0,
                Some(left) => {
                    left.high = Some(low.clone());
                    low > left.low
                }
            };
            if !follows || leaves.len() as u64 > most || !at.offset().is_multiple_of(layout::BYTES)
            {
                let what = "low key or offset of a leaf in the list";
                return Err(Corrupt { at: at.offset(), what, expected: 1, found: word });
            }
            if crashed {
                pool.mark(at, layout::BYTES)?;
                key::mark::<K, M>(pool, word)?;
            }
            leaves.push(LinkedLeaf { at, word, low, high: None });
            at = leaf.next(medium);
            if at.is_null() {
                return Ok(leaves);
            }
        }
    }

    /// Settles the live log entries into their leaves. Returns the chunks, which are marked after a
    /// crash.
    fn replay(
        &self,
        leaves: &[LinkedLeaf<K>],
        crashed: bool,
    ) -> Result<Vec<(PmPtr, u64)>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let root = self.root_words()?;
        let mut chunks = Vec::new();
        let mut live = Vec::<LiveEntry<K>>::new();
        for head in log::newest_chunks(medium, root) {
            for chunk in log::walk(pool, head) {
                let chunk = chunk?;
                if crashed {
                    pool.mark(chunk.at, chunk.bytes())?;
                }
                chunks.push((chunk.at, chunk.bytes()));
                for logged in chunk.read(medium) {
                    let key = K::read_entry(pool, logged.change.entry)?;
                    // The first leaf has the least low key.
                    let leaf = leaves.partition_point(|leaf| leaf.low <= key).saturating_sub(1);
                    let at = leaves[leaf].at;
                    if logged.stamp > self.leaf(at)?.stamp(medium) {
                        let stamp = layout::check_stamp(at, logged.stamp)?;
                        live.push(LiveEntry { leaf, stamp, key, change: logged.change });
                    }
                }
            }
        }
        live.sort_by_key(|entry| (entry.leaf, entry.stamp));
        for live in live.chunk_by(|a, b| a.leaf == b.leaf) {
            self.replay_leaf(&leaves[live[0].leaf], live)?;
        }
        Ok(chunks)
    }

    /// Settles the newest entry of each key. `live` holds the entries of one leaf in ascending
    /// order of stamps.
    fn replay_leaf(&self, linked: &LinkedLeaf<K>, live: &[LiveEntry<K>]) -> Result<(), Corrupt> {
        let mut newest = Vec::<(&K::Owned, EntryChange)>::new();
        for entry in live {
            match newest.iter_mut().find(|(other, _)| **other == entry.key) {
                Some((_, change)) => *change = entry.change,
                None => newest.push((&entry.key, entry.change)),
            }
        }
        let changes: Vec<_> = newest.into_iter().map(|(_, change)| change).collect();
        let stamp = live.last().map(|entry| entry.stamp);
        let options = SettleOptions { stamp, ..SettleOptions::default() };
        settle::<K, M>(&self.pool, &self.leaf(linked.at)?, &changes, options)
    }

    /// Marks the blocks that a leaf's entries own, and checks that the keys lie in its range.
    fn mark_entries(&self, linked: &LinkedLeaf<K>) -> Result<(), Corrupt> {
        let pairs = self.leaf(linked.at)?.sorted::<K, M>(&self.pool)?;
        check_range::<K>(linked.at, &pairs, &linked.low, linked.high.as_ref())?;
        pairs.iter().try_for_each(|(_, entry)| key::mark_entry::<K, M>(&self.pool, *entry))
    }

    /// Settles all buffers into their leaves and frees the logs. Durable on return.
    pub(super) fn settle_all(&self) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        for index in 0..self.buffers.end() {
            let node = self.node(index);
            if node.meta::<M>().count() > 0 {
                let leaf = LeafView::new(&self.pool, node.leaf::<M>())?;
                self.settle_buffer(&node, &leaf, None, &guard)?;
            }
        }
        Ok(self.log.retire_all(&self.pool, self.root_words()?)?)
    }

    pub(super) fn root_block(&self) -> (PmPtr, u64) {
        (self.root, ROOT_BYTES)
    }
}
