//! The engine of the designs that keep every node in persistent memory.
//!
//! A design chooses the layouts of its leaves and inner nodes, and the protocol that changes
//! several nodes as one. The engine supplies the rest of the tree: one descent for readers and
//! writers, splits and merges, scans, and recovery.
//!
//! The root block:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | geometry | data | magic number, bytes of a node, 1 if nodes have logs |
//! | 8 | 8 | root | commit | offset of the root node, with its level in the low bits |
//! | 16 | 8 | latch | transient | version of the root word |
//! | 64 | - | logs | - | the protocol's logs, if it has any; the root block's, if nodes have logs |
//!
//! 1. Every key of a node lies in the range that the separators above the node give. A leaf's link
//!    points to the next leaf in key order. A separator is the least key that its child may hold.
//! 2. A thread that changes a node holds its latch and releases it after the last fence. So
//!    everything that a validated read returned is durable.
//! 3. A thread takes a latch only at the version under which it read the node, and waits for no
//!    latch of a node while it holds another one. So no deadlock is possible, and what was read is
//!    still true.
//! 4. A structure modification changes a node, at most one sibling, and their parent in one
//!    transaction. The parent has space for a new child, because a full parent is split first. It
//!    can lose a child, because a parent without a spare separator is merged or refilled first.
//!    Some designs instead split all full nodes of a path in the transaction of the insert.
//! 5. An inner node other than the root has at least one separator. Entries leave a leaf in two
//!    ways only: a split moves them to a new right neighbour, and a merge moves them to the left
//!    neighbour and makes their old leaf obsolete.
//! 6. The node that stores a separator owns it. When the separator moves to another node, so does
//!    its ownership.
//! 7. An unlinked node or key record is retired, not freed: a pinned thread may still read it.

mod bulk;
mod copy_on_write;
mod copy_split;
mod descend;
mod grouped;
mod grow;
mod insert;
mod leaf_update;
mod locks;
mod lookup;
mod mend;
mod merge;
mod node_wal;
mod protocol;
mod reader_counts;
mod remove;
mod replacement;
mod scan;
mod split;
mod structure;
mod wal;
mod walk;
mod words;

pub use copy_on_write::CopyOnWrite;
pub use grouped::Grouped;
pub use leaf_update::{FailureAtomic, LeafUpdate, LoggedInPlace};
pub use node_wal::NodeWal;
pub use protocol::{Protocol, Redo, Undo, Volatile};
pub use replacement::Replacement;
pub use wal::Wal;
pub use words::Words;

use crate::index::{Design, Order, PmIndex, TreeError, TreeStats, WriteMode, find_root};
use crate::key::Key;
use crate::node::{LEVEL_MAX, Layout, Ordered, View};
use crate::unique_words::{UniqueWords, UniqueWordsIndex};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use locks::LockArrays;
use node_wal::LOG;
use reader_counts::ReaderCounts;
use std::sync::Arc;
use structure::{Structure, reserve_within};

/// The components that a design on this engine chooses.
pub trait AllPmSpec: Design + Sized {
    /// The layout of a leaf.
    type Leaf: Layout;
    /// The layout of an inner node: separators in key order, and children.
    type Inner: Ordered;
    /// The way in which a leaf gains an entry, loses one, or splits.
    type LeafUpdate: LeafUpdate<Self>;
    /// The protocol that changes several nodes as one.
    type Protocol: Protocol;

    /// `true` if an insert into a full leaf is one transaction with all of its splits. Else each
    /// level splits in a transaction of its own, and the insert follows.
    const INSERTS_WITH_SPLITS: bool = false;
    /// `true` if a split of a leaf flushes every line of the left half too, also those that it does
    /// not change.
    const FLUSHES_LEFT_HALF: bool = false;
    /// `true` if the latches of nodes lie in lock arrays of their parents.
    const HAS_LOCKS: bool = false;
    /// `true` if a search of a node locks out writers of the node.
    const COUNTS_READERS: bool = false;
    /// The number of words of a leaf, from the first on, that a descent prefetches; 0 for none.
    const LEAF_PREFETCH_WORDS: usize = 0;
    /// The number of words of an inner node, from the first on, that a descent prefetches; 0 for
    /// none.
    const INNER_PREFETCH_WORDS: usize = 0;
}

/// A tree of design `S` with every node in persistent memory.
pub struct AllPm<M, K, S: AllPmSpec> {
    pool: Arc<Pool<M>>,
    anchor: PmPtr,
    protocol: S::Protocol,
    /// The lock arrays, if the design has them.
    locks: Option<LockArrays>,
    /// The numbers of readers, if the design counts them.
    readers: Option<ReaderCounts>,
    design: PhantomData<fn() -> (K, S)>,
}

/// An [`AllPm`] tree for leaves that tell entries apart by their key words.
pub type UniqueWordsAllPm<M, K, S> = UniqueWordsIndex<AllPm<M, UniqueWords<K>, S>, K>;

impl<M, K, S: AllPmSpec> fmt::Debug for AllPm<M, K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllPm").field("anchor", &self.anchor).finish_non_exhaustive()
    }
}

/// The number of words in the root block's first line.
const ANCHOR_WORDS: usize = 8;
const ANCHOR_LINE_BYTES: u64 = 8 * ANCHOR_WORDS as u64;
const GEOMETRY: usize = 0;
const ROOT: usize = 1;
const ANCHOR_LATCH: usize = 2;
/// The ASCII codes of "unifor", in bits 16 to 63 of the geometry word.
const MAGIC: u64 = 0x756e_6966_6f72 << 16;
/// The bits of the root word that hold the level. They are free because blocks lie at multiples of
/// 64 bytes.
const LEVEL_MASK: u64 = 63;

const _: () = assert!(LEVEL_MAX <= LEVEL_MASK);

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    const NODE_BYTES: u64 = S::Leaf::BYTES as u64;
    const OFFSET_MAX: u64 = if S::Leaf::OFFSET_MAX < S::Inner::OFFSET_MAX {
        S::Leaf::OFFSET_MAX
    } else {
        S::Inner::OFFSET_MAX
    };
    const SIZES_AGREE: () = assert!(
        S::Leaf::BYTES == S::Inner::BYTES
            && S::Leaf::BYTES == S::SPEC.node_bytes
            && S::Leaf::BYTES < 1 << 16
    );
    const LOGS_HAVE_A_WORD: () = assert!(
        !S::Protocol::HAS_NODE_LOGS || S::Inner::ENTRIES.word(0) > LOG && !S::INSERTS_WITH_SPLITS
    );
    const GEOMETRY_WORD: u64 = MAGIC | Self::NODE_BYTES | S::Protocol::HAS_NODE_LOGS as u64;

    fn medium(&self) -> &M {
        self.pool.medium()
    }

    /// Returns the size of the root block in bytes.
    fn anchor_bytes() -> u64 {
        ANCHOR_LINE_BYTES + S::Protocol::log_bytes(Self::NODE_BYTES)
    }

    /// Returns the size of the log of a node in bytes; 0 if nodes have none.
    fn node_log_bytes() -> u64 {
        if S::Protocol::HAS_NODE_LOGS { S::Protocol::log_bytes(Self::NODE_BYTES) } else { 0 }
    }

    /// Returns the root block's first line.
    #[inline(always)]
    fn anchor(&self) -> Result<View<'_, M>, Corrupt> {
        anchor_view(&self.pool, self.anchor)
    }

    /// Returns the tree without its design.
    fn structure(&self) -> &dyn Structure<M, K> {
        self
    }

    /// Returns the node at `at` without checking its contents.
    #[inline(always)]
    fn node(&self, at: PmPtr) -> Result<View<'_, M>, Corrupt> {
        Self::node_at(&self.pool, at)
    }

    #[inline(always)]
    fn node_at(pool: &Pool<M>, at: PmPtr) -> Result<View<'_, M>, Corrupt> {
        Ok(View::new(pool.medium(), pool.block(at, S::Leaf::BYTES / 8)?))
    }

    /// Reserves the root block and an empty leaf, and enters the root block in the pool's root
    /// table.
    ///
    /// ```text
    /// N root block, leaf |      crash before C: nothing points to them
    /// C root entry              as Pool::create_root
    /// ```
    fn build(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        const { Self::SIZES_AGREE };
        const { Self::LOGS_HAVE_A_WORD };
        let bytes = Self::anchor_bytes();
        let anchor = pool.reserve(bytes)?;
        let leaf = reserve_within(&pool, Self::NODE_BYTES, Self::OFFSET_MAX)
            .inspect_err(|_| pool.release(anchor, bytes))?;
        S::Protocol::fill(Self::node_at(&pool, leaf)?, &S::Leaf::encode(0, 0, &[]));
        let mut block = vec![0; bytes as usize];
        let words = [Self::GEOMETRY_WORD, root_word(leaf, 0)];
        for (bytes, word) in block.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        pool.medium().fill(pool.words(anchor, bytes as usize / 8)?, &block);
        pool.create_root(root, S::SPEC.kind::<K>(), anchor).inspect_err(|_| {
            pool.release(leaf, Self::NODE_BYTES);
            pool.release(anchor, bytes);
        })?;
        Self::over(pool, anchor)
    }

    /// Returns the tree whose root block is at `anchor`.
    fn over(pool: Arc<Pool<M>>, anchor: PmPtr) -> Result<Self, TreeError> {
        let logs = PmPtr::new(anchor.offset() + ANCHOR_LINE_BYTES);
        let protocol = S::Protocol::open(&pool, logs, Self::NODE_BYTES)?;
        let locks = if S::HAS_LOCKS { Some(LockArrays::new(Self::NODE_BYTES)?) } else { None };
        let readers =
            if S::COUNTS_READERS { Some(ReaderCounts::new(Self::NODE_BYTES)?) } else { None };
        Ok(Self { pool, anchor, protocol, locks, readers, design: PhantomData })
    }

    /// Finds the root block and checks that it belongs to this design and node size.
    fn find(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, S::SPEC.kind::<K>())?;
        let anchor = anchor_view(&pool, block)?;
        let (expected, geometry) = (Self::GEOMETRY_WORD, anchor.load(GEOMETRY));
        if geometry != expected {
            let what = "geometry of the tree";
            return Err(anchor.corrupt(GEOMETRY, what, expected, geometry).into());
        }
        Self::over(pool, block)
    }
}

/// Returns the first line of the root block at `at`.
#[inline(always)]
fn anchor_view<M: Medium>(pool: &Pool<M>, at: PmPtr) -> Result<View<'_, M>, Corrupt> {
    Ok(View::new(pool.medium(), pool.words(at, ANCHOR_WORDS)?))
}

/// Returns the root node and its level.
///
/// # Errors
/// The level exceeds [`LEVEL_MAX`].
#[inline(always)]
fn read_root<M: Medium>(anchor: View<'_, M>) -> Result<(PmPtr, u64), Corrupt> {
    let word = anchor.load(ROOT);
    let level = word & LEVEL_MASK;
    if level > LEVEL_MAX {
        return Err(anchor.corrupt(ROOT, "level of the root", LEVEL_MAX, level));
    }
    Ok((PmPtr::new(word & !LEVEL_MASK), level))
}

/// Returns the root word for a root node at `at` on `level`.
fn root_word(at: PmPtr, level: u64) -> u64 {
    debug_assert!(at.offset() & LEVEL_MASK == 0 && level <= LEVEL_MAX);
    at.offset() | level
}

/// Returns the word that holds the root pointer, for use in a transaction.
fn root_cell<M: Medium>(anchor: View<'_, M>) -> &PmWord {
    anchor.word(ROOT)
}

impl<M: Medium, K: Key, S: AllPmSpec> PmIndex<M, K> for AllPm<M, K, S> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        Self::build(pool, root)
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let tree = Self::find(pool, root)?;
        S::Protocol::check_reopenable(S::SPEC.name)?;
        if opened == Opened::Crashed {
            S::LeafUpdate::mend(&tree)?;
            tree.structure().recover()?;
        }
        Ok(tree)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.lookup(key)
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        self.lookup_many(keys, values)
    }

    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, WriteMode::Insert)
    }

    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.replace(key, value)
    }

    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, WriteMode::Upsert)
    }

    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.remove_entry(key)
    }

    fn bulk_load(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        self.structure().load(pairs, fill_percent)
    }

    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        match order {
            Order::Ascending => self.structure().ascend(bounds.0, bounds.1, visit),
            Order::Descending => self.structure().descend_from(bounds.1, bounds.0, visit),
        }
    }

    fn check(&self) -> Result<TreeStats, TreeError> {
        self.structure().collect_stats()
    }

    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}

#[cfg(test)]
mod tests;
