//! The hybrid engine: leaves in persistent memory, inner nodes in DRAM (selective persistence).
//!
//! 1. Leaves form a chain in key order, from the first leaf, which the root block names. It is never
//!    merged away, but may be replaced as others are, by a store to the link that leads to it. The
//!    chain is the whole persistent state; the inner nodes are rebuilt from it.
//! 2. A leaf's low key never changes. Its range ends where the low key of its right neighbour begins.
//! 3. A leaf changes only while its latch is held, and the latch is released after the last fence:
//!    what a reader has validated, no crash undoes.
//! 4. Whoever holds a leaf's latch may take latches of inner nodes; whoever holds an inner node's
//!    only tries for leaves. Leaves are waited for from left to right. So nobody waits in a circle.
//! 5. Blocks that a reader may still hold are retired, and every operation pins an epoch.
//!
//! The root block:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | first leaf | commit | head of the chain |
//! | 8 | 8 | image | hint | inner nodes as a clean close saved them; else stale |
//! | 16 | 8 | image generation | hint | generation of the pool that saved it |

mod chain;
mod image;
mod links;
mod pairs;
mod read;
mod recover;
mod remove;
mod replace;
mod scan;
mod write;

use crate::fingerprint;
use crate::index::{Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::Inner;
use crate::key::{Key, Value};
use crate::leaf::{Leaf, TaggedEntry};
use crate::spec::Spec;
use crate::unique_words::{UniqueWords, UniqueWordsIndex};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Exclusive, Latch, OnMedium, Version};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// What a hybrid design chooses.
pub trait HybridSpec: Send + Sync + 'static {
    /// What it says of itself.
    const SPEC: Spec;
    /// Its leaves.
    type Leaf: Leaf;
}

const ROOT_WORDS: usize = 3;
const ROOT_BYTES: u64 = 8 * ROOT_WORDS as u64;

/// A hybrid index.
pub struct Hybrid<S: HybridSpec, M: Medium, K: Key> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    inner: Inner<M>,
    spec: PhantomData<fn() -> (S, K)>,
}

/// A hybrid index for leaves in which words differ where keys do.
pub type UniqueWordsHybrid<S, M, K> = UniqueWordsIndex<Hybrid<S, M, UniqueWords<K>>, K>;

impl<S: HybridSpec, M: Medium, K: Key> fmt::Debug for Hybrid<S, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::SPEC.name).field("root", &self.root).finish_non_exhaustive()
    }
}

/// A leaf: its place and its words.
struct LeafRef<'a> {
    at: PmPtr,
    words: &'a [PmWord],
}

/// A leaf and its latch.
type Latched<'a, M> = (LeafRef<'a>, Exclusive<OnMedium<'a, M>>);

/// How often an operation has come to an unlinked leaf and started again. Each time takes a merge
/// that happened meanwhile, so very many mean that a linked leaf's latch word is damaged.
#[derive(Debug, Default)]
struct Restarts(u32);

impl Restarts {
    const MOST: u32 = 1 << 12;

    #[cold]
    fn at(&mut self, leaf: PmPtr) -> Result<(), Corrupt> {
        self.0 += 1;
        if self.0 <= Self::MOST {
            std::thread::yield_now();
            return Ok(());
        }
        let (at, what) = (leaf.offset(), "the latch of a linked leaf says that it is not");
        Err(Corrupt { at, what, expected: u64::from(Self::MOST), found: u64::from(self.0) })
    }
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    const LEAF_BYTES: u64 = 8 * <S::Leaf as Leaf>::WORDS as u64;

    #[inline(always)]
    fn leaf(&self, at: PmPtr) -> Result<LeafRef<'_>, Corrupt> {
        Ok(LeafRef { at, words: self.pool.block(at, S::Leaf::WORDS)? })
    }

    #[inline(always)]
    fn latch<'a>(&'a self, leaf: &LeafRef<'a>) -> Latch<OnMedium<'a, M>> {
        let word = &leaf.words[S::Leaf::LATCH];
        OnMedium::latch(self.pool.medium(), word, self.pool.generation())
    }

    /// The version of a leaf, once no writer holds it; `None` if it is unlinked. A leaf with a sum is
    /// verified by the first who comes to it in this generation of the pool.
    #[inline(always)]
    fn enter(&self, leaf: &LeafRef<'_>) -> Result<Option<Version>, Corrupt> {
        let latch = self.latch(leaf);
        match latch.read() {
            Some(seen) if S::Leaf::HAS_CHECKSUM && latch.is_stale(seen) => self.enter_first(leaf),
            seen => Ok(seen),
        }
    }

    #[cold]
    fn enter_first(&self, leaf: &LeafRef<'_>) -> Result<Option<Version>, Corrupt> {
        let latch = self.latch(leaf);
        loop {
            let Some(seen) = latch.read() else { return Ok(None) };
            if !latch.is_stale(seen) {
                return Ok(Some(seen));
            }
            match self.verify_leaf(leaf) {
                Ok(()) => latch.adopt(seen),
                // Unless a writer came between, that was what the leaf holds.
                Err(damage) if latch.validate(seen) => return Err(damage),
                Err(_) => {}
            }
        }
    }

    /// Verifies a leaf, and the two separators that lead to it: with one of them damaged it may be the wrong
    /// leaf for the key that led here.
    fn verify_leaf(&self, leaf: &LeafRef<'_>) -> Result<(), Corrupt> {
        S::Leaf::verify(self.pool.medium(), leaf.at.offset(), leaf.words)?;
        K::read(&self.pool, self.low(leaf))?;
        let next = self.next(leaf);
        if !next.is_null() {
            K::read(&self.pool, self.low(&self.leaf(next)?))?;
        }
        Ok(())
    }

    /// Whether `key`, which was read of an entry of the leaf at `at`, is what the entry was made for. The sum
    /// of a leaf takes in the fingerprint, and not the record. Not inlined, or a scan would hash keys before it
    /// needs to.
    #[inline(never)]
    fn check_fingerprint(at: PmPtr, held: TaggedEntry, key: K::Ref<'_>) -> Result<(), Corrupt> {
        if !S::Leaf::HAS_CHECKSUM {
            return Ok(());
        }
        let found = fingerprint::of(K::hash(key));
        if found == held.fingerprint {
            return Ok(());
        }
        let what = "an entry of a leaf, whose key has another fingerprint";
        let (expected, found) = (held.fingerprint.into(), found.into());
        Err(Corrupt { at: at.offset(), what, expected, found })
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

    /// Counts a restart if it was for `leaf` being unlinked; any other is a writer's doing.
    #[cold]
    fn count_restart(&self, restarts: &mut Restarts, leaf: PmPtr) -> Result<(), Corrupt> {
        match self.latch(&self.leaf(leaf)?).read() {
            Some(_) => Ok(()),
            None => restarts.at(leaf),
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
        assert_eq!(keys.len(), values.len(), "multi_get needs a place for each value");
        self.read_many(keys, &mut |at, value: Option<Value>| {
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
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        self.walk_pairs(bounds, order, &mut |key, value| visit(key, value.word))
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.census()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.save_image()?;
        Ok(self.pool)
    }
}

#[cfg(test)]
mod tests;
