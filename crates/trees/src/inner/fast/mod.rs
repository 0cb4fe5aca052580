//! Inner nodes of the FAST & FAIR kind, in DRAM: sorted pairs that shift word by word without a
//! flush, and a link to the right neighbour on the level.
//!
//! 1. A node covers the keys from its low key up to that of its sibling. So the nodes of a level,
//!    from sibling to sibling, cover all keys, and a separator above is a shortcut: a descent that
//!    finds its key beyond a node follows the link.
//! 2. A split (FAIR) links the new sibling, cuts the full node, and inserts. Then the thread
//!    releases the latch and posts the separator above. So it holds one latch at a time.
//! 3. The root has no sibling while its latch is free: a thread that splits it holds the latch
//!    until the new root is stored. So each level of a separator to post exists.
//! 4. The root gives way to its single child only if that has no sibling.
//! 5. The low key of a node grows if its leftmost child is removed, and never shrinks. A reader
//!    beside the node sees it at one version.
//! 6. Versions protect readers, as `inner` says. Single descents prefetch nothing.

mod change;
mod node;
mod unlink;

use super::levels::{Covering, Levels};
use super::node::{DramView, NodeView, SeparatorWords, load, store};
use super::nodes::{InnerNodes, SeparatedChild, SeparatedLeaf};
use super::{Arena, BATCH, Direction, LeafRoute, Restart};
use crate::key::Key;
use crate::spec::NodeSearch;
use bristlecone_pmem::sync::{LatchWord, OnDram};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;
use node::FastNode;

/// The inner nodes of an index whose leaves are on a medium of type `M`: nodes of `WORDS` words
/// with pairs of `PAIR` words.
#[derive(Debug)]
pub struct FastNodes<M, const WORDS: usize, const PAIR: usize> {
    nodes: Arena<WORDS>,
    /// The words of the keys of each node's pairs, in blocks beside the nodes; `None` if prefixes
    /// decide.
    key_words: Option<Arena<WORDS>>,
    root: AtomicU64,
    /// The number of nodes that damage has kept a thread from posting.
    unposted: AtomicU64,
    medium: PhantomData<fn() -> M>,
}

impl<M: Medium, const WORDS: usize, const PAIR: usize> FastNodes<M, WORDS, PAIR> {
    /// Returns the low key of a node, and its leftmost child.
    fn low(&self, index: usize) -> SeparatedLeaf {
        let node = self.node(index);
        let prefix = node.low();
        let word = self.key_words.as_ref().map_or(prefix, |words| load::<M>(&words.get(index)[0]));
        SeparatedLeaf { prefix, word, leaf: node.child(0) }
    }

    /// Returns a new node with the low key and the leftmost child `low`.
    fn start(&self, level: u64, low: SeparatedLeaf) -> usize {
        let index = self.nodes.take();
        if let Some(words) = &self.key_words {
            words.extend(index);
        }
        let node = self.node(index);
        node.set_level_and_count(level, 0);
        node.set_sibling(None);
        node.set_child(0, low.leaf);
        self.set_low(index, low.prefix, low.word);
        index
    }

    fn set_low(&self, index: usize, prefix: u64, word: u64) {
        self.node(index).set_low(prefix);
        if let Some(words) = &self.key_words {
            store::<M>(&words.get(index)[0], word);
        }
    }

    /// Returns `true` if `key` or, for [`Direction::Below`], the keys just below it belong to the
    /// node at `index` or to nodes to its right.
    #[inline(always)]
    fn begins_before<K: Key>(
        &self,
        pool: &Pool<M>,
        index: usize,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<bool, Corrupt> {
        let order = match self.node(index).low().cmp(&K::prefix(key)) {
            Ordering::Equal if !K::EXACT => K::order(pool, self.low(index).word, key)?,
            order => order,
        };
        Ok(order.is_lt() || order.is_eq() && direction == Direction::Key)
    }

    /// Returns the node of `level` that covers `key` or, for [`Direction::Below`], the keys just
    /// below it. The caller validates the version. Returns `None` if there is no such level.
    #[inline(always)]
    fn descend<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        direction: Direction,
        level: u64,
    ) -> Result<Option<Covering>, Corrupt> {
        loop {
            let (mut index, mut version) = self.read_root();
            if self.node(index).level() < level {
                return Ok(None);
            }
            loop {
                let position = self.checked_position::<K>(pool, index, version, key, direction)?;
                let Ok(at) = position else { break };
                let covering = (index, version, at);
                let Ok(beyond) = self.beyond::<K>(pool, covering, key, direction)? else { break };
                let next = match beyond {
                    Some(sibling) => Some(sibling),
                    None if self.node(index).level() <= level => return Ok(Some(covering)),
                    None => self.step(index, version, at),
                };
                let Some(next) = next else { break };
                (index, version) = next;
            }
        }
    }
}

impl<M: Medium, const WORDS: usize, const PAIR: usize> InnerNodes<M> for FastNodes<M, WORDS, PAIR> {
    type Node<'a> = FastNode<'a, M, WORDS, PAIR>;
    const SEARCH: NodeSearch = NodeSearch::Linear;
    const FANOUT: usize = FastNode::<M, WORDS, PAIR>::FANOUT;

    fn build(leaves: &[SeparatedLeaf], exact: bool) -> Result<Self, PoolError> {
        let inner = Self {
            nodes: Arena::new()?,
            key_words: if exact { None } else { Some(Arena::new()?) },
            root: AtomicU64::new(0),
            unposted: AtomicU64::new(0),
            medium: PhantomData,
        };
        inner.set_root(inner.build_levels(leaves));
        Ok(inner)
    }

    fn for_each_leaf(&self, visit: &mut impl FnMut(SeparatedLeaf)) {
        let mut index = self.root();
        while self.node(index).level() > 1 {
            index = self.node(index).child(0) as usize;
        }
        let mut next = Some(index);
        while let Some(index) = next {
            visit(self.low(index));
            for at in 0..self.node(index).count() {
                let SeparatedChild { prefix, word, child } = self.slot(index, at);
                visit(SeparatedLeaf { prefix, word, leaf: child });
            }
            next = self.node(index).sibling();
        }
    }

    fn height(&self) -> u32 {
        self.node(self.root()).level() as u32
    }

    fn dram_bytes(&self) -> u64 {
        self.nodes.bytes() + self.key_words.as_ref().map_or(0, Arena::bytes)
    }

    fn node_count(&self) -> u64 {
        self.nodes.in_use()
    }

    #[inline(always)]
    fn node(&self, index: usize) -> FastNode<'_, M, WORDS, PAIR> {
        FastNode::new(DramView::new(self.nodes.get(index)))
    }

    #[inline(always)]
    fn separator_words(&self, index: usize) -> Option<SeparatorWords<'_, M>> {
        self.key_words.as_ref().map(|words| SeparatorWords::new(&words.get(index)[1..]))
    }

    #[inline]
    fn seek<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<LeafRoute, Corrupt> {
        loop {
            let covering = self.descend::<K>(pool, key, direction, 1)?;
            let Some((parent, version, at)) = covering else { continue };
            let leaf = PmPtr::new(self.node(parent).child(at));
            if self.node(parent).latch().validate(version) {
                return Ok(LeafRoute { leaf, parent, version });
            }
        }
    }

    fn seek_last(&self) -> LeafRoute {
        loop {
            let (mut parent, mut version) = self.read_root();
            loop {
                let node = self.node(parent);
                let (level, last) = (node.level(), node.child(node.count()));
                let sibling = node.sibling();
                if level <= 1 && sibling.is_none() {
                    if node.latch().validate(version) {
                        return LeafRoute { leaf: PmPtr::new(last), parent, version };
                    }
                    break;
                }
                let next = self.follow(parent, version, sibling.unwrap_or(last as usize));
                let Some(next) = next else { break };
                (parent, version) = next;
            }
        }
    }

    fn seek_batch<K: Key>(
        &self,
        pool: &Pool<M>,
        keys: &[K::Ref<'_>],
        routes: &mut [Option<LeafRoute>; BATCH],
        prefetch: impl Fn(PmPtr, K::Ref<'_>),
    ) -> Result<(), Corrupt> {
        self.seek_interleaved::<K>(pool, keys, routes, prefetch)
    }

    fn try_post<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        slot: SeparatedChild,
        replaced: Option<(PmPtr, PmPtr)>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        let covering = self.descend::<K>(pool, separator, Direction::Key, 1)?;
        let Some((index, version, at)) = covering else { return Ok(Err(Restart)) };
        let node = self.node(index);
        let Some(latch_guard) = node.latch().upgrade(version) else { return Ok(Err(Restart)) };
        if let Some((full, lower)) = replaced {
            node.set_child(at, self.swung(index, at, full, lower)?);
        }
        let sibling = self.insert_or_split(index, at, slot);
        drop(latch_guard);
        if let Some(sibling) = sibling {
            self.post_above::<K>(pool, sibling).inspect_err(|_| {
                self.unposted.fetch_add(1, core::sync::atomic::Ordering::Release);
            })?;
        }
        Ok(Ok(()))
    }

    fn load<K: Key>(
        &self,
        pool: &Pool<M>,
        only: PmPtr,
        leaves: &[SeparatedLeaf],
        publish: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Corrupt> {
        self.load_leaves::<K>(pool, only, leaves, publish)
    }

    fn merge_path<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<(), Corrupt> {
        while self.try_merge_path::<K>(pool, key)?.is_err() {}
        Ok(())
    }

    /// The first leaf stays.
    fn unlink<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>, leaf: PmPtr) -> Result<(), Corrupt> {
        let mut spins = 0;
        loop {
            match self.try_unlink::<K>(pool, key, leaf)? {
                Ok(false) => return Ok(()),
                Ok(true) => return self.merge_path::<K>(pool, key),
                Err(Restart) => OnDram::<'_, M>::relax(&mut spins),
            }
            // No thread posts a node that damage kept another one from posting.
            let found = load::<M>(&self.unposted);
            if found > 0 {
                let what = "number of inner nodes that damage keeps without a separator";
                return Err(Corrupt { at: leaf.offset(), what, expected: 0, found });
            }
        }
    }
}

#[cfg(test)]
mod tests;
