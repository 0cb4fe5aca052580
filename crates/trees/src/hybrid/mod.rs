//! The hybrid engine: leaves in persistent memory, inner nodes in DRAM (selective persistence, as
//! in FPTree).
//!
//! # Latch order
//!
//! 1. Leaves before inner nodes. A thread that holds a leaf's latch may wait for inner nodes.
//! 2. Leaves from left to right. A thread that holds a leaf's latch waits only for leaves further
//!    right.
//! 3. Inner nodes from the parent to its children, as `inner` says.
//! 4. Against this order a thread only tries: a thread that holds an inner node's latch try-latches
//!    leaves, and gives up if one is taken.
//! 5. A lock of a lock array (`InnerNodes::locks`) is the latch of a leaf. A split or merge of an
//!    inner node takes those of the leaves that move, as rules 1 and 2 say.
//!
//! So no two threads wait for each other, and no deadlock is possible.
//!
//! # Invariants
//!
//! 1. The leaves form a chain in key order, from the first leaf, which the root block names. The
//!    chain is the whole persistent state; recovery rebuilds the inner nodes from it. The first
//!    leaf is never merged away, but it may be replaced, or deleted under a micro-log, by a store
//!    to the root block.
//! 2. A leaf covers the keys from its low key up to the low key of its right neighbour. The low key
//!    of a leaf never changes, except that a leaf which becomes the first one under a micro-log
//!    gets the least. Entries outside this range are leftovers of a split or merge that a crash
//!    interrupted; recovery drops them.
//! 3. A thread changes a leaf only while it holds the leaf's latch, and releases the latch after
//!    its last fence. So no crash undoes a state that a reader has validated.
//! 4. Every operation pins an epoch, and a block that a reader may still read is retired, not
//!    released.
//!
//! # Modules
//!
//! | module | operations | latches |
//! | --- | --- | --- |
//! | `read` | lookups | none: it validates versions |
//! | `scan` | scans, which copy one leaf at a time | none: it validates versions |
//! | `write` | insert, update, upsert; split | the leaf, then the inner nodes above it |
//! | `replace` | replacing a full leaf | left neighbour, leaf, inner nodes |
//! | `merge_replace` | replacing two sparse leaves | left neighbour, both leaves, inner nodes |
//! | `micro_log` | split and delete under micro-logs; replay | left neighbour, leaf, inner nodes |
//! | `remove` | remove | the leaf |
//! | | merge | inner nodes; two leaves, by try-latch |
//! | `batch` | several changes at once | all their leaves, then the inner nodes above them |
//! | `bulk` | bulk load | the only leaf, then the inner node above it |
//! | `recover` | create, open, check | none: no other thread uses the index |
//! | `chain`, `links`, `line_set` | repairing the leaves; their order | none, for the same reason |
//! | `pairs` | the interface for the store | |
//!
//! # Root block
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | first leaf | commit | head of the chain |
//! | 8 | 8 | checkpoint | hint | inner nodes as a clean close saved them; else stale |
//! | 16 | 8 | checkpoint nonce | hint | nonce of the open that saved them |
//! | 24 | 8 | magic number | data | only with micro-logs |
//! | 64 | 1984 | micro-logs | | only with [`Restructuring::MicroLogged`]: see `micro_log` |

mod bulk;
mod chain;
mod line_set;
mod links;
mod merge_replace;
mod micro_log;
mod read;
mod recover;
mod remove;
mod replace;
mod scan;
mod write;

use crate::checkpoint;
use crate::fingerprint;
use crate::index::{Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::{InnerNodes, LeafRoute};
use crate::key::{Key, Value};
use crate::leaf::{Leaf, TaggedEntry};
use crate::node_latch::{HeldLatch, NodeLatch};
use crate::spec::Spec;
use crate::unique_words::{UniqueWords, UniqueWordsIndex};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Latch, OnMedium, Version};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::AtomicU64;
use std::sync::Arc;

/// The choices of a hybrid design.
pub trait HybridSpec: Send + Sync + 'static {
    /// The name, source, budget and features of the design.
    const SPEC: Spec;
    /// The layout of its leaves.
    type Leaf: Leaf;
    /// The inner nodes above its leaves.
    type Inner<M: Medium>: InnerNodes<M>;
    /// The way in which it splits leaves and frees them.
    const RESTRUCTURING: Restructuring = Restructuring::InPlace;
    /// `true` if a descent prefetches the leaf that it finds, and a scan the next one.
    const PREFETCHES: bool = true;
}

/// The way in which a hybrid design splits and frees leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restructuring {
    /// One new leaf takes the upper half of a full leaf, which is then cut; a full append-only leaf
    /// is replaced. A merge moves the entries of the right leaf into the left one.
    InPlace,
    /// As `InPlace`, but no leaf is merged: only an empty one is unlinked.
    Unlinking,
    /// Two new leaves replace a full leaf, and one new leaf replaces two sparse ones.
    Replacement,
    /// Micro-logs, as in FPTree: a new leaf takes half of a full one, and only an empty leaf is
    /// freed. The layout must have a [`Leaf::BITMAP`].
    MicroLogged,
}

const ROOT_WORDS: usize = 3;

/// An index of the hybrid engine, with the leaves that `S` chooses.
pub struct Hybrid<S: HybridSpec, M: Medium, K: Key> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    inner: S::Inner<M>,
    spec: PhantomData<fn() -> (S, K)>,
    micro_logs: micro_log::LogQueue,
}

/// A hybrid index for leaves that need distinct key words for distinct keys.
pub type UniqueWordsHybrid<S, M, K> = UniqueWordsIndex<Hybrid<S, M, UniqueWords<K>>, K>;

impl<S: HybridSpec, M: Medium, K: Key> fmt::Debug for Hybrid<S, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::SPEC.name).field("root", &self.root).finish_non_exhaustive()
    }
}

/// A leaf: the offset of its block, and the words of the block.
struct LeafRef<'a> {
    at: PmPtr,
    words: &'a [PmWord],
    /// The leaf's lock, if that lies in the node above it and the leaf was found there.
    lock: Option<&'a AtomicU64>,
}

/// A leaf and the guard of its latch.
type Latched<'a, M> = (LeafRef<'a>, HeldLatch<'a, M>);

/// The number of restarts of an operation because it reached an unlinked leaf. Each of them takes a
/// merge or replacement by another thread, so thousands mean that damage has marked the latch word
/// of a linked leaf as obsolete.
#[derive(Debug, Default)]
struct Restarts(u32);

impl Restarts {
    const LIMIT: u32 = 1 << 12;

    #[cold]
    fn count_unlinked(&mut self, leaf: PmPtr) -> Result<(), Corrupt> {
        self.0 += 1;
        if self.0 <= Self::LIMIT {
            std::thread::yield_now();
            return Ok(());
        }
        let (at, what) = (leaf.offset(), "restarts at a leaf that is linked but marked obsolete");
        Err(Corrupt { at, what, expected: u64::from(Self::LIMIT), found: u64::from(self.0) })
    }
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    const LEAF_BYTES: u64 = 8 * <S::Leaf as Leaf>::WORDS as u64;
    /// `true` if the latches of leaves lie in lock arrays of the inner nodes.
    const HAS_LOCKS: bool = <S::Inner<M> as InnerNodes<M>>::HAS_LOCKS;
    const ROOT_BYTES: u64 = match S::RESTRUCTURING {
        Restructuring::MicroLogged => micro_log::ROOT_BYTES,
        Restructuring::InPlace | Restructuring::Unlinking | Restructuring::Replacement => {
            8 * ROOT_WORDS as u64
        }
    };

    #[inline(always)]
    fn leaf(&self, at: PmPtr) -> Result<LeafRef<'_>, Corrupt> {
        Ok(LeafRef { at, words: self.pool.block(at, S::Leaf::WORDS)?, lock: None })
    }

    /// Returns the leaf at the end of `route`.
    #[inline(always)]
    fn leaf_on(&self, route: &LeafRoute) -> Result<LeafRef<'_>, Corrupt> {
        let (at, lock) = self.inner.leaf_and_lock(route);
        Ok(LeafRef { lock, ..self.leaf(at)? })
    }

    #[inline(always)]
    fn latch<'a>(&'a self, leaf: &LeafRef<'a>) -> Latch<NodeLatch<'a, M>> {
        match leaf.lock {
            Some(lock) if Self::HAS_LOCKS => NodeLatch::of(lock),
            _ => {
                let word = &leaf.words[S::Leaf::LATCH];
                OnMedium::latch(self.pool.medium(), word, self.pool.nonce()).map(NodeLatch::InNode)
            }
        }
    }

    /// Returns the version of a leaf as soon as no writer holds its latch, or `None` if the leaf is
    /// unlinked. Verifies a leaf that has a checksum before its first use after the open of the
    /// pool.
    #[inline(always)]
    fn read_version(&self, leaf: &LeafRef<'_>) -> Result<Option<Version>, Corrupt> {
        let latch = self.latch(leaf);
        match latch.read() {
            Some(version) if S::Leaf::HAS_CHECKSUM && latch.is_stale(version) => {
                self.verify_and_read_version(leaf)
            }
            version => Ok(version),
        }
    }

    #[cold]
    fn verify_and_read_version(&self, leaf: &LeafRef<'_>) -> Result<Option<Version>, Corrupt> {
        let latch = self.latch(leaf);
        loop {
            let Some(version) = latch.read() else { return Ok(None) };
            if !latch.is_stale(version) {
                return Ok(Some(version));
            }
            match self.verify_leaf(leaf) {
                Ok(()) => latch.adopt(version),
                // If a writer changed the leaf meanwhile, the checksum need not match: check again.
                Err(damage) if latch.validate(version) => return Err(damage),
                Err(_) => {}
            }
        }
    }

    /// Verifies a leaf and the two separators around it. If one of these is damaged, the descent
    /// may have led to the wrong leaf for the key.
    fn verify_leaf(&self, leaf: &LeafRef<'_>) -> Result<(), Corrupt> {
        S::Leaf::verify(self.pool.medium(), leaf.at.offset(), leaf.words)?;
        K::read(&self.pool, self.low(leaf))?;
        let next = self.next(leaf);
        if !next.is_null() {
            K::read(&self.pool, self.low(&self.leaf(next)?))?;
        }
        Ok(())
    }

    /// Checks that `key`, which was read through an entry of the leaf at `at`, has the entry's
    /// fingerprint. The leaf's checksum covers the fingerprint but not the record that holds the
    /// key. Inlined, this would make a scan hash keys before it needs to.
    #[inline(never)]
    fn check_fingerprint(at: PmPtr, tagged: TaggedEntry, key: K::Ref<'_>) -> Result<(), Corrupt> {
        if !S::Leaf::HAS_CHECKSUM {
            return Ok(());
        }
        let found = fingerprint::of(K::hash(key));
        if found == tagged.fingerprint {
            return Ok(());
        }
        let what = "fingerprint of the key of a leaf entry";
        let (expected, found) = (tagged.fingerprint.into(), found.into());
        Err(Corrupt { at: at.offset(), what, expected, found })
    }

    /// Prefetches a leaf, if the design does so outside of batches.
    #[inline(always)]
    fn prefetch(&self, leaf: &[PmWord]) {
        if S::PREFETCHES {
            self.pool.medium().prefetch(leaf);
        }
    }

    #[inline(always)]
    fn load(&self, word: &PmWord) -> u64 {
        self.pool.medium().load(word)
    }

    fn next(&self, leaf: &LeafRef<'_>) -> PmPtr {
        PmPtr::new(S::Leaf::decode_next(self.load(&leaf.words[S::Leaf::NEXT])))
    }

    fn low(&self, leaf: &LeafRef<'_>) -> u64 {
        self.load(&leaf.words[S::Leaf::LOW])
    }

    /// Counts a restart if `leaf` is unlinked. Any other restart is due to a writer and needs no
    /// limit.
    #[cold]
    fn count_restart(&self, restarts: &mut Restarts, leaf: PmPtr) -> Result<(), Corrupt> {
        if Self::HAS_LOCKS {
            return Ok(()); // its lock cannot mark it as unlinked
        }
        match self.latch(&self.leaf(leaf)?).read() {
            Some(_) => Ok(()),
            None => restarts.count_unlinked(leaf),
        }
    }

    #[inline(always)]
    fn write_plain(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        Ok(self.write(key, Value::plain(value), mode)?.map(|value| value.word))
    }

    fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, ROOT_WORDS)
    }
}

impl<S: HybridSpec, M: Medium, K: Key> PmIndex<M, K> for Hybrid<S, M, K> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        Self::create_at(pool, root)
    }
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        Self::open_at(pool, root, opened)
    }
    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }
    #[inline]
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        Ok(self.read(key)?.map(|value| value.word))
    }
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        assert_eq!(keys.len(), values.len(), "multi_get needs as many values as keys");
        self.read_many(keys, |at, value| {
            values[at] = value.map(|value| value.word);
        })
    }
    #[inline]
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write_plain(key, value, WriteMode::Insert)
    }
    #[inline]
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write_plain(key, value, WriteMode::Update)
    }
    #[inline]
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write_plain(key, value, WriteMode::Upsert)
    }
    #[inline]
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        Ok(self.remove_entry(key)?.map(|entry| entry.value))
    }
    fn bulk_load(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        self.load_pairs(pairs, fill_percent)
    }
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        self.walk_pairs(bounds, order, &mut |key, value| visit(key, value.word))
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.check_all()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        checkpoint::save::<K, M>(&self.pool, &self.inner, &self.root_words()?[1..])?;
        Ok(self.pool)
    }
}

#[cfg(test)]
mod tests;
